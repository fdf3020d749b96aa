//! What goes with a call from its submission to its release: the arguments on the way in, the result on the way out, in the same memory.
//!
//! A parcel has one owner at a time: the mailbox, the service's [`Incoming`](crate::Incoming), the port's ring, the host. Who ends a call
//! whose parcel another has (a cancel, a deadline) sends another one. Dropped, it goes back to the instance, with its call if nobody else is in that.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use thalweg_queue::ahead;
use thalweg_wire::{Decode, Encode, Handle, message};

use crate::call::Call;
use crate::code::{Code, Failure};
use crate::handles::{self, Object};

/// Bytes of a message whose memory is kept for the next one.
pub(crate) const SPARE_BYTES: usize = 512;

thread_local! {
    /// Of an inline call that ended here, for the next one.
    static SPARE: Cell<Option<Box<Outcome>>> = const { Cell::new(None) };
}

/// What a completion tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A call ended.
    CallEnded,
    /// An armed stream has something to read, or has ended.
    StreamReady,
    /// A call has not ended yet: the data are the nanoseconds since it began, as 8 bytes, little-endian. It ends all the same.
    StillRunning,
    /// A service asks its host: the data are the arguments of the import with [`Outcome::number`].
    HostCall,
}

/// What is told of one call's end, of one stream, or of what a service asks.
#[derive(Debug)]
pub struct Outcome {
    /// What the submission carried.
    pub token: u64,
    /// The call's or the stream's handle.
    pub handle: u64,
    /// What it tells.
    pub kind: Kind,
    /// Which import is asked for.
    pub number: u32,
    /// How it ended.
    pub code: Code,
    /// A message; empty unless the code is `Ok` or `Error`.
    pub data: Vec<u8>,
    /// Why, where it failed.
    pub message: String,
    pub(crate) call: Option<Call>,
    /// For the times when a host has it.
    pub(crate) slot: handles::LentSlot,
    /// Of an inline call, which has no call: its second run does no harm.
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
            slot: handles::LentSlot::none(),
            is_idempotent: false,
        })
    }

    /// One for an inline call.
    pub(crate) fn spare() -> Box<Self> {
        SPARE
            .try_with(Cell::take)
            .ok()
            .flatten()
            .unwrap_or_else(Self::new)
    }

    /// Empty again, for the next call.
    pub(crate) fn clear(&mut self) {
        if self.data.capacity() > SPARE_BYTES {
            self.data = Vec::new();
        }
        #[cfg(debug_assertions)]
        self.data.fill(0xdb);
        self.data.clear();
        if self.code != Code::Ok {
            (self.code, self.message) = (Code::Ok, String::new());
        }
    }

    /// It ends without a result.
    pub(crate) fn fail(&mut self, failure: Failure) {
        self.data.clear();
        (self.code, self.message) = (failure.code, failure.message);
    }

    /// It ends with `value`, in the memory of the arguments.
    pub(crate) fn answer<T: Encode + ?Sized>(&mut self, code: Code, layout: u64, value: &T) {
        match message::encode_into(value, layout, &mut self.data) {
            Ok(()) => {
                self.code = code;
                self.message.clear();
                if <T::As as Decode>::HOLDS {
                    value.handles(true);
                }
            }
            // The service has done its work, so even without memory it is not `overloaded`: another try is for idempotent methods.
            Err(error) => self.fail(Code::GuestLost.because(match error.needed {
                Some(bytes) => format!("there is no memory for the result, {bytes} bytes"),
                None => format!("the result cannot be sent: {error}"),
            })),
        }
    }

    /// Whether a second run of its method does no harm.
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

    /// The handle number `index` of the message, which is the caller's from now on.
    ///
    /// # Errors
    /// `argument`: there is none with that number, or it was taken.
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

/// See the module.
#[derive(Debug)]
pub(crate) struct CallBuffer(Option<Box<Outcome>>);

impl CallBuffer {
    /// Of a call that is the parcel's now.
    #[inline(always)]
    pub(crate) fn new(mut outcome: Box<Outcome>, call: Call) -> Self {
        outcome.call = Some(call);
        Self(Some(outcome))
    }

    /// Of what is no call of the table's.
    pub(crate) fn without_call(outcome: Box<Outcome>) -> Self {
        Self(Some(outcome))
    }

    pub(crate) fn contents(&mut self) -> &mut Outcome {
        self.0.as_mut().expect(NOT_DROPPED)
    }

    /// Of a call that was answered: its message as the caller reads it.
    pub(crate) fn convert_for_caller(&mut self) {
        let core = self.call().core.core();
        if core.instance.versions.get().is_some() {
            let core = Arc::clone(core);
            core.instance
                .convert_outcome(core.method(), self.contents());
        }
    }

    pub(crate) fn call(&self) -> &Call {
        self.call.as_ref().expect("a parcel is a call's")
    }

