//! Creating, enabling, attaching, killing and removing.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use allotd::cgroup::{
    CgroupPath, Controller, ControllerSet, ErrorKind, Hierarchy, InterfaceFile, Op, Pid, Setting,
};

use super::top::{Top, path, patiently, refused, set};
use crate::Outcome;
use crate::player::{Ending, Player};

tests![
    every_operation_on_nothing_says_gone,
    creating_twice_and_removing_twice_is_fine,
    attach_moves_a_process,
    kill_takes_all_below,
    a_populated_cgroup_is_busy,
    enabling_never_makes_a_cgroup_threaded,
    attaching_never_makes_a_cgroup_threaded,
    remove_takes_foreign_cgroups_of_any_depth_and_name,
    remove_goes_on_past_a_busy_cgroup,
    the_top_is_neither_killed_nor_removed,
];

fn every_operation_on_nothing_says_gone() -> Outcome {
    let mut top = Top::new("top")?;
    let nothing = path("pod1/app");
    for op in [
        Op::Create(nothing.clone()),
        Op::Enable(nothing.clone(), ControllerSet::all()),
        Op::Write(nothing.clone(), Setting::initial(InterfaceFile::MemoryMax)),
        Op::Attach(nothing.clone(), Pid(1)),
        Op::Kill(nothing.clone()),
    ] {
        top.refused(&op, ErrorKind::Gone)?;
    }
    top.perform(&Op::Remove(nothing.clone()))?;
    let kernel = &mut top.kernel;
    assert_eq!(kernel.look(&nothing)?, None);
    refused(kernel.found(&nothing), ErrorKind::Gone)?;
    refused(kernel.counters(&nothing), ErrorKind::Gone)?;
    refused(kernel.processes(&nothing), ErrorKind::Gone)?;
    Ok(())
}

fn creating_twice_and_removing_twice_is_fine() -> Outcome {
    let mut top = Top::new("top")?;
    let pod = path("pod1");
    for _ in 0..2 {
        top.perform(&Op::Create(pod.clone()))?;
        assert!(top.dir("pod1").is_dir());
    }
    for _ in 0..2 {
        top.perform(&Op::Remove(pod.clone()))?;
        assert!(!top.dir("pod1").exists());
    }
    Ok(())
}

fn attach_moves_a_process() -> Outcome {
    let mut top = Top::with_container("top")?;
    let process = Player::waits()?;
    let attach = Op::Attach(path("pod1/app"), process.pid());
    for _ in 0..2 {
        top.perform(&attach)?;
        assert_eq!(process.cgroup()?, "/top/pod1/app");
    }
    assert_eq!(top.kernel.processes(&path("pod1/app"))?, [process.pid()]);
    assert_eq!(top.kernel.processes(&path("pod1"))?, []);

    // An inner cgroup with controllers takes no process.
    let inner = Op::Attach(path("pod1"), process.pid());
    top.refused(&inner, ErrorKind::Busy)?;
    assert_eq!(process.cgroup()?, "/top/pod1/app");

    let mut ended = Player::eats(0)?;
    let pid = ended.pid();
    ended.go();
    ended.ending()?;
    let own = std::fs::read_to_string("/proc/self/cgroup")?;
    for (pid, kind) in [
        (pid, ErrorKind::Gone),
        (Pid(0), ErrorKind::Invalid),
        (Pid(-1), ErrorKind::Invalid),
    ] {
        top.refused(&Op::Attach(path("pod1/app"), pid), kind)?;
    }
    assert_eq!(std::fs::read_to_string("/proc/self/cgroup")?, own);
    Ok(())
}

fn kill_takes_all_below() -> Outcome {
    let mut top = Top::with_container("top")?;
    std::fs::create_dir(top.dir("pod1/app/foreign"))?;
    let (mut own, mut foreign) = (Player::waits()?, Player::waits()?);
    top.perform(&Op::Attach(path("pod1/app"), own.pid()))?;
    let pid = foreign.pid().to_string();
    std::fs::write(top.dir("pod1/app/foreign/cgroup.procs"), pid)?;
    assert_eq!(top.kernel.counters(&path("pod1"))?.populated, Some(true));

    top.perform(&Op::Kill(path("pod1")))?;
    assert_eq!(own.ending()?, Ending::KILLED);
    assert_eq!(foreign.ending()?, Ending::KILLED);
    assert_eq!(top.kernel.counters(&path("pod1"))?.populated, Some(false));
    top.perform(&Op::Remove(path("pod1")))?;
    assert!(!top.dir("pod1").exists());
    Ok(())
}

