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
    /// When it gets SIGKILL at the latest, where all pods end with the node.
    until: Option<Instant>,
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
    pub fn of(
        entry: &PodEntry,
        container: &str,
        deletion: Option<Deletion>,
        until: Option<Instant>,
    ) -> Self {
        let most = entry.record.ended_grace.unwrap_or(MAX_GRACE).min(MAX_GRACE);
        let own = entry.admitted.pod().termination_grace_seconds;
        let probes = entry.unhealthy(container).and_then(|own| own.grace_seconds);
        let own = Duration::from_secs(probes.unwrap_or(own).min(most));
        let hook = entry.container(container).map(|own| &own.probes.pre_stop);
        Self {
            has_hook: hook.is_some_and(Option::is_some),
            grace: deletion.map_or(own, |deletion| Duration::from_secs(deletion.grace_seconds)),
            left: deletion.map(|deletion| deletion.left(uptime_millis())),
            until,
        }
    }

    pub fn step(&self, ending: &mut Option<Ending>, now: Instant) -> Step {
        let begins = ending.is_none();
        let ending = ending.get_or_insert_with(|| Ending {
            since: now,
            hook: HookStage::Running,
            told: None,
        });
        let passed = now.saturating_duration_since(ending.since);
        let mut left = self.left.unwrap_or(self.grace.saturating_sub(passed));
        let (mut for_hook, mut after_hook) = (left, AFTER_HOOK);
        if let Some(until) = self.until {
            // That bound holds, so what the process has after a hook comes out of the hook's time.
            let whole = until.saturating_duration_since(ending.since);
            after_hook = AFTER_HOOK.min(whole / 2);
            left = left.min(until.saturating_duration_since(now));
            let before = until.checked_sub(after_hook).unwrap_or(now);
            for_hook = left.min(before.saturating_duration_since(now));
        }
        if ending.hook == HookStage::Running && (!self.has_hook || for_hook.is_zero()) {
            let ran = self.has_hook && !begins;
            ending.hook = HookStage::Over { ran };
        }
        let mut step = Step {
            begins,
            hook: None,
            tells: false,
            kills: false,
            wait: left,
        };
        let HookStage::Over { ran } = ending.hook else {
            step.hook = begins.then_some(for_hook);
            step.wait = for_hook;
            return step;
        };
        step.tells = ending.told.is_none();
        let told = *ending.told.get_or_insert(now);
        if ran && !self.grace.is_zero() {
            let least = after_hook.saturating_sub(now.saturating_duration_since(told));
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
        course_of(&|_| Terms { ..*terms }, over, seconds)
    }

    /// The same with terms that depend on when it begins.
    fn course_of(terms: &dyn Fn(Instant) -> Terms, over: Option<u32>, seconds: &[u32]) -> String {
        let (start, mut ending) = (Instant::now(), None);
        let terms = terms(start);
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
            until: None,
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
            until: None,
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

    /// What is done at these seconds where the node ends all pods at the second `until`.
    fn course_until(
        until: u32,
        terms: &Terms,
        over: Option<u32>,
        seconds: &[u32],
    ) -> (String, Option<Duration>) {
        let terms = |start| Terms {
            until: Some(start + SECOND * until),
            ..*terms
        };
        let hook = terms(Instant::now()).step(&mut None, Instant::now()).hook;
        // The course has its own beginning, a moment later.
        (course_of(&terms, over, seconds), hook)
    }

    #[test]
    fn the_end_of_the_node_waits_for_nobody() {
        let long = 3600;
        for (has_hook, grace, over, until, seconds, expected, hook) in [
            // Its own grace, where that is shorter.
            (false, 2, None, 5, &[0, 1, 2, 5][..], "BT  K K", None),
            (false, long, None, 5, &[0, 4, 5], "BT  K", None),
            // A hook has all but the two seconds after it, and is not waited for longer.
            (true, long, None, 5, &[0, 2, 3, 4, 5], "BH  T  K", Some(3)),
            (true, long, Some(1), 5, &[0, 1, 4, 5], "BH T  K", Some(3)),
            (true, 1, None, 5, &[0, 1, 2, 3], "BH T  K", Some(1)),
            // Of little time it has half.
            (true, long, None, 2, &[0, 1, 2], "BH T K", Some(1)),
            (true, long, None, 0, &[0], "BTK", None),
            (true, 0, None, 5, &[0], "BTK", None),
        ] {
            let terms = terms(has_hook, grace);
            let (course, has) = course_until(until, &terms, over, seconds);
            assert_eq!(course, expected, "{has_hook} {grace} {over:?} {until}");
            let has = has.map(|has| has.as_secs_f32().round());
            assert_eq!(has, hook.map(|hook: u8| f32::from(hook)));
        }
    }

    #[test]
    fn a_deletion_under_way_has_no_more_time_when_the_node_ends() {
        for (left, waits) in [(1, 1), (60, 5)] {
            let start = Instant::now();
            let terms = Terms {
                left: Some(SECOND * left),
                until: Some(start + SECOND * 5),
                ..terms(false, 60)
            };
            let step = terms.step(&mut None, start);
            assert_eq!(step.wait, SECOND * waits);
        }
    }
}
