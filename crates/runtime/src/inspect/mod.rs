//! Which actors there are, and how they are.
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
//!     let found = list.get(sleeper.id()).expect("it sleeps");
//!     assert_eq!(found.name.as_deref(), Some("sleeper"));
//!     assert!(matches!(found.state, ActorState::Waiting { timeout: Some(_) }));
//!     println!("{list}");
//! });
//! ```
//!
//! A thread asks by [`Handle::actors`]. What it costs is paid by who asks, and by each worker for the time in which it writes its list, about 1 us an actor. What
//! each field says without [`Config::inspect`](crate::Config::inspect), and with it:
//!
//! | | without | with |
//! | --- | --- | --- |
//! | actors with a stack, and those that are about to get one | all | all |
//! | behaviour actors | those that handle a message or are about to | all |
//! | state, name, mailbox, worker, stack | yes | yes |
//! | parent, supervisor, slices | of actors with a stack | yes |
//! | time on its worker | no | yes |
//!
//! The last 64 [crashes] of a runtime are there in any case.

// 1. A worker's actors are its own to look at: it is asked (`asked`), and writes its list between two turns, on its own thread. An actor that asks writes that of
//    its own worker itself.
// 2. Who asks waits for a worker for so long and no longer: one that is kept by an actor is named with that actor.
// 3. Each worker writes at a moment of its own. What waits in queues that all see is listed first, and what goes from one worker to another meanwhile is noted
//    (`moved`), so that it is seen twice and not never; it is one in the list.
// 4. Behaviour actors at rest are known to nobody but the register, and that is there where books are kept.

mod asked;
mod crash;
mod gather;
mod info;
mod moved;
mod register;
mod table;

use std::time::Duration;

pub(crate) use self::asked::Asked;
pub use self::crash::Crash;
pub(crate) use self::crash::{Crashes, time_of_day_now};
pub(crate) use self::info::Seen;
pub use self::info::{ActorInfo, ActorKind, ActorList, ActorState, Occupancy, Silent, StackUse};
pub(crate) use self::moved::Moved;
pub(crate) use self::register::{Books, Register};
pub(crate) use self::table::{one_line, printable};
use crate::runtime::Handle;

/// How long [`actors`] waits for a worker.
const PATIENCE: Duration = Duration::from_millis(500);

/// The actors of the caller's runtime. Waits for each worker for half a second at most.
///
/// # Panics
/// If the caller is no actor: a thread has [`Handle::actors`].
pub fn actors() -> ActorList {
    here().actors()
}

/// The last ends of actors of the caller's runtime that were not in order, oldest first, 64 at most. Those that happened where no worker of it is
/// are left out.
///
/// # Panics
/// If the caller is no actor: a thread has [`Handle::crashes`].
pub fn crashes() -> Vec<Crash> {
    here().crashes()
}

fn here() -> Handle {
    Handle::current().expect("this is for actors: a thread has a Handle")
}

impl Handle {
    /// The actors of this runtime. Waits for each worker for half a second at most.
    pub fn actors(&self) -> ActorList {
        self.actors_within(PATIENCE)
    }

    /// The same, for at most `patience` in all.
    pub fn actors_within(&self, patience: Duration) -> ActorList {
        gather::gather(&self.scheduler, patience)
    }

    /// The last ends of its actors that were not in order, oldest first, 64 at most.
    pub fn crashes(&self) -> Vec<Crash> {
        self.scheduler.crashes.all()
    }
}
