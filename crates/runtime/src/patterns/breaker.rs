//! A breaker that several share.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Mutex;
use std::time::Instant;

use thalweg_queue::clock;
use thalweg_queue::no_preempt::{LockGuard, lock};

use super::Invalid;
use super::circuit::{BreakerConfig, BreakerState, Circuit, Open, Verdict};
use crate::join::JoinError;

/// Stands before something that may fail, such as a call of an actor. Closed, it lets all through; when too many fail it opens, and refuses them
/// at once; after a time it lets a few try, and closes if they go well. After Michael Nygard, "Release It!" (2007).
///
/// ```
/// use std::time::Duration;
/// use thalweg_runtime::patterns::{BreakerConfig, BreakerError, CircuitBreaker, Trip};
/// use thalweg_runtime::{Actor, CallError, Context, Handler, run, start};
///
/// struct Shaky;
/// impl Actor for Shaky {}
/// impl Handler<u32> for Shaky {
///     type Reply = u32;
///     fn handle(&mut self, number: u32, _: &Context<'_, Self>) -> u32 {
///         100 / number
///     }
/// }
///
/// run(|| {
///     let breaker = CircuitBreaker::new(BreakerConfig {
///         trip: Trip::Row { failures: 1, within: Duration::from_secs(60) },
///         ..BreakerConfig::default()
///     })?;
///     let shaky = start(Shaky);
///     assert_eq!(breaker.call(|| shaky.call(5)), Ok(20));
///     assert_eq!(breaker.call(|| shaky.call(0)), Err(BreakerError::Failed(CallError::Ended)));
///     assert!(matches!(breaker.call(|| shaky.call(5)), Err(BreakerError::Open(open)) if !open.left.is_zero()));
///     # Ok::<(), Box<dyn std::error::Error>>(())
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct CircuitBreaker {
    /// Its time is counted from here.
    base: Instant,
    circuit: Mutex<Circuit>,
}

/// Why a call through a breaker has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerError<E> {
    /// It was not made.
    Open(Open),
    /// It failed with this.
    Failed(E),
}

/// Leave for one call, which says how it went. Dropped without, nobody can say: it counts neither way.
#[derive(Debug)]
#[must_use = "say how the call went"]
pub struct BreakerPermit<'a> {
    breaker: &'a CircuitBreaker,
    number: u64,
    said: bool,
}

impl CircuitBreaker {
    /// A closed one.
    ///
    /// # Errors
    /// One of the settings is out of range: see there.
    pub fn new(config: BreakerConfig) -> Result<Self, Invalid> {
        config.check()?;
        Ok(Self {
            base: Instant::now(),
            circuit: Mutex::new(Circuit::new(config, clock::now())),
        })
    }

    /// Makes the call if it may be. An `Err` is a failure, and so is a panic, which goes on; an exit signal to the caller, or the end
    /// of a [scope](crate::cancel) around it, counts neither way. A deadline is for the inside: there its end is an `Err`.
    ///
    /// # Errors
    /// It is open; or the call's own.
    pub fn call<T, E>(&self, f: impl FnOnce() -> Result<T, E>) -> Result<T, BreakerError<E>> {
        self.call_unless(|_| false, f)
    }

    /// As [`call`](Self::call), but an error that is `expected` is a success: it says that what was called works.
    ///
    /// # Errors
    /// As there.
    pub fn call_unless<T, E>(
        &self,
        expected: impl FnOnce(&E) -> bool,
        f: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, BreakerError<E>> {
        let permit = self.enter().map_err(BreakerError::Open)?;
        match catch_unwind(AssertUnwindSafe(f)) {
            Ok(Ok(value)) => {
                permit.succeeded();
                Ok(value)
            }
            Ok(Err(error)) => {
                if expected(&error) {
                    permit.succeeded();
                } else {
                    permit.failed();
                }
                Err(BreakerError::Failed(error))
            }
            Err(payload) => {
                if is_panic(&*payload) {
                    permit.failed();
                } else {
                    drop(permit);
                }
                resume_unwind(payload)
            }
        }
    }

    /// Leave for a call, whose end is said to what this gives.
    ///
    /// # Errors
    /// It is open.
    pub fn enter(&self) -> Result<BreakerPermit<'_>, Open> {
        self.enter_at(Instant::now())
    }

    /// As [`enter`](Self::enter), where it is `now`.
    ///
    /// # Errors
    /// It is open.
    pub fn enter_at(&self, now: Instant) -> Result<BreakerPermit<'_>, Open> {
        let number = self.circuit().enter(self.nanos(now))?;
        Ok(BreakerPermit {
            breaker: self,
            number,
            said: false,
        })
    }

    /// How it is.
    pub fn state(&self) -> BreakerState {
        self.state_at(Instant::now())
    }

    /// How it is, where it is `now`.
    pub fn state_at(&self, now: Instant) -> BreakerState {
        self.circuit().state(self.nanos(now))
    }

    fn circuit(&self) -> LockGuard<'_, Circuit> {
        lock(&self.circuit)
    }

    fn nanos(&self, now: Instant) -> u64 {
        let since = now.saturating_duration_since(self.base);
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    }
}

/// Whether it is somebody's panic, and not the end of the actor that runs, or of its scope.
fn is_panic(payload: &(dyn Any + Send)) -> bool {
    !JoinError::is_exit_payload(payload)
}

impl BreakerPermit<'_> {
    /// It went well.
    pub fn succeeded(self) {
        self.succeeded_at(Instant::now());
    }

    /// It went well, where it is `now`.
    pub fn succeeded_at(mut self, now: Instant) {
        self.say(Verdict::Success, now);
    }

    /// It failed.
    pub fn failed(self) {
        self.failed_at(Instant::now());
    }

    /// It failed, where it is `now`.
    pub fn failed_at(mut self, now: Instant) {
        self.say(Verdict::Failure, now);
    }

    fn say(&mut self, verdict: Verdict, now: Instant) {
        self.said = true;
        let now = self.breaker.nanos(now);
        self.breaker.circuit().ended(self.number, verdict, now);
    }
}

impl Drop for BreakerPermit<'_> {
    fn drop(&mut self) {
        if !self.said {
            // The time does not matter to that.
            self.say(Verdict::Unknown, self.breaker.base);
        }
    }
}

impl fmt::Debug for CircuitBreaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CircuitBreaker")
            .field(&self.state())
            .finish()
    }
}

impl<E: fmt::Display> fmt::Display for BreakerError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(open) => open.fmt(f),
            Self::Failed(error) => error.fmt(f),
        }
    }
}

impl<E: std::error::Error + 'static> std::error::Error for BreakerError<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Open(open) => Some(open),
            Self::Failed(error) => Some(error),
        }
    }
}
