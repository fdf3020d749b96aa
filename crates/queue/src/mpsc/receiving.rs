//! The receiver of many senders.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::ptr;

use super::Shared;
use super::lanes::Inlet;
use crate::channel::{Core, Pop};
use crate::no_preempt::NoPreemptGuard;
use crate::sync::{Arc, Ordering};

/// Values from one lane before the next has its turn.
const TURN: usize = if cfg!(loom) { 2 } else { 64 };
/// Lanes up to which the receiver looks at each, and does not touch the hint.
const FEW: usize = if cfg!(loom) { 1 } else { 8 };
/// Turns by the hint before all lanes are looked at.
const HINTED: usize = if cfg!(loom) { 1 } else { 64 };

/// The receiver's part of the channel.
pub struct Rx<T> {
    shared: Arc<Shared<T>>,
    /// Whose turn it is: a lane of `lanes`, or null for the common path.
    current: Cell<*const Inlet<T>>,
    /// Values left of the turn.
    left: Cell<usize>,
    lanes: RefCell<State<T>>,
}

// SAFETY: `current` points to what `lanes` owns, which is Send.
unsafe impl<T: Send> Send for Rx<T> {}

struct State<T> {
    /// By number; boxed, so that `current` stays where it is.
    inlets: Vec<Option<Box<Inlet<T>>>>,
    count: usize,
    turn: Turn,
    /// Turns by the hint since all lanes were looked at.
    hinted: usize,
    made: usize,
}

/// Whose turn it is.
#[derive(Clone, Copy)]
enum Turn {
    Common,
    Lane(usize),
}

impl<T> Rx<T> {
    pub(super) fn new(shared: Arc<Shared<T>>) -> Self {
        let lanes = RefCell::new(State {
            inlets: Vec::new(),
            count: 0,
            turn: Turn::Common,
            hinted: 0,
            made: 0,
        });
        Self {
            shared,
            current: Cell::new(ptr::null()),
            left: Cell::new(0),
            lanes,
        }
    }

    #[inline(always)]
    fn current(&self) -> Option<&Inlet<T>> {
        // SAFETY: `next_turn` sets it to a lane that `lanes` owns, and nothing else drops one.
        unsafe { self.current.get().as_ref() }
    }

    /// Goes on to the next that has something; `false`: nobody has.
    #[inline(never)]
    fn next_turn(&self) -> bool {
        let lanes = &mut *self.lanes.borrow_mut();
        self.current.set(ptr::null());
        let found = lanes.next_turn(&self.shared);
        self.left.set(if found { TURN } else { 0 });
        if found && let Some(inlet) = lanes.inlet() {
            self.current.set(inlet);
        }
        found
    }

    /// Rule 3, the receiver's part.
    #[inline(always)]
    fn count(&self, count: usize) {
        let popped = &self.shared.popped;
        popped.store(popped.load(Ordering::Relaxed) + count, Ordering::Release);
    }

    fn popped(&self, count: usize) {
        self.count(count);
        self.shared.core.room.signal(count);
    }
}

impl<T> State<T> {
    fn inlet(&self) -> Option<&Inlet<T>> {
        match self.turn {
            Turn::Common => None,
            Turn::Lane(number) => self.inlets[number].as_deref(),
        }
    }

    fn next_turn(&mut self, shared: &Shared<T>) -> bool {
        if self.made != shared.lanes.made() {
            // The lanes are borrowed.
            let _no_preempt = NoPreemptGuard::enter();
            self.made = shared.lanes.made();
            for inlet in shared.lanes.fresh() {
                let number = inlet.number;
                if number >= self.inlets.len() {
                    self.inlets.resize_with(number + 1, || None);
                }
                self.inlets[number] = Some(Box::new(inlet));
                self.count += 1;
            }
        }
        if self.count > FEW && self.hinted < HINTED && self.next_by_hint(shared) {
            self.hinted += 1;
            return true;
        }
        self.hinted = 0;
        self.next_of_all(shared)
    }

    fn next_by_hint(&mut self, shared: &Shared<T>) -> bool {
        let mut from = 0;
        if let Turn::Lane(number) = self.turn {
            from = number + 1;
            // What the turn left: the sender finds the bit clear only at its next value.
            if self.inlet().is_some_and(Inlet::has_value) {
                shared.lanes.set_hint(number);
            }
        }
        while let Some(number) = shared.lanes.take_hint(from) {
            // The common path has its turn when the numbers begin again.
            if number < from && shared.common.has_value() {
                shared.lanes.set_hint(number);
                return self.begin(Turn::Common);
            }
            if self.is_readable(number, shared) {
                return self.begin(Turn::Lane(number));
            }
            self.release_if_over(number, shared);
            from = number + 1;
        }
        false
    }

