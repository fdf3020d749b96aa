//! Streams of events from producers to consumers.
//!
//! | module | contents |
//! | --- | --- |
//! | [`streaming_channels`] | the workload: rows, bars, and the figures of the benchmark that it repeats |
//! | [`streaming_events`] | its realistic counterpart |
//! | [`hosts`], [`pause`] | the workloads of streams into other languages |
//! | [`event`] | what channels and callbacks carry, what a consumer reads of it, and its check |
//! | [`subjects`] | channels, rings, our streams and callbacks, on the one driver of [`super::queue`] |

pub mod event;
pub mod hosts;
pub mod pause;
pub mod streaming_channels;
pub mod streaming_events;
pub mod subjects;
