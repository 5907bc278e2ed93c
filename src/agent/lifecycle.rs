//! Which containers of a pod should start, stop or wait now. Pure: containers' states and the time
//! go in, steps come out; the agent carries them out and asks again after each change.

use jiff::{SignedDuration, Timestamp};

use crate::model::lifecycle::Termination;
use crate::model::pod::{ContainerKind, RestartPolicy};
use crate::runtime::restart::{BACKOFF_MAX, should_restart};

/// How far a container has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It has not run, or is to run again, but not before this time.
    Due(Option<Timestamp>),
    /// It is being started.
    Starting,
    /// Its main process lives, but its hook or startup probe has not said yes.
    StartingUp,
    /// Its main process lives.
    Running,
    /// It waits for `allot attach`.
    AwaitingAttach,
    /// It ended to be started anew, whatever the policy.
    Restarting,
    /// It ended; whether it starts again has not been decided yet, or it never will.
    Ended(Termination),
}

/// A container as the decision sees it.
#[derive(Clone, Debug)]
pub struct Candidate<'a> {
    /// Its name.
    pub name: &'a str,
    /// The part it plays.
    pub kind: ContainerKind,
    /// How far it has come.
    pub progress: Progress,
}

/// What to do now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Start it.
    Start(String),
    /// Start it again, after a pause; its last end has been seen.
    Again(String),
    /// Ask again at this time.
    Wake(Timestamp),
}

/// The steps that are due in a pod that is not over. `containers` are in the order they start: init
/// containers and sidecars as in the pod, then the others.
pub fn steps(containers: &[Candidate<'_>], policy: RestartPolicy, now: Timestamp) -> Vec<Step> {
    let mut steps = Vec::new();
    // The order is that of the beginning: later a sidecar that pauses does not hold back the others.
    let begun = containers.iter().any(has_begun);
    for container in containers {
        let name = || container.name.to_owned();
        match &container.progress {
            Progress::Due(Some(at)) if is_ahead(*at, now) => steps.push(Step::Wake(*at)),
            Progress::Due(_) => steps.push(Step::Start(name())),
            Progress::Restarting => steps.push(Step::Again(name())),
            Progress::Ended(end) if should_restart(policy, container.kind, end.is_success()) => {
                steps.push(Step::Again(name()));
            }
            _ => {}
        }
        if !begun && !lets_the_next_start(container) {
            break;
        }
    }
    steps
}

/// Whether one of the pod's own containers has been started, and so all that comes before them.
fn has_begun(container: &Candidate<'_>) -> bool {
    container.kind == ContainerKind::App
        && !matches!(
            container.progress,
            Progress::Due(None) | Progress::AwaitingAttach
        )
}

/// Whether a time is still to come. No pause is longer than the longest: what is further ahead was
/// said by a clock that has been set back since.
fn is_ahead(at: Timestamp, now: Timestamp) -> bool {
    now < at
        && SignedDuration::try_from(BACKOFF_MAX).is_ok_and(|most| now.duration_until(at) <= most)
}

/// Init containers start one after the other, each after the end of the one before; sidecars only
/// have to run and to have started. All others start together.
fn lets_the_next_start(container: &Candidate<'_>) -> bool {
    match container.kind {
        ContainerKind::App => true,
        ContainerKind::Sidecar => {
            matches!(
                container.progress,
                Progress::Running | Progress::Restarting | Progress::Ended(_)
            )
        }
        ContainerKind::Init => {
            matches!(&container.progress, Progress::Ended(end) if end.is_success())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ContainerKind::{App, Init, Sidecar};
    use RestartPolicy::{Always, Never, OnFailure};

    fn ended(code: i32) -> Progress {
        Progress::Ended(Termination {
            exit_code: Some(code),
            signal: None,
            reason: String::new(),
            message: String::new(),
            started_at: None,
            finished_at: Timestamp::UNIX_EPOCH,
        })
    }

    /// The steps in short: `a` starts, `a again`, `wake`.
    fn decide(policy: RestartPolicy, containers: &[(&str, ContainerKind, Progress)]) -> String {
        let candidates: Vec<_> = containers
            .iter()
            .map(|(name, kind, progress)| Candidate {
                name,
                kind: *kind,
                progress: progress.clone(),
            })
            .collect();
        let steps = steps(&candidates, policy, Timestamp::UNIX_EPOCH);
        let texts: Vec<_> = steps
            .iter()
            .map(|step| match step {
                Step::Start(name) => name.clone(),
                Step::Again(name) => format!("{name} again"),
                Step::Wake(_) => "wake".to_owned(),
            })
            .collect();
        texts.join(", ")
    }

    #[test]
    fn containers_start_in_their_order() {
        let due = || Progress::Due(None);
        let later = Progress::Due(Some(Timestamp::UNIX_EPOCH + SignedDuration::from_secs(300)));
        let absurd = Progress::Due(Some(Timestamp::UNIX_EPOCH + SignedDuration::from_hours(1)));
        for (policy, containers, expected) in [
            (Always, vec![("a", App, due()), ("b", App, due())], "a, b"),
            (Always, vec![("i", Init, due()), ("a", App, due())], "i"),
            (
                Always,
                vec![("i", Init, Progress::Running), ("a", App, due())],
                "",
            ),
            (Always, vec![("i", Init, ended(0)), ("a", App, due())], "a"),
            (
                Always,
                vec![("i", Init, ended(1)), ("a", App, due())],
                "i again",
            ),
            (Always, vec![("s", Sidecar, due()), ("a", App, due())], "s"),
            (
                Always,
                vec![("s", Sidecar, Progress::Starting), ("a", App, due())],
                "",
            ),
            (
                Always,
                vec![("s", Sidecar, Progress::Running), ("a", App, due())],
                "a",
            ),
            (
                Always,
                vec![("s", Sidecar, ended(1)), ("a", App, due())],
                "s again, a",
            ),
            (
                Always,
                vec![("s", Sidecar, later.clone()), ("a", App, due())],
                "wake",
            ),
            (
                Always,
                vec![("s", Sidecar, later.clone()), ("a", App, ended(1))],
                "wake, a again",
            ),
            (
                Always,
                vec![
                    ("i", Init, ended(0)),
                    ("s", Sidecar, due()),
                    ("a", App, Progress::Running),
                ],
                "s",
            ),
            (Always, vec![("a", App, later.clone())], "wake"),
            (Always, vec![("a", App, absurd)], "a"),
            (
                Always,
                vec![("a", App, Progress::AwaitingAttach), ("b", App, due())],
                "b",
            ),
        ] {
            assert_eq!(decide(policy, &containers), expected, "{containers:?}");
        }
    }

    #[test]
    fn containers_restart_as_the_policy_says() {
        for (policy, code, expected) in [
            (Always, 0, "a again"),
            (Always, 1, "a again"),
            (OnFailure, 0, ""),
            (OnFailure, 1, "a again"),
            (Never, 0, ""),
            (Never, 1, ""),
        ] {
            assert_eq!(decide(policy, &[("a", App, ended(code))]), expected);
        }
    }
}
