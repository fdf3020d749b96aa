//! A lane that frees its memory when its last owner drops it.

use super::{Lane, Reader, Writer};
use crate::sync::UnsafeCell;

/// A lane that frees its memory when its last owner drops it.
pub(crate) struct OwnedLane<T> {
    lane: Lane<T>,
    /// The reader's half, after the reader is gone.
    reader: UnsafeCell<Option<Reader>>,
}

// SAFETY: `reader` is written once, when the reader goes, and read when nobody else has the lane.
unsafe impl<T: Send> Sync for OwnedLane<T> {}

impl<T> OwnedLane<T> {
    /// Wraps a lane and returns its two halves.
    pub(crate) fn new(lane: Lane<T>) -> (Self, Writer, Reader) {
        let (writer, reader) = lane.halves();
        let returned = UnsafeCell::new(None);
        (
            Self {
                lane,
                reader: returned,
            },
            writer,
            reader,
        )
    }

    /// Returns the reader's half. Values that remain in the lane are dropped with it.
    ///
    /// # Safety
    /// `reader` belongs to this lane and is not used afterwards.
    pub(crate) unsafe fn return_reader(&self, reader: &Reader) {
        let reader = Reader {
            cursor: reader.cursor.clone(),
        };
        self.reader.with_mut(|returned| {
            // SAFETY: there is one reader, and it ends here.
            unsafe { *returned = Some(reader) };
        });
    }
}

impl<T> std::ops::Deref for OwnedLane<T> {
    type Target = Lane<T>;

    #[inline(always)]
    fn deref(&self) -> &Lane<T> {
        &self.lane
    }
}

impl<T> Drop for OwnedLane<T> {
    fn drop(&mut self) {
        self.reader.with_mut(|returned| {
            // SAFETY: nobody else has the lane.
            unsafe {
                if let Some(reader) = (*returned).take() {
                    self.lane.destroy(&reader);
                }
            }
        });
    }
}
