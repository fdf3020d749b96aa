//! The counters of a worker.
//!
//! 1. A counter has one writer, its worker, which increments it with two plain instructions or one.
//!    Another thread that reads it may get a slightly outdated value.
//! 2. Threads that are not workers of the runtime share separate counters, which they increment
//!    atomically. None of these increments is on a hot path.

mod histogram;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

pub use self::histogram::Histogram;
use self::histogram::{BUCKETS, bucket};

#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Rule 1.
    #[inline(always)]
    pub(crate) fn add(&self, more: u64) {
        let count = self.0.load(Ordering::Relaxed);
        self.0.store(count.wrapping_add(more), Ordering::Relaxed);
    }

    /// Rule 2.
    pub(crate) fn add_shared(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The kinds of exit reasons, as in [`ExitReason::kind`](crate::ExitReason::kind).
const REASONS: [&str; 8] = [
    "normal", "shutdown", "killed", "panic", "error", "no_actor", "no_stack", "stopped",
];

#[derive(Debug, Default)]
pub(crate) struct EndCounters([Counter; REASONS.len()]);

impl EndCounters {
    /// Returns the counter of a kind of reason. `None` is a normal end.
    #[inline(always)]
    pub(crate) fn of(&self, kind: Option<&'static str>) -> &Counter {
        let index = kind.map_or(0, index_of);
        &self.0[index]
    }

    fn read(&self) -> BTreeMap<&'static str, u64> {
        let counts = self.0.iter().map(Counter::get);
        REASONS.into_iter().zip(counts).collect()
    }
}

#[cold]
fn index_of(kind: &'static str) -> usize {
    let index = REASONS.iter().position(|known| *known == kind);
    index.expect("all kinds are listed")
}

macro_rules! counts {
    ($($(#[$doc:meta])* $field:ident,)*) => {
        /// The counters of one worker, or of all other threads.
        #[derive(Debug, Default)]
        pub(crate) struct CounterSet {
            $($(#[$doc])* pub(crate) $field: Counter,)*
            pub(crate) ended_stacks: EndCounters,
            pub(crate) ended_behaviours: EndCounters,
            slices_by_length: [Counter; BUCKETS],
            nanoseconds: Counter,
        }

        /// The values of the counters of one worker, or of all other threads, since the runtime was
        /// started.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Counters {
            $($(#[$doc])* pub $field: u64,)*
            /// Actors with a stack that ended, by the [kind](crate::ExitReason::kind) of reason.
            /// Includes actors that never started.
            pub ended_stacks: BTreeMap<&'static str, u64>,
            /// Incarnations of behaviour actors that ended.
            pub ended_behaviours: BTreeMap<&'static str, u64>,
        }

        impl CounterSet {
            pub(crate) fn read(&self) -> Counters {
                Counters {
                    // Ends are read first, so that they do not exceed the starts.
                    ended_stacks: self.ended_stacks.read(),
                    ended_behaviours: self.ended_behaviours.read(),
                    $($field: self.$field.get(),)*
                }
            }
        }

        impl std::ops::AddAssign<&Self> for Counters {
            fn add_assign(&mut self, other: &Self) {
                $(self.$field += other.$field;)*
                for (mine, theirs) in [
                    (&mut self.ended_stacks, &other.ended_stacks),
                    (&mut self.ended_behaviours, &other.ended_behaviours),
                ] {
                    for (kind, count) in theirs {
                        *mine.entry(kind).or_default() += count;
                    }
                }
            }
        }
    };
}

counts! {
    /// Actors with a stack that were spawned.
    started_stacks,
    /// Incarnations of behaviour actors that were started.
    started_behaviours,
    /// Messages that behaviour actors handled, including those during which they ended.
    messages,
    /// Messages that were dropped because a mailbox was full.
    dropped_messages,
    /// Children that supervisors restarted.
    restarts,
    /// How often an actor, or a turn of one, got the worker.
    slices,
    /// How often an actor was suspended to wait.
    waits,
    /// Actors that were woken by a thread other than their worker.
    remote_wakes,
    /// Actors that were woken by a deadline.
    deadlines,
    /// How often a worker without work stole from another worker.
    steals,
    /// How often a worker found no work and went to sleep.
    sleeps,
}

impl CounterSet {
    /// Records that an actor had its worker for this time.
    pub(crate) fn add_slice(&self, ns: u64) {
        self.slices_by_length[bucket(ns)].add(1);
        self.nanoseconds.add(ns);
    }

    pub(crate) fn read_slices_into(&self, histogram: &mut Histogram) {
        let counts = self.slices_by_length.iter().map(Counter::get);
        histogram.add(counts, self.nanoseconds.get());
    }
}

#[cfg(test)]
mod tests {
    use super::{EndCounters, REASONS};
    use crate::reason::ExitReason;

    #[test]
    fn ends_are_counted_by_the_kind_of_reason() {
        let ends = EndCounters::default();
        ends.of(None).add(1);
        for reason in [
            ExitReason::Normal,
            ExitReason::Shutdown,
            ExitReason::Killed,
            ExitReason::from("an error"),
            ExitReason::NoActor,
            ExitReason::Stopped,
        ] {
            ends.of(Some(reason.kind())).add(1);
        }
        let counts = ends.read();
        assert_eq!(counts.len(), REASONS.len());
        assert_eq!((counts["normal"], counts["killed"]), (2, 1));
        assert_eq!((counts["panic"], counts["no_stack"]), (0, 0));
        assert_eq!(counts.values().sum::<u64>(), 7);
    }
}
