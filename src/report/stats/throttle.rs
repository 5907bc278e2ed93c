//! What `cpu.max` did to a cgroup between two samples, and what that says of the limit.
//!
//! The share of throttled periods alone says little: a program that uses a fifth of its limit in bursts
//! may be throttled in every fourth period, and lose hardly any time or much (kubernetes-mixin#108). So
//! time stands first. It must never judge by counters that do not belong together. The kernel keeps no
//! length of single stalls, so only their mean is known.

use serde::{Deserialize, Serialize};

use super::rate::growth;
use super::{Bounds, Figures};
use crate::units::{CpuMax, Limit};

/// Below this share of the time in which something wanted to run nothing is worth a word (hundredths of
/// a percent).
const NOTABLE: u64 = 100;
/// From this share of its limit on a cgroup uses it up (hundredths of a percent): more than bursts.
const USED_UP: u64 = 8000;
/// Hundredths of a percent in a whole.
const WHOLE: u64 = 10_000;

/// What a limit withheld in a stretch of time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Throttling {
    /// The stretch (ms).
    pub window_msec: u64,
    /// Periods in which something ran.
    pub periods: u64,
    /// Those in which the quota ran out.
    pub throttled_periods: u64,
    /// CPU time withheld in each second (µs), summed over CPUs.
    pub withheld_usec: u64,
    /// The same, of the time in which something wanted to run (hundredths of a percent).
    pub withheld_share: u64,
    /// CPU time withheld in the mean each time the quota ran out (µs).
    pub mean_stall_usec: u64,
    /// CPU time used, of what the limit allows (hundredths of a percent).
    pub used_share: u64,
    /// The limit (thousandths of a CPU).
    pub limit_milli: u64,
    /// A limit with which the quota would have lasted in the mean (thousandths of a CPU): what was withheld
    /// is the most that could have run meanwhile.
    pub enough_milli: u64,
    /// What that means, for people; absent where it means nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<String>,
}

/// What a cgroup's own limit withheld between its two samples; `None` without a limit, or where a counter is
/// absent, went back, or belongs to another cgroup.
pub fn throttling(figures: &Figures<'_>, bounds: &Bounds) -> Option<Throttling> {
    let max = bounds.cpu?;
    let Limit::At(quota) = max.quota else {
        return None;
    };
    let before = figures.before?;
    let grown = |counter| Some(growth(before, figures.now, counter)?.0);
    let (used, window) = growth(before, figures.now, |cpu| cpu.usage_usec)?;
    let periods = grown(|cpu| cpu.periods)?;
    let throttled_periods = grown(|cpu| cpu.throttled_periods)?;
    let withheld = grown(|cpu| cpu.throttled_usec)?;
    let window_usec = u64::try_from(window.as_micros()).ok().filter(|n| *n > 0)?;
    let mean_stall_usec = withheld.checked_div(throttled_periods).unwrap_or(0);
    let milli = |usec: u64| share(usec, max.period.0, 1000);
    let allowed = share(window_usec, max.period.0, quota.0);
    let mut told = Throttling {
        window_msec: window_usec / 1000,
        periods,
        throttled_periods,
        withheld_usec: share(withheld, window_usec, 1_000_000),
        withheld_share: share(withheld, withheld.saturating_add(used), WHOLE),
        mean_stall_usec,
        used_share: share(used, allowed, WHOLE),
        limit_milli: milli(quota.0),
        enough_milli: milli(quota.0.saturating_add(mean_stall_usec)),
        verdict: None,
    };
    told.verdict = verdict(&told, max);
    Some(told)
}

/// `part` of `all`, in so many parts of the whole; 0 of nothing.
fn share(part: u64, all: u64, whole: u64) -> u64 {
    let share = (u128::from(part) * u128::from(whole)).checked_div(u128::from(all));
    u64::try_from(share.unwrap_or(0)).unwrap_or(u64::MAX)
}

