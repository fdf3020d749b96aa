//! A list of weak references.

use std::sync::{Arc, Weak};

/// A list of objects that may be dropped at any time. Dropped entries are removed each time the
/// list has doubled, so the amortized cost of an entry is constant.
#[derive(Debug)]
pub(crate) struct WeakList<T: ?Sized> {
    entries: Vec<Weak<T>>,
    /// Length at which dropped entries are removed.
    prune_at: usize,
}

impl<T: ?Sized> Default for WeakList<T> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            prune_at: 8,
        }
    }
}

impl<T: ?Sized> WeakList<T> {
    pub(crate) fn push(&mut self, entry: &Arc<T>) {
        if self.entries.len() >= self.prune_at {
            self.entries.retain(|entry| entry.strong_count() > 0);
            self.prune_at = (self.entries.len() * 2).max(8);
        }
        self.entries.push(Arc::downgrade(entry));
    }

    /// The entries that still exist.
    pub(crate) fn live(&self) -> Vec<Arc<T>> {
        self.entries.iter().filter_map(Weak::upgrade).collect()
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.entries.iter().all(|entry| entry.strong_count() == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::WeakList;
    use std::sync::Arc;

    #[test]
    fn dropped_entries_are_pruned() {
        let mut list = WeakList::default();
        let kept = Arc::new(());
        list.push(&kept);
        for _ in 0..if cfg!(miri) { 100 } else { 10_000 } {
            list.push(&Arc::new(()));
            assert!(list.entries.len() <= 8);
        }
        assert_eq!(list.live().len(), 1);
        drop(kept);
        assert!(list.is_dead());
    }
}
