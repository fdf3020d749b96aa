//! A search: a walk over a directory tree, in parallel, without a thread of its own.
//!
//! 1. Work is on one stack behind a lock: directories to list, and bundles of files to search. The
//!    last item in is the first out, so the stack stays as small as the tree is deep and wide on
//!    one path.
//! 2. At most [`Crew::workers`] searchers are active. A searcher is a job of the crew: it takes
//!    items until the stack is empty, and then leaves. A searcher that pushes an item while fewer
//!    searchers are active spawns one.
//! 3. A searcher leaves under the same lock under which it found the stack empty, and only
//!    searchers push. So no item can be on the stack without a searcher to take it.
//! 4. The searcher that creates a bundle works on it. Between two files it checks whether another
//!    searcher may start. If so, it gives half of the remaining files away: ten large files in one
//!    directory keep ten workers busy, and a thousand small ones cost no more than they need.
//! 5. A kit (sink, buffer, matcher) goes from a searcher that leaves to the next one that starts.
//! 6. The last searcher ends the search: it publishes the progress, calls `finish`, and finishes or
//!    drops the sinks. This also happens if searchers panic, or a job is dropped before it runs.
//! 7. Nothing here waits for anything but the lock, which is never held while foreign code runs (a
//!    crew's `check` and `spawn`, a sink's `hit`), because that may switch to another actor on the
//!    same thread.

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
