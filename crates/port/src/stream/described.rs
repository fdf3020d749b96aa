//! The writing end of a stream in foreign code, which knows the type of its records only at run time.
//!
//! Records are checked, and then copied into the stream; or foreign code writes them into the stream's
//! memory, where they are checked before they become visible. It uses the writer by handle, and only it closes
//! the handle, so that the memory is there as long as it may write.

use std::fmt;
use std::slice;
use std::sync::{Arc, Mutex, TryLockError};
use std::task::Waker;

use thalweg_wire::Bytes;
use thalweg_wire::prepared::PreparedType;

use crate::code::{Code, Failure};
use crate::handles::{HandleObject, Kind};
use crate::nested::DropCause;
use crate::stream::outcome::StreamOutcome;
use crate::stream::segment::{DescribedRecord, MAX_BATCH, RecordSpace};
use crate::stream::sending::WriterState;
use crate::stream::stats::Stats;
use crate::stream::{StreamCore, StreamWriter};

/// What is dropped together with the end of a stream in foreign code.
pub(crate) type WhileOpen = Box<dyn Send + Sync>;

/// The writing end. One thread at a time uses it.
pub struct RecordWriter {
    /// `None`: it has finished.
    writer: Mutex<Option<OpenWriter>>,
    core: Arc<StreamCore>,
    element: &'static PreparedType<'static>,
    /// The type of the error of the function that returns the stream.
    error: Option<&'static PreparedType<'static>>,
    /// Dropped when no thread uses the writer any more.
    _owned: WhileOpen,
}

struct OpenWriter {
    /// The type `()` does not matter: no record is written with it.
    writer: StreamWriter<()>,
    /// Number of records for which foreign code has places.
    reserved: u32,
}

/// What is left of a write.
struct Left {
    records: u32,
    has_more: bool,
    deadline: u64,
}

