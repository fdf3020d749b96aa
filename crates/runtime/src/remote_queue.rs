//! A worker's remote queue: where other threads put the tasks that they woke, and how they wake the
//! worker itself.
//!
//! 1. `newest` points to the newest entry, or is null. A writer links its entry to the entry that
//!    it saw and replaces the pointer by CAS (Release). The worker swaps it for null (Acquire) and
//!    then owns the whole list, so there is no ABA problem.
//! 2. A writer pushes, executes a full fence, and wakes the worker if `sleep` shows that the worker
//!    is asleep. The worker stores into `sleep` that it is asleep, executes a full fence, checks
//!    the queue once more, and only then sleeps. It sleeps in its parker, or in its poller; in the
//!    poller, it is woken through the unparker (`io` lists all cases).
//! 3. A remote queue is never freed. It is given to the next worker, because a waker may outlive
//!    its runtime. A task that such a waker pushes has ended; the next worker that drains the queue
//!    drops it.

use std::sync::Mutex;
use std::task::Waker;

use thalweg_queue::Parker;
use thalweg_queue::no_preempt::{LockGuard, lock};

use crate::shim::{AtomicPtr, AtomicU32, Ordering, fence};
use crate::task::{Header, Task};

const AWAKE: u32 = 0;
const PARKED: u32 = 1;
/// The worker sleeps in the poller.
const POLLING: u32 = 2;
/// The worker sleeps in the poller, and a thread is waking it.
const NOTIFIED: u32 = 3;

pub(crate) struct RemoteQueue {
    newest: AtomicPtr<Header>,
    sleep: AtomicU32,
    pub(crate) parker: Parker,
    /// Ends the worker's wait in its poller.
    unparker: Mutex<Option<Waker>>,
}

static FREE: Mutex<Vec<&'static RemoteQueue>> = Mutex::new(Vec::new());

fn free() -> LockGuard<'static, Vec<&'static RemoteQueue>> {
    lock(&FREE)
}

impl RemoteQueue {
    /// Returns a queue that no worker uses.
    pub(crate) fn obtain() -> &'static Self {
        // A model must not continue with the state of another one.
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

    /// Rules 1 and 2. The caller passes one of the task's references.
    pub(crate) fn push(&self, task: Task) {
        let mut newest = self.newest.load(Ordering::Relaxed);
        loop {
            // SAFETY: the pointer came from `into_raw` below. The CAS checks whether it is still in
            // the list.
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

    /// The writer's part of rule 2.
    pub(crate) fn fence_and_unpark(&self) {
        fence(Ordering::SeqCst);
        self.unpark();
    }

    /// Ends the worker's sleep. The caller has executed a full fence after it published its work,
    /// so a worker that is awake sees the work before it sleeps.
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

    fn unparker(&self) -> LockGuard<'_, Option<Waker>> {
        lock(&self.unparker)
    }

    /// Sets the waker that ends the worker's wait in its poller. Called by the worker.
    pub(crate) fn set_unparker(&self, unparker: Option<Waker>) {
        *self.unparker() = unparker;
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.newest.load(Ordering::Relaxed).is_null()
    }

    /// Takes all entries, oldest first, with one reference each. Called by the worker.
    pub(crate) fn drain(&self) -> Drain {
        let newest = self.newest.swap(std::ptr::null_mut(), Ordering::Acquire);
        // SAFETY: rule 1. The list belongs to the caller, and each entry in it has a reference.
        let mut rest = unsafe { Task::from_raw(newest) };
        let mut oldest = None;
        while let Some(task) = rest {
            rest = task.header().next_remote.replace(oldest);
            oldest = Some(task);
        }
        Drain(oldest)
    }

    /// Rule 2. Called by the worker, which checks the queue once more before it sleeps.
    pub(crate) fn prepare_park(&self, in_poller: bool) {
        let sleep = if in_poller { POLLING } else { PARKED };
        self.sleep.store(sleep, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    pub(crate) fn finish_park(&self) {
        // A store would suffice, because the exchange of a waking thread comes before it. But loom
        // orders the stores of two threads only through exchanges.
        self.sleep.swap(AWAKE, Ordering::Relaxed);
    }
}

/// The iterator that [`RemoteQueue::drain`] returns.
pub(crate) struct Drain(Option<Task>);

impl Iterator for Drain {
    type Item = Task;

    fn next(&mut self) -> Option<Task> {
        let task = self.0?;
        self.0 = task.header().next_remote.take();
        Some(task)
    }
}
