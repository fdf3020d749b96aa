//! The service's end of a stream.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::Arc;

use thalweg_wire::{Decode, Encode};

use crate::call::Call;
use crate::code::Failure;
use crate::service::StreamOptions;
use crate::stream::sending::{Own, Sent};
use crate::stream::{Ends, StreamCore, StreamReader};

/// Writes records into a stream. Each clone writes into segments of its own, in which order is kept; the stream ends regularly when the
/// last writer is dropped.
///
/// A writer is one thread's or actor's at a time: it can be sent to another one, but two that write at once have a clone each.
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>() {}
/// shared::<thalweg_port::StreamWriter<u64>>();
/// ```
pub struct StreamWriter<T> {
    core: Arc<StreamCore>,
    own: RefCell<Own>,
    record: PhantomData<fn(T)>,
}

/// Writes records that the reader sees so many at a time. What was written is seen at the latest when this is dropped.
#[derive(Debug)]
pub struct WriteBatch<'a, T> {
    writer: &'a StreamWriter<T>,
    records: u32,
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
            own: RefCell::new(core.number()),
            core,
            record: PhantomData,
        }
    }

    /// Writes one record, owned or borrowed. Where the stream is full it waits for its reader under the policy `block`, and drops a
    /// record under `drop-newest` and `drop-oldest`.
    ///
    /// # Errors
    /// `closed`: the reader is gone; how the stream ended, if it has; `argument`: the record is larger than 64 MiB; `overloaded`: the
    /// stream is full, under the policy `fail`; the stream goes on. `would_park`: it would have to wait where it must not.
    ///
    /// # Panics
    /// The record writes into this stream while it is encoded.
    #[inline(always)]
    pub fn send<V: Encode<As = T> + ?Sized>(&self, record: &V) -> Result<Sent, Failure> {
        let own = &mut *self.own.borrow_mut();
        self.core.send(own, record, 1, u64::MAX)
    }

    /// The same, and waits no longer than until `deadline` ([`thalweg_queue::clock`]; 0: not at all).
    ///
    /// # Errors
    /// As [`send`](Self::send), and `timed_out`: the stream was full until then; the record was not written, and the stream goes on.
    ///
    /// # Panics
    /// As [`send`](Self::send).
    pub fn send_until<V: Encode<As = T> + ?Sized>(
        &self,
        record: &V,
        deadline: u64,
    ) -> Result<Sent, Failure> {
        let own = &mut *self.own.borrow_mut();
        self.core.send(own, record, 1, deadline)
    }

    /// For who has many records at hand: the reader sees them `records` at a time, and is woken as often.
    ///
    /// ```
    /// # use thalweg_port::{Failure, StreamWriter};
    /// fn count(writer: &StreamWriter<u64>, to: u64) -> Result<(), Failure> {
    ///     let mut batch = writer.batch(256);
    ///     for number in 0..to {
    ///         batch.send(&number)?;
    ///     }
    ///     Ok(())
    /// }
    /// ```
    pub fn batch(&self, records: u32) -> WriteBatch<'_, T> {
        WriteBatch {
            writer: self,
            records,
        }
    }

    /// Writes a record that is never dropped and that the reader is given before all that waits, also where the stream is full: a word about the stream, not a part of
    /// it. It has no number among the others. Of 64 that the reader has not taken each further one waits.
    ///
    /// # Errors
    /// As [`send`](Self::send), but never `overloaded` since the stream is full.
    pub fn control<V: Encode<As = T> + ?Sized>(&self, record: &V) -> Result<(), Failure> {
        self.core.control(record, u64::MAX)
    }

    /// The same, and waits no longer than until `deadline` ([`thalweg_queue::clock`]; 0: not at all).
    ///
    /// # Errors
    /// As there, and `timed_out`: the record was not written.
    pub fn control_until<V: Encode<As = T> + ?Sized>(
        &self,
        record: &V,
        deadline: u64,
    ) -> Result<(), Failure> {
        self.core.control(record, deadline)
    }

    /// Tells the reader that `records` are missing here, which the writer itself never had.
    pub fn lost(&self, records: u64) {
        self.core.lost(&mut self.own.borrow_mut(), records);
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

impl<T: Decode> WriteBatch<'_, T> {
    /// As [`StreamWriter::send`].
    ///
    /// # Errors
    /// As there.
    ///
    /// # Panics
    /// As there.
    #[inline(always)]
    pub fn send<V: Encode<As = T> + ?Sized>(&mut self, record: &V) -> Result<Sent, Failure> {
        let own = &mut *self.writer.own.borrow_mut();
        self.writer
            .core
            .send(own, record, self.records.max(1), u64::MAX)
    }
}

impl<T> Drop for WriteBatch<'_, T> {
    fn drop(&mut self) {
        let own = &mut *self.writer.own.borrow_mut();
        self.writer.core.commit(own);
    }
}

impl<T> Clone for StreamWriter<T> {
    fn clone(&self) -> Self {
        self.core.add_writer();
        Self {
            own: RefCell::new(self.core.number()),
            core: Arc::clone(&self.core),
            record: PhantomData,
        }
    }
}

impl<T> Drop for StreamWriter<T> {
    fn drop(&mut self) {
        self.core.remove_writer(self.own.get_mut());
    }
}

impl Call {
    /// A stream with the options of this method, to write to and to return. It ends when the last writer is dropped, with
    /// the call's deadline, or when the call is stopped.
    pub fn stream<T: Decode>(&self) -> (StreamWriter<T>, StreamReader<T>) {
        let core = self.core.core();
        let method = core.instance.package.methods.get(core.method() as usize);
        self.stream_with(method.and_then(|m| m.stream).unwrap_or_default())
    }

    pub(crate) fn stream_with<T: Decode>(
        &self,
        options: StreamOptions,
    ) -> (StreamWriter<T>, StreamReader<T>) {
        let core = self.core.core();
        let stream = StreamCore::new(core, T::SIZE, T::ALIGN, options);
        let ends: Arc<dyn Ends> = Arc::clone(&stream) as _;
        core.adopt_stream(&ends);
        (
            StreamWriter::new(Arc::clone(&stream)),
            StreamReader::new(stream),
        )
    }
}
