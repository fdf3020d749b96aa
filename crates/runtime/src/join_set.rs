//! Actors of one owner, who hears of each end.
//!
//! 1. The owner has the handle of each member, at the place that its job says ([`Header::place`](crate::task::Header)). So a job is there for as long as it
//!    is a member, ended or not.
//! 2. A job that ends puts itself on the stack of those that have, which goes by [`Header::next`](crate::task::Header): it is in no queue any more. The owner
//!    takes the whole stack at once and turns it round.
//! 3. Where the stack would be there may be a word instead: that nobody has ended, or that the owner waits for it. A stack that its owner has left
//!    is not looked at any more.
//! 4. The sleeper's place is the owner's, but while the word says that it waits: then it is whose who replaces that. An actor that waits by its bare
//!    address is there until [`TaskState::is_released`](crate::task::state::TaskState::is_released) says of each that it takes that it is done with it.

use std::fmt;
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::block_on::{Elapsed, block_on, block_on_timeout};
use crate::exit::Pid;
use crate::id::ActorId;
use crate::join::{JoinError, JoinHandle};
use crate::preempt;
use crate::runtime::spawn;
use crate::shim::{AtomicPtr, Ordering, UnsafeCell, spin_loop};
use crate::task::{Header, JoinWaker, Joiner, Task};
use crate::wait::WakeReason;
use crate::worker;

/// An actor of a [`JoinSet`] that has ended.
#[derive(Debug)]
pub struct Joined<T> {
    /// Which.
    pub id: ActorId,
    /// Its value, or why there is none.
    pub result: Result<T, JoinError>,
}

/// Actors that are joined as they end, whichever is first. As `tokio::task::JoinSet`: those that have not ended when it is dropped are
/// [killed](Pid::kill).
///
/// It is how an actor supervises others by itself: each end comes, a panic and a kill too, and costs about what a join does. A tree that
/// restarts is a [`Supervisor`](crate::supervisor::Supervisor).
///
/// ```
/// use thalweg_runtime::{JoinError, JoinSet, run};
///
/// run(|| {
///     let mut set = JoinSet::new();
///     for n in 1..=4 {
///         set.spawn(move || if n == 4 { panic!("not that one") } else { n * n });
///     }
///     let (mut sum, mut failed) = (0, 0);
///     while let Some(ended) = set.join_next() {
///         match ended.result {
///             Ok(square) => sum += square,
///             Err(JoinError::Panic(_)) => failed += 1,
///             Err(error) => panic!("{error}"),
///         }
///     }
///     assert_eq!((sum, failed), (14, 1));
/// });
/// ```
pub struct JoinSet<T> {
    members: Vec<JoinHandle<T>>,
    /// Those that were taken from the stack, in the order in which they ended, by [`Header::next`](crate::task::Header).
    next_finished: Option<Task>,
    finished: Arc<FinishedStack>,
}

impl<T> JoinSet<T> {
    /// With nobody in it.
    pub fn new() -> Self {
        Self {
            members: Vec::new(),
            next_finished: None,
            finished: Arc::default(),
        }
    }

