//! When a value that is repaired again and again is left alone, and for how long.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// So many repairs of one value within a minute make it contested (issue 5).
const MANY: usize = 5;
const MINUTE: Duration = Duration::from_secs(60);

/// A contested value is left for a minute first, then twice as long each time, up to an hour.
const LONGEST: Duration = Duration::from_secs(3600);

/// How often a value was repaired.
#[derive(Debug, Default)]
pub(super) struct Contest {
    repairs: VecDeque<Instant>,
    /// The last pause, and when it ends or ended.
    pause: Option<(Duration, Instant)>,
}

impl Contest {
    /// Counts a repair. A pause, if from now on it is left alone for so long.
    pub fn repaired(&mut self, now: Instant) -> Option<Duration> {
        let quiet = |(pause, end): (Duration, Instant)| now.saturating_duration_since(end) > pause;
        if self.pause.is_some_and(quiet) {
            *self = Self::default();
        }
        let recent = |at: &Instant| now.saturating_duration_since(*at) <= MINUTE;
        self.repairs.retain(recent);
        self.repairs.push_back(now);
        // After a pause one more is enough: the first repair only tries.
        let many = if self.pause.is_some() { 2 } else { MANY };
        if self.repairs.len() < many {
            return None;
        }
        self.repairs.clear();
        let pause = self
            .pause
            .map_or(MINUTE, |(pause, _)| pause.saturating_mul(2).min(LONGEST));
        self.pause = Some((pause, now.checked_add(pause).unwrap_or(now)));
        Some(pause)
    }

    pub fn is_left_alone(&self, now: Instant) -> bool {
        self.pause.is_some_and(|(_, end)| now < end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_changed_five_times_a_minute_is_left_alone_longer_and_longer() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut contest = Contest::default();
        // Once in 20 s, for as long as it likes.
        for round in 0..100 {
            assert_eq!(contest.repaired(at(round * 20)), None);
        }
        let mut contest = Contest::default();
        let answers: Vec<_> = (0..5).map(|second| contest.repaired(at(second))).collect();
        assert_eq!(answers, [None, None, None, None, Some(MINUTE)]);
        assert!(contest.is_left_alone(at(63)) && !contest.is_left_alone(at(64)));
        // One try, and again: twice as long.
        assert_eq!(contest.repaired(at(64)), None);
        assert_eq!(contest.repaired(at(65)), Some(MINUTE * 2));
        // Quiet for longer than the last pause: it begins anew.
        assert_eq!(contest.repaired(at(65 + 121 + 120)), None);
        let again: Vec<_> = (310..314)
            .map(|second| contest.repaired(at(second)))
            .collect();
        assert_eq!(again, [None, None, None, Some(MINUTE)]);
    }
}
