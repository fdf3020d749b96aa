//! The writing end of a stream, in the service.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::Arc;

use thalweg_wire::{Decode, Encode};

use crate::code::{Code, Failure};
use crate::stream::outcome::StreamOutcome;
use crate::stream::segment::MAX_BATCH;
use crate::stream::sending::{Sent, WriterState};
use crate::stream::{StreamCore, Untyped};

/// Writes records into a stream. Each clone has its own segments and keeps the order of its
/// records.
///
/// The stream is complete when **every** clone has called [`finish`](Self::finish). If a writer is
/// dropped without it, also after a failed [`send`](Self::send), the stream ends: its reader gets
/// the written records and then `guest_lost` with the reason. [`fail`](Self::fail) ends the stream
/// with the error of the function that returns it, and [`abort`](Self::abort) ends it with a
/// reason.
///
/// ```
/// use thalweg_port::{Call, StreamReader};
///
/// fn squares(call: &Call, to: u64) -> StreamReader<u64> {
///     let (writer, reader) = call.stream();
///     call.spawn(move |_| {
///         for number in 0..to {
///             // Dropping the writer ends the stream with the reason.
///             if writer.send(&(number * number)).is_err() {
///                 return;
///             }
///         }
///         // The only error is that the reader has left.
///         let _ = writer.finish();
///     });
///     reader
/// }
/// ```
///
/// A writer belongs to one thread or actor at a time. You can send it to another one; two
/// concurrent writers need a clone each.
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>() {}
/// shared::<thalweg_port::StreamWriter<u64>>();
/// ```
pub struct StreamWriter<T, E = Untyped> {
    pub(super) core: Arc<StreamCore>,
    pub(super) state: RefCell<WriterState>,
    types: PhantomData<fn(T, E)>,
}

/// Writes records that become visible to the reader in groups. All records are visible when the
/// batch is dropped. Dropping it does not finish the writer.
#[derive(Debug)]
pub struct WriteBatch<'a, T, E = Untyped> {
    writer: &'a StreamWriter<T, E>,
    records: u32,
}

impl<T, E> std::fmt::Debug for StreamWriter<T, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StreamWriter")
            .field("stream", &self.core)
            .finish_non_exhaustive()
    }
}

impl<T: Decode, E: Decode> StreamWriter<T, E> {
    /// Ends the stream with the service's own error, of the type that the function `->
    /// result<stream<T>, E>` has. The reader gets it after the records that were written. Other
    /// writers of the stream are refused from then on.
    ///
    /// An error that holds a resource does not compile: several readers may get it.
    ///
    /// ```
    /// use thalweg_port::{Call, StreamReader};
    ///
    /// fn halves(call: &Call, to: u32) -> Result<StreamReader<u32, String>, String> {
    ///     let (writer, reader) = call.stream();
    ///     call.spawn(move |_| {
    ///         for number in 1..=to {
    ///             if number % 2 != 0 {
    ///                 let _ = writer.fail(&format!("{number} is odd"));
    ///                 return;
    ///             }
    ///             if writer.send(&(number / 2)).is_err() {
    ///                 return;
    ///             }
    ///         }
    ///         let _ = writer.finish();
    ///     });
    ///     Ok(reader)
    /// }
    /// ```
    ///
    /// # Errors
    /// The earlier outcome if the stream has already ended; `closed` if the reader is gone.
    /// `argument`: the error is larger than a message may be.
    pub fn fail<V: Encode<As = E> + ?Sized>(self, error: &V) -> Result<(), Failure> {
        const {
            assert!(
                !E::HAS_HANDLES,
                "the error at a stream's end cannot hold a resource"
            )
        };
        match StreamOutcome::service_error(error) {
            Ok(outcome) => self.end(outcome),
            Err(why) => Err(self.state.borrow_mut().refuse(why)),
        }
    }
}

impl<T, E> StreamWriter<T, E> {
    /// Declares this writer done. When every clone has finished, the stream is complete.
    ///
    /// # Errors
    /// The earlier outcome if the stream has already ended; `closed` if the reader is gone.
    pub fn finish(mut self) -> Result<(), Failure> {
        let ended = self.core.check_open();
        self.state.get_mut().is_finished = true;
        ended
    }
}

impl<T: Decode, E> StreamWriter<T, E> {
    pub(crate) fn new(core: Arc<StreamCore>) -> Self {
        assert!(T::SIZE <= core.stride, "rule 13");
        Self {
            state: RefCell::new(core.new_writer_state()),
            core,
            types: PhantomData,
        }
    }

    /// Sets the reason of the stream's end if this writer is dropped without `finish`.
    pub(super) fn with_drop_reason(mut self, why: &'static str) -> Self {
        self.state.get_mut().drop_reason = why;
        self
    }

    /// Ends the stream as `guest_lost` with this reason. The reader gets it after the written
    /// records. Use it if the function has no error type, or if the error type does not cover the
    /// failure.
    ///
    /// # Errors
    /// The earlier outcome if the stream has already ended; `closed` if the reader is gone.
    pub fn abort(self, why: impl Into<String>) -> Result<(), Failure> {
        self.end(Code::GuestLost.because(why).into())
    }

    pub(super) fn end(self, outcome: StreamOutcome) -> Result<(), Failure> {
        let ended = self.core.check_open();
        self.core.commit(&mut self.state.borrow_mut());
        self.core.end_with(outcome);
        ended
    }

