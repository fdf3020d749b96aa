//! Cancellation: ends the code in a scope early, from inside or outside the scope, by a deadline,
//! or because a parent scope is cancelled.
//!
//! Any owner of a [`Token`] can cancel its scope. An actor in a [`cancel_scope`] whose token is
//! cancelled is unwound to the scope at its next wait, yield or preemption point, and the scope
//! returns [`Cancelled`]. This is not a failure: destructors run, and the actor continues after the
//! scope. [`shield`] protects a closure from cancellation. A nested scope is a child of the outer
//! one: it is cancelled with it and never has a later deadline. [`scope`] spawns actors that do not
//! outlive it.
//!
//! A deadline needs no timer: a wait in the scope ends at the deadline, and a computation reads the
//! clock at some of its preemption points.
//!
//! After N. J. Smith, "Timeouts and cancellation for humans" (2018) and "Notes on structured
//! concurrency" (2018).
//!
//! ```
//! use std::time::Duration;
//! use thalweg_runtime::cancel::{Cause, cancel_scope, shield, with_timeout};
//! use thalweg_runtime::{run, sleep, spawn};
//!
//! run(|| {
//!     let slow = with_timeout(Duration::from_millis(1), || sleep(Duration::from_secs(3600)));
//!     assert_eq!(slow.unwrap_err().cause, Cause::Deadline);
//!
//!     let saved = cancel_scope(|token| {
//!         let token = token.clone();
//!         spawn(move || token.cancel("the user went away"));
//!         shield(|| sleep(Duration::from_millis(1)));
//!         sleep(Duration::from_secs(3600));
//!     });
//!     assert_eq!(saved.unwrap_err().to_string(), "cancelled: the user went away");
//! });
//! ```

pub(crate) mod members;
mod scope;
mod token;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

use thalweg_queue::clock;

pub use self::scope::{Failure, OnFailure, Scope, ScopeError, scope};
pub use self::token::Token;
use crate::reason::CancelUnwind;
pub use crate::scope_node::Cause;
use crate::scope_node::TokenNode;
use crate::worker;

/// A scope was cancelled before it finished.
#[derive(Clone, Debug, PartialEq)]
pub struct Cancelled {
    /// The cause.
    pub cause: Cause,
}

impl fmt::Display for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cancelled: {}", self.cause)
    }
}

impl std::error::Error for Cancelled {}

/// Runs `f` in a scope. The token that `f` receives cancels it, and so does the enclosing scope.
///
/// # Errors
/// The scope was cancelled before `f` finished. A closure that finishes anyway returns its value.
///
/// # Panics
/// If `f` panics, or if the caller is not an actor, since a thread cannot be unwound.
pub fn cancel_scope<T>(f: impl FnOnce(&Token) -> T) -> Result<T, Cancelled> {
    within(&Token::nested(u64::MAX), f)
}

/// Runs `f` for at most `timeout`.
///
/// # Errors
/// The time was over, or the enclosing scope was cancelled.
///
/// # Panics
/// As [`cancel_scope`].
pub fn with_timeout<T>(timeout: Duration, f: impl FnOnce() -> T) -> Result<T, Cancelled> {
    within(&Token::nested(clock::deadline(timeout)), |_| f())
}

/// Runs `f` until `deadline`.
///
/// # Errors
/// The deadline passed, or the enclosing scope was cancelled.
///
/// # Panics
/// As [`cancel_scope`].
pub fn with_deadline<T>(deadline: Instant, f: impl FnOnce() -> T) -> Result<T, Cancelled> {
    within(&Token::nested(clock::at(deadline)), |_| f())
}

/// Runs `f` in the scope of this token, which may already be cancelled.
pub(crate) fn within<T>(token: &Token, f: impl FnOnce(&Token) -> T) -> Result<T, Cancelled> {
    let task = worker::running().expect("a cancel scope requires an actor");
    let before = task.replace_scope(token.node());
    let key = token.node().enter(|| task.waker());
    let result = catch_unwind(AssertUnwindSafe(|| f(token)));
    if let Some(key) = key {
        token.node().leave(key);
    }
    task.replace_scope(before);
    let payload = match result {
        Ok(value) => return Ok(value),
        Err(payload) => payload,
    };
    // SAFETY: the previous scope is the current one again, and its frame is still on the stack.
    let outer = unsafe { before.as_ref() };
    if payload.is::<CancelUnwind>()
        && !outer.is_some_and(|outer| outer.is_due() || outer.is_cancelled())
        && let Some(cause) = token.cause()
    {
        return Err(Cancelled { cause });
    }
    resume_unwind(payload)
}

/// Runs `f` without cancellation; a kill still ends the actor. A cancellation that arrives
/// meanwhile takes effect afterwards.
///
/// # Panics
/// If `f` panics.
pub fn shield<T>(f: impl FnOnce() -> T) -> T {
    let Some(task) = worker::running() else {
        return f();
    };
    let before = task.replace_scope(std::ptr::null());
    let result = catch_unwind(AssertUnwindSafe(f));
    task.replace_scope(before);
    result.unwrap_or_else(|payload| resume_unwind(payload))
}

/// Whether the caller's scope is cancelled, for a computation that wants to return early. Costs one
/// or two nanoseconds.
#[inline]
pub fn is_cancelled() -> bool {
    worker::running().is_some_and(|task| task.scope().is_some_and(TokenNode::is_cancelled))
}

/// Unwinds the caller to its scope, if the scope is cancelled.
#[inline]
pub fn check_cancelled() {
    if is_cancelled() {
        worker::raise_if_due();
    }
}
