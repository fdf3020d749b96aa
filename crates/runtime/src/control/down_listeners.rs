//! The listeners of one actor's exit, in the order in which they were added. Most actors have one
//! at most, which is stored inline.

use super::DownListener;

#[derive(Debug, Default)]
pub(super) struct DownListeners {
    /// Index 0.
    first: Option<DownListener>,
    /// Indices from 1.
    others: Vec<Option<DownListener>>,
    /// Indices that are free again. Unused while there are no others.
    free: Vec<usize>,
}

impl DownListeners {
    /// Returns the index by which the listener is removed.
    pub(super) fn add(&mut self, listener: DownListener) -> usize {
        if let Some(index) = self.free.pop() {
            *self.at(index) = Some(listener);
            return index;
        }
        if self.first.is_none() && self.others.is_empty() {
            self.first = Some(listener);
            return 0;
        }
        self.others.push(Some(listener));
        self.others.len()
    }

    /// Removes a listener. Call it at most once for an index.
    pub(super) fn take(&mut self, index: usize) -> Option<DownListener> {
        if !self.others.is_empty() {
            self.free.push(index);
        }
        self.at(index).take()
    }

    fn at(&mut self, index: usize) -> &mut Option<DownListener> {
        match index.checked_sub(1) {
            None => &mut self.first,
            Some(other) => &mut self.others[other],
        }
    }

    /// Calls `f` with the listeners in order.
    pub(super) fn for_each(self, mut f: impl FnMut(DownListener)) {
        if let Some(first) = self.first {
            f(first);
        }
        if !self.others.is_empty() {
            self.others.into_iter().flatten().for_each(f);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::DownListeners;
    use crate::control::DownListener;

    fn listener() -> DownListener {
        DownListener::Callback(Box::new(|_| ()))
    }

    #[test]
    fn listeners_reuse_freed_indices() {
        let mut listeners = DownListeners::default();
        for _ in 0..3 {
            assert_eq!(listeners.add(listener()), 0, "the list was empty");
            assert!(listeners.take(0).is_some());
        }
        let indices: Vec<_> = (0..3).map(|_| listeners.add(listener())).collect();
        assert_eq!(indices, [0, 1, 2]);
        assert!(listeners.take(0).is_some() && listeners.take(2).is_some());
        assert_eq!(
            [listeners.add(listener()), listeners.add(listener())],
            [2, 0]
        );
        assert_eq!(listeners.add(listener()), 3);
        assert!(listeners.take(1).is_some());
        let mut left = 0;
        listeners.for_each(|_| left += 1);
        assert_eq!(left, 3);
    }
}
