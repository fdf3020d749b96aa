//! One worker, seen from other threads: where they put what they woke, and how they wake the worker itself.
//!
//! 1. `newest` points to the newest entry, or is null. A writer links its entry to the one that it saw and swings the pointer by CAS
//!    (Release). The worker swaps it for null (Acquire) and owns the whole chain, so there is no ABA.
//! 2. A writer pushes, passes a full fence, and wakes the worker if it says that it is asleep. The worker says so, passes a full fence,
//!    looks once more, and only then sleeps: in its parker, or in its poller, whose unparker is rung then (`io` has all the cases).
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
const NOTIFIED: u32 = 3;

pub(crate) struct RemoteQueue {
    newest: AtomicPtr<Header>,
    sleep: AtomicU32,
    pub(crate) parker: Parker,
    /// Ends the worker's wait in its poller.
    unparker: Mutex<Option<Waker>>,
}

static FREE: Mutex<Vec<&'static RemoteQueue>> = Mutex::new(Vec::new());

fn free() -> Locked<'static, Vec<&'static RemoteQueue>> {
    lock(&FREE)
}

impl RemoteQueue {
    /// One that is nobody's.
    pub(crate) fn obtain() -> &'static Self {
        // A model does not go on with what another one left.
        let used = if cfg!(loom) { None } else { free().pop() };
        used.unwrap_or_else(Self::allocate)
    }

    pub(crate) fn allocate() -> &'static Self {
        Box::leak(Box::new(Self {
            newest: AtomicPtr::new(std::ptr::null_mut()),
            sleep: AtomicU32::new(AWAKE),
            parker: Parker::new(),
            unparker: Mutex::new(None),
        }))
    }

    /// Rule 3.
    pub(crate) fn recycle(&'static self) {
        for ended in self.drain() {
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
            task.header()
                .next_remote
                .set(unsafe { Task::from_raw(newest) });
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
        self.fence_and_unpark();
    }

    /// Rule 2, its second half.
    pub(crate) fn fence_and_unpark(&self) {
        fence(Ordering::SeqCst);
        self.unpark();
    }

    /// Ends the worker's sleep. A full fence lies between what it is to see and this; so where it is awake it looks before it sleeps.
    pub(crate) fn unpark(&self) {
        match self.sleep.load(Ordering::Relaxed) {
            AWAKE => {}
            PARKED => self.parker.unpark(),
            _ => self.wake_poller(),
        }
    }

    #[cold]
    fn wake_poller(&self) {
        let first =
            self.sleep
                .compare_exchange(POLLING, NOTIFIED, Ordering::Relaxed, Ordering::Relaxed);
        if first.is_err() {
            return;
        }
        let unparker = self.unparker().clone();
        if let Some(unparker) = unparker {
            unparker.wake();
        }
    }

    fn unparker(&self) -> Locked<'_, Option<Waker>> {
        lock(&self.unparker)
    }

    /// The worker: what wakes it from its poller, from now on.
    pub(crate) fn set_unparker(&self, unparker: Option<Waker>) {
        *self.unparker() = unparker;
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.newest.load(Ordering::Relaxed).is_null()
    }

    /// The worker: what is there, oldest first, with a reference each.
    pub(crate) fn drain(&self) -> Drain {
        let newest = self.newest.swap(std::ptr::null_mut(), Ordering::Acquire);
        // SAFETY: rule 1: the chain is ours, and each entry in it holds a reference.
        let mut rest = unsafe { Task::from_raw(newest) };
        let mut oldest = None;
        while let Some(task) = rest {
            rest = task.header().next_remote.replace(oldest);
            oldest = Some(task);
        }
        Drain(oldest)
    }

    /// The worker, rule 2. Look again before sleeping.
    pub(crate) fn prepare_park(&self, in_poller: bool) {
        let sleep = if in_poller { POLLING } else { PARKED };
        self.sleep.store(sleep, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    pub(crate) fn finish_park(&self) {
        // A store would do: what one who rings exchanged comes before it. But loom orders two threads' stores by exchanges only.
        self.sleep.swap(AWAKE, Ordering::Relaxed);
    }
}

/// What [`RemoteQueue::drain`] took.
pub(crate) struct Drain(Option<Task>);

impl Iterator for Drain {
    type Item = Task;

    fn next(&mut self) -> Option<Task> {
        let task = self.0?;
        self.0 = task.header().next_remote.take();
        Some(task)
    }
}
