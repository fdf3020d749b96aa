//! Groups of actors, as OTP's `pg`: many actors under one name, and monitors that report who joins
//! and leaves.
//!
//! * An actor can join a group several times. It is then listed as often, and leaves once per join.
//!   When it ends, it leaves completely.
//! * A group exists while it has members. It is never created or deleted explicitly.
//! * A group does not keep its members alive.
//! * A [monitor](Group::monitor) of a group receives the current members and, from that moment on,
//!   each [`Change`]. All monitors receive the changes in the same order.
//!
//! Differences from OTP: groups are typed. The group of [`ActorRef`]s to an `A` and the group of
//! [`Pid`]s with the same name are different groups. In the first, an actor remains over restarts;
//! in the second, one incarnation leaves when it ends. When an actor that joined several times
//! ends, there is one [`Change`] per join. Names have 1 to 255 bytes.
//!
//! ```
//! use thalweg_runtime::{Actor, Context, Handler, groups, run, start};
//!
//! struct GroupInner { heard: usize }
//! impl Actor for GroupInner {}
//! impl Handler<String> for GroupInner {
//!     type Reply = usize;
//!     fn handle(&mut self, line: String, _: &Context<'_, Self>) -> usize {
//!         self.heard += line.len();
//!         self.heard
//!     }
//! }
//!
//! run(|| {
//!     let groups = groups::of_actors::<GroupInner>("groups")?;
//!     let (lounge, attic) = (start(GroupInner { heard: 0 }), start(GroupInner { heard: 0 }));
//!     groups.join(&lounge)?;
//!     groups.join(&attic)?;
//!     for group in groups.members() {
//!         group.cast(String::from("hello"))?;
//!     }
//!     assert_eq!(attic.call(String::new()), Ok(5));
//!
//!     let monitor = groups.monitor();
//!     assert_eq!(monitor.members().len(), 2);
//!     lounge.stop();
//!     assert!(monitor.recv().expect("the member left").is_leave());
//!     assert_eq!(groups.len(), 1);
//!     # Ok::<(), Box<dyn std::error::Error>>(())
//! })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// 1. One lock protects the members and monitors of a group. No user code runs under it. Removed
//    values are dropped after it is released.
// 2. Changes are put into the monitors' outboxes under that lock. All monitors therefore receive
//    all changes in the same order, beginning with the step in which they received the members.
// 3. A group exists as long as a `Group`, a member or a monitor does. The table of groups is read
//    only to create a `Group` and to list them.
// 4. A control's lock may be taken while a group's lock is held, never the other way round: exit
//    listeners are called without a lock.

mod inner;
mod monitor;
mod outbox;

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, Weak};

use thalweg_queue::no_preempt::lock;

use self::inner::{AnyGroup, GroupInner};
pub use self::inner::{Change, Member};
pub use self::monitor::{GroupMonitor, GroupMonitorRef};
use crate::Handle;
use crate::behaviour::{Actor, ActorRef, Context, Handler, WeakActorRef};
use crate::exit::{NotAlive, Pid};
use crate::name::{self, NameError};

/// The groups of one runtime. Threads and tasks use [`Handle::groups`]; actors can also use the
/// functions of this module.
#[derive(Clone, Default)]
pub struct Groups {
    table: Arc<GroupTable>,
}

type Key = (Arc<str>, TypeId);

#[derive(Default)]
struct GroupTable {
    groups: Mutex<HashMap<Key, Weak<dyn AnyGroup>>>,
}

impl GroupTable {
    /// Removes a group whose last owner is gone, unless a new group has replaced it.
    fn remove_if_empty(&self, key: &Key) {
        let mut table = lock(&self.groups);
        let gone = match table.get(key) {
            Some(group) if group.strong_count() == 0 => table.remove_entry(key),
            _ => None,
        };
        drop(table);
        drop(gone);
    }
}

