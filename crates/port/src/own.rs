//! What belongs to somebody: lists, so that closing looks at its own and at nothing else, and lines of the cache.

use std::sync::{Arc, Weak};

use crate::code::{Failure, no_memory};

/// On cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Apart<T>(pub(crate) T);

/// A list in which each entry knows its place.
#[derive(Debug)]
pub(crate) struct Places<T> {
    entries: Vec<Option<T>>,
    free: Vec<usize>,
}

impl<T> Default for Places<T> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> Places<T> {
    /// Where the entry is from now on.
    ///
    /// # Errors
    /// `overloaded`: there is no memory for it.
    pub(crate) fn insert(&mut self, entry: T) -> Result<usize, Failure> {
        if let Some(place) = self.free.pop() {
            self.entries[place] = Some(entry);
            return Ok(place);
        }
        let reserved = self.entries.try_reserve(1);
        // So that giving a place back needs no memory.
        let reserved = reserved.and_then(|()| self.free.try_reserve(self.entries.capacity()));
        reserved.map_err(|_| no_memory(self.entries.len() * size_of::<Option<T>>()))?;
        self.entries.push(Some(entry));
        Ok(self.entries.len() - 1)
    }

    /// A list that was emptied meanwhile has no such place any more.
    pub(crate) fn remove(&mut self, place: usize) {
        if let Some(entry) = self.entries.get_mut(place)
            && entry.take().is_some()
        {
            self.free.push(place);
        }
    }

    /// Nothing ever was in it.
    pub(crate) fn is_new(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().flatten()
    }
}

/// A list of what may be gone, which is forgotten as often as the list has doubled: an entry costs the same however many there are.
#[derive(Debug)]
pub(crate) struct Roll<T: ?Sized> {
    entries: Vec<Weak<T>>,
    /// As long it is looked through.
    due: usize,
}

impl<T: ?Sized> Default for Roll<T> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            due: 8,
        }
    }
}

impl<T: ?Sized> Roll<T> {
    pub(crate) fn push(&mut self, entry: &Arc<T>) {
        if self.entries.len() >= self.due {
            self.entries.retain(|entry| entry.strong_count() > 0);
            self.due = (self.entries.len() * 2).max(8);
        }
        self.entries.push(Arc::downgrade(entry));
    }

    /// Those that are still there.
    pub(crate) fn all(&self) -> Vec<Arc<T>> {
        self.entries.iter().filter_map(Weak::upgrade).collect()
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.entries.iter().all(|entry| entry.strong_count() == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::{Places, Roll};
    use std::sync::Arc;

    #[test]
    fn a_place_is_used_again() {
        let mut places = Places::default();
        let first = places.insert('a').unwrap();
        places.insert('b').unwrap();
        places.remove(first);
        places.remove(first);
        assert_eq!(places.insert('c').unwrap(), first);
        assert_eq!(places.insert('d').unwrap(), 2);
        assert_eq!(places.iter().copied().collect::<String>(), "cbd");
    }

    #[test]
    fn what_is_gone_is_forgotten() {
        let mut roll = Roll::default();
        let kept = Arc::new(());
        roll.push(&kept);
        for _ in 0..if cfg!(miri) { 100 } else { 10_000 } {
            roll.push(&Arc::new(()));
            assert!(roll.entries.len() <= 8);
        }
        assert_eq!(roll.all().len(), 1);
        drop(kept);
        assert!(roll.is_gone());
    }
}
