//! Tests of the table and of its header.
//!
//! `tests/panics.rs` is a program of its own, because it needs a global allocator that refuses
//! large blocks.

mod blocking_submit;
mod header;
mod reap;
mod stream_writers;