    /// A new actor in the set.
    ///
    /// # Panics
    /// If the caller is no actor: a thread has [`insert`](Self::insert).
    pub fn spawn(&mut self, job: impl FnOnce() -> T + Send + 'static) -> ActorId
    where
        T: Send + 'static,
    {
        self.insert(spawn(job))
    }

    /// An actor that was spawned elsewhere: with a name, onto another runtime.
    ///
    /// # Panics
    /// If there are 2^32 already.
    pub fn insert(&mut self, mut handle: JoinHandle<T>) -> ActorId {
        let place = u32::try_from(self.members.len()).expect("a set has at most 2^32 actors");
        let task = handle.task();
        task.header().join_set_index.set(place);
        let joiner = Joiner::Set(Arc::clone(&self.finished));
        // SAFETY: the place is the handle's, which is ours.
        let is_registered = handle.reclaim_slot() && unsafe { task.join(joiner) };
        self.members.push(handle);
        if !is_registered {
            // SAFETY: it has ended, and nobody else does it.
            unsafe { self.finished.push(task) };
        }
        task.header().id
    }

    /// How many are in it: those that live, and those that have ended and were not joined.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether nobody is.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The names of all that are in it, for signals and monitors. In no order.
    pub fn pids(&self) -> impl Iterator<Item = Pid> {
        self.members.iter().map(JoinHandle::pid)
    }

    /// Waits for the next end: an actor leaves its worker to others meanwhile, a thread sleeps. `None`: nobody is in it.
    ///
    /// # Panics
    /// In a [`NoPark`](crate::preempt::NoPark) section, if it has to wait.
    pub fn join_next(&mut self) -> Option<Joined<T>> {
        loop {
            if let Some(task) = self.take_finished() {
                return Some(self.remove(task));
            }
            if self.is_empty() {
                return None;
            }
            // A panic of it comes before the owner waits: rule 4.
            preempt::may_park();
            let actor = worker::current().and_then(|worker| Some((worker, worker.running()?)));
            if !actor.is_some_and(|(worker, me)| self.wait_as_actor(me, || worker.park(None))) {
                return block_on(self.join_next_async());
            }
        }
    }

    /// As [`join_next`](Self::join_next), for at most `timeout`.
    ///
    /// # Errors
    /// Nobody ended in time, or the caller cannot wait.
    ///
    /// # Panics
    /// As [`join_next`](Self::join_next).
    pub fn join_next_timeout(&mut self, timeout: Duration) -> Result<Option<Joined<T>>, Elapsed> {
        block_on_timeout(timeout, self.join_next_async())
    }

    /// As [`join_next`](Self::join_next), for a task of another executor or in [`select!`](crate::select). Dropped, it loses nothing.
    pub fn join_next_async(&mut self) -> impl Future<Output = Option<Joined<T>>> {
        poll_fn(|context| self.poll_join_next(context))
    }

    /// One that has ended; `None`: none has, or nobody is in it.
    pub fn try_join_next(&mut self) -> Option<Joined<T>> {
        self.take_finished().map(|task| self.remove(task))
    }

    /// `me` is the caller, and `park` puts it aside: until somebody has ended. `false`: it cannot wait.
    pub(crate) fn wait_as_actor(&self, me: Task, park: impl Fn() -> WakeReason) -> bool {
        self.finished.park(me, park)
    }

    fn take_finished(&mut self) -> Option<Task> {
        let task = match self.next_finished.take() {
            Some(task) => task,
            None => self.finished.take()?,
        };
        self.next_finished = task.header().next.take();
        Some(task)
    }

    /// One that has ended, and is a member.
    #[inline(always)]
    fn remove(&mut self, task: Task) -> Joined<T> {
        let header = task.header();
        let place = header.join_set_index.get();
        let mut handle = self.members.swap_remove(place as usize);
        if let Some(moved) = self.members.get(place as usize) {
            moved.task().header().join_set_index.set(place);
        }
        // Rule 4: a few instructions of another worker at most.
        while !header.state.is_released() {
            spin_loop();
        }
        Joined {
            id: header.id,
            result: handle.take(),
        }
    }

    /// As a future is polled: `None` once nobody is in it.
    pub fn poll_join_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Joined<T>>> {
        loop {
            let ended = self.try_join_next();
            if ended.is_some() || self.is_empty() {
                return Poll::Ready(ended);
            }
            if self
                .finished
                .register(JoinWaker::Waker(context.waker().clone()))
            {
                return Poll::Pending;
            }
        }
    }

    /// Sends all that live a [kill](Pid::kill). They are still to be joined.
    pub fn kill_all(&self) {
        for member in &self.members {
            if !member.is_finished() {
                // It may have ended meanwhile.
                let _ = member.pid().kill();
            }
        }
    }

    /// Lets all go on by themselves, and nobody is in it any more.
    pub fn detach_all(&mut self) {
        std::mem::take(self).members.clear();
    }
}

impl<T> Drop for JoinSet<T> {
    fn drop(&mut self) {
        self.kill_all();
    }
}

impl<T> Default for JoinSet<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Send + 'static> Extend<JoinHandle<T>> for JoinSet<T> {
    fn extend<I: IntoIterator<Item = JoinHandle<T>>>(&mut self, handles: I) {
        for handle in handles {
            self.insert(handle);
        }
    }
}

