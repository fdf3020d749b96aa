//! The service's end of a stream.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::Arc;

use thalweg_wire::{Decode, Encode};

use crate::call::Call;
use crate::code::{Code, Failure};
use crate::service::StreamOptions;
use crate::stream::ending::Ending;
use crate::stream::sending::{Own, Sent};
use crate::stream::{Ends, StreamCore, StreamError, StreamReader, Untyped};

/// Writes records into a stream. Each clone writes into segments of its own, in which order is kept.
///
/// The stream is complete when **every** clone has called [`finish`](Self::finish). A writer that is dropped without that, also after a
/// failed [`send`](Self::send), ends the stream: its reader gets the records that were written, and then `guest_lost` with the reason.
/// [`fail`](Self::fail) ends it with the error of the function that returns the stream, [`abort`](Self::abort) with a reason.
///
/// ```
/// use thalweg_port::{Call, StreamReader};
///
/// fn squares(call: &Call, to: u64) -> StreamReader<u64> {
///     let (writer, reader) = call.stream();
///     call.spawn(move |_| {
///         for number in 0..to {
///             // The writer is dropped: the stream ends with the reason.
///             if writer.send(&(number * number)).is_err() {
///                 return;
///             }
///         }
///         // Nobody to tell where the reader has left.
///         let _ = writer.finish();
///     });
///     reader
/// }
/// ```
///
/// A writer is one thread's or actor's at a time: it can be sent to another one, but two that write at once have a clone each.
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>() {}
/// shared::<thalweg_port::StreamWriter<u64>>();
/// ```
pub struct StreamWriter<T, E = Untyped> {
    core: Arc<StreamCore>,
    own: RefCell<Own>,
    types: PhantomData<fn(T, E)>,
}

/// Writes records that the reader sees so many at a time. What was written is seen at the latest when this is dropped, which does not
/// finish the writer.
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
    /// Ends the stream with the service's own error, of the type that the function `-> result<stream<T>, E>` has. The reader gets it
    /// after the records that were written. Other writers of the stream are refused from then on.
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
    /// How the stream ended before: `closed` where the reader is gone. `argument`: the error is larger than a message may be.
    pub fn fail<V: Encode<As = E> + ?Sized>(self, error: &V) -> Result<(), Failure> {
        const {
            assert!(
                !E::HOLDS,
                "the error at a stream's end cannot hold a resource"
            )
        };
        match Ending::of_service(error) {
            Ok(ending) => self.end(ending),
            Err(why) => Err(self.own.borrow_mut().refuse(why)),
        }
    }
}

impl<T, E> StreamWriter<T, E> {
    /// Nothing more comes from this writer. When every clone has finished, the stream is complete.
    ///
    /// # Errors
    /// How the stream ended before: `closed` where the reader is gone.
    pub fn finish(mut self) -> Result<(), Failure> {
        let ended = self.core.check_open();
        self.own.get_mut().is_finished = true;
        ended
    }
}

impl<T: Decode, E> StreamWriter<T, E> {
    pub(crate) fn new(core: Arc<StreamCore>) -> Self {
        Self {
            own: RefCell::new(core.number()),
            core,
            types: PhantomData,
        }
    }

    /// Says why the stream ends where this writer is dropped without having finished.
    pub(super) fn unfinished(mut self, why: &'static str) -> Self {
        self.own.get_mut().unfinished = why;
        self
    }

    /// Ends the stream as `guest_lost`, for this reason. The reader gets it after the records that were written. For a function that has no
    /// error type, or for what its error type does not cover.
    ///
    /// # Errors
    /// How the stream ended before: `closed` where the reader is gone.
    pub fn abort(self, why: impl Into<String>) -> Result<(), Failure> {
        self.end(Code::GuestLost.because(why).into())
    }

    fn end(self, ending: Ending) -> Result<(), Failure> {
        let ended = self.core.check_open();
        self.core.commit(&mut self.own.borrow_mut());
        self.core.end_with(ending);
        ended
    }

    /// Writes all that an iterator has, and finishes.
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
    /// As [`send`](Self::send). The stream has ended then.
    pub fn send_all<V: Encode<As = T>>(
        self,
        records: impl IntoIterator<Item = V>,
    ) -> Result<(), Failure> {
        for record in records {
            self.send(&record)?;
        }
        self.finish()
    }

    /// Writes one record, owned or borrowed. Where the stream is full it waits for its reader under the policy `block`, and drops a
    /// record under `drop-newest` and `drop-oldest`.
    ///
    /// # Errors
    /// `closed`: the reader is gone; how the stream ended, if it has; `argument`: the record is larger than the policy's `largest_record`,
    /// 64 MiB by default; `overloaded`: the stream is full, under the policy `fail`. After both of these the stream goes on. `would_park`: it would have to wait where it must not.
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
            records,
        }
    }

    /// Writes a record that is never dropped and that the reader is given before all that waits, also where the stream is full: a word about the stream, not a part of
    /// it. It has no number among the others. Of 64 that the reader has not taken each further one waits.
    ///
    /// # Errors
    /// As [`send`](Self::send), but never `overloaded` since the stream is full.
    pub fn control<V: Encode<As = T> + ?Sized>(&self, record: &V) -> Result<(), Failure> {
        self.control_until(record, u64::MAX)
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
        let sent = self.core.control(record, deadline);
        sent.map_err(|why| self.own.borrow_mut().refuse(why))
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

impl<T: Decode, E> WriteBatch<'_, T, E> {
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

impl<T, E> Drop for WriteBatch<'_, T, E> {
    fn drop(&mut self) {
        let own = &mut *self.writer.own.borrow_mut();
        self.writer.core.commit(own);
    }
}

impl<T, E> Clone for StreamWriter<T, E> {
    fn clone(&self) -> Self {
        self.core.add_writer();
        Self {
            own: RefCell::new(self.core.number()),
            core: Arc::clone(&self.core),
            types: PhantomData,
        }
    }
}

impl<T, E> Drop for StreamWriter<T, E> {
    fn drop(&mut self) {
        self.core.remove_writer(self.own.get_mut());
    }
}

impl Call {
    /// A stream with the options of this method, to write to and to return. It is complete when all writers have
    /// [finished](StreamWriter::finish). It ends with the call's deadline, and when the call is stopped.
    pub fn stream<T: Decode, E: StreamError>(&self) -> (StreamWriter<T, E>, StreamReader<T, E>) {
        let core = self.core.core();
        let method = core.instance.package.methods.get(core.method() as usize);
        self.stream_with(method.and_then(|m| m.stream).unwrap_or_default())
    }

    pub(crate) fn stream_with<T: Decode, E: StreamError>(
        &self,
        options: StreamOptions,
    ) -> (StreamWriter<T, E>, StreamReader<T, E>) {
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