fn verdict(told: &Throttling, max: CpuMax) -> Option<String> {
    if told.throttled_periods == 0 || told.withheld_share < NOTABLE {
        return None;
    }
    let percent = |share: u64| format!("{}%", share / 100);
    let millis = |usec: u64| format!("{}.{} ms", usec / 1000, usec % 1000 / 100);
    let held = format!(
        "{} of each second withheld, {} each time, in {} of periods of {}",
        millis(told.withheld_usec),
        millis(told.mean_stall_usec),
        percent(share(told.throttled_periods, told.periods, WHOLE)),
        millis(max.period.0)
    );
    let (limit, used) = (told.limit_milli, percent(told.used_share));
    Some(if told.used_share < USED_UP {
        format!(
            "the CPU limit of {limit}m is too low for bursts, though {used} of it is used: {held}; {}m would be enough in the mean",
            told.enough_milli
        )
    } else {
        format!("the CPU limit of {limit}m is used up ({used}): {held}")
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::cgroup::sample::Cpu;
    use crate::report::stats::Timed;
    use crate::units::Micros;

    fn limit(milli: u64) -> Bounds {
        Bounds {
            cpu: Some(CpuMax {
                quota: Limit::At(Micros(milli * 100)),
                period: Micros(100_000),
            }),
            ..Bounds::default()
        }
    }

    fn timed(seconds: u64, [usage, periods, throttled, withheld]: [u64; 4]) -> Timed {
        let mut timed = Timed {
            at: Duration::from_secs(seconds),
            ..Timed::default()
        };
        timed.sample.cpu = Cpu {
            usage_usec: Some(usage),
            periods: Some(periods),
            throttled_periods: Some(throttled),
            throttled_usec: Some(withheld),
            ..Cpu::default()
        };
        timed
    }

    fn told(before: [u64; 4], after: [u64; 4], bounds: &Bounds) -> Option<Throttling> {
        let (before, now) = (timed(0, before), timed(60, after));
        let figures = Figures {
            now: &now,
            before: Some(&before),
        };
        throttling(&figures, bounds)
    }

    /// Report kubernetes-mixin#108: a quarter of the periods, a fifth of the limit, and what it costs.
    #[test]
    fn bursts_are_told_from_a_limit_that_is_used_up() {
        let start = [1_000_000, 1000, 50, 7_000_000];
        // 60 s of half a CPU are 30 s: a fifth of them is 6 s.
        let bursts = [7_000_000, 1600, 200, 7_900_000];
        let found = told(start, bursts, &limit(500)).unwrap();
        let expected = Throttling {
            window_msec: 60_000,
            periods: 600,
            throttled_periods: 150,
            withheld_usec: 15_000,
            withheld_share: 1304,
            mean_stall_usec: 6000,
            used_share: 2000,
            limit_milli: 500,
            enough_milli: 560,
            verdict: Some(
                "the CPU limit of 500m is too low for bursts, though 20% of it is used: 15.0 ms of each \
                 second withheld, 6.0 ms each time, in 25% of periods of 100.0 ms; 560m would be enough \
                 in the mean"
                    .to_owned(),
            ),
        };
        assert_eq!(found, expected);
        let all = [31_000_000, 1600, 650, 37_000_000];
        let verdict = told(start, all, &limit(500)).unwrap().verdict.unwrap();
        assert_eq!(
            verdict,
            "the CPU limit of 500m is used up (100%): 500.0 ms of each second withheld, 50.0 ms each \
             time, in 100% of periods of 100.0 ms"
        );
    }

    #[test]
    fn what_costs_nothing_is_not_worth_a_word() {
        let start = [0; 4];
        // A quarter of the periods, and yet half a millisecond in all: what alarms cried wolf about.
        let found = told(start, [6_000_000, 600, 150, 500], &limit(500)).unwrap();
        assert_eq!((found.throttled_periods, found.verdict), (150, None));
        let idle = told(start, start, &limit(500)).unwrap();
        assert_eq!(idle.withheld_share, 0, "nothing of nothing is no NaN");
        assert_eq!((idle.mean_stall_usec, idle.verdict), (0, None));
    }

    #[test]
    fn without_a_limit_or_with_a_counter_that_went_back_nothing_is_told() {
        let (low, high) = ([1, 1, 1, 1], [900, 900, 900, 900]);
        assert!(told(low, high, &limit(500)).is_some());
        assert_eq!(told(low, high, &Bounds::default()), None);
        let unlimited = Bounds {
            cpu: Some(CpuMax::unlimited(Micros(100_000))),
            ..Bounds::default()
        };
        assert_eq!(told(low, high, &unlimited), None);
        for place in 0..4 {
            let mut later = high;
            later[place] = 0;
            assert_eq!(told(low, later, &limit(500)), None, "counter {place}");
        }
        let (before, mut now) = (timed(0, low), timed(60, high));
        now.sample.identity = Some(2);
        let figures = Figures {
            now: &now,
            before: Some(&before),
        };
        assert_eq!(throttling(&figures, &limit(500)), None, "another cgroup");
    }
}
