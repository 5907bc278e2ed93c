//! How long until the signals must be looked at again.
//!
//! Long where much is left and nothing falls, so that an idle node is hardly ever disturbed; short where
//! a threshold is near or coming near. Stalls are told by the kernel meanwhile; this bounds how late
//! one is that comes without any.

use std::time::Duration;

use super::Reading;
use crate::model::eviction::{Starved, Threshold};

/// No look is later than this after the one before.
pub const LONGEST: Duration = Duration::from_secs(10);
/// A threshold that stays met: less than one wake-up in a second.
const CALM: Duration = Duration::from_millis(1500);
/// While something falls towards its threshold, or is below it.
const SHORTEST: Duration = Duration::from_millis(200);
/// A threshold that stays met is looked at that often no longer than this.
const PATIENCE: Duration = Duration::from_secs(30);

/// The looks before this one.
#[derive(Clone, Debug, Default)]
pub struct Past {
    /// What the last one showed, and how long ago that was.
    pub last: Option<(Vec<Reading>, Duration)>,
    /// How long some threshold has been met without a break.
    pub met_for: Option<Duration>,
}

/// How long to wait after these readings.
pub fn pause(now: &[Reading], thresholds: &[Threshold], past: &Past) -> Duration {
    match past.met_for {
        Some(met_for) if met_for < PATIENCE => return SHORTEST,
        Some(_) => return CALM,
        None => {}
    }
    let mut pause = LONGEST;
    for reading in now {
        let (Some(figures), Some(least)) = (
            reading.figures(),
            thresholds.iter().filter_map(|it| reading.least(it)).max(),
        ) else {
            continue;
        };
        let headroom = figures.available.saturating_sub(least);
        let starved = reading.signal.starved();
        let by_nature = time(headroom, fastest(starved)).max(earliest(starved));
        pause = pause.min(by_nature);
        if let Some(fall) = fall(reading, past) {
            // Four looks on the way down, so that a fall that quickens is seen.
            let reached = time(headroom, fall) / 4;
            pause = pause.min(reached.max(SHORTEST));
        }
    }
    pause
}

/// How fast it fell since the last look, in units a second; `None` where it did not, or by less than one
/// part in a thousand.
fn fall(now: &Reading, past: &Past) -> Option<u64> {
    let (last, elapsed) = past.last.as_ref()?;
    let before = last
        .iter()
        .find(|it| (it.signal, &it.place) == (now.signal, &now.place))?;
    let (before, now) = (before.figures()?.available, now.figures()?.available);
    let fallen = before.checked_sub(now)?;
    if fallen <= before / 1000 {
        return None;
    }
    let millis = u64::try_from(elapsed.as_millis()).ok()?.max(1);
    Some((fallen.saturating_mul(1000) / millis).max(1))
}

/// While nothing moves, no look is earlier. Memory that is short must be seen within a second; disk fills
/// more slowly than it could.
fn earliest(starved: Starved) -> Duration {
    match starved {
        Starved::Memory => Duration::from_millis(400),
        Starved::Disk | Starved::Inodes | Starved::Pids => Duration::from_secs(3),
    }
}

/// How fast it can fall out of rest, in units a second. What falls faster leads to stalls, of which the
/// kernel tells.
fn fastest(starved: Starved) -> u64 {
    match starved {
        Starved::Memory | Starved::Disk => 256 << 20,
        Starved::Inodes => 100_000,
        Starved::Pids => 10_000,
    }
}

fn time(amount: u64, in_a_second: u64) -> Duration {
    let millis = amount.saturating_mul(1000).checked_div(in_a_second);
    millis.map_or(LONGEST, Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::eviction::Signal;
    use crate::observation::eviction::{Figures, State};

    const MIB: u64 = 1 << 20;

    fn memory(available: u64) -> Vec<Reading> {
        let figures = Figures {
            available: available * MIB,
            capacity: 64 << 30,
            decides: String::new(),
            others: Vec::new(),
        };
        vec![Reading {
            signal: Signal::Memory,
            place: String::new(),
            state: State::Known(figures),
        }]
    }

    fn paused(before: Option<(u64, u64)>, available: u64, met_for: Option<u64>) -> u64 {
        let threshold = Threshold {
            signal: Signal::Memory,
            least: "100Mi".parse().unwrap(),
            grace: None,
            reclaim: crate::model::node::EvictionThreshold::NONE,
        };
        let past = Past {
            last: before.map(|(mib, millis)| (memory(mib), Duration::from_millis(millis))),
            met_for: met_for.map(Duration::from_secs),
        };
        let pause = pause(&memory(available), &[threshold], &past);
        u64::try_from(pause.as_millis()).unwrap()
    }

    #[test]
    fn much_left_is_seldom_looked_at_and_little_often() {
        for (before, available, met_for, expected) in [
            (None, 20_000, None, 10_000),
            // 900 MiB could be gone in 3.5 s.
            (None, 1000, None, 3515),
            // At rest never more often than that, however little is left.
            (Some((110, 1500)), 110, None, 400),
            (Some((110, 1500)), 109, None, 400),
            // 100 MiB a second, with 200 left.
            (Some((400, 1000)), 300, None, 500),
            // 1000 MiB a second.
            (Some((1300, 1000)), 300, None, 200),
            (Some((100, 1000)), 300, None, 781),
            (None, 50, Some(0), 200),
            (None, 50, Some(31), 1500),
        ] {
            let found = paused(before, available, met_for);
            let near = found.abs_diff(expected) <= expected / 50;
            assert!(near, "{before:?} {available}: {found}, not {expected}");
        }
    }

    #[test]
    fn what_is_unknown_or_has_no_threshold_is_no_hurry() {
        let mut reading = memory(1);
        reading[0].state = State::Unknown(String::new());
        assert_eq!(pause(&reading, &[], &Past::default()), LONGEST);
        assert_eq!(pause(&memory(1), &[], &Past::default()), LONGEST);
    }
}
