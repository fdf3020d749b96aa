//! The receiving half of an `mpsc` channel.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::ptr;

use super::Shared;
use super::lanes::LaneRx;
use crate::channel::{Core, Pop, SharedRef};
use crate::no_preempt::NoPreemptGuard;
use crate::sync::Ordering;

/// The maximum number of values from one lane per turn.
const MAX_PER_TURN: usize = if cfg!(loom) { 2 } else { 64 };
/// With up to this many lanes, the receiver checks each lane and ignores the hint.
const MAX_SCANNED_LANES: usize = if cfg!(loom) { 1 } else { 8 };
/// Turns that follow the hint before all lanes are checked.
const MAX_HINTED_TURNS: usize = if cfg!(loom) { 1 } else { 64 };

/// The receiving half of an `mpsc` channel.
pub struct Rx<T> {
    shared: SharedRef<Shared<T>>,
    /// The source of the current turn: a lane of `lanes`, or null for the shared lane.
    current: Cell<*const LaneRx<T>>,
    /// How many values of the turn are left.
    left: Cell<usize>,
    lanes: RefCell<LaneScan<T>>,
    /// Values from the shared lane.
    taken: RefCell<VecDeque<T>>,
}

// SAFETY: `current` points into `lanes`, which is Send.
unsafe impl<T: Send> Send for Rx<T> {}

struct LaneScan<T> {
    /// Indexed by the number of the lane. Boxed, so that the target of `current` does not move.
    lane_rxs: Vec<Option<Box<LaneRx<T>>>>,
    count: usize,
    turn: Source,
    /// Turns that followed the hint since all lanes were checked.
    hinted: usize,
    created: usize,
}

/// Where the values of a turn come from.
#[derive(Clone, Copy)]
enum Source {
    SharedLane,
    Lane(usize),
}

impl<T> Rx<T> {
    pub(super) fn new(shared: SharedRef<Shared<T>>) -> Self {
        let lanes = RefCell::new(LaneScan {
            lane_rxs: Vec::new(),
            count: 0,
            turn: Source::SharedLane,
            hinted: 0,
            created: 0,
        });
        Self {
            shared,
            current: Cell::new(ptr::null()),
            left: Cell::new(0),
            lanes,
            taken: RefCell::default(),
        }
    }

    #[inline(always)]
    fn current(&self) -> Option<&LaneRx<T>> {
        // SAFETY: `next_turn` points it to a lane that `lanes` owns, and only `next_turn` drops
        // lanes.
        unsafe { self.current.get().as_ref() }
    }

    /// Moves on to the next source that has a value. Returns `false` if there is none.
    #[inline(never)]
    fn next_turn(&self) -> bool {
        let lanes = &mut *self.lanes.borrow_mut();
        self.current.set(ptr::null());
        let found = lanes.next_turn(&self.shared);
        self.left.set(if found { MAX_PER_TURN } else { 0 });
        if found && let Some(lane_rx) = lanes.lane_rx() {
            self.current.set(lane_rx);
        }
        found
    }

    /// Rule 3, the receiver's part.
    #[inline(always)]
    fn add_popped(&self, count: usize) {
        let popped = &self.shared.popped;
        popped.store(popped.load(Ordering::Relaxed) + count, Ordering::Release);
    }

    fn record_popped(&self, count: usize) {
        self.add_popped(count);
        self.shared.core.send_waiters.signal(count);
    }
}

impl<T> LaneScan<T> {
    fn lane_rx(&self) -> Option<&LaneRx<T>> {
        match self.turn {
            Source::SharedLane => None,
            Source::Lane(number) => self.lane_rxs[number].as_deref(),
        }
    }

    fn next_turn(&mut self, shared: &Shared<T>) -> bool {
        if self.created != shared.lanes.created() {
            // An allocation below could preempt while `lanes` is borrowed.
            let _no_preempt = NoPreemptGuard::enter();
            self.created = shared.lanes.created();
            for lane_rx in shared.lanes.take_new() {
                let number = lane_rx.number;
                if number >= self.lane_rxs.len() {
                    self.lane_rxs.resize_with(number + 1, || None);
                }
                self.lane_rxs[number] = Some(Box::new(lane_rx));
                self.count += 1;
            }
        }
        if self.count > MAX_SCANNED_LANES
            && self.hinted < MAX_HINTED_TURNS
            && self.next_by_hint(shared)
        {
            self.hinted += 1;
            return true;
        }
        self.hinted = 0;
        self.next_of_all(shared)
    }

