//! Which crate may depend on which, as a test.
//!
//! The layers are a promise to whoever uses a lower one alone: no foreign language below `port`, no peer of
//! the benchmark lab in anybody's build. [`Graph`] is what cargo resolved, [`violations`] is the promise.

mod graph;
mod rules;

pub use graph::{Graph, Kind};
pub use rules::{PEERS, Violation, violations};
