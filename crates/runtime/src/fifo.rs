//! A worker's private queue: a linked list through the tasks. It is unbounded and never allocates.

use std::cell::Cell;

use crate::task::Task;

/// The tasks in it belong to the worker (`task`'s rule 2).
#[derive(Default)]
pub(crate) struct Fifo {
    first: Cell<Option<Task>>,
    last: Cell<Option<Task>>,
}

impl Fifo {
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.first.get().is_none()
    }

    /// Returns the task that the next `pop` returns.
    #[inline(always)]
    pub(crate) fn first(&self) -> Option<Task> {
        self.first.get()
    }

    /// Iterates over the tasks, oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Task> {
        std::iter::successors(self.first(), |task| task.header().next.get())
    }

    #[inline(always)]
    pub(crate) fn push(&self, task: Task) {
        if self.is_empty() {
            self.first.set(Some(task));
        } else {
            // SAFETY: `push` sets it, and the queue is not empty.
            let last = unsafe { self.last.get().unwrap_unchecked() };
            last.header().next.set(Some(task));
        }
        task.header().next.set(None);
        self.last.set(Some(task));
    }

    #[inline(always)]
    pub(crate) fn pop(&self) -> Option<Task> {
        let first = self.first.get()?;
        self.first.set(first.header().next.get());
        Some(first)
    }
}