    /// Writes all items of an iterator, and finishes.
    ///
    /// ```
    /// use thalweg_port::{Call, StreamReader};
    ///
    /// fn count(call: &Call, to: u64) -> StreamReader<u64> {
    ///     let (writer, reader) = call.stream();
    ///     call.spawn(move |_| drop(writer.send_all(0..to)));
    ///     reader
    /// }
    /// ```
    ///
    /// # Errors
    /// As [`send`](Self::send). The stream has then ended.
    pub fn send_all<V: Encode<As = T>>(
        self,
        records: impl IntoIterator<Item = V>,
    ) -> Result<(), Failure> {
        for record in records {
            self.send(&record)?;
        }
        self.finish()
    }

    /// Writes one record, owned or borrowed. If the stream is full, the policy `block` waits for
    /// the reader, and `drop-newest` and `drop-oldest` drop a record.
    ///
    /// # Errors
    /// `closed`: the reader is gone. The stream's outcome, if it has ended. `argument`: the record
    /// is larger than the policy's `max_record_size`, 64 MiB by default; the stream continues.
    /// `overloaded`: the stream is full, under the policy `fail`; the stream continues.
    /// `would_park`: the call would have to wait where it must not.
    ///
    /// # Panics
    /// The record writes into this stream while it is encoded.
    #[inline(always)]
    pub fn send<V: Encode<As = T> + ?Sized>(&self, record: &V) -> Result<Sent, Failure> {
        let state = &mut *self.state.borrow_mut();
        self.core.send(state, record, 1, u64::MAX)
    }

    /// The same, but waits at most until `deadline` ([`thalweg_queue::clock`]; 0: does not wait).
    ///
    /// # Errors
    /// As [`send`](Self::send), and `timed_out`: the stream was full until the deadline. The record
    /// was not written, and the stream continues.
    ///
    /// # Panics
    /// As [`send`](Self::send).
    pub fn send_until<V: Encode<As = T> + ?Sized>(
        &self,
        record: &V,
        deadline: u64,
    ) -> Result<Sent, Failure> {
        let state = &mut *self.state.borrow_mut();
        self.core.send(state, record, 1, deadline)
    }

    /// Writes many records: `records` at a time become visible to the reader, with one wake-up for
    /// each group.
    ///
    /// ```
    /// # use thalweg_port::{Failure, StreamWriter};
    /// fn count(writer: StreamWriter<u64>, to: u64) -> Result<(), Failure> {
    ///     let mut batch = writer.batch(256);
    ///     for number in 0..to {
    ///         batch.send(&number)?;
    ///     }
    ///     drop(batch);
    ///     writer.finish()
    /// }
    /// ```
    pub fn batch(&self, records: u32) -> WriteBatch<'_, T, E> {
        WriteBatch {
            writer: self,
            records: records.clamp(1, MAX_BATCH),
        }
    }

    /// Writes a record of the control lane. It is never dropped, and the reader gets it before all
    /// waiting records, even if the stream is full. It has no sequence number. If 64 of them are
    /// unread, the next one waits.
    ///
    /// # Errors
    /// As [`send`](Self::send), but never `overloaded` because the stream is full.
    pub fn control<V: Encode<As = T> + ?Sized>(&self, record: &V) -> Result<(), Failure> {
        self.control_until(record, u64::MAX)
    }

    /// The same, but waits at most until `deadline` ([`thalweg_queue::clock`]; 0: does not wait).
    ///
    /// # Errors
    /// As [`control`](Self::control), and `timed_out`: the record was not written.
    pub fn control_until<V: Encode<As = T> + ?Sized>(
        &self,
        record: &V,
        deadline: u64,
    ) -> Result<(), Failure> {
        let sent = self.core.control(record, deadline);
        sent.map_err(|why| self.state.borrow_mut().refuse(why))
    }

    /// Reports to the reader that `records` are missing here, which the writer itself never had.
    pub fn lost(&self, records: u64) {
        self.core.lost(&mut self.state.borrow_mut(), records);
    }

    /// Checks whether there is still a reader. Use it in a service that searches long for its next
    /// record, so that it notices a closed stream.
    ///
    /// # Errors
    /// `closed`: the reader is gone. Another outcome, if the stream has already ended.
    pub fn check(&self) -> Result<(), Failure> {
        self.core.check_open()
    }
}

impl<T: Decode, E> WriteBatch<'_, T, E> {
    /// Like [`StreamWriter::send`].
    ///
    /// # Errors
    /// The errors of [`StreamWriter::send`].
    ///
    /// # Panics
    /// Like [`StreamWriter::send`].
    #[inline(always)]
    pub fn send<V: Encode<As = T> + ?Sized>(&mut self, record: &V) -> Result<Sent, Failure> {
        let state = &mut *self.writer.state.borrow_mut();
        let core = &self.writer.core;
        core.send(state, record, self.records, u64::MAX)
    }
}

impl<T, E> Drop for WriteBatch<'_, T, E> {
    fn drop(&mut self) {
        let state = &mut *self.writer.state.borrow_mut();
        self.writer.core.commit(state);
    }
}

impl<T, E> Clone for StreamWriter<T, E> {
    fn clone(&self) -> Self {
        self.core.add_writer();
        Self {
            state: RefCell::new(self.core.new_writer_state()),
            core: Arc::clone(&self.core),
            types: PhantomData,
        }
    }
}

impl<T, E> Drop for StreamWriter<T, E> {
    fn drop(&mut self) {
        self.core.remove_writer(self.state.get_mut());
    }
}
