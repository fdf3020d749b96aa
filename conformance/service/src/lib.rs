//! The service that the bindings of every language are tested with: see `conformance/README.md`.

include!(concat!(env!("OUT_DIR"), "/conformance.rs"));

mod elements;
mod feeds;
mod library;
mod made;
mod resources;
mod service;
mod upstreams;

pub use resources::{EvenNumber, Factor, KeptNumber, Leases, TimedLease};
pub use service::{Echo, Here};
