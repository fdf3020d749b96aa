//! The peers: the channels, actors and codecs that the lab compares with Thalweg's, each behind the
//! same few functions.
//!
//! A subject of the lab is a type that implements [`Channel`]. A loop over it is compiled for that
//! type separately, so neither a virtual call nor a closure is between the loop and the peer's own
//! code. A peer waits in its own blocking calls if it has them; the others retry with [`patience`].
//!
//! | module | peers |
//! | --- | --- |
//! | [`channel`] | the operations of a subject |
//! | [`ring`] | `rtrb`, `rtrb_0_3` |
//! | [`channels`] | `crossbeam`, `kanal`, `flume`, `async-channel`, `std`, `tokio` |
//! | [`disruptor`] | `disruptor` |
//! | [`c11_ring`], [`vyukov`] | two rings written for the lab: C with cached positions, Vyukov's stamped slots |
//! | [`broadcast`] | `tokio`, `disruptor`, each receiver gets every message |
//! | [`tasks`] | channels and runtimes for `async` code |
//! | [`tokio_runtime`], [`tokio_echo`], [`tokio_beyond`] | `tokio_current_thread`, `tokio_multi_thread` |
//! | [`actors`] | `ractor`, `kameo` |
//! | [`codec`] | `ciborium`, `minicbor`, `bincode`, `postcard`, `rkyv`, `flatbuffers`, `c_struct` |
//! | [`versions`] | the version of each peer |
//!
//! Only the lab depends on this crate, so users of Thalweg never depend on a peer.

pub mod actors;
pub mod broadcast;
pub mod c11_ring;
pub mod channel;
pub mod channels;
pub mod codec;
pub mod disruptor;
pub mod patience;
pub mod ring;
pub mod tasks;
pub mod tokio_beyond;
pub mod tokio_echo;
pub mod tokio_runtime;
pub mod versions;
pub mod vyukov;

/// The libraries themselves, for uses other than a channel of numbers.
pub mod crates {
    pub use crossbeam_channel;
    pub use disruptor;
    pub use rtrb;
    pub use tokio;
}

pub use channel::{Batches, Channel, ManyReceivers, ManySenders, Partial};

#[cfg(test)]
mod tests;
