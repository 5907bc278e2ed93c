//! What was seen before, for the little curves.
//!
//! Kept for what is still there and bounded in length; it judges nothing.

use std::collections::{BTreeMap, VecDeque};

use super::rows::RowKey;
use crate::report::top::{TopReport, Use};

/// So many looks are kept: wider than any terminal has room for.
const KEPT: usize = 256;

/// Some figure over time, the oldest first; absent where it was not known.
pub type Series = VecDeque<Option<u64>>;

/// CPU and memory over time of the node (`None`) and of each row.
#[derive(Clone, Debug, Default)]
pub struct History(BTreeMap<Option<RowKey>, [Series; 2]>);

impl History {
    /// Adds a look, and forgets what is not in it.
    pub fn add(&mut self, report: &TopReport) {
        let mut before = std::mem::take(&mut self.0);
        let mut keep = |key: Option<RowKey>, used: &Use| {
            let mut both = before.remove(&key).unwrap_or_default();
            let figures = [used.cpu_nano, used.working_set_bytes];
            for (series, figure) in both.iter_mut().zip(figures) {
                series.push_back(figure);
                if series.len() > KEPT {
                    series.pop_front();
                }
            }
            self.0.insert(key, both);
        };
        keep(None, &report.node.used);
        for pod in &report.pods {
            keep(Some(RowKey::of_pod(pod)), &pod.used);
            for container in &pod.containers {
                keep(Some(RowKey::of(pod, Some(container))), &container.used);
            }
        }
    }

    /// CPU (billionths) over time.
    pub fn cpu(&self, key: Option<&RowKey>) -> Option<&Series> {
        let [cpu, _] = self.0.get(&key.cloned())?;
        Some(cpu)
    }

    /// The working set (bytes) over time.
    pub fn memory(&self, key: Option<&RowKey>) -> Option<&Series> {
        let [_, memory] = self.0.get(&key.cloned())?;
        Some(memory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::top::PodTop;

    fn report(uids: &[&str], cpu: u64) -> TopReport {
        let pod = |uid: &&str| PodTop {
            uid: (*uid).to_owned(),
            used: Use {
                cpu_nano: Some(cpu),
                ..Use::default()
            },
            ..PodTop::default()
        };
        TopReport {
            pods: uids.iter().map(pod).collect(),
            ..TopReport::default()
        }
    }

    #[test]
    fn what_is_gone_is_forgotten_and_nothing_grows_for_ever() {
        let mut history = History::default();
        for n in 0..300 {
            history.add(&report(&["a", "b"], n));
        }
        let key = |uid: &str| RowKey {
            uid: uid.to_owned(),
            container: None,
        };
        let series = history.cpu(Some(&key("a"))).unwrap();
        assert_eq!(series.len(), KEPT);
        assert_eq!(series.back(), Some(&Some(299)));
        assert_eq!(history.cpu(None).unwrap().back(), Some(&None));
        history.add(&report(&["b"], 0));
        assert!(history.cpu(Some(&key("a"))).is_none());
        assert_eq!(history.cpu(Some(&key("b"))).unwrap().len(), KEPT);
    }
}
