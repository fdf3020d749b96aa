//! The states of a breaker, which is told the time. After Michael Nygard, "Release It!" (2007).
//!
//! ```text
//!              trips                 its time is over
//!   Closed ------------> Open ----------------------------> HalfOpen
//!     ^                   ^                                  |    |
//!     |                   +--------- a probe failed ---------+    |
//!     +------------------------------ all probes went well -------+
//! ```
//!
//! 1. Each state has a number. The verdict of a call that began in another one is nothing to this one.
//! 2. In `HalfOpen` those that run and those that went well are as many as there are probes at most.
//! 3. Each opening in a row is longer, by the back-off. The row ends when it was closed for `reset_after`.

use std::fmt;
use std::time::Duration;

use super::Invalid;
use super::window::{Trip, Window};
use crate::supervisor::{Backoff, Random};

/// What a [`CircuitBreaker`](super::CircuitBreaker) does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BreakerConfig {
    /// When it opens. Default: after 5 failures in a row within 30 seconds.
    pub trip: Trip,
    /// For how long. Default: 1 second, doubling to 1 minute, half of it random; a minute closed makes good.
    pub open: Backoff,
    /// How many calls try then, and must all go well. 1 at least. Default: 1.
    pub probes: u32,
}

impl Default for BreakerConfig {
    fn default() -> Self {
        Self {
            trip: Trip::Row {
                failures: 5,
                within: Duration::from_secs(30),
            },
            open: Backoff {
                first: Duration::from_secs(1),
                most: Duration::from_secs(60),
                jitter: 0.5,
                reset_after: Duration::from_secs(60),
            },
            probes: 1,
        }
    }
}

impl BreakerConfig {
    pub(super) fn check(&self) -> Result<(), Invalid> {
        self.trip.check()?;
        let Backoff {
            first,
            most,
            jitter,
            ..
        } = self.open;
        Invalid::unless(!first.is_zero(), "a breaker is open for some time")?;
        Invalid::unless(
            first <= most,
            "the longest time that a breaker is open is no shorter than the first",
        )?;
        Invalid::unless(
            (0.0..=1.0).contains(&jitter),
            "the random part of a time is 0.0 to 1.0 of it",
        )?;
        Invalid::unless(self.probes > 0, "a breaker has 1 probe at least")
    }
}

/// How a breaker is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerState {
    /// Calls go through.
    Closed,
    /// Calls are refused.
    Open {
        /// For so long.
        left: Duration,
    },
    /// Its probes go through.
    HalfOpen,
}

/// The breaker is open, or its probes are on their way: the call was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Open {
    /// For so long. Zero: as many as may try do so just now.
    pub left: Duration,
}

impl fmt::Display for Open {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the circuit breaker is open for {:?}", self.left)
    }
}

impl std::error::Error for Open {}

/// How a call went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Success,
    Failure,
    /// Nobody can say.
    Unknown,
}

#[derive(Debug)]
pub(super) struct Circuit {
    config: BreakerConfig,
    window: Window,
    state: State,
    /// Rule 1.
    number: u64,
    /// In a row.
    openings: u32,
    closed_at: u64,
    random: Random,
}

#[derive(Debug)]
enum State {
    Closed,
    Open { until: u64 },
    HalfOpen { running: u32, succeeded: u32 },
}

impl Circuit {
    pub(super) fn new(config: BreakerConfig, seed: u64) -> Self {
        Self {
            window: Window::new(config.trip),
            config,
            state: State::Closed,
            number: 0,
            openings: 0,
            closed_at: 0,
            random: Random(seed),
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

    /// A call: the number to say by how it went.
    pub(super) fn enter(&mut self, now: u64) -> Result<u64, Open> {
        match self.state {
            State::Open { until } if now < until => {
                return Err(Open {
                    left: Duration::from_nanos(until - now),
                });
            }
            State::Open { .. } => self.go(State::HalfOpen {
                running: 0,
                succeeded: 0,
            }),
            State::Closed | State::HalfOpen { .. } => {}
        }
        if let State::HalfOpen { running, succeeded } = &mut self.state {
            // Rule 2.
            if *running + *succeeded >= self.config.probes {
                return Err(Open {
                    left: Duration::ZERO,
                });
            }
            *running += 1;
        }
        Ok(self.number)
    }

    pub(super) fn ended(&mut self, number: u64, verdict: Verdict, now: u64) {
        if number != self.number {
            return;
        }
        match (&mut self.state, verdict) {
            (State::Closed, Verdict::Success | Verdict::Failure) => {
                if self.window.ended(verdict == Verdict::Failure, now) {
                    if now.saturating_sub(self.closed_at) >= nanos(self.config.open.reset_after) {
                        self.openings = 0;
                    }
                    self.open(now);
                }
            }
            (State::HalfOpen { .. }, Verdict::Failure) => self.open(now),
            (State::HalfOpen { running, succeeded }, _) => {
                *running -= 1;
                *succeeded += u32::from(verdict == Verdict::Success);
                if *succeeded == self.config.probes {
                    self.closed_at = now;
                    self.window.clear();
                    self.go(State::Closed);
                }
            }
            (State::Closed, Verdict::Unknown) | (State::Open { .. }, _) => {}
        }
    }

    /// Rule 3.
    fn open(&mut self, now: u64) {
        self.openings = self.openings.saturating_add(1);
        let time = self.config.open.delay(self.openings, self.random.next());
        self.go(State::Open {
            until: now.saturating_add(nanos(time)),
        });
    }

    fn go(&mut self, state: State) {
        self.state = state;
        self.number += 1;
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
