//! Disk: what pods' files take, on a file system that counts by project and on one that does not, and
//! what happens at their limits.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use allotd::sys::quota::{ProjectUse, project_use};
use nix::mount::{MsFlags, mount};
use serde_json::{Value, json};

use super::daemon::{
    Anything, Daemon, container, create, delete, events, get, pod, read_pod, request, running_pid,
    wait,
};
use crate::Outcome;

tests![
    deleted_files_and_many_files_are_counted_exactly,
    a_writer_past_a_limit_is_evicted_or_gets_an_error,
    a_volume_is_shared_where_it_is_mounted,
    a_volume_in_memory_is_bounded_and_leaves_nothing,
    a_flood_of_output_is_rotated,
    projects_survive_a_crash_and_end_with_the_pod,
    without_quotas_walks_find_what_is_deleted_and_open,
];

const MIB: u64 = 1 << 20;

/// One of the machine's disks.
#[derive(Clone, Copy)]
pub enum Disk {
    Ext4,
    Xfs,
}

/// Makes `/tmp` the machine's disk, which keeps project quotas, and empties it.
pub fn counting_disk() -> Outcome {
    counting(Disk::Ext4)
}

/// The same for either disk.
pub fn counting(disk: Disk) -> Outcome {
    let (device, kind) = match disk {
        Disk::Ext4 => ("/dev/ext4", "ext4"),
        Disk::Xfs => ("/dev/xfs", "xfs"),
    };
    let options = Some("prjquota");
    mount(Some(device), "/tmp", Some(kind), MsFlags::empty(), options)?;
    for entry in fs::read_dir("/tmp")? {
        let path = entry?.path();
        if path.is_dir() {
            fs::remove_dir_all(path)?;
        } else {
            fs::remove_file(path)?;
        }
    }
    // As it is on any machine: whoever a container is may write there.
    let everybodys = fs::Permissions::from_mode(0o1777);
    Ok(fs::set_permissions("/tmp", everybodys)?)
}

pub fn usage(name: &str) -> Anything<Value> {
    get(&format!(
        "/apis/allotd.dev/v1/namespaces/default/pods/{name}/usage"
    ))
}

pub fn scratch(usage: &Value) -> u64 {
    usage["containers"][0]["scratchBytes"].as_u64().unwrap_or(0)
}

pub fn sh(script: &str) -> Value {
    json!({"name": "c", "image": "i", "command": ["sh", "-c", script]})
}

pub fn limited(script: &str, limit: &str) -> Value {
    let mut container = sh(script);
    container["resources"] = json!({"limits": {"ephemeral-storage": limit}});
    container
}

pub fn phase(name: &str) -> Anything<String> {
    let pod = read_pod(name)?;
    Ok(pod["status"]["phase"].as_str().unwrap_or("").to_owned())
}

pub fn log(name: &str) -> Anything<String> {
    let path = format!("/api/v1/namespaces/default/pods/{name}/log");
    Ok(request("GET", &path, None)?.1)
}

/// Report kubernetes#83107: a file that is deleted but open. And the number of files costs nothing.
fn deleted_files_and_many_files_are_counted_exactly() -> Outcome {
    counting_disk()?;
    let _daemon = Daemon::start()?;
    let script = "dd if=/dev/zero of=big bs=1M count=64 2>/dev/null; exec 3<big; rm big; \
                  i=0; while [ $i -lt 3000 ]; do : >f$i; i=$((i+1)); done; echo ready; sleep inf";
    create(&pod("web", &json!({"containers": [sh(script)]})))?;
    wait("the files", || Ok(log("web")?.contains("ready")))?;
    let used = usage("web")?;
    assert_eq!(used["disk"]["exact"], true, "{used}");
    assert!((64 * MIB..66 * MIB).contains(&scratch(&used)), "{used}");
    let inodes = used["disk"]["inodes"].as_u64().unwrap_or(0);
    // Beside the files: the directories of pod, container, run, scratch, logs, and what is in them.
    assert!((3000..3020).contains(&inodes), "{used}");
    let summary = get("/stats/summary")?;
    let told = &summary["pods"][0]["ephemeral-storage"];
    assert!(told["usedBytes"].as_u64() >= Some(64 * MIB), "{told}");
    delete("web", 0)
}