fn a_populated_cgroup_is_busy() -> Outcome {
    let mut top = Top::with_container("top")?;
    let process = Player::waits()?;
    let pid = process.pid();
    top.perform(&Op::Attach(path("pod1/app"), pid))?;
    top.refused(&Op::Remove(path("pod1/app")), ErrorKind::Busy)?;
    top.refused(&Op::Remove(path("pod1")), ErrorKind::Busy)?;
    let enable = Op::Enable(path("pod1/app"), ControllerSet::all());
    let text = top.refused(&enable, ErrorKind::Busy)?;
    assert!(text.contains(&format!("process {pid} is in it")), "{text}");
    drop(process);
    patiently(|| top.perform(&Op::Remove(path("pod1"))))?;
    Ok(())
}

fn enabling_never_makes_a_cgroup_threaded() -> Outcome {
    let mut top = Top::with_container("top")?;
    let process = Player::waits()?;
    let app = path("pod1/app");
    top.perform(&Op::Attach(app.clone(), process.pid()))?;
    for controllers in [
        set(&[Controller::Cpu]),
        set(&[Controller::Cpu, Controller::Pids]),
    ] {
        let op = Op::Enable(app.clone(), controllers);
        top.refused(&op, ErrorKind::Busy)?;
        assert_eq!(top.text("pod1/app/cgroup.type")?, "domain");
    }
    Ok(())
}

fn attaching_never_makes_a_cgroup_threaded() -> Outcome {
    let mut top = Top::new("top")?;
    let cpu = set(&[Controller::Cpu]);
    top.perform(&Op::Enable(CgroupPath::top(), cpu.clone()))?;
    top.perform(&Op::Create(path("pod1")))?;
    top.perform(&Op::Enable(path("pod1"), cpu))?;
    top.perform(&Op::Create(path("pod1/app")))?;
    let process = Player::waits()?;
    let attach = Op::Attach(path("pod1"), process.pid());
    top.refused(&attach, ErrorKind::Busy)?;
    assert_eq!(top.text("pod1/cgroup.type")?, "domain");
    assert_eq!(top.text("pod1/app/cgroup.type")?, "domain");
    Ok(())
}

fn remove_takes_foreign_cgroups_of_any_depth_and_name() -> Outcome {
    let mut top = Top::with_container("top")?;
    let app = top.dir("pod1/app");
    // Deeper than any path may be long (PATH_MAX is 4096), so it is made step by step.
    let mut here = rustix::fs::open(&app, DIRECTORY, rustix::fs::Mode::empty())?;
    let long = "x".repeat(200);
    for _ in 0..40 {
        rustix::fs::mkdirat(&here, &long, rustix::fs::Mode::from_raw_mode(0o755))?;
        here = rustix::fs::openat(&here, &long, DIRECTORY, rustix::fs::Mode::empty())?;
    }
    drop(here);
    for name in [
        b"a b".as_slice(),
        b"\xff\xfe",
        b"...",
        b"-rf",
        b"memory.maximum",
    ] {
        let wide = app.join(OsStr::from_bytes(name));
        std::fs::create_dir(&wide)?;
        for child in 0..5 {
            std::fs::create_dir(wide.join(child.to_string()))?;
        }
    }
    let before = open_descriptors()?;
    top.perform(&Op::Remove(path("pod1")))?;
    assert!(!top.dir("pod1").exists());
    assert_eq!(open_descriptors()?, before);
    Ok(())
}

const DIRECTORY: rustix::fs::OFlags =
    rustix::fs::OFlags::DIRECTORY.union(rustix::fs::OFlags::CLOEXEC);

fn open_descriptors() -> std::io::Result<usize> {
    Ok(std::fs::read_dir("/proc/self/fd")?.count())
}

fn remove_goes_on_past_a_busy_cgroup() -> Outcome {
    let mut top = Top::with_container("top")?;
    for name in ["a", "b", "b/deep", "c"] {
        std::fs::create_dir(top.dir("pod1/app").join(name))?;
    }
    let process = Player::waits()?;
    let pid = process.pid().to_string();
    std::fs::write(top.dir("pod1/app/b/deep/cgroup.procs"), pid)?;
    top.refused(&Op::Remove(path("pod1")), ErrorKind::Busy)?;
    let left = |name: &str| top.dir("pod1/app").join(name).exists();
    assert_eq!(
        ["a", "b", "b/deep", "c"].map(left),
        [false, true, true, false]
    );
    drop(process);
    patiently(|| top.perform(&Op::Remove(path("pod1"))))?;
    assert!(!top.dir("pod1").exists());
    Ok(())
}

fn the_top_is_neither_killed_nor_removed() -> Outcome {
    let mut top = Top::new("top")?;
    let process = Player::waits()?;
    std::fs::create_dir(top.dir("holder"))?;
    std::fs::write(top.dir("holder/cgroup.procs"), process.pid().to_string())?;
    for op in [Op::Kill(CgroupPath::top()), Op::Remove(CgroupPath::top())] {
        top.refused(&op, ErrorKind::Invalid)?;
    }
    assert_eq!(process.cgroup()?, "/top/holder");
    Ok(())
}
