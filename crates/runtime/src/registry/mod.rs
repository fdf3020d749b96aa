//! Registered names of actors. Each runtime has its own registry.
//!
//! | registered by | the name is kept | look-up returns |
//! | --- | --- | --- |
//! | an [`ActorRef`] | until the actor ends for good; with a supervisor, over restarts | that reference, or the current [`Pid`] |
//! | a [`Pid`] | until that incarnation ends | the [`Pid`] |
//!
//! As in OTP, a name refers to one actor and does not keep it alive. It is removed before a join or
//! a monitor reports the actor's exit. Unlike in OTP, an actor may have several names, and a
//! look-up states the type of actor that it expects: another type is an error. Names have 1 to 255
//! bytes.
//!
//! If a supervisor ends an actor for good and starts it again later, register it again.
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
//!     let found = registry::whereis::<Counter>("visits")?.expect("the actor runs");
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

// 1. A name is in the shard that its hash selects, behind that shard's lock. The lock is held for
//    one operation on the table, and no user code runs under it: removed values are dropped after
//    it is released, and references are created after it is released. A reader-writer lock would
//    not be better, because readers would write to it too.
// 2. A control's lock may be taken while a shard's lock is held, never the other way round: exit
//    listeners are called without a lock.
// 3. Each entry has a unique number, so that the exit of an actor removes its own entry and not one
//    that replaced it.
// 4. An actor that has ended has no name, even if its entry is not removed yet. The order of the
//    exit listeners therefore does not matter.

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
use crate::control::{Control, DownListener};
use crate::exit::Pid;
use crate::name;
pub use crate::name::NameError;

/// The names of one runtime. Threads and tasks use [`Handle::registry`]; actors can also use the
/// functions of this module.
#[derive(Clone)]
pub struct Registry {
    names: Arc<Names>,
}

struct Names {
    shards: Box<[Mutex<Shard>]>,
    /// Randomly keyed, since names may come from untrusted input.
    hash: RandomState,
    /// Rule 3.
    next: AtomicU64,
}

type Shard = HashMap<Arc<str>, Entry>;

struct Entry {
    number: u64,
    actor: Arc<dyn RegisteredActor>,
    type_name: &'static str,
    control: Arc<Control>,
    /// The index in the actor's list of exit listeners.
    index: usize,
}

/// The actor of an entry.
trait RegisteredActor: Any + Send + Sync {
    fn pid(&self) -> Option<Pid>;
}

impl<A: Actor> RegisteredActor for WeakActorRef<A> {
    fn pid(&self) -> Option<Pid> {
        self.pid()
    }
}

impl RegisteredActor for Pid {
    fn pid(&self) -> Option<Pid> {
        Some(self.clone())
    }
}

impl Entry {
    fn is_alive(&self) -> bool {
        self.control.is_alive()
    }

    /// Ends the registration of an actor that still runs.
    fn release(self) {
        self.control.remove_listener(self.index);
    }
}

