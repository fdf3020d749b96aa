//! The buffer that accompanies a call from its submission to its release. It contains the arguments
//! on the way in and the result on the way out, in the same memory.
//!
//! A call buffer has one owner at a time: the mailbox, the service's [`Incoming`](crate::Incoming),
//! the port's ring, or the host. A thread that ends a call whose buffer has another owner, for a
//! cancel or at a deadline, delivers another buffer. When a buffer is dropped, its memory returns
//! to the instance, together with the call if that has no other user.

use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

use thalweg_queue::prefetch;
use thalweg_wire::{Decode, Encode, message};

use crate::call::{self, Call};
use crate::code::{Code, Failure};
use crate::handles::{self, Lendable, Lent, LentSlot};
use crate::mailbox::Linked;
use crate::message_handles::close_handles;
use crate::queued_bytes::SPARE_BYTES;

/// Bytes before the CBOR of an outcome. They are 0, so its data is not a message, whose handles would
/// be closed, and the CBOR is aligned like a message.
pub(crate) const CBOR_PREFIX: usize = 8;

thread_local! {
    /// The buffer of an inline call that ended on this thread, for reuse.
    static SPARE: Cell<Option<Box<Outcome>>> = const { Cell::new(None) };
}

/// What a completion reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A call ended.
    CallEnded,
    /// An armed stream has records to read, or has ended.
    StreamReady,
    /// A progress notice: the call is still running. The data are the nanoseconds since it began,
    /// as 8 bytes, little-endian. The call's own completion follows later.
    StillRunning,
    /// The service calls its host. The data are the arguments of the import with
    /// [`Outcome::number`].
    HostCall,
    /// A log record: the text is [`Outcome::message`], and [`Outcome::number`] is the level, as a
    /// number of [`log::Level`](crate::log::Level).
    LogRecord,
}

/// The contents of a completion: the end of a call, a ready stream, a progress notice, a host call,
/// or a log record.
#[derive(Debug)]
pub struct Outcome {
    /// The token of the submission.
    pub token: u64,
    /// The handle of the call or of the stream.
    pub handle: u64,
    /// What the completion reports.
    pub kind: Kind,
    /// The number of the import, for a host call; the level of a log record.
    pub number: u32,
    /// How the call ended.
    pub code: Code,
    /// A message; empty unless the code is `Ok` or `Error`.
    pub data: Vec<u8>,
    /// The reason for a failure, for humans; the text of a log record.
    pub message: String,
    pub(crate) call: Option<Call>,
    /// The next call in the [mailbox](crate::mailbox).
    next: AtomicPtr<Self>,
    /// The slot in the handle table for the time when a host holds the completion.
    slot: LentSlot,
    /// Whether the method is idempotent. Used by inline calls, which have no `call`.
    pub(crate) is_idempotent: bool,
}

impl Outcome {
    pub(crate) fn new() -> Box<Self> {
        Box::new(Self {
            token: 0,
            handle: 0,
            kind: Kind::CallEnded,
            number: 0,
            code: Code::Ok,
            data: Vec::new(),
            message: String::new(),
            call: None,
            next: AtomicPtr::new(ptr::null_mut()),
            slot: LentSlot::none(),
            is_idempotent: false,
        })
    }

    /// Moves the result of a call into this empty outcome, and the empty memory into `from`.
    #[inline]
    pub(crate) fn take_result(&mut self, from: &mut Self) {
        std::mem::swap(&mut self.data, &mut from.data);
        self.code = from.code;
        if from.code != Code::Ok {
            std::mem::swap(&mut self.message, &mut from.message);
            from.code = Code::Ok;
        }
    }

    /// A reused or new outcome for an inline call.
    pub(crate) fn spare() -> Box<Self> {
        SPARE
            .try_with(Cell::take)
            .ok()
            .flatten()
            .unwrap_or_else(Self::new)
    }

    /// Prefetches the memory that the outcome points to.
    #[inline(always)]
    pub(crate) fn prefetch_contents(&self) {
        prefetch::line(self.data.as_ptr());
        if let Some(call) = &self.call {
            prefetch::value(&raw const *call.core.core());
        }
    }

    /// Empties it for the next call. A buffer of more than `max_bytes` is freed.
    #[inline]
    pub(crate) fn clear(&mut self, max_bytes: usize) {
        if self.data.capacity() > max_bytes {
            self.data = Vec::new();
        }
        #[cfg(debug_assertions)]
        self.data.fill(0xdb);
        self.data.clear();
        if self.code != Code::Ok || self.kind == Kind::LogRecord {
            (self.code, self.message) = (Code::Ok, String::new());
        }
    }

    /// Sets a failure.
    pub(crate) fn fail(&mut self, failure: Failure) {
        self.data.clear();
        (self.code, self.message) = (failure.code, failure.message);
    }

