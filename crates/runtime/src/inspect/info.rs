//! What is said of an actor, and of all of them.

use std::time::Duration;

use crate::id::ActorId;
use crate::stack;

/// What an actor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ActorKind {
    /// A closure with a stack of its own, from its first slice on.
    Stack,
    /// A state with a mailbox, which has a stack while it handles a message.
    Behaviour,
    /// One turn of a [`Run`](crate::Run).
    Scheduled,
}

/// What an actor does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ActorState {
    /// It has not begun.
    New,
    /// It waits for its worker.
    Runnable,
    /// It runs: that is who asks.
    Running,
    /// It waits for something else: a message, a lock, a descriptor, somebody's end, a time.
    Waiting {
        /// How long it does so at most; `None`: without a limit.
        timeout: Option<Duration>,
    },
    /// A behaviour actor without a message.
    Resting,
    /// A behaviour actor that its supervisor is about to start, or has stopped.
    Between,
    /// It is about to end, or its destructors run.
    Ending,
}

/// How full a mailbox is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupancy {
    /// Messages that wait, and the one that is handled.
    pub len: usize,
    /// How many may.
    pub capacity: usize,
}

/// The memory that an actor runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackUse {
    /// Bytes that it has for its frames.
    pub size: usize,
    /// Bytes that its frames take, or took when it was last put aside.
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

    /// The most bytes that were ever used of it, in whole pages, as the kernel sees it now: by this actor, or by one before it since the memory was last
    /// given back. A system call for each MiB. `None`: the system does not say.
    pub fn high_water(&self) -> Option<usize> {
        let (start, end) = self.range;
        stack::lowest_touched(start, end).map(|lowest| end - lowest)
    }
}

/// What is known of an actor. What is `None` is not known without [`Config::inspect`](crate::Config::inspect), or does not apply.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ActorInfo {
    /// Its number; of a behaviour actor, its incarnation's.
    pub id: ActorId,
    /// What it is called.
    pub name: Option<String>,
    /// What it is.
    pub kind: ActorKind,
    /// What it does.
    pub state: ActorState,
    /// A behaviour actor's.
    pub mailbox: Option<Occupancy>,
    /// Who spawned it; of one that is supervised, its supervisor. Nobody: a thread did.
    pub parent: Option<ActorId>,
    /// The parent, where that is its supervisor.
    pub supervisor: Option<ActorId>,
    /// The worker that it began on; of a behaviour actor, while it handles a message.
    pub worker: Option<usize>,
    /// How often it was given its worker; of an actor with a stack up to 4,294,967,295, which is that often or more.
    pub slices: Option<u64>,
    /// How long it had its worker in all, by the clock: time in which the kernel gave the worker's processor to others is in it.
    pub worker_time: Option<Duration>,
    /// What it runs on.
    pub stack: Option<StackUse>,
}

/// A worker that did not say in time what it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Silent {
    /// Which.
    pub worker: usize,
    /// Who keeps it. `None`: it is the worker itself that does not come on.
    pub kept_by: Option<ActorId>,
}

/// The actors of a runtime, by their numbers.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ActorList {
    /// What they are.
    pub actors: Vec<ActorInfo>,
    /// Workers whose actors are not in it.
    pub silent: Vec<Silent>,
    /// Whether behaviour actors are in it that handle no message.
    pub has_resting: bool,
}

impl ActorList {
    /// The actor of this number, if it is in the list.
    pub fn get(&self, id: ActorId) -> Option<&ActorInfo> {
        let place = self.actors.binary_search_by_key(&id, |actor| actor.id);
        place.ok().map(|place| &self.actors[place])
    }

    /// Those of this name.
    pub fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a ActorInfo> {
        let of_that_name = move |actor: &&ActorInfo| actor.name.as_deref() == Some(name);
        self.actors.iter().filter(of_that_name)
    }

    /// Those that `parent` spawned.
    pub fn children(&self, parent: ActorId) -> impl Iterator<Item = &ActorInfo> {
        self.actors
            .iter()
            .filter(move |actor| actor.parent == Some(parent))
    }
}

/// A behaviour actor, as its body sees it.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) id: ActorId,
    pub(crate) name: Option<String>,
    pub(crate) state: ActorState,
    pub(crate) mailbox: Occupancy,
    pub(crate) parent: Option<ActorId>,
    pub(crate) supervised: bool,
    /// Where books are kept: slices, and nanoseconds.
    pub(crate) books: Option<(u64, u64)>,
}

impl Seen {
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
            slices: self.books.map(|(slices, _)| slices),
            worker_time: self.books.map(|(_, ns)| Duration::from_nanos(ns)),
            stack: None,
        }
    }
}
