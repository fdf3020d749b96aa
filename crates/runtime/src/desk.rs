//! One worker, seen from other threads: where they put what they woke, and how they wake the worker itself.
//!
//! 1. `newest` points to the newest entry, or is null. A writer links its entry to the one that it saw and swings the pointer by CAS
//!    (Release). The worker swaps it for null (Acquire) and owns the whole chain, so there is no ABA.
//! 2. A writer pushes, passes a full fence, and wakes the worker if it says that it is asleep. The worker says so, passes a full fence,
//!    looks once more, and only then sleeps: in its parker, or in its poller, whose bell is rung then (`io` has all the cases).
//! 3. Desks are never freed, but given to the next worker: a waker may outlive its runtime. What it puts in then has ended, and is
//!    let go by whoever looks next.

use std::sync::Mutex;
use std::task::Waker;

use thalweg_queue::Parker;
use thalweg_queue::quiet::{Locked, lock};

use crate::shim::{AtomicPtr, AtomicU32, Ordering, fence};
use crate::task::{Header, Task};

const AWAKE: u32 = 0;
const PARKED: u32 = 1;
/// Asleep in the poller.
const POLLING: u32 = 2;
/// There too, and somebody rings.
const RUNG: u32 = 3;

pub(crate) struct Desk {
    newest: AtomicPtr<Header>,
    sleep: AtomicU32,
    pub(crate) parker: Parker,
    /// Ends the worker's wait in its poller.
    bell: Mutex<Option<Waker>>,
}

static FREE: Mutex<Vec<&'static Desk>> = Mutex::new(Vec::new());

fn free() -> Locked<'static, Vec<&'static Desk>> {
    lock(&FREE)
}

impl Desk {
    /// One that is nobody's.
    pub(crate) fn take() -> &'static Self {
        // A model does not go on with what another one left.
        let used = if cfg!(loom) { None } else { free().pop() };
        used.unwrap_or_else(Self::make)
    }

    pub(crate) fn make() -> &'static Self {
        Box::leak(Box::new(Self {
            newest: AtomicPtr::new(std::ptr::null_mut()),
            sleep: AtomicU32::new(AWAKE),
            parker: Parker::new(),
            bell: Mutex::new(None),
        }))
    }

    /// Rule 3.
    pub(crate) fn give_back(&'static self) {
        for ended in self.take_all() {
            ended.drop_reference();
        }
        self.sleep.store(AWAKE, Ordering::Relaxed);
        free().push(self);
    }

    /// Rules 1 and 2. With a reference of the job's.
    pub(crate) fn push(&self, task: Task) {
        let mut newest = self.newest.load(Ordering::Relaxed);
        loop {
            // SAFETY: the pointer came from `into_raw` below, and whether it still is in the chain the CAS decides.
            task.header().behind.set(unsafe { Task::from_raw(newest) });
            match self.newest.compare_exchange_weak(
                newest,
                task.into_raw(),
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => break,
                Err(now) => newest = now,
            }
        }
        self.rouse();
    }

    /// Rule 2, its second half.
    pub(crate) fn rouse(&self) {
        fence(Ordering::SeqCst);
        self.unpark();
    }

    /// Ends the worker's sleep. A full fence lies between what it is to see and this; so where it is awake it looks before it sleeps.
    pub(crate) fn unpark(&self) {
        match self.sleep.load(Ordering::Relaxed) {
            AWAKE => {}
            PARKED => self.parker.unpark(),
            _ => self.ring(),
        }
    }

    #[cold]
    fn ring(&self) {
        let first =
            self.sleep
                .compare_exchange(POLLING, RUNG, Ordering::Relaxed, Ordering::Relaxed);
        if first.is_err() {
            return;
        }
        let bell = self.bell().clone();
        if let Some(bell) = bell {
            bell.wake();
        }
    }

    fn bell(&self) -> Locked<'_, Option<Waker>> {
        lock(&self.bell)
    }

    /// The worker: what wakes it from its poller, from now on.
    pub(crate) fn hang(&self, bell: Option<Waker>) {
        *self.bell() = bell;
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.newest.load(Ordering::Relaxed).is_null()
    }

    /// The worker: what is there, oldest first, with a reference each.
    pub(crate) fn take_all(&self) -> Taken {
        let newest = self.newest.swap(std::ptr::null_mut(), Ordering::Acquire);
        // SAFETY: rule 1: the chain is ours, and each entry in it holds a reference.
        let mut rest = unsafe { Task::from_raw(newest) };
        let mut oldest = None;
        while let Some(task) = rest {
            rest = task.header().behind.replace(oldest);
            oldest = Some(task);
        }
        Taken(oldest)
    }

    /// The worker, rule 2. Look again before sleeping.
    pub(crate) fn lie_down(&self, in_poller: bool) {
        let sleep = if in_poller { POLLING } else { PARKED };
        self.sleep.store(sleep, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    pub(crate) fn get_up(&self) {
        // A store would do: what one who rings exchanged comes before it. But loom orders two threads' stores by exchanges only.
        self.sleep.swap(AWAKE, Ordering::Relaxed);
    }
}

/// What [`Desk::take_all`] took.
pub(crate) struct Taken(Option<Task>);

impl Iterator for Taken {
    type Item = Task;

    fn next(&mut self) -> Option<Task> {
        let task = self.0?;
        self.0 = task.header().behind.take();
        Some(task)
    }
}
