//! Looks after one run of a container: its `postStart`, its startup probe, then the two others at once.
//!
//! It counts looks and tells the owner of verdicts alone; it ends nothing. Dropped, it stops at once.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::{Instant, sleep, sleep_until};

use super::Told;
use super::act::{Actor, Look};
use crate::agent::since::by_the_wall;
use crate::model::probe::{Count, Health, Probe, ProbeKind, Probes};
use crate::runtime::ProcessId;

/// A hook after the start may take so long: a day.
const MAX_HOOK: Duration = Duration::from_secs(86_400);

/// Somebody who looks after a run.
pub(super) struct Prober {
    pub actor: Actor,
    pub probes: Probes,
    /// How far the run was when an earlier agent looked last.
    pub health: Health,
    /// When it began.
    pub since: Timestamp,
    /// Its main process.
    pub process: ProcessId,
}

impl Prober {
    pub async fn look_after(self) {
        if let Some(hook) = &self.probes.post_start
            && !self.health.hooked
        {
            let done = self.actor.hook(hook, MAX_HOOK).await;
            let failed = done.is_err();
            if !self.actor.tell(Told::Hooked(done)) || failed {
                return;
            }
        }
        if let Some(probe) = &self.probes.startup
            && !self.health.started
            && !self.probe(ProbeKind::Startup, probe, None).await
        {
            return;
        }
        let liveness = async {
            if let Some(probe) = &self.probes.liveness {
                self.probe(ProbeKind::Liveness, probe, Some(true)).await;
            }
        };
        let readiness = async {
            if let Some(probe) = &self.probes.readiness {
                let ready = Some(self.health.ready);
                self.probe(ProbeKind::Readiness, probe, ready).await;
            }
        };
        tokio::join!(liveness, readiness);
    }

    /// Looks again and again until nothing more can follow: a startup probe until its verdict, which is
    /// returned, a liveness probe until it fails, a readiness probe for ever.
    async fn probe(&self, kind: ProbeKind, probe: &Probe, before: Option<bool>) -> bool {
        let mut count = Count::from(before);
        let mut errored = false;
        sleep(self.delay(probe)).await;
        loop {
            let next = Instant::now() + seconds(probe.period);
            let look = self.actor.look(&probe.action, seconds(probe.timeout)).await;
            let (success, message) = match look {
                Look::Success => (true, String::new()),
                Look::Failure(why) => (false, format!("failed: {why}")),
                Look::Errored(why) => {
                    // Nothing was seen, so nothing follows; that is said once.
                    if !std::mem::replace(&mut errored, true) {
                        let message = format!("errored: {why}");
                        self.actor.tell(Told::Failing { kind, message });
                    }
                    sleep_until(next).await;
                    continue;
                }
            };
            errored = false;
            let verdict = count.take(probe, success);
            if let Some(success) = verdict {
                let told = Told::Verdict {
                    kind,
                    success,
                    message,
                };
                let heard = self.actor.tell(told);
                if !heard || kind != ProbeKind::Readiness {
                    return success;
                }
            } else if count.just_failed() {
                self.actor.tell(Told::Failing { kind, message });
            }
            sleep_until(next).await;
        }
    }

    /// What is left of the time from the start of the run to the first look. A clock that was set back must not
    /// make it longer than it was, and one that was set forward not shorter: the process is not older than it is.
    fn delay(&self, probe: &Probe) -> Duration {
        let passed = by_the_wall(self.since).min(self.process.age());
        seconds(probe.initial_delay).saturating_sub(passed)
    }
}

fn seconds(seconds: u32) -> Duration {
    Duration::from_secs(u64::from(seconds))
}
