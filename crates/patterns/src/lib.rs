//! Patterns for failures and overload.
//!
//! | | |
//! | --- | --- |
//! | [`CircuitBreaker`] | refuses calls to an operation that failed too often, for a growing time, and then admits a few probes |
//! | [`Bulkhead`] | admits a fixed number of callers at a time, and lets a fixed number wait |
//! | [`RateLimit`] | admits a fixed rate per second and a burst |
//!
//! All of them work in actors and threads. To share one, put it into an `Arc` or a static.
//! Operations that depend on the time have a second form that takes the time as an argument, for
//! tests and simulations.
//!
//! The patterns that distribute work, [`Pool`] and [`Pipeline`], are part of `thalweg-runtime`; this
//! crate re-exports them.

mod breaker;
mod bulkhead;
mod circuit;
mod rate;
mod window;

pub use self::breaker::{BreakerError, BreakerPermit, CircuitBreaker};
pub use self::bulkhead::{Bulkhead, BulkheadError, BulkheadPermit};
pub use self::circuit::{BreakerConfig, BreakerState, CircuitOpen};
pub use self::rate::{RateError, RateLimit};
pub use self::window::Trip;
pub use thalweg_runtime::patterns::*;
