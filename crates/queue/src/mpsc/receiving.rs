//! The receiver of many senders.

use std::cell::RefCell;
use std::fmt;

use super::Shared;
use super::lanes::Inlet;
use crate::channel::{Core, Pop};
use crate::sync::{Arc, Ordering};

/// Values from one lane before the next has its turn.
const TURN: usize = 64;
/// Lanes up to which the receiver looks at each, and does not touch the hint.
const FEW: usize = 8;
/// Turns by the hint before all lanes are looked at.
const HINTED: usize = 64;

/// The receiver's part of the channel.
pub struct Rx<T> {
    shared: Arc<Shared<T>>,
    state: RefCell<State<T>>,
}

struct State<T> {
    /// By number.
    inlets: Vec<Option<Inlet<T>>>,
    count: usize,
    turn: Turn,
    /// Values left of the turn.
    left: usize,
    /// Turns by the hint since all lanes were looked at.
    hinted: usize,
    made: usize,
    popped: usize,
}

/// Whose turn it is.
#[derive(Clone, Copy)]
enum Turn {
    Common,
    Lane(usize),
}

impl<T> Rx<T> {
    pub(super) fn new(shared: Arc<Shared<T>>) -> Self {
        let state = RefCell::new(State {
            inlets: Vec::new(),
            count: 0,
            turn: Turn::Common,
            left: 0,
            hinted: 0,
            made: 0,
            popped: 0,
        });
        Self { shared, state }
    }

    /// Rule 3, the receiver's part.
    #[inline(always)]
    fn popped(&self, state: &mut State<T>, count: usize) {
        state.popped += count;
        self.shared.popped.0.store(state.popped, Ordering::Release);
        self.shared.core.room.0.signal(count);
    }
}

impl<T> State<T> {
    #[inline(always)]
    fn inlet(&self) -> Option<&Inlet<T>> {
        match self.turn {
            Turn::Common => None,
            Turn::Lane(number) => self.inlets[number].as_ref(),
        }
    }

    /// Goes on to the next that has something; `false`: nobody has.
    #[inline(never)]
    fn next_turn(&mut self, shared: &Shared<T>) -> bool {
        if self.made != shared.lanes.made() {
            self.made = shared.lanes.made();
            for inlet in shared.lanes.fresh() {
                let number = inlet.number;
                if number >= self.inlets.len() {
                    self.inlets.resize_with(number + 1, || None);
                }
                self.inlets[number] = Some(inlet);
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
        self.left = TURN;
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
            && place.as_ref().is_some_and(Inlet::is_over)
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
    fn try_pop(&self) -> Option<T> {
        let state = &mut *self.state.borrow_mut();
        loop {
            if state.left > 0 {
                let value = match state.inlet() {
                    Some(inlet) => inlet.pop(),
                    None => self.shared.common.pop(),
                };
                if value.is_some() {
                    state.left -= 1;
                    self.popped(state, 1);
                    return value;
                }
                state.left = 0;
            }
            if !state.next_turn(&self.shared) {
                return None;
            }
        }
    }

    fn pop_some(&self, most: usize, mut take: impl FnMut(T)) -> usize {
        let state = &mut *self.state.borrow_mut();
        let mut count = 0;
        while count < most {
            let here = state.left.min(most - count);
            let mut got = 0;
            if here > 0 {
                match state.inlet() {
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
                state.left = if got < here { 0 } else { state.left - got };
                count += got;
            }
            if state.left == 0 && !state.next_turn(&self.shared) {
                break;
            }
        }
        if count > 0 {
            self.popped(state, count);
        }
        count
    }

    fn has_value(&self) -> bool {
        let state = &mut *self.state.borrow_mut();
        state.left > 0 && state.inlet().is_some_and(Inlet::has_value)
            || state.next_turn(&self.shared)
    }

    fn is_drained(&self) -> bool {
        !self.has_value() && self.shared.common.is_drained()
    }

    fn moved(&self) -> u64 {
        self.state.borrow().popped as u64
    }

    fn len(&self) -> usize {
        self.shared.len()
    }

    fn capacity(&self) -> usize {
        self.shared.capacity
    }

    fn shut(&self) {
        self.shared.common.close();
    }
}

impl<T> fmt::Debug for Rx<T> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("mpsc::Rx")
            .field("lanes", &self.state.borrow().count)
            .finish()
    }
}
