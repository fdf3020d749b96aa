//! Names of actors: one runtime's, for as long as the actors live.
//!
//! | registered by | the name stays | it is looked up as |
//! | --- | --- | --- |
//! | an [`ActorRef`] | until the actor ends for good: over restarts, if it has a supervisor | that reference, or the incarnation's [`Pid`] |
//! | a [`Pid`] | until that incarnation ends | the [`Pid`] |
//!
//! As in OTP a name vanishes with its actor, before anybody who joins or monitors the actor hears of its end; it names one actor at a time, and
//! keeps none alive. Unlike there an actor may have several names, and who looks up says which type of actor it expects: another type is an error. Names
//! have 1 to 255 bytes.
//!
//! An actor that is ended by its supervisor for good and begun again is to be registered again.
//!
//! ```
//! use thalweg_runtime::{Actor, Context, Handler, registry, run, start};
//!
//! struct Counter(u32);
//! impl Actor for Counter {}
//! impl Handler<u32> for Counter {
//!     type Reply = u32;
//!     fn handle(&mut self, more: u32, _: &Context<'_, Self>) -> u32 {
//!         self.0 += more;
//!         self.0
//!     }
//! }
//!
//! run(|| {
//!     let counter = start(Counter(0));
//!     registry::register("visits", &counter)?;
//!     let found = registry::whereis::<Counter>("visits")?.expect("it lives");
//!     assert_eq!(found.call(3), Ok(3));
//!
//!     let monitor = counter.pid().monitor();
//!     counter.stop();
//!     monitor.wait();
//!     assert!(registry::whereis::<Counter>("visits")?.is_none());
//!     # Ok::<(), Box<dyn std::error::Error>>(())
//! })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// 1. A name is in one shard, chosen by its hash, behind that shard's lock. It is held for one operation on a table, under which no code of a user runs:
//    what is taken out of the table is dropped after, and a reference is made of what was found after. A lock for readers would not do better: they
//    would write to it all the same.
// 2. The lock of a control is taken within that of a shard, never the other way round: who is told of an end holds none.
// 3. An entry has a number that no other has, so the end of an actor takes away its own entry and not what came to its place.
// 4. Who has ended has no name, also where the entry is about to go: so it does not matter who hears first of the end.

mod error;

use std::any::{Any, type_name};
use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use thalweg_queue::no_preempt::{LockGuard, lock};

pub use self::error::{RegisterError, WrongType};
use crate::Handle;
use crate::behaviour::{Actor, ActorRef, WeakActorRef};
use crate::exit::{Control, Pid, Watch};
use crate::name;
pub use crate::name::NameError;

/// The names of one runtime: [`Handle::registry`] is for threads and tasks, actors have the functions of this module too.
#[derive(Clone)]
pub struct Registry {
    names: Arc<Names>,
}

struct Names {
    shards: Box<[Mutex<Shard>]>,
    /// Not to be guessed: names may come from outside.
    hash: RandomState,
    /// Rule 3.
    next: AtomicU64,
}

type Shard = HashMap<Arc<str>, Entry>;

struct Entry {
    number: u64,
    who: Arc<dyn Known>,
    type_name: &'static str,
    control: Arc<Control>,
    /// In the list of those that hear of the end.
    place: usize,
}

/// What an entry knows of its actor.
trait Known: Any + Send + Sync {
    fn pid(&self) -> Option<Pid>;
}

impl<A: Actor> Known for WeakActorRef<A> {
    fn pid(&self) -> Option<Pid> {
        self.pid()
    }
}

impl Known for Pid {
    fn pid(&self) -> Option<Pid> {
        Some(self.clone())
    }
}

impl Entry {
    fn is_alive(&self) -> bool {
        self.control.is_alive()
    }

    /// The name is taken from an actor that lives.
    fn forget(self) {
        self.control.unwatch(self.place);
    }
}

