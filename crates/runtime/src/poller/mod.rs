//! The epoll instance of one worker, and its registered sources. The rules are those of
//! [`io`](crate::io).

mod source;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Wake;

use rustix::buffer::spare_capacity;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, epoll, eventfd, poll};
use thalweg_queue::clock;
use thalweg_queue::no_preempt::{LockGuard, lock};

pub(crate) use self::source::{Direction, ReadinessWait, Source};

/// The maximum number of events per wait. At about 1 us each, other actors wait for at most 256 us.
const MAX_EVENTS: usize = 256;
/// The key of the poller's waker.
const WAKER_KEY: u64 = u64::MAX;

/// Ends the worker's wait in the poller.
#[derive(Debug)]
pub(crate) struct PollerWaker(OwnedFd);

impl Wake for PollerWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // It fails only if the counter overflows after 2^64 writes: it is edge-triggered and never
        // read.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }
}

#[derive(Debug)]
pub(crate) struct Poller {
    epoll: OwnedFd,
    pub(crate) waker: Arc<PollerWaker>,
    epoch: u64,
    /// The number of registered sources.
    source_count: AtomicUsize,
    slab: Mutex<SourceSlab>,
}

#[derive(Debug, Default)]
struct SourceSlab {
    slots: Vec<SourceSlot>,
    free: Vec<u32>,
    closed: bool,
}

/// An event's key is the slot's index and, in the upper half, its generation. So a late event does
/// not reach the slot's next source.
#[derive(Debug)]
struct SourceSlot {
    generation: u32,
    source: Option<Arc<Source>>,
}

/// How long to wait for events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PollTimeout {
    /// Do not wait.
    Immediate,
    /// Until this time of [`clock`]; `None`: no deadline.
    Deadline(Option<u64>),
}

/// Buffers that a worker reuses to receive events.
#[derive(Default)]
pub(crate) struct EventBuffer {
    events: Vec<epoll::Event>,
    ready: Vec<(Arc<Source>, epoll::EventFlags)>,
}

impl Poller {
    pub(crate) fn new() -> io::Result<Self> {
        crate::watch_forks();
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let waker = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let edges = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&epoll, &waker, epoll::EventData::new_u64(WAKER_KEY), edges)?;
        Ok(Self {
            epoll,
            waker: Arc::new(PollerWaker(waker)),
            epoch: crate::epoch(),
            source_count: AtomicUsize::new(0),
            slab: Mutex::default(),
        })
    }

    fn slab(&self) -> LockGuard<'_, SourceSlab> {
        lock(&self.slab)
    }

    /// Whether there is anything to wait for.
    #[inline(always)]
    pub(crate) fn has_sources(&self) -> bool {
        self.source_count.load(Ordering::Relaxed) > 0
    }

    /// Whether the poller belongs to the parent process, and must not be touched.
    pub(crate) fn is_forked(&self) -> bool {
        self.epoch != crate::epoch()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_forked() || self.slab().closed
    }

    /// Registers `fd`: from now on, `source` gets its edges; the present readiness is the first.
    /// Returns the key for [`remove`](Self::remove).
    ///
    /// # Errors
    /// The system's error: `AlreadyExists`, or EPERM for a descriptor that cannot be polled.
    pub(crate) fn add(&self, fd: BorrowedFd<'_>, source: &Arc<Source>) -> io::Result<u64> {
        let mut guard = self.slab();
        let slab = &mut *guard;
        let index = slab.free.pop().unwrap_or_else(|| {
            slab.slots.push(SourceSlot {
                generation: 0,
                source: None,
            });
            (slab.slots.len() - 1) as u32
        });
        let slot = &mut slab.slots[index as usize];
        let key = u64::from(slot.generation) << 32 | u64::from(index);
        let edges = epoll::EventFlags::IN
            | epoll::EventFlags::OUT
            | epoll::EventFlags::RDHUP
            | epoll::EventFlags::PRI
            | epoll::EventFlags::ET;
        match epoll::add(&self.epoll, fd, epoll::EventData::new_u64(key), edges) {
            Ok(()) => {
                slot.source = Some(Arc::clone(source));
                self.source_count.fetch_add(1, Ordering::Relaxed);
                Ok(key)
            }
            Err(error) => {
                slab.free.push(index);
                Err(error.into())
            }
        }
    }

    /// Deregisters. Precondition: `fd` is still open.
    pub(crate) fn remove(&self, key: u64, fd: BorrowedFd<'_>) {
        if self.is_forked() {
            return;
        }
        let mut guard = self.slab();
        let slab = &mut *guard;
        let index = key as u32;
        let Some(slot) = slab.slots.get_mut(index as usize) else {
            return;
        };
        if u64::from(slot.generation) != key >> 32 || slot.source.take().is_none() {
            return;
        }
        // The highest generation is excluded, because the last slot with it would have the waker's
        // key.
        slot.generation = slot.generation.wrapping_add(1) & 0x7fff_ffff;
        slab.free.push(index);
        self.source_count.fetch_sub(1, Ordering::Relaxed);
        // It fails if the descriptor was closed by other code; then it is deregistered already.
        let _ = epoll::delete(&self.epoll, fd);
    }

    /// Called by the poller's worker: waits for events and wakes their waiters. Returns whether
    /// there were events.
    pub(crate) fn poll(&self, buffer: &mut EventBuffer, timeout: PollTimeout) -> bool {
        match timeout {
            PollTimeout::Immediate => {}
            PollTimeout::Deadline(None | Some(u64::MAX)) => return self.take(buffer, None),
            // Before Linux 5.11, epoll has a resolution of 1 ms. `ppoll` has a finer one, and an
            // epoll can be polled.
            PollTimeout::Deadline(Some(deadline)) => {
                let remaining = deadline.saturating_sub(clock::now());
                let mut polled = [PollFd::new(&self.epoll, PollFlags::IN)];
                if !matches!(poll(&mut polled, Some(&timespec(remaining))), Ok(1)) {
                    return false;
                }
            }
        }
        self.take(buffer, Some(&timespec(0)))
    }

    fn take(&self, buffer: &mut EventBuffer, timeout: Option<&Timespec>) -> bool {
        let EventBuffer { events, ready } = buffer;
        events.reserve(MAX_EVENTS);
        // EINTR means no event. No other error is possible with this epoll.
        if epoll::wait(&self.epoll, spare_capacity(events), timeout).is_err() || events.is_empty() {
            return false;
        }
        {
            let slab = self.slab();
            for event in events.drain(..) {
                let key = event.data.u64();
                if let Some(slot) = slab.slots.get(key as u32 as usize)
                    && u64::from(slot.generation) == key >> 32
                    && let Some(source) = &slot.source
                {
                    ready.push((Arc::clone(source), event.flags));
                }
            }
        }
        for (source, flags) in ready.drain(..) {
            source.on_event(flags);
        }
        true
    }

    /// The worker ends: rule 4.
    pub(crate) fn close(&self) {
        let remaining: Vec<_> = {
            let mut slab = self.slab();
            slab.closed = true;
            slab.slots
                .iter_mut()
                .filter_map(|p| p.source.take())
                .collect()
        };
        self.source_count.store(0, Ordering::Relaxed);
        for source in remaining {
            source.on_event(epoll::EventFlags::IN | epoll::EventFlags::OUT);
        }
    }
}

pub(crate) fn timespec(ns: u64) -> Timespec {
    Timespec {
        tv_sec: (ns / 1_000_000_000) as i64,
        tv_nsec: (ns % 1_000_000_000) as _,
    }
}

impl AsFd for Poller {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}