/// An entry of [`Groups::list`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GroupInfo {
    /// The name of the group.
    pub name: String,
    /// The name of the members' type.
    pub member_type: &'static str,
    /// The number of members. An actor that joined twice counts twice.
    pub members: usize,
}

impl Groups {
    /// The group of this name for actors of type `A`. It may be empty.
    ///
    /// # Errors
    /// The name is not valid.
    pub fn of_actors<A: Actor>(&self, name: &str) -> Result<Group<ActorRef<A>>, NameError> {
        self.group(name)
    }

    /// The group of this name for actors of any kind. It may be empty.
    ///
    /// # Errors
    /// The name is not valid.
    pub fn of_pids(&self, name: &str) -> Result<Group<Pid>, NameError> {
        self.group(name)
    }

    fn group<M: Send + 'static>(&self, name: &str) -> Result<Group<M>, NameError> {
        name::check(name)?;
        let key: Key = (name.into(), TypeId::of::<M>());
        let mut table = lock(&self.table.groups);
        let existing = table.get(&key).and_then(Weak::upgrade);
        let existing = existing.and_then(|group| {
            let group: Arc<dyn Any + Send + Sync> = group;
            group.downcast::<GroupInner<M>>().ok()
        });
        let group = existing.unwrap_or_else(|| {
            let group = Arc::new(GroupInner::new(key.clone(), &self.table));
            let weak: Weak<dyn AnyGroup> = Arc::<GroupInner<M>>::downgrade(&group);
            table.insert(key, weak);
            group
        });
        drop(table);
        Ok(Group { group })
    }

    /// All groups that have members, sorted by name. Other threads may change groups meanwhile.
    pub fn list(&self) -> Vec<GroupInfo> {
        let groups: Vec<_> = {
            let table = lock(&self.table.groups);
            table.values().filter_map(Weak::upgrade).collect()
        };
        let infos = groups.iter().map(|group| GroupInfo {
            name: group.name().to_owned(),
            member_type: group.member_type(),
            members: group.len(),
        });
        let mut infos: Vec<_> = infos.filter(|info| info.members > 0).collect();
        infos.sort_by(|one, other| {
            (&one.name, one.member_type).cmp(&(&other.name, other.member_type))
        });
        infos
    }
}

impl Handle {
    /// Returns the groups of this runtime's actors.
    pub fn groups(&self) -> &Groups {
        self.scheduler.groups.get_or_init(Groups::default)
    }
}

impl fmt::Debug for Groups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Groups").field(&self.list()).finish()
    }
}

/// A group of `M`, which is an [`ActorRef`] or a [`Pid`]. Clones refer to the same group.
pub struct Group<M> {
    group: Arc<GroupInner<M>>,
}

/// The actor is not in the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotJoined;

impl fmt::Display for NotJoined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the actor is not in the group")
    }
}

impl std::error::Error for NotJoined {}

impl<A: Actor> Group<ActorRef<A>> {
    /// Adds the actor to the group, once more if it is a member. With a supervisor, it remains over
    /// restarts.
    ///
    /// # Errors
    /// The actor has ended or is about to.
    pub fn join(&self, actor: &ActorRef<A>) -> Result<(), NotAlive> {
        let control = actor.identity().ok_or(NotAlive(actor.id()))?;
        self.group.join(control, Arc::new(WeakActorRef::of(actor)))
    }

    /// Removes the actor from the group once: its oldest membership.
    ///
    /// # Errors
    /// The actor is not in the group.
    pub fn leave(&self, actor: &ActorRef<A>) -> Result<(), NotJoined> {
        let control = actor.identity().ok_or(NotJoined)?;
        self.group.leave(&control)
    }
}

