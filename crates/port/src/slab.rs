//! A list whose entries keep their keys.

use crate::code::{Failure, no_memory};

/// A list that returns a key for each entry, for its removal.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    entries: Vec<Option<T>>,
    free: Vec<usize>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> Slab<T> {
    /// Inserts an entry and returns its key.
    ///
    /// # Errors
    /// `overloaded`: there is not enough memory.
    pub(crate) fn insert(&mut self, entry: T) -> Result<usize, Failure> {
        if let Some(key) = self.free.pop() {
            self.entries[key] = Some(entry);
            return Ok(key);
        }
        let reserved = self.entries.try_reserve(1);
        // Reserved now so that removing an entry needs no memory.
        let reserved = reserved.and_then(|()| self.free.try_reserve(self.entries.capacity()));
        reserved.map_err(|_| no_memory(self.entries.len() * size_of::<Option<T>>()))?;
        self.entries.push(Some(entry));
        Ok(self.entries.len() - 1)
    }

    /// Removes the entry with this key. A key from before the list was emptied is ignored.
    pub(crate) fn remove(&mut self, key: usize) {
        if let Some(entry) = self.entries.get_mut(key)
            && entry.take().is_some()
        {
            self.free.push(key);
        }
    }

    /// Whether the list never had an entry.
    pub(crate) fn is_unused(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::Slab;

    #[test]
    fn removed_key_is_reused() {
        let mut slab = Slab::default();
        let first = slab.insert('a').unwrap();
        slab.insert('b').unwrap();
        slab.remove(first);
        slab.remove(first);
        assert_eq!(slab.insert('c').unwrap(), first);
        assert_eq!(slab.insert('d').unwrap(), 2);
        assert_eq!(slab.iter().copied().collect::<String>(), "cbd");
    }
}
