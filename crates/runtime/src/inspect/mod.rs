//! Lists the actors of a runtime and their states.
//!
//! ```
//! use std::time::Duration;
//! use thalweg_runtime::inspect::{self, ActorState};
//! use thalweg_runtime::{Builder, run, sleep, yield_now};
//!
//! run(|| {
//!     let sleeper = Builder::new().name("sleeper").spawn(|| sleep(Duration::from_secs(3600)));
//!     yield_now();
//!     let list = inspect::actors();
//!     let found = list.get(sleeper.id()).expect("the actor sleeps");
//!     assert_eq!(found.name.as_deref(), Some("sleeper"));
//!     assert!(matches!(found.state, ActorState::Waiting { timeout: Some(_) }));
//!     println!("{list}");
//! });
//! ```
//!
//! In a thread, use [`Handle::actors`]. The caller pays for the collection, and each worker for
//! writing its list, about 1 us per actor. The fields with and without
//! [`Config::inspect`](crate::Config::inspect):
//!
//! | | without | with |
//! | --- | --- | --- |
//! | actors with a stack, and those that are about to get one | all | all |
//! | behaviour actors | those that handle a message or are about to | all |
//! | state, name, mailbox, worker, stack | yes | yes |
//! | parent, supervisor, slices | for actors with a stack | yes |
//! | time on its worker | no | yes |
//!
//! The last 64 [crashes] of a runtime are always available.

// 1. Only a worker can look at its actors. It receives a request (`worker::requests`), and writes
//    its list between two turns on its own thread. If an actor asks, it writes the list of its own
//    worker itself.
// 2. The caller waits for each worker until a timeout. A worker that an actor blocks is reported
//    with that actor.
// 3. Each worker writes its list at a different moment. Tasks in shared queues are listed first,
//    and tasks that move between workers meanwhile are recorded (`actor_info::moved`), so that a
//    task may be seen twice but is never missed. Duplicates are merged.
// 4. Only the actor table knows idle behaviour actors. It exists with `Config::inspect`.

mod gather;
mod table;

use std::time::Duration;

pub(crate) use self::table::{one_line, printable};
pub use crate::actor_info::{
    ActorInfo, ActorKind, ActorList, ActorState, Crash, Occupancy, StackUse, UnresponsiveWorker,
};
use crate::runtime::Handle;

/// The default timeout of [`actors`].
const DEFAULT_TIMEOUT: Duration = Duration::from_millis(500);

/// The actors of the caller's runtime. Waits for at most half a second.
///
/// # Panics
/// If the caller is not an actor. In a thread, use [`Handle::actors`].
pub fn actors() -> ActorList {
    here().actors()
}

/// The last 64 crashes of the caller's runtime, oldest first. Crashes outside its workers are not
/// recorded.
///
/// # Panics
/// If the caller is not an actor. In a thread, use [`Handle::crashes`].
pub fn crashes() -> Vec<Crash> {
    here().crashes()
}

fn here() -> Handle {
    Handle::current().expect("the caller is not an actor; in a thread, use a Handle")
}

impl Handle {
    /// The actors of this runtime. Waits for at most half a second.
    pub fn actors(&self) -> ActorList {
        self.actors_within(DEFAULT_TIMEOUT)
    }

    /// As [`actors`](Self::actors), with this timeout in total.
    pub fn actors_within(&self, timeout: Duration) -> ActorList {
        gather::gather(&self.scheduler, timeout)
    }

    /// The last 64 crashes of this runtime, oldest first.
    pub fn crashes(&self) -> Vec<Crash> {
        self.scheduler.crashes.all()
    }
}
