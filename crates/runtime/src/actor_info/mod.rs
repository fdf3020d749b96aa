//! Information about actors: what the scheduler and the actors record for
//! [`inspect`](crate::inspect), which collects it.

mod actor_table;
mod crash;
mod moved;

use std::time::Duration;

pub(crate) use self::actor_table::{ActorStats, ActorTable};
pub use self::crash::Crash;
pub(crate) use self::crash::Crashes;
pub(crate) use self::moved::MovedActors;

use crate::id::ActorId;
use crate::stack;

/// The kind of an actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ActorKind {
    /// A closure with a stack of its own from its first slice on.
    Stack,
    /// A behaviour actor: a state with a mailbox, and a stack while it handles a message.
    Behaviour,
    /// One turn of a [`Run`](crate::Run).
    Scheduled,
}

/// The state of an actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ActorState {
    /// It has not started.
    New,
    /// It waits for its worker.
    Runnable,
    /// It is running: the actor that asked for the list.
    Running,
    /// It waits for something else: a message, a lock, a descriptor, an exit, a time.
    Waiting {
        /// The remaining timeout. `None`: no limit.
        timeout: Option<Duration>,
    },
    /// A behaviour actor without a message.
    Idle,
    /// A behaviour actor without a running incarnation: its supervisor has stopped it or is about
    /// to start it.
    Stopped,
    /// It is about to end, or its destructors are running.
    Ending,
}

/// The fill level of a mailbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupancy {
    /// Waiting messages, including the one that is being handled.
    pub len: usize,
    /// The capacity.
    pub capacity: usize,
}

/// The stack of an actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackUse {
    /// The usable size in bytes.
    pub size: usize,
    /// The bytes in use, now or when the actor was last suspended.
    pub depth: usize,
    range: (usize, usize),
}

impl StackUse {
    pub(crate) fn new(range: (usize, usize), frame: *const u8) -> Self {
        let (start, end) = range;
        Self {
            size: end - start,
            depth: end.saturating_sub(frame.addr()),
            range,
        }
    }

    /// The high-water mark of the stack in bytes, in whole pages, as reported by the kernel now. It
    /// includes the use by earlier actors since the memory was last released. Makes one system call
    /// per MiB. `None`: the system does not support it.
    pub fn high_water(&self) -> Option<usize> {
        let (start, end) = self.range;
        stack::lowest_touched(start, end).map(|lowest| end - lowest)
    }
}

/// Information about an actor. A field is `None` if it does not apply, or is unknown without
/// [`Config::inspect`](crate::Config::inspect).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ActorInfo {
    /// The number of the actor; for a behaviour actor, of its incarnation.
    pub id: ActorId,
    /// Its name.
    pub name: Option<String>,
    /// Its kind.
    pub kind: ActorKind,
    /// Its state.
    pub state: ActorState,
    /// The mailbox of a behaviour actor.
    pub mailbox: Option<Occupancy>,
    /// The actor that spawned it, or its supervisor. `None`: a thread spawned it.
    pub parent: Option<ActorId>,
    /// The parent, if it is the supervisor.
    pub supervisor: Option<ActorId>,
    /// The worker on which it started; for a behaviour actor, the worker that runs its handler.
    pub worker: Option<usize>,
    /// The number of slices it has had. For an actor with a stack, the count stops at
    /// 4,294,967,295.
    pub slices: Option<u64>,
    /// The time on its worker, in wall-clock time: it includes time in which the kernel ran
    /// something else on the processor.
    pub worker_time: Option<Duration>,
    /// Its stack.
    pub stack: Option<StackUse>,
}

/// A worker that did not reply in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnresponsiveWorker {
    /// The index of the worker.
    pub worker: usize,
    /// The actor that blocks it. `None`: no actor runs on it.
    pub running_actor: Option<ActorId>,
}

/// The actors of a runtime, sorted by number.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ActorList {
    /// The actors.
    pub actors: Vec<ActorInfo>,
    /// Workers whose actors are missing from the list.
    pub unresponsive: Vec<UnresponsiveWorker>,
    /// Whether the list includes idle behaviour actors.
    pub includes_idle: bool,
}

impl ActorList {
    /// The actor of this number, if it is in the list.
    pub fn get(&self, id: ActorId) -> Option<&ActorInfo> {
        let place = self.actors.binary_search_by_key(&id, |actor| actor.id);
        place.ok().map(|place| &self.actors[place])
    }

    /// The actors of this name.
    pub fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a ActorInfo> {
        let of_that_name = move |actor: &&ActorInfo| actor.name.as_deref() == Some(name);
        self.actors.iter().filter(of_that_name)
    }

    /// The actors that `parent` spawned.
    pub fn children(&self, parent: ActorId) -> impl Iterator<Item = &ActorInfo> {
        self.actors
            .iter()
            .filter(move |actor| actor.parent == Some(parent))
    }
}

/// A behaviour actor that reports about itself.
pub(crate) trait Snapshot: Send + Sync {
    /// The state of the actor at this moment.
    fn snapshot(&self) -> ActorSnapshot;
}

/// A behaviour actor as reported by its body.
#[derive(Debug)]
pub(crate) struct ActorSnapshot {
    pub(crate) id: ActorId,
    pub(crate) name: Option<String>,
    pub(crate) state: ActorState,
    pub(crate) mailbox: Occupancy,
    pub(crate) parent: Option<ActorId>,
    pub(crate) supervised: bool,
    /// Slices and nanoseconds, with [`Config::inspect`](crate::Config::inspect).
    pub(crate) stats: Option<(u64, u64)>,
}

impl ActorSnapshot {
    pub(crate) fn into_info(self) -> ActorInfo {
        ActorInfo {
            id: self.id,
            name: self.name,
            kind: ActorKind::Behaviour,
            state: self.state,
            mailbox: Some(self.mailbox),
            parent: self.parent,
            supervisor: self.parent.filter(|_| self.supervised),
            worker: None,
            slices: self.stats.map(|(slices, _)| slices),
            worker_time: self.stats.map(|(_, ns)| Duration::from_nanos(ns)),
            stack: None,
        }
    }
}
