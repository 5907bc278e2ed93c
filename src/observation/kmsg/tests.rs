//! The samples, and what they do not hold.

use serde_json::{Value, json};

use super::*;

/// What a sequence of records tells.
fn told(records: &[&str]) -> (Vec<Kill>, u64) {
    let mut reports = Reports::default();
    let (mut kills, mut lost): (Vec<Kill>, u64) = (Vec::new(), 0);
    for record in records {
        let (gap, told) = reports.take(record.as_bytes());
        if let Some(Told::Lost(records)) = gap {
            lost += records;
        }
        match told {
            Some(Told::Kill(kill)) => kills.push(*kill),
            Some(Told::Group(report)) => {
                for kill in kills.iter_mut().filter(|kill| kill.report == report) {
                    kill.cause.group.clone_from(&reports.cause.group);
                }
            }
            Some(Told::Lost(_)) | None => {}
        }
    }
    (kills, lost)
}

/// A kill in the words of the samples.
fn victim(kill: &Kill) -> Value {
    let kib = |bytes: Option<u64>| bytes.map(|bytes| bytes / 1024);
    let sizes = &kill.sizes;
    json!({
        "pid": kill.pid,
        "comm": kill.name,
        "uid": kill.uid,
        "total_vm_kb": kib(sizes.total_vm_bytes),
        "anon_rss_kb": kib(sizes.anon_rss_bytes),
        "file_rss_kb": kib(sizes.file_rss_bytes),
        "shmem_rss_kb": kib(sizes.shmem_rss_bytes),
        "pgtables_kb": kib(sizes.page_table_bytes),
        "oom_score_adj": sizes.oom_score_adj,
        "summary_pid": kill.process,
    })
}

fn cause(cause: &Cause) -> Value {
    let kib = |bytes: Option<u64>| bytes.map(|bytes| bytes / 1024);
    json!({
        "constraint": cause.constraint,
        "oom_memcg": cause.oom_memcg,
        "task_memcg": cause.task_memcg,
        "memcg_usage_kb": kib(cause.usage_bytes),
        "memcg_limit_kb": kib(cause.limit_bytes),
        "oom_group": cause.group,
        "asked_by": cause.asked_by,
        "gfp": cause.gfp_mask,
        "order": cause.order,
    })
}

/// What a sample expects of a report, in the same words.
fn expected(event: &Value) -> (Value, Vec<Value>) {
    let mut cause = serde_json::Map::new();
    for field in [
        "constraint",
        "oom_memcg",
        "task_memcg",
        "memcg_usage_kb",
        "memcg_limit_kb",
        "oom_group",
    ] {
        cause.insert(field.to_owned(), event[field].clone());
    }
    let trigger = &event["trigger"];
    let gfp = match (&trigger["gfp_mask"], &trigger["gfp_flags"]) {
        (Value::String(mask), Value::String(flags)) => json!(format!("{mask}({flags})")),
        (mask, _) => mask.clone(),
    };
    cause.insert("asked_by".to_owned(), trigger["comm"].clone());
    cause.insert("gfp".to_owned(), gfp);
    cause.insert("order".to_owned(), trigger["order"].clone());
    let victims = event["victims"].as_array().unwrap().iter();
    let victims = victims.map(|victim| {
        let mut victim = victim.clone();
        let fields = victim.as_object_mut().unwrap();
        // Not taken: how often the kernel says it, and what is said otherwise already.
        for field in [
            "times_logged",
            "reaped",
            "score",
            "comm_hex",
            "summary_comm",
        ] {
            fields.shift_remove(field);
        }
        fields.entry("summary_pid").or_insert(Value::Null);
        victim
    });
    (Value::Object(cause), victims.collect())
}

#[test]
fn every_sample_is_read_as_it_is_meant() {
    let text = include_str!("../../../tests/data/oom-kmsg.json");
    let samples: Value = serde_json::from_str(text).unwrap();
    let samples = samples["samples"].as_array().unwrap();
    assert_eq!(samples.len(), 20);
    for sample in samples {
        let id = &sample["id"];
        let records = sample["records"].as_array().unwrap().iter();
        let records: Vec<_> = records.map(|record| record.as_str().unwrap()).collect();
        let (kills, lost) = told(&records);
        let found: Vec<_> = kills
            .chunk_by(|a, b| a.report == b.report)
            .map(|kills| {
                let victims: Vec<_> = kills.iter().map(victim).collect();
                (cause(&kills[0].cause), victims)
            })
            .collect();
        let wanted = &sample["expected"];
        // A report without a victim tells nothing.
        let events = wanted["events"].as_array().unwrap().iter().map(expected);
        let events: Vec<_> = events.filter(|(_, victims)| !victims.is_empty()).collect();
        assert_eq!(found, events, "{id}");
        if let Some(records) = wanted["lost_records"].as_u64() {
            assert_eq!(lost, records, "{id}");
        }
    }
}

const KILLED: &str = "Killed process 7 (a) total-vm:4kB, anon-rss:4kB, file-rss:0kB";

