//! How an actor that is put aside is woken, from any thread.
//!
//! The word is RUNNING, PARKED or NOTIFIED. Who moves it from PARKED to NOTIFIED puts the actor's seat into
//! its worker's inbox, so the seat is there at most once, and an actor that has ended is never PARKED.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Wake;

use crate::scheduler::{Scheduler, Seat};

const RUNNING: u32 = 0;
const PARKED: u32 = 1;
const NOTIFIED: u32 = 2;

pub(crate) struct Actor {
    word: AtomicU32,
    scheduler: Arc<Scheduler>,
    seat: Seat,
}

impl Actor {
    pub(crate) fn new(scheduler: Arc<Scheduler>, seat: Seat) -> Self {
        Self {
            word: AtomicU32::new(RUNNING),
            scheduler,
            seat,
        }
    }

    /// The actor itself, before it suspends. `false`: it was woken meanwhile and must not.
    pub(crate) fn will_park(&self) -> bool {
        let parked =
            self.word
                .compare_exchange(RUNNING, PARKED, Ordering::AcqRel, Ordering::Acquire);
        if parked.is_err() {
            self.word.store(RUNNING, Ordering::Relaxed);
        }
        parked.is_ok()
    }

    /// The actor itself, after it was resumed.
    pub(crate) fn did_park(&self) {
        self.word.swap(RUNNING, Ordering::Acquire);
    }
}

impl Wake for Actor {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.word.swap(NOTIFIED, Ordering::AcqRel) == PARKED {
            self.scheduler.resume(self.seat);
        }
    }
}
