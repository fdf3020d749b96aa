//! The children of a token: places that are used again, so that one who comes and goes needs no memory more.

use std::sync::{Arc, Weak};

use super::Node;

/// Places from which on they are given back when nobody is left.
const KEPT: usize = 64;

#[derive(Default)]
pub(super) struct Below {
    places: Vec<Place>,
    /// The first that is free, or one that is not there yet.
    free: usize,
    live: usize,
}

enum Place {
    Child(Weak<Node>),
    /// The next one.
    Free(usize),
}

impl Below {
    /// The place by which it is removed.
    pub(super) fn insert(&mut self, child: Weak<Node>) -> usize {
        let place = self.free;
        match self.places.get_mut(place) {
            Some(free) => match std::mem::replace(free, Place::Child(child)) {
                Place::Free(next) => self.free = next,
                Place::Child(_) => unreachable!("only free places are in the list"),
            },
            None => {
                self.places.push(Place::Child(child));
                self.free = self.places.len();
            }
        }
        self.live += 1;
        place
    }

    /// Who was there, if all have not been taken out since.
    pub(super) fn remove(&mut self, place: usize) {
        let Some(child @ Place::Child(_)) = self.places.get_mut(place) else {
            return;
        };
        *child = Place::Free(self.free);
        self.free = place;
        self.live -= 1;
        if self.live == 0 && self.places.len() > KEPT {
            *self = Self::default();
        }
    }

    /// Those that live still.
    pub(super) fn into_children(self) -> impl Iterator<Item = Arc<Node>> {
        self.places.into_iter().filter_map(|place| match place {
            Place::Child(child) => child.upgrade(),
            Place::Free(_) => None,
        })
    }

    #[cfg(all(test, not(loom)))]
    pub(super) fn len(&self) -> usize {
        self.live
    }

    #[cfg(all(test, not(loom)))]
    pub(super) fn places(&self) -> usize {
        self.places.len()
    }
}