impl Group<Pid> {
    /// Adds this incarnation to the group until it ends, once more if it is a member.
    ///
    /// # Errors
    /// The incarnation has ended.
    ///
    /// ```
    /// use thalweg_runtime::{Pid, groups, run, spawn, yield_now};
    ///
    /// run(|| {
    ///     let jobs = groups::of_pids("jobs")?;
    ///     let job = spawn(|| loop { yield_now() });
    ///     jobs.join(&job.pid())?;
    ///     jobs.join(&Pid::current().expect("the caller is an actor"))?;
    ///     assert_eq!(jobs.len(), 2);
    ///     job.pid().kill()?;
    ///     assert!(job.join().is_err());
    ///     assert_eq!(jobs.members(), [Pid::current().expect("the caller is an actor")]);
    ///     # Ok::<(), Box<dyn std::error::Error>>(())
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn join(&self, pid: &Pid) -> Result<(), NotAlive> {
        self.group
            .join(Arc::clone(pid.control()), Arc::new(pid.clone()))
    }

    /// Removes the incarnation from the group once: its oldest membership.
    ///
    /// # Errors
    /// The incarnation is not in the group.
    pub fn leave(&self, pid: &Pid) -> Result<(), NotJoined> {
        self.group.leave(pid.control())
    }
}

impl<M: Send + 'static> Group<M> {
    /// The name of the group.
    pub fn name(&self) -> &str {
        self.group.name()
    }

    /// All members in the order in which they joined. An actor that joined twice is listed twice.
    pub fn members(&self) -> Vec<M> {
        let members = self.group.members();
        members.iter().filter_map(Member::get).collect()
    }

    /// The running incarnations of the members.
    pub fn pids(&self) -> Vec<Pid> {
        let members = self.group.members();
        members.iter().filter_map(Member::pid).collect()
    }

    /// The number of members. An actor that joined twice counts twice.
    pub fn len(&self) -> usize {
        self.group.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the current members, and reports each join and leave from now on, to an actor with
    /// a stack or to a thread.
    pub fn monitor(&self) -> GroupMonitor<M> {
        GroupMonitor::new(&self.group)
    }

    /// As [`monitor`](Self::monitor), for a behaviour actor: each [`Change`] is a message to the
    /// current incarnation, which is handled before all waiting messages.
    pub fn monitor_by<A>(&self, context: &Context<'_, A>) -> GroupMonitorRef<M>
    where
        A: Handler<Change<M>>,
    {
        GroupMonitorRef::new(&self.group, context)
    }
}

impl<M> Clone for Group<M> {
    fn clone(&self) -> Self {
        Self {
            group: Arc::clone(&self.group),
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
    let handle =
        Handle::current().expect("the caller is not an actor; in a thread, use Handle::groups");
    f(handle.groups())
}

/// [`Groups::of_actors`] of the caller's runtime.
///
/// # Errors
/// The name is not valid.
///
/// # Panics
/// If the caller is not an actor. In a thread, use [`Handle::groups`].
pub fn of_actors<A: Actor>(name: &str) -> Result<Group<ActorRef<A>>, NameError> {
    with(|groups| groups.of_actors(name))
}

/// [`Groups::of_pids`] of the caller's runtime.
///
/// # Errors
/// The name is not valid.
///
/// # Panics
/// If the caller is not an actor. In a thread, use [`Handle::groups`].
pub fn of_pids(name: &str) -> Result<Group<Pid>, NameError> {
    with(|groups| groups.of_pids(name))
}

/// [`Groups::list`] of the caller's runtime.
///
/// # Panics
/// If the caller is not an actor. In a thread, use [`Handle::groups`].
pub fn list() -> Vec<GroupInfo> {
    with(Groups::list)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Arc;

    use super::of_pids;
    use crate::{Pid, run};

    #[test]
    fn empty_group_is_freed_with_its_last_handle() {
        run(|| {
            let me = Pid::current().expect("the caller is an actor");
            let group = of_pids("one").unwrap();
            group.join(&me).unwrap();
            group.join(&me).unwrap();
            group.leave(&me).unwrap();
            let weak = Arc::downgrade(&group.group);
            drop(group);
            assert!(weak.upgrade().is_some(), "the group has a member");
            of_pids("one").unwrap().leave(&me).unwrap();
            assert!(weak.upgrade().is_none());
        });
    }
}
