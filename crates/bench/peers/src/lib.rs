//! The peers: what the lab measures Thalweg's channels, actors and codecs against, each behind the same few functions.
//!
//! A subject of the lab is a type that implements [`Channel`]; a loop over it is compiled for that type alone, so that
//! neither a virtual call nor a closure stands between the loop and the peer's own code. A peer waits by its own
//! blocking calls where it has them; those that have none look again as [`patience`] says.
//!
//! | module | peers |
//! | --- | --- |
//! | [`channel`] | what a subject can do |
//! | [`ring`] | `rtrb`, `rtrb_0_3` |
//! | [`shared`] | `crossbeam`, `kanal`, `flume`, `async-channel` |
//! | [`std_mpsc`], [`tokio_mpsc`] | `std`, `tokio` |
//! | [`disruptor`] | `disruptor` |
//! | [`c11_ring`], [`vyukov`] | two rings of our own making: C with cached positions, Vyukov's stamped slots |
//! | [`tasks`] | channels and runtimes for `async` code |
//! | [`tokio_runtime`], [`tokio_echo`], [`tokio_beyond`] | `tokio_current_thread`, `tokio_multi_thread` |
//! | [`actors`] | `ractor`, `kameo` |
//! | [`codec`] | `ciborium`, `minicbor`, `bincode`, `postcard`, `rkyv`, `flatbuffers`, `c_struct` |
//! | [`versions`] | which version of each |
//!
//! The crate stands apart, and only the lab depends on it: no peer ever reaches a user.

pub mod actors;
pub mod c11_ring;
pub mod channel;
pub mod codec;
pub mod disruptor;
pub mod patience;
pub mod ring;
pub mod shared;
pub mod std_mpsc;
pub mod tasks;
pub mod tokio_beyond;
pub mod tokio_echo;
pub mod tokio_mpsc;
pub mod tokio_runtime;
pub mod versions;
pub mod vyukov;

/// The libraries themselves, for what is not a channel of numbers.
pub mod crates {
    pub use crossbeam_channel;
    pub use disruptor;
    pub use rtrb;
    pub use tokio;
}

pub use channel::{Channel, ManyReceivers, ManySenders};

#[cfg(test)]
mod tests;