    fn next_of_all(&mut self, shared: &Shared<T>) -> bool {
        let first = match self.turn {
            Turn::Common => 0,
            Turn::Lane(number) => number + 1,
        };
        for number in first..self.inlets.len() {
            if self.is_readable(number, shared) {
                return self.begin(Turn::Lane(number));
            }
            self.release_if_over(number, shared);
        }
        if shared.common.has_value() {
            return self.begin(Turn::Common);
        }
        for number in 0..first.min(self.inlets.len()) {
            if self.is_readable(number, shared) {
                return self.begin(Turn::Lane(number));
            }
            self.release_if_over(number, shared);
        }
        false
    }

    fn begin(&mut self, turn: Turn) -> bool {
        self.turn = turn;
        true
    }

    /// Whether a lane has a value, and its sender's earlier ones are out (rule 2).
    fn is_readable(&mut self, number: usize, shared: &Shared<T>) -> bool {
        let Some(Some(inlet)) = self.inlets.get_mut(number) else {
            return false;
        };
        if inlet.after > 0 {
            if shared.common.popped() < inlet.after {
                return false;
            }
            inlet.after = 0;
        }
        inlet.has_value()
    }

    /// Rule 5.
    fn release_if_over(&mut self, number: usize, shared: &Shared<T>) {
        if let Some(place) = self.inlets.get_mut(number)
            && place.as_ref().is_some_and(|inlet| inlet.is_over())
        {
            *place = None;
            self.count -= 1;
            shared.lanes.release(number);
        }
    }
}

impl<T> Pop for Rx<T> {
    type Item = T;

    #[inline(always)]
    fn core(&self) -> &Core {
        &self.shared.core
    }

    #[inline(always)]
    fn pop_quickly(&self) -> Option<T> {
        let inlet = self.current()?;
        if !inlet.knows_value() {
            let left = self.left.get();
            if left == 0 {
                return None;
            }
            let known = inlet.known();
            if known == 0 {
                return None;
            }
            self.left.set(left.saturating_sub(known));
        }
        // SAFETY: there is a value.
        let value = unsafe { inlet.pop() };
        self.count(1);
        Some(self.shared.core.room.signal_and(value))
    }

    fn try_pop(&self) -> Option<T> {
        loop {
            let left = self.left.get();
            if left > 0 {
                // What is known of a lane belongs to the turn: taking it is not counted again.
                let (count, value) = match self.current() {
                    Some(inlet) => match inlet.known() {
                        0 => (0, None),
                        // SAFETY: there is one.
                        known => (known, Some(unsafe { inlet.pop() })),
                    },
                    None => (1, self.shared.common.pop()),
                };
                if value.is_some() {
                    self.left.set(left.saturating_sub(count));
                    self.popped(1);
                    return value;
                }
            }
            if !self.next_turn() {
                return None;
            }
        }
    }

    fn pop_some(&self, most: usize, mut take: impl FnMut(T)) -> usize {
        let mut count = 0;
        while count < most {
            let here = self.left.get().min(most - count);
            let mut got = 0;
            if here > 0 {
                match self.current() {
                    Some(inlet) => got = inlet.pop_some(here, &mut take),
                    None => {
                        while got < here
                            && let Some(value) = self.shared.common.pop()
                        {
                            take(value);
                            got += 1;
                        }
                    }
                }
                self.left.set(self.left.get() - got);
                count += got;
            }
            if got < here.max(1) && !self.next_turn() {
                break;
            }
        }
        if count > 0 {
            self.popped(count);
        }
        count
    }

    fn has_value(&self) -> bool {
        let here = self.left.get() > 0 && self.current().is_some_and(Inlet::has_value);
        here || self.next_turn()
    }

    fn is_drained(&self) -> bool {
        !self.has_value() && self.shared.common.is_drained()
    }

    fn moved(&self) -> u64 {
        self.shared.popped.load(Ordering::Relaxed) as u64
    }

    fn len(&self) -> usize {
        self.shared.len()
    }

    fn capacity(&self) -> usize {
        self.shared.capacity
    }

    fn shut(&self) {
        self.shared.close();
    }
}

impl<T> fmt::Debug for Rx<T> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("mpsc::Rx")
            .field("lanes", &self.lanes.borrow().count)
            .finish()
    }
}
