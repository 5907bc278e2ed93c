//! The end of one container, step by step: its `preStop`, SIGTERM, SIGKILL. Pure but for what is left of a
//! deletion's time; the agent carries the steps out.

use std::time::{Duration, Instant};

use super::entry::PodEntry;
use super::record::Deletion;
use super::since::uptime_millis;
use super::stop::MAX_GRACE;

/// What a process has between SIGTERM and SIGKILL at the least, where `preStop` took all of its time (the
/// kubelet's `minimumGracePeriodInSeconds`).
const AFTER_HOOK: Duration = Duration::from_secs(2);

/// The end of a container, as this agent carries it out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ending {
    /// Since when.
    pub since: Instant,
    /// Its `preStop`.
    pub hook: HookStage,
    /// When it got SIGTERM.
    pub told: Option<Instant>,
}

/// How far a `preStop` has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HookStage {
    /// Under way.
    Running,
    /// It has ended, or had its time, or there is none.
    Over {
        /// There was one.
        ran: bool,
    },
}

/// What holds for the end of one container.
pub(super) struct Terms {
    has_hook: bool,
    /// The whole time it has.
    grace: Duration,
    /// What is left of it where it began with a deletion.
    left: Option<Duration>,
}

/// What is to be done now for the end of one container.
pub(super) struct Step {
    /// It is the first step.
    pub begins: bool,
    /// `preStop` begins, and has so long.
    pub hook: Option<Duration>,
    /// SIGTERM is due.
    pub tells: bool,
    /// SIGKILL is due.
    pub kills: bool,
    /// When to look again.
    pub wait: Duration,
}

impl Terms {
    pub fn of(entry: &PodEntry, container: &str, deletion: Option<Deletion>) -> Self {
        let most = entry.record.ended_grace.unwrap_or(MAX_GRACE).min(MAX_GRACE);
        let own = entry.admitted.pod().termination_grace_seconds;
        let probes = entry.unhealthy(container).and_then(|own| own.grace_seconds);
        let own = Duration::from_secs(probes.unwrap_or(own).min(most));
        let hook = entry.container(container).map(|own| &own.probes.pre_stop);
        Self {
            has_hook: hook.is_some_and(Option::is_some),
            grace: deletion.map_or(own, |deletion| Duration::from_secs(deletion.grace_seconds)),
            left: deletion.map(|deletion| deletion.left(uptime_millis())),
        }
    }

    pub fn step(&self, ending: &mut Option<Ending>, now: Instant) -> Step {
        let begins = ending.is_none();
        let hooks = self.has_hook && !self.left.unwrap_or(self.grace).is_zero();
        let ending = ending.get_or_insert_with(|| Ending {
            since: now,
            hook: if hooks {
                HookStage::Running
            } else {
                HookStage::Over { ran: false }
            },
            told: None,
        });
        let passed = now.saturating_duration_since(ending.since);
        let left = self.left.unwrap_or(self.grace.saturating_sub(passed));
        if ending.hook == HookStage::Running && left.is_zero() {
            ending.hook = HookStage::Over { ran: true };
        }
        let mut step = Step {
            begins,
            hook: (begins && hooks).then_some(left),
            tells: false,
            kills: false,
            wait: left,
        };
        let HookStage::Over { ran } = ending.hook else {
            return step;
        };
        step.tells = ending.told.is_none();
        let told = *ending.told.get_or_insert(now);
        if ran && !self.grace.is_zero() {
            let least = AFTER_HOOK.saturating_sub(now.saturating_duration_since(told));
            step.wait = left.max(least);
        }
        step.kills = step.wait.is_zero();
        step
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// What is done at these seconds: `B` it begins, `H` with a hook, `T` SIGTERM, `K` SIGKILL. At `over` the
    /// hook ends.
    fn course(terms: &Terms, over: Option<u32>, seconds: &[u32]) -> String {
        let (start, mut ending) = (Instant::now(), None);
        let mut course = Vec::new();
        for second in seconds {
            if over == Some(*second)
                && let Some(ending) = &mut ending
            {
                let ending: &mut Ending = ending;
                ending.hook = HookStage::Over { ran: true };
            }
            let step = terms.step(&mut ending, start + SECOND * *second);
            let letters = [
                (step.begins, 'B'),
                (step.hook.is_some(), 'H'),
                (step.tells, 'T'),
                (step.kills, 'K'),
            ];
            let letters = letters.iter().filter(|(is, _)| *is);
            course.push(letters.map(|(_, letter)| *letter).collect::<String>());
        }
        course.join(" ")
    }

    fn terms(has_hook: bool, grace: u32) -> Terms {
        Terms {
            has_hook,
            grace: SECOND * grace,
            left: None,
        }
    }

    #[test]
    fn sigterm_comes_after_the_hook_and_sigkill_after_the_grace() {
        for (has_hook, grace, over, seconds, expected) in [
            (false, 5, None, &[0, 1, 4, 5][..], "BT   K"),
            (false, 0, None, &[0], "BTK"),
            // The hook counts against the grace.
            (true, 5, Some(2), &[0, 1, 2, 4, 5], "BH  T  K"),
            // A process has two seconds after a hook that took all.
            (true, 5, Some(5), &[0, 4, 5, 6, 7], "BH  T  K"),
            (true, 5, None, &[0, 4, 5, 6, 7], "BH  T  K"),
            (true, 5, Some(4), &[0, 4, 5, 6], "BH T  K"),
            // There is no time for one.
            (true, 0, None, &[0], "BTK"),
        ] {
            let found = course(&terms(has_hook, grace), over, seconds);
            assert_eq!(found, expected, "{has_hook} {grace} {over:?} {seconds:?}");
        }
    }

    #[test]
    fn a_deletion_that_is_out_of_time_asks_for_no_hook_and_waits_for_none() {
        let at_once = Terms {
            has_hook: true,
            grace: Duration::ZERO,
            left: Some(Duration::ZERO),
        };
        assert_eq!(course(&at_once, None, &[0]), "BTK");
        // A hook under way is cut short by a second deletion.
        let (start, mut ending) = (Instant::now(), None);
        let long = Terms {
            left: Some(SECOND * 30),
            grace: SECOND * 30,
            ..at_once
        };
        assert_eq!(long.step(&mut ending, start).hook, Some(SECOND * 30));
        let step = Terms {
            left: Some(Duration::ZERO),
            grace: Duration::ZERO,
            ..long
        }
        .step(&mut ending, start + SECOND);
        assert!(step.tells && step.kills && !step.begins);
    }
}
