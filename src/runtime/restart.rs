//! When an ended container starts anew, and how long it waits before. Pure arithmetic.

use std::time::Duration;

use crate::model::pod::{ContainerKind, RestartPolicy};

/// The wait before the second restart; the first one comes at once (the kubelet's
/// `initialBackoffPeriod`).
pub const BACKOFF_FIRST: Duration = Duration::from_secs(10);
/// The longest wait (the kubelet's `MaxContainerBackOff`).
pub const BACKOFF_MAX: Duration = Duration::from_secs(300);
/// A run of this length forgives those before it (the kubelet: twice the longest wait).
pub const BACKOFF_RESET: Duration = Duration::from_secs(600);

/// How long to wait from the end of a run to the next: none before the first restart, then 10 s
/// doubling to 5 min. `quick_ends` counts the ends so far, this one not included, since the last
/// run of 10 min or more; `last_run` is how long the ended run took.
pub fn backoff(quick_ends: u32, last_run: Duration) -> Duration {
    match quick_ends {
        _ if last_run >= BACKOFF_RESET => Duration::ZERO,
        0 => Duration::ZERO,
        ends => BACKOFF_FIRST
            .saturating_mul(2u32.saturating_pow(ends.saturating_sub(1)))
            .min(BACKOFF_MAX),
    }
}

/// The next `quick_ends` after a run of `last_run` has ended.
pub fn quick_ends(before: u32, last_run: Duration) -> u32 {
    if last_run >= BACKOFF_RESET {
        1
    } else {
        before.saturating_add(1)
    }
}

/// Whether a container that ended starts anew, its pod going on. `success`: exit code 0.
pub fn should_restart(policy: RestartPolicy, kind: ContainerKind, success: bool) -> bool {
    match (kind, policy) {
        // A sidecar has `restartPolicy: Always` of its own.
        (ContainerKind::Sidecar, _) | (ContainerKind::App, RestartPolicy::Always) => true,
        // An init container that succeeded has done its part.
        (ContainerKind::Init, RestartPolicy::Always | RestartPolicy::OnFailure)
        | (ContainerKind::App, RestartPolicy::OnFailure) => !success,
        (ContainerKind::Init | ContainerKind::App, RestartPolicy::Never) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_to_five_minutes_and_are_forgiven() {
        let mut ends = 0;
        let mut waits = Vec::new();
        for _ in 0..8 {
            waits.push(backoff(ends, Duration::from_secs(1)).as_secs());
            ends = quick_ends(ends, Duration::from_secs(1));
        }
        assert_eq!(waits, [0, 10, 20, 40, 80, 160, 300, 300]);
        assert_eq!(backoff(u32::MAX, Duration::ZERO), BACKOFF_MAX);
        assert_eq!(backoff(ends, BACKOFF_RESET), Duration::ZERO);
        assert_eq!(quick_ends(ends, BACKOFF_RESET), 1);
        assert_eq!(quick_ends(u32::MAX, Duration::ZERO), u32::MAX);
    }

    #[test]
    fn who_starts_anew() {
        use ContainerKind::{App, Init, Sidecar};
        use RestartPolicy::{Always, Never, OnFailure};
        let table = [
            (App, Always, [true, true]),
            (App, OnFailure, [false, true]),
            (App, Never, [false, false]),
            (Init, Always, [false, true]),
            (Init, OnFailure, [false, true]),
            (Init, Never, [false, false]),
            (Sidecar, Always, [true, true]),
            (Sidecar, OnFailure, [true, true]),
            (Sidecar, Never, [true, true]),
        ];
        for (kind, policy, after) in table {
            let got = [true, false].map(|success| should_restart(policy, kind, success));
            assert_eq!(got, after, "{kind:?} {policy:?}");
        }
    }
}
