//! Which call the running actor works for, so that the calls it makes end with that one.
//!
//! An actor stays on its thread once it runs, and others run there while it waits. So each thread has a list of who works for what; an actor's own entries are
//! in it in the order in which they were made, and the last is the one that counts.
//!
//! A stream whose writer a panic of its own call takes along is to end with the panic's message, which nobody knows before the panic is
//! caught. So it is left behind here, and ended where the call's code is left: with that message, or, where the service has caught the
//! panic itself, without. An entry that is no actor's marks that something was left: leaving costs nothing where there is none.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use thalweg_queue::quiet::lock;
use thalweg_runtime::{ActorId, wait};

use crate::call::{CallCore, CallRef};
use crate::code::{Code, Failure};
use crate::handles::{self, Object};
use crate::stream::EndStream;

thread_local! {
    static CURRENT_CALLS: RefCell<Vec<(Option<ActorId>, u64)>> = const { RefCell::new(Vec::new()) };
    static DEFERRED_ENDS: RefCell<Vec<DeferredEnd>> = const { RefCell::new(Vec::new()) };
}

/// A stream whose writer a panic took along.
struct DeferredEnd {
    actor: ActorId,
    /// The call that panicked.
    call: u64,
    stream: Arc<dyn EndStream>,
}

/// What a service drops that was replaced: no call has this handle.
pub(crate) const REPLACED_SERVICE: u64 = u64::MAX;

/// How the service comes to drop its end of a call or of a stream.
pub(crate) enum DropCause {
    /// It wants to.
    Intended,
    /// A panic unwinds code of that very call: who caught it, further up, knows its message and ends the call.
    OwnPanic,
    /// A panic in code for something else took it along: nobody but who is dropped now can say so.
    OtherPanic(Failure),
}

impl DropCause {
    /// Of what belongs to the call with this handle, and is dropped just now.
    pub(crate) fn now(handle: u64) -> Self {
        let panics = std::thread::panicking();
        match current() {
            Some(current) if panics && current == handle => Self::OwnPanic,
            current if panics || current == Some(REPLACED_SERVICE) => Self::OtherPanic(
                Code::GuestPanicked.because("the service panicked in another call"),
            ),
            _ => Self::Intended,
        }
    }
}

/// Has the stream end where the code of its call is left, which a panic unwinds just now.
#[cold]
pub(crate) fn end_on_scope_exit(call: u64, stream: Arc<dyn EndStream>) {
    let Some(actor) = wait::current() else {
        return;
    };
    let deferred = DeferredEnd {
        actor,
        call,
        stream,
    };
    DEFERRED_ENDS.with_borrow_mut(|all| all.push(deferred));
    CURRENT_CALLS.with_borrow_mut(|list| list.push((None, call)));
}

/// Ends what the running actor has left of this call.
#[cold]
fn end_deferred(call: u64, why: &Failure) {
    let Some(actor) = wait::current() else {
        return;
    };
    let deferred: Vec<DeferredEnd> = DEFERRED_ENDS.with_borrow_mut(|all| {
        let is_own = |deferred: &mut DeferredEnd| deferred.actor == actor && deferred.call == call;
        all.extract_if(.., is_own).collect()
    });
    for one in deferred {
        CURRENT_CALLS.with_borrow_mut(|list| {
            if let Some(mark) = list.iter().rposition(|entry| *entry == (None, call)) {
                list.remove(mark);
            }
        });
        one.stream.end(why.clone());
    }
}

/// While it is there the actor works for the call.
pub(crate) struct CallScope(Option<ActorId>);

/// From now on the actor works for the call with this handle.
pub(crate) fn enter(handle: u64) -> CallScope {
    let actor = wait::current();
    if let Some(actor) = actor {
        CURRENT_CALLS.with_borrow_mut(|list| list.push((Some(actor), handle)));
    }
    CallScope(actor)
}

