//! Several readers of one stream.
//!
//! 1. An additional reader is a [`StreamCore`] of its own. It is in the list of the first stream,
//!    which is the one that the writers use. The list, and pushes into the readers' queues, are
//!    changed only under the lock of the first queue. The lock of an additional reader is taken
//!    while that lock is held, never in the other order.
//! 2. A writer pushes a segment into the queue of each reader with capacity. If one has none,
//!    `block` waits and `fail` refuses, and no queue receives the segment. The other policies drop
//!    records for that reader alone: its own oldest segment, or else the whole new segment.
//! 3. A reader that is dropped frees its queue. The writers see the stream as closed when the last
//!    reader is dropped.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;

use thalweg_queue::WakerList;

use crate::code::{Code, Failure};
use crate::stream::core::{StreamCore, lock};
use crate::stream::counts::{Gap, Reason};
use crate::stream::queue::Queue;
use crate::stream::segment::Segment;
use crate::stream::sending::WriterState;
use crate::stream::waking::MANY_READERS;

/// A reader that does not receive the writer's open segment, and why. `None` is the first reader.
pub(super) type SkippedReader = (Option<Arc<StreamCore>>, Reason);

impl StreamCore {
    /// Creates an additional reader. It begins with the records that are written from now on.
    ///
    /// # Errors
    /// `stale`: this reader is closed.
    pub fn tee(self: &Arc<Self>) -> Result<Arc<Self>, Failure> {
        if self.closed.load(Ordering::Acquire) {
            return Err(Code::Stale.because("the stream is closed"));
        }
        let source = match &self.source {
            None => Some(Arc::clone(self)),
            Some(source) => source.upgrade(),
        };
        // The first reader and all writers are gone, so this reader provides the outcome.
        let first = source.unwrap_or_else(|| Arc::clone(self));
        let weak = Some(Arc::downgrade(&first));
        let tee = Self::build(Arc::clone(&first.owner), first.stride, first.options, weak);
        if let Some(conversion) = self.conversion.get() {
            let _ = tee.conversion.set(Arc::clone(conversion));
        }
        {
            let mut queue = lock(&first.queue);
            first.revoke_lease(&mut queue);
            queue.shared = true;
            let tees = first.tees();
            let mut started = lock(&tee.queue);
            started.entries.extend(queue.unsealed_entries());
            for other in tees.iter() {
                for entry in lock(&other.queue).unsealed_entries() {
                    if !started.has_segment(&entry.segment) {
                        started.entries.push_back(entry);
                    }
                }
            }
            drop(started);
            let all = tees.iter().cloned().chain([Arc::clone(&tee)]);
            first.set_tees(all.collect());
            first.wake_mode.fetch_or(MANY_READERS, Ordering::Relaxed);
        }
        // From here on every writer sees the changed word.
        tee.gate.arm_heavy(Waker::noop().clone());
        tee.gate.disarm();
        if first.has_ended.load(Ordering::Acquire)
            && let Some(outcome) = first.outcome.get()
        {
            tee.end_with(outcome.clone());
        }
        Ok(tee)
    }

    /// Rule 3, for a closed reader.
    pub(super) fn leave_tee(&self) {
        let Some(source) = &self.source else {
            let waiters = {
                let mut queue = lock(&self.queue);
                self.settle(&mut queue);
                if self.tees().is_empty() {
                    None
                } else {
                    Some(queue.detach())
                }
            };
            match waiters {
                Some(waiters) => waiters.wake(),
                None => self.wake_all_at_end(),
            }
            return;
        };
        let mut is_last = false;
        let first = source.upgrade();
        if let Some(first) = &first {
            let _queue = lock(&first.queue);
            let tees = first.tees();
            let left = tees
                .iter()
                .filter(|tee| !std::ptr::eq(&raw const ***tee, self));
            let left: Arc<[_]> = left.cloned().collect();
            is_last = left.is_empty() && first.closed.load(Ordering::Acquire);
            first.set_tees(left);
        }
        // A writer that waits for this reader checks again, and must no longer find it in the list.
        self.wake_all_at_end();
        if let Some(first) = first
            && is_last
        {
            first.wake_all_at_end();
        }
    }

