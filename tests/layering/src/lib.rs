//! Tests which crate may depend on which, and how far the modules of a crate depend on each other.
//!
//! The layers are a guarantee for users of the lower crates: no foreign language below `port`, and
//! no peer of the benchmark lab in any user's build. [`Graph`] is the resolved dependency graph of
//! cargo; [`violations`] checks the guarantee. [`Modules`] are the modules of one crate, and
//! [`LARGEST_CYCLES`] are the limits of their cycles.

mod graph;
mod modules;
mod rules;

pub use graph::{Graph, Kind};
pub use modules::Modules;
pub use rules::{LARGEST_CYCLES, PEERS, Violation, violations};
