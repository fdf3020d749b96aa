//! The memory of a batch that a host keeps after the batch was released, for arrays that refer to
//! it.

use std::sync::{Arc, Weak};

use crate::code::Failure;
use crate::handles::{HandleObject, Kind};
use crate::stream::core::{StreamCore, lock};
use crate::stream::segment::Segment;

/// Keeps the contents of a batch unchanged after the batch and the stream are gone. Kept memory
/// uses no credit: it belongs to the host, and its size is limited only by what the host keeps.
#[derive(Debug)]
pub struct KeptBatch {
    /// `None` only while it is dropped.
    segment: Option<Arc<Segment>>,
    stream: Weak<StreamCore>,
}

impl StreamCore {
    /// Keeps the memory of the open batch. A batch can be kept more than once.
    ///
    /// # Errors
    /// `argument`: no batch is open.
    pub fn keep(self: &Arc<Self>) -> Result<KeptBatch, Failure> {
        let mut queue = lock(&self.queue);
        let segment = match self.segment_of_call(&mut queue) {
            Some(segment) => segment,
            None => {
                let open = queue.open_batch()?;
                open.kept = true;
                Arc::clone(&open.segment)
            }
        };
        Ok(KeptBatch {
            segment: Some(segment),
            stream: Arc::downgrade(self),
        })
    }
}

// SAFETY: kept batches have no other type.
unsafe impl HandleObject for KeptBatch {
    fn has_kind(kind: Kind) -> bool {
        kind == Kind::KeptBatch
    }

    /// Dropping the reference of the table is enough.
    fn close_handle(self: Arc<Self>, _: Kind, _: u32) {}
}

impl Drop for KeptBatch {
    /// The last one returns the memory to the stream for reuse.
    fn drop(&mut self) {
        let (Some(segment), Some(stream)) = (self.segment.take(), self.stream.upgrade()) else {
            return;
        };
        let mut queue = lock(&stream.queue);
        // No other owner: it is neither in the queue nor in the spare list.
        let alone = Arc::strong_count(&segment) == 1;
        let is_own = segment.stride() == stream.stride && queue.has_standard_size(&segment);
        if alone && is_own && queue.spare.len() < stream.max_segments {
            queue.spare.push(segment);
        } else {
            // Under the lock: if two are dropped at the same time, the second one sees that it is
            // the last owner.
            drop(segment);
        }
    }
}
