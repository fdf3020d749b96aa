//! Who watches one actor, in the order in which they came. Nearly always it is one at most, which has its place here and needs no memory more.

use super::Watch;

#[derive(Debug, Default)]
pub(super) struct Watches {
    /// Place 0.
    first: Option<Watch>,
    /// Places 1 and on.
    others: Vec<Option<Watch>>,
    /// Places that somebody had and has left, where there are others.
    free: Vec<usize>,
}

impl Watches {
    /// The place to take it back by.
    pub(super) fn add(&mut self, watch: Watch) -> usize {
        if let Some(place) = self.free.pop() {
            *self.at(place) = Some(watch);
            return place;
        }
        if self.first.is_none() && self.others.is_empty() {
            self.first = Some(watch);
            return 0;
        }
        self.others.push(Some(watch));
        self.others.len()
    }

    /// Whoever got the place, once.
    pub(super) fn take(&mut self, place: usize) -> Option<Watch> {
        if !self.others.is_empty() {
            self.free.push(place);
        }
        self.at(place).take()
    }

    fn at(&mut self, place: usize) -> &mut Option<Watch> {
        match place.checked_sub(1) {
            None => &mut self.first,
            Some(other) => &mut self.others[other],
        }
    }

    /// In their order.
    pub(super) fn for_each(self, mut f: impl FnMut(Watch)) {
        if let Some(first) = self.first {
            f(first);
        }
        self.others.into_iter().flatten().for_each(f);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::Watches;
    use crate::exit::Watch;

    fn watch() -> Watch {
        Watch::Tell(Box::new(|_| ()))
    }

    #[test]
    fn each_has_a_place_of_its_own_and_free_ones_are_used_again() {
        let mut watches = Watches::default();
        for _ in 0..3 {
            assert_eq!(watches.add(watch()), 0, "it is alone each time");
            assert!(watches.take(0).is_some());
        }
        let places: Vec<_> = (0..3).map(|_| watches.add(watch())).collect();
        assert_eq!(places, [0, 1, 2]);
        assert!(watches.take(0).is_some() && watches.take(2).is_some());
        assert_eq!([watches.add(watch()), watches.add(watch())], [2, 0]);
        assert_eq!(watches.add(watch()), 3);
        assert!(watches.take(1).is_some());
        let mut left = 0;
        watches.for_each(|_| left += 1);
        assert_eq!(left, 3);
    }
}
