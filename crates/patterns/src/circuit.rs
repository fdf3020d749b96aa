//! The state machine of a circuit breaker. It receives the time as an argument. After Michael
//! Nygard, "Release It!" (2007).
//!
//! ```text
//!              trips                 its time is over
//!   Closed ------------> Open ----------------------------> HalfOpen
//!     ^                   ^                                  |    |
//!     |                   +--------- a probe failed ---------+    |
//!     +------------------------------ all probes went well -------+
//! ```
//!
//! 1. Each state has a generation. The verdict of a call that began in another generation is
//!    ignored.
//! 2. In `HalfOpen`, the calls that are running and those that succeeded are together at most as
//!    many as the probes.
//! 3. Each consecutive opening takes longer, according to the back-off. The count starts again when
//!    the breaker was closed for `reset_after`.

use std::fmt;
use std::time::Duration;

use thalweg_queue::random;
use thalweg_runtime::supervisor::Backoff;

use crate::InvalidSetting;
use crate::window::{Trip, Window};

/// The settings of a [`CircuitBreaker`](crate::CircuitBreaker).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BreakerConfig {
    /// When the breaker opens. Default: after 5 consecutive failures within 30 seconds.
    pub trip: Trip,
    /// How long it stays open. Default: 1 second, doubling to 1 minute, half of it random; reset
    /// after a minute in the closed state.
    pub open: Backoff,
    /// The number of probes, at least 1. The breaker closes if all succeed. Default: 1.
    pub probes: u32,
}

impl Default for BreakerConfig {
    fn default() -> Self {
        Self {
            trip: Trip::Consecutive {
                failures: 5,
                within: Duration::from_secs(30),
            },
            open: Backoff {
                first: Duration::from_secs(1),
                max: Duration::from_secs(60),
                jitter: 0.5,
                reset_after: Duration::from_secs(60),
            },
            probes: 1,
        }
    }
}

impl BreakerConfig {
    pub(super) fn check(&self) -> Result<(), InvalidSetting> {
        self.trip.check()?;
        let Backoff {
            first, max, jitter, ..
        } = self.open;
        InvalidSetting::unless(
            !first.is_zero(),
            "the time for which a breaker is open is longer than 0",
        )?;
        InvalidSetting::unless(
            first <= max,
            "the longest time for which a breaker is open is not shorter than the first",
        )?;
        InvalidSetting::unless((0.0..=1.0).contains(&jitter), "the jitter is 0.0 to 1.0")?;
        InvalidSetting::unless(self.probes > 0, "a breaker has at least 1 probe")
    }
}

/// The state of a breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerState {
    /// Calls pass.
    Closed,
    /// Calls are refused.
    Open {
        /// The remaining time.
        left: Duration,
    },
    /// Only the probes pass.
    HalfOpen,
}

/// The call was not made: the breaker is open, or all probes are running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CircuitOpen {
    /// The remaining time. Zero: all probes are running.
    pub left: Duration,
}

impl fmt::Display for CircuitOpen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the circuit breaker is open for {:?}", self.left)
    }
}

impl std::error::Error for CircuitOpen {}

/// The result of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallVerdict {
    Success,
    Failure,
    /// The call was not reported.
    Unknown,
}

#[derive(Debug)]
pub(super) struct Circuit {
    config: BreakerConfig,
    window: Window,
    state: State,
    /// Rule 1.
    generation: u64,
    /// The number of openings without a long closed state in between.
    consecutive_openings: u32,
    closed_at: u64,
}

#[derive(Debug)]
enum State {
    Closed,
    Open { until: u64 },
    HalfOpen { running: u32, succeeded: u32 },
}

impl Circuit {
    pub(super) fn new(config: BreakerConfig) -> Self {
        Self {
            window: Window::new(config.trip),
            config,
            state: State::Closed,
            generation: 0,
            consecutive_openings: 0,
            closed_at: 0,
        }
    }

    pub(super) fn state(&self, now: u64) -> BreakerState {
        match self.state {
            State::Closed => BreakerState::Closed,
            State::Open { until } if now < until => BreakerState::Open {
                left: Duration::from_nanos(until - now),
            },
            State::Open { .. } | State::HalfOpen { .. } => BreakerState::HalfOpen,
        }
    }

    /// Admits a call and returns the generation for its report.
    pub(super) fn enter(&mut self, now: u64) -> Result<u64, CircuitOpen> {
        match self.state {
            State::Open { until } if now < until => {
                return Err(CircuitOpen {
                    left: Duration::from_nanos(until - now),
                });
            }
            State::Open { .. } => self.set_state(State::HalfOpen {
                running: 0,
                succeeded: 0,
            }),
            State::Closed | State::HalfOpen { .. } => {}
        }
        if let State::HalfOpen { running, succeeded } = &mut self.state {
            // Rule 2.
            if *running + *succeeded >= self.config.probes {
                return Err(CircuitOpen {
                    left: Duration::ZERO,
                });
            }
            *running += 1;
        }
        Ok(self.generation)
    }

    pub(super) fn ended(&mut self, generation: u64, verdict: CallVerdict, now: u64) {
        if generation != self.generation {
            return;
        }
        match (&mut self.state, verdict) {
            (State::Closed, CallVerdict::Success | CallVerdict::Failure) => {
                if self.window.ended(verdict == CallVerdict::Failure, now) {
                    if now.saturating_sub(self.closed_at) >= nanos(self.config.open.reset_after) {
                        self.consecutive_openings = 0;
                    }
                    self.open(now);
                }
            }
            (State::HalfOpen { .. }, CallVerdict::Failure) => self.open(now),
            (State::HalfOpen { running, succeeded }, _) => {
                *running -= 1;
                *succeeded += u32::from(verdict == CallVerdict::Success);
                if *succeeded == self.config.probes {
                    self.closed_at = now;
                    self.window.clear();
                    self.set_state(State::Closed);
                }
            }
            (State::Closed, CallVerdict::Unknown) | (State::Open { .. }, _) => {}
        }
    }

    /// Rule 3.
    fn open(&mut self, now: u64) {
        self.consecutive_openings = self.consecutive_openings.saturating_add(1);
        let time = self
            .config
            .open
            .delay(self.consecutive_openings, random_fraction());
        self.set_state(State::Open {
            until: now.saturating_add(nanos(time)),
        });
    }

    fn set_state(&mut self, state: State) {
        self.state = state;
        self.generation += 1;
    }
}

/// A number from 0 to 1.
fn random_fraction() -> f64 {
    const STEPS: usize = 1 << 20;
    random::below(STEPS) as f64 / STEPS as f64
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
