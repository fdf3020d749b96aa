//! Integration tests of the crate, one module per subject.
//!
//! A test that needs a process of its own is a separate binary next to this folder, and its header
//! says why.

mod brief;
mod call_batch;
mod callbacks;
mod calls;
mod deadlines;
mod defects;
mod described;
mod fairness;
mod futures;
mod guest_answers;
mod guest_descriptions;
mod guest_input;
mod guest_ports;
mod guest_writers;
mod guests;
mod host_calls;
mod inline;
mod lab;
mod mailbox_waits;
mod nested;
mod notices;
mod on_port;
mod pair;
mod queue_limits;
mod replaced_service;
mod resource_values;
mod stack_shortage;
mod stream_values;
mod streams;
mod streams_conflate;
mod streams_direct;
mod streams_finish;
mod streams_kept_batches;
mod streams_linger;
mod streams_policies;
mod streams_reserved;
mod streams_stats;
mod streams_tee;
mod versions;
mod versions_streams;
