//! A list of values for reuse, which usually takes no lock.
//!
//! 1. A thread uses `list` if no other thread uses it at that moment, and otherwise `contended`,
//!    which has a lock. A caller and a service that take turns therefore never take a lock.
//! 2. The thread that sets `is_busy` owns `list` until it clears it. Meanwhile it allocates and frees
//!    nothing, so no other actor of the thread runs.
//! 3. The owner of a list checks whether the object that the values belong to is closed, and puts
//!    nothing into the list of a closed object. The object is closed before
//!    [`free_all`](SpareList::free_all), so the list stays empty afterwards.

use crate::mailbox::{Linked, List};
use crate::sync::{AtomicBool, Mutex, Ordering, UnsafeCell, lock, yield_now};

/// It fills a cache line, because threads with different lists use them at the same time.
#[repr(align(64))]
pub(crate) struct SpareList<T: Linked> {
    /// Rule 2.
    is_busy: AtomicBool,
    list: UnsafeCell<List<T>>,
    contended: Mutex<List<T>>,
}

// SAFETY: rule 2.
unsafe impl<T: Linked + Send> Sync for SpareList<T> {}

impl<T: Linked> Default for SpareList<T> {
    fn default() -> Self {
        Self {
            is_busy: AtomicBool::new(false),
            list: UnsafeCell::new(List::default()),
            contended: Mutex::default(),
        }
    }
}

impl<T: Linked> SpareList<T> {
    /// Rule 2: calls `f` with the list. Returns `None` if another thread uses it.
    #[inline(always)]
    fn try_with<R>(&self, f: impl FnOnce(&mut List<T>) -> R) -> Option<R> {
        let entered =
            self.is_busy
                .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed);
        entered.ok()?;
        // SAFETY: rule 2.
        let result = self.list.with_mut(|list| f(unsafe { &mut *list }));
        self.is_busy.store(false, Ordering::Release);
        Some(result)
    }

    /// Takes the value that was put last.
    #[inline(always)]
    pub(crate) fn take(&self) -> Option<T> {
        match self.try_with(List::pop_front) {
            Some(Some(value)) => Some(value),
            _ => self.take_contended(),
        }
    }

    #[cold]
    fn take_contended(&self) -> Option<T> {
        lock(&self.contended).pop_front()
    }

    /// Keeps a value, if there are fewer than `most` in its list.
    ///
    /// # Errors
    /// The owner is closed, or there are enough values. The value is returned.
    #[inline(always)]
    pub(crate) fn put(&self, value: T, most: usize, is_closed: impl Fn() -> bool) -> Result<(), T> {
        let mut value = Some(value);
        // Neither list counts the values of the other one.
        let most_contended = most / 4;
        let kept = self.try_with(|list| push(list, &mut value, most - most_contended, &is_closed));
        if kept.is_none() {
            push(&mut lock(&self.contended), &mut value, most / 4, &is_closed);
        }
        value.map_or(Ok(()), Err)
    }

    /// Drops all values. The owner is closed (rule 3).
    pub(crate) fn free_all(&self) {
        let list = loop {
            match self.try_with(std::mem::take) {
                Some(list) => break list,
                // Rule 2: the other thread is a few instructions from its end.
                None => yield_now(),
            }
        };
        drop(list);
        let contended = std::mem::take(&mut *lock(&self.contended));
        drop(contended);
    }
}

/// Rule 3. Called by the owner of the list. Takes the value unless it is refused.
#[inline(always)]
fn push<T: Linked>(
    list: &mut List<T>,
    value: &mut Option<T>,
    most: usize,
    is_closed: impl Fn() -> bool,
) {
    if list.len() < most
        && !is_closed()
        && let Some(value) = value.take()
    {
        list.push_front(value);
    }
}
