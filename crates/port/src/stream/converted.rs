//! Batches for a reader with another version of the package: copies in its layout.
//!
//! A copy contains as many records as fit into the size limit of one record. It has its own
//! segment, which becomes the open batch; the original is treated as released. Everything else
//! about batches is unchanged: several readers, callbacks, kept memory, partial release.

use std::sync::{Arc, MutexGuard};

use thalweg_wire::evolve::Conversion;
use thalweg_wire::{Bytes, NoRoom};

use crate::code::{Code, Failure};
use crate::stream::core::{StreamCore, lock};
use crate::stream::queue::Queue;
use crate::stream::receiving::OpenBatch;
use crate::stream::segment::Segment;

/// First estimate of the tail bytes per record.
const TAIL_BYTES: u32 = 64;

impl StreamCore {
    /// Sets the conversion to the reader's version. It must be called before the stream is read.
    pub(crate) fn set_conversion(&self, conversion: Conversion<'static>) {
        // A stream is part of one result only.
        let _ = self.conversion.set(Arc::new(conversion));
    }

    /// Converts the open batch, which was just taken, to the reader's version. The lock is released
    /// during the copy.
    ///
    /// # Errors
    /// `guest_lost`: the first record would be too large; the stream ends. `stale`: the stream was
    /// closed in the meantime.
    #[inline]
    pub(super) fn convert_batch(
        &self,
        batch: OpenBatch,
        mut queue: MutexGuard<'_, Queue>,
    ) -> Result<OpenBatch, Failure> {
        match self.conversion.get() {
            None => Ok(batch),
            Some(conversion) => {
                queue.converting = true;
                drop(queue);
                self.convert(conversion, &batch)
            }
        }
    }

    #[cold]
    fn convert(
        &self,
        conversion: &Conversion<'static>,
        batch: &OpenBatch,
    ) -> Result<OpenBatch, Failure> {
        let mut count = batch.count;
        loop {
            if let Ok(copy) = copy_records(conversion, batch, count, self.options.max_record_size) {
                let closed = || Code::Stale.because("the stream is closed");
                return lock(&self.queue)
                    .replace_open(copy, count)
                    .ok_or_else(closed);
            }
            if count == 1 {
                break;
            }
            // A part of the records may fit if all of them do not.
            count /= 2;
        }
        let why = "a record is too large in the version of the package that its reader knows";
        let why = Code::GuestLost.because(why);
        lock(&self.queue).converting = false;
        let _ = self.outcome.set(why.clone().into());
        self.close_unread(batch.count.into());
        Err(why)
    }
}

/// Copies the first `count` records of a batch.
fn copy_records(
    conversion: &Conversion<'static>,
    batch: &OpenBatch,
    count: u32,
    largest: u32,
) -> Result<Segment, NoRoom> {
    if conversion.stride().saturating_mul(count) > largest {
        return Err(NoRoom { needed: None });
    }
    let first = batch.first();
    // SAFETY: `Queue::take` made the batch from the segment's mark.
    let (slots, tails, tails_at) = unsafe { batch.segment.read(batch.from, count, batch.end) };
    let records = Bytes::batch(slots, first, tails, tails_at);
    let copy = |tail_bytes| {
        Segment::written(conversion.stride(), count, tail_bytes, |to| {
            conversion.records(records, first, count, to)
        })
    };
    match copy(count.saturating_mul(TAIL_BYTES)) {
        Err(NoRoom {
            needed: Some(needed),
        }) if needed <= largest => copy(needed),
        made => made,
    }
}
