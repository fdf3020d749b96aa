//! A set of actors that one owner joins in the order in which they end.
//!
//! 1. The owner has the handle of each member, at the index in
//!    [`Header::place`](crate::task::Header). So a task exists as long as it is a member, ended or
//!    not.
//! 2. A task that ends pushes itself onto a stack of finished tasks, linked by
//!    [`Header::next`](crate::task::Header): it is in no other queue any more. The owner takes the
//!    whole stack at once and reverses it.
//! 3. Instead of the stack's top, the word may hold `EMPTY`, `OWNER_WAITING` or `CLOSED`. The owner closes
//!    the stack before it gives up the handles, and reads it no more.
//! 4. The `sleeper` belongs to the owner, except while the word is `OWNER_WAITING`: then it belongs
//!    to the task that replaces that word. An owner that waits by its bare address stays alive
//!    until [`TaskState::is_released`](crate::task::state::TaskState::is_released) is true for each
//!    task that it takes.
//! 5. The stack's memory exists until the owner has closed it and each member was pushed. There are no
//!    references to count meanwhile: the owner knows how many members it has not taken from the stack,
//!    and adds their number to `unpushed` after it has closed the stack. A member that finds the stack
//!    closed subtracts 1 instead of being pushed. The thread that makes `unpushed` 0 frees the stack. Before
//!    the owner adds, it waits until no sleeper is being taken.

use std::fmt;
use std::future::{Future, poll_fn};
use std::ptr;
use std::task::{Context, Poll};
use std::time::Duration;

use slab::Slab;

use crate::block_on::{Elapsed, block_on, block_on_timeout};
use crate::exit::Pid;
use crate::id::ActorId;
use crate::join::JoinHandle;
use crate::reason::JoinError;
use crate::sections;
use crate::task::{FinishedStack, FinishedTasks, JoinWaker, Joiner, OnShortage, Task};
use crate::wake_reason::WakeReason;
use crate::worker;

/// An actor of a [`JoinSet`] that has ended.
#[derive(Debug)]
pub struct Joined<T> {
    /// The id of the actor.
    pub id: ActorId,
    /// Its value, or the reason why it has none.
    pub result: Result<T, JoinError>,
}

/// A set of actors that are joined in the order in which they end. Like `tokio::task::JoinSet`:
/// dropping the set [kills](Pid::kill) the members that have not ended.
///
/// With it, an actor can supervise others: it observes each end, including panics and kills, at
/// about the cost of a join. For a tree with restarts, use a
/// [`Supervisor`](crate::supervisor::Supervisor).
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
    /// Before `members`, because it is dropped first: rule 3.
    finished: FinishedTasks,
    /// Finished tasks that were taken from the stack, oldest first, linked by
    /// [`Header::next`](crate::task::Header).
    next_finished: Option<Task>,
    members: Slab<JoinHandle<T>>,
}

impl<T> JoinSet<T> {
    /// An empty set.
    pub fn new() -> Self {
        Self {
            finished: FinishedTasks::new(),
            next_finished: None,
            members: Slab::new(),
        }
    }

    /// Spawns an actor in the set.
    ///
    /// # Panics
    /// If the caller is no actor. On a thread, use [`insert`](Self::insert).
    pub fn spawn(&mut self, job: impl FnOnce() -> T + Send + 'static) -> ActorId
    where
        T: Send + 'static,
    {
        let worker = worker::current().expect("spawn is for actors; use insert on a thread");
        let task = worker.new_task(None, OnShortage::End, job);
        task.join_first(Joiner::Set(self.finished.for_new_member()));
        self.add_member(task, JoinHandle::new(task));
        worker.start(task);
        task.header().id
    }

    /// Adds an actor that was spawned elsewhere, for example with a name or on another runtime.
    ///
    /// # Panics
    /// If the set has 2^32 members.
    pub fn insert(&mut self, mut handle: JoinHandle<T>) -> ActorId {
        let task = handle.task();
        let stack = self.finished.for_new_member();
        // SAFETY: the slot belongs to the handle, which is ours.
        let is_registered =
            handle.reclaim_slot() && unsafe { task.join(Joiner::Set(stack), ptr::null()) };
        self.add_member(task, handle);
        if !is_registered {
            // SAFETY: it has ended, and only this call pushes it.
            unsafe { FinishedStack::push(stack, task) };
        }
        task.header().id
    }

    fn add_member(&mut self, task: Task, handle: JoinHandle<T>) {
        let place = u32::try_from(self.members.insert(handle));
        let place = place.expect("a set has at most 2^32 actors");
        task.header().join_set_index.set(place);
    }

    /// The number of members: running ones, and ended ones that have not been joined.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether the set has no members.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The addresses of all members, for signals and monitors, in no particular order.
    pub fn pids(&self) -> impl Iterator<Item = Pid> {
        self.members.iter().map(|(_, member)| member.pid())
    }

    /// Waits until a member ends. A calling actor parks; a thread blocks. `None`: the set is empty.
    ///
    /// # Panics
    /// If it has to wait in a [`NoPark`](crate::preempt::NoPark) section.
    pub fn join_next(&mut self) -> Option<Joined<T>> {
        loop {
            if let Some(task) = self.take_finished() {
                return Some(self.remove(task));
            }
            if self.is_empty() {
                return None;
            }
            // It must panic before the owner registers itself: rule 4.
            sections::may_park();
            let actor = worker::current().and_then(|worker| Some((worker, worker.running()?)));
            if !actor.is_some_and(|(worker, me)| self.wait_as_actor(me, || worker.park(None))) {
                return block_on(self.join_next_async());
            }
        }
    }

    /// Like [`join_next`](Self::join_next), for at most `timeout`.
    ///
    /// # Errors
    /// No member ended in time, or the caller cannot wait.
    ///
    /// # Panics
    /// As [`join_next`](Self::join_next).
    pub fn join_next_timeout(&mut self, timeout: Duration) -> Result<Option<Joined<T>>, Elapsed> {
        block_on_timeout(timeout, self.join_next_async())
    }

    /// Like [`join_next`](Self::join_next), as a future, for other executors and for
    /// [`select!`](crate::select). It is cancel-safe: dropping it loses no member.
    pub fn join_next_async(&mut self) -> impl Future<Output = Option<Joined<T>>> {
        poll_fn(|context| self.poll_join_next(context))
    }

    /// Returns a member that has ended. `None`: no member has ended, or the set is empty.
    pub fn try_join_next(&mut self) -> Option<Joined<T>> {
        self.take_finished().map(|task| self.remove(task))
    }

    /// `me` is the calling actor, and `park` parks it. Waits until a member has ended. `false`: it
    /// cannot wait.
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

    /// Precondition: the task is a member and has ended.
    #[inline(always)]
    fn remove(&mut self, task: Task) -> Joined<T> {
        let header = task.header();
        let place = header.join_set_index.get();
        let mut handle = self.members.remove(place as usize);
        // Rule 4.
        header.state.wait_for_release();
        Joined {
            id: header.id,
            result: handle.take(),
        }
    }

    /// The poll function of [`join_next_async`](Self::join_next_async).
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

    /// [Kills](Pid::kill) all running members. They remain members until they are joined.
    pub fn kill_all(&self) {
        for (_, member) in &self.members {
            if !member.is_finished() {
                // It may have ended meanwhile.
                let _ = member.pid().kill();
            }
        }
    }

    /// Detaches all members and empties the set.
    pub fn detach_all(&mut self) {
        // First, by rule 3.
        self.finished = FinishedTasks::new();
        self.next_finished = None;
        self.members.clear();
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
