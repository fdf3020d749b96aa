//! One worker: which of its work runs next, and what it does when there is none.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use thalweg_queue::Spin;

use crate::fiber::{Berth, Fiber, Suspended};
use crate::scheduler::{Fresh, Scheduler, Seat};

/// Berths that a worker keeps for the next actor: what a burst of short actors reuses.
const BERTHS_KEPT: usize = 32;
/// Fresh work is looked at every so many turns although started work waits: at 61, as tokio has it, a sketch
/// starved fresh actors behind yielders at 2.2 times tokio's time, at 8 it took 0.75 of it.
const TURNS_TO_FRESH: u32 = 8;

pub(crate) struct Worker {
    index: usize,
    scheduler: Arc<Scheduler>,
    /// Started actors by place; `None` where free, or running just now.
    fibers: Vec<Option<Fiber>>,
    free: Vec<u32>,
    /// Places of those that can go on.
    ready: VecDeque<u32>,
    berths: Vec<Berth>,
    spin: Spin,
    turn: u32,
    slice_ended: bool,
}

impl Worker {
    pub(crate) fn new(index: usize, scheduler: Arc<Scheduler>) -> Self {
        Self {
            index,
            scheduler,
            fibers: Vec::new(),
            free: Vec::new(),
            ready: VecDeque::new(),
            berths: Vec::new(),
            spin: Spin::new(),
            turn: 0,
            slice_ended: false,
        }
    }

    /// Until the runtime stops.
    pub(crate) fn run(mut self) {
        while !self.scheduler.is_stopping() {
            self.collect_woken();
            self.turn = self.turn.wrapping_add(1);
            let fresh_first = self.slice_ended || self.turn.is_multiple_of(TURNS_TO_FRESH);
            self.slice_ended = false;
            if fresh_first && self.start_fresh() {
                continue;
            }
            if let Some(place) = self.ready.pop_front() {
                self.resume(place);
            } else if !self.start_fresh() {
                self.idle();
            }
        }
        // Each may end by itself once: its wait returns `Stopping`. What is left is unwound when it is dropped.
        for place in 0..self.fibers.len() as u32 {
            self.resume(place);
        }
    }

    fn collect_woken(&mut self) {
        let woken = self.scheduler.desks[self.index].inbox.take_all();
        self.ready.extend(woken);
    }

    fn has_room(&self) -> bool {
        let live = self.fibers.len() - self.free.len();
        live < (self.scheduler.config.max_stacks / self.scheduler.config.workers).max(1)
    }

    fn start_fresh(&mut self) -> bool {
        if !self.has_room() {
            return false;
        }
        let Some(work) = self.scheduler.take_fresh() else {
            return false;
        };
        let body = move || {
            // What a job returns or how it fails is its own affair; here it only must not unwind further.
            let _ = catch_unwind(AssertUnwindSafe(|| match work {
                Fresh::Once(job) => job(),
                Fresh::Run(actor) => actor.run(),
            }));
        };
        let Some(berth) = self.berth() else {
            // Out of memory for stacks. The work is dropped, and says so to whom it belongs.
            drop(body);
            return true;
        };
        let place = self.free.pop().unwrap_or_else(|| {
            self.fibers.push(None);
            (self.fibers.len() - 1) as u32
        });
        let seat = Seat {
            worker: self.index as u32,
            place,
        };
        let fiber = Fiber::new(berth, seat, body);
        self.turn_of(fiber, place);
        true
    }

    fn berth(&mut self) -> Option<Berth> {
        if let Some(berth) = self.berths.pop() {
            return Some(berth);
        }
        Berth::new(&self.scheduler)
    }

    fn resume(&mut self, place: u32) {
        if let Some(fiber) = self.fibers[place as usize].take() {
            self.turn_of(fiber, place);
        }
    }

    fn turn_of(&mut self, mut fiber: Fiber, place: u32) {
        match fiber.resume(!self.ready.is_empty()) {
            Suspended::Finished => {
                self.free.push(place);
                if self.berths.len() < BERTHS_KEPT {
                    self.berths.push(fiber.into_berth());
                }
            }
            Suspended::Parked => self.fibers[place as usize] = Some(fiber),
            Suspended::Yielded => {
                self.fibers[place as usize] = Some(fiber);
                self.ready.push_back(place);
                self.slice_ended = true;
            }
        }
    }

    /// The scheduler's rule 3.
    fn idle(&mut self) {
        let takes_fresh = self.has_room();
        let scheduler = Arc::clone(&self.scheduler);
        let desk = &scheduler.desks[self.index];
        let found = || {
            !desk.inbox.is_empty()
                || (takes_fresh && scheduler.has_fresh())
                || scheduler.is_stopping()
        };
        if takes_fresh {
            scheduler.begin_search();
        }
        if self.spin.until(found) {
            if takes_fresh {
                scheduler.end_search();
            }
            return;
        }
        scheduler.lie_down(self.index, takes_fresh);
        if !found() {
            self.spin.sleep(|| desk.parker.park(None));
        }
        scheduler.get_up(self.index);
    }
}
