//! Batches for a reader of another version of the package: copies in its layout.
//!
//! A copy is no larger than one record may be, and as long as that allows. It has a segment of its own, which is the open batch from then on; what it is of may be written anew as if it were given back. So everything else
//! about batches is as ever: several readers, callbacks, kept memory, what is released in parts.

use std::sync::{Arc, MutexGuard};

use thalweg_wire::evolve::Conversion;
use thalweg_wire::{Bytes, NoRoom};

use crate::code::{Code, Failure};
use crate::stream::core::{StreamCore, lock};
use crate::stream::queue::Queue;
use crate::stream::receiving::OpenBatch;
use crate::stream::segment::Segment;

/// Bytes of tails that a record is thought to have, at first.
const TAIL_BYTES: u32 = 64;

impl StreamCore {
    /// Who reads it knows its records otherwise. To be said before it is read.
    pub(crate) fn set_conversion(&self, conversion: Conversion<'static>) {
        // A stream stands in one result.
        let _ = self.conversion.set(Arc::new(conversion));
    }

    /// The open batch, which was just taken, as its reader knows it. It is copied without the lock.
    ///
    /// # Errors
    /// `guest_lost`: its first record would become too large; the stream is over. `stale`: it was closed meanwhile.
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
            if let Ok(copy) = copy_records(conversion, batch, count, self.options.largest_record) {
                let closed = || Code::Stale.because("the stream is closed");
                return lock(&self.queue)
                    .replace_open(copy, count)
                    .ok_or_else(closed);
            }
            if count == 1 {
                break;
            }
            // Each may have room where all together have not.
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

/// The first `count` records of a batch.
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
