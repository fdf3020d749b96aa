//! Groups of actors, as OTP's `pg` has them: many actors under one name, and who wants to hears who joins and leaves.
//!
//! * An actor may join a group several times, and is in it as often; it leaves once for each, and altogether when it ends.
//! * A group without members is none: nobody makes or deletes one.
//! * A group keeps none of its members alive.
//! * Who [monitors](Group::monitor) a group gets its members and, from that very moment, each [`Change`], in one order for all.
//!
//! Unlike there a group is typed: that of the [`ActorRef`]s to an `A`, and that of [`Pid`]s, are different groups under one name. In the first an actor stays
//! over restarts, in the second it is one incarnation that leaves when it ends. Where one joined several times, each end is as many [`Change`]s. Names have
//! 1 to 255 bytes.
//!
//! ```
//! use thalweg_runtime::{Actor, Context, Handler, groups, run, start};
//!
//! struct Room { heard: usize }
//! impl Actor for Room {}
//! impl Handler<String> for Room {
//!     type Reply = usize;
//!     fn handle(&mut self, line: String, _: &Context<'_, Self>) -> usize {
//!         self.heard += line.len();
//!         self.heard
//!     }
//! }
//!
//! run(|| {
//!     let rooms = groups::of_actors::<Room>("rooms")?;
//!     let (lounge, attic) = (start(Room { heard: 0 }), start(Room { heard: 0 }));
//!     rooms.join(&lounge)?;
//!     rooms.join(&attic)?;
//!     for room in rooms.members() {
//!         room.cast(String::from("hello"))?;
//!     }
//!     assert_eq!(attic.call(String::new()), Ok(5));
//!
//!     let monitor = rooms.monitor();
//!     assert_eq!(monitor.members().len(), 2);
//!     lounge.stop();
//!     assert!(monitor.recv().expect("it comes").is_leave());
//!     assert_eq!(rooms.len(), 1);
//!     # Ok::<(), Box<dyn std::error::Error>>(())
//! })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// 1. A group is a room: its members and monitors behind one lock, under which no code of a user runs. What is taken out is dropped after.
// 2. What the monitors hear is put into their outboxes under that lock, so all hear of all changes in one order, and from the step on in which they saw the
//    members.
// 3. A room is there for as long as a `Group`, a member or a monitor is. The table of rooms is looked at to make a `Group`, and for nothing else.
// 4. The lock of a control is taken within that of a room, never the other way round: who is told of an end holds none.

mod monitor;
mod outbox;
mod room;

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, Weak};

use thalweg_queue::no_preempt::lock;

pub use self::monitor::{GroupMonitor, GroupMonitored};
use self::room::{AnyRoom, Room};
pub use self::room::{Change, Member};
use crate::Handle;
use crate::behaviour::{Actor, ActorRef, Context, Handler, WeakActorRef};
use crate::exit::{NotAlive, Pid};
use crate::name::{self, NameError};

/// The groups of one runtime: [`Handle::groups`] is for threads and tasks, actors have the functions of this module too.
#[derive(Clone, Default)]
pub struct Groups {
    rooms: Arc<Rooms>,
}

type Key = (Arc<str>, TypeId);

#[derive(Default)]
struct Rooms {
    table: Mutex<HashMap<Key, Weak<dyn AnyRoom>>>,
}

impl Rooms {
    /// The last that had a room has gone. There may be a new one in its place.
    fn forget(&self, key: &Key) {
        let mut table = lock(&self.table);
        let gone = match table.get(key) {
            Some(room) if room.strong_count() == 0 => table.remove_entry(key),
            _ => None,
        };
        drop(table);
        drop(gone);
    }
}

/// What [`Groups::list`] says of one group.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GroupInfo {
    /// Its name.
    pub name: String,
    /// Of what: the type's name.
    pub of: &'static str,
    /// How many members it has: who joined twice counts twice.
    pub members: usize,
}

impl Groups {
    /// The group of this name of actors with this state. It may have no members.
    ///
    /// # Errors
    /// The name is no good.
    pub fn of_actors<A: Actor>(&self, name: &str) -> Result<Group<ActorRef<A>>, NameError> {
        self.group(name)
    }

    /// The group of this name of actors of any kind. It may have no members.
    ///
    /// # Errors
    /// The name is no good.
    pub fn of_pids(&self, name: &str) -> Result<Group<Pid>, NameError> {
        self.group(name)
    }

    fn group<M: Send + 'static>(&self, name: &str) -> Result<Group<M>, NameError> {
        name::check(name)?;
        let key: Key = (name.into(), TypeId::of::<M>());
        let mut table = lock(&self.rooms.table);
        let there = table.get(&key).and_then(Weak::upgrade);
        let there = there.and_then(|room| {
            let room: Arc<dyn Any + Send + Sync> = room;
            room.downcast::<Room<M>>().ok()
        });
        let room = there.unwrap_or_else(|| {
            let room = Arc::new(Room::new(key.clone(), &self.rooms));
            let weak: Weak<dyn AnyRoom> = Arc::<Room<M>>::downgrade(&room);
            table.insert(key, weak);
            room
        });
        drop(table);
        Ok(Group { room })
    }

    /// All groups that have members, by their names. Others may come and go meanwhile.
    pub fn list(&self) -> Vec<GroupInfo> {
        let rooms: Vec<_> = {
            let table = lock(&self.rooms.table);
            table.values().filter_map(Weak::upgrade).collect()
        };
        let infos = rooms.iter().map(|room| GroupInfo {
            name: room.name().to_owned(),
            of: room.of(),
            members: room.len(),
        });
        let mut infos: Vec<_> = infos.filter(|info| info.members > 0).collect();
        infos.sort_by(|one, other| (&one.name, one.of).cmp(&(&other.name, other.of)));
        infos
    }
}

