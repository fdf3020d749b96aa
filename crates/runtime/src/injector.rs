//! Jobs that have not begun, in the order in which they came, from any thread and to any.
//!
//! After the runtime said that it stops, what [`Injector::drain`] found was the last: who pushes asks under the lock whether it does.

use std::collections::VecDeque;

use crate::shim::{AtomicUsize, Mutex, Ordering, lock};
use crate::task::Task;

pub(crate) struct Injector {
    queue: Mutex<VecDeque<Task>>,
    /// For who only wants to know whether it is worth the lock.
    len: AtomicUsize,
}

impl Injector {
    pub(crate) fn new() -> Self {
        Self {
            queue: Mutex::default(),
            len: AtomicUsize::new(0),
        }
    }

    /// The job comes back if the runtime stops.
    pub(crate) fn push(&self, task: Task, is_stopping: impl Fn() -> bool) -> Result<(), Task> {
        let mut queue = lock(&self.queue);
        if is_stopping() {
            return Err(task);
        }
        queue.push_back(task);
        self.len.store(queue.len(), Ordering::Release);
        Ok(())
    }

    #[inline(always)]
    pub(crate) fn pop(&self) -> Option<Task> {
        if self.is_empty() {
            return None;
        }
        self.pop_locked()
    }

    fn pop_locked(&self) -> Option<Task> {
        let mut queue = lock(&self.queue);
        let task = queue.pop_front();
        self.len.store(queue.len(), Ordering::Release);
        task
    }

    /// All that is left.
    pub(crate) fn drain(&self) -> impl Iterator<Item = Task> + use<> {
        let mut queue = lock(&self.queue);
        self.len.store(0, Ordering::Release);
        std::mem::take(&mut *queue).into_iter()
    }

    /// Those of which `is_one` says so, in their order. The others stay.
    pub(crate) fn extract(&self, is_one: impl Fn(Task) -> bool) -> VecDeque<Task> {
        let mut queue = lock(&self.queue);
        let (taken, left) = queue.drain(..).partition(|task| is_one(*task));
        *queue = left;
        self.len.store(queue.len(), Ordering::Release);
        taken
    }

    /// Looks at each that waits here, under the lock.
    pub(crate) fn each(&self, look: impl FnMut(Task)) {
        lock(&self.queue).iter().copied().for_each(look);
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.len.load(Ordering::Acquire)
    }
}
