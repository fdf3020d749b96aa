//! A list that only grows and whose elements are never freed: readable without a lock, in a signal handler, and in a forked
//! child whatever its parent was doing.

use std::sync::atomic::{AtomicPtr, Ordering};

pub(super) struct List<T: 'static> {
    newest: AtomicPtr<Node<T>>,
}

struct Node<T: 'static> {
    value: T,
    older: Option<&'static Self>,
}

impl<T: Sync + 'static> List<T> {
    pub(super) const fn new() -> Self {
        Self {
            newest: AtomicPtr::new(std::ptr::null_mut()),
        }
    }

    /// The newest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &'static T> {
        std::iter::successors(self.newest(), |node| node.older).map(|node| &node.value)
    }

    /// The one that `is_it` finds, or else the one that `make` makes: never two, however many threads ask.
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
            // Others may have added some since.
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
                // SAFETY: it came from a box just now, and what is in the list is never freed (rule 4).
                return unsafe { &(*raw).value };
            }
            // SAFETY: it came from a box just now, and nobody has seen it.
            mine = unsafe { Box::from_raw(raw) };
        }
    }

    pub(super) fn add(&self, value: T) -> &'static T {
        self.find_or_add(|_| false, || value)
    }

    fn newest(&self) -> Option<&'static Node<T>> {
        // SAFETY: rule 4: what was put there came from a box that is never freed nor written to again; Acquire here meets
        // the Release of who put it there.
        unsafe { self.newest.load(Ordering::Acquire).as_ref() }
    }
}

#[cfg(test)]
mod tests {
    use super::List;

    #[test]
    fn of_many_who_ask_for_the_same_one_makes_it() {
        static LIST: List<usize> = List::new();
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
