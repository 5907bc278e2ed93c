//! Containers that are not root, or root with less than all: what their programs see of themselves.
//!
//! All of it needs root; as another user there is nothing to give up.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use allotd::model::security::Security;
use allotd::runtime::{ContainerSpec, Held, MountSpec, VolumeSpec};

use crate::support::{Node, attempt, container};

/// A node whose directories others may pass through, as those of a machine are.
fn node() -> Option<Node> {
    let node = Node::new();
    if !nix::unistd::geteuid().is_root() {
        return None;
    }
    let open = fs::Permissions::from_mode(0o755);
    fs::set_permissions(node.temp.path(), open).unwrap();
    Some(node)
}

fn spec(script: &str, security: Security) -> ContainerSpec {
    ContainerSpec {
        security,
        ..Node::spec(&[script])
    }
}

/// What a script prints, and that it ends well.
fn says(node: &Node, spec: &ContainerSpec) -> Vec<String> {
    node.start(spec);
    let exit = node.exit(&attempt());
    assert_eq!(exit.exit_code, 0, "{exit:?} {:?}", node.log());
    node.log()
}

#[test]
fn a_user_is_that_user_and_owns_its_directory() {
    let Some(node) = node() else { return };
    let security = Security {
        user: Some(12_345),
        group: Some(54_321),
        groups: vec![7, 9],
        ..Security::default()
    };
    let script = "id -u; id -g; id -G; grep -h CapEff /proc/self/status; \
                  echo text > $HOME/file && cat $HOME/file; pwd | grep -c scratch; \
                  cat $HOME/../0/spec.json 2>/dev/null || echo hidden; ls $HOME/../../.. | wc -l";
    let told = says(&node, &spec(script, security));
    assert_eq!(
        told,
        [
            "out: 12345",
            "out: 54321",
            "out: 54321 7 9",
            "out: CapEff:\t0000000000000000",
            "out: text",
            "out: 1",
            "out: hidden",
            "out: 1",
        ]
    );
    let file = fs::metadata(node.scratch().join("file")).unwrap();
    assert_eq!((file.uid(), file.gid()), (12_345, 54_321));
}

#[test]
fn what_is_dropped_is_gone_for_root_and_its_children() {
    let Some(node) = node() else { return };
    let security = Security {
        // All but CAP_CHOWN.
        dropped: !1,
        no_new_privileges: true,
        ..Security::default()
    };
    let script = "sh -c 'grep -h -e CapEff -e CapBnd -e NoNewPrivs /proc/self/status'; id -u; \
                  touch f && chown 5 f && echo may; kill -0 1 2>/dev/null; echo $?";
    let told = says(&node, &spec(script, security));
    assert_eq!(
        told[..5],
        [
            "out: CapEff:\t0000000000000001",
            "out: CapBnd:\t0000000000000001",
            "out: NoNewPrivs:\t1",
            "out: 0",
            "out: may",
        ]
    );
}

#[test]
fn a_user_has_what_it_asks_for_and_nothing_more_in_all_that_it_starts() {
    let Some(node) = node() else { return };
    let (bind, chown) = (1 << 10, 1);
    let security = Security {
        user: Some(12_345),
        // What is dropped by its name is not had, whoever asks for it.
        dropped: chown,
        added: bind | chown,
        no_new_privileges: true,
        ..Security::default()
    };
    let script = "sh -c 'grep -h -e CapPrm -e CapEff -e CapAmb /proc/self/status'; \
                  touch f && chown 5 f 2>/dev/null || echo may not";
    let told = says(&node, &spec(script, security));
    let has = |set: &str| format!("out: {set}:\t0000000000000400");
    let expected = [
        has("CapPrm"),
        has("CapEff"),
        has("CapAmb"),
        "out: may not".to_owned(),
    ];
    assert_eq!(told, expected);
}

#[test]
fn a_user_can_open_its_output_and_has_no_bound_on_tasks_but_its_cgroups() {
    let Some(node) = node() else { return };
    let security = Security {
        user: Some(12_345),
        ..Security::default()
    };
    let script = "echo one > /dev/stdout; echo two > /dev/stderr; \
                  grep 'Max processes' /proc/self/limits | tr -s ' '";
    let mut told = says(&node, &spec(script, security));
    told.sort();
    assert_eq!(
        (told[0].as_str(), told[2].as_str()),
        ("err: two", "out: one")
    );
    // Only whoever may lift it does.
    let own = fs::read_to_string("/proc/self/status").unwrap();
    let own = own.lines().find_map(|line| line.strip_prefix("CapEff:\t"));
    let sys_resource = u64::from_str_radix(own.unwrap(), 16).unwrap() >> 24 & 1;
    if sys_resource == 1 {
        let expected = "out: Max processes unlimited unlimited processes";
        assert_eq!(told[1].trim_end(), expected);
    }
}

#[test]
fn a_read_only_root_leaves_its_own_directories() {
    let Some(node) = node() else { return };
    let outside = node.temp.path().join("outside");
    let place = node.temp.path().join("place");
    fs::create_dir_all(&outside).unwrap();
    fs::create_dir_all(&place).unwrap();
    let security = Security {
        has_read_only_root: true,
        ..Security::default()
    };
    let script = format!(
        "for d in / /usr /tmp {0} $HOME $ALLOTD_VOLUME_DATA {1} $HOME/..; do \
           touch $d/allotd-probe 2>/dev/null && echo yes || echo no; done; \
         echo 5 > /proc/self/oom_score_adj && echo kernel; : > /dev/null && echo device",
        outside.display(),
        place.display()
    );
    let mut spec = spec(&script, security);
    spec.volumes = vec![VolumeSpec {
        name: "data".to_owned(),
        held: Held::OnDisk,
        group: Some(77),
    }];
    spec.mounts = vec![MountSpec {
        volume: "data".to_owned(),
        path: place.clone(),
        read_only: false,
    }];
    let told = says(&node, &spec);
    let told: Vec<_> = told
        .iter()
        .map(|line| line.trim_start_matches("out: "))
        .collect();
    assert_eq!(
        told,
        [
            "no", "no", "no", "no", "yes", "yes", "yes", "no", "kernel", "device"
        ]
    );
    // Nothing of it is seen here: neither what is mounted nor what is protected.
    fs::write(outside.join("file"), "x").unwrap();
    assert_eq!(fs::read_dir(&place).unwrap().count(), 0);
    let volume = node.runtime.pod_dir(&container()).join(".volumes/data");
    let seen = fs::metadata(&volume).unwrap();
    assert_eq!((seen.gid(), seen.mode() & 0o7777), (77, 0o2777));
    let file = fs::metadata(volume.join("allotd-probe")).unwrap();
    assert_eq!(file.gid(), 77);
}

#[test]
fn a_user_who_may_not_run_the_program_is_told_so() {
    let Some(node) = node() else { return };
    let program = node.temp.path().join("program");
    fs::write(&program, "#!/bin/sh\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
    let security = Security {
        user: Some(12_345),
        ..Security::default()
    };
    let spec = ContainerSpec {
        security,
        ..Node::spec(&[program.to_str().unwrap(), ""])
    };
    node.start(&spec);
    let exit = node.exit(&attempt());
    assert_eq!(exit.exit_code, 126);
    assert!(exit.message.contains("ermission denied"), "{exit:?}");
}
