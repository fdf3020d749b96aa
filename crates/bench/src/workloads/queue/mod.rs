//! Hand-off between threads and between tasks: the channels against their peers.
//!
//! A subject is a type behind the peers' trait ([`subjects`]); a cell's sides are compiled for it alone ([`sides`]), move
//! their messages between threads that start at one gate ([`crew`], [`threads`]), as often as makes a sample ([`run`]), and
//! every message is checked while it is measured. Rows come from [`rows`]; which points are measured, from [`grid`].

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
