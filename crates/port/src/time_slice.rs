//! The time slice of a turn.

use thalweg_queue::clock;
use thalweg_runtime::wait;

/// Nanoseconds of a turn before it yields to waiting actors: a time slice of the runtime.
const SLICE_NS: u64 = 100_000;

/// Measures a turn and yields when its time slice has passed. Reading the clock costs an eighth of
/// a short call, so the clock is read at most every eight calls while calls are short.
pub(crate) struct TimeSlice {
    /// 0: the clock was not read yet.
    started_at: u64,
    check_interval: u32,
    calls_until_check: u32,
}

impl TimeSlice {
    pub(crate) fn new() -> Self {
        // Most turns have one call and do not read the clock.
        Self {
            started_at: 0,
            check_interval: 1,
            calls_until_check: 2,
        }
    }

    #[inline]
    pub(crate) fn after_call(&mut self) {
        self.calls_until_check -= 1;
        if self.calls_until_check == 0 {
            self.check();
        }
    }

    fn check(&mut self) {
        let now = clock::now();
        if self.started_at == 0 {
            self.started_at = now;
        } else if now.saturating_sub(self.started_at) < SLICE_NS {
            self.check_interval = (self.check_interval * 2).min(8);
        } else {
            wait::yield_now();
            (self.started_at, self.check_interval) = (clock::now(), 1);
        }
        self.calls_until_check = self.check_interval;
    }
}
