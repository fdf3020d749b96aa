//! The memory of a batch, kept beyond the batch: for arrays over it that outlive a loop's turn.

use std::sync::{Arc, Weak};

use crate::code::{Code, Failure};
use crate::stream::core::{StreamCore, lock};
use crate::stream::segment::Segment;

/// Keeps what the batch showed as it was, after the batch and the stream. What is kept takes no credit: it is the host's memory,
/// and a host that keeps everything has everything.
#[derive(Debug)]
pub struct Kept {
    /// `None` only while it is dropped.
    segment: Option<Arc<Segment>>,
    stream: Weak<StreamCore>,
}

impl StreamCore {
    /// Keeps the memory of the open batch. A batch can be kept more than once.
    ///
    /// # Errors
    /// `argument`: no batch is open.
    pub fn keep(self: &Arc<Self>) -> Result<Kept, Failure> {
        match &mut lock(&self.queue).open {
            Some(open) => {
                open.kept = true;
                Ok(Kept {
                    segment: Some(Arc::clone(&open.segment)),
                    stream: Arc::downgrade(self),
                })
            }
            None => Err(Code::Argument.because("no batch is open")),
        }
    }
}

impl Drop for Kept {
    /// The last one gives the memory back to the stream, which uses it again.
    fn drop(&mut self) {
        let (Some(segment), Some(stream)) = (self.segment.take(), self.stream.upgrade()) else {
            return;
        };
        let mut queue = lock(&stream.queue);
        // Nobody else: it is neither in the queue nor among the spare ones, which had it while it was kept.
        let alone = Arc::strong_count(&segment) == 1;
        if alone && queue.spare.len() < stream.most && queue.is_usual(&segment) {
            queue.spare.push(segment);
        } else {
            // Under the lock: of two that end at the same time, the second one sees that it is alone.
            drop(segment);
        }
    }
}
