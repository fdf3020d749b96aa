//! What a worker does when it has no work: it looks what others have, and sleeps.

use std::cell::Cell;

use thalweg_queue::{Spin, clock};

use super::Worker;
use crate::io::PollTimeout;

/// Looks for work, while there is none, between two looks for events: such a look is a system call.
const LOOKS_TO_POLL: u32 = 8;

impl Worker {
    /// The scheduler's rule 3.
    pub(super) fn idle(&self, spin: &mut Spin) {
        self.pulse.idle();
        self.fire();
        self.serve_waiting();
        if self.slot.get().is_some() || !self.ready.is_empty() {
            return;
        }
        if self.remote_queue.is_empty() && self.poll() {
            return;
        }
        let deadline = match (self.wheel.next_deadline(), self.next_retry()) {
            (Some(timer), Some(retry)) => Some(timer.min(retry)),
            (timer, retry) => timer.or(retry),
        };
        let is_due = || deadline.is_some_and(|at| at <= clock::now());
        let looks = Cell::new(0_u32);
        let polls = || {
            looks.set(looks.get() + 1);
            looks.get().is_multiple_of(LOOKS_TO_POLL) && self.poll()
        };
        self.scheduler.begin_search();
        let found = spin.until(|| self.finds() || is_due() || polls());
        if found {
            if self.scheduler.end_search() {
                self.pass_on();
            }
            return;
        }
        let poller = self.used_poller();
        self.pulse.sleep();
        self.scheduler.prepare_park(self.index, poller.is_some());
        // Not looked for while it spins, where each look counts: who waits for a stack can wait so long.
        let finds = || self.finds() || self.has_new_shortage();
        while !finds() && !is_due() && self.fibers(|fibers| fibers.stacks.trim()) {}
        if !finds() {
            self.pulse.counts.sleeps.add(1);
            spin.sleep(|| match poller {
                Some(poller) => {
                    self.wait_in(poller, PollTimeout::Deadline(deadline));
                }
                None => {
                    self.remote_queue.parker.park(deadline);
                }
            });
        }
        self.pulse.set_awake();
        self.scheduler.watcher.wake();
        self.scheduler.finish_park(self.index);
        self.pass_on();
    }

    /// The scheduler's rule 4: one job is ours, and another worker is woken if there are more.
    pub(super) fn pass_on(&self) {
        if self.slot.get().is_none() && self.remote_queue.is_empty() {
            self.slot.set(self.fresh());
        }
        if self.scheduler.has_fresh() {
            self.scheduler.announce();
        }
    }

    /// Looks everywhere for something to do; what others had is in the slot and the ring then.
    fn finds(&self) -> bool {
        !self.remote_queue.is_empty()
            || self.scheduler.has_injected()
            || !self.seat().placed.is_empty()
            || self.scheduler.is_stopping()
            || self.slot.get().is_some()
            || self.steals()
    }

    fn steals(&self) -> bool {
        if self.is_alone() {
            return false;
        }
        let seats = &self.scheduler.seats;
        let mine = &self.seat().ring;
        // Begin with another each time, so that not all thieves go to the first.
        let first = self.pulse.turn() as usize;
        for nth in 0..seats.len() {
            let victim = (first + nth) % seats.len();
            if victim == self.index {
                continue;
            }
            // `inspect::moved`'s rule 2.
            let watched = self.scheduler.moved.is_watched();
            let most = if watched { 1 } else { u32::MAX };
            if let Some(task) = seats[victim].steal_into(mine, most) {
                self.pulse.counts.steals.add(1);
                if watched {
                    self.scheduler.moved.note(task);
                }
                self.slot.set(Some(task));
                return true;
            }
        }
        false
    }
}