    /// It is looked at soon.
    #[inline(always)]
    pub(crate) fn prefetch(&self) {
        if let Some(outcome) = &self.0 {
            ahead::fetch_value(&raw const **outcome);
        }
    }

    /// The same of what it points to.
    #[inline(always)]
    pub(crate) fn prefetch_contents(&self) {
        ahead::fetch(self.data.as_ptr());
        if let Some(call) = &self.call {
            ahead::fetch_value(&raw const *call.core.core());
        }
    }
}

/// It is empty only while it is dropped.
const NOT_DROPPED: &str = "it is not dropped";

impl Deref for CallBuffer {
    type Target = Outcome;

    fn deref(&self) -> &Outcome {
        self.0.as_ref().expect(NOT_DROPPED)
    }
}

impl DerefMut for CallBuffer {
    fn deref_mut(&mut self) -> &mut Outcome {
        self.contents()
    }
}

impl Drop for CallBuffer {
    fn drop(&mut self) {
        let Some(mut outcome) = self.0.take() else {
            return;
        };
        match outcome.call.take() {
            Some(call) => call.core.leave(outcome),
            None => {
                outcome.clear();
                (outcome.token, outcome.handle, outcome.kind) = (0, 0, Kind::CallEnded);
                outcome.is_idempotent = false;
                // A thread that ends keeps nothing.
                let _ = SPARE.try_with(|spare| spare.set(Some(outcome)));
            }
        }
    }
}

/// One ending, with what came back. Dropping it closes the handles in its message that nobody took.
#[derive(Debug)]
pub struct Completion(pub(crate) CallBuffer);

impl Completion {
    /// That a stream is ready.
    pub(crate) fn ready(token: u64, handle: u64) -> Self {
        let mut outcome = Outcome::spare();
        (outcome.token, outcome.handle, outcome.kind) = (token, handle, Kind::StreamReady);
        Self(CallBuffer::without_call(outcome))
    }

    /// That a call has not ended, `elapsed` nanoseconds after it began.
    pub(crate) fn still_running(token: u64, handle: u64, elapsed: u64) -> Self {
        let mut outcome = Outcome::spare();
        (outcome.token, outcome.handle, outcome.kind) = (token, handle, Kind::StillRunning);
        outcome.data.extend_from_slice(&elapsed.to_le_bytes());
        Self(CallBuffer::without_call(outcome))
    }

    /// Lends it to a host that cannot own it: the number by which [`take_back`](Self::take_back) takes it back, once. Its data and message stay where they
    /// are.
    ///
    /// # Errors
    /// `overloaded`: as many handles are open as there may be, or there is no memory for one more; the completion comes back.
    pub fn lend(mut self) -> Result<u64, (Self, Failure)> {
        let outcome = self.0.0.take().expect(NOT_DROPPED);
        handles::lend(outcome)
            .map_err(|(outcome, failure)| (Self(CallBuffer(Some(outcome))), failure))
    }

    /// Takes back a [lent](Self::lend) completion.
    ///
    /// # Errors
    /// `stale`: it was taken back before; `argument`, `forked`: it is no number of this process's.
    pub fn take_back(number: u64) -> Result<Self, Failure> {
        Ok(Self(CallBuffer(Some(handles::take_back(number)?))))
    }

    /// Takes a handle out of a [lent](Self::lend) completion, like [`Outcome::take`].
    ///
    /// # Errors
    /// As [`Outcome::take`] and [`take_back`](Self::take_back).
    pub fn take_of_lent(number: u64, index: u32) -> Result<u64, Failure> {
        handles::with_lent(number, |outcome| outcome.take(index))?
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

/// Closes the streams in arguments that nobody read: their writers would wait for ever.
#[cold]
pub(crate) fn close_unread_streams(args: &[u8]) {
    if let Ok(message) = message::open_any(args) {
        for handle in message.handles() {
            close_unread_stream(handle);
        }
    }
}

/// The same of one handle.
pub(crate) fn close_unread_stream(handle: Handle) {
    if matches!(handles::find(handle.0), Ok(Object::Upstream(_))) {
        // Who closed it meanwhile did the same.
        let _ = handles::close_handle(handle.0);
    }
}

/// Closes the handles in a message that nobody got.
#[inline]
pub(crate) fn close_handles(data: &[u8]) {
    if !data.is_empty() {
        close_all(data);
    }
}

fn close_all(data: &[u8]) {
    if let Ok(message) = message::open_any(data) {
        for handle in message.handles().filter(|handle| handle.0 != 0) {
            // What is closed already needs no closing.
            let _ = handles::close_handle(handle.0);
        }
    }
}

impl Drop for Completion {
    #[inline]
    fn drop(&mut self) {
        // Empty where it was made a box.
        if let Some(outcome) = &self.0.0 {
            close_handles(&outcome.data);
        }
    }
}
