//! The service that every language's bindings are tested with: see `conformance/README.md`.

#[path = "../../generated/rust/conformance.rs"]
pub mod conformance;

mod elements;
mod feeds;
mod library;
mod made;
mod resources;
mod service;
mod upstreams;

pub use resources::{EvenNumber, Factor, KeptNumber, Leases, TimedLease};
pub use service::{Echo, Here};
