//! The memory of a batch, kept beyond the batch: for arrays over it that outlive a loop's turn.

use std::sync::{Arc, Weak};

use crate::code::Failure;
use crate::stream::core::{StreamCore, lock};
use crate::stream::segment::Segment;

/// Keeps what the batch showed as it was, after the batch and the stream. What is kept takes no credit: it is the host's memory,
/// and a host that keeps everything has everything.
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
        let open = queue.open_batch()?;
        open.kept = true;
        Ok(KeptBatch {
            segment: Some(Arc::clone(&open.segment)),
            stream: Arc::downgrade(self),
        })
    }
}

impl Drop for KeptBatch {
    /// The last one gives the memory back to the stream, which uses it again.
    fn drop(&mut self) {
        let (Some(segment), Some(stream)) = (self.segment.take(), self.stream.upgrade()) else {
            return;
        };
        let mut queue = lock(&stream.queue);
        // Nobody else: it is neither in the queue nor among the spare ones, which had it while it was kept.
        let alone = Arc::strong_count(&segment) == 1;
        let is_own = segment.stride() == stream.stride && queue.has_standard_size(&segment);
        if alone && is_own && queue.spare.len() < stream.max_segments {
            queue.spare.push(segment);
        } else {
            // Under the lock: of two that end at the same time, the second one sees that it is alone.
            drop(segment);
        }
    }
}
