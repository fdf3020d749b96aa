//! Conflation by key: the newest record of each key waits, in the order in which the keys were
//! queued.
//!
//! Each record has its own segment and is pushed into the queue under the lock, so such streams are
//! slower than others. A record whose key is already queued replaces the waiting record, which is
//! counted as conflated directly before it. A new key needs free capacity.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use thalweg_queue::clock;
use thalweg_runtime::wait;
use thalweg_wire::Bytes;

use crate::code::Failure;
use crate::package::ConflationKey;
use crate::stream::core::{StreamCore, lock};
use crate::stream::counts::{Gap, Reason};
use crate::stream::queue::Queue;
use crate::stream::segment::Segment;
use crate::stream::sending::{Sent, WriterState};

/// A waiting record.
#[derive(Debug)]
pub(super) struct ConflatedRecord {
    pub(super) segment: Arc<Segment>,
    /// The gap directly before it.
    pub(super) gap: Gap,
    /// When its key was queued.
    pub(super) since: u64,
}

/// The waiting records by key.
#[derive(Debug, Default)]
pub(super) struct ConflatedRecords {
    order: VecDeque<Arc<[u8]>>,
    by_key: HashMap<Arc<[u8]>, ConflatedRecord>,
}

impl ConflatedRecords {
    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    fn has_capacity(&self, key: &[u8], max_segments: usize) -> bool {
        self.len() < max_segments || self.by_key.contains_key(key)
    }

    /// Returns whether another record was replaced.
    fn put(&mut self, key: &[u8], segment: Arc<Segment>, gap: Gap) -> bool {
        if let Some(record) = self.by_key.get_mut(key) {
            record.gap.add(Gap::new(1, Reason::Conflated));
            record.gap.add(gap);
            record.segment = segment;
            return true;
        }
        let key: Arc<[u8]> = Arc::from(key);
        let since = clock::now();
        self.order.push_back(Arc::clone(&key));
        let record = ConflatedRecord {
            segment,
            gap,
            since,
        };
        self.by_key.insert(key, record);
        false
    }

    /// The record whose key has waited longest.
    // An event to a callback runs this and another function that is inlined in the same way. As calls
    // they cost 37 instructions together.
    #[inline(always)]
    pub(super) fn pop(&mut self) -> Option<ConflatedRecord> {
        let key = self.order.pop_front()?;
        self.by_key.remove(&key)
    }

    pub(super) fn clear(&mut self) {
        self.order.clear();
        self.by_key.clear();
    }
}

impl Queue {
    /// Queues a record.
    fn put(&mut self, key: &[u8], segment: Arc<Segment>, gap: Gap) {
        let mut before = std::mem::take(&mut self.last_gap);
        before.add(gap);
        if self.conflated.put(key, segment, before) {
            self.lose(Gap::new(1, Reason::Conflated));
        }
        self.publish(1);
        let places = self.conflated.len() as u64;
        self.stats.high_water = self.stats.high_water.max(places);
    }
}

impl StreamCore {
    /// Queues a record that the writer has written into a segment of its own.
    pub(super) fn conflate(
        &self,
        writer: &mut WriterState,
        key: ConflationKey,
        deadline: u64,
    ) -> Result<Sent, Failure> {
        let open = std::mem::take(&mut writer.open);
        let segment = open.segment();
        open.seal();
        let mut bytes = Vec::new();
        {
            // SAFETY: the segment was sealed with one record.
            let (slot, tails, tails_at) = unsafe { segment.read(0, 1, segment.mark().1) };
            (key.0)(Bytes::batch(slot, 0, tails, tails_at), 0, &mut bytes);
        }
        loop {
            {
                let mut queue = lock(&self.queue);
                self.check_open()?;
                let waker = (deadline != 0).then(wait::waker);
                let has_capacity =
                    |queue: &mut Queue| queue.conflated.has_capacity(&bytes, self.max_segments);
                if self.all_ready(&mut queue, waker.as_ref(), has_capacity) {
                    let gap = std::mem::take(&mut writer.gap);
                    queue.publish(std::mem::take(&mut writer.published));
                    let put = |queue: &mut Queue| queue.put(&bytes, Arc::clone(&segment), gap);
                    self.for_all(&mut queue, put);
                    break;
                }
            }
            self.wake_readers();
            self.wait_for_credit(deadline)?;
        }
        self.wake_readers();
        Ok(Sent::Written)
    }
}
