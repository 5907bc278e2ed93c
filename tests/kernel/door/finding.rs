//! Reading the tree.

use std::path::Path;
use std::time::{Duration, Instant};

use allotd::cgroup::{
    CgroupPath, Cgroupfs, ControllerSet, ErrorKind, Hierarchy, InterfaceFile, KernelError, Op,
    Setting, Tree,
};
use allotd::units::{Bytes, Limit};
use nix::mount::{MsFlags, mount, umount};

use super::top::{Top, ours, path, refused};
use crate::Outcome;

tests![
    foreign_cgroups_are_not_found,
    a_mount_in_the_way_is_denied,
    cgroups_may_vanish_while_they_are_read,
];

fn foreign_cgroups_are_not_found() -> Outcome {
    let mut top = Top::with_container("top")?;
    for foreign in ["holder", "holder/pod9", "pod1/app/pod", "other"] {
        std::fs::create_dir(top.dir(foreign))?;
    }
    top.perform(&Op::Create(path("pod2")))?;
    let limit = Setting::MemoryMax(Limit::At(Bytes::mib(64)));
    top.perform(&Op::Write(path("pod1/app"), limit))?;

    let tree = top.kernel.found(&CgroupPath::top())?;
    assert_eq!(paths(&tree), ["/", "pod1", "pod1/app", "pod2"]);
    let app = tree.get(&path("pod1/app")).ok_or("not found")?;
    assert_eq!(app.get(InterfaceFile::MemoryMax), Some(limit));
    assert_eq!(
        tree.get(&path("pod1")).map(|pod| pod.enabled.clone()),
        Some(ControllerSet::all())
    );
    assert_eq!(app.enabled, ControllerSet::default());

    let below = top.kernel.found(&path("pod1"))?;
    assert_eq!(paths(&below), ["pod1", "pod1/app"]);
    for (path, node) in tree.iter() {
        assert_eq!(top.kernel.look(path)?.as_ref(), Some(node), "{path}");
    }
    Ok(())
}

fn paths(tree: &Tree) -> Vec<String> {
    tree.iter().map(|(path, _)| path.to_string()).collect()
}

fn a_mount_in_the_way_is_denied() -> Outcome {
    let mut top = Top::with_container("top")?;
    let over = top.dir("pod1/app");
    mount(
        Some("d"),
        &over,
        Some("tmpfs"),
        MsFlags::empty(),
        None::<&str>,
    )?;
    let answer = top.kernel.look(&path("pod1/app"));
    let limit = Setting::MemoryMax(Limit::Max);
    let written = top.perform(&Op::Write(path("pod1/app"), limit));
    umount(&over)?;
    refused(answer, ErrorKind::Denied)?;
    refused(written, ErrorKind::Denied)?;
    Ok(())
}

fn cgroups_may_vanish_while_they_are_read() -> Outcome {
    let mut top = Top::new("top")?;
    top.perform(&Op::Enable(CgroupPath::top(), ControllerSet::all()))?;
    let directory = top.directory.clone();
    let files = InterfaceFile::all(top.kernel.huge_page_sizes()).len();
    let end = Instant::now() + Duration::from_secs(3);
    std::thread::scope(|scope| -> Outcome {
        let churning = scope.spawn(|| churn(&directory, end));
        let read = read_until(end, &mut top.kernel, files);
        churning.join().map_err(|_| "the other thread panicked")??;
        read
    })
}

fn read_until(end: Instant, kernel: &mut Cgroupfs, files: usize) -> Outcome {
    let (mut there, mut gone) = (0_u32, 0_u32);
    while Instant::now() < end {
        // A cgroup is read whole or not at all.
        let tree = kernel.found(&CgroupPath::top())?;
        for (path, node) in tree.iter().filter(|(path, _)| !path.is_top()) {
            assert_eq!(node.settings.len(), files, "{path}");
            there += 1;
        }
        match kernel.look(&path("pod0"))? {
            Some(node) => assert_eq!(node.settings.len(), files),
            None => gone += 1,
        }
        match kernel.counters(&path("pod0")) {
            Ok(counters) => assert!(counters.pids_current.is_some(), "{counters:?}"),
            Err(error) => assert_eq!(error.kind, ErrorKind::Gone, "{error}"),
        }
    }
    assert!(there > 0 && gone > 0, "there {there} times, gone {gone}");
    Ok(())
}

fn churn(directory: &Path, end: Instant) -> Result<(), KernelError> {
    let mut kernel = Cgroupfs::open(directory, &ControllerSet::all(), ours)?;
    while Instant::now() < end {
        for op in [Op::Create, Op::Remove] {
            for pod in ["pod0", "pod1", "pod2"] {
                kernel.perform(&op(path(pod)))?;
            }
        }
    }
    Ok(())
}
