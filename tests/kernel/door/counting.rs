//! Counters of real processes.

use allotd::cgroup::{CgroupPath, Controller, Counters, Hierarchy, Op, Setting};
use allotd::units::{Bytes, Limit};
use nix::mount::{MsFlags, mount};

use super::top::{MOUNT, Top, path, patiently, set};
use crate::Outcome;
use crate::player::{Ending, Player};

tests![
    absent_is_not_zero,
    an_oom_kill_is_counted_where_it_happened,
    refused_forks_are_counted,
    local_events_leave_the_sum_absent,
];

fn absent_is_not_zero() -> Outcome {
    let mut top = Top::new("top")?;
    top.perform(&Op::Create(path("pod1")))?;
    let bare = top.kernel.counters(&path("pod1"))?;
    // Without any controller there is CPU time (Linux 4.15) and nothing else.
    let expected = Counters {
        cpu_usage_usec: Some(0),
        populated: Some(false),
        ..Counters::default()
    };
    assert_eq!(bare, expected);

    let memory = set(&[Controller::Memory]);
    top.perform(&Op::Enable(CgroupPath::top(), memory))?;
    let counters = top.kernel.counters(&path("pod1"))?;
    assert_eq!(counters.memory_current, Some(Bytes(0)));
    assert_eq!(counters.oom_kill, Some(0));
    assert_eq!(counters.pids_current, None);
    Ok(())
}

fn an_oom_kill_is_counted_where_it_happened() -> Outcome {
    // At the container's own limit, then at the pod's.
    for (limited, own) in [("pod1/app", true), ("pod1", false)] {
        let mut top = Top::with_container(if own { "own" } else { "pods" })?;
        let limit = Bytes::mib(16);
        for setting in [
            Setting::MemoryMax(Limit::At(limit)),
            Setting::MemorySwapMax(Limit::At(Bytes(0))),
        ] {
            top.perform(&Op::Write(path(limited), setting))?;
        }
        let mut process = Player::eats(64)?;
        top.perform(&Op::Attach(path("pod1/app"), process.pid()))?;
        let before = top.kernel.counters(&path("pod1/app"))?;
        assert_eq!(before.pids_current, Some(1));
        assert_eq!(
            (before.oom_local, before.oom_kill_local),
            (Some(0), Some(0))
        );
        process.go();
        assert_eq!(process.ending()?, Ending::KILLED);

        let app = top.kernel.counters(&path("pod1/app"))?;
        let pod = top.kernel.counters(&path("pod1"))?;
        assert_eq!(app.oom_kill_local, Some(1), "{limited}");
        assert_eq!(
            (pod.oom_kill_local, pod.oom_kill),
            (Some(0), Some(1)),
            "{limited}"
        );
        let hit = if own { &app } else { &pod };
        let spared = if own { &pod } else { &app };
        assert!(
            hit.oom_local >= Some(1) && hit.memory_max_local >= Some(1),
            "{hit:?}"
        );
        assert_eq!(spared.oom_local, Some(0), "{limited}");
        assert!(app.cpu_usage_usec > Some(0));
        if let Some(peak) = hit.memory_peak {
            assert!(peak > Bytes::mib(8) && peak <= limit, "{peak}");
        }
        // The sum stays when the container goes.
        patiently(|| top.perform(&Op::Remove(path("pod1/app"))))?;
        assert_eq!(top.kernel.counters(&path("pod1"))?.oom_kill, Some(1));
    }
    Ok(())
}

fn refused_forks_are_counted() -> Outcome {
    let mut top = Top::with_container("top")?;
    let app = path("pod1/app");
    let limit = Setting::PidsMax(Limit::At(3));
    top.perform(&Op::Write(app.clone(), limit))?;
    let mut process = Player::starts_threads(4)?;
    top.perform(&Op::Attach(app.clone(), process.pid()))?;
    process.go();
    let ending = process.ending()?;
    assert_eq!(ending.status, Some(1), "{ending:?}");
    let counters = top.kernel.counters(&app)?;
    assert_eq!(counters.pids_refused, Some(2));
    assert!(
        counters
            .pids_peak
            .is_none_or(|peak| (3..=4).contains(&peak)),
        "{counters:?}"
    );
    Ok(())
}

fn local_events_leave_the_sum_absent() -> Outcome {
    let remount = |options| {
        mount(
            Some("d"),
            MOUNT,
            None::<&str>,
            MsFlags::MS_REMOUNT,
            Some(options),
        )
    };
    let top = Top::with_container("top")?;
    assert!(!top.kernel.mount_options().memory_localevents);
    remount("memory_localevents")?;
    let mut again = Top::at(&top.directory)?;
    let options = again.kernel.mount_options();
    let counters = again.kernel.counters(&path("pod1"));
    remount("")?;
    assert!(
        options.memory_localevents && !options.pids_localevents,
        "{options:?}"
    );
    let counters = counters?;
    assert_eq!(
        (counters.oom_kill, counters.oom_kill_local),
        (None, Some(0))
    );
    Ok(())
}
