//! Hand-off between threads and between tasks: the channels against their peers.
//!
//! A subject is a type that implements the peers' trait ([`subjects`]). A cell's sides are compiled
//! for each subject separately ([`sides`]). They send their messages between threads that start at
//! one gate ([`crew`], [`threads`]), repeatedly until a sample is complete ([`run`]), and check
//! every message while measuring. [`rows`] creates the rows, and [`grid`] selects the measured
//! points.

pub mod async_channel;
pub mod burst;
pub mod channel_idle;
pub mod channel_memory;
pub mod concurrent_access;
pub mod crew;
pub mod go_chan;
pub mod grid;
pub mod io_simulation;
pub mod latency;
pub mod links;
pub mod mpmc;
pub mod mpsc;
pub mod overflow;
pub mod rows;
pub mod run;
pub mod same_thread;
pub mod sides;
pub mod sizes;
pub mod spsc_threads;
pub mod stress;
pub mod subjects;
pub mod sustained;
pub mod threads;
