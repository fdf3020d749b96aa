//! Scopes that contain actors.
//!
//! 1. However a scope is left, its frame waits for its actors: after its body returned, after a
//!    panic, a cancellation or an exit signal. The frame catches the unwinding, cancels the actors,
//!    waits, and then resumes the unwinding. Only the stop of the runtime cuts the wait short,
//!    because the same stop ends the actors.
//! 2. The scope is the watcher of its actors, so an exit is counted before a join can return.
//! 3. The actors run in the scope's own token: cancelling it wakes all of them.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex};

use thalweg_queue::no_preempt::lock;

use super::members::Members;
use super::token::Token;
use super::{Cancelled, Cause, within};
use crate::control::{Down, OnDown};
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
    members: Members,
    failures: Mutex<Vec<Failure>>,
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
            members: Members::new(),
            failures: Mutex::default(),
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
        scope.close();
    }
    let failures = std::mem::take(&mut *lock(&scope.shared.failures));
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
        if !self.shared.members.enter() {
            return self.runtime.spawn(|| exit(ExitReason::Shutdown));
        }
        let watcher = Arc::clone(&self.shared);
        let shared = Arc::clone(&self.shared);
        let job = move || {
            if shared.token.is_cancelled() {
                exit(ExitReason::Shutdown);
            }
            within(&shared.token, |_| job()).unwrap_or_else(|_| exit(ExitReason::Shutdown))
        };
        self.runtime.spawn_watched(None, false, Some(watcher), job)
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
        self.shared.members.count()
    }

    /// Whether no actor runs.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Waits until no actor runs. Returns `false` if the wait was cut short because the caller is to
    /// end.
    fn wait(&self) -> bool {
        let members = &self.shared.members;
        while members.count() > 0 && members.must_wait(wait::waker()) {
            if wait::park(None) == WakeReason::Stopping {
                wait::unwind_if_stopping();
                return false;
            }
        }
        true
    }

    /// Waits for the last actor, and admits no further one.
    fn close(&self) {
        let members = &self.shared.members;
        while !members.close_if_empty() {
            if !self.wait() {
                members.close();
                break;
            }
        }
        members.forget_waiter();
    }
}

impl OnDown for Shared {
    fn on_down(&self, Down { id, reason }: Down) {
        if !reason.is_orderly() {
            self.failed(id, reason);
        }
        self.members.leave();
    }
}

impl Shared {
    #[cold]
    fn failed(&self, id: ActorId, reason: ExitReason) {
        let cancels_scope = self.on_failure == OnFailure::FailFast;
        {
            let mut failures = lock(&self.failures);
            if !cancels_scope || failures.is_empty() {
                let reason = reason.clone();
                failures.push(Failure { id, reason });
            }
        }
        if cancels_scope {
            self.token.cancel_for(Cause::Failed(reason));
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
