//! Where a new or woken task waits until its worker runs it.

use thalweg_queue::clock;

use super::{MAX_LIFO_IN_A_ROW, Worker, trace};
use crate::id::ActorId;
use crate::scheduler::cancel;
use crate::stack::overflow::Name;
use crate::task::{OnShortage, Phase, Task};

/// Owners that are woken at shorter intervals have members that end in quick succession. A member that takes
/// longer costs more than a turn of its owner.
const QUICK_NS: u64 = 20_000;

impl Worker {
    /// Queues a task that does not run next.
    pub(super) fn enqueue(&self, task: Task) {
        if task.header().phase.get() == Phase::Unstarted && !self.is_alone() {
            self.push_stealable(task);
        } else {
            self.ready.push(task);
        }
    }

    /// `scheduler`'s rule 1.
    // Not inlined, so that a spawn into the LIFO slot stays short.
    #[inline(never)]
    pub(super) fn push_stealable(&self, task: Task) {
        match self.shared().ring.push(task.into_raw()) {
            Ok(()) => self.scheduler.announce(),
            Err(_) => self.make_space(task),
        }
    }

    /// Moves half of the full ring to the injector, and this task. A worker that takes from the injector
    /// competes for its lock, which a worker that spawns much would otherwise need for each task.
    #[cold]
    fn make_space(&self, task: Task) {
        let tasks = self.shared().take_half().chain([task]);
        self.scheduler.inject_all(tasks);
    }

    /// Spawns a task from the actor that runs here. The caller makes the task's join handle.
    #[inline(always)]
    pub(crate) fn spawn<T>(
        &self,
        name: Option<Name>,
        on_shortage: OnShortage,
        f: impl FnOnce() -> T,
    ) -> Task {
        let task = self.new_task(name, on_shortage, f);
        self.start(task);
        task
    }

    /// The first part of [`spawn`](Self::spawn): the task is in no queue yet.
    #[inline(always)]
    pub(crate) fn new_task<T>(
        &self,
        name: Option<Name>,
        on_shortage: OnShortage,
        f: impl FnOnce() -> T,
    ) -> Task {
        let task = Task::new(self.ids.next(), name, f);
        if on_shortage != OnShortage::End {
            task.header().on_shortage.set(on_shortage);
        }
        task.header().parent.set(self.current_actor());
        if trace::is_used() {
            trace::attach_child(task);
        }
        self.status.counts.started_stacks.add(1);
        task
    }

    /// The second part of [`spawn`](Self::spawn).
    #[inline(always)]
    pub(crate) fn start(&self, task: Task) {
        if self.scheduler.is_stopping() {
            cancel(task);
        } else if self.is_alone() {
            self.ready.push(task);
        } else if self.lifo_slot.get().is_none() {
            self.lifo_slot.set(Some(task));
        } else {
            self.push_stealable(task);
        }
    }

    /// Whether the task that is being dropped is cancelled because of a stack shortage.
    pub(crate) fn is_refusing(&self) -> bool {
        self.refusing.get()
    }

    /// Returns an ID for a task that is created here.
    pub(crate) fn next_id(&self) -> ActorId {
        self.ids.next()
    }

    /// Queues an existing task. It runs next if the LIFO slot is empty.
    pub(crate) fn submit(&self, task: Task) {
        if self.scheduler.is_stopping() {
            cancel(task);
        } else if self.lifo_slot.get().is_none() {
            self.lifo_slot.set(Some(task));
        } else {
            self.enqueue(task);
        }
    }

    /// Queues the next turn of an actor. The caller is the turn before, which has used up its budget.
    ///
    /// If that turn was short and one other task is ready, which may be the one that sends the messages,
    /// the next turn stays here. On another worker, each message would cost more than it takes to
    /// handle it, because both workers write to the mailbox.
    pub(crate) fn submit_again(&self, task: Task) {
        if self.scheduler.is_stopping() {
            return cancel(task);
        }
        let goes_on = self.lifo_slot.get().is_none();
        if goes_on && self.ready.is_empty() {
            self.lifo_slot.set(Some(task));
        } else if !self.was_short() {
            self.enqueue(task);
        } else if goes_on && self.lifo_in_a_row.get() < MAX_LIFO_IN_A_ROW {
            self.lifo_slot.set(Some(task));
        } else if self.has_at_most_one_ready() {
            self.ready.push(task);
        } else {
            self.enqueue(task);
        }
    }

    /// Whether the running task has had one slice, and took so little time in it that moving its next
    /// turn to another worker would not be worth a wake-up.
    fn was_short(&self) -> bool {
        let slices = self.running.get().map(|task| task.header().slices.get());
        slices == Some(1) && self.slice.is_short()
    }

    /// Whether at most one task is ready here, besides the running one.
    fn has_at_most_one_ready(&self) -> bool {
        let in_slot = usize::from(self.lifo_slot.get().is_some());
        in_slot + self.ready.iter().take(2).count() <= 1
    }

    /// Queues a new task that an idle worker may start at once.
    pub(crate) fn submit_stealable(&self, task: Task) {
        if self.scheduler.is_stopping() {
            cancel(task);
        } else {
            self.enqueue(task);
        }
    }

    /// Spawns a task that is never stolen. The caller makes its join handle.
    pub(crate) fn spawn_here<T>(&self, f: impl FnOnce() -> T) -> Task {
        let task = Task::new(self.ids.next(), None, f);
        self.status.counts.started_stacks.add(1);
        self.ready.push(task);
        task
    }

    /// Wakes a task of this worker. The caller is the worker's thread.
    #[inline(always)]
    pub(crate) fn wake(&self, task: Task) {
        if Self::mark_woken(task)
            && let Some(before) = self.lifo_slot.replace(Some(task))
        {
            self.enqueue(before);
        }
    }

    /// Runs `f`, which reports the end of the running task to its owner. If reports come in quick succession
    /// and `f` wakes the owner, the ready tasks run before it. It then receives several reports in one turn.
    pub(crate) fn report_end(&self, f: impl FnOnce()) {
        let was_empty = self.lifo_slot.get().is_none();
        f();
        if was_empty
            && !self.ready.is_empty()
            && let Some(owner) = self.lifo_slot.get()
            && self.reports_are_quick()
        {
            self.lifo_slot.set(None);
            self.enqueue(owner);
        }
    }

    /// Records that an owner was woken. Returns whether the one before was woken less than [`QUICK_NS`] ago.
    fn reports_are_quick(&self) -> bool {
        let now = clock::now();
        now.saturating_sub(self.owner_woken_at.replace(now)) < QUICK_NS
    }

    /// Marks the task as woken. Returns `false` if it was not parked.
    #[inline(always)]
    pub(super) fn mark_woken(task: Task) -> bool {
        let header = task.header();
        let parked = header.phase.get() == Phase::Parked;
        if parked {
            header.phase.set(Phase::Ready);
        } else {
            header.notified.set(true);
        }
        parked
    }
}
