//! What each worker counts as it goes.
//!
//! 1. A counter has one writer, its worker, which reads it and writes one more: two plain instructions, or one. Whoever else reads it gets what it was a moment ago.
//! 2. What threads do that are no workers of the runtime is in counters of its own, with an atomic operation each. None of that is on a hot path.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use super::histogram::{BUCKETS, Histogram, bucket};
use crate::exit::ExitReason;

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
    pub(crate) fn add_as_one_of_many(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The kinds of reasons, as [`ExitReason::kind`] says them.
const REASONS: [&str; 8] = [
    "normal", "shutdown", "killed", "panic", "error", "no_actor", "no_stack", "stopped",
];

#[derive(Debug, Default)]
pub(crate) struct Ends([Counter; REASONS.len()]);

impl Ends {
    /// `None`: normally.
    #[inline(always)]
    pub(crate) fn of(&self, how: Option<&ExitReason>) -> &Counter {
        let place = how.map_or(0, place);
        &self.0[place]
    }

    fn read(&self) -> BTreeMap<&'static str, u64> {
        let counts = self.0.iter().map(Counter::get);
        REASONS.into_iter().zip(counts).collect()
    }
}

#[cold]
fn place(reason: &ExitReason) -> usize {
    let kind = reason.kind();
    let place = REASONS.iter().position(|known| *known == kind);
    place.expect("all kinds are here")
}

macro_rules! counts {
    ($($(#[$doc:meta])* $field:ident,)*) => {
        /// What one worker counts, or all other threads.
        #[derive(Debug, Default)]
        pub(crate) struct Counts {
            $($(#[$doc])* pub(crate) $field: Counter,)*
            pub(crate) ended_stacks: Ends,
            pub(crate) ended_behaviours: Ends,
            slices_by_length: [Counter; BUCKETS],
            nanoseconds: Counter,
        }

        /// What was counted since the runtime began, by one worker or by all other threads.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Counted {
            $($(#[$doc])* pub $field: u64,)*
            /// Actors with a stack that ended, by the [kind](ExitReason::kind) of reason; those too that never began.
            pub ended_stacks: BTreeMap<&'static str, u64>,
            /// Incarnations of behaviour actors that ended.
            pub ended_behaviours: BTreeMap<&'static str, u64>,
        }

        impl Counts {
            pub(crate) fn read(&self) -> Counted {
                Counted {
                    // Ends first: what began is not less then.
                    ended_stacks: self.ended_stacks.read(),
                    ended_behaviours: self.ended_behaviours.read(),
                    $($field: self.$field.get(),)*
                }
            }
        }

        impl std::ops::AddAssign<&Self> for Counted {
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
    /// Incarnations of behaviour actors that were begun.
    started_behaviours,
    /// Messages that behaviour actors have handled, or ended in.
    messages,
    /// Messages that found a mailbox full and were dropped.
    dropped_messages,
    /// Children that supervisors started again.
    restarts,
    /// How often an actor, or a turn of one, was given its worker.
    slices,
    /// How often an actor was put aside until it is woken.
    waits,
    /// Actors that others than their worker woke.
    wakes_from_afar,
    /// Actors whose deadline was what woke them.
    deadlines,
    /// How often a worker without work took some of another one's.
    steals,
    /// How often a worker found nothing to do, and went to sleep.
    sleeps,
}

impl Counts {
    /// An actor had its worker for so long.
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
    use super::{Ends, REASONS};
    use crate::exit::ExitReason;

    #[test]
    fn each_end_is_counted_by_its_kind() {
        let ends = Ends::default();
        ends.of(None).add(1);
        for reason in [
            ExitReason::Normal,
            ExitReason::Shutdown,
            ExitReason::Killed,
            ExitReason::from("an error"),
            ExitReason::NoActor,
            ExitReason::Stopped,
        ] {
            ends.of(Some(&reason)).add(1);
        }
        let counts = ends.read();
        assert_eq!(counts.len(), REASONS.len());
        assert_eq!((counts["normal"], counts["killed"]), (2, 1));
        assert_eq!((counts["panic"], counts["no_stack"]), (0, 0));
        assert_eq!(counts.values().sum::<u64>(), 7);
    }
}