    /// Sets the result `value`, in the memory of the arguments.
    pub(crate) fn answer<T: Encode + ?Sized>(&mut self, code: Code, layout: u64, value: &T) {
        match message::encode_into(value, layout, &mut self.data) {
            Ok(()) => {
                self.code = code;
                self.message.clear();
                if <T::As as Decode>::HAS_HANDLES {
                    value.handles(true);
                }
            }
            // The service has already done its work, so even a shortage of memory is not
            // `overloaded`. Only an idempotent method may be tried again.
            Err(error) => self.fail(Code::GuestLost.because(match error.needed {
                Some(bytes) => format!("there is no memory for the result, {bytes} bytes"),
                None => format!("the result cannot be sent: {error}"),
            })),
        }
    }

    /// Whether it is safe to run the method a second time.
    pub fn is_idempotent(&self) -> bool {
        match &self.call {
            Some(call) => call.core.is_idempotent(),
            None => self.is_idempotent,
        }
    }

    /// Whether the same call may succeed later.
    pub fn retryable(&self) -> bool {
        self.code.retryable() || (self.code.retryable_if_idempotent() && self.is_idempotent())
    }

    /// The CBOR of the result or the error, if the caller uses CBOR for the method
    /// ([`Instance::set_cbor`](crate::Instance::set_cbor)). `data` is then not a message.
    pub fn cbor(&self) -> Option<&[u8]> {
        let (prefix, cbor) = self.data.split_at_checked(CBOR_PREFIX)?;
        let is_cbor = self.kind == Kind::CallEnded && prefix == [0; CBOR_PREFIX];
        is_cbor.then_some(cbor)
    }

    /// Takes the handle number `index` of the message. The caller owns it afterwards.
    ///
    /// # Errors
    /// `argument`: the message has no handle with this number, or it was already taken.
    pub fn take(&mut self, index: u32) -> Result<u64, Failure> {
        let none = || Code::Argument.because(format!("the message has no handle {index} to take"));
        let count = message::open_any(&self.data).map_or(0, |m| m.handles().len());
        if index as usize >= count {
            return Err(none());
        }
        let at = message::HEADER as usize + 8 * index as usize;
        let slot = self.data[at..].first_chunk_mut().ok_or_else(none)?;
        let handle = u64::from_le_bytes(std::mem::take(slot));
        if handle == 0 { Err(none()) } else { Ok(handle) }
    }
}

impl Lendable for Outcome {
    fn slot(&mut self) -> &mut LentSlot {
        &mut self.slot
    }
}

/// The buffer of a call; see the module documentation.
#[derive(Debug)]
pub(crate) struct CallBuffer(ManuallyDrop<Box<Outcome>>);

impl CallBuffer {
    /// The buffer of a call. It holds a reference to the call.
    #[inline(always)]
    pub(crate) fn new(mut outcome: Box<Outcome>, call: Call) -> Self {
        outcome.call = Some(call);
        Self(ManuallyDrop::new(outcome))
    }

    /// A buffer without a call in the handle table.
    pub(crate) fn without_call(outcome: Box<Outcome>) -> Self {
        Self::of_outcome(outcome)
    }

    #[inline(always)]
    pub(crate) fn of_outcome(outcome: Box<Outcome>) -> Self {
        Self(ManuallyDrop::new(outcome))
    }

    #[inline(always)]
    pub(crate) fn into_outcome(self) -> Box<Outcome> {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: it is taken once, because `this` is not dropped.
        unsafe { ManuallyDrop::take(&mut this.0) }
    }

    /// Lends the buffer of a call to foreign code that serves the call.
    ///
    /// # Errors
    /// The errors of [`handles::lend`]. The buffer is returned.
    pub(crate) fn lend(self) -> Result<u64, (Self, Failure)> {
        handles::lend(Lent::Incoming, self.into_outcome())
            .map_err(|(outcome, failure)| (Self::of_outcome(outcome), failure))
    }

    /// Takes back a lent buffer.
    ///
    /// # Errors
    /// The errors of [`handles::take_back`].
    pub(crate) fn take_back(number: u64) -> Result<Self, Failure> {
        Ok(Self::of_outcome(handles::take_back(
            Lent::Incoming,
            number,
        )?))
    }

    pub(crate) fn contents(&mut self) -> &mut Outcome {
        &mut self.0
    }

    /// Converts the answer to the caller's version of the package.
    #[inline]
    pub(crate) fn convert_for_caller(&mut self) {
        if self.call().core.instance.has_other_caller_version() {
            self.convert_for_other_version();
        }
    }

    #[cold]
    fn convert_for_other_version(&mut self) {
        let core = Arc::clone(self.call().core.core());
        core.instance
            .convert_outcome(core.method(), self.contents());
    }

    pub(crate) fn call(&self) -> &Call {
        self.call.as_ref().expect("a call buffer belongs to a call")
    }

    /// Prefetches the outcome, which is read soon.
    #[inline(always)]
    pub(crate) fn prefetch(&self) {
        prefetch::value(&raw const **self.0);
    }
}

// SAFETY: the box becomes a pointer and a box again.
unsafe impl Linked for CallBuffer {
    type Node = Outcome;

