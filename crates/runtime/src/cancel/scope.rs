//! Scopes with actors in them.
//!
//! 1. The scope's frame waits for its actors whatever way it is left: its body's end, its panic, a cancellation, an exit signal. It is not unwound
//!    past that wait: it catches what comes, tells the actors, waits, and then lets it go on. Only where the runtime stops the wait is cut short: its
//!    actors are ended by the same stop.
//! 2. An actor's end is told through its control, so it is counted before anybody can have joined it.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex};
use std::task::Waker;

use thalweg_queue::no_preempt::{LockGuard, lock};

use super::token::Token;
use super::{Cancelled, Cause, within};
use crate::exit::{Down, ExitReason, Hears, NoKill, Watch, exit};
use crate::id::ActorId;
use crate::join::JoinHandle;
use crate::runtime::Handle;
use crate::wait::{self, WakeReason};

/// What the failure of one actor is for the others of its scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFailure {
    /// All are cancelled, and the scope's own body.
    FailFast,
    /// They go on, and all failures are given at the end.
    Collect,
    /// Nothing.
    Ignore,
}

/// An actor that ended other than by [`Normal`](ExitReason::Normal) or a shutdown.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Which.
    pub id: ActorId,
    /// Why.
    pub reason: ExitReason,
}

/// Why a scope has no value.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ScopeError {
    /// Actors failed: the first one, with [`OnFailure::FailFast`]; all that did, in order, with [`OnFailure::Collect`].
    Failed(Vec<Failure>),
    /// It was cancelled.
    Cancelled(Cancelled),
}

impl fmt::Display for ScopeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(failures) => {
                write!(f, "{} of the scope's actors failed", failures.len())?;
                if let Some(first) = failures.first() {
                    write!(f, ", the first one, {}, since {}", first.id, first.reason)?;
                }
                Ok(())
            }
            Self::Cancelled(cancelled) => cancelled.fmt(f),
        }
    }
}

impl std::error::Error for ScopeError {}

/// Spawns actors that end before it does. Clones are one and the same, and those that its actors have may spawn too.
#[derive(Clone)]
pub struct Scope {
    shared: Arc<Shared>,
    runtime: Handle,
}

struct Shared {
    token: Token,
    on_failure: OnFailure,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    live: usize,
    closed: bool,
    failures: Vec<Failure>,
    waiter: Option<Waker>,
}

impl Shared {
    fn state(&self) -> LockGuard<'_, State> {
        lock(&self.state)
    }
}

/// Runs `f`, and waits for all actors that it spawned in its scope. What it gives is `f`'s value.
///
/// If `f` panics, or the caller is told to end, the actors are cancelled, waited for, and then that goes on. The scope around it, if it is cancelled,
/// cancels this one.
///
/// ```
/// use thalweg_runtime::cancel::{OnFailure, scope};
/// use thalweg_runtime::{channel, run};
///
/// run(|| {
///     let (results, all) = channel();
///     let spawned = scope(OnFailure::FailFast, |scope| {
///         for n in 1..=3 {
///             let results = results.clone();
///             scope.spawn(move || results.send(n * n).expect("we receive below"));
///         }
///         3
///     });
///     drop(results);
///     assert_eq!(spawned.expect("none fails"), all.iter().count());
/// });
/// ```
///
/// # Errors
/// An actor failed and that counts, or the scope was cancelled.
///
/// # Panics
/// With `f`'s own panic; if the caller is no actor.
pub fn scope<T>(on_failure: OnFailure, f: impl FnOnce(&Scope) -> T) -> Result<T, ScopeError> {
    let runtime = Handle::current().expect("a scope is for actors");
    let scope = Scope {
        shared: Arc::new(Shared {
            token: Token::nested(u64::MAX),
            on_failure,
            state: Mutex::default(),
        }),
        runtime,
    };
    let body = catch_unwind(AssertUnwindSafe(|| {
        within(scope.token(), |_| {
            let value = f(&scope);
            scope.wait();
            value
        })
    }));
    // Rule 1.
    if !matches!(body, Ok(Ok(_))) {
        scope.token().cancel_for(Cause::Unwound);
    }
    {
        let _whole = NoKill::new();
        scope.wait();
    }
    let failures = {
        let mut state = scope.shared.state();
        state.closed = true;
        std::mem::take(&mut state.failures)
    };
    let body = body.unwrap_or_else(|payload| resume_unwind(payload));
    if on_failure != OnFailure::Ignore && !failures.is_empty() {
        return Err(ScopeError::Failed(failures));
    }
    body.map_err(ScopeError::Cancelled)
}

impl Scope {
    /// A new actor in the scope. In one that is cancelled or over it does not begin.
    pub fn spawn<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        let token = self.token().child();
        {
            let mut state = self.shared.state();
            if state.closed {
                token.cancel_for(Cause::Unwound);
            } else {
                state.live += 1;
            }
            if state.closed {
                drop(state);
                return self.runtime.spawn(|| exit(ExitReason::Shutdown));
            }
        }
        // Rule 2.
        let tell = Watch::Shared(Arc::clone(&self.shared) as Arc<dyn Hears>);
        self.runtime.spawn_watched(None, false, tell, move || {
            if token.is_cancelled() {
                exit(ExitReason::Shutdown);
            }
            within(&token, |_| job()).unwrap_or_else(|_| exit(ExitReason::Shutdown))
        })
    }

    /// Cancels it: its actors, and its body.
    pub fn cancel(&self, why: impl Into<Arc<str>>) {
        self.token().cancel(why);
    }

    /// What it is cancelled by.
    pub fn token(&self) -> &Token {
        &self.shared.token
    }

    /// How many actors of it live.
    pub fn len(&self) -> usize {
        self.shared.state().live
    }

    /// Whether none does.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Until none lives. It may be cut short where the caller is to end.
    fn wait(&self) {
        loop {
            {
                let mut state = self.shared.state();
                if state.live == 0 {
                    return;
                }
                state.waiter = Some(wait::waker());
            }
            if wait::park(None) == WakeReason::Stopping {
                wait::unwind_if_stopping();
                return;
            }
        }
    }
}

impl Hears for Shared {
    fn hears(&self, Down { id, reason }: Down) {
        let failed = !reason.is_orderly();
        let fails_fast = failed && self.on_failure == OnFailure::FailFast;
        let waiter = {
            let mut state = self.state();
            state.live -= 1;
            if failed && (!fails_fast || state.failures.is_empty()) {
                state.failures.push(Failure {
                    id,
                    reason: reason.clone(),
                });
            }
            if state.live == 0 {
                state.waiter.take()
            } else {
                None
            }
        };
        if fails_fast {
            self.token.cancel_for(Cause::Failed(reason));
        }
        if let Some(waiter) = waiter {
            waiter.wake();
        }
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope")
            .field("live", &self.len())
            .field("token", self.token())
            .finish()
    }
}
