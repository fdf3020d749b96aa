//! Streams: records in segments, written by many, read as batches by one, or given to one callback.
//!
//! ```text
//!   writer 0 --> [segment full] .. [segment, 40 of 256 written] -.
//!   writer 1 --> [segment, 3 written] ---------------------------+--> queue, in the order in which they were unsealed_entries --> reader:
//!                                                                      a batch is a run of one segment
//!   segment:  | slot 0 | slot 1 | ..  free  .. | tails of slot 0, of slot 1, .. | free |
//! ```
//!
//! The rules (rule 4 of the crate in detail):
//!
//! 1. A writer alone writes into its segment, without a lock, and then commits, by one Release store of {records, end of tails}; the
//!    reader reads up to what it loaded from there with Acquire. Nothing before that mark is ever written again while the segment is
//!    in use.
//! 2. A full segment is sealed, under the queue's lock. It leaves the queue, with its credit, once it is sealed and every record of it
//!    was released. Who has it alone then uses it again.
//! 3. Credit is counted in segments: as many as hold the stream's capacity, and one more for each writer that has none, so that no
//!    writer holds up another for ever. A record too large for a segment gets one of its own size.
//! 4. The reader takes from the first segment that has something. So records of one writer stay in order, and no writer is
//!    behind another by more than a segment's worth.
//! 5. A stream ends once, with the first ending, and records that were committed before are still
//!    delivered. The stream ends regularly when every writer has finished. A writer that is dropped
//!    before ends it as `guest_lost`; a writer that fails ends it with the error of the function that
//!    returns the stream (`outcome`).
//! 6. Where there is no credit the policy says what happens: the writer waits until a quarter of it is there, or nothing is left to be read; or is refused; or its record is dropped; or
//!    the oldest complete segment that no batch is open of is. Under `latest` a segment has one record, there is credit for one, and what
//!    is overtaken is dropped. Where records are conflated by key they are in no entry, but in `conflate`.
//! 7. What is missing is written down at its place: in the writer until it begins a segment, then before that segment's next record,
//!    and where that segment is dropped, before the next one's. A batch begins there, with how many are missing and why. So
//!    delivered + dropped + conflated + undelivered = published, once the writers are gone.
//! 8. A writer wakes its reader only where that is armed, and pays no fence to find out, but where the reader sleeps often:
//!    `StreamCore::tell`.
//! 9. A callback takes the reader's place, and is called by who writes: the rules of `callback`.
//! 10. A control record has a segment alone, which is read before all that waits. It takes no credit and is never dropped: whoever writes one more
//!     than `CONTROLS` waits. It has no part in rule 7.
//! 11. A further reader is a stream without writers of its own, `tee`: who begins a segment enters it in each reader's queue. So overflow, gaps and numbers are
//!     each reader's own.
//! 12. Where the reader is of another version, it reads a copy of a batch, in a segment of its own: `converted`.
//!
//! What a caller sends up is another thing: `upstream`.

mod callback;
pub(crate) mod callback_slot;
mod conflate;
mod converted;
mod core;
mod counts;
mod future;
mod held;
mod kept_batch;
mod outcome;
mod pool;
mod queue;
mod reader;
mod receiving;
mod segment;
mod sending;
mod stats;
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
pub use future::{FutureReader, FutureWriter};
pub use kept_batch::KeptBatch;
pub use outcome::{StreamError, Untyped};
pub use reader::{Batch, StreamReader};
pub use receiving::OpenBatch;
pub use sending::Sent;
pub use stats::Stats;
pub(crate) use stats::StatsByMethod;
pub use subscription::{Event, Records, Subscription};
pub use upstream::{Upstream, UpstreamFuture, UpstreamFutureWriter, UpstreamView, UpstreamWriter};
pub(crate) use upstream_core::EndStream;
pub use upstream_core::UpstreamCore;
pub use views::Views;
pub use writer::{StreamWriter, WriteBatch};
