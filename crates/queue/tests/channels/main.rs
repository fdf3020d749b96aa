//! What the channels promise, one situation a test, the same ones for every flavour that can be in it.
//!
//! The situations of Go's channel tests are among them, and the defects that users of other channels met.
#![cfg(not(loom))]

#[macro_use]
mod flavour;
mod executor;
mod ledger;
mod threads;

mod blocking;
mod drops;
#[cfg(not(miri))]
mod readiness;
mod select;
mod waiting;