impl Names {
    fn shard(&self, name: &str) -> LockGuard<'_, Shard> {
        // The number of shards is a power of two.
        let at = self.hash.hash_one(name) as usize & (self.shards.len() - 1);
        lock(&self.shards[at])
    }

    /// Rule 3.
    fn remove_entry(&self, name: &str, number: u64) {
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
    /// At least one shard per worker, so that two workers rarely contend.
    fn new(workers: usize) -> Self {
        let shards = workers.next_power_of_two();
        Self {
            names: Arc::new(Names {
                shards: (0..shards).map(|_| Mutex::default()).collect(),
                hash: RandomState::new(),
                next: AtomicU64::new(0),
            }),
        }
    }

    /// Registers an actor under a name until it ends for good.
    ///
    /// # Errors
    /// The name is not valid or is taken, or the actor has ended or is about to.
    pub fn register<A: Actor>(&self, name: &str, actor: &ActorRef<A>) -> Result<(), RegisterError> {
        name::check(name)?;
        let control = actor
            .identity()
            .ok_or(RegisterError::NotAlive(actor.id()))?;
        self.put(name, control, WeakActorRef::of(actor), type_name::<A>())
    }

    /// Registers one incarnation of an actor of any kind under a name.
    ///
    /// # Errors
    /// The name is not valid or is taken, or the incarnation has ended.
    ///
    /// ```
    /// use thalweg_runtime::{registry, run, spawn, yield_now};
    ///
    /// run(|| {
    ///     let sleeper = spawn(|| loop { yield_now() });
    ///     registry::register_pid("sleeper", &sleeper.pid())?;
    ///     registry::whereis_pid("sleeper").expect("the actor runs").kill()?;
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
        actor: impl RegisteredActor,
        type_name: &'static str,
    ) -> Result<(), RegisterError> {
        let name: Arc<str> = name.into();
        let actor: Arc<dyn RegisteredActor> = Arc::new(actor);
        let number = self.names.next.fetch_add(1, Ordering::Relaxed);
        let listener = {
            let (names, name) = (Arc::downgrade(&self.names), Arc::clone(&name));
            DownListener::Callback(Box::new(move |_| {
                if let Some(names) = Weak::upgrade(&names) {
                    names.remove_entry(&name, number);
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
        let added = control.add_listener(listener);
        let (before, refused) = match added {
            Ok(index) => {
                let entry = Entry {
                    number,
                    actor,
                    type_name,
                    control,
                    index,
                };
                (shard.insert(name, entry), None)
            }
            Err(listener) => (None, Some((listener, control.id))),
        };
        drop(shard);
        drop(before);
        match refused {
            None => Ok(()),
            Some((_, id)) => Err(RegisterError::NotAlive(id)),
        }
    }

    /// The actor of this name. `None`: there is none, or it is about to end because no reference is
    /// left.
    ///
    /// # Errors
    /// The actor is not an `A`, or was registered by its [`Pid`].
    pub fn whereis<A: Actor>(&self, name: &str) -> Result<Option<ActorRef<A>>, WrongType> {
        let Some((actor, registered)) = self.look_up(name) else {
            return Ok(None);
        };
        let actor: Arc<dyn Any + Send + Sync> = actor;
        match actor.downcast::<WeakActorRef<A>>() {
            Ok(actor) => Ok(actor.upgrade()),
            Err(_) => Err(WrongType {
                name: name.to_owned(),
                registered,
                asked: type_name::<A>(),
            }),
        }
    }

    /// The running incarnation of the actor of this name. `None`: there is no such actor, or no
    /// incarnation runs.
    pub fn whereis_pid(&self, name: &str) -> Option<Pid> {
        self.look_up(name)?.0.pid()
    }

    fn look_up(&self, name: &str) -> Option<(Arc<dyn RegisteredActor>, &'static str)> {
        let shard = self.names.shard(name);
        let entry = shard.get(name)?;
        // Rule 4.
        entry
            .is_alive()
            .then(|| (Arc::clone(&entry.actor), entry.type_name))
    }

    /// Removes a name. `false`: it was not registered.
    pub fn unregister(&self, name: &str) -> bool {
        let removed = self.names.shard(name).remove_entry(name);
        let Some((_, entry)) = removed else {
            return false;
        };
        let is_alive = entry.is_alive();
        entry.release();
        is_alive
    }

    /// All names, sorted. Other threads may change names meanwhile.
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

impl Handle {
    /// Returns the registry of this runtime's actors.
    pub fn registry(&self) -> &Registry {
        let scheduler = &self.scheduler;
        scheduler
            .registry
            .get_or_init(|| Registry::new(scheduler.workers.len()))
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Registry").field(&self.names()).finish()
    }
}

fn with<R>(f: impl FnOnce(&Registry) -> R) -> R {
    let handle =
        Handle::current().expect("the caller is not an actor; in a thread, use Handle::registry");
    f(handle.registry())
}

/// [`Registry::register`] of the caller's runtime.
///
/// # Errors
/// As [`Registry::register`].
///
/// # Panics
/// If the caller is not an actor. In a thread, use [`Handle::registry`].
pub fn register<A: Actor>(name: &str, actor: &ActorRef<A>) -> Result<(), RegisterError> {
    with(|registry| registry.register(name, actor))
}

/// [`Registry::register_pid`] of the caller's runtime.
///
/// # Errors
/// As [`Registry::register_pid`].
///
/// # Panics
/// If the caller is not an actor. In a thread, use [`Handle::registry`].
pub fn register_pid(name: &str, pid: &Pid) -> Result<(), RegisterError> {
    with(|registry| registry.register_pid(name, pid))
}

/// [`Registry::whereis`] of the caller's runtime.
///
/// # Errors
/// As [`Registry::whereis`].
///
/// # Panics
/// If the caller is not an actor. In a thread, use [`Handle::registry`].
pub fn whereis<A: Actor>(name: &str) -> Result<Option<ActorRef<A>>, WrongType> {
    with(|registry| registry.whereis(name))
}

/// [`Registry::whereis_pid`] of the caller's runtime.
///
/// # Panics
/// If the caller is not an actor. In a thread, use [`Handle::registry`].
pub fn whereis_pid(name: &str) -> Option<Pid> {
    with(|registry| registry.whereis_pid(name))
}

/// [`Registry::unregister`] of the caller's runtime.
///
/// # Panics
/// If the caller is not an actor. In a thread, use [`Handle::registry`].
pub fn unregister(name: &str) -> bool {
    with(|registry| registry.unregister(name))
}

/// [`Registry::names`] of the caller's runtime.
///
/// # Panics
/// If the caller is not an actor. In a thread, use [`Handle::registry`].
pub fn names() -> Vec<String> {
    with(Registry::names)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Arc;

    use super::{register_pid, unregister, with};
    use crate::{Pid, run};

    #[test]
    fn unregister_removes_the_listener_from_the_actor() {
        run(|| {
            let pid = Pid::current().expect("the caller is an actor");
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
