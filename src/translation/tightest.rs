//! What really bounds a cgroup: every limit on the way up holds too.
//!
//! Looks at a tree of values, wanted or found; decides nothing about what they should be.

use crate::cgroup::{CgroupPath, InterfaceFile, Setting, Tree};
use crate::units::{CpuMax, Limit};

/// Which value of a file is in force for a cgroup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tightest {
    /// The file.
    pub file: InterfaceFile,
    /// The cgroup's own value.
    pub own: Option<Setting>,
    /// The least value on the way up.
    pub value: Setting,
    /// Where that value stands: the cgroup itself, or the nearest one above it.
    pub at: CgroupPath,
}

impl Tightest {
    /// Whether a cgroup above is tighter than this one.
    pub fn is_above(&self) -> bool {
        self.own != Some(self.value)
    }
}

/// For each file whose value counts along the whole path, the least value and where it stands: limits,
/// since each holds for all below, and memory protection, since none is worth more than that above it.
/// A file that no cgroup of the path has is left out.
pub fn tightest(path: &CgroupPath, tree: &Tree) -> Vec<Tightest> {
    let mut found: Vec<Tightest> = Vec::new();
    for at in path.self_and_above() {
        let settings = tree
            .get(&at)
            .into_iter()
            .flat_map(|node| node.settings.values());
        for &value in settings {
            match found.iter_mut().find(|known| known.file == value.file()) {
                Some(known) if is_tighter(value, known.value) => {
                    known.value = value;
                    known.at = at.clone();
                }
                None if counts_along_the_path(value) => found.push(Tightest {
                    file: value.file(),
                    own: (at == *path).then_some(value),
                    value,
                    at: at.clone(),
                }),
                _ => {}
            }
        }
    }
    found.sort_by_key(|known| known.file);
    found
}

fn counts_along_the_path(value: Setting) -> bool {
    match value {
        Setting::CpuWeight(_) | Setting::CpuMaxBurst(_) | Setting::MemoryOomGroup(_) => false,
        // No list says nothing: that above holds.
        Setting::CpusetCpus(set) | Setting::CpusetMems(set) => !set.is_empty(),
        _ => true,
    }
}

/// Whether `a` allows less than `b`, both of the same file.
fn is_tighter(a: Setting, b: Setting) -> bool {
    match (a, b) {
        (Setting::CpuMax(a), Setting::CpuMax(b)) => is_less_run_time(a, b),
        (Setting::MemoryMin(a), Setting::MemoryMin(b))
        | (Setting::MemoryLow(a), Setting::MemoryLow(b))
        | (Setting::MemoryHigh(a), Setting::MemoryHigh(b))
        | (Setting::MemoryMax(a), Setting::MemoryMax(b))
        | (Setting::MemorySwapMax(a), Setting::MemorySwapMax(b))
        | (Setting::HugetlbMax(_, a), Setting::HugetlbMax(_, b))
        | (Setting::HugetlbRsvdMax(_, a), Setting::HugetlbRsvdMax(_, b)) => a < b,
        (Setting::PidsMax(a), Setting::PidsMax(b)) => a < b,
        (Setting::CpusetCpus(a), Setting::CpusetCpus(b))
        | (Setting::CpusetMems(a), Setting::CpusetMems(b)) => {
            !a.is_empty() && a != b && a.is_subset(b)
        }
        _ => false,
    }
}

/// Compares quota by period; periods may differ.
fn is_less_run_time(a: CpuMax, b: CpuMax) -> bool {
    match (a.quota, b.quota) {
        (Limit::At(of_a), Limit::At(of_b)) => {
            u128::from(of_a.0) * u128::from(b.period.0)
                < u128::from(of_b.0) * u128::from(a.period.0)
        }
        (a, b) => a < b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{Bytes, Micros};

    fn tree() -> (CgroupPath, CgroupPath, Tree) {
        let pod = CgroupPath::top().child("pod1").unwrap();
        let container = pod.child("app").unwrap();
        let cpu = |quota, period| {
            Setting::CpuMax(CpuMax {
                quota: Limit::At(Micros(quota)),
                period: Micros(period),
            })
        };
        let memory = |mib| Setting::MemoryMax(Limit::At(Bytes::mib(mib)));
        let tasks = |tasks| Setting::PidsMax(Limit::At(tasks));
        let tree = [
            (
                CgroupPath::top(),
                [memory(1024), tasks(65_535)].into_iter().collect(),
            ),
            (
                pod.clone(),
                [memory(256), tasks(4096), cpu(10_000, 20_000)]
                    .into_iter()
                    .collect(),
            ),
            (
                container.clone(),
                [
                    memory(512),
                    Setting::PidsMax(Limit::Max),
                    cpu(60_000, 100_000),
                ]
                .into_iter()
                .collect(),
            ),
        ]
        .into_iter()
        .collect();
        (pod, container, tree)
    }

    #[test]
    fn the_tightest_ancestor_is_named() {
        let (pod, container, tree) = tree();
        let found = tightest(&container, &tree);
        let of = |file| found.iter().find(|known| known.file == file).unwrap();

        // kubernetes#131235: whose limit of tasks is it?
        let tasks = of(InterfaceFile::PidsMax);
        assert_eq!(
            (tasks.value, &tasks.at),
            (Setting::PidsMax(Limit::At(4096)), &pod)
        );
        assert!(tasks.is_above());
        let memory = of(InterfaceFile::MemoryMax);
        assert_eq!(memory.at, pod);
        assert_eq!(
            memory.own,
            Some(Setting::MemoryMax(Limit::At(Bytes::mib(512))))
        );
        // 10000/20000 is less run time than 60000/100000.
        assert_eq!(of(InterfaceFile::CpuMax).at, pod);
        assert_eq!(found.len(), 3);
    }

    #[test]
    fn an_equal_value_above_is_not_tighter() {
        let (pod, _, mut tree) = tree();
        let same = tree.get(&pod).unwrap().clone();
        tree.insert(CgroupPath::top(), same);
        for known in tightest(&pod, &tree) {
            assert_eq!(known.at, pod);
            assert!(!known.is_above());
        }
    }

    #[test]
    fn a_file_that_only_stands_above_still_bounds() {
        let (pod, container, mut tree) = tree();
        tree.remove(&container);
        let found = tightest(&container, &tree);
        assert!(
            found
                .iter()
                .all(|known| known.own.is_none() && known.is_above())
        );
        assert!(found.iter().any(|known| known.at == pod));
        assert!(tightest(&container, &Tree::default()).is_empty());
    }
}
