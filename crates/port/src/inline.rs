//! Inline methods: they run on the caller's thread, independently of the instance's actor.
//!
//! A separate object serves them. It is created once per instance, at the first inline call, and
//! never accesses the service's state. An inline call therefore never waits, and uses no slot of a
//! port or of a mailbox. If an inline method is submitted to a port like any other method, the same
//! object answers it, on the instance's actor.

use thalweg_wire::{Decode, Encode, message};

use crate::code::Code;
use crate::completion::Outcome;
use crate::incoming::Refusal;
use crate::package::Method;

/// Serves the inline methods of one instance. Generated code implements it. Any number of threads
/// may use it at the same time.
pub trait Inline: Send + Sync + 'static {
    /// Serves one call. It must never wait.
    fn dispatch(&self, call: InlineCall<'_>);
}

/// An inline call to answer. If it is dropped without an answer, it ends as `guest_lost`.
#[derive(Debug)]
pub struct InlineCall<'a> {
    number: u32,
    layouts: &'static Method,
    args: &'a [u8],
    outcome: &'a mut Outcome,
}

impl<'a> InlineCall<'a> {
    pub(crate) fn new(
        number: u32,
        layouts: &'static Method,
        args: &'a [u8],
        outcome: &'a mut Outcome,
    ) -> Self {
        Self {
            number,
            layouts,
            args,
            outcome,
        }
    }

    /// The method's number.
    pub fn method(&self) -> u32 {
        self.number
    }

    /// Decodes the parameters after checking the size, the hash, the bounds and UTF-8.
    ///
    /// # Errors
    /// The arguments are malformed.
    pub fn params<P: Decode>(&self) -> Result<P, Refusal> {
        Ok(message::open(self.args, self.layouts.params)?.owned::<P>()?)
    }

    /// Decodes the parameters, calls the service with `call`, and sends its result with `reply`. If
    /// the parameters are refused, the call ends without the service.
    pub fn serve<P: Decode, T>(self, call: impl FnOnce(P) -> T, reply: impl FnOnce(Self, T)) {
        match self.params() {
            Ok(params) => {
                let result = call(params);
                reply(self, result);
            }
            Err(refusal) => self.refuse(refusal),
        }
    }

    /// The same for a function that can fail: `reply` sends a result, and an error is sent as the
    /// typed error.
    pub fn try_serve<P: Decode, T, E: Encode>(
        self,
        call: impl FnOnce(P) -> Result<T, E>,
        reply: impl FnOnce(Self, T),
    ) {
        self.serve(call, |incoming, result| match result {
            Ok(value) => reply(incoming, value),
            Err(error) => incoming.reply_error(&error),
        });
    }

    /// Answers with a value that is not needed afterwards.
    pub fn reply_value<T: Encode>(self, value: T) {
        self.reply(&value);
    }

    /// Ends the call without the service.
    pub fn refuse(self, refusal: Refusal) {
        self.outcome.fail(refusal.0);
    }

    /// Answers with a value.
    pub fn reply<T: Encode + ?Sized>(self, value: &T) {
        self.outcome.answer(Code::Ok, self.layouts.ok, value);
    }

    /// Answers with the typed error.
    pub fn reply_error<E: Encode + ?Sized>(self, error: &E) {
        self.outcome.answer(Code::Error, self.layouts.error, error);
    }
}
