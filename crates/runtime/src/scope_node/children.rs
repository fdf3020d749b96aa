//! The children of a token, in slots that are reused: a child that is created and dropped needs no
//! further memory.

use std::sync::{Arc, Weak};

use super::TokenNode;

/// With more slots than this, the memory is freed when the last child is removed.
const SHRINK_ABOVE: usize = 64;

#[derive(Default)]
pub(super) struct Children {
    slots: Vec<Slot>,
    /// The first free slot, or the index of the next slot to add.
    free: usize,
    len: usize,
}

enum Slot {
    Child(Weak<TokenNode>),
    /// The next free slot.
    Free(usize),
}

impl Children {
    /// Returns the slot by which the child is removed.
    #[inline]
    pub(super) fn insert(&mut self, child: Weak<TokenNode>) -> usize {
        let slot = self.free;
        match self.slots.get_mut(slot) {
            Some(free) => match std::mem::replace(free, Slot::Child(child)) {
                Slot::Free(next) => self.free = next,
                Slot::Child(_) => unreachable!("the free list contains only free slots"),
            },
            None => {
                self.slots.push(Slot::Child(child));
                self.free = self.slots.len();
            }
        }
        self.len += 1;
        slot
    }

    /// Removes the child, unless all children have been taken out since.
    #[inline]
    pub(super) fn remove(&mut self, slot: usize) {
        let Some(child @ Slot::Child(_)) = self.slots.get_mut(slot) else {
            return;
        };
        *child = Slot::Free(self.free);
        self.free = slot;
        self.len -= 1;
        if self.len == 0 && self.slots.len() > SHRINK_ABOVE {
            *self = Self::default();
        }
    }

    /// The children that still exist.
    pub(super) fn into_children(self) -> impl Iterator<Item = Arc<TokenNode>> {
        self.slots.into_iter().filter_map(|slot| match slot {
            Slot::Child(child) => child.upgrade(),
            Slot::Free(_) => None,
        })
    }

    #[cfg(all(test, not(loom)))]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    #[cfg(all(test, not(loom)))]
    pub(super) fn slots(&self) -> usize {
        self.slots.len()
    }
}
