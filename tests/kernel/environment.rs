//! The machine the other tests stand on, and the kernel's rules they take for granted.

use crate::Outcome;
use crate::support::{Cgroup, errno, read};
use nix::errno::Errno;
use nix::mount::{MsFlags, mount, umount};
use std::process::{Command, id};

tests![
    controllers_can_be_enabled,
    memory_max_is_floored_to_a_page,
    cpu_max_below_a_millisecond_is_invalid,
    huge_pages_are_reserved,
    inner_cgroup_with_controllers_takes_no_process,
    pressure_is_reported,
    second_disk_has_project_quota,
    programs_start,
];

fn controllers_can_be_enabled() -> Outcome {
    let controllers = ["cpu", "memory", "pids", "hugetlb"];
    let root = Cgroup::root();
    let available = root.read("cgroup.controllers")?;
    for controller in controllers {
        assert!(
            available.split(' ').any(|name| name == controller),
            "{controller} is not in: {available}"
        );
    }
    assert_eq!(
        root.read("cgroup.subtree_control")?,
        "",
        "every controller is off at first"
    );
    root.enable(&controllers)?;
    let child = root.child("test")?;
    for file in [
        "cpu.max",
        "memory.max",
        "pids.max",
        "hugetlb.2MB.max",
        "hugetlb.2MB.rsvd.max",
    ] {
        let content = child.read(file)?;
        assert!(content.starts_with("max"), "{file}: {content}");
    }
    Ok(())
}

fn memory_max_is_floored_to_a_page() -> Outcome {
    Cgroup::root().enable(&["memory"])?;
    let cgroup = Cgroup::root().child("test")?;
    cgroup.write("memory.max", "4097")?;
    assert_eq!(cgroup.read("memory.max")?, "4096");
    Ok(())
}

fn cpu_max_below_a_millisecond_is_invalid() -> Outcome {
    Cgroup::root().enable(&["cpu"])?;
    let cgroup = Cgroup::root().child("test")?;
    assert_eq!(
        errno(cgroup.write("cpu.max", "999 100000")),
        Err(Errno::EINVAL)
    );
    assert_eq!(cgroup.read("cpu.max")?, "max 100000");
    assert_eq!(errno(cgroup.write("cpu.max", "1000 100000")), Ok(()));
    assert_eq!(cgroup.read("cpu.max")?, "1000 100000");
    Ok(())
}

fn huge_pages_are_reserved() -> Outcome {
    let pages = "/sys/kernel/mm/hugepages/hugepages-2048kB";
    assert_eq!(read(format!("{pages}/nr_hugepages"))?, "64");
    assert_eq!(read(format!("{pages}/free_hugepages"))?, "64");
    Ok(())
}

fn inner_cgroup_with_controllers_takes_no_process() -> Outcome {
    Cgroup::root().enable(&["memory"])?;
    let inner = Cgroup::root().child("test")?;
    inner.enable(&["memory"])?;
    let leaf = inner.child("leaf")?;
    let pid = id().to_string();
    assert_eq!(errno(inner.write("cgroup.procs", &pid)), Err(Errno::EBUSY));
    assert_eq!(errno(leaf.write("cgroup.procs", &pid)), Ok(()));
    assert_eq!(leaf.read("cgroup.procs")?, pid);
    Ok(())
}

fn pressure_is_reported() -> Outcome {
    let cgroup = Cgroup::root().child("test")?;
    for resource in ["cpu", "io", "memory"] {
        let machine = read(format!("/proc/pressure/{resource}"))?;
        assert!(machine.starts_with("some avg10="), "{resource}: {machine}");
        let group = cgroup.read(&format!("{resource}.pressure"))?;
        assert!(group.starts_with("some avg10="), "{resource}: {group}");
    }
    Ok(())
}

/// The quota format is a module, so this shows as well that the kernel can load one.
fn second_disk_has_project_quota() -> Outcome {
    mount(
        Some("/dev/ext4"),
        "/tmp",
        Some("ext4"),
        MsFlags::empty(),
        Some("prjquota"),
    )?;
    let mounts = read("/proc/self/mounts")?;
    let on = mounts
        .lines()
        .any(|line| line.starts_with("/dev/ext4 /tmp ext4 ") && line.contains("prjquota"));
    assert!(on, "{mounts}");
    umount("/tmp")?;
    Ok(())
}

fn programs_start() -> Outcome {
    for program in ["allotd", "allot"] {
        let output = Command::new(program).arg("--version").output()?;
        assert!(output.status.success(), "{program}: {output:?}");
    }
    let output = Command::new("sh")
        .args(["-c", "dd if=/dev/zero bs=4096 count=1 2>/dev/null | wc -c"])
        .output()?;
    assert_eq!(output.stdout, b"4096\n", "{output:?}");
    Ok(())
}
