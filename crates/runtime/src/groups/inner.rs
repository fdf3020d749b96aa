//! The members and monitors of one group.

use std::any::{Any, type_name};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, Weak};

use thalweg_queue::no_preempt::{LockGuard, lock};

use super::outbox::Outbox;
use super::{GroupTable, Key, NotJoined};
use crate::behaviour::{Actor, ActorRef, WeakActorRef};
use crate::control::{Control, DownListener};
use crate::exit::{NotAlive, Pid};
use crate::id::ActorId;

/// A weak reference to a member.
pub(super) trait MemberHandle<M>: Send + Sync {
    fn get(&self) -> Option<M>;
    fn pid(&self) -> Option<Pid>;
}

impl<A: Actor> MemberHandle<ActorRef<A>> for WeakActorRef<A> {
    fn get(&self) -> Option<ActorRef<A>> {
        self.upgrade()
    }

    fn pid(&self) -> Option<Pid> {
        self.pid()
    }
}

impl MemberHandle<Self> for Pid {
    fn get(&self) -> Option<Self> {
        Some(self.clone())
    }

    fn pid(&self) -> Option<Pid> {
        Some(self.clone())
    }
}

/// A member of a group. It does not keep the actor alive. Two are equal if they are the same actor
/// or, in a group of [`Pid`]s, the same incarnation.
pub struct Member<M> {
    control: Arc<Control>,
    handle: Arc<dyn MemberHandle<M>>,
}

impl<M> Member<M> {
    /// A number that is unique to this member and the same in all its [`Change`]s. A restart does
    /// not change it.
    pub fn id(&self) -> ActorId {
        self.control.id
    }

    /// A reference to the member. `None`: it has ended, or is about to because no reference is
    /// left.
    pub fn get(&self) -> Option<M> {
        if self.control.is_alive() {
            self.handle.get()
        } else {
            None
        }
    }

    /// The running incarnation.
    pub fn pid(&self) -> Option<Pid> {
        if self.control.is_alive() {
            self.handle.pid()
        } else {
            None
        }
    }
}

impl<M> Clone for Member<M> {
    fn clone(&self) -> Self {
        Self {
            control: Arc::clone(&self.control),
            handle: Arc::clone(&self.handle),
        }
    }
}

impl<M> PartialEq for Member<M> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.control, &other.control)
    }
}

impl<M> Eq for Member<M> {}

impl<M> fmt::Debug for Member<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Member").field(&self.control.id).finish()
    }
}

/// An actor joined or left a group.
pub enum Change<M> {
    /// It joined. It may have joined before.
    Join {
        /// The name of the group.
        group: Arc<str>,
        /// The actor.
        member: Member<M>,
    },
    /// It left once, or ended.
    Leave {
        /// The name of the group.
        group: Arc<str>,
        /// The actor.
        member: Member<M>,
    },
}

impl<M> Change<M> {
    /// The actor that joined or left.
    pub fn member(&self) -> &Member<M> {
        match self {
            Self::Join { member, .. } | Self::Leave { member, .. } => member,
        }
    }

    /// The name of the group.
    pub fn group(&self) -> &str {
        match self {
            Self::Join { group, .. } | Self::Leave { group, .. } => group,
        }
    }

    /// Whether it joined.
    pub fn is_join(&self) -> bool {
        matches!(self, Self::Join { .. })
    }

    /// Whether it left.
    pub fn is_leave(&self) -> bool {
        matches!(self, Self::Leave { .. })
    }
}

impl<M> Clone for Change<M> {
    fn clone(&self) -> Self {
        let (group, member) = match self {
            Self::Join { group, member } | Self::Leave { group, member } => {
                (Arc::clone(group), member.clone())
            }
        };
        if self.is_join() {
            Self::Join { group, member }
        } else {
            Self::Leave { group, member }
        }
    }
}

impl<M> fmt::Debug for Change<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.is_join() { "Join" } else { "Leave" };
        f.debug_struct(name)
            .field("group", &self.group())
            .field("member", self.member())
            .finish()
    }
}

pub(super) struct GroupInner<M> {
    key: Key,
    table: Weak<GroupTable>,
    state: Mutex<State<M>>,
}

struct State<M> {
    /// Sorted by the order of the joins.
    members: BTreeMap<u64, Member<M>>,
    joined: HashMap<ActorId, Membership>,
    monitors: BTreeMap<u64, Arc<Outbox<M>>>,
    next: u64,
}

/// The memberships of one actor.
struct Membership {
    /// The index in the actor's list of exit listeners.
    index: usize,
    /// The keys in `members`, oldest first.
    numbers: Vec<u64>,
}