fn kernel(sequence: u64, text: &str) -> String {
    format!("6,{sequence},1,-;{text}")
}

#[test]
fn a_summary_in_pieces_is_put_together() {
    let records = [
        "6,1,1,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=c,mems_allowed=0,oom_memcg=/t/po".to_owned(),
        "6,2,1,-;eth0: link becomes ready".to_owned(),
        "6,3,1,c;d1,task_memcg=/t/pod1/c,task=a,pid=7,uid=0".to_owned(),
        kernel(4, &format!("Memory cgroup out of memory: {KILLED}")),
    ];
    let (kills, _) = told(&records.each_ref().map(String::as_str));
    assert_eq!(kills[0].cause.oom_memcg.as_deref(), Some("/t/pod1"));
    assert_eq!(kills[0].cause.task_memcg.as_deref(), Some("/t/pod1/c"));
}

#[test]
fn no_name_can_pretend_to_be_a_kill() {
    for text in [
        format!("a[1]: {KILLED}"),
        format!("x: Out of memory: {KILLED}"),
        "Out of memory: Killed process 7 (a)".to_owned(),
        "Out of memory: Killed process 99999999999 (a) total-vm:4kB".to_owned(),
        "Out of memory: Killed process -7 (a) total-vm:4kB".to_owned(),
        "Memory cgroup out of memory: OOM victim 7 (a) is already exiting. Skip killing the task"
            .to_owned(),
    ] {
        let kills = told(&[&kernel(1, &text)]).0;
        assert!(kills.is_empty(), "{text}: {kills:?}");
    }
}

#[test]
fn a_name_may_look_like_the_rest_of_the_line() {
    let record = kernel(
        1,
        "Out of memory: Killed process 7 () total-vm:1kB) total-vm:4kB, anon-rss:8kB, UID:3 pgtables:1kB oom_score_adj:-5",
    );
    let kill = told(&[&record]).0.remove(0);
    assert_eq!(kill.name, ") total-vm:1kB");
    assert_eq!((kill.uid, kill.sizes.total_vm_bytes), (Some(3), Some(4096)));
    assert_eq!(kill.sizes.oom_score_adj, Some(-5));
}

#[test]
fn the_next_report_takes_nothing_from_the_one_before() {
    let summary = |memcg: &str, pid: u32| {
        format!(
            "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=c,mems_allowed=0,oom_memcg={memcg},task_memcg={memcg},task=a,pid={pid},uid=0"
        )
    };
    let killed = |pid: u32| {
        format!("Memory cgroup out of memory: Killed process {pid} (a) total-vm:4kB, anon-rss:4kB")
    };
    let records = [
        kernel(1, &summary("/one", 7)),
        kernel(2, &killed(7)),
        // Its head was suppressed.
        kernel(3, &killed(8)),
        kernel(4, &summary("/two", 9)),
        kernel(5, &killed(9)),
        kernel(6, &summary("/three", 10)),
        // Overwritten: what came between is unknown.
        kernel(9, &killed(11)),
    ];
    let (kills, lost) = told(&records.each_ref().map(String::as_str));
    let memcgs: Vec<_> = kills
        .iter()
        .map(|kill| kill.cause.oom_memcg.as_deref())
        .collect();
    assert_eq!(memcgs, [Some("/one"), None, Some("/two"), None]);
    assert_eq!(lost, 2);
}

/// One line in a record (Linux 6.7 and later), or all in one (6.1, as the machine of the tests printed it).
#[test]
fn what_the_memory_was_used_for_is_told() {
    let stat_of = |texts: &[&str]| {
        let summary = "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/allot/podu/c,task_memcg=/allot/podu/c,task=init,pid=7,uid=0";
        let killed = "Memory cgroup out of memory: Killed process 7 (init) total-vm:4kB, anon-rss:4kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:4kB oom_score_adj:1";
        let texts = texts.iter().copied().chain([summary, killed]);
        let records: Vec<_> = (1..)
            .zip(texts)
            .map(|(sequence, text)| format!("4,{sequence},10,-;{text}"))
            .collect();
        let records: Vec<_> = records.iter().map(String::as_str).collect();
        let (mut kills, lost) = told(&records);
        assert_eq!((kills.len(), lost), (1, 0));
        kills.remove(0).cause.stat
    };
    let before = "Memory cgroup stats for /allot/podu/c:";
    let together = "anon 66625536\\x0afile 4096\\x0akernel 483328\\x0apagetables 249856\\x0ashmem 7\\x0aslab 1";
    let expected = [
        ("anon", 66_625_536),
        ("file", 4096),
        ("kernel", 483_328),
        ("pagetables", 249_856),
        ("shmem", 7),
    ];
    assert_eq!(stat_of(&[before, together]), BTreeMap::from(expected));
    let apart = [before, "anon 5", "file x", "workingset_refault_anon 9"];
    assert_eq!(stat_of(&apart), BTreeMap::from([("anon", 5)]));
    // Where no such lines belong they are no figures.
    assert_eq!(stat_of(&["anon 5"]), BTreeMap::new());
}
