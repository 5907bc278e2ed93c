//! Taking a directory as the top cgroup.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use allotd::cgroup::{CgroupPath, Cgroupfs, Controller, ControllerSet, ErrorKind, Hierarchy, Op};
use allotd::units::{HugePageSize, PageSize};
use nix::mount::{MsFlags, mount, umount};

use super::top::{MOUNT, Top, ours, path, refused, set};
use crate::Outcome;
use crate::player::{Ending, Player};
use crate::support::read;

tests![
    a_tighter_bound_above_is_told,
    makes_the_top_and_hands_down_controllers,
    works_on_any_cgroup2_mount,
    refuses_symlinks_and_other_file_systems,
    names_the_process_that_keeps_controllers_away,
    one_missing_controller_does_not_stop_the_others,
    what_is_a_service_managers_is_never_written,
];

fn makes_the_top_and_hands_down_controllers() -> Outcome {
    let mut top = Top::new("outer.slice/inner.service")?;
    assert_eq!(top.kernel.controllers()?, ControllerSet::all());
    assert!(
        top.kernel.refused().is_empty(),
        "{:?}",
        top.kernel.refused()
    );
    for above in ["", "outer.slice"] {
        let enabled = read(Path::new(MOUNT).join(above).join("cgroup.subtree_control"))?;
        let enabled = ControllerSet::parse(&enabled);
        assert_eq!(enabled, ControllerSet::all(), "{above}");
    }
    assert_eq!(top.text("cgroup.subtree_control")?, "");
    assert_eq!(top.kernel.page_size(), PageSize::FOUR_KIB);
    let sizes = top.kernel.huge_page_sizes();
    assert!(sizes.contains(&HugePageSize::TWO_MIB), "{sizes:?}");
    for size in sizes {
        assert_eq!(top.text(&format!("hugetlb.{size}.max"))?, "max");
    }
    // A second time it is all there.
    let again = Top::at(&top.directory)?;
    assert!(again.kernel.refused().is_empty());
    Ok(())
}

fn works_on_any_cgroup2_mount() -> Outcome {
    let point = Path::new("/tmp/elsewhere");
    fs::create_dir(point)?;
    mount_at(point, "cgroup2")?;
    let mut top = Top::at(&point.join("outer/top"))?;
    assert_eq!(top.kernel.controllers()?, ControllerSet::all());
    let mut process = Player::waits()?;
    top.perform(&Op::Create(path("pod1")))?;
    top.perform(&Op::Attach(path("pod1"), process.pid()))?;
    assert_eq!(process.cgroup()?, "/outer/top/pod1");
    top.perform(&Op::Kill(path("pod1")))?;
    assert_eq!(process.ending()?, Ending::KILLED);
    drop(top);
    umount(point)?;
    Ok(())
}

fn mount_at(point: &Path, kind: &str) -> nix::Result<()> {
    mount(
        Some(kind),
        point,
        Some(kind),
        MsFlags::empty(),
        None::<&str>,
    )
}

fn refuses_symlinks_and_other_file_systems() -> Outcome {
    let link = Path::new("/tmp/link");
    symlink(MOUNT, link)?;
    // A mount below a symbolic link: the kernel lists it by its true path.
    fs::create_dir_all("/tmp/true/mount")?;
    mount_at(Path::new("/tmp/true/mount"), "cgroup2")?;
    symlink("/tmp/true", "/tmp/way")?;
    for (top, why) in [
        (link.join("top"), "not on cgroup2"),
        ("/tmp/way/mount/top".into(), "not on cgroup2"),
        ("/tmp/top".into(), "not on cgroup2"),
        (MOUNT.into(), "root of the mount"),
        (Path::new(MOUNT).join("../top"), "climbs"),
    ] {
        let text = refused(
            Cgroupfs::open(&top, &ControllerSet::all(), ours),
            ErrorKind::Unsupported,
        )?;
        assert!(text.contains(why), "{text}");
    }
    assert!(!Path::new(MOUNT).join("top").exists());
    umount("/tmp/true/mount")?;
    Ok(())
}

/// systemd/systemd#26311: "device or resource busy", and nobody said who was in the way.
fn names_the_process_that_keeps_controllers_away() -> Outcome {
    let outer = Path::new(MOUNT).join("outer");
    fs::create_dir(&outer)?;
    let process = Player::waits()?;
    let pid = process.pid();
    fs::write(outer.join("cgroup.procs"), pid.to_string())?;

    let mut top = Top::at(&outer.join("top"))?;
    assert!(top.kernel.controllers()?.is_empty());
    let refused: Vec<_> = top
        .kernel
        .refused()
        .iter()
        .map(|r| (r.kind, r.to_string()))
        .collect();
    let text = format!(
        "cannot enable cpu memory pids hugetlb cpuset in /sys/fs/cgroup/outer: process {pid} is in it, and \
         a cgroup with processes cannot give controllers to others"
    );
    assert_eq!(refused, [(ErrorKind::Busy, text)]);
    // The trap: cpu and pids alone would have been taken, and the cgroup made threaded.
    assert_eq!(read(outer.join("cgroup.type"))?, "domain");

    drop(process);
    let mut top = Top::at(&outer.join("top"))?;
    assert_eq!(top.kernel.controllers()?, ControllerSet::all());
    Ok(())
}

