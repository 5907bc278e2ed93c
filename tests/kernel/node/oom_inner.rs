//! OOM kills in cgroups that a container made below its own: they are the container's.

use serde_json::{Value, json};

use super::daemon::{
    Anything, Daemon, cgroup_of, container, create, events, pod, request, running_pid, wait,
};
use super::oom::kills;
use crate::Outcome;

tests![
    a_kill_for_an_inner_limit_is_the_containers,
    a_group_kill_takes_what_lies_below,
];

/// Only root can make cgroups below its own.
const ROOT: &str = "allowRootContainers: true";

/// Two cgroups below the container's, which then has no processes itself; `inner` has a limit.
fn splits(limit: &str) -> String {
    format!(
        "own=/sys/fs/cgroup$(cut -c4- /proc/self/cgroup); mkdir $own/main $own/inner; \
         echo 0 >$own/main/cgroup.procs; echo +memory >$own/cgroup.subtree_control; \
         echo {limit} >$own/inner/memory.max; \
         sh -c \"echo 0 >$own/inner/cgroup.procs; exec /init play eat 200\"; echo ate $?; sleep inf"
    )
}

fn one(limit: &str) -> Value {
    json!({"restartPolicy": "Never", "containers": [{
        "name": "c", "image": "i", "command": ["sh", "-c", splits(limit)],
        "resources": {"limits": {"cpu": "500m", "memory": "96Mi"}},
    }]})
}

fn oom_events(name: &str) -> Anything<String> {
    let (_, text) = request("GET", "/metrics", None)?;
    let series = format!(
        "container_oom_events_total{{namespace=\"default\",pod=\"{name}\",container=\"c\"}} "
    );
    let value = text.lines().find_map(|line| line.strip_prefix(&series));
    Ok(value.unwrap_or("absent").to_owned())
}

fn a_kill_for_an_inner_limit_is_the_containers() -> Outcome {
    let _daemon = Daemon::start_with(ROOT)?;
    let made = create(&pod("nested", &one("33554432")))?;
    let pid = running_pid("nested", "c")?;
    let kill = kills("nested", 1)?.remove(0);
    assert_eq!(
        (&kill["container"], &kill["group"], &kill["limit"]["level"]),
        (&json!("c"), &json!(false), &json!("inner")),
        "{kill}"
    );
    assert_eq!(kill["limit"]["limitBytes"], 32 << 20, "{kill}");
    let inner = cgroup_of(&made).join("c/inner");
    let named = kill["limit"]["cgroup"].as_str().unwrap_or("none");
    assert!(
        inner.ends_with(named) && named.ends_with("/c/inner"),
        "{kill}"
    );
    assert_eq!(kill["log"]["name"], "init", "{kill}");
    // The main process outlives it, and that is told once it is known.
    wait("the event", || {
        Ok(!events("ContainerChildOOMKilled")?.is_empty())
    })?;
    assert_eq!(kills("nested", 1)?.remove(0)["main"], false);
    let told = events("OOMKilling")?;
    assert_eq!(told.len(), 1, "{told:?}");
    let expected = "OOM killer took 1 process of container c: memory.max of a cgroup that the \
                    container made itself was hit";
    assert!(told[0].0.starts_with(expected), "{told:?}");
    assert_eq!(running_pid("nested", "c")?, pid);
    assert_eq!(container("nested", "c")?["restartCount"], 0);
    assert_eq!(oom_events("nested")?, "1");
    let table = super::command_line::done("oom nested")?;
    assert!(table.contains("inner 32Mi"), "{table}");
    Ok(())
}

fn a_group_kill_takes_what_lies_below() -> Outcome {
    let _daemon = Daemon::start_with(ROOT)?;
    create(&pod("nested", &one("max")))?;
    let kills = kills("nested", 2)?;
    for kill in &kills {
        assert_eq!(
            (&kill["group"], &kill["limit"]["level"]),
            (&json!(true), &json!("container")),
            "{kill}"
        );
    }
    let lost = kills
        .iter()
        .filter_map(|kill| kill["log"]["taskMemcg"].as_str());
    assert!(
        lost.clone().any(|path| path.ends_with("/c/inner")),
        "{kills:?}"
    );
    wait("the end", || {
        Ok(container("nested", "c")?["state"]["terminated"]["reason"] == "OOMKilled")
    })?;
    assert_eq!(oom_events("nested")?, "2");
    Ok(())
}
