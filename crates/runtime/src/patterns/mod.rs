//! What keeps a part of a program that fails or is overrun from taking the rest with it, and how work is spread.
//!
//! | | |
//! | --- | --- |
//! | [`CircuitBreaker`] | refuses calls of what failed too often, for a time that grows, and lets a few try then |
//! | [`Bulkhead`] | lets so many be at it at a time, and so many wait |
//! | [`RateLimit`] | lets so many through a second, and so many at once |
//! | [`Pool`] | has workers do the jobs of one kind |
//! | [`Pipeline`] | hands items from stage to stage, no faster than the slowest |
//!
//! All are for actors and threads alike; several of them share one behind an `Arc` or in a static. What depends on the time has a second form that is told the
//! time, for tests and simulations.

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
pub use self::circuit::{BreakerConfig, BreakerState, Open};
pub use self::pipeline::{
    Pipeline, PipelineBuilder, PipelineEnd, PipelineStats, StageFailure, StageStats, WhenFailed,
};
pub use self::pool::{
    Drained, Pool, PoolBuilder, PoolError, PoolStats, Routing, WhenFull, WorkerStats,
};
pub use self::rate::{RateError, RateLimit};
pub use self::window::Trip;

/// A setting that cannot be: what is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Invalid(pub(crate) &'static str);

impl Invalid {
    /// `Err`, with what the setting has to be, if it is not.
    pub(crate) fn unless(good: bool, what: &'static str) -> Result<(), Self> {
        if good { Ok(()) } else { Err(Self(what)) }
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Invalid {}