impl Names {
    fn shard(&self, name: &str) -> LockGuard<'_, Shard> {
        // Shards are a power of two.
        let at = self.hash.hash_one(name) as usize & (self.shards.len() - 1);
        lock(&self.shards[at])
    }

    /// Rule 3.
    fn take_away(&self, name: &str, number: u64) {
        let mut shard = self.shard(name);
        let is_it = shard.get(name).is_some_and(|entry| entry.number == number);
        let gone = if is_it {
            shard.remove_entry(name)
        } else {
            None
        };
        drop(shard);
        drop(gone);
    }
}

impl Registry {
    /// For so many workers: as many shards or more, so that two of them rarely meet.
    pub(crate) fn new(workers: usize) -> Self {
        let shards = workers.next_power_of_two();
        Self {
            names: Arc::new(Names {
                shards: (0..shards).map(|_| Mutex::default()).collect(),
                hash: RandomState::new(),
                next: AtomicU64::new(0),
            }),
        }
    }

    /// Gives an actor a name, until it ends for good.
    ///
    /// # Errors
    /// The name is no good, or taken; or the actor has ended, or is about to.
    pub fn register<A: Actor>(&self, name: &str, actor: &ActorRef<A>) -> Result<(), RegisterError> {
        name::check(name)?;
        let control = actor
            .identity()
            .ok_or(RegisterError::NotAlive(actor.id()))?;
        self.put(name, control, WeakActorRef::of(actor), type_name::<A>())
    }

    /// Gives one incarnation of an actor a name, whatever it is.
    ///
    /// # Errors
    /// The name is no good, or taken; or the incarnation has ended.
    ///
    /// ```
    /// use thalweg_runtime::{registry, run, spawn, yield_now};
    ///
    /// run(|| {
    ///     let sleeper = spawn(|| loop { yield_now() });
    ///     registry::register_pid("sleeper", &sleeper.pid())?;
    ///     registry::whereis_pid("sleeper").expect("it lives").kill()?;
    ///     assert!(sleeper.join().is_err());
    ///     assert!(registry::whereis_pid("sleeper").is_none());
    ///     # Ok::<(), Box<dyn std::error::Error>>(())
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn register_pid(&self, name: &str, pid: &Pid) -> Result<(), RegisterError> {
        name::check(name)?;
        let control = Arc::clone(pid.control());
        self.put(name, control, pid.clone(), type_name::<Pid>())
    }

    fn put(
        &self,
        name: &str,
        control: Arc<Control>,
        who: impl Known,
        type_name: &'static str,
    ) -> Result<(), RegisterError> {
        let name: Arc<str> = name.into();
        let who: Arc<dyn Known> = Arc::new(who);
        let number = self.names.next.fetch_add(1, Ordering::Relaxed);
        let watch = {
            let (names, name) = (Arc::downgrade(&self.names), Arc::clone(&name));
            Watch::Tell(Box::new(move |_| {
                if let Some(names) = Weak::upgrade(&names) {
                    names.take_away(&name, number);
                }
            }))
        };
        let mut shard = self.names.shard(&name);
        // Rule 4.
        if let Some(entry) = shard.get(&name).filter(|entry| entry.is_alive()) {
            let by = entry.control.id;
            drop(shard);
            let name = String::from(&*name);
            return Err(RegisterError::Taken { name, by });
        }
        let watched = control.watch(watch);
        let (before, refused) = match watched {
            Ok(place) => {
                let entry = Entry {
                    number,
                    who,
                    type_name,
                    control,
                    place,
                };
                (shard.insert(name, entry), None)
            }
            Err(watch) => (None, Some((watch, control.id))),
        };
        drop(shard);
        drop(before);
        match refused {
            None => Ok(()),
            Some((_, id)) => Err(RegisterError::NotAlive(id)),
        }
    }

    /// The actor of this name. `None`: there is none, or nobody reaches it any more and it is about to end.
    ///
    /// # Errors
    /// It is no `A`, or was registered by its [`Pid`].
    pub fn whereis<A: Actor>(&self, name: &str) -> Result<Option<ActorRef<A>>, WrongType> {
        let Some((who, registered)) = self.look_up(name) else {
            return Ok(None);
        };
        let who: Arc<dyn Any + Send + Sync> = who;
        match who.downcast::<WeakActorRef<A>>() {
            Ok(actor) => Ok(actor.upgrade()),
            Err(_) => Err(WrongType {
                name: name.to_owned(),
                registered,
                asked: type_name::<A>(),
            }),
        }
    }

