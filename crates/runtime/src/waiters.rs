//! Wakers of tasks that wait for one event.

use std::task::Waker;

/// Identifies one wait.
pub(crate) type WaitId = u64;

/// Wakers of tasks that wait for one event. There is almost always at most one, which is stored
/// inline.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    first: Option<(WaitId, Waker)>,
    others: Vec<(WaitId, Waker)>,
}

impl Waiters {
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none() && self.others.is_empty()
    }

    /// Sets the waker of a wait. Returns the replaced waker, to be dropped without the lock.
    pub(crate) fn add(&mut self, wait_id: WaitId, waker: &Waker) -> Option<Waker> {
        let known = self.first.iter_mut().chain(&mut self.others);
        for (other, old) in known {
            if *other == wait_id {
                let is_new = !old.will_wake(waker);
                return is_new.then(|| std::mem::replace(old, waker.clone()));
            }
        }
        let entry = (wait_id, waker.clone());
        match &self.first {
            None => self.first = Some(entry),
            Some(_) => self.others.push(entry),
        }
        None
    }

    pub(crate) fn remove(&mut self, wait_id: WaitId) -> Option<Waker> {
        let first = self.first.take_if(|(first, _)| *first == wait_id);
        let removed = first.or_else(|| {
            let place = self.others.iter().position(|(other, _)| *other == wait_id);
            place.map(|place| self.others.remove(place))
        });
        removed.map(|(_, waker)| waker)
    }

    pub(crate) fn wake(self) {
        let all = self.first.into_iter().chain(self.others);
        all.for_each(|(_, waker)| waker.wake());
    }
}
