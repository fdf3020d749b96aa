//! Tracks which call the running actor works for, so that the calls that it makes end with that
//! call.
//!
//! An actor stays on its thread while it runs, and other actors run there while it waits. Each
//! thread therefore has one list of pairs (owner, call). The owner is an actor, or the thread itself
//! while it runs a [brief](crate::MethodOptions::is_brief) method. The entries of an owner are in
//! the order in which it entered them, and its last entry is its current call.
//!
//! If a panic in a call unwinds a writer of the call's stream, the stream must end with the panic's
//! message, which is unknown until the panic is caught. The stream is therefore deferred here. It
//! ends when the scope of the call's code is left: with the panic's message, or, if the service
//! caught the panic itself, without it. An entry `Deferred` marks that a stream was deferred, so that
//! leaving a scope without deferred streams costs nothing.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use thalweg_runtime::log::{self, Level};
use thalweg_runtime::{ActorId, wait};

use crate::code::{Code, Failure};
use crate::end_stream::EndStream;

/// Whose code runs: an actor's, or, if `None`, that of a thread without an actor.
type Owner = Option<ActorId>;

/// An entry of the list of current calls.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Entry {
    Current(Owner, u64),
    /// A stream of this call was deferred.
    Deferred(u64),
}

thread_local! {
    static CURRENT_CALLS: RefCell<Vec<Entry>> = const { RefCell::new(Vec::new()) };
    static DEFERRED_ENDS: RefCell<Vec<DeferredEnd>> = const { RefCell::new(Vec::new()) };
}

/// A stream whose writer was unwound by a panic.
struct DeferredEnd {
    owner: Owner,
    /// The call that panicked.
    call: u64,
    stream: Arc<dyn EndStream>,
}

/// The current call while a replaced service is dropped. No call has this handle.
pub(crate) const REPLACED_SERVICE: u64 = u64::MAX;

/// Why the service drops its end of a call or of a stream.
pub(crate) enum DropCause {
    /// The service dropped it deliberately.
    Intended,
    /// A panic unwinds the code of that same call. The code that catches the panic knows its
    /// message and ends the call.
    OwnPanic,
    /// A panic in other code dropped it. No other code can report this, so it must end now.
    OtherPanic(Failure),
}

impl DropCause {
    /// The cause of the current drop of an object that belongs to the call with this handle.
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

/// Ends the stream when the code of its call, which a panic is unwinding, is left.
#[cold]
pub(crate) fn end_on_scope_exit(call: u64, stream: Arc<dyn EndStream>) {
    let deferred = DeferredEnd {
        owner: wait::current(),
        call,
        stream,
    };
    DEFERRED_ENDS.with_borrow_mut(|all| all.push(deferred));
    CURRENT_CALLS.with_borrow_mut(|list| list.push(Entry::Deferred(call)));
}

/// Ends the streams that the running code has deferred for this call.
#[cold]
pub(crate) fn end_deferred(call: u64, why: &Failure) {
    let owner = wait::current();
    let deferred: Vec<DeferredEnd> = DEFERRED_ENDS.with_borrow_mut(|all| {
        let is_own = |deferred: &mut DeferredEnd| deferred.owner == owner && deferred.call == call;
        all.extract_if(.., is_own).collect()
    });
    for one in deferred {
        CURRENT_CALLS.with_borrow_mut(|list| {
            if let Some(mark) = list
                .iter()
                .rposition(|entry| *entry == Entry::Deferred(call))
            {
                list.remove(mark);
            }
        });
        one.stream.end(why.clone());
    }
}

/// The actor or thread works for the call as long as this exists.
pub(crate) struct CallScope(Owner);

/// Makes the call with this handle the current call of the actor, or of the thread without one.
#[inline]
pub(crate) fn enter(handle: u64) -> CallScope {
    let owner = wait::current();
    CURRENT_CALLS.with_borrow_mut(|list| list.push(Entry::Current(owner, handle)));
    CallScope(owner)
}

/// The call that the actor or thread works for. It may have ended.
#[inline]
pub(crate) fn current() -> Option<u64> {
    match CURRENT_CALLS.with_borrow(Vec::is_empty) {
        true => None,
        false => current_of_owner(),
    }
}

fn current_of_owner() -> Option<u64> {
    CURRENT_CALLS.with_borrow(|list| {
        let owner = wait::current();
        list.iter().rev().find_map(|entry| match entry {
            Entry::Current(whose, handle) if *whose == owner => Some(*handle),
            _ => None,
        })
    })
}

impl Drop for CallScope {
    #[inline]
    fn drop(&mut self) {
        let owner = self.0;
        let is_own = |entry: &Entry| matches!(entry, Entry::Current(whose, _) if *whose == owner);
        let call = CURRENT_CALLS.with_borrow_mut(|list| {
            // Usually no other actor has entered a call here since, and no stream was deferred.
            if list.last().is_some_and(is_own) {
                list.pop();
                return None;
            }
            let last = list.iter().rposition(is_own)?;
            let Entry::Current(_, call) = list.remove(last) else {
                return None;
            };
            list.contains(&Entry::Deferred(call)).then_some(call)
        });
        if let Some(call) = call {
            let why = "the service caught a panic that dropped a writer";
            end_deferred(call, &Code::GuestPanicked.because(why));
        }
    }
}

/// Reports a panic of service code: of a method, or of a destructor if it is `None`.
#[cold]
pub(crate) fn log_panic(method: Option<&str>, why: &Failure) {
    let code = method.unwrap_or("a destructor of the service");
    log::write(
        Level::Error,
        "service",
        format_args!("{code} panicked: {}", why.message),
    );
}

/// Runs service code.
///
/// # Errors
/// The code panicked.
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
        .unwrap_or_else(|| "a panic without a message".to_owned());
    // The payload of the panic may itself panic when it is dropped.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(payload)));
    Code::GuestPanicked.because(message)
}