    fn next_by_hint(&mut self, shared: &Shared<T>) -> bool {
        let mut from = 0;
        if let Source::Lane(number) = self.turn {
            from = number + 1;
            // The turn may have left values behind, and the sender sets the bit only with its next
            // value.
            if self.lane_rx().is_some_and(LaneRx::has_value) {
                shared.lanes.set_hint(number);
            }
        }
        while let Some(number) = shared.lanes.take_hint(from) {
            // The shared lane has its turn when the numbers wrap around.
            if number < from && shared.shared_lane.has_value() {
                shared.lanes.set_hint(number);
                return self.begin(Source::SharedLane);
            }
            if self.is_readable(number, shared) {
                return self.begin(Source::Lane(number));
            }
            self.release_if_finished(number, shared);
            from = number + 1;
        }
        false
    }

    fn next_of_all(&mut self, shared: &Shared<T>) -> bool {
        let first = match self.turn {
            Source::SharedLane => 0,
            Source::Lane(number) => number + 1,
        };
        for number in first..self.lane_rxs.len() {
            if self.is_readable(number, shared) {
                return self.begin(Source::Lane(number));
            }
            self.release_if_finished(number, shared);
        }
        if shared.shared_lane.has_value() {
            return self.begin(Source::SharedLane);
        }
        for number in 0..first.min(self.lane_rxs.len()) {
            if self.is_readable(number, shared) {
                return self.begin(Source::Lane(number));
            }
            self.release_if_finished(number, shared);
        }
        false
    }

    fn begin(&mut self, turn: Source) -> bool {
        self.turn = turn;
        true
    }

    /// Whether a lane has a value and the sender's earlier values have been received (rule 2).
    fn is_readable(&mut self, number: usize, shared: &Shared<T>) -> bool {
        let Some(Some(lane_rx)) = self.lane_rxs.get_mut(number) else {
            return false;
        };
        if lane_rx.after > 0 {
            if shared.shared_lane.popped() < lane_rx.after {
                return false;
            }
            lane_rx.after = 0;
        }
        lane_rx.has_value()
    }

    /// Rule 5.
    fn release_if_finished(&mut self, number: usize, shared: &Shared<T>) {
        if let Some(slot) = self.lane_rxs.get_mut(number)
            && slot.as_ref().is_some_and(|lane_rx| lane_rx.is_finished())
        {
            *slot = None;
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
    fn pop_fast(&self) -> Option<T> {
        let lane_rx = self.current()?;
        if !lane_rx.has_known_value() {
            let left = self.left.get();
            if left == 0 {
                return None;
            }
            let known = lane_rx.known();
            if known == 0 {
                return None;
            }
            self.left.set(left.saturating_sub(known));
        }
        // SAFETY: there is a value.
        let value = unsafe { lane_rx.pop() };
        self.add_popped(1);
        Some(self.shared.core.send_waiters.signal_returning(value))
    }

    fn try_pop(&self) -> Option<T> {
        loop {
            let left = self.left.get();
            if left > 0 {
                // Known values of a lane belong to the turn, so taking them is not counted again.
                let (count, value) = match self.current() {
                    Some(lane_rx) => match lane_rx.known() {
                        0 => (0, None),
                        // SAFETY: there is a value.
                        known => (known, Some(unsafe { lane_rx.pop() })),
                    },
                    None => (1, self.shared.shared_lane.pop(&mut self.taken.borrow_mut())),
                };
                if value.is_some() {
                    self.left.set(left.saturating_sub(count));
                    self.record_popped(1);
                    return value;
                }
            }
            if !self.next_turn() {
                return None;
            }
        }
    }

    fn pop_into(&self, max: usize, values: &mut Vec<T>) -> usize {
        let mut count = 0;
        while count < max {
            let here = self.left.get().min(max - count);
            let mut got = 0;
            if here > 0 {
                match self.current() {
                    Some(lane_rx) => got = lane_rx.pop_some(here, |value| values.push(value)),
                    None => {
                        let mut taken = self.taken.borrow_mut();
                        while got < here
                            && let Some(value) = self.shared.shared_lane.pop(&mut taken)
                        {
                            values.push(value);
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
            self.record_popped(count);
        }
        count
    }

    fn has_value(&self) -> bool {
        let here = self.left.get() > 0 && self.current().is_some_and(LaneRx::has_value);
        here || self.next_turn()
    }

    fn is_drained(&self) -> bool {
        !self.has_value() && self.shared.shared_lane.is_drained()
    }

    fn transferred(&self) -> u64 {
        self.shared.popped.load(Ordering::Relaxed) as u64
    }

    fn len(&self) -> usize {
        self.shared.len()
    }

    fn capacity(&self) -> usize {
        self.shared.capacity
    }

    fn close(&self) {
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