    #[inline(always)]
    fn into_node(self) -> *mut Outcome {
        Box::into_raw(self.into_outcome())
    }

    #[inline(always)]
    unsafe fn from_node(node: *mut Outcome) -> Self {
        // SAFETY: the caller's contract.
        Self::of_outcome(unsafe { Box::from_raw(node) })
    }

    // Relaxed: the mailbox orders all accesses.
    #[inline(always)]
    fn next(node: &Outcome) -> *mut Outcome {
        node.next.load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn set_next(node: &Outcome, next: *mut Outcome) {
        node.next.store(next, Ordering::Relaxed);
    }
}

impl Deref for CallBuffer {
    type Target = Outcome;

    #[inline(always)]
    fn deref(&self) -> &Outcome {
        &self.0
    }
}

impl DerefMut for CallBuffer {
    fn deref_mut(&mut self) -> &mut Outcome {
        self.contents()
    }
}

impl Drop for CallBuffer {
    fn drop(&mut self) {
        // SAFETY: it is taken once, because this is the drop.
        let outcome = unsafe { ManuallyDrop::take(&mut self.0) };
        if outcome.call.is_some() {
            call::leave_with_buffer(outcome);
        } else {
            keep_for_inline_calls(outcome);
        }
    }
}

#[cold]
fn keep_for_inline_calls(mut outcome: Box<Outcome>) {
    outcome.clear(SPARE_BYTES);
    (outcome.token, outcome.handle, outcome.kind) = (0, 0, Kind::CallEnded);
    outcome.is_idempotent = false;
    // Fails only while the thread exits; the buffer is then freed.
    let _ = SPARE.try_with(|spare| spare.set(Some(outcome)));
}

/// A completed operation and its result. Dropping it closes the handles in its message that were
/// not taken.
#[derive(Debug)]
pub struct Completion(pub(crate) CallBuffer);

impl Completion {
    /// Reports that a stream is ready.
    pub(crate) fn ready(token: u64, handle: u64) -> Self {
        let mut outcome = Outcome::spare();
        (outcome.token, outcome.handle, outcome.kind) = (token, handle, Kind::StreamReady);
        Self(CallBuffer::without_call(outcome))
    }

    /// The buffer, which owns the handles in the message afterwards.
    pub(crate) fn into_buffer(self) -> CallBuffer {
        let this = ManuallyDrop::new(self);
        // SAFETY: it is taken once, because `this` is not dropped.
        unsafe { ptr::read(&raw const this.0) }
    }

    /// Reports that a call is still running, `elapsed` nanoseconds after it began.
    pub(crate) fn still_running(token: u64, handle: u64, elapsed: u64) -> Self {
        let mut outcome = Outcome::spare();
        (outcome.token, outcome.handle, outcome.kind) = (token, handle, Kind::StillRunning);
        outcome.data.extend_from_slice(&elapsed.to_le_bytes());
        Self(CallBuffer::without_call(outcome))
    }

    /// Passes on a log record. `text` has its target and its message.
    pub(crate) fn log_record(token: u64, level: u32, text: String) -> Self {
        let mut outcome = Outcome::spare();
        (outcome.token, outcome.number, outcome.kind) = (token, level, Kind::LogRecord);
        outcome.message = text;
        Self(CallBuffer::without_call(outcome))
    }

    /// Lends the completion to a host that cannot own it, and returns a number.
    /// [`take_back`](Self::take_back) accepts that number once. The addresses of data and message
    /// stay the same.
    ///
    /// # Errors
    /// `overloaded`: the maximum number of handles is open, or there is not enough memory for one
    /// more. The completion is returned.
    pub fn lend(self) -> Result<u64, (Self, Failure)> {
        handles::lend(Lent::Completion, self.into_buffer().into_outcome())
            .map_err(|(outcome, failure)| (Self(CallBuffer::of_outcome(outcome)), failure))
    }

    /// Takes back a [lent](Self::lend) completion.
    ///
    /// # Errors
    /// `stale`: it was already taken back. `argument`, `forked`: the number does not belong to this
    /// process.
    pub fn take_back(number: u64) -> Result<Self, Failure> {
        Ok(Self(CallBuffer::of_outcome(handles::take_back(
            Lent::Completion,
            number,
        )?)))
    }

    /// Takes a handle out of a [lent](Self::lend) completion, like [`Outcome::take`].
    ///
    /// # Errors
    /// The errors of [`Outcome::take`] and [`take_back`](Self::take_back).
    pub fn take_of_lent(number: u64, index: u32) -> Result<u64, Failure> {
        handles::with_lent(Lent::Completion, number, |outcome: &mut Outcome| {
            outcome.take(index)
        })?
    }
}

impl Deref for Completion {
    type Target = Outcome;

    fn deref(&self) -> &Outcome {
        &self.0
    }
}

impl DerefMut for Completion {
    fn deref_mut(&mut self) -> &mut Outcome {
        &mut self.0
    }
}

impl Drop for Completion {
    #[inline]
    fn drop(&mut self) {
        close_handles(&self.0.data);
    }
}