    /// Rule 2, for all readers together: `Ready` if at least one has capacity. The readers without
    /// capacity are recorded as skipped.
    pub(super) fn admit_for_all(
        &self,
        queue: &mut Queue,
        writer: &mut WriterState,
        waker: Option<&Waker>,
        wakes: &mut WakerList,
    ) -> Admission {
        let (mut skipped, mut full, mut present) = (Vec::new(), false, false);
        let mut check = |queue: &mut Queue, reader| match self.admit(queue, writer.number) {
            Admission::Ready => present = true,
            Admission::Dropped(reason) => skipped.push((reader, reason)),
            Admission::Full => {
                full = true;
                if let Some(waker) = waker {
                    queue.add_waiter(waker.clone());
                }
            }
        };
        if !self.closed.load(Ordering::Acquire) {
            check(queue, None);
        }
        for tee in self.tees().iter() {
            let mut queue = lock(&tee.queue);
            wakes.extend(queue.free_read_segments());
            if queue.segments_in_use() * 2 >= self.max_segments {
                wakes.extend(queue.lingering_reader.take());
            }
            check(&mut queue, Some(Arc::clone(tee)));
        }
        match skipped.first() {
            _ if full => Admission::Full,
            Some((_, reason)) if !present => {
                let reason = *reason;
                for (reader, reason) in skipped {
                    let gap = Gap::new(1, reason);
                    with_queue(queue, reader.as_ref(), |queue| queue.lose(gap));
                }
                Admission::Dropped(reason)
            }
            _ => {
                writer.skipped = skipped;
                Admission::Ready
            }
        }
    }

    /// Pushes the writer's new segment into the queues of all readers that are not skipped.
    pub(super) fn push_for_all(
        &self,
        queue: &mut Queue,
        writer: &mut WriterState,
        segment: &Arc<Segment>,
    ) {
        let gap = std::mem::take(&mut writer.gap);
        for (reader, _) in &writer.skipped {
            with_queue(queue, reader.as_ref(), |queue| queue.last_gap.add(gap));
        }
        let is_skipped = |reader: Option<&Arc<Self>>| {
            let mut skipped = writer.skipped.iter();
            skipped.any(|(other, _)| other.as_ref().map(Arc::as_ptr) == reader.map(Arc::as_ptr))
        };
        if !is_skipped(None) && !self.closed.load(Ordering::Acquire) {
            queue.push(Arc::clone(segment), writer.number, gap);
        }
        for tee in self.tees().iter() {
            if !is_skipped(Some(tee)) {
                lock(&tee.queue).push(Arc::clone(segment), writer.number, gap);
            }
        }
    }

    /// Whether all readers have capacity. Those without will wake `waker`.
    pub(super) fn all_ready(
        &self,
        queue: &mut Queue,
        waker: Option<&Waker>,
        ready: impl Fn(&mut Queue) -> bool,
    ) -> bool {
        let mut have = true;
        self.for_all(queue, |queue| {
            if !ready(queue) {
                have = false;
                if let Some(waker) = waker {
                    queue.stats.waits += 1;
                    queue.add_waiter(waker.clone());
                }
            }
        });
        have
    }

    /// Calls `f` with the queue of each remaining reader. The caller holds the lock of the first
    /// queue.
    pub(super) fn for_all(&self, queue: &mut Queue, mut f: impl FnMut(&mut Queue)) {
        if !self.closed.load(Ordering::Acquire) {
            f(queue);
        }
        for tee in self.tees().iter() {
            f(&mut lock(&tee.queue));
        }
    }

    /// Counts the records of a sealed segment as missing for these readers.
    pub(super) fn lose_for(&self, queue: &mut Queue, skipped: Vec<SkippedReader>, records: u64) {
        for (reader, reason) in skipped {
            with_queue(queue, reader.as_ref(), |queue| {
                queue.lose_at_end(Gap::new(records, reason))
            });
        }
    }
}

/// Calls `what` with the queue of a reader. `None` is the first reader, whose lock the caller
/// holds.
fn with_queue(first: &mut Queue, reader: Option<&Arc<StreamCore>>, f: impl FnOnce(&mut Queue)) {
    match reader {
        None => f(first),
        Some(tee) => f(&mut lock(&tee.queue)),
    }
}

/// Whether a reader accepts a new segment of a writer.
pub(super) enum Admission {
    Ready,
    /// Not now; the writer may wait.
    Full,
    /// The records are dropped for this reader.
    Dropped(Reason),
}
