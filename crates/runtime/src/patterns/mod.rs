//! Patterns for the distribution of work.
//!
//! | | |
//! | --- | --- |
//! | [`Pool`] | distributes jobs of one kind to workers |
//! | [`Pipeline`] | passes items from stage to stage, at the speed of the slowest stage |
//!
//! Both work in actors and threads. The patterns for failures and overload (circuit breaker,
//! bulkhead, rate limiter) are in the crate `thalweg-patterns`.

mod pipeline;
mod pool;

use std::fmt;

pub use self::pipeline::{
    OnFailure, Pipeline, PipelineBuilder, PipelineEnd, PipelineStats, StageFailure, StageStats,
};
pub use self::pool::{
    Drained, Pool, PoolBuilder, PoolError, PoolOverflow, PoolStats, Routing, WorkerStats,
};

/// A setting is out of range. `Display` prints the valid range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidSetting(&'static str);

impl InvalidSetting {
    /// Checks a setting: an error with the text `what`, which states the valid range, unless
    /// `is_valid`.
    ///
    /// ```
    /// use thalweg_runtime::patterns::InvalidSetting;
    ///
    /// let checked = InvalidSetting::unless(false, "a queue has at least 1 slot");
    /// assert_eq!(checked.unwrap_err().to_string(), "a queue has at least 1 slot");
    /// ```
    ///
    /// # Errors
    /// The setting is invalid.
    pub fn unless(is_valid: bool, what: &'static str) -> Result<(), Self> {
        if is_valid { Ok(()) } else { Err(Self(what)) }
    }
}

impl fmt::Display for InvalidSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for InvalidSetting {}
