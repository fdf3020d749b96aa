//! Cancellation: asking what runs within a scope to come to its end, from inside or outside, by a deadline, and from parent to child.
//!
//! A [`Token`] is what is cancelled, by whoever has it. What an actor does in a [`cancel_scope`] ends at its next wait, yield or point once the
//! scope's token is cancelled: it is unwound to the scope, which gives [`Cancelled`]. That is not a failure: destructors run, and the actor goes on
//! after the scope. [`shield`] keeps cancellation off a stretch. A scope within another is its child: it is cancelled with it, and has no later
//! deadline. [`scope`] has actors as children, which do not outlive it.
//!
//! A deadline needs no timer: whoever waits in the scope waits no longer than that, and who computes looks at the clock now and then.
//!
//! After N. J. Smith, "Timeouts and cancellation for humans" (2018) and "Notes on structured concurrency" (2018).
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

mod below;
mod scope;
mod token;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use thalweg_queue::clock;

pub use self::scope::{Failure, OnFailure, Scope, ScopeError, scope};
pub(crate) use self::token::Node;
pub use self::token::Token;
use crate::exit::ExitReason;
use crate::{exit, worker};

/// Why something was cancelled.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Cause {
    /// Somebody asked for it, with these words.
    Asked(Arc<str>),
    /// The deadline passed.
    Deadline,
    /// An actor of the same [`scope`] failed.
    Failed(ExitReason),
    /// The scope's own actor was unwound, or told to end.
    Unwound,
}

impl PartialEq for Cause {
    /// Of two failures it is not known whether they are the same.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Asked(one), Self::Asked(other)) => one == other,
            (Self::Deadline, Self::Deadline) | (Self::Unwound, Self::Unwound) => true,
            _ => false,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Asked(words) => f.write_str(words),
            Self::Deadline => f.write_str("the deadline passed"),
            Self::Failed(reason) => write!(f, "another one failed: {reason}"),
            Self::Unwound => f.write_str("its parent ends"),
        }
    }
}

/// A scope did not come to its end by itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Cancelled {
    /// Why.
    pub cause: Cause,
}

impl fmt::Display for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cancelled: {}", self.cause)
    }
}

impl std::error::Error for Cancelled {}

/// What an actor is unwound with to its cancelled scope.
pub(crate) struct Cancelling;

/// Runs `f` in a scope that is cancelled by the token that it is given, or with the scope around it.
///
/// # Errors
/// It was cancelled before it came to its end. What came to its end did so, cancelled or not.
///
/// # Panics
/// With `f`'s own panic; if the caller is no actor: a thread is not unwound.
pub fn cancel_scope<T>(f: impl FnOnce(&Token) -> T) -> Result<T, Cancelled> {
    within(&Token::nested(u64::MAX), f)
}

/// Runs `f` for at most `timeout`.
///
/// # Errors
/// It took longer, or the scope around it was cancelled.
///
/// # Panics
/// As [`cancel_scope`].
pub fn with_timeout<T>(timeout: Duration, f: impl FnOnce() -> T) -> Result<T, Cancelled> {
    within(&Token::nested(clock::deadline(timeout)), |_| f())
}

/// Runs `f` until `deadline`.
///
/// # Errors
/// It took longer, or the scope around it was cancelled.
///
/// # Panics
/// As [`cancel_scope`].
pub fn with_deadline<T>(deadline: Instant, f: impl FnOnce() -> T) -> Result<T, Cancelled> {
    within(&Token::nested(clock::at(deadline)), |_| f())
}

/// Runs `f` in a scope of this token, which others may have made and cancelled before.
pub(crate) fn within<T>(token: &Token, f: impl FnOnce(&Token) -> T) -> Result<T, Cancelled> {
    let task = worker::running().expect("a cancel scope is for actors");
    let place = &task.header().scope;
    let before = place.replace(token.node());
    token.arm(task.waker());
    let result = catch_unwind(AssertUnwindSafe(|| f(token)));
    token.disarm();
    place.set(before);
    let payload = match result {
        Ok(value) => return Ok(value),
        Err(payload) => payload,
    };
    // SAFETY: the scope that was there before is there again, and its frame is below.
    let outer = unsafe { before.as_ref() };
    if payload.is::<Cancelling>()
        && !outer.is_some_and(|outer| outer.is_due() || outer.is_cancelled())
        && let Some(cause) = token.cause()
    {
        return Err(Cancelled { cause });
    }
    resume_unwind(payload)
}

/// Runs `f` with all cancellation kept off; a kill is not. What came meanwhile comes after.
///
/// # Panics
/// With `f`'s own panic.
pub fn shield<T>(f: impl FnOnce() -> T) -> T {
    let Some(task) = worker::running() else {
        return f();
    };
    let place = &task.header().scope;
    let before = place.replace(std::ptr::null());
    let result = catch_unwind(AssertUnwindSafe(f));
    place.set(before);
    result.unwrap_or_else(|payload| resume_unwind(payload))
}

/// Whether the scope in which the caller runs is cancelled: for what computes and wants to come to its end by itself. It costs a nanosecond or two.
#[inline]
pub fn is_cancelled() -> bool {
    worker::running().is_some_and(|task| task.scope().is_some_and(Node::is_cancelled))
}

/// Unwinds the caller to its scope, if that is cancelled.
#[inline]
pub fn check_cancelled() {
    if is_cancelled() {
        exit::raise_if_due();
    }
}
