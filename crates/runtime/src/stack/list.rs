//! A list that only grows and whose elements are never freed. It can be read without a lock, in a
//! signal handler, and in a forked child regardless of what its parent was doing.

use std::sync::atomic::{AtomicPtr, Ordering};

pub(super) struct AppendOnlyList<T: 'static> {
    newest: AtomicPtr<Node<T>>,
}

struct Node<T: 'static> {
    value: T,
    older: Option<&'static Self>,
}

impl<T: Sync + 'static> AppendOnlyList<T> {
    pub(super) const fn new() -> Self {
        Self {
            newest: AtomicPtr::new(std::ptr::null_mut()),
        }
    }

    /// Iterates from the newest element to the oldest.
    pub(super) fn iter(&self) -> impl Iterator<Item = &'static T> {
        std::iter::successors(self.newest(), |node| node.older).map(|node| &node.value)
    }

    /// Returns the element for which `is_it` returns `true`. If there is none, adds the one that
    /// `make` creates. Only one is added, regardless of how many threads call this.
    pub(super) fn find_or_add(
        &self,
        is_it: impl Fn(&T) -> bool,
        make: impl FnOnce() -> T,
    ) -> &'static T {
        if let Some(found) = self.iter().find(|value| is_it(value)) {
            return found;
        }
        let mut mine = Box::new(Node {
            value: make(),
            older: None,
        });
        loop {
            let newest = self.newest();
            // Other threads may have added elements since.
            let added = std::iter::successors(newest, |node| node.older);
            if let Some(found) = added.map(|node| &node.value).find(|value| is_it(value)) {
                return found;
            }
            mine.older = newest;
            let expected = newest.map_or(std::ptr::null_mut(), |node| {
                std::ptr::from_ref(node).cast_mut()
            });
            let raw = Box::into_raw(mine);
            let swapped =
                self.newest
                    .compare_exchange(expected, raw, Ordering::Release, Ordering::Relaxed);
            if swapped.is_ok() {
                // SAFETY: it has just come from a box, and elements of the list are never freed
                // (rule 4).
                return unsafe { &(*raw).value };
            }
            // SAFETY: it has just come from a box, and no other thread has seen it.
            mine = unsafe { Box::from_raw(raw) };
        }
    }

    pub(super) fn add(&self, value: T) -> &'static T {
        self.find_or_add(|_| false, || value)
    }

    fn newest(&self) -> Option<&'static Node<T>> {
        // SAFETY: rule 4. The element came from a box that is never freed or written again. This
        // Acquire load pairs with the Release store that added it.
        unsafe { self.newest.load(Ordering::Acquire).as_ref() }
    }
}

#[cfg(test)]
mod tests {
    use super::AppendOnlyList;

    #[test]
    fn concurrent_find_or_add_adds_once() {
        static LIST: AppendOnlyList<usize> = AppendOnlyList::new();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for i in 0..100 {
                        assert_eq!(*LIST.find_or_add(|&have| have == i, || i), i);
                    }
                });
            }
        });
        let mut all: Vec<usize> = LIST.iter().copied().collect();
        all.sort_unstable();
        assert_eq!(all, (0..100).collect::<Vec<_>>());
    }
}
