//! Rates, from two samples and nothing else.
//!
//! It must never guess: where the two do not belong together there is no rate.

use std::time::Duration;

use super::Timed;
use crate::cgroup::sample::Cpu;

/// How much of a CPU was in use, and over which time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Billionths of a CPU.
    pub nano_cores: u64,
    /// Between the two samples.
    pub window: Duration,
}

/// The CPU in use between two samples of one cgroup. `None` if a counter is absent or went back, no
/// time passed between them, or the cgroup was made anew.
pub fn cpu(before: &Timed, now: &Timed) -> Option<Rate> {
    let (used, window) = growth(before, now, |cpu| cpu.usage_usec)?;
    // µs per ns is a millionth of a billionth: 10^12 times that are billionths of a CPU.
    let nano_cores = (u128::from(used) * 1_000_000_000_000) / window.as_nanos();
    Some(Rate {
        nano_cores: u64::try_from(nano_cores).ok()?,
        window,
    })
}

/// CPU time that `cpu.max` withheld in each second between two samples of one cgroup (µs). More than a
/// second of it is possible: the kernel adds up what it withheld on each CPU.
pub fn throttled(before: &Timed, now: &Timed) -> Option<u64> {
    let (withheld, window) = growth(before, now, |cpu| cpu.throttled_usec)?;
    let each_second = (u128::from(withheld) * 1_000_000_000) / window.as_nanos();
    u64::try_from(each_second).ok()
}

/// How much a counter grew between two samples of one cgroup, and in which time.
pub(super) fn growth(
    before: &Timed,
    now: &Timed,
    counter: fn(&Cpu) -> Option<u64>,
) -> Option<(u64, Duration)> {
    if before.sample.identity != now.sample.identity {
        return None;
    }
    let window = now.at.checked_sub(before.at).filter(|w| !w.is_zero())?;
    let grown = counter(&now.sample.cpu)?.checked_sub(counter(&before.sample.cpu)?)?;
    Some((grown, window))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn timed(at: Duration, usage: Option<u64>, identity: u64) -> Timed {
        let mut timed = Timed {
            at,
            ..Timed::default()
        };
        timed.sample.identity = Some(identity);
        timed.sample.cpu.usage_usec = usage;
        timed
    }

    fn rate(before: (u64, Option<u64>), now: (u64, Option<u64>)) -> Option<u64> {
        let of = |(millis, usage)| timed(Duration::from_millis(millis), usage, 1);
        cpu(&of(before), &of(now)).map(|rate| rate.nano_cores)
    }

    #[test]
    fn a_rate_needs_two_samples_that_belong_together() {
        for (before, now, expected) in [
            // A fifth of a CPU over a second.
            ((1000, Some(500)), (2000, Some(200_500)), Some(200_000_000)),
            // Two CPUs.
            ((0, Some(0)), (500, Some(1_000_000)), Some(2_000_000_000)),
            ((1000, Some(500)), (2000, Some(500)), Some(0)),
            ((1000, Some(500)), (2000, Some(499)), None),
            ((1000, Some(500)), (1000, Some(501)), None),
            ((2000, Some(500)), (1000, Some(501)), None),
            ((1000, None), (2000, Some(501)), None),
            ((1000, Some(500)), (2000, None), None),
            ((0, Some(0)), (1, Some(u64::MAX)), None),
        ] {
            assert_eq!(rate(before, now), expected, "{before:?} {now:?}");
        }
        let second = Duration::from_secs(1);
        let anew = cpu(
            &timed(Duration::ZERO, Some(0), 1),
            &timed(second, Some(9), 2),
        );
        assert_eq!(anew, None, "a cgroup of the same name is another one");
    }

    #[test]
    fn what_is_withheld_is_told_for_each_second() {
        let at = |millis, withheld| {
            let mut timed = timed(Duration::from_millis(millis), Some(0), 1);
            timed.sample.cpu.throttled_usec = withheld;
            timed
        };
        for (before, now, expected) in [
            ((0, Some(0)), (2000, Some(500_000)), Some(250_000)),
            // Two CPUs, all of it.
            ((0, Some(7)), (500, Some(1_000_007)), Some(2_000_000)),
            ((0, Some(7)), (500, Some(7)), Some(0)),
            ((0, Some(7)), (500, Some(6)), None),
            ((0, None), (500, Some(6)), None),
            ((0, Some(0)), (0, Some(6)), None),
        ] {
            let told = throttled(&at(before.0, before.1), &at(now.0, now.1));
            assert_eq!(told, expected, "{before:?} {now:?}");
        }
    }

    proptest! {
        #[test]
        fn a_rate_gives_the_use_back(
            start in 0_u64..1 << 40, window in 1_u64..1 << 40, usage in 0_u64..1 << 50, used in 0_u64..1 << 40,
        ) {
            let (from, to) = (Duration::from_nanos(start), Duration::from_nanos(start + window));
            let told = cpu(&timed(from, Some(usage), 1), &timed(to, Some(usage + used), 1));
            if let Some(told) = told {
                prop_assert_eq!(told.window, Duration::from_nanos(window));
                let back = u128::from(told.nano_cores) * u128::from(window);
                let exact = u128::from(used) * 1_000_000_000_000;
                prop_assert!(back <= exact && exact - back < u128::from(window));
            } else {
                prop_assert!(u128::from(used) * 1_000_000_000_000 / u128::from(window) > u128::from(u64::MAX));
            }
        }

        #[test]
        fn what_goes_back_has_no_rate(
            a in any::<u64>(), b in any::<u64>(), s in any::<u64>(), t in any::<u64>(),
        ) {
            let told = cpu(&timed(Duration::from_nanos(s), Some(a), 1), &timed(Duration::from_nanos(t), Some(b), 1));
            prop_assert!(told.is_none() || (s < t && a <= b));
        }
    }
}
