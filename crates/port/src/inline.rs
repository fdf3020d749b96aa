//! Inline methods: served on the caller's thread, beside the instance's actor.
//!
//! What serves them is an object of its own, made once for each instance at the first such call, which never sees the service's state. So
//! such a call waits for nothing: it takes no place of a port and of no mailbox. Submitted to a port as any other it is answered by the same object, on the instance's
//! actor.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use thalweg_wire::{Decode, Encode, Malformed, message};

use crate::call::is_past;
use crate::client::Client;
use crate::code::{Code, Failure, unencodable};
use crate::completion::{CallBuffer, Completion, Outcome, SPARE_BYTES};
use crate::incoming::{Refusal, UNANSWERED};
use crate::instance::Instance;
use crate::nested::catch_panic;
use crate::pending::{CallError, Reply, read};
use crate::service::Method;

/// What serves the inline methods of one instance: generated code implements it. Any number of threads are in it at a time.
pub trait Inline: Send + Sync + 'static {
    /// Serves one call. It must not wait for anything.
    fn dispatch(&self, call: InlineCall<'_>);
}

/// One inline call to answer. Dropped without an answer it ends as `guest_lost`.
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

    /// Reads the parameters: everything is checked, size, hash, bounds, UTF-8.
    ///
    /// # Errors
    /// What is malformed.
    pub fn params<P: Decode>(&self) -> Result<P, Refusal> {
        Ok(message::open(self.args, self.layouts.params)?.owned::<P>()?)
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
    /// Calls an inline method on this thread. Whatever its ending is, it is in what comes back.
    ///
    /// # Errors
    /// `argument`: no such method, or one that is not inline; `closed`; `forked`. The service has not heard of it then.
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

    /// Has an inline call answered, on whichever thread this is. A panic ends the call and nothing else: what serves it has no state that others could find half done.
    pub(crate) fn answer_inline(&self, method: u32, args: &[u8], outcome: &mut Outcome) {
        let made = catch_unwind(AssertUnwindSafe(|| {
            self.inline.get_or_init(self.make_inline)
        }));
        let served = match &made {
            Ok(Some(inline)) => {
                // What it is where nobody answers.
                outcome.code = Code::GuestLost;
                catch_panic(|| {
                    inline.dispatch(InlineCall {
                        number: method,
                        layouts: &self.package.methods[method as usize],
                        args,
                        outcome,
                    });
                })
            }
            Ok(None) => {
                Err(Code::GuestLost.because("the service has nothing that serves inline methods"))
            }
            Err(_) => Err(Code::GuestLost
                .because("what serves the inline methods panicked while it was made")),
        };
        if let Err(payload) = made {
            // What was thrown may itself panic when dropped.
            std::mem::forget(payload);
        }
        match served {
            Err(why) => outcome.fail(why),
            Ok(()) if outcome.code == Code::GuestLost && outcome.message.is_empty() => {
                outcome.fail(Code::GuestLost.because(UNANSWERED));
            }
            Ok(()) => self.convert_outcome(method, outcome),
        }
    }
}

thread_local! {
    /// The memory of arguments.
    static ARGUMENTS: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

impl Client {
    /// Calls an inline method on this thread: it has its result when this returns.
    ///
    /// # Errors
    /// The service's error, or how else the call ended.
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
