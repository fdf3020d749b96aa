//! The circuit breaker, which several callers share.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Mutex;
use std::time::Instant;

use thalweg_queue::no_preempt::{LockGuard, lock};
use thalweg_runtime::JoinError;

use crate::InvalidSetting;
use crate::circuit::{BreakerConfig, BreakerState, CallVerdict, Circuit, CircuitOpen};

/// Protects an operation that may fail, such as a call to an actor. While the breaker is closed,
/// all calls pass. After too many failures it opens and refuses calls at once. After a delay it
/// admits a few probes, and closes if they succeed. After Michael Nygard, "Release It!" (2007).
///
/// ```
/// use std::time::Duration;
/// use thalweg_patterns::{BreakerConfig, BreakerError, CircuitBreaker, Trip};
/// use thalweg_runtime::{Actor, CallError, Context, Handler, run, start};
///
/// struct Shaky;
/// impl Actor for Shaky {}
/// impl Handler<u32> for Shaky {
///     type Reply = u32;
///     fn handle(&mut self, generation: u32, _: &Context<'_, Self>) -> u32 {
///         100 / generation
///     }
/// }
///
/// run(|| {
///     let breaker = CircuitBreaker::new(BreakerConfig {
///         trip: Trip::Consecutive { failures: 1, within: Duration::from_secs(60) },
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
    /// The origin of the breaker's time.
    base: Instant,
    circuit: Mutex<Circuit>,
}

/// Why a call through a breaker has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerError<E> {
    /// The breaker was open, so the call was not made.
    Open(CircuitOpen),
    /// The call failed with this error.
    Failed(E),
}

/// Permission for one call, whose result must be reported. If it is dropped without a report, the
/// call counts neither as a success nor as a failure.
#[derive(Debug)]
#[must_use = "report the result of the call"]
pub struct BreakerPermit<'a> {
    breaker: &'a CircuitBreaker,
    generation: u64,
    reported: bool,
}

impl CircuitBreaker {
    /// A closed breaker.
    ///
    /// # Errors
    /// A setting is out of range; the ranges are documented at the fields.
    pub fn new(config: BreakerConfig) -> Result<Self, InvalidSetting> {
        config.check()?;
        Ok(Self {
            base: Instant::now(),
            circuit: Mutex::new(Circuit::new(config)),
        })
    }

    /// Makes the call if the breaker admits it. An `Err` or a panic is a failure; the panic
    /// continues. An exit signal to the caller or the cancellation of an enclosing
    /// [scope](thalweg_runtime::cancel) counts neither way. Put a deadline inside `f`, so that it
    /// ends in an `Err`.
    ///
    /// # Errors
    /// The breaker is open, or the error of the call.
    pub fn call<T, E>(&self, f: impl FnOnce() -> Result<T, E>) -> Result<T, BreakerError<E>> {
        self.call_unless(|_| false, f)
    }

    /// As [`call`](Self::call), but an error for which `expected` returns `true` counts as a
    /// success, because it shows that the operation works.
    ///
    /// # Errors
    /// As [`call`](Self::call).
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

    /// Asks for permission for one call. Report the result to the returned permit.
    ///
    /// # Errors
    /// The breaker is open.
    pub fn enter(&self) -> Result<BreakerPermit<'_>, CircuitOpen> {
        self.enter_at(Instant::now())
    }

    /// As [`enter`](Self::enter), at the time `now`.
    ///
    /// # Errors
    /// The breaker is open.
    pub fn enter_at(&self, now: Instant) -> Result<BreakerPermit<'_>, CircuitOpen> {
        let generation = self.circuit().enter(self.nanos(now))?;
        Ok(BreakerPermit {
            breaker: self,
            generation,
            reported: false,
        })
    }

    /// The current state.
    pub fn state(&self) -> BreakerState {
        self.state_at(Instant::now())
    }

    /// The state at the time `now`.
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

/// Whether it is a real panic, and not the end of the running actor or of its scope.
fn is_panic(payload: &(dyn Any + Send)) -> bool {
    !JoinError::is_exit_payload(payload)
}

impl BreakerPermit<'_> {
    /// Reports a success.
    pub fn succeeded(self) {
        self.succeeded_at(Instant::now());
    }

    /// Reports a success at the time `now`.
    pub fn succeeded_at(mut self, now: Instant) {
        self.report(CallVerdict::Success, now);
    }

    /// Reports a failure.
    pub fn failed(self) {
        self.failed_at(Instant::now());
    }

    /// Reports a failure at the time `now`.
    pub fn failed_at(mut self, now: Instant) {
        self.report(CallVerdict::Failure, now);
    }

    fn report(&mut self, verdict: CallVerdict, now: Instant) {
        self.reported = true;
        let now = self.breaker.nanos(now);
        self.breaker.circuit().ended(self.generation, verdict, now);
    }
}

impl Drop for BreakerPermit<'_> {
    fn drop(&mut self) {
        if !self.reported {
            // An unknown verdict does not depend on the time.
            self.report(CallVerdict::Unknown, self.breaker.base);
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