    /// The incarnation that lives of the actor of this name. `None`: there is no such actor, or it is between two incarnations.
    pub fn whereis_pid(&self, name: &str) -> Option<Pid> {
        self.look_up(name)?.0.pid()
    }

    fn look_up(&self, name: &str) -> Option<(Arc<dyn Known>, &'static str)> {
        let shard = self.names.shard(name);
        let entry = shard.get(name)?;
        // Rule 4.
        entry
            .is_alive()
            .then(|| (Arc::clone(&entry.who), entry.type_name))
    }

    /// Takes a name away from whoever has it. `false`: nobody has.
    pub fn unregister(&self, name: &str) -> bool {
        let removed = self.names.shard(name).remove_entry(name);
        let Some((_, entry)) = removed else {
            return false;
        };
        let is_alive = entry.is_alive();
        entry.forget();
        is_alive
    }

    /// All names, in order. Others may come and go meanwhile.
    pub fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        for shard in &self.names.shards {
            let shard = lock(shard);
            let alive = shard.iter().filter(|(_, entry)| entry.is_alive());
            names.extend(alive.map(|(name, _)| String::from(&**name)));
        }
        names.sort_unstable();
        names
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Registry").field(&self.names()).finish()
    }
}

fn with<R>(f: impl FnOnce(&Registry) -> R) -> R {
    let handle = Handle::current()
        .expect("names without a handle are for actors; a thread has Handle::registry");
    f(handle.registry())
}

/// [`Registry::register`] in the caller's runtime.
///
/// # Errors
/// As there.
///
/// # Panics
/// If the caller is no actor: a thread has [`Handle::registry`].
pub fn register<A: Actor>(name: &str, actor: &ActorRef<A>) -> Result<(), RegisterError> {
    with(|registry| registry.register(name, actor))
}

/// [`Registry::register_pid`] in the caller's runtime.
///
/// # Errors
/// As there.
///
/// # Panics
/// If the caller is no actor: a thread has [`Handle::registry`].
pub fn register_pid(name: &str, pid: &Pid) -> Result<(), RegisterError> {
    with(|registry| registry.register_pid(name, pid))
}

/// [`Registry::whereis`] in the caller's runtime.
///
/// # Errors
/// As there.
///
/// # Panics
/// If the caller is no actor: a thread has [`Handle::registry`].
pub fn whereis<A: Actor>(name: &str) -> Result<Option<ActorRef<A>>, WrongType> {
    with(|registry| registry.whereis(name))
}

/// [`Registry::whereis_pid`] in the caller's runtime.
///
/// # Panics
/// If the caller is no actor: a thread has [`Handle::registry`].
pub fn whereis_pid(name: &str) -> Option<Pid> {
    with(|registry| registry.whereis_pid(name))
}

/// [`Registry::unregister`] in the caller's runtime.
///
/// # Panics
/// If the caller is no actor: a thread has [`Handle::registry`].
pub fn unregister(name: &str) -> bool {
    with(|registry| registry.unregister(name))
}

/// [`Registry::names`] of the caller's runtime.
///
/// # Panics
/// If the caller is no actor: a thread has [`Handle::registry`].
pub fn names() -> Vec<String> {
    with(Registry::names)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Arc;

    use super::{register_pid, unregister, with};
    use crate::{Pid, run};

    #[test]
    fn a_name_that_was_given_back_leaves_nothing_with_its_actor() {
        run(|| {
            let pid = Pid::current().expect("an actor asks");
            let watches = || with(|registry| Arc::weak_count(&registry.names));
            let before = watches();
            for _ in 0..3 {
                register_pid("one", &pid).unwrap();
                assert_eq!(watches(), before + 1);
                assert!(unregister("one"));
            }
            assert_eq!(watches(), before);
        });
    }
}
