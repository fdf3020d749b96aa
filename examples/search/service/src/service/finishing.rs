//! A writer that finishes its stream when it is dropped.

use thalweg::port::{Failure, StreamWriter, Untyped};
use thalweg::wire::{Decode, Encode};

/// A writer that finishes when it is dropped, unless a send failed. It is used to check whether the
/// reader is open, and for streams that may end after any record.
pub(super) struct Finishing<T, E = Untyped>(Option<StreamWriter<T, E>>);

impl<T: Decode, E> Finishing<T, E> {
    pub(super) fn new(writer: StreamWriter<T, E>) -> Self {
        Self(Some(writer))
    }

    /// The writer; `None` after a failed send.
    pub(super) fn writer(&self) -> Option<&StreamWriter<T, E>> {
        self.0.as_ref()
    }

    /// Whether it was written. If not, the reader gets the reason.
    pub(super) fn send<V: Encode<As = T>>(&mut self, record: &V) -> bool {
        let sent = self.0.as_ref().map(|writer| writer.send(record));
        let is_sent = matches!(sent, Some(Ok(_)));
        if !is_sent {
            self.0 = None;
        }
        is_sent
    }

    /// Whether anybody reads.
    pub(super) fn check(&self) -> Result<(), Failure> {
        self.0.as_ref().map_or(Ok(()), StreamWriter::check)
    }
}

impl<T, E> Clone for Finishing<T, E> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T, E> Drop for Finishing<T, E> {
    fn drop(&mut self) {
        // The reader may be gone.
        let _ = self.0.take().map(StreamWriter::finish);
    }
}
