//! A slab that stores its first value inline. Most of its users have one value or none.

use slab::Slab;

#[derive(Debug)]
pub(crate) struct InlineSlab<T> {
    /// Key 0.
    first: Option<T>,
    /// Keys from 1.
    others: Slab<T>,
}

impl<T> Default for InlineSlab<T> {
    fn default() -> Self {
        Self {
            first: None,
            others: Slab::new(),
        }
    }
}

impl<T> InlineSlab<T> {
    /// Returns the key by which the value is removed. The key of a removed value is used again.
    #[inline]
    pub(crate) fn insert(&mut self, value: T) -> usize {
        if self.first.is_none() {
            self.first = Some(value);
            return 0;
        }
        self.others.insert(value) + 1
    }

    /// Removes a value, if it is still there.
    #[inline]
    pub(crate) fn remove(&mut self, key: usize) -> Option<T> {
        match key.checked_sub(1) {
            None => self.first.take(),
            Some(other) => self.others.try_remove(other),
        }
    }

    #[cfg(all(test, not(loom)))]
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none() && self.others.is_empty()
    }
}

impl<T> IntoIterator for InlineSlab<T> {
    type Item = T;
    type IntoIter = std::iter::Chain<
        std::option::IntoIter<T>,
        std::iter::Map<slab::IntoIter<T>, fn((usize, T)) -> T>,
    >;

    /// In the order in which they were inserted, except that a value with a key that is used again has
    /// the place of the first value with this key.
    fn into_iter(self) -> Self::IntoIter {
        let others = self.others.into_iter();
        let values = others.map((|(_, value)| value) as fn((usize, T)) -> T);
        self.first.into_iter().chain(values)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::InlineSlab;

    #[test]
    fn keys_of_removed_values_are_used_again() {
        let mut values = InlineSlab::default();
        for number in 0..3 {
            assert_eq!(values.insert(number), 0, "the slab was empty");
            assert_eq!(values.remove(0), Some(number));
            assert_eq!(values.remove(0), None);
        }
        let keys: Vec<_> = (0..3).map(|number| values.insert(number)).collect();
        assert_eq!(keys, [0, 1, 2]);
        assert_eq!((values.remove(0), values.remove(2)), (Some(0), Some(2)));
        assert_eq!([values.insert(3), values.insert(4)], [0, 2]);
        assert_eq!(values.insert(5), 3);
        assert_eq!(values.remove(7), None);
        assert!(!values.is_empty());
        assert_eq!(values.into_iter().collect::<Vec<_>>(), [3, 1, 4, 5]);
    }
}
