//! Calls of inline methods.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use thalweg_runtime::log::{self, Level};

use super::Instance;
use crate::call::is_past;
use crate::code::{Code, Failure};
use crate::completion::{CallBuffer, Completion, Outcome};
use crate::incoming::{UNANSWERED, log_unanswered};
use crate::inline::InlineCall;
use crate::nested::{catch_panic, log_panic};

impl Instance {
    /// Calls an inline or a brief method on this thread. The returned completion contains the
    /// outcome.
    ///
    /// # Errors
    /// `would_park`: the method is brief, and the service is busy or this thread may not run it. In
    /// this case [submit](Self::submit) the call. `argument`: there is no such method, or it is
    /// neither inline nor brief. `closed`, `forked`. The service was not called.
    pub fn call_inline(
        self: &Arc<Self>,
        method: u32,
        args: &[u8],
        deadline: u64,
    ) -> Result<Completion, Failure> {
        let method = self.library_method(method)?;
        self.admit(method)?;
        let layouts = &self.package.methods[method as usize];
        if layouts.options.is_brief {
            return self.call_brief(method, args, deadline);
        }
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
                    inline.dispatch(InlineCall::new(method, layouts, args, outcome));
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
