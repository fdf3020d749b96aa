//! What the workers of one runtime share: the injector of fresh work, an inbox each, and who sleeps.
//!
//! How work finds a sleeping worker:
//!
//! 1. Fresh work: push to the injector, SeqCst fence, then: if a worker searches, nothing (it looks again before it sleeps); else wake
//!    one idle worker, whose bit the waker clears.
//! 2. A resumed actor: push to the inbox of its home worker, SeqCst fence, wake that worker if it is asleep.
//! 3. A worker without work counts itself as searching, spins for what a wake costs, sets `asleep` and its idle bit, stops
//!    counting as searching, SeqCst fence, **looks at its inbox and the injector once more**, and parks.
//! 4. Who takes fresh work and leaves more behind wakes one more (rule 1), so that a burst fans out.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, PoisonError};

use thalweg_queue::{Inbox, Parker};

use crate::config::Config;
use crate::timers::Timers;

/// Something that runs on a worker each time it is scheduled, and holds no stack in between.
pub trait Run: Send + Sync + 'static {
    /// One turn, on an actor's stack: it may wait. A panic ends the turn, with the process's panic hook having
    /// its say, and nothing else.
    fn run(self: Arc<Self>);
}

/// Work that has not begun.
pub(crate) enum Fresh {
    Once(Box<dyn FnOnce() + Send>),
    Run(Arc<dyn Run>),
}

/// Where a started actor lives: its worker, and the place in that worker's table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seat {
    pub(crate) worker: u32,
    pub(crate) place: u32,
}

/// One worker, seen from outside.
pub(crate) struct Desk {
    pub(crate) inbox: Inbox<u32>,
    pub(crate) parker: Parker,
    pub(crate) asleep: AtomicBool,
}

pub(crate) struct Scheduler {
    pub(crate) config: Config,
    pub(crate) desks: Box<[Desk]>,
    pub(crate) timers: Timers,
    injector: Mutex<VecDeque<Fresh>>,
    injected: AtomicUsize,
    idle: AtomicU64,
    searching: AtomicUsize,
    stopping: AtomicBool,
}

impl Scheduler {
    pub(crate) fn new(config: Config) -> Self {
        Self {
            desks: (0..config.workers)
                .map(|_| Desk {
                    inbox: Inbox::new(),
                    parker: Parker::new(),
                    asleep: AtomicBool::new(false),
                })
                .collect(),
            config,
            timers: Timers::default(),
            injector: Mutex::default(),
            injected: AtomicUsize::new(0),
            idle: AtomicU64::new(0),
            searching: AtomicUsize::new(0),
            stopping: AtomicBool::new(false),
        }
    }

    /// Rule 1. Dropped, not run, once the runtime stops.
    pub(crate) fn inject(&self, work: Fresh) {
        if self.is_stopping() {
            return;
        }
        {
            let mut queue = self.injector();
            queue.push_back(work);
            self.injected.store(queue.len(), Ordering::Release);
        }
        self.wake_one();
    }

    /// Rules 1 and 4.
    pub(crate) fn take_fresh(&self) -> Option<Fresh> {
        if !self.has_fresh() {
            return None;
        }
        let (work, left) = {
            let mut queue = self.injector();
            let work = queue.pop_front();
            self.injected.store(queue.len(), Ordering::Release);
            (work, queue.len())
        };
        if left > 0 {
            self.wake_one();
        }
        work
    }

    pub(crate) fn has_fresh(&self) -> bool {
        self.injected.load(Ordering::Acquire) > 0
    }

    fn injector(&self) -> std::sync::MutexGuard<'_, VecDeque<Fresh>> {
        // Nothing panics while it is held.
        self.injector.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake_one(&self) {
        fence(Ordering::SeqCst);
        if self.searching.load(Ordering::Relaxed) > 0 {
            return;
        }
        let mut idle = self.idle.load(Ordering::Relaxed);
        while idle != 0 {
            let bit = idle & idle.wrapping_neg();
            let before = self.idle.fetch_and(!bit, Ordering::AcqRel);
            if before & bit != 0 {
                self.desks[bit.trailing_zeros() as usize].parker.unpark();
                return;
            }
            idle = before & !bit;
        }
    }

    /// Rule 2.
    pub(crate) fn resume(&self, seat: Seat) {
        let desk = &self.desks[seat.worker as usize];
        desk.inbox.push(seat.place);
        fence(Ordering::SeqCst);
        if desk.asleep.load(Ordering::Relaxed) {
            desk.parker.unpark();
        }
    }

    /// Rule 3, first half.
    pub(crate) fn begin_search(&self) {
        self.searching.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn end_search(&self) {
        self.searching.fetch_sub(1, Ordering::SeqCst);
    }

    /// Rule 3, second half: `takes_fresh` is whether the worker has room for fresh work.
    pub(crate) fn lie_down(&self, worker: usize, takes_fresh: bool) {
        self.desks[worker].asleep.store(true, Ordering::Relaxed);
        if takes_fresh {
            self.idle.fetch_or(1 << worker, Ordering::SeqCst);
            self.end_search();
        }
        fence(Ordering::SeqCst);
    }

    pub(crate) fn get_up(&self, worker: usize) {
        self.desks[worker].asleep.store(false, Ordering::Relaxed);
        self.idle.fetch_and(!(1 << worker), Ordering::AcqRel);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Workers finish their turn, let what waits end with [`crate::Woke::Stopping`], and leave.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        for desk in &self.desks {
            desk.parker.unpark();
        }
        let left = std::mem::take(&mut *self.injector());
        drop(left);
        self.timers.stop();
    }
}
