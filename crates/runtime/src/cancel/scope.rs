//! Scopes that contain actors.
//!
//! 1. However a scope is left, its frame waits for its actors: after its body returned, after a
//!    panic, a cancellation or an exit signal. The frame catches the unwinding, cancels the actors,
//!    waits, and then resumes the unwinding. Only the stop of the runtime cuts the wait short,
//!    because the same stop ends the actors.
//! 2. The exit of an actor is reported through its control, so it is counted before a join can
//!    return.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex};
use std::task::Waker;

use thalweg_queue::no_preempt::{LockGuard, lock};

use super::token::Token;
use super::{Cancelled, Cause, within};
use crate::control::{Down, DownListener, OnDown};
use crate::exit::{NoKill, exit};
use crate::id::ActorId;
use crate::join::JoinHandle;
use crate::reason::ExitReason;
use crate::runtime::Handle;
use crate::wait;
use crate::wake_reason::WakeReason;

/// What the failure of one actor does to the others in its scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFailure {
    /// All of them and the body of the scope are cancelled.
    FailFast,
    /// They continue, and all failures are returned at the end.
    Collect,
    /// Nothing.
    Ignore,
}

/// An actor whose exit was a failure: any reason other than [`Normal`](ExitReason::Normal), a
/// shutdown or the stop of the runtime.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The actor.
    pub id: ActorId,
    /// Its exit reason.
    pub reason: ExitReason,
}

/// Why a scope has no value.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ScopeError {
    /// Actors failed: the first one with [`OnFailure::FailFast`], all of them in order with
    /// [`OnFailure::Collect`].
    Failed(Vec<Failure>),
    /// The scope was cancelled.
    Cancelled(Cancelled),
}

impl fmt::Display for ScopeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(failures) => {
                write!(f, "{} of the scope's actors failed", failures.len())?;
                if let Some(first) = failures.first() {
                    write!(f, "; the first, actor {}: {}", first.id, first.reason)?;
                }
                Ok(())
            }
            Self::Cancelled(cancelled) => cancelled.fmt(f),
        }
    }
}

impl std::error::Error for ScopeError {}

/// Spawns actors that end before the scope does. Clones refer to the same scope; its actors may use
/// one to spawn further actors.
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

/// Runs `f`, waits for all actors spawned in the scope, and returns the value of `f`.
///
/// If `f` panics or the caller is to end, the actors are cancelled and awaited first. If the
/// enclosing scope is cancelled, this one is cancelled too.
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
///     assert_eq!(spawned.expect("no actor fails"), all.iter().count());
/// });
/// ```
///
/// # Errors
/// An actor failed, unless failures are ignored, or the scope was cancelled.
///
/// # Panics
/// If `f` panics, or if the caller is not an actor.
pub fn scope<T>(on_failure: OnFailure, f: impl FnOnce(&Scope) -> T) -> Result<T, ScopeError> {
    let runtime = Handle::current().expect("a scope requires an actor");
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
        let _guard = NoKill::new();
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
    /// Spawns an actor in the scope. If the scope is cancelled or over, the actor does not begin.
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
        let listener = DownListener::Shared(Arc::clone(&self.shared) as Arc<dyn OnDown>);
        self.runtime.spawn_watched(None, false, listener, move || {
            if token.is_cancelled() {
                exit(ExitReason::Shutdown);
            }
            within(&token, |_| job()).unwrap_or_else(|_| exit(ExitReason::Shutdown))
        })
    }

    /// Cancels the body and the actors of the scope.
    pub fn cancel(&self, why: impl Into<Arc<str>>) {
        self.token().cancel(why);
    }

    /// The token of the scope.
    pub fn token(&self) -> &Token {
        &self.shared.token
    }

    /// The number of running actors.
    pub fn len(&self) -> usize {
        self.shared.state().live
    }

    /// Whether no actor runs.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Waits until no actor runs. The wait may be cut short if the caller is to end.
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

impl OnDown for Shared {
    fn on_down(&self, Down { id, reason }: Down) {
        let failed = !reason.is_orderly();
        let cancels_scope = failed && self.on_failure == OnFailure::FailFast;
        let waiter = {
            let mut state = self.state();
            state.live -= 1;
            if failed && (!cancels_scope || state.failures.is_empty()) {
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
        if cancels_scope {
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
