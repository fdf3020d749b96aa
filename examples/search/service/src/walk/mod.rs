//! A search: a walk over a directory tree, in parallel, without a thread of its own.
//!
//! 1. Work lies on one stack behind a lock: directories to list, and bundles of files to search. The last
//!    item in is the first out, so that the stack stays as small as the tree is deep and wide on one path.
//! 2. At most [`Crew::workers`] searchers are active. A searcher is a job of the crew: it takes items until
//!    there are none, and leaves. Who puts something on the stack while fewer are active spawns one.
//! 3. A searcher leaves under the same lock under which it found the stack empty; who pushes is a searcher.
//!    So nothing can lie on the stack with nobody to take it.
//! 4. A bundle is worked on by who made it. Between two files it looks whether there is room for another
//!    searcher, and if so gives half of what is left away: ten large files in one directory keep ten workers
//!    busy, a thousand small ones cost no more than they need.
//! 5. A kit (sink, buffer, matcher) goes from a searcher that leaves to the next that begins.
//! 6. The last one out ends the search: it publishes the progress, calls `finish`, and finishes or drops the sinks. That
//!    is also what happens when searchers panic or a job is dropped unrun.
//! 7. Nothing here waits for anything but the lock, which is never held while foreign code runs (a crew's
//!    `check` and `spawn`, a sink's `hit`), because that may switch to another actor on the same thread.

mod crew;
mod directory;
mod file;
mod hit;
mod ignores;
mod plan;
mod progress;
mod search;

pub use crew::{CountOnly, Crew, Sink, Stop};
pub use file::{CHECK_BYTES, LINE_LIMIT};
pub use hit::{Hit, TEXT_LIMIT};
pub use plan::{Plan, Refused, Settings};
pub use progress::{Counts, INTERVAL, Progress};
pub use search::{Outcome, start};