/// The call that the actor works for. It may have ended.
pub(crate) fn current() -> Option<u64> {
    let actor = wait::current()?;
    CURRENT_CALLS.with_borrow(|list| {
        let entry = list.iter().rev().find(|(whose, _)| *whose == Some(actor));
        entry.map(|(_, handle)| *handle)
    })
}

impl Drop for CallScope {
    fn drop(&mut self) {
        if let Some(actor) = self.0 {
            let own = Some(actor);
            let call = CURRENT_CALLS.with_borrow_mut(|list| {
                // Most often nobody else came to work here meanwhile, and nothing was left.
                if list.last().is_some_and(|(whose, _)| *whose == own) {
                    list.pop();
                    return None;
                }
                let last = list.iter().rposition(|(whose, _)| *whose == own)?;
                let (_, call) = list.remove(last);
                list.contains(&(None, call)).then_some(call)
            });
            if let Some(call) = call {
                let why = "the service caught a panic that dropped a writer";
                end_deferred(call, &Code::GuestPanicked.because(why));
            }
        }
    }
}

impl CallCore {
    /// Until when a call must end that is made for the call of this generation.
    ///
    /// # Errors
    /// That one was stopped: none is made for it any more.
    pub(crate) fn nested_deadline(&self, generation: u32) -> Result<u64, Failure> {
        let state = lock(&self.state);
        if self.open_state.generation() != generation {
            return Ok(u64::MAX);
        }
        match &state.stop_reason {
            Some(why) => Err(nested_failure(why)),
            // Its answer is on its way: what is done now is done for nobody.
            None if self.has_ended() => Ok(u64::MAX),
            None => Ok(self.deadline()),
        }
    }

    /// `call` was made for the call of this generation, and ends with it.
    pub(crate) fn adopt(&self, generation: u32, call: &CallRef) {
        let (stop_reason, nested) = {
            let mut state = lock(&self.state);
            if self.open_state.generation() != generation {
                return;
            }
            state.nested.push(call.handle());
            let prune = state.nested.len() >= 16 && state.nested.len().is_power_of_two();
            let nested = prune.then(|| std::mem::take(&mut state.nested));
            (state.stop_reason.clone(), nested)
        };
        if let Some(why) = stop_reason {
            call.stop(nested_failure(&why));
        }
        if let Some(mut nested) = nested {
            // Without the lock, under which nothing else may be locked.
            nested.retain(|call| handles::find(*call).is_ok());
            let mut state = lock(&self.state);
            if self.open_state.generation() == generation && state.stop_reason.is_none() {
                state.nested.append(&mut nested);
                return;
            }
            let why = state.stop_reason.clone();
            drop(state);
            if let Some(why) = why {
                nested.into_iter().for_each(|call| stop(call, &why));
            }
        }
    }
}

/// Stops a call, if it has not ended, since the one that it was made for was.
pub(crate) fn stop(call: u64, why: &Failure) {
    if let Ok(Object::Call(call)) = handles::find(call) {
        call.stop(nested_failure(why));
    }
}

pub(crate) fn nested_failure(why: &Failure) -> Failure {
    let code = match why.code {
        Code::TimedOut => Code::TimedOut,
        _ => Code::Cancelled,
    };
    code.because(format!(
        "the call that this one was made for ended: {}",
        why.message
    ))
}

/// Runs code of the service, for the call with this handle; 0: for none.
///
/// # Errors
/// It panicked.
#[inline]
pub(crate) fn catch_in_call(handle: u64, code: impl FnOnce()) -> Result<(), Failure> {
    let _within = enter(handle);
    catch_panic(code).inspect_err(|why| end_deferred(handle, why))
}

/// Runs code of the service.
///
/// # Errors
/// It panicked.
#[inline]
pub(crate) fn catch_panic(code: impl FnOnce()) -> Result<(), Failure> {
    catch_unwind(AssertUnwindSafe(code)).map_err(panic_failure)
}

#[cold]
fn panic_failure(payload: Box<dyn Any + Send>) -> Failure {
    let message = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a text".to_owned());
    // What was thrown may itself panic when dropped.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(payload)));
    Code::GuestPanicked.because(message)
}
