//! Intensity and period: how many restarts are too many.

use std::collections::VecDeque;
use std::time::Duration;

#[derive(Debug)]
pub(super) struct Restarts {
    /// `None`: there are never too many.
    most: Option<u32>,
    period: u64,
    /// When they were, oldest first, those within the period.
    times: VecDeque<u64>,
}

impl Restarts {
    pub(super) fn new(most: Option<u32>, period: Duration) -> Self {
        Self {
            most,
            period: u64::try_from(period.as_nanos()).unwrap_or(u64::MAX),
            times: VecDeque::new(),
        }
    }

    /// One more. `false`: it is one too many.
    pub(super) fn add(&mut self, now: u64) -> bool {
        let Some(most) = self.most else {
            return true;
        };
        let since = now.saturating_sub(self.period);
        while self.times.front().is_some_and(|time| *time < since) {
            self.times.pop_front();
        }
        self.times.push_back(now);
        self.times.len() <= most as usize
    }
}

#[cfg(test)]
mod tests {
    use super::Restarts;
    use std::time::Duration;

    #[test]
    fn the_one_after_the_most_within_the_period_is_too_many() {
        let mut restarts = Restarts::new(Some(2), Duration::from_nanos(10));
        assert!(restarts.add(100) && restarts.add(105));
        assert!(!restarts.add(110));
        let mut restarts = Restarts::new(Some(2), Duration::from_nanos(10));
        assert!(restarts.add(100) && restarts.add(105) && restarts.add(111));
        assert!(!Restarts::new(Some(0), Duration::from_secs(5)).add(1));
        assert!((0..100).all(|_| Restarts::new(None, Duration::ZERO).add(1)));
    }
}
