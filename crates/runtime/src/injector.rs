//! The injector: a FIFO queue of unstarted tasks that any thread may push to and any worker may
//! take from.
//!
//! Once the runtime stops, [`Injector::drain`] takes the last tasks: a thread that pushes checks
//! under the lock whether the runtime stops.

use std::collections::VecDeque;

use crate::shim::{AtomicUsize, Mutex, Ordering, lock};

pub(crate) struct Injector<T> {
    queue: Mutex<VecDeque<T>>,
    /// For readers that only need to know whether taking the lock is worthwhile.
    len: AtomicUsize,
}

impl<T: Copy> Injector<T> {
    pub(crate) fn new() -> Self {
        Self {
            queue: Mutex::default(),
            len: AtomicUsize::new(0),
        }
    }

    /// Appends a task. Returns it if the runtime stops.
    pub(crate) fn push(&self, task: T, is_stopping: impl Fn() -> bool) -> Result<(), T> {
        let mut queue = lock(&self.queue);
        if is_stopping() {
            return Err(task);
        }
        queue.push_back(task);
        self.len.store(queue.len(), Ordering::Release);
        Ok(())
    }

    /// Appends tasks, except those that `is_refused`, which it returns.
    pub(crate) fn push_all(
        &self,
        tasks: impl Iterator<Item = T>,
        is_refused: impl Fn(T) -> bool,
    ) -> Vec<T> {
        let mut queue = lock(&self.queue);
        let mut refused = Vec::new();
        for task in tasks {
            match is_refused(task) {
                true => refused.push(task),
                false => queue.push_back(task),
            }
        }
        self.len.store(queue.len(), Ordering::Release);
        refused
    }

    #[inline(always)]
    pub(crate) fn pop(&self) -> Option<T> {
        if self.is_empty() {
            return None;
        }
        self.pop_locked()
    }

    #[inline(never)]
    fn pop_locked(&self) -> Option<T> {
        let mut queue = lock(&self.queue);
        let task = queue.pop_front();
        self.len.store(queue.len(), Ordering::Release);
        task
    }

    /// Takes all remaining tasks.
    pub(crate) fn drain(&self) -> impl Iterator<Item = T> + use<T> {
        let mut queue = lock(&self.queue);
        self.len.store(0, Ordering::Release);
        std::mem::take(&mut *queue).into_iter()
    }

    /// Takes the tasks for which `is_one` returns `true`, in order. The others stay.
    pub(crate) fn extract(&self, is_one: impl Fn(T) -> bool) -> VecDeque<T> {
        let mut queue = lock(&self.queue);
        let (taken, left) = queue.drain(..).partition(|task| is_one(*task));
        *queue = left;
        self.len.store(queue.len(), Ordering::Release);
        taken
    }

    /// Calls `look` for each queued task, under the lock.
    pub(crate) fn for_each(&self, look: impl FnMut(T)) {
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
