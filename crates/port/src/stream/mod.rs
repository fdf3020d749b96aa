//! Streams: records in segments, written by many, read as batches by one.
//!
//! ```text
//!   writer 0 --> lane 0: [segment full] [segment, 40 of 256 written]
//!   writer 1 --> lane 1: [segment, 3 written]                        --> reader: a batch is a run of one segment
//!   segment:  | slot 0 | slot 1 | ..  free  .. | tails of slot 0, of slot 1, .. | free |
//! ```
//!
//! The rules (rule 4 of the crate in detail):
//!
//! 1. A writer writes a record into its lane's last segment and then commits it, by one Release store of
//!    {records, end of tails}; the reader reads up to what it loaded from there with Acquire. Nothing before that mark is ever written again
//!    while the segment is in use.
//! 2. A full segment is sealed. The reader gives a segment back, with its credit, once it is sealed and every record of it was released.
//! 3. Credit is counted in segments: as many as hold the stream's capacity, but two for each lane at least, so that no
//!    lane can hold up another. A record too large for a segment gets one of its own size.
//! 4. A lane's bit in `ready` is a hint: set by the writer that finds it clear, cleared by the reader before it looks into the lane; before
//!    it waits the reader looks into every lane.
//! 5. A stream ends once, with the first ending; what was committed before is still delivered.
//! 6. Under the policy `latest` there is one place instead of lanes; what is overwritten there is counted and
//!    reported right before the record that replaced it.

mod core;
mod reader;
mod receiving;
mod segment;
mod sending;
mod waking;
mod writer;

pub use self::core::StreamCore;
pub use reader::{Batch, StreamReader};
pub use receiving::OpenBatch;
pub use writer::StreamWriter;