/// `dd` past an `emptyDir`'s size and past a container's limit, under both policies, by root, who could go on if it
/// had all capabilities.
fn a_writer_past_a_limit_is_evicted_or_gets_an_error() -> Outcome {
    counting_disk()?;
    let _daemon = Daemon::start_with("allowRootContainers: true")?;
    let volume =
        "dd if=/dev/zero of=$ALLOTD_VOLUME_CACHE/big bs=1M count=32; echo dd $?; sleep inf";
    let own = "dd if=/dev/zero of=big bs=1M count=32; echo dd $?; sleep inf";
    let volumes = json!([{"name": "cache", "emptyDir": {"sizeLimit": "8Mi"}}]);
    let spec = json!({"containers": [sh(volume)], "volumes": volumes});
    let of_container = json!({"containers": [limited(own, "8Mi")]});

    for (name, spec, message) in [
        (
            "volume",
            &spec,
            "Usage of EmptyDir volume \"cache\" exceeds the limit \"8Mi\". ",
        ),
        (
            "container",
            // One container with a limit is the whole pod: its sum is exceeded first.
            &of_container,
            "Pod ephemeral local storage usage exceeds the total limit of containers 8Mi. ",
        ),
    ] {
        create(&pod(name, spec))?;
        wait("the eviction", || Ok(phase(name)? == "Failed"))?;
        let status = read_pod(name)?["status"].clone();
        assert_eq!(status["reason"], "Evicted", "{status}");
        let told = status["message"].as_str().unwrap_or("");
        assert!(told.starts_with(message), "{told}");
        assert_eq!(container(name, "c")?["restartCount"], 0);
        delete(name, 0)?;
    }
    assert_eq!(events("Evicted")?.len(), 2);

    let annotated = |name: &str, spec: &Value| {
        let mut pod = pod(name, spec);
        pod["metadata"]["annotations"] = json!({"allotd.dev/storage-policy": "enforce"});
        pod
    };
    for (name, spec) in [("full-volume", &spec), ("full-container", &of_container)] {
        create(&annotated(name, spec))?;
        wait("the end of dd", || Ok(log(name)?.contains("dd 1")))?;
        let said = log(name)?;
        assert!(said.contains("Disk quota exceeded"), "{said}");
        wait("the event", || {
            let told = events("EphemeralStorageFull")?;
            Ok(told
                .iter()
                .any(|(message, _)| message.contains("of 8388608 bytes")))
        })?;
        assert_eq!(phase(name)?, "Running");
        let used = usage(name)?["disk"]["bytes"].as_u64().unwrap_or(0);
        assert!((7 * MIB..9 * MIB).contains(&used), "{used}");
        delete(name, 0)?;
    }
    assert_eq!(events("Evicted")?.len(), 2, "nobody else");
    Ok(())
}

fn a_volume_is_shared_where_it_is_mounted() -> Outcome {
    counting_disk()?;
    let _daemon = Daemon::start()?;
    fs::create_dir_all("/tmp/data")?;
    fs::write("/tmp/data/host", "host")?;
    let reader = "until [ -e /tmp/data/from-a ]; do sleep 0.1; done; cat /tmp/data/from-a; \
                  ls /tmp/data; echo x >/tmp/data/b; echo write $?; sleep inf";
    let mounts = |read_only: bool| json!([{"name": "shared", "mountPath": "/tmp/data", "readOnly": read_only}]);
    let mut a = sh("echo hello >/tmp/data/from-a; sleep inf");
    a["volumeMounts"] = mounts(false);
    let mut b = sh(reader);
    b["name"] = json!("b");
    b["volumeMounts"] = mounts(true);
    let volumes = json!([{"name": "shared", "emptyDir": {}}]);
    create(&pod(
        "web",
        &json!({"containers": [a, b], "volumes": volumes}),
    ))?;
    let said = || {
        let path = "/api/v1/namespaces/default/pods/web/log?container=b";
        Ok::<_, Box<dyn std::error::Error>>(request("GET", path, None)?.1)
    };
    wait("the reader", || Ok(said()?.contains("write")))?;
    let said = said()?;
    assert!(
        said.contains("hello\nfrom-a\n"),
        "not the host's files: {said}"
    );
    assert!(said.contains("write 1"), "{said}");
    // The host sees its own directory, and no mount of the pod.
    assert_eq!(fs::read_dir("/tmp/data")?.count(), 1);
    let mounts = fs::read_to_string("/proc/self/mounts")?;
    assert!(!mounts.contains("/tmp/data"), "{mounts}");
    delete("web", 0)?;

    let mut lost = sh("true");
    lost["volumeMounts"] = json!([{"name": "v", "mountPath": "/no/such/place"}]);
    let volumes = json!([{"name": "v", "emptyDir": {}}]);
    let spec = json!({"restartPolicy": "Never", "containers": [lost], "volumes": volumes});
    create(&pod("lost", &spec))?;
    wait("its end", || Ok(phase("lost")? == "Failed"))?;
    let end = container("lost", "c")?["state"]["terminated"].clone();
    let message = end["message"].as_str().unwrap_or("");
    assert!(message.contains("/no/such/place"), "{end}");
    assert!(message.contains("make that directory"), "{end}");
    delete("lost", 0)
}