impl fmt::Debug for Groups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Groups").field(&self.list()).finish()
    }
}

/// One group: of `M`, which is an [`ActorRef`] or a [`Pid`]. Clones are one and the same.
pub struct Group<M> {
    room: Arc<Room<M>>,
}

/// It is not in the group, so it cannot leave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotJoined;

impl fmt::Display for NotJoined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the actor is not in the group")
    }
}

impl std::error::Error for NotJoined {}

impl<A: Actor> Group<ActorRef<A>> {
    /// Joins, once more if it is in it. It stays over restarts, if it has a supervisor.
    ///
    /// # Errors
    /// The actor has ended, or is about to.
    pub fn join(&self, actor: &ActorRef<A>) -> Result<(), NotAlive> {
        let control = actor.identity().ok_or(NotAlive(actor.id()))?;
        self.room.join(control, Arc::new(WeakActorRef::of(actor)))
    }

    /// Leaves: takes one join back, the oldest.
    ///
    /// # Errors
    /// It is not in the group.
    pub fn leave(&self, actor: &ActorRef<A>) -> Result<(), NotJoined> {
        let control = actor.identity().ok_or(NotJoined)?;
        self.room.leave(&control)
    }
}

impl Group<Pid> {
    /// Joins, once more if it is in it, until this incarnation ends.
    ///
    /// # Errors
    /// It has ended.
    ///
    /// ```
    /// use thalweg_runtime::{Pid, groups, run, spawn, yield_now};
    ///
    /// run(|| {
    ///     let jobs = groups::of_pids("jobs")?;
    ///     let job = spawn(|| loop { yield_now() });
    ///     jobs.join(&job.pid())?;
    ///     jobs.join(&Pid::current().expect("this is an actor"))?;
    ///     assert_eq!(jobs.len(), 2);
    ///     job.pid().kill()?;
    ///     assert!(job.join().is_err());
    ///     assert_eq!(jobs.members(), [Pid::current().expect("this is an actor")]);
    ///     # Ok::<(), Box<dyn std::error::Error>>(())
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn join(&self, pid: &Pid) -> Result<(), NotAlive> {
        self.room
            .join(Arc::clone(pid.control()), Arc::new(pid.clone()))
    }

    /// Leaves: takes one join back, the oldest.
    ///
    /// # Errors
    /// It is not in the group.
    pub fn leave(&self, pid: &Pid) -> Result<(), NotJoined> {
        self.room.leave(pid.control())
    }
}

impl<M: Send + 'static> Group<M> {
    /// Its name.
    pub fn name(&self) -> &str {
        self.room.name()
    }

    /// All members in the order in which they joined, each as often as it did.
    pub fn members(&self) -> Vec<M> {
        let seats = self.room.seats();
        seats.iter().filter_map(Member::get).collect()
    }

    /// The same by the incarnations that live.
    pub fn pids(&self) -> Vec<Pid> {
        let seats = self.room.seats();
        seats.iter().filter_map(Member::pid).collect()
    }

    /// How many members there are: who joined twice counts twice.
    pub fn len(&self) -> usize {
        self.room.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Who is in it, and from now on who joins and leaves, for an actor with a stack of its own or a thread.
    pub fn monitor(&self) -> GroupMonitor<M> {
        GroupMonitor::new(&self.room)
    }

    /// The same for a behaviour actor: each [`Change`] is a message to the incarnation that asks, which comes before all that wait.
    pub fn monitor_by<A>(&self, context: &Context<'_, A>) -> GroupMonitored<M>
    where
        A: Handler<Change<M>>,
    {
        GroupMonitored::new(&self.room, context)
    }
}

impl<M> Clone for Group<M> {
    fn clone(&self) -> Self {
        Self {
            room: Arc::clone(&self.room),
        }
    }
}

impl<M: Send + 'static> fmt::Debug for Group<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group")
            .field("name", &self.name())
            .field("of", &type_name::<M>())
            .field("len", &self.len())
            .finish()
    }
}

fn with<R>(f: impl FnOnce(&Groups) -> R) -> R {
    let handle = Handle::current()
        .expect("groups without a handle are for actors; a thread has Handle::groups");
    f(handle.groups())
}

/// [`Groups::of_actors`] in the caller's runtime.
///
/// # Errors
/// The name is no good.
///
/// # Panics
/// If the caller is no actor: a thread has [`Handle::groups`].
pub fn of_actors<A: Actor>(name: &str) -> Result<Group<ActorRef<A>>, NameError> {
    with(|groups| groups.of_actors(name))
}

/// [`Groups::of_pids`] in the caller's runtime.
///
/// # Errors
/// The name is no good.
///
/// # Panics
/// If the caller is no actor: a thread has [`Handle::groups`].
pub fn of_pids(name: &str) -> Result<Group<Pid>, NameError> {
    with(|groups| groups.of_pids(name))
}

/// [`Groups::list`] of the caller's runtime.
///
/// # Panics
/// If the caller is no actor: a thread has [`Handle::groups`].
pub fn list() -> Vec<GroupInfo> {
    with(Groups::list)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Arc;

    use super::of_pids;
    use crate::{Pid, run};

    #[test]
    fn a_group_that_was_left_is_gone_with_who_held_it() {
        run(|| {
            let me = Pid::current().expect("an actor asks");
            let group = of_pids("one").unwrap();
            group.join(&me).unwrap();
            group.join(&me).unwrap();
            group.leave(&me).unwrap();
            let room = Arc::downgrade(&group.room);
            drop(group);
            assert!(room.upgrade().is_some(), "it has a member");
            of_pids("one").unwrap().leave(&me).unwrap();
            assert!(room.upgrade().is_none());
        });
    }
}
