//! The writing end of a stream in foreign code, which knows the type of its records only at run time.
//!
//! Records are checked, and then copied into the stream. The foreign code uses the writer by handle.

use std::fmt;
use std::sync::{Arc, Mutex, TryLockError};
use std::task::Waker;

use thalweg_wire::Bytes;
use thalweg_wire::prepared::PreparedType;

use crate::code::{Code, Failure};
use crate::handles::{HandleObject, Kind};
use crate::nested::DropCause;
use crate::stream::outcome::StreamOutcome;
use crate::stream::segment::{DescribedRecord, MAX_BATCH};
use crate::stream::{StreamCore, StreamWriter};

/// What is dropped together with the end of a stream in foreign code.
pub(crate) type WhileOpen = Box<dyn Send + Sync>;

/// The writing end. One thread at a time uses it.
pub struct RecordWriter {
    /// `None`: it has finished. The type `()` does not matter: no record is written with it.
    writer: Mutex<Option<StreamWriter<()>>>,
    core: Arc<StreamCore>,
    element: &'static PreparedType<'static>,
    /// The type of the error of the function that returns the stream.
    error: Option<&'static PreparedType<'static>>,
    /// Dropped when no thread uses the writer any more.
    _owned: WhileOpen,
}

impl fmt::Debug for RecordWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RecordWriter").field(&self.core).finish()
    }
}

impl RecordWriter {
    /// The first writer of a stream that was made for records of this type.
    pub(crate) fn new(
        core: Arc<StreamCore>,
        element: &'static PreparedType<'static>,
        error: Option<&'static PreparedType<'static>>,
        owned: WhileOpen,
    ) -> Arc<Self> {
        Arc::new(Self {
            writer: Mutex::new(Some(StreamWriter::new(Arc::clone(&core)))),
            core,
            element,
            error,
            _owned: owned,
        })
    }

    fn with_writer<R>(
        &self,
        f: impl FnOnce(&mut Option<StreamWriter<()>>) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        match self.writer.try_lock() {
            Ok(mut writer) => f(&mut writer),
            Err(TryLockError::Poisoned(poisoned)) => f(&mut poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => {
                Err(Code::Argument.because("another thread uses the stream's writer"))
            }
        }
    }

    /// Writes `count` records, which become visible together: at once, or with those of the next write
    /// if `has_more`. `first` is the offset of the first one
    /// in `bytes`, from which the offsets of strings and lists count; their contents follow the last
    /// record. Waits until `deadline` while the stream is full (0: does not wait). The first number
    /// that is returned is that of the records that were written or dropped by the overflow policy.
    ///
    /// # Errors
    /// `argument`: a record is malformed, so that nothing was written, or is too large. The errors of
    /// [`StreamWriter::send`](crate::StreamWriter::send). `closed`: the writer has finished.
    pub fn write(
        &self,
        bytes: &[u8],
        first: u32,
        count: u32,
        has_more: bool,
        deadline: u64,
    ) -> (u32, Result<(), Failure>) {
        let batch = if has_more { MAX_BATCH } else { count };
        let mut written = 0;
        let wrote = self.with_writer(|writer| {
            let writer = writer.as_mut().ok_or_else(finished)?;
            self.core.check_open()?;
            let ty = self.element;
            ty.check_records(bytes, first, count)
                .map_err(|why| Code::Argument.because(format!("the record is malformed: {why}")))?;
            let state = writer.state.get_mut();
            let mut record = DescribedRecord {
                ty,
                from: Bytes::message(bytes),
                at: first,
            };
            let mut sent = Ok(());
            while written < count && sent.is_ok() {
                sent = self
                    .core
                    .send_described(state, &record, batch, deadline)
                    .map(|_| written += 1);
                record.at += ty.size();
            }
            if !has_more || sent.is_err() {
                self.core.commit(state);
            }
            sent
        });
        (written, wrote)
    }

    /// Wakes `waker` when a [`write`](Self::write) that found the stream full may go on, or the stream has
    /// ended; at once if that is so now.
    ///
    /// # Errors
    /// `closed`: the writer has finished.
    pub fn notify(&self, waker: Waker) -> Result<(), Failure> {
        self.with_writer(|writer| {
            let writer = writer.as_mut().ok_or_else(finished)?;
            if self.core.arm_room(writer.state.get_mut(), &waker) {
                waker.wake();
            }
            Ok(())
        })
    }

    /// Ends the stream regularly.
    ///
    /// # Errors
    /// The outcome of the stream, if it has ended. `closed`: the writer has finished.
    pub fn finish(&self) -> Result<(), Failure> {
        self.with_writer(|writer| writer.take().ok_or_else(finished)?.finish())
    }

    /// Ends the stream as `guest_lost` with a reason, or as `guest_panicked` while a panic in another call
    /// ends the state of the guest.
    ///
    /// # Errors
    /// As [`finish`](Self::finish).
    pub fn abort(&self, why: &str) -> Result<(), Failure> {
        let why = match DropCause::now(0) {
            DropCause::OtherPanic(panicked) => panicked,
            DropCause::OwnPanic | DropCause::Intended => Code::GuestLost.because(why),
        };
        self.with_writer(|writer| writer.take().ok_or_else(finished)?.end(why.into()))
    }

    /// Ends the stream with the error of the function that returned it, a message.
    ///
    /// # Errors
    /// As [`finish`](Self::finish). `argument`: the function has no error, or the message is malformed;
    /// the stream goes on.
    pub fn fail(&self, error: &[u8]) -> Result<(), Failure> {
        let refuse = |why: String| Code::Argument.because(format!("the stream's error: {why}"));
        let ty = self
            .error
            .ok_or_else(|| refuse("its function has none".to_owned()))?;
        ty.check(error).map_err(|why| refuse(why.to_string()))?;
        self.with_writer(|writer| {
            let writer = writer.take().ok_or_else(finished)?;
            writer.end(StreamOutcome::error_message(error.to_vec()))
        })
    }
}

#[cold]
fn finished() -> Failure {
    Code::Closed.because("the writer has finished")
}

// SAFETY: writers of records have no other type.
unsafe impl HandleObject for RecordWriter {
    fn has_kind(kind: Kind) -> bool {
        kind == Kind::RecordWriter
    }

    /// The stream is incomplete unless the writer has finished.
    fn close_handle(self: Arc<Self>, _: Kind, _: u32) {
        let dropped = self.with_writer(|writer| Ok(writer.take()));
        if dropped.is_err() {
            let why = "its writer was closed while a thread wrote";
            self.core.end(Code::GuestLost.because(why));
        }
    }
}
