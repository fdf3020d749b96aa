//! The service's end of a stream.

use std::marker::PhantomData;
use std::sync::{Arc, OnceLock};

use thalweg_wire::{Decode, Encode};

use crate::code::Failure;
use crate::stream::StreamCore;

/// Writes records into a stream. Each clone has a lane of its own, in which order is kept; the stream ends regularly when the
/// last writer is dropped.
pub struct StreamWriter<T> {
    core: Arc<StreamCore>,
    /// Taken at the first record: the number, and whether it is shared.
    lane: OnceLock<(u8, bool)>,
    record: PhantomData<fn(T)>,
}

impl<T> std::fmt::Debug for StreamWriter<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StreamWriter")
            .field("stream", &self.core)
            .finish_non_exhaustive()
    }
}

impl<T: Decode> StreamWriter<T> {
    pub(crate) fn new(core: Arc<StreamCore>) -> Self {
        Self {
            core,
            lane: OnceLock::new(),
            record: PhantomData,
        }
    }

    /// Writes one record, owned or borrowed. Under the policy `block` it waits for a slow reader.
    ///
    /// # Errors
    /// `closed`: the reader is gone; how the stream ended, if it has; `argument`: the record is larger than 64 MiB.
    pub fn send<V: Encode<As = T> + ?Sized>(&self, record: &V) -> Result<(), Failure> {
        let (lane, _) = *self.lane.get_or_init(|| self.core.take_lane());
        self.core.send(lane, record)
    }

    /// Whether anybody still reads. For a service that looks for its next record longer than a reader who has closed the
    /// stream should be kept waiting for.
    ///
    /// # Errors
    /// `closed`: the reader is gone; how the stream ended, if it has.
    pub fn check(&self) -> Result<(), Failure> {
        self.core.check_open()
    }
}

impl<T> Clone for StreamWriter<T> {
    fn clone(&self) -> Self {
        self.core.add_writer();
        Self {
            core: Arc::clone(&self.core),
            lane: OnceLock::new(),
            record: PhantomData,
        }
    }
}

impl<T> Drop for StreamWriter<T> {
    fn drop(&mut self) {
        let own = self.lane.get().and_then(|(lane, own)| own.then_some(*lane));
        self.core.remove_writer(own);
    }
}
