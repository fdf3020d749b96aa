//! Inline methods: they run on the caller's thread, independently of the instance's actor.
//!
//! A separate object serves them. It is created once per instance, at the first inline call, and
//! never accesses the service's state. An inline call therefore never waits, and uses no slot of a
//! port or of a mailbox. If an inline method is submitted to a port like any other method, the same
//! object answers it, on the instance's actor.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use thalweg_runtime::log::{self, Level};
use thalweg_wire::{Decode, Encode, Malformed, message};

use crate::call::is_past;
use crate::client::Client;
use crate::code::{Code, Failure, unencodable};
use crate::completion::{CallBuffer, Completion, Outcome};
use crate::incoming::{Refusal, UNANSWERED, log_unanswered};
use crate::instance::Instance;
use crate::nested::{catch_panic, log_panic};
use crate::package::Method;
use crate::pending::{CallError, Reply, read};
use crate::queued_bytes::SPARE_BYTES;

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

impl InlineCall<'_> {
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

impl Instance {
    /// Calls an inline method on this thread. The returned completion contains the outcome.
    ///
    /// # Errors
    /// `argument`: there is no such method, or it is not inline. `closed`, `forked`. In these cases
    /// the service was not called.
    pub fn call_inline(
        &self,
        method: u32,
        args: &[u8],
        deadline: u64,
    ) -> Result<Completion, Failure> {
        let method = self.library_method(method)?;
        self.admit(method)?;
        let layouts = &self.package.methods[method as usize];
        if !layouts.options.is_inline {
            return Err(
                Code::Argument.because(format!("{} is not inline: submit it", layouts.name))
            );
        }
        let mut outcome = Outcome::spare();
        outcome.is_idempotent = layouts.options.is_idempotent;
        if is_past(deadline) {
            outcome.fail(Code::TimedOut.because("the deadline had passed when the call was made"));
        } else {
            match self.convert_arguments(method, args) {
                Ok(args) => self.answer_inline(method, &args, &mut outcome),
                Err(failure) => outcome.fail(failure),
            }
        }
        Ok(Completion(CallBuffer::without_call(outcome)))
    }

    /// Answers an inline call on the current thread. A panic ends only this call, because the
    /// object that serves it has no state that a panic could leave inconsistent.
    pub(crate) fn answer_inline(&self, method: u32, args: &[u8], outcome: &mut Outcome) {
        let layouts = &self.package.methods[method as usize];
        let made = catch_unwind(AssertUnwindSafe(|| {
            self.inline.get_or_init(self.make_inline)
        }));
        let served = match &made {
            Ok(Some(inline)) => {
                // The outcome if there is no answer.
                outcome.code = Code::GuestLost;
                catch_panic(|| {
                    inline.dispatch(InlineCall {
                        number: method,
                        layouts,
                        args,
                        outcome,
                    });
                })
                .inspect_err(|why| log_panic(Some(layouts.name), why))
            }
            Ok(None) => {
                Err(Code::GuestLost.because("the service does not implement its inline methods"))
            }
            Err(_) => {
                let why = "the constructor of the inline methods panicked";
                log::write(
                    Level::Error,
                    "service",
                    format_args!("{}: {why}", self.package.name),
                );
                Err(Code::GuestLost.because(why))
            }
        };
        if let Err(payload) = made {
            // The payload of the panic may itself panic when it is dropped.
            std::mem::forget(payload);
        }
        match served {
            Err(why) => outcome.fail(why),
            Ok(()) if outcome.code == Code::GuestLost && outcome.message.is_empty() => {
                log_unanswered(layouts.name);
                outcome.fail(Code::GuestLost.because(UNANSWERED));
            }
            Ok(()) => self.convert_outcome(method, outcome),
        }
    }
}

thread_local! {
    /// A buffer for arguments, kept for reuse.
    static ARGUMENTS: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

impl Client {
    /// Calls an inline method on this thread. Returns its result.
    ///
    /// # Errors
    /// The service's error, or another outcome of the call.
    pub fn call_inline<P: Encode, T, E: Decode>(
        &self,
        method: u32,
        params: &P,
        read_reply: fn(&mut Reply) -> Result<T, Malformed>,
    ) -> Result<T, CallError<E>> {
        let instance = self.instance();
        let layouts = &instance.package.methods[method as usize];
        let (deadline, _) = self.deadline_and_parent()?;
        let mut args = ARGUMENTS.take();
        message::encode_into(params, layouts.params, &mut args).map_err(unencodable)?;
        let ended = instance.call_inline(method, &args, deadline);
        if args.capacity() <= SPARE_BYTES {
            ARGUMENTS.set(args);
        }
        let guard = Some(Arc::clone(self.guard()));
        read(ended?, guard, layouts, read_reply)
    }
}