fn one_missing_controller_does_not_stop_the_others() -> Outcome {
    let mut top = Top::new("top")?;
    let some = set(&[Controller::Cpu, Controller::Memory]);
    top.perform(&Op::Enable(CgroupPath::top(), some.clone()))?;
    top.perform(&Op::Create(path("pod1")))?;
    let all = Op::Enable(path("pod1"), ControllerSet::all());
    assert_eq!(
        top.refused(&all, ErrorKind::Unsupported)?,
        "cannot enable pids hugetlb cpuset in /sys/fs/cgroup/top/pod1: controller pids hugetlb cpuset is not \
         enabled in /sys/fs/cgroup/top/cgroup.subtree_control"
    );
    assert_eq!(top.node(&path("pod1"))?.enabled, some);
    Ok(())
}

/// Somebody gives the slice of all pods a limit: `systemctl set-property allot.slice MemoryMax=64M`.
fn a_tighter_bound_above_is_told() -> Outcome {
    let outer = Path::new(MOUNT).join("outer");
    let top = Top::at(&outer.join("top"))?;
    let told = || {
        let told = top.kernel.remarks();
        told.into_iter().filter(|told| told.contains("all pods"))
    };
    assert_eq!(told().count(), 0);
    fs::write(outer.join("top/memory.max"), "128M")?;
    fs::write(outer.join("top/cpu.max"), "50000 100000")?;
    for (file, tighter, wider) in [
        ("memory.max", "64M", "128M"),
        ("memory.high", "64M", "max"),
        ("pids.max", "100", "max"),
        ("cpu.max", "40000 100000", "5000 10000"),
    ] {
        let before = read(outer.join(file))?;
        fs::write(outer.join(file), wider)?;
        assert_eq!(told().count(), 0, "{file} {wider}");
        fs::write(outer.join(file), tighter)?;
        let all: Vec<_> = told().collect();
        let now = read(outer.join(file))?;
        let expected = format!(
            "{}/{file} is {now}: all pods together get no more, though {}/top gives them {}",
            outer.display(),
            outer.display(),
            read(outer.join("top").join(file))?
        );
        assert_eq!(all, [expected]);
        fs::write(outer.join(file), before)?;
    }
    Ok(())
}

/// systemd marks the cgroups that it hands over; those above are its own.
fn what_is_a_service_managers_is_never_written() -> Outcome {
    let slice = Path::new(MOUNT).join("managed.slice");
    let service = slice.join("managed.service");
    fs::create_dir_all(&service)?;
    let enabled = |dir: &Path| read(dir.join("cgroup.subtree_control"));
    fs::write(
        Path::new(MOUNT).join("cgroup.subtree_control"),
        "+cpu +memory",
    )?;
    fs::write(slice.join("cgroup.subtree_control"), "+memory")?;
    for mark in ["user.delegate", "trusted.delegate"] {
        rustix::fs::setxattr(&service, mark, b"1", rustix::fs::XattrFlags::empty())?;
        let before = [enabled(Path::new(MOUNT))?, enabled(&slice)?];
        let mut top = Top::at(&service.join("pods"))?;
        assert_eq!([enabled(Path::new(MOUNT))?, enabled(&slice)?], before);
        assert_eq!(top.kernel.controllers()?, set(&[Controller::Memory]));
        let refused: Vec<_> = top
            .kernel
            .refused()
            .iter()
            .map(ToString::to_string)
            .collect();
        assert!(
            refused.iter().any(|text| text.contains(
                "managed.slice: it belongs to the service manager, which handed over \
                 /sys/fs/cgroup/managed.slice/managed.service without cpu"
            )),
            "{refused:?}"
        );
        fs::remove_dir(service.join("pods"))?;
        fs::write(service.join("cgroup.subtree_control"), "-memory")?;
        rustix::fs::removexattr(&service, mark)?;
    }
    // Without a mark all of it is ours.
    let mut top = Top::at(&service.join("pods"))?;
    assert_eq!(top.kernel.controllers()?, ControllerSet::all());
    let io = |text: String| text.split(' ').any(|name| name == "io");
    assert!(io(enabled(Path::new(MOUNT))?) && io(enabled(&slice)?));
    Ok(())
}
