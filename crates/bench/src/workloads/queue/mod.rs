//! Hand-off between threads and between tasks: the channels against their peers.
//!
//! A subject is a type that implements the peers' trait ([`subjects`]). One [`driver`] starts the
//! threads at one gate and times them; [`numbers`] has their loops and checks every message.
//! [`sides`] has the tables of subjects and reads a cell's parameters. A run is repeated until a
//! sample is complete ([`run`]). [`rows`] creates the rows, and [`grid`] selects the measured
//! points.

pub mod async_channel;
pub mod broadcast;
pub mod channel_idle;
pub mod channel_memory;
pub mod driver;
pub mod go_chan;
pub mod grid;
pub mod hand_off;
pub mod io_simulation;
pub mod latency;
pub mod numbers;
pub mod overflow;
pub mod rendezvous;
pub mod rows;
pub mod run;
pub mod scenarios;
pub mod sides;
pub mod subjects;
pub mod sustained;
