//! The behaviour of the channels. Each test covers one situation, and runs for every flavour that
//! supports it.
//!
//! The situations of Go's channel tests are included, and so are defects that users of other
//! channel libraries reported.
#![cfg(not(loom))]

#[macro_use]
mod flavour;
mod chance;
mod executor;
mod ledger;
mod threads;

mod blocking;
mod broadcast;
mod broadcast_random;
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
mod rendezvous;
mod rendezvous_random;
#[cfg(not(miri))]
mod runtimes;
mod select;
mod waiting;