fn a_volume_in_memory_is_bounded_and_leaves_nothing() -> Outcome {
    let daemon = Daemon::start()?;
    let script = "dd if=/dev/zero of=$ALLOTD_VOLUME_MEM/big bs=1M count=32; echo dd $?; sleep inf";
    let volumes = json!([{"name": "mem", "emptyDir": {"medium": "Memory", "sizeLimit": "8Mi"}}]);
    let mut container = sh(script);
    container["resources"] = json!({"limits": {"cpu": "500m", "memory": "64Mi"}});
    let made = create(&pod(
        "web",
        &json!({"containers": [container], "volumes": volumes}),
    ))?;
    wait("the end of dd", || Ok(log("web")?.contains("dd 1")))?;
    let said = log("web")?;
    assert!(said.contains("No space left on device"), "{said}");
    assert_eq!(usage("web")?["disk"]["volumes"]["mem"], 8 * MIB);
    // The container that wrote pays for it.
    let cgroup = super::daemon::cgroup_of(&made).join("c");
    let shmem = super::daemon::counter(&cgroup, "memory.stat", "shmem")?;
    assert!(shmem >= 8 * MIB, "{shmem}");
    daemon.kill()?;
    let _daemon = Daemon::start()?;
    assert_eq!(usage("web")?["disk"]["volumes"]["mem"], 8 * MIB);
    delete("web", 0)?;
    let mounts = fs::read_to_string("/proc/self/mounts")?;
    assert!(!mounts.contains(".volumes"), "{mounts}");
    Ok(())
}

/// A flood of output is kept to so many files of so many bytes, and counts as the container's.
fn a_flood_of_output_is_rotated() -> Outcome {
    counting_disk()?;
    let _daemon = Daemon::start_with("containerLogMaxSize: 256Ki\ncontainerLogMaxFiles: 3")?;
    let script =
        "yes 0123456789012345678901234567890123456789 | head -n 60000; echo last; sleep inf";
    create(&pod("web", &json!({"containers": [sh(script)]})))?;
    wait("the end of the flood", || {
        let path = "/api/v1/namespaces/default/pods/web/log?tailLines=1";
        Ok(request("GET", path, None)?.1 == "last\n")
    })?;
    let uid = read_pod("web")?["metadata"]["uid"].clone();
    let logs = format!("/tmp/logs/default_web_{}/c", uid.as_str().unwrap_or(""));
    let mut sizes = Vec::new();
    for entry in fs::read_dir(&logs)? {
        sizes.push(entry?.metadata()?.len());
    }
    assert_eq!(sizes.len(), 3, "{sizes:?}");
    // A file gets no more once it has enough; one write is at most 64 KiB and a record.
    assert!(sizes.iter().all(|size| *size < 340 << 10), "{sizes:?}");
    let used = usage("web")?;
    let told = used["containers"][0]["logBytes"].as_u64().unwrap_or(0);
    let sum: u64 = sizes.iter().sum();
    assert!((sum..sum + (64 << 10)).contains(&told), "{sum} {used}");
    // What is kept can be read across its files.
    let lines = log("web")?.lines().count();
    assert!(lines > 6000, "{lines} lines");
    delete("web", 0)
}

