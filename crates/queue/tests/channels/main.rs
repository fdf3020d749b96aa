//! What the channels promise, one situation a test, the same ones for every flavour that can be in it.
//!
//! The situations of Go's channel tests are among them, and the defects that users of other channels met.
#![cfg(not(loom))]

#[macro_use]
mod flavour;
mod chance;
mod executor;
mod ledger;
mod threads;

mod blocking;
mod capacity;
mod closing;
mod drops;
mod futures;
mod handles;
mod lanes;
mod many;
mod model;
mod oneshot;
mod overflow;
mod random;
#[cfg(not(miri))]
mod readiness;
#[cfg(not(miri))]
mod runtimes;
mod select;
mod waiting;
