//! The rows of `tests/data/kubelet.json`, and the count that keeps each of them in sight.

use std::collections::BTreeMap;
use std::str::FromStr;

use serde_json::Value;

use crate::pods;

/// Each array with the rows that are compared and those that are passed over, with a reason in the
/// test. A row that vanishes, or is passed over unseen, breaks the count.
const ARRAYS: [(&str, usize, usize); 22] = [
    ("cpu_milli_to_shares_and_weight", 62, 0),
    ("cpu_milli_to_shares", 11, 0),
    ("cpu_shares_to_weight_new", 51, 1),
    ("cpu_shares_to_weight_old", 9, 0),
    ("cpu_milli_to_quota", 7, 0),
    ("cpu_max_string", 370, 0),
    ("qos_cpu_shares", 5, 0),
    ("pod_cgroup_path", 3, 0),
    ("pod_cgroup_config", 27, 0),
    ("container_resources", 14, 6),
    ("pod_memory_qos_tiered", 10, 0),
    ("container_memory_qos", 4, 1),
    ("qos_memory_protection", 4, 0),
    ("swap_limit", 8, 0),
    ("swap_behavior", 6, 3),
    ("container_hugepage_limits", 10, 0),
    ("pod_hugepage_limits", 3, 0),
    ("hugepage_unit_from_bytes", 7, 0),
    ("pod_pids_max", 5, 0),
    ("oom_score_adj", 25, 0),
    ("node_allocatable_enforcement", 6, 0),
    ("kubepods_cgroup_config", 1, 0),
];

/// What became of a row.
#[derive(PartialEq, Eq)]
pub enum Row {
    Compared,
    /// Not ours, and why.
    PassedOver(&'static str),
}

fn file() -> Value {
    pods::data(include_str!("../data/kubelet.json"))
}

/// Runs `check` with name, input and expected answer of each row of an array.
pub fn each_row(array: &str, check: impl Fn(&str, &Value, &Value) -> Row) {
    let file = file();
    let mut counts = (0, 0);
    for row in file[array].as_array().unwrap() {
        match check(
            row["name"].as_str().unwrap(),
            &row["input"],
            &row["expected"],
        ) {
            Row::Compared => counts.0 += 1,
            Row::PassedOver(why) => {
                assert!(!why.is_empty());
                counts.1 += 1;
            }
        }
    }
    let known = ARRAYS.iter().find(|(name, ..)| *name == array).unwrap();
    assert_eq!((known.1, known.2), counts, "{array}");
}

#[test]
fn every_row_of_the_file_is_accounted_for() {
    let file = file();
    let rows: BTreeMap<&str, usize> = file
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, rows)| (name.as_str(), rows.as_array().unwrap().len()))
        .collect();
    let known = ARRAYS
        .iter()
        .map(|(name, used, passed)| (*name, used + passed));
    assert_eq!(rows, known.collect());
}

/// A number of the row.
pub fn number<T: FromStr>(value: &Value) -> T {
    value
        .to_string()
        .trim_matches('"')
        .parse()
        .unwrap_or_else(|_| panic!("{value} is no number"))
}
