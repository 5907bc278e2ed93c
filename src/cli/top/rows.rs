//! Which rows there are and in which order.
//!
//! Pure: it chooses and sorts and changes no figure.

use std::cmp::{Ordering, Reverse};

use crate::report::top::{Amounts, ContainerTop, PodTop, TopReport, Use};

/// What a row is of, whatever becomes of its place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowKey {
    /// The uid of the pod.
    pub uid: String,
    /// The container; `None` is the pod itself.
    pub container: Option<String>,
}

impl RowKey {
    /// A pod's.
    pub fn of_pod(pod: &PodTop) -> Self {
        Self::of(pod, None)
    }

    /// A container's, or a pod's.
    pub fn of(pod: &PodTop, container: Option<&ContainerTop>) -> Self {
        Self {
            uid: pod.uid.clone(),
            container: container.map(|container| container.name.clone()),
        }
    }
}

/// By what rows are sorted: names from A on, figures from the greatest on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// Namespace and name.
    Name,
    /// CPU in use.
    #[default]
    Cpu,
    /// Memory in use.
    Memory,
    /// CPU time withheld.
    Throttled,
    /// Tasks.
    Tasks,
    /// Disk in use.
    Disk,
    /// The greatest pressure.
    Pressure,
    /// OOM kills, then drift, then restarts.
    Marks,
}

/// Of which pods the containers have rows of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shown {
    /// Of those that have several.
    #[default]
    Several,
    /// Of all.
    All,
    /// Of none.
    None,
}

/// What is wanted.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Pods of this namespace only.
    pub namespace: Option<String>,
    /// Pods in whose names or words this occurs; upper and lower case are one.
    pub filter: String,
    /// The order.
    pub sort: Sort,
    /// The other way round.
    pub reversed: bool,
    /// Whose containers.
    pub shown: Shown,
}

/// One row.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// The pod.
    pub pod: &'a PodTop,
    /// The container; `None` is the pod itself.
    pub container: Option<&'a ContainerTop>,
    /// The last row of its pod.
    pub is_last: bool,
}

impl Row<'_> {
    /// What it is of.
    pub fn key(&self) -> RowKey {
        RowKey::of(self.pod, self.container)
    }

    /// The name of container or pod.
    pub fn name(&self) -> &str {
        self.container
            .map_or(&self.pod.name, |container| &container.name)
    }

    /// What is used.
    pub fn used(&self) -> &Use {
        self.container
            .map_or(&self.pod.used, |container| &container.used)
    }

    /// What is asked for.
    pub fn requests(&self) -> Amounts {
        self.container
            .map_or(self.pod.requests, |container| container.requests)
    }

    /// One word: `Running`, or why not.
    pub fn status(&self) -> &str {
        self.container
            .map_or(&self.pod.status, |container| &container.state)
    }

    /// Processes that OOM kills took.
    pub fn oom_kills(&self) -> u64 {
        self.sum(|container| container.oom_kills)
    }

    /// Restarts.
    pub fn restarts(&self) -> u64 {
        self.sum(|container| container.restarts)
    }

    /// Foreign changes undone.
    pub fn drifts(&self) -> u64 {
        self.container
            .map_or(self.pod.drifts, |container| container.drifts)
    }

    /// The greatest pressure (hundredths of a percent) with its letter: cpu, memory, io.
    pub fn pressure(&self) -> Option<(u32, char)> {
        let used = self.used();
        let all = [
            (used.cpu_pressure, 'c'),
            (used.memory_pressure, 'm'),
            (used.io_pressure, 'i'),
        ];
        let known = all
            .into_iter()
            .filter_map(|(share, letter)| Some((share?, letter)));
        known.max_by_key(|(share, _)| *share)
    }

    fn sum(&self, count: fn(&ContainerTop) -> u64) -> u64 {
        match self.container {
            Some(container) => count(container),
            None => self
                .pod
                .containers
                .iter()
                .map(count)
                .fold(0, u64::saturating_add),
        }
    }

    fn figure(&self, sort: Sort) -> Option<[u64; 3]> {
        let used = self.used();
        let one = match sort {
            Sort::Name => None,
            Sort::Cpu => used.cpu_nano,
            Sort::Memory => used.working_set_bytes,
            Sort::Throttled => used.throttled_usec,
            Sort::Tasks => used.tasks,
            Sort::Disk => used.disk_bytes,
            Sort::Pressure => self.pressure().map(|(share, _)| u64::from(share)),
            Sort::Marks => return Some([self.oom_kills(), self.drifts(), self.restarts()]),
        };
        one.map(|one| [one, 0, 0])
    }
}