/// How [`RecordWriter::commit`] makes records part of the stream.
#[derive(Clone, Copy, Debug, Default)]
pub struct CommitOptions {
    /// They become visible with those of a later write.
    pub has_more: bool,
    /// They are not checked. Its readers read records that must be well-formed.
    pub is_trusted: bool,
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
            writer: Mutex::new(Some(OpenWriter {
                writer: StreamWriter::new(Arc::clone(&core)),
                reserved: 0,
            })),
            core,
            element,
            error,
            _owned: owned,
        })
    }

    fn with_writer<R>(
        &self,
        f: impl FnOnce(&mut Option<OpenWriter>) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        match self.writer.try_lock() {
            Ok(mut writer) => f(&mut writer),
            Err(TryLockError::Poisoned(poisoned)) => f(&mut poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => {
                Err(Code::Argument.because("another thread uses the stream's writer"))
            }
        }
    }

    /// Writes `count` records, which become visible together. `first` is the offset of the first one
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
        let mut written = 0;
        let wrote = self.with_writer(|open| {
            let open = open.as_mut().ok_or_else(finished)?;
            open.reserved = 0;
            self.core.check_open()?;
            let ty = self.element;
            ty.check_records(bytes, first, count)
                .map_err(|why| Code::Argument.because(format!("the record is malformed: {why}")))?;
            let state = open.writer.state.get_mut();
            let mut wrote = Ok(());
            while written < count && wrote.is_ok() {
                let at = first + written * ty.size();
                let left = Left {
                    records: count - written,
                    has_more,
                    deadline,
                };
                let sent = match ty.has_tails() {
                    true => self.copy_record(state, bytes, at, &left),
                    false => self.copy_numbers(state, &bytes[at as usize..], &left),
                };
                wrote = sent.map(|records| written += records);
            }
            if !has_more || wrote.is_err() {
                self.core.commit(state);
            }
            wrote
        });
        (written, wrote)
    }

    /// Copies one record. Returns the number of records that were written or dropped.
    fn copy_record(
        &self,
        state: &mut WriterState,
        bytes: &[u8],
        at: u32,
        left: &Left,
    ) -> Result<u32, Failure> {
        let record = DescribedRecord {
            ty: self.element,
            from: Bytes::message(bytes),
            at,
        };
        let is_alone = left.records == 1 && !left.has_more;
        let batch = if is_alone { 1 } else { MAX_BATCH };
        let sent = self
            .core
            .send_described(state, &record, batch, left.deadline);
        sent.map(|_| 1)
    }

    /// Copies as many records without tails as there is room for. They are at the beginning of `bytes`.
    fn copy_numbers(
        &self,
        state: &mut WriterState,
        bytes: &[u8],
        left: &Left,
    ) -> Result<u32, Failure> {
        let Some(space) = self.core.reserve_space(state, 0, left.deadline)? else {
            return Ok(1);
        };
        let count = space.count.min(left.records);
        let bytes = &bytes[..count as usize * self.element.size() as usize];
        // SAFETY: the segment has free slots for `count` records. Only this writer uses them.
        unsafe {
            let place = space.base.add(space.first as usize);
            place.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
        let has_more = left.has_more || count < left.records;
        self.core
            .add_records(state, count, space.tails, has_more, left.deadline)?;
        Ok(count)
    }

    /// Finds places in the stream's memory, for at least one record with `tails` bytes of strings and
    /// lists, into which the caller writes records for [`commit`](Self::commit). They have any
    /// contents before. They are there until the next function of the writer is called. `None`: the
    /// stream is full and its policy drops a record. Waits as [`write`](Self::write) does.
    ///
    /// # Errors
    /// Those of [`write`](Self::write).
    pub fn reserve(&self, tails: u32, deadline: u64) -> Result<Option<RecordSpace>, Failure> {
        self.with_writer(|open| {
            let open = open.as_mut().ok_or_else(finished)?;
            open.reserved = 0;
            let state = open.writer.state.get_mut();
            let space = self.core.reserve_space(state, tails, deadline)?;
            open.reserved = space.map_or(0, |space| space.count);
            Ok(space)
        })
    }

    /// Makes the first `count` of the places part of the stream. `tails_end` is the end of the strings
    /// and lists. Returns the places that are left, which may be none.
    ///
    /// # Errors
    /// `argument`: they are more than was reserved; or some are malformed, and only the others
    /// are in the stream. The outcome of the stream, if it has ended. `closed`: the writer has finished.
    ///
    /// # Safety
    /// The caller has written all bytes of these records and of the tails up to `tails_end`, and does not
    /// write there any more. If they are trusted, they are well-formed.
    pub unsafe fn commit(
        &self,
        count: u32,
        tails_end: u32,
        options: CommitOptions,
    ) -> Result<RecordSpace, Failure> {
        self.with_writer(|open| {
            let open = open.as_mut().ok_or_else(finished)?;
            let reserved = std::mem::take(&mut open.reserved);
            self.core.check_open()?;
            let state = open.writer.state.get_mut();
            let space = self.core.space(state);
            let is_inside = (space.tails..=space.tails_end).contains(&tails_end);
            if count > reserved || (count > 0 && !is_inside) {
                return Err(
                    Code::Argument.because("the records are not where places were reserved")
                );
            }
            let mut checked = Ok(());
            let mut kept = count;
            if count > 0 && !options.is_trusted {
                // SAFETY: the caller's promise; the segment has these slots and tails.
                (kept, checked) = unsafe { self.check_written(&space, count, tails_end) };
            }
            self.core
                .add_records(state, kept, tails_end, options.has_more, 0)?;
            checked?;
            let left = self.core.space(state);
            open.reserved = left.count;
            Ok(left)
        })
    }

    /// Checks records in place. Malformed ones are removed. Returns the number of the others.
    ///
    /// # Safety
    /// That of [`commit`](Self::commit). The records and tails are in `space`.
    unsafe fn check_written(
        &self,
        space: &RecordSpace,
        count: u32,
        tails_end: u32,
    ) -> (u32, Result<(), Failure>) {
        let RecordSpace {
            base,
            first,
            stride,
            tails,
            ..
        } = *space;
        // SAFETY: they were written, and nobody writes there now.
        let (slots, content) = unsafe {
            (
                slice::from_raw_parts(base.add(first as usize), (count * stride) as usize),
                slice::from_raw_parts(base.add(tails as usize), (tails_end - tails) as usize),
            )
        };
        let bytes = Bytes::batch(slots, first, content, tails);
        let Err(why) = self.element.check_adjacent(bytes, first, count, tails) else {
            return (count, Ok(()));
        };
        // A record that is malformed may claim the tails of others, so each is checked for itself.
        let is_good = |number: &u32| {
            let at = first + number * stride;
            self.element.check_adjacent(bytes, at, 1, tails).is_ok()
        };
        let good: Vec<u32> = (0..count).filter(is_good).collect();
        for (to, from) in (0..).zip(&good) {
            // SAFETY: as above; `slots` is not used any more.
            unsafe {
                let place = |number: u32| base.add((first + number * stride) as usize);
                place(to).copy_from(place(*from), stride as usize);
            }
        }
        let kept = good.len() as u32;
        let why = match count {
            1 => format!("the record is malformed: {why}"),
            _ => format!("{} of {count} records are malformed: {why}", count - kept),
        };
        (kept, Err(Code::Argument.because(why)))
    }

    /// Wakes `waker` when a [`write`](Self::write) that found the stream full may go on, or the stream has
    /// ended; at once if that is so now.
    ///
    /// # Errors
    /// `closed`: the writer has finished.
    pub fn notify(&self, waker: Waker) -> Result<(), Failure> {
        self.with_writer(|open| {
            let open = open.as_mut().ok_or_else(finished)?;
            if self.core.arm_room(open.writer.state.get_mut(), &waker) {
                waker.wake();
            }
            Ok(())
        })
    }

    /// The counters of the stream.
    pub fn stats(&self) -> Stats {
        self.core.stats()
    }

    /// Ends the stream regularly.
    ///
    /// # Errors
    /// The outcome of the stream, if it has ended. `closed`: the writer has finished.
    pub fn finish(&self) -> Result<(), Failure> {
        self.with_writer(|open| open.take().ok_or_else(finished)?.writer.finish())
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
        self.with_writer(|open| open.take().ok_or_else(finished)?.writer.end(why.into()))
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
        self.with_writer(|open| {
            let open = open.take().ok_or_else(finished)?;
            open.writer
                .end(StreamOutcome::error_message(error.to_vec()))
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
        let dropped = self.with_writer(|open| Ok(open.take()));
        if dropped.is_err() {
            let why = "its writer was closed while a thread wrote";
            self.core.end(Code::GuestLost.because(why));
        }
    }
}