/// All directories with a project, and what that uses.
fn projects(root: &str) -> Anything<Vec<(PathBuf, u32, ProjectUse)>> {
    let mut found = Vec::new();
    let mut open = vec![PathBuf::from(root)];
    while let Some(path) = open.pop() {
        let directory = fs::File::open(&path)?;
        let project = allotd::sys::project::project(&directory)?;
        if project > 0 {
            found.push((path.clone(), project, project_use(&directory, project)?));
        }
        for entry in fs::read_dir(&path)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                open.push(entry.path());
            }
        }
    }
    Ok(found)
}

/// Report kubernetes#140938: ids that leak, are given twice or do not survive a restart.
fn projects_survive_a_crash_and_end_with_the_pod() -> Outcome {
    counting_disk()?;
    let container = limited("sleep inf", "8Mi");
    let volumes = json!([{"name": "v", "emptyDir": {"sizeLimit": "4Mi"}}]);
    let mut web = pod(
        "web",
        &json!({"containers": [container], "volumes": volumes}),
    );
    web["metadata"]["annotations"] = json!({"allotd.dev/storage-policy": "enforce"});
    Daemon::start()?.stop()?;
    for (round, point) in ["StoreCommitted", "CgroupsCreated", "ProcessStarted"]
        .into_iter()
        .enumerate()
    {
        let daemon = Daemon::start_to_crash_at(point)?;
        Daemon::wait_until_it_answers()?;
        let body = web.to_string();
        let _ = request("POST", "/api/v1/namespaces/default/pods", Some(&body));
        daemon.wait_for_crash()?;
        let daemon = Daemon::start()?;
        running_pid("web", "c")?;
        let before = projects("/tmp/state/pods")?;
        let of = |name: &str| {
            let mut own = before.iter().filter(|(path, ..)| path.ends_with(name));
            own.next().map(|(_, id, used)| (*id, used.limit))
        };
        let (own, volume) = (of("c/scratch"), of(".volumes/v"));
        assert_eq!(
            own.map(|(_, limit)| limit),
            Some(8 * MIB),
            "{point}: {before:?}"
        );
        assert_eq!(volume.map(|(_, limit)| limit), Some(4 * MIB), "{before:?}");
        let mut ids: Vec<_> = before.iter().map(|(_, id, _)| *id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 3, "pod, container, volume: {before:?}");
        daemon.kill()?;
        let daemon = Daemon::start()?;
        running_pid("web", "c")?;
        let again = projects("/tmp/state/pods")?;
        let pairs = |all: &[(PathBuf, u32, ProjectUse)]| -> Vec<(PathBuf, u32)> {
            all.iter()
                .map(|(path, id, _)| (path.clone(), *id))
                .collect()
        };
        assert_eq!(pairs(&again), pairs(&before), "round {round}");
        delete("web", 0)?;
        let disk = fs::File::open("/tmp")?;
        for id in ids {
            assert_eq!(project_use(&disk, id)?, ProjectUse::default(), "{id}");
        }
        assert!(projects("/tmp/state")?.is_empty());
        daemon.stop()?;
    }
    assert!(
        !Path::new("/tmp/state/pods").exists() || fs::read_dir("/tmp/state/pods")?.count() == 0
    );
    Ok(())
}

/// On tmpfs, which does not count by project: the walk, and what processes hold open.
fn without_quotas_walks_find_what_is_deleted_and_open() -> Outcome {
    let _daemon = Daemon::start()?;
    let script = "sleep 2; dd if=/dev/zero of=big bs=1M count=16 2>/dev/null; exec 3<big; rm big; \
                  sleep inf";
    let mut unlimited = sh("sleep inf");
    unlimited["name"] = json!("other");
    let containers = json!([limited(script, "8Mi"), unlimited]);
    let mut web = pod("web", &json!({"containers": containers}));
    web["metadata"]["annotations"] = json!({"allotd.dev/storage-policy": "enforce"});
    create(&web)?;
    assert_eq!(events("StorageNotEnforced")?.len(), 1);
    running_pid("web", "c")?;
    wait("the eviction", || Ok(phase("web")? == "Failed"))?;
    let status = read_pod("web")?["status"].clone();
    let told = status["message"].as_str().unwrap_or("");
    let expected = "Container c exceeded its local ephemeral storage limit \"8Mi\". ";
    assert!(told.starts_with(expected), "{told}");
    assert!(
        told.contains("16777216 of them in deleted files that are open"),
        "{told}"
    );
    Ok(())
}
