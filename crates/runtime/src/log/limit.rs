//! Records that may repeat quickly.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use thalweg_queue::clock;

use super::{Level, is_enabled, write};

/// The time between two records of one place: short enough to follow a load, and one record costs
/// no more than 0.01 % of a processor.
const INTERVAL_NS: u64 = 1_000_000_000;

/// Limits the records of one place in the code to one per second.
///
/// ```
/// use thalweg_runtime::log::{Level, Limit};
///
/// static REFUSED: Limit = Limit::new();
///
/// for request in 0..1_000 {
///     REFUSED.write(Level::Warning, "gate", format_args!("request {request} is refused"));
/// }
/// ```
#[derive(Debug)]
pub struct Limit {
    /// The time of the clock from which on a record may be written.
    next: AtomicU64,
    left_out: AtomicU64,
}

impl Limit {
    /// A place that has written no record.
    pub const fn new() -> Self {
        Self {
            next: AtomicU64::new(0),
            left_out: AtomicU64::new(0),
        }
    }

    /// Like [`write()`], at most once per second.
    #[cold]
    pub fn write(&self, level: Level, target: &'static str, message: fmt::Arguments<'_>) {
        if is_enabled(level) {
            self.write_if_due(clock::now(), level, target, message);
        }
    }

    fn write_if_due(
        &self,
        now: u64,
        level: Level,
        target: &'static str,
        message: fmt::Arguments<'_>,
    ) {
        if !self.is_due(now) {
            self.left_out.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let left_out = LeftOut(self.left_out.swap(0, Ordering::Relaxed));
        write(level, target, format_args!("{message}{left_out}"));
    }

    /// Whether a record may be written now. Of several threads, one succeeds.
    fn is_due(&self, now: u64) -> bool {
        let next = self.next.load(Ordering::Relaxed);
        now >= next
            && self
                .next
                .compare_exchange(
                    next,
                    now.saturating_add(INTERVAL_NS),
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                )
                .is_ok()
    }
}

impl Default for Limit {
    fn default() -> Self {
        Self::new()
    }
}

/// The end of a record: how many before it were left out.
struct LeftOut(u64);

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => Ok(()),
            1 => f.write_str(" (one more since the last record)"),
            more => write!(f, " ({more} more since the last record)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{INTERVAL_NS, LeftOut, Limit};

    #[test]
    fn second_record_within_a_second_is_not_due() {
        let limit = Limit::new();
        assert!(limit.is_due(5));
        assert!(!limit.is_due(5));
        assert!(!limit.is_due(4 + INTERVAL_NS));
        assert!(limit.is_due(5 + INTERVAL_NS));
    }

    #[test]
    fn number_of_records_left_out_is_in_the_text() {
        let texts = [0, 1, 2].map(|more| LeftOut(more).to_string());
        assert_eq!(texts[0], "");
        assert_eq!(texts[1], " (one more since the last record)");
        assert_eq!(texts[2], " (2 more since the last record)");
    }
}
