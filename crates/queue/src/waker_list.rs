//! The tasks and threads that wait for one condition.

use std::task::Waker;

/// Wakers in the order of their arrival. One waker needs no allocation.
///
/// It is plain data, which its owner protects with a lock. Take the wakers out under the lock and
/// wake them afterwards, because a waker may run any code:
///
/// ```
/// use std::sync::Mutex;
/// use std::task::Waker;
/// use thalweg_queue::WakerList;
///
/// let waiting = Mutex::new(WakerList::new());
/// waiting.lock().unwrap().insert(Waker::noop().clone());
/// let woken = waiting.lock().unwrap().take();
/// woken.wake();
/// assert!(waiting.lock().unwrap().is_empty());
/// ```
#[derive(Debug, Default)]
pub struct WakerList(Wakers);

#[derive(Debug)]
enum Wakers {
    Inline(Option<Waker>),
    Heap(Vec<Waker>),
}

impl Default for Wakers {
    fn default() -> Self {
        Self::Inline(None)
    }
}

impl WakerList {
    /// An empty list.
    #[must_use]
    pub const fn new() -> Self {
        Self(Wakers::Inline(None))
    }

    /// Whether there is no waker.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match &self.0 {
            Wakers::Inline(waker) => waker.is_none(),
            Wakers::Heap(wakers) => wakers.is_empty(),
        }
    }

    /// Adds a waker at the end, unless the list has one that wakes the same task. It compares the
    /// waker with all others.
    pub fn insert(&mut self, waker: Waker) {
        if !self.as_slice().iter().any(|other| other.will_wake(&waker)) {
            self.push(waker);
        }
    }

    /// Adds a waker at the end.
    pub fn push(&mut self, waker: Waker) {
        match &mut self.0 {
            Wakers::Inline(first @ None) => *first = Some(waker),
            Wakers::Inline(first) => {
                let wakers = first.take().into_iter().chain([waker]);
                self.0 = Wakers::Heap(wakers.collect());
            }
            Wakers::Heap(wakers) => wakers.push(waker),
        }
    }

    /// Removes the first waker that wakes the same task as `waker`. Other wakers may change places.
    pub fn remove(&mut self, waker: &Waker) -> Option<Waker> {
        match &mut self.0 {
            Wakers::Inline(first) => first.take_if(|first| first.will_wake(waker)),
            Wakers::Heap(wakers) => {
                let place = wakers.iter().position(|other| other.will_wake(waker))?;
                Some(wakers.swap_remove(place))
            }
        }
    }

    /// Removes the last waker.
    pub fn pop(&mut self) -> Option<Waker> {
        match &mut self.0 {
            Wakers::Inline(first) => first.take(),
            Wakers::Heap(wakers) => wakers.pop(),
        }
    }

    /// Takes all wakers out.
    #[must_use]
    pub fn take(&mut self) -> Self {
        std::mem::take(self)
    }

    /// Wakes all, in the order of their arrival.
    pub fn wake(self) {
        match self.0 {
            Wakers::Inline(first) => first.into_iter().for_each(Waker::wake),
            Wakers::Heap(wakers) => wakers.into_iter().for_each(Waker::wake),
        }
    }

    fn as_slice(&self) -> &[Waker] {
        match &self.0 {
            Wakers::Inline(first) => first.as_slice(),
            Wakers::Heap(wakers) => wakers,
        }
    }
}

impl Extend<Waker> for WakerList {
    /// Adds the wakers at the end, whether or not the list has them.
    fn extend<I: IntoIterator<Item = Waker>>(&mut self, wakers: I) {
        wakers.into_iter().for_each(|waker| self.push(waker));
    }
}

impl IntoIterator for WakerList {
    type Item = Waker;
    type IntoIter = std::iter::Chain<std::option::IntoIter<Waker>, std::vec::IntoIter<Waker>>;

    fn into_iter(self) -> Self::IntoIter {
        let (first, wakers) = match self.0 {
            Wakers::Inline(first) => (first, Vec::new()),
            Wakers::Heap(wakers) => (None, wakers),
        };
        first.into_iter().chain(wakers)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::WakerList;
    use std::sync::Arc;
    use std::sync::Mutex;
    use std::task::{Wake, Waker};

    struct Numbered {
        number: u32,
        woken: Arc<Mutex<Vec<u32>>>,
    }

    impl Wake for Numbered {
        fn wake(self: Arc<Self>) {
            self.woken.lock().unwrap().push(self.number);
        }
    }

    fn wakers(count: u32) -> (Vec<Waker>, Arc<Mutex<Vec<u32>>>) {
        let woken = Arc::<Mutex<Vec<u32>>>::default();
        let waker = |number| {
            let woken = Arc::clone(&woken);
            Waker::from(Arc::new(Numbered { number, woken }))
        };
        ((0..count).map(waker).collect(), Arc::clone(&woken))
    }

    #[test]
    #[cfg_attr(miri, ignore = "in Miri, a waker and its clone may differ")]
    fn wakers_are_woken_once_and_in_order() {
        for count in 0..4 {
            let (all, woken) = wakers(count);
            let mut list = WakerList::new();
            for waker in &all {
                list.insert(waker.clone());
                list.insert(waker.clone());
            }
            assert_eq!(list.is_empty(), count == 0);
            list.take().wake();
            assert!(list.is_empty());
            assert_eq!(*woken.lock().unwrap(), (0..count).collect::<Vec<_>>());
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "in Miri, a waker and its clone may differ")]
    fn removed_wakers_are_not_woken() {
        for count in 1..4 {
            let (all, woken) = wakers(count);
            let mut list = WakerList::new();
            list.extend(all.iter().cloned());
            assert!(list.remove(&all[0]).is_some());
            assert!(list.remove(&all[0]).is_none());
            let last = list.pop();
            assert_eq!(last.is_some(), count > 1);
            list.wake();
            assert_eq!(
                woken.lock().unwrap().len(),
                count.saturating_sub(2) as usize
            );
        }
    }

    #[test]
    fn list_is_as_small_as_a_vec() {
        assert_eq!(size_of::<WakerList>(), size_of::<Vec<Waker>>());
    }
}
