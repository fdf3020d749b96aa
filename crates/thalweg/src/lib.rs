//! Queues, supervised actors and typed calls between languages, in one process.
//!
//! This crate is the facade for Rust. It re-exports the crates below it:
//!
//! * [`channel`]: channels between threads, tasks, actors and event loops.
//! * [`queue`]: the building blocks of channels, if you build another kind.
//! * [`runtime`]: workers, actors, timers, IO, supervision.
//! * [`patterns`]: circuit breaker, bulkhead, rate limiter, pool, pipeline.
//! * [`wire`]: the layout of messages.
//! * [`port`]: services, calls and streams.
//!
//! With the feature `guest`, `thalweg::guest` opens services in other languages than Rust.
//!
//! A service for other languages is a `cdylib` that also depends on `thalweg-capi` and uses its
//! `export!` macro.

pub mod channel;

#[cfg(feature = "guest")]
pub use thalweg_guest as guest;
pub use thalweg_macros::{host, method, resource, service, value};
pub use thalweg_patterns as patterns;
pub use thalweg_port as port;
pub use thalweg_queue as queue;
pub use thalweg_runtime as runtime;
pub use thalweg_wire as wire;

pub use thalweg_port::{
    Batch, Call, CallError, Client, Code, Failure, Owned, Pending, StreamReader, StreamWriter, Task,
};

/// The README of the project.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// The README of this crate.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct CrateReadme;

/// The supervision page.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/supervision.md")]
struct SupervisionPage;

/// The guide to messages.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/messages.md")]
struct MessagesPage;

/// The guide to synchronisation.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/sync.md")]
struct SyncPage;

/// The guide to select.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/select.md")]
struct SelectPage;

/// The guide to observability.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/observability.md")]
struct ObservabilityPage;

/// The guide to blocking code and other runtimes.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/blocking.md")]
struct BlockingPage;

/// Guarantees and limits.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/reliability.md")]
struct ReliabilityPage;