/// What is absent comes last, whichever way the rest goes.
fn compare(a: &Row<'_>, b: &Row<'_>, choice: &Choice) -> Ordering {
    let (x, y) = (a.figure(choice.sort), b.figure(choice.sort));
    let by_figure = match (choice.reversed, x, y) {
        (true, Some(x), Some(y)) => x.cmp(&y),
        _ => Reverse(x).cmp(&Reverse(y)),
    };
    let name = |row: &Row<'_>| (row.pod.namespace.clone(), row.name().to_owned());
    let by_name = match (choice.sort, choice.reversed) {
        (Sort::Name, true) => name(b).cmp(&name(a)),
        _ => name(a).cmp(&name(b)),
    };
    by_figure.then(by_name)
}

/// The rows in order: each pod, then its containers where those are wanted.
pub fn rows<'a>(report: &'a TopReport, choice: &Choice) -> Vec<Row<'a>> {
    let wanted = |pod: &&PodTop| {
        let here = choice.namespace.as_ref();
        here.is_none_or(|namespace| *namespace == pod.namespace) && matches(pod, &choice.filter)
    };
    let row = |pod, container| Row {
        pod,
        container,
        is_last: false,
    };
    let mut pods: Vec<_> = report
        .pods
        .iter()
        .filter(wanted)
        .map(|pod| row(pod, None))
        .collect();
    pods.sort_by(|a, b| compare(a, b, choice));
    let mut all = Vec::new();
    for one in pods {
        all.push(one);
        let own = match choice.shown {
            Shown::All => true,
            Shown::Several => one.pod.containers.len() > 1,
            Shown::None => false,
        };
        if !own {
            continue;
        }
        let containers = one.pod.containers.iter();
        let mut containers: Vec<_> = containers.map(|c| row(one.pod, Some(c))).collect();
        containers.sort_by(|a, b| compare(a, b, choice));
        if let Some(last) = containers.last_mut() {
            last.is_last = true;
        }
        all.extend(containers);
    }
    all
}

fn matches(pod: &PodTop, filter: &str) -> bool {
    let filter = filter.to_lowercase();
    let has = |text: &str| text.to_lowercase().contains(&filter);
    let containers = pod.containers.iter();
    has(&format!("{}/{}", pod.namespace, pod.name))
        || has(&pod.status)
        || has(&pod.qos_class)
        || containers
            .into_iter()
            .any(|c| has(&c.name) || has(&c.state))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(name: &str, cpu: Option<u64>, containers: &[(&str, u64)]) -> PodTop {
        PodTop {
            namespace: if name == "c" { "b" } else { "a" }.to_owned(),
            name: name.to_owned(),
            uid: name.to_owned(),
            used: Use {
                cpu_nano: cpu,
                ..Use::default()
            },
            containers: containers
                .iter()
                .map(|(name, kills)| ContainerTop {
                    name: (*name).to_owned(),
                    oom_kills: *kills,
                    ..ContainerTop::default()
                })
                .collect(),
            ..PodTop::default()
        }
    }

    fn names(report: &TopReport, choice: &Choice) -> String {
        let rows = rows(report, choice);
        let names: Vec<_> = rows.iter().map(Row::name).collect();
        names.join(" ")
    }

    #[test]
    fn rows_are_sorted_with_the_unknown_last_and_containers_below_their_pod() {
        let report = TopReport {
            pods: vec![
                pod("z", None, &[("x", 0)]),
                pod("b", Some(5), &[("n", 0), ("k", 2)]),
                pod("c", Some(9), &[]),
                pod("d", Some(5), &[("x", 1)]),
            ],
            ..TopReport::default()
        };
        let choice = |sort, reversed, shown| Choice {
            sort,
            reversed,
            shown,
            ..Choice::default()
        };
        for (sort, reversed, shown, expected) in [
            (Sort::Cpu, false, Shown::Several, "c b k n d z"),
            (Sort::Cpu, true, Shown::None, "b d c z"),
            (Sort::Name, false, Shown::None, "b d z c"),
            (Sort::Name, true, Shown::None, "c z d b"),
            (Sort::Marks, false, Shown::All, "b k n d x z x c"),
            (Sort::Memory, false, Shown::None, "b d z c"),
        ] {
            let found = names(&report, &choice(sort, reversed, shown));
            assert_eq!(found, expected, "{sort:?} {reversed} {shown:?}");
        }
    }

    #[test]
    fn the_filter_looks_at_all_words_of_a_pod() {
        let mut waiting = pod("w", None, &[("log", 0)]);
        waiting.status = "CrashLoopBackOff".to_owned();
        let report = TopReport {
            pods: vec![waiting, pod("c", None, &[])],
            ..TopReport::default()
        };
        for (filter, expected) in [
            ("", "w c"),
            ("CRASH", "w"),
            ("log", "w"),
            ("b/c", "c"),
            ("x", ""),
        ] {
            let choice = Choice {
                filter: filter.to_owned(),
                ..Choice::default()
            };
            assert_eq!(names(&report, &choice), expected, "{filter}");
        }
        let choice = Choice {
            namespace: Some("b".to_owned()),
            ..Choice::default()
        };
        assert_eq!(names(&report, &choice), "c");
    }
}
