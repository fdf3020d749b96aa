//! Queues, supervised actors and typed calls between languages, in one process.
//!
//! This crate is the door for Rust: everything below it, under one name.
//!
//! * [`channel`]: channels between threads, tasks and event loops.
//! * [`queue`]: what channels are made of, for whoever builds another kind.
//! * [`runtime`]: workers, actors, deadlines.
//! * [`wire`]: the flat layout of what crosses a boundary.
//! * [`port`]: services, calls and streams.
//!
//! A service that other languages use is a `cdylib` that also depends on `thalweg-capi` and calls its `export!`.

pub mod channel;

pub use thalweg_macros::{host, method, resource, service, value};
pub use thalweg_port as port;
pub use thalweg_queue as queue;
pub use thalweg_runtime as runtime;
pub use thalweg_wire as wire;

pub use thalweg_port::{
    Batch, Call, CallError, Client, Code, Failure, Held, Pending, StreamReader, StreamWriter, Task,
};

/// The page of the whole project.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// This crate's own page.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct CrateReadme;

/// Which message an actor gets next.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/messages.md")]
struct MessagesPage;

/// What actors share.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/sync.md")]
struct SyncPage;

/// The first of several.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/select.md")]
struct SelectPage;

/// What a runtime shows of itself.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/observability.md")]
struct SeeingPage;
