//! The restart intensity: the maximum number of restarts within a period.

use std::collections::VecDeque;
use std::time::Duration;

#[derive(Debug)]
pub(super) struct RestartIntensity {
    /// `None`: unlimited.
    max: Option<u32>,
    period: u64,
    /// The times of the restarts within the period, oldest first.
    times: VecDeque<u64>,
}

impl RestartIntensity {
    pub(super) fn new(max: Option<u32>, period: Duration) -> Self {
        Self {
            max,
            period: u64::try_from(period.as_nanos()).unwrap_or(u64::MAX),
            times: VecDeque::new(),
        }
    }

    /// Counts a restart. `false`: the maximum is exceeded.
    pub(super) fn add(&mut self, now: u64) -> bool {
        let Some(max) = self.max else {
            return true;
        };
        let since = now.saturating_sub(self.period);
        while self.times.front().is_some_and(|time| *time < since) {
            self.times.pop_front();
        }
        self.times.push_back(now);
        self.times.len() <= max as usize
    }
}

#[cfg(test)]
mod tests {
    use super::RestartIntensity;
    use std::time::Duration;

    #[test]
    fn restart_beyond_the_intensity_is_refused() {
        let mut restarts = RestartIntensity::new(Some(2), Duration::from_nanos(10));
        assert!(restarts.add(100) && restarts.add(105));
        assert!(!restarts.add(110));
        let mut restarts = RestartIntensity::new(Some(2), Duration::from_nanos(10));
        assert!(restarts.add(100) && restarts.add(105) && restarts.add(111));
        assert!(!RestartIntensity::new(Some(0), Duration::from_secs(5)).add(1));
        assert!((0..100).all(|_| RestartIntensity::new(None, Duration::ZERO).add(1)));
    }
}