impl<T: Send + 'static> FromIterator<JoinHandle<T>> for JoinSet<T> {
    fn from_iter<I: IntoIterator<Item = JoinHandle<T>>>(handles: I) -> Self {
        let mut set = Self::new();
        set.extend(handles);
        set
    }
}

impl<T> fmt::Debug for JoinSet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinSet").field("len", &self.len()).finish()
    }
}

/// Rules 2 to 4.
pub(crate) struct FinishedStack {
    top: AtomicPtr<Header>,
    sleeper: UnsafeCell<Option<JoinWaker>>,
}

// SAFETY: rule 4 says who touches the sleeper.
unsafe impl Send for FinishedStack {}
// SAFETY: as above.
unsafe impl Sync for FinishedStack {}

const EMPTY: *mut Header = std::ptr::null_mut();
const OWNER_WAITING: *mut Header = std::ptr::without_provenance_mut(1);

impl Default for FinishedStack {
    fn default() -> Self {
        Self {
            top: AtomicPtr::new(EMPTY),
            sleeper: UnsafeCell::new(None),
        }
    }
}

impl FinishedStack {
    /// # Safety
    /// The job has ended, is there until this is over, and is put here once.
    pub(crate) unsafe fn push(&self, task: Task) {
        let mut top = self.top.load(Ordering::Relaxed);
        loop {
            let before = match top {
                OWNER_WAITING => None,
                // SAFETY: rule 3: it came from `into_raw`. While the owner is there rule 1 keeps it, and after that nobody follows it.
                top => unsafe { Task::from_raw(top) },
            };
            task.header().next.set(before);
            match self.top.compare_exchange_weak(
                top,
                task.into_raw(),
                Ordering::AcqRel,
                Ordering::Relaxed,
            ) {
                Ok(_) => break,
                Err(now) => top = now,
            }
        }
        if top == OWNER_WAITING {
            // SAFETY: rule 4.
            let sleeper = self.sleeper.with_mut(|place| unsafe { (*place).take() });
            if let Some(sleeper) = sleeper {
                sleeper.wake();
            }
        }
    }

    /// The owner's: all of them, the first that ended first.
    fn take(&self) -> Option<Task> {
        let top = self.top.load(Ordering::Relaxed);
        if top == EMPTY || top == OWNER_WAITING {
            return None;
        }
        let top = self.top.swap(EMPTY, Ordering::Acquire);
        // SAFETY: rule 3; only the owner says that it waits.
        let mut next = unsafe { Task::from_raw(top) };
        let mut first = None;
        while let Some(task) = next {
            next = task.header().next.replace(first);
            first = Some(task);
        }
        first
    }

    /// The owner's: whom the next one wakes. `false`: somebody has ended.
    fn register(&self, sleeper: JoinWaker) -> bool {
        // Of an earlier wait.
        if !self.unregister() {
            return false;
        }
        // SAFETY: rule 4: the word does not say that it waits, and nobody else writes that.
        self.sleeper
            .with_mut(|place| unsafe { *place = Some(sleeper) });
        self.replace_top(EMPTY, OWNER_WAITING)
    }

    /// The owner's, who waits no more. `false`: somebody has ended.
    fn unregister(&self) -> bool {
        self.replace_top(OWNER_WAITING, EMPTY) || self.top.load(Ordering::Relaxed) == EMPTY
    }

    fn replace_top(&self, from: *mut Header, to: *mut Header) -> bool {
        self.top
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }

    /// The owner's: see [`JoinSet::wait_as_actor`].
    fn park(&self, me: Task, park: impl Fn() -> WakeReason) -> bool {
        if !self.register(JoinWaker::Actor(me)) {
            return true;
        }
        loop {
            let woke = park();
            if self.top.load(Ordering::Relaxed) != OWNER_WAITING {
                return true;
            }
            if woke == WakeReason::Stopping && self.unregister() {
                return false;
            }
        }
    }
}
