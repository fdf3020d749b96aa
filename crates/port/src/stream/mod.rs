//! Streams: many writers write records into segments; one reader reads them as batches, or a
//! callback receives them.
//!
//! ```text
//!   writer 0 --> [segment full] .. [segment, 40 of 256 written]-.
//!   writer 1 --> [segment, 3 written] --------------------------+-> queue, oldest first --> reader:
//!                                                            a batch is a run of one segment
//!   segment:  | slot 0 | slot 1 | ..  free  .. | tails of slot 0, of slot 1, .. | free |
//! ```
//!
//! A record has a fixed-size slot and a tail with its variable-size parts.
//!
//! The rules (rule 4 of the crate in detail):
//!
//! 1. Only its writer writes into a segment, without a lock. The writer commits with one Release
//!    store of {records, end of tails}. The reader loads this mark with Acquire and reads up to it.
//!    Memory before the mark is not written again while the segment is in use.
//! 2. A full segment is sealed under the queue's lock. It leaves the queue, and returns its credit,
//!    once it is sealed and all its records were released. Its last owner reuses it.
//! 3. Credit is counted in segments: as many as hold the stream's capacity, and one more for each
//!    writer that has none, so that no writer blocks another for ever. A record that is too large
//!    for a segment gets a segment of its own size.
//! 4. The reader takes from the first segment that has unread records. The records of one writer
//!    therefore stay in order, and no writer falls behind another by more than one segment.
//! 5. A stream ends once, with the first outcome, and records that were committed before are still
//!    delivered. The stream ends regularly when every writer has finished. A writer that is dropped
//!    before ends it as `guest_lost`; a writer that fails ends it with the error of the function
//!    that returns the stream (`outcome`).
//! 6. Without credit, the overflow policy decides. The writer waits until a quarter of the credit
//!    is free or no record is unread; or it is refused; or its record is dropped; or the oldest
//!    complete segment without an open batch is dropped. Under `latest`, a segment has one record,
//!    there is credit for one segment, and an overtaken record is dropped. Records that are
//!    conflated by key are not in queue entries, but in `conflate`.
//! 7. A gap is recorded at its position: in the writer until it begins a segment, then before the
//!    next record of that segment, and if that segment is dropped, before the next segment. A batch
//!    begins at a gap and has the number of missing records and the reason. After the writers are
//!    gone, delivered + dropped + conflated + undelivered = published.
//! 8. A writer wakes its reader only if the reader is armed. It finds out without a fence, unless
//!    the reader sleeps often: `StreamCore::wake_reader`.
//! 9. A callback replaces the reader. The writing threads call it: see the rules of `callback`. The
//!    only writer of a stream calls it without the queue: `direct`.
//! 10. A control record has a segment of its own and is read before all waiting records. It uses no
//!     credit and is never dropped. A writer waits if `MAX_CONTROL_RECORDS` are unread. Control
//!     records are not counted in rule 7.
//! 11. An additional reader is a stream without writers of its own (`tee`). A writer that begins a
//!     segment pushes it into the queue of each reader. Overflow, gaps and sequence numbers are
//!     therefore separate for each reader.
//! 12. A reader with another version of the package reads a copy of each batch, in a segment of its
//!     own: `converted`.
//! 13. The type of a writer is the one that the stream was created for: a slot holds one record of
//!     it. `StreamWriter::new` checks this once.
//!
//! Foreign code writes records by handle: `described`. It reads stream parameters by `element_reader`.
//!
//! Stream parameters, which the caller writes, have another implementation: `upstream`.

mod callback;
pub(crate) mod callback_slot;
mod conflate;
mod converted;
mod core;
mod counts;
pub(crate) mod described;
mod direct;
mod element_reader;
pub(crate) mod future;
mod guard;
mod kept_batch;
pub(crate) mod lease;
mod outcome;
pub(crate) mod owner;
mod pool;
mod queue;
mod reader;
mod receiving;
mod reserved;
mod segment;
mod sending;
pub(crate) mod stats;
mod subscription;
mod tee;
mod upstream;
mod upstream_core;
mod views;
mod waking;
mod writer;

pub use self::core::StreamCore;
pub use callback::{Callback, CallbackEvent};
pub use counts::{Counts, Reason};
pub use described::{CommitOptions, RecordWriter};
pub use element_reader::ElementReader;
pub use future::{FutureReader, FutureWriter};
pub(crate) use guard::Guard;
pub use kept_batch::KeptBatch;
pub use outcome::{StreamError, Untyped};
pub use reader::{Batch, StreamReader};
pub use receiving::OpenBatch;
pub use reserved::ReservedRecord;
pub use segment::RecordSpace;
pub use sending::Sent;
pub use stats::Stats;
pub(crate) use stats::StatsByMethod;
pub use subscription::{Event, Records, Subscription};
pub use upstream::{Upstream, UpstreamFuture, UpstreamFutureWriter, UpstreamView, UpstreamWriter};
pub use upstream_core::UpstreamCore;
pub use views::Views;
pub use writer::{StreamWriter, WriteBatch};
