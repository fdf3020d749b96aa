//! Patterns for failures, overload and distribution of work.
//!
//! | | |
//! | --- | --- |
//! | [`CircuitBreaker`] | refuses calls to an operation that failed too often, for a growing time, and then admits a few probes |
//! | [`Bulkhead`] | admits a fixed number of callers at a time, and lets a fixed number wait |
//! | [`RateLimit`] | admits a fixed rate per second and a burst |
//! | [`Pool`] | distributes jobs of one kind to workers |
//! | [`Pipeline`] | passes items from stage to stage, at the speed of the slowest stage |
//!
//! All of them work in actors and threads. To share one, put it into an `Arc` or a static.
//! Operations that depend on the time have a second form that takes the time as an argument, for
//! tests and simulations.

mod breaker;
mod bulkhead;
mod circuit;
mod pipeline;
mod pool;
mod rate;
mod window;

use std::fmt;

pub use self::breaker::{BreakerError, BreakerPermit, CircuitBreaker};
pub use self::bulkhead::{Bulkhead, BulkheadError, BulkheadPermit};
pub use self::circuit::{BreakerConfig, BreakerState, CircuitOpen};
pub use self::pipeline::{
    OnFailure, Pipeline, PipelineBuilder, PipelineEnd, PipelineStats, StageFailure, StageStats,
};
pub use self::pool::{
    Drained, Pool, PoolBuilder, PoolError, PoolOverflow, PoolStats, Routing, WorkerStats,
};
pub use self::rate::{RateError, RateLimit};
pub use self::window::Trip;

/// A setting is out of range. `Display` prints the valid range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidSetting(pub(crate) &'static str);

impl InvalidSetting {
    /// Returns an error with the text `what` unless `is_valid`.
    pub(crate) fn unless(is_valid: bool, what: &'static str) -> Result<(), Self> {
        if is_valid { Ok(()) } else { Err(Self(what)) }
    }
}

impl fmt::Display for InvalidSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for InvalidSetting {}
