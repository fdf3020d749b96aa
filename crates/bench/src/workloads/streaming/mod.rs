//! Streams of events from producers to consumers.
//!
//! | module | contents |
//! | --- | --- |
//! | [`streaming_channels`] | the workload: rows, bars, and the figures of the benchmark that it repeats |
//! | [`streaming_events`] | its twin, with what each consumer checks ([`eater`]) and its subjects ([`feeds`]) |
//! | [`hosts`], [`pause`] | the workloads of streams into other languages |
//! | [`event`] | the event, as channels and callbacks carry it, and what a consumer reads of it |
//! | [`channels`], [`rings`], [`direct`], [`thalweg`] | the subjects |

pub mod channels;
pub mod direct;
pub mod eater;
pub mod event;
pub mod feeds;
pub mod hosts;
pub mod pause;
pub mod rings;
pub mod streaming_channels;
pub mod streaming_events;
pub mod thalweg;
