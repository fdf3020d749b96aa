//! Streams of events from one producer to one consumer.
//!
//! | module | what it knows |
//! | --- | --- |
//! | [`streaming_channels`] | the workload: rows, bars, and the figures of the benchmark that it repeats |
//! | [`event`] | the event, as channels and callbacks carry it, and what a consumer reads of it |
//! | [`channels`], [`rings`], [`direct`], [`thalweg`] | the subjects |

pub mod channels;
pub mod direct;
pub mod event;
pub mod rings;
pub mod streaming_channels;
pub mod thalweg;
