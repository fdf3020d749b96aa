//! Tests which crate may depend on which.
//!
//! The layers are a guarantee for users of the lower crates: no foreign language below `port`, and
//! no peer of the benchmark lab in any user's build. [`Graph`] is the resolved dependency graph of
//! cargo; [`violations`] checks the guarantee.

mod graph;
mod rules;

pub use graph::{Graph, Kind};
pub use rules::{PEERS, Violation, violations};