impl<M> State<M> {
    fn next(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Rule 2. Returns the outboxes that must be delivered after the lock is released.
    fn notify(&self, change: &Change<M>) -> Vec<Arc<Outbox<M>>> {
        let monitors = self.monitors.values();
        monitors
            .map(|outbox| {
                outbox.put(change.clone());
                Arc::clone(outbox)
            })
            .collect()
    }
}

fn deliver<M>(to: &[Arc<Outbox<M>>]) {
    to.iter().for_each(|outbox| outbox.deliver());
}

impl<M: Send + 'static> GroupInner<M> {
    pub(super) fn new(key: Key, table: &Arc<GroupTable>) -> Self {
        Self {
            key,
            table: Arc::downgrade(table),
            state: Mutex::new(State {
                members: BTreeMap::new(),
                joined: HashMap::new(),
                monitors: BTreeMap::new(),
                next: 0,
            }),
        }
    }

    fn state(&self) -> LockGuard<'_, State<M>> {
        lock(&self.state)
    }

    pub(super) fn name(&self) -> &str {
        &self.key.0
    }

    fn leave_change(&self, member: Member<M>) -> Change<M> {
        Change::Leave {
            group: Arc::clone(&self.key.0),
            member,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.state().members.len()
    }

    pub(super) fn members(&self) -> Vec<Member<M>> {
        self.state().members.values().cloned().collect()
    }

    pub(super) fn join(
        self: &Arc<Self>,
        control: Arc<Control>,
        handle: Arc<dyn MemberHandle<M>>,
    ) -> Result<(), NotAlive> {
        let id = control.id;
        let listener = {
            let group = Arc::clone(self);
            DownListener::Callback(Box::new(move |_| group.ended(id)))
        };
        let mut state = self.state();
        let number = state.next();
        // An unused listener is dropped after the lock is released.
        let (joins, _unused) = match state.joined.get_mut(&id) {
            Some(joined) if control.is_alive() => {
                joined.numbers.push(number);
                (true, Some(listener))
            }
            Some(_) => (false, Some(listener)),
            None => match control.add_listener(listener) {
                Ok(index) => {
                    let numbers = vec![number];
                    state.joined.insert(id, Membership { index, numbers });
                    (true, None)
                }
                Err(listener) => (false, Some(listener)),
            },
        };
        if !joins {
            drop(state);
            return Err(NotAlive(id));
        }
        let member = Member { control, handle };
        state.members.insert(number, member.clone());
        let notified = state.notify(&Change::Join {
            group: Arc::clone(&self.key.0),
            member,
        });
        drop(state);
        deliver(&notified);
        Ok(())
    }

    pub(super) fn leave(&self, control: &Control) -> Result<(), NotJoined> {
        let mut state = self.state();
        let Some(joined) = state.joined.get_mut(&control.id) else {
            return Err(NotJoined);
        };
        let number = joined.numbers.remove(0);
        let was_last = joined.numbers.is_empty();
        let index = joined.index;
        if was_last {
            state.joined.remove(&control.id);
        }
        let notified = match state.members.remove(&number) {
            Some(member) => state.notify(&self.leave_change(member)),
            None => Vec::new(),
        };
        drop(state);
        if was_last {
            control.remove_listener(index);
        }
        deliver(&notified);
        Ok(())
    }

    /// Called when a member has ended.
    fn ended(&self, id: ActorId) {
        let mut notified = Vec::new();
        let mut state = self.state();
        let joined = state.joined.remove(&id);
        for number in joined.into_iter().flat_map(|joined| joined.numbers) {
            if let Some(member) = state.members.remove(&number) {
                notified.extend(state.notify(&self.leave_change(member)));
            }
        }
        drop(state);
        deliver(&notified);
    }

    /// Rule 2: adds a monitor and returns its number and the members at that moment.
    pub(super) fn add_monitor(&self, outbox: Outbox<M>) -> (u64, Vec<Member<M>>) {
        let mut state = self.state();
        let number = state.next();
        state.monitors.insert(number, Arc::new(outbox));
        (number, state.members.values().cloned().collect())
    }

    pub(super) fn remove_monitor(&self, number: u64) {
        let outbox = self.state().monitors.remove(&number);
        drop(outbox);
    }
}

impl<M> Drop for GroupInner<M> {
    /// Rule 3.
    fn drop(&mut self) {
        if let Some(table) = self.table.upgrade() {
            table.remove_if_empty(&self.key);
        }
    }
}

/// A group with members of any type.
pub(super) trait AnyGroup: Any + Send + Sync {
    fn name(&self) -> &str;
    fn member_type(&self) -> &'static str;
    fn len(&self) -> usize;
}

impl<M: Send + 'static> AnyGroup for GroupInner<M> {
    fn name(&self) -> &str {
        self.name()
    }

    fn member_type(&self) -> &'static str {
        type_name::<M>()
    }

    fn len(&self) -> usize {
        self.len()
    }
}
