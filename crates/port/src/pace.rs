//! How long a turn lasts.

use thalweg_queue::clock;
use thalweg_runtime::wait;

/// Nanoseconds of a turn where others wait: a time slice of the runtime.
const SLICE_NS: u64 = 100_000;

/// When a turn has lasted so long that others are to run. A look at the clock costs as much as an eighth of a call: where the calls are fast there is one for each
/// eight.
pub(crate) struct Pace {
    /// 0: there was no look yet.
    since: u64,
    gap: u32,
    left: u32,
}

impl Pace {
    pub(crate) fn new() -> Self {
        // The most turns have one call, and look at no clock.
        Self {
            since: 0,
            gap: 1,
            left: 2,
        }
    }

    pub(crate) fn call_was_served(&mut self) {
        self.left -= 1;
        if self.left > 0 {
            return;
        }
        let now = clock::now();
        if self.since == 0 {
            self.since = now;
        } else if now.saturating_sub(self.since) < SLICE_NS {
            self.gap = (self.gap * 2).min(8);
        } else {
            wait::yield_now();
            (self.since, self.gap) = (clock::now(), 1);
        }
        self.left = self.gap;
    }
}
