//! One group's members, and who hears of them.

use std::any::{Any, type_name};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, Weak};

use thalweg_queue::no_preempt::{LockGuard, lock};

use super::outbox::Outbox;
use super::{Key, NotJoined, Rooms};
use crate::behaviour::{Actor, ActorRef, WeakActorRef};
use crate::exit::{Control, NotAlive, Pid, Watch};
use crate::id::ActorId;

/// What a member is reached by, as long as it is there.
pub(super) trait Who<M>: Send + Sync {
    fn get(&self) -> Option<M>;
    fn pid(&self) -> Option<Pid>;
}

impl<A: Actor> Who<ActorRef<A>> for WeakActorRef<A> {
    fn get(&self) -> Option<ActorRef<A>> {
        self.upgrade()
    }

    fn pid(&self) -> Option<Pid> {
        self.pid()
    }
}

impl Who<Self> for Pid {
    fn get(&self) -> Option<Self> {
        Some(self.clone())
    }

    fn pid(&self) -> Option<Pid> {
        Some(self.clone())
    }
}

/// A member of a group, which this keeps nothing alive of. Two are equal if they are the same actor, or the same incarnation in a group of [`Pid`]s.
pub struct Member<M> {
    control: Arc<Control>,
    who: Arc<dyn Who<M>>,
}

impl<M> Member<M> {
    /// A number that no other member has, in all [`Change`]s of it: to keep something by. A restart does not change it.
    pub fn id(&self) -> ActorId {
        self.control.id
    }

    /// Its reference. `None`: it has ended, or nobody reaches it any more and it is about to.
    pub fn get(&self) -> Option<M> {
        if self.control.is_alive() {
            self.who.get()
        } else {
            None
        }
    }

    /// The incarnation that lives.
    pub fn pid(&self) -> Option<Pid> {
        if self.control.is_alive() {
            self.who.pid()
        } else {
            None
        }
    }
}

impl<M> Clone for Member<M> {
    fn clone(&self) -> Self {
        Self {
            control: Arc::clone(&self.control),
            who: Arc::clone(&self.who),
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

/// Somebody joined a group, or left it.
pub enum Change<M> {
    /// It joined, perhaps once more.
    Join {
        /// Which group.
        group: Arc<str>,
        /// Who.
        member: Member<M>,
    },
    /// It left once, or ended.
    Leave {
        /// Which group.
        group: Arc<str>,
        /// Who.
        member: Member<M>,
    },
}

impl<M> Change<M> {
    /// Who joined or left.
    pub fn member(&self) -> &Member<M> {
        match self {
            Self::Join { member, .. } | Self::Leave { member, .. } => member,
        }
    }

    /// The group's name.
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

pub(super) struct Room<M> {
    key: Key,
    rooms: Weak<Rooms>,
    state: Mutex<State<M>>,
}

struct State<M> {
    /// In the order of the joins.
    seats: BTreeMap<u64, Member<M>>,
    joined: HashMap<ActorId, Joined>,
    monitors: BTreeMap<u64, Arc<Outbox<M>>>,
    next: u64,
}

/// One actor's.
struct Joined {
    /// In the list of those that hear of its end.
    place: usize,
    /// Oldest first.
    seats: Vec<u64>,
}

impl<M> State<M> {
    fn next(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Rule 2. Whoever is to hear of it, after the lock.
    fn tell(&self, change: &Change<M>) -> Vec<Arc<Outbox<M>>> {
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

impl<M: Send + 'static> Room<M> {
    pub(super) fn new(key: Key, rooms: &Arc<Rooms>) -> Self {
        Self {
            key,
            rooms: Arc::downgrade(rooms),
            state: Mutex::new(State {
                seats: BTreeMap::new(),
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

    fn leaves(&self, member: Member<M>) -> Change<M> {
        Change::Leave {
            group: Arc::clone(&self.key.0),
            member,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.state().seats.len()
    }

    pub(super) fn seats(&self) -> Vec<Member<M>> {
        self.state().seats.values().cloned().collect()
    }

    pub(super) fn join(
        self: &Arc<Self>,
        control: Arc<Control>,
        who: Arc<dyn Who<M>>,
    ) -> Result<(), NotAlive> {
        let id = control.id;
        let watch = {
            let room = Arc::clone(self);
            Watch::Tell(Box::new(move |_| room.ended(id)))
        };
        let mut state = self.state();
        let seat = state.next();
        // What is not needed is dropped after.
        let (joins, _unused) = match state.joined.get_mut(&id) {
            Some(joined) if control.is_alive() => {
                joined.seats.push(seat);
                (true, Some(watch))
            }
            Some(_) => (false, Some(watch)),
            None => match control.watch(watch) {
                Ok(place) => {
                    let seats = vec![seat];
                    state.joined.insert(id, Joined { place, seats });
                    (true, None)
                }
                Err(watch) => (false, Some(watch)),
            },
        };
        if !joins {
            drop(state);
            return Err(NotAlive(id));
        }
        let member = Member { control, who };
        state.seats.insert(seat, member.clone());
        let told = state.tell(&Change::Join {
            group: Arc::clone(&self.key.0),
            member,
        });
        drop(state);
        deliver(&told);
        Ok(())
    }

    pub(super) fn leave(&self, control: &Control) -> Result<(), NotJoined> {
        let mut state = self.state();
        let Some(joined) = state.joined.get_mut(&control.id) else {
            return Err(NotJoined);
        };
        let seat = joined.seats.remove(0);
        let was_last = joined.seats.is_empty();
        let place = joined.place;
        if was_last {
            state.joined.remove(&control.id);
        }
        let told = match state.seats.remove(&seat) {
            Some(member) => state.tell(&self.leaves(member)),
            None => Vec::new(),
        };
        drop(state);
        if was_last {
            control.unwatch(place);
        }
        deliver(&told);
        Ok(())
    }

    /// A member's end.
    fn ended(&self, id: ActorId) {
        let mut told = Vec::new();
        let mut state = self.state();
        let joined = state.joined.remove(&id);
        for seat in joined.into_iter().flat_map(|joined| joined.seats) {
            if let Some(member) = state.seats.remove(&seat) {
                told.extend(state.tell(&self.leaves(member)));
            }
        }
        drop(state);
        deliver(&told);
    }

    /// Rule 2: the members in the same step; and what to give up by.
    pub(super) fn add_monitor(&self, outbox: Outbox<M>) -> (u64, Vec<Member<M>>) {
        let mut state = self.state();
        let number = state.next();
        state.monitors.insert(number, Arc::new(outbox));
        (number, state.seats.values().cloned().collect())
    }

    pub(super) fn remove_monitor(&self, number: u64) {
        let outbox = self.state().monitors.remove(&number);
        drop(outbox);
    }
}

impl<M> Drop for Room<M> {
    /// Rule 3.
    fn drop(&mut self) {
        if let Some(rooms) = self.rooms.upgrade() {
            rooms.forget(&self.key);
        }
    }
}

/// A room of whatever.
pub(super) trait AnyRoom: Any + Send + Sync {
    fn name(&self) -> &str;
    fn of(&self) -> &'static str;
    fn len(&self) -> usize;
}

impl<M: Send + 'static> AnyRoom for Room<M> {
    fn name(&self) -> &str {
        self.name()
    }

    fn of(&self) -> &'static str {
        type_name::<M>()
    }

    fn len(&self) -> usize {
        self.len()
    }
}
