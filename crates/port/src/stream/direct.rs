//! The direct tier: the only writer of a stream calls its callback for each record, under a lease
//! of the callback (`lease`).
//!
//! The record is written into a segment that is in no queue, and the next one overwrites it. There
//! is no lock and no counted reference. Whatever else needs the callback or the queue's order, such
//! as another writer, a control record, a second reader, or the end of the stream, revokes the
//! lease. The writer then continues as any writer of a stream with a callback, until it finds the
//! stream empty again.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::package::Overflow;
use crate::stream::callback::{CallbackEvent, call, current_runner};
use crate::stream::core::{StreamCore, lock};
use crate::stream::counts::Gap;
use crate::stream::pool;
use crate::stream::queue::Queue;
use crate::stream::receiving::OpenBatch;
use crate::stream::segment::{Segment, SegmentWriter};
use crate::stream::sending::WriterState;
use crate::stream::waking::CALLBACK;

/// The state of a writer that holds the lease.
#[derive(Debug)]
pub(super) struct Direct {
    /// The current record, for the callback.
    batch: OpenBatch,
    /// All bytes of the slot are 0, so that a reserved record does not have to clear it.
    pub(super) is_slot_clear: bool,
}

impl StreamCore {
    /// Takes the lease if the writer is the only one, no record waits, and no gap is to be
    /// reported.
    #[cold]
    pub(super) fn try_lease(&self, writer: &mut WriterState) {
        let mode = self.wake_mode.load(Ordering::Relaxed);
        let alone = mode == CALLBACK && self.writers.load(Ordering::Relaxed) == 1;
        let one_by_one = matches!(
            self.options.overflow,
            Overflow::Latest | Overflow::Conflate(_)
        );
        if !alone || one_by_one || self.conversion.get().is_some() || writer.gap.lost > 0 {
            return;
        }
        let mut queue = lock(&self.queue);
        if self.has_ended.load(Ordering::Acquire) || queue.has_records() || queue.has_gap() {
            return;
        }
        let Some((open, segment)) = self.unqueued_segment(&mut queue) else {
            return;
        };
        let sequence = queue.sequence;
        if !queue.callback.lend(&self.lease, &segment, sequence) {
            return queue.spare.push(segment);
        }
        self.flush_segment(&mut queue, writer);
        // No writer waits: there is no other one.
        drop(queue.free_read_segments());
        writer.open = open;
        writer.direct = Some(Direct {
            batch: OpenBatch::of_one(segment),
            is_slot_clear: false,
        });
    }

    /// A segment of the standard size.
    fn unqueued_segment(&self, queue: &mut Queue) -> Option<(SegmentWriter, Arc<Segment>)> {
        let (slots, tails) = (self.slots, self.tails());
        queue
            .take_spare()
            .or_else(|| pool::take(self.stride, slots, tails))
            .or_else(|| Segment::new(self.stride, slots, tails).map(SegmentWriter::new))
    }

    /// Passes the record in the writer's slot to the callback, or puts it into the queue if the lease
    /// was revoked. `end` is the end of its tails.
    #[inline(never)]
    pub(super) fn send_direct(self: &Arc<Self>, writer: &mut WriterState, end: u32) {
        let Some(direct) = &mut writer.direct else {
            return;
        };
        if !self.lease.enter(current_runner()) {
            return self.queue_direct(writer, end, 1);
        }
        direct.is_slot_clear = false;
        direct.batch.end = end;
        direct.batch.first_sequence = self.lease.count();
        let event = CallbackEvent::Records(&direct.batch);
        // SAFETY: the lease was entered. A callback that writes into its own stream has another
        // writer, which has no lease.
        let flow = unsafe { self.lease.with(|callback| call(callback, event)) };
        let is_over = flow.is_some_and(|flow| flow.is_break());
        if !self.lease.leave() || is_over {
            self.end_lease_after_call(writer, is_over);
        }
    }

    /// Ends a lease that was revoked during a call, or whose callback is not to be called again.
    #[cold]
    #[inline(never)]
    fn end_lease_after_call(&self, writer: &mut WriterState, is_over: bool) {
        if is_over {
            self.close();
        }
        self.end_lease(writer);
    }

    /// Puts the writer's segment with its record into the queue.
    #[cold]
    #[inline(never)]
    pub(super) fn queue_direct(self: &Arc<Self>, writer: &mut WriterState, end: u32, batch: u32) {
        writer.direct = None;
        {
            let mut queue = lock(&self.queue);
            self.return_lease(&mut queue);
            let gap = std::mem::take(&mut writer.gap);
            let open = &mut writer.open;
            queue.push(open.segment(), writer.number, gap);
            open.add_record(end);
            open.announce();
            if open.pending() >= batch {
                open.commit();
            }
        }
        self.wake_readers();
    }

    /// Ends the writer's lease, if it has one. The record in its segment, if any, was delivered.
    #[cold]
    pub(super) fn end_lease(&self, writer: &mut WriterState) {
        if writer.direct.take().is_none() {
            return;
        }
        let open = std::mem::take(&mut writer.open);
        {
            let mut queue = lock(&self.queue);
            self.return_lease(&mut queue);
            // A host may keep its memory, so that the next user checks that it has no other owner.
            queue.spare.push(open.segment());
        }
        self.deliver();
    }

    /// For the writer, which is not in a call: puts the callback back unless another thread has
    /// done so.
    fn return_lease(&self, queue: &mut Queue) {
        queue.callback.take_back(&self.lease);
        self.settle(queue);
    }

    /// Adds the records that were delivered under the lease to the counts.
    pub(super) fn settle(&self, queue: &mut Queue) {
        let sequence = self.lease.sequence();
        let before = std::mem::replace(&mut queue.callback.settled, sequence);
        queue.add_delivered(sequence - before);
    }

    /// The segment of the record that the running call of a lease has. The lease is revoked, so that
    /// the writer does not overwrite the record.
    pub(super) fn segment_of_call(&self, queue: &mut Queue) -> Option<Arc<Segment>> {
        self.revoke_lease(queue);
        queue.callback.segment_of_call()
    }

    /// Revokes the lease, if there is one. During a call, the writer then is the runner.
    pub(super) fn revoke_lease(&self, queue: &mut Queue) {
        if queue.callback.revoke(&self.lease) {
            self.settle(queue);
        }
    }
}

impl OpenBatch {
    /// A batch of one record, the first one of a segment.
    fn of_one(segment: Arc<Segment>) -> Self {
        let Gap { lost, reason } = Gap::default();
        Self {
            segment,
            from: 0,
            count: 1,
            end: 0,
            first_sequence: 0,
            lost_before: lost,
            reason,
            control: false,
            kept: false,
        }
    }
}
