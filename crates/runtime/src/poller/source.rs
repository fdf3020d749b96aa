//! A registered descriptor: its readiness and its waiters. Rules 2 to 4 of [`io`](crate::io).

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Waker;

use rustix::event::epoll::EventFlags;
use thalweg_queue::no_preempt::{LockGuard, lock};

use super::Poller;
use crate::waiters::{WaitId, Waiters};

/// The direction of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Read,
    Write,
}

/// The next call may succeed.
const READY: u32 = 1;
/// The peer has closed, or there is an error or urgent data: a short transfer does not mean that
/// the buffer is drained.
const EXCEPTIONAL: u32 = 2;
/// The counter of events is in the bits from here on.
const EVENT_COUNT: u32 = 4;

/// The last known readiness of one direction.
#[derive(Debug)]
pub(crate) struct Readiness(AtomicU32);

/// A value of [`Readiness`], to detect later events.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadinessSnapshot(u32);

impl ReadinessSnapshot {
    #[inline(always)]
    pub(crate) fn is_ready(self) -> bool {
        self.0 & READY != 0
    }
}

impl Readiness {
    #[inline(always)]
    pub(crate) fn snapshot(&self) -> ReadinessSnapshot {
        ReadinessSnapshot(self.0.load(Ordering::Acquire))
    }

    /// The system returned `WouldBlock` after `snapshot`.
    pub(crate) fn would_block(&self, snapshot: ReadinessSnapshot) {
        self.clear(snapshot, READY | EXCEPTIONAL);
    }

    /// The system transferred less than requested after `snapshot`, so the next call would block.
    /// This holds for TCP (epoll(7)).
    pub(crate) fn short_transfer(&self, snapshot: ReadinessSnapshot) {
        if snapshot.0 & EXCEPTIONAL == 0 {
            self.clear(snapshot, READY);
        }
    }

    fn clear(&self, snapshot: ReadinessSnapshot, bits: u32) {
        // It fails if there was an event since the snapshot.
        let _ = self.0.compare_exchange(
            snapshot.0,
            snapshot.0 & !bits,
            Ordering::AcqRel,
            Ordering::Relaxed,
        );
    }

    fn on_event(&self, bits: u32) {
        let more = |now: u32| Some(now.wrapping_add(EVENT_COUNT) | READY | bits);
        // It always succeeds: `more` returns `Some`.
        let _ = self
            .0
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, more);
    }
}

#[derive(Debug)]
pub(crate) struct Source {
    read: Readiness,
    write: Readiness,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    registration: Option<(Arc<Poller>, u64)>,
    readers: Waiters,
    writers: Waiters,
    /// The number of waits so far.
    wait_count: u64,
}

impl State {
    fn waiters(&mut self, direction: Direction) -> &mut Waiters {
        match direction {
            Direction::Read => &mut self.readers,
            Direction::Write => &mut self.writers,
        }
    }

    fn wait_id(&mut self) -> WaitId {
        self.wait_count += 1;
        self.wait_count
    }
}

impl Source {
    fn with_readiness(readiness: u32) -> Arc<Self> {
        Arc::new(Self {
            read: Readiness(AtomicU32::new(readiness)),
            write: Readiness(AtomicU32::new(readiness)),
            state: Mutex::default(),
        })
    }

    /// A source that is assumed to be ready.
    pub(crate) fn new() -> Arc<Self> {
        Self::with_readiness(READY)
    }

    /// A source that must be waited for first.
    pub(crate) fn new_unready() -> Arc<Self> {
        Self::with_readiness(0)
    }

    #[inline(always)]
    pub(crate) fn readiness(&self, direction: Direction) -> &Readiness {
        match direction {
            Direction::Read => &self.read,
            Direction::Write => &self.write,
        }
    }

    fn state(&self) -> LockGuard<'_, State> {
        lock(&self.state)
    }

    /// Rules 2 and 4: registers the source with `here`, the caller's poller, if it is not
    /// registered, if its poller is closed, or if it has no waiters.
    fn ensure_registered(
        self: &Arc<Self>,
        state: &mut State,
        here: &Arc<Poller>,
        fd: BorrowedFd<'_>,
    ) -> io::Result<()> {
        if let Some((there, key)) = &state.registration {
            if Arc::ptr_eq(there, here) {
                return Ok(());
            }
            let is_waited_for = !state.readers.is_empty() || !state.writers.is_empty();
            if is_waited_for && !there.is_closed() {
                return Ok(());
            }
            there.remove(*key, fd);
            state.registration = None;
        }
        let key = here.add(fd, self)?;
        state.registration = Some((Arc::clone(here), key));
        Ok(())
    }

    /// Called by its poller: rule 3.
    pub(super) fn on_event(&self, flags: EventFlags) {
        let failed = EventFlags::ERR | EventFlags::HUP;
        let ended = failed | EventFlags::RDHUP | EventFlags::PRI;
        let readable = flags.intersects(EventFlags::IN | ended);
        let writable = flags.intersects(EventFlags::OUT | failed);
        let mark = |these| {
            if flags.intersects(these) {
                EXCEPTIONAL
            } else {
                0
            }
        };
        if readable {
            self.read.on_event(mark(ended));
        }
        if writable {
            self.write.on_event(mark(failed));
        }
        let take = |these: &mut Waiters, are_woken| match are_woken {
            true => std::mem::take(these),
            false => Waiters::default(),
        };
        let (readers, writers) = {
            let mut state = self.state();
            (
                take(&mut state.readers, readable),
                take(&mut state.writers, writable),
            )
        };
        readers.wake();
        writers.wake();
    }

    /// Deregisters the source. Precondition: `fd` is still open.
    pub(crate) fn deregister(&self, fd: BorrowedFd<'_>) {
        if let Some((poller, key)) = self.state().registration.take() {
            poller.remove(key, fd);
        }
    }
}

/// One wait for one direction of a source. Dropping it removes its waker.
#[derive(Debug)]
pub(crate) struct ReadinessWait<'a> {
    source: &'a Arc<Source>,
    direction: Direction,
    wait_id: Option<WaitId>,
}

impl<'a> ReadinessWait<'a> {
    pub(crate) fn new(source: &'a Arc<Source>, direction: Direction) -> Self {
        Self {
            source,
            direction,
            wait_id: None,
        }
    }

    /// Returns `true` if the source is ready. Otherwise `waker` will be woken. `poller` is that of
    /// the caller's worker.
    ///
    /// # Errors
    /// The error of the registration.
    pub(crate) fn register(
        &mut self,
        poller: &Arc<Poller>,
        fd: BorrowedFd<'_>,
        waker: &Waker,
    ) -> io::Result<bool> {
        let mut state = self.source.state();
        self.source.ensure_registered(&mut state, poller, fd)?;
        if self.source.readiness(self.direction).snapshot().is_ready() {
            return Ok(true);
        }
        let wait_id = *self.wait_id.get_or_insert_with(|| state.wait_id());
        let old = state.waiters(self.direction).add(wait_id, waker);
        drop(state);
        drop(old);
        Ok(false)
    }
}

impl Drop for ReadinessWait<'_> {
    fn drop(&mut self) {
        if let Some(wait_id) = self.wait_id {
            let waker = self.source.state().waiters(self.direction).remove(wait_id);
            drop(waker);
        }
    }
}
