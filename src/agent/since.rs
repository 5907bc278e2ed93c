//! How long ago something was, by a clock that nobody sets.
//!
//! The wall clock may jump by years either way, when a machine without a battery hears of the time at last.
//! What ends pods must never be counted by it where another clock can tell.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::record::{Active, Deletion};

/// Milliseconds since the machine was started.
pub(super) fn uptime_millis() -> u64 {
    millis(crate::observation::machine::uptime())
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The time since then as the wall clock has it; none where that is still to come.
pub(super) fn by_the_wall(since: Timestamp) -> Duration {
    let passed = Timestamp::now().duration_since(since);
    Duration::try_from(passed.max(SignedDuration::ZERO)).unwrap_or_default()
}

impl Deletion {
    /// One that begins now.
    pub fn now(grace_seconds: u64) -> Self {
        Self {
            requested_at: Timestamp::now(),
            grace_seconds,
            uptime_millis: Some(uptime_millis()),
        }
    }

    /// Gives one of an earlier version, which has the wall's time alone, a place on the other clock: at most
    /// its grace period ago.
    pub fn date(&mut self, uptime: u64) {
        let grace = Duration::from_secs(self.grace_seconds);
        let passed = millis(by_the_wall(self.requested_at).min(grace));
        self.uptime_millis
            .get_or_insert(uptime.saturating_sub(passed));
    }

    /// What is left of its grace period.
    pub fn left(&self, uptime: u64) -> Duration {
        let began = self.uptime_millis.unwrap_or(uptime);
        let passed = Duration::from_millis(uptime.saturating_sub(began));
        Duration::from_secs(self.grace_seconds).saturating_sub(passed)
    }
}

impl Active {
    /// Counts on from here. Only the wall clock knows what was before, in another boot or another version.
    pub fn begin(started_at: Timestamp, boot_id: &str, uptime: u64) -> Self {
        Self {
            boot_id: boot_id.to_owned(),
            uptime_millis: uptime,
            before_millis: millis(by_the_wall(started_at)),
        }
    }

    /// What is left of so many seconds.
    pub fn left(&self, seconds: u64, uptime: u64) -> Duration {
        let here = uptime.saturating_sub(self.uptime_millis);
        let passed = Duration::from_millis(self.before_millis.saturating_add(here));
        Duration::from_secs(seconds).saturating_sub(passed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn a_grace_period_is_as_long_as_it_is_whatever_the_date() {
        for date in ["1970-01-01T00:00:00Z", "9000-01-01T00:00:00Z"] {
            let mut deletion = Deletion {
                requested_at: at(date),
                grace_seconds: 30,
                uptime_millis: Some(50_000),
            };
            deletion.date(60_000);
            for (uptime, left) in [
                (50_000, 30),
                (60_000, 20),
                (80_000, 0),
                (u64::MAX, 0),
                (0, 30),
            ] {
                assert_eq!(
                    deletion.left(uptime),
                    Duration::from_secs(left),
                    "{date} {uptime}"
                );
            }
        }
    }

    /// Of an earlier version: it had its time, or has all of it, but not more.
    #[test]
    fn a_deletion_without_the_other_clock_gets_one() {
        for (date, left) in [("1970-01-01T00:00:00Z", 0), ("9000-01-01T00:00:00Z", 30)] {
            let mut deletion = Deletion {
                requested_at: at(date),
                grace_seconds: 30,
                uptime_millis: None,
            };
            deletion.date(60_000);
            assert_eq!(deletion.left(60_000), Duration::from_secs(left), "{date}");
            assert_eq!(deletion.left(90_000), Duration::ZERO, "{date}");
        }
    }

    #[test]
    fn a_deadline_counts_on_from_what_was_before() {
        let active = Active::begin(at("9000-01-01T00:00:00Z"), "boot", 1000);
        assert_eq!(active.left(10, 1000), Duration::from_secs(10));
        assert_eq!(active.left(10, 5000), Duration::from_secs(6));
        assert_eq!(active.left(10, 20_000), Duration::ZERO);
        let active = Active {
            before_millis: 3000,
            ..active
        };
        assert_eq!(active.left(10, 5000), Duration::from_secs(3));
        let active = Active::begin(Timestamp::UNIX_EPOCH, "boot", 1000);
        assert_eq!(active.left(10, 1000), Duration::ZERO);
    }
}
