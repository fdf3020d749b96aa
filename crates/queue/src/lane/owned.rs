//! A lane on the heap, which goes when everybody has let go of it.

use super::{Lane, Reader, Writer};
use crate::sync::UnsafeCell;

/// A lane that frees its memory when everybody has let go of it.
pub(crate) struct OwnedLane<T> {
    lane: Lane<T>,
    /// The reader's half, when the reader is gone.
    reader: UnsafeCell<Option<Reader>>,
}

// SAFETY: `left` is written once, by the reader when it goes, and read when nobody has the lane any more.
unsafe impl<T: Send> Sync for OwnedLane<T> {}

impl<T> OwnedLane<T> {
    /// The lane and its two halves.
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

    /// Gives back the reader's half: what is left inside is dropped with the lane.
    ///
    /// # Safety
    /// `reader` is this lane's, and is not used any more.
    pub(crate) unsafe fn return_reader(&self, reader: &Reader) {
        let reader = Reader {
            cursor: reader.cursor.clone(),
        };
        self.reader.with_mut(|returned| {
            // SAFETY: there is one reader, and this is its end.
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
