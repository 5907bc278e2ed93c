//! The settings of node-pressure eviction, read from the configuration.

use std::time::Duration;

use super::Config;
use crate::model::eviction::{Eviction, Written};

/// A condition may stay true this long after its cause at the most.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

impl Config {
    /// When which pods are evicted.
    ///
    /// # Errors
    /// Everything that is wrong with the settings, each with what would be right.
    pub fn eviction(&self) -> Result<Eviction, Vec<String>> {
        let read = Eviction::read(&Written {
            hard: &self.eviction_hard,
            soft: &self.eviction_soft,
            soft_grace: &self.eviction_soft_grace_period,
            reclaim: &self.eviction_minimum_reclaim,
        });
        let transition = self.eviction_pressure_transition_period;
        let mut problems = Vec::new();
        if transition > LONGEST {
            problems.push(format!(
                "evictionPressureTransitionPeriod is {transition:?}: 0s to 24h is right"
            ));
        }
        match read {
            Ok(eviction) if problems.is_empty() => Ok(Eviction {
                max_pod_grace_seconds: self.eviction_max_pod_grace_period,
                transition,
                ..eviction
            }),
            Ok(_) => Err(problems),
            Err(wrong) => Err(wrong.into_iter().chain(problems).collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_keep_memory_disk_and_inodes_free() {
        let eviction = Config::default().eviction().unwrap();
        let shown: Vec<_> = eviction
            .thresholds
            .iter()
            .map(|it| format!("{}<{}", it.signal, it.least))
            .collect();
        assert_eq!(
            shown,
            [
                "memory.available<100Mi",
                "allocatableMemory.available<100Mi",
                "nodefs.available<10%",
                "nodefs.inodesFree<5%",
            ]
        );
        assert_eq!(eviction.transition, Duration::from_secs(300));
    }

    #[test]
    fn what_is_wrong_is_told_with_the_other_settings() {
        let text =
            "maxPods: 0\nevictionHard: {memory.free: 1Gi}\nevictionPressureTransitionPeriod: 25h\n";
        let error = Config::parse(text).unwrap_err().to_string();
        for part in [
            "maxPods",
            "evictionHard.memory.free",
            "evictionPressureTransitionPeriod",
        ] {
            assert!(error.contains(part), "{error}");
        }
        assert!(Config::parse("evictionMaxPodGracePeriod: -1\n").is_err());
    }
}
