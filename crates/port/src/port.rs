//! A port: the ring of completions that one event loop, or one thread, reaps.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, TryLockError, Weak};
use std::task::Waker;

use thalweg_queue::quiet::lock;
use thalweg_queue::{EventFd, Gate, Ring, Spin};
use thalweg_runtime::{WakeReason, wait};

use crate::call::CallCore;
use crate::code::{Code, Failure, no_memory, would_park};
use crate::completion::{Completion, Kind};
use crate::handles;
use crate::host::end_host_calls;
use crate::notice::notice_was_reaped;
use crate::open_state::{EnterError, OpenState};
use crate::queued_bytes::QueuedBytes;
use crate::slab::Slab;
use crate::sync::CachePadded;
use crate::sync::{AtomicBool, Ordering};

/// Most calls that may be unreaped at once on one port.
const MAX_CAPACITY: u32 = 65_536;

/// A completion queue with an eventfd. Submit from any thread, reap from one at a time, close from any.
#[derive(Debug)]
pub struct Port {
    ring: Ring<Completion>,
    capacity: u32,
    /// Inside: the slots that are promised to calls under way and to completions not yet reaped. It changes with each call, and who completes one
    /// looks at the rest alone.
    open_state: CachePadded<OpenState>,
    /// What `open_state` says, too, for who completes.
    is_closed: AtomicBool,
    gate: Gate,
    event: Arc<EventFd>,
    event_waker: Waker,
    /// The calls whose completions come here.
    calls: Mutex<Slab<Weak<CallCore>>>,
    /// Of the results in the ring.
    unreaped: QueuedBytes,
    /// What a host was asked here and has perhaps not answered.
    host_calls: Mutex<Vec<u64>>,
    /// Somebody holds a [`Reap`].
    reaping: AtomicBool,
    /// The reaper's: how long spinning pays.
    spin: Mutex<Spin>,
}

fn closed() -> Failure {
    Code::Closed.because("the port is closed")
}

/// Places that are given back in one go.
const RELEASE_BATCH: u32 = 64;

/// The one who reaps a port just now: an iterator over what has completed.
#[derive(Debug)]
pub struct Reap<'a> {
    port: &'a Port,
    /// Places to give back.
    reaped: u32,
}

impl Reap<'_> {
    fn give_back(&mut self) {
        self.port
            .open_state
            .0
            .leave(std::mem::take(&mut self.reaped));
    }

    fn note_reaped(&mut self, completion: &Completion) {
        self.reaped += u32::from(self.port.on_reaped(completion));
        if self.reaped == RELEASE_BATCH {
            self.give_back();
        }
    }

    /// Fills `completions` from the first on, as far as something has completed. Of each it asks for the memory before it looks into the first.
    pub fn fill(&mut self, completions: &mut [Option<Completion>]) {
        let mut filled = 0;
        for place in &mut *completions {
            let Some(completion) = self.port.ring.pop() else {
                break;
            };
            completion.0.prefetch();
            *place = Some(completion);
            filled += 1;
        }
        for completion in completions[..filled].iter().flatten() {
            self.note_reaped(completion);
            completion.0.prefetch_contents();
        }
    }
}

impl Iterator for Reap<'_> {
    type Item = Completion;

    fn next(&mut self) -> Option<Completion> {
        let completion = self.port.ring.pop()?;
        self.note_reaped(&completion);
        Some(completion)
    }
}

impl Drop for Reap<'_> {
    fn drop(&mut self) {
        self.give_back();
        self.port.reaping.store(false, Ordering::Release);
    }
}

impl Port {
    /// A port on which `capacity` calls may be unreaped at once.
    ///
    /// # Errors
    /// `argument`: a capacity of 0 or beyond 65,536; `overloaded`: no file descriptor, or no memory for as many completions.
    pub fn open(capacity: u32) -> Result<Arc<Self>, Failure> {
        if capacity == 0 || capacity > MAX_CAPACITY {
            return Err(Code::Argument.because(format!(
                "a port's capacity is 1 to {MAX_CAPACITY}, not {capacity}"
            )));
        }
        let ring = Ring::new(capacity as usize)
            .map_err(|_| no_memory(capacity as usize * size_of::<Completion>()))?;
        let event = EventFd::new()
            .map_err(|error| Code::Overloaded.because(format!("no eventfd: {error}")))?;
        let event = Arc::new(event);
        Ok(Arc::new(Self {
            ring,
            capacity,
            open_state: CachePadded(OpenState::new()),
            is_closed: AtomicBool::new(false),
            gate: Gate::new(),
            event_waker: Waker::from(Arc::clone(&event)),
            event,
            calls: Mutex::default(),
            unreaped: QueuedBytes::default(),
            host_calls: Mutex::default(),
            reaping: AtomicBool::new(false),
            spin: Mutex::default(),
        }))
    }

    /// Rule 1: promises a slot, where the results that were not reaped have fewer than `bytes`. What was promised completes, whatever it has.
    ///
    /// # Errors
    /// `overloaded` or `closed`.
    #[inline]
    pub(crate) fn reserve_below(&self, bytes: u64) -> Result<(), Failure> {
        if self.unreaped.bytes() >= bytes {
            return Err(Code::Overloaded.because(format!(
                "results of more than {bytes} bytes were not reaped"
            )));
        }
        self.reserve()
    }

    /// Rule 1: promises a slot.
    ///
    /// # Errors
    /// `overloaded` or `closed`.
    pub(crate) fn reserve(&self) -> Result<(), Failure> {
        self.open_state
            .0
            .enter_below(self.capacity)
            .map_err(|why| match why {
                EnterError::Full => Code::Overloaded.because(format!(
                    "all {} places of the port are taken: reap first",
                    self.capacity
                )),
                _ => closed(),
            })
    }

    /// Gives back a slot that was promised and not used.
    pub(crate) fn unreserve(&self) {
        self.open_state.0.leave(1);
    }

    /// How many slots are promised.
    #[cfg(all(test, loom))]
    pub(crate) fn reserved(&self) -> u32 {
        self.open_state.0.inside()
    }

    /// Fills a promised slot. On a closed port the completion is dropped.
    pub(crate) fn complete(&self, completion: Completion) {
        self.put(completion);
        self.announce();
    }

    /// The first half of [`complete`](Self::complete), which locks nothing.
    #[inline]
    pub(crate) fn put(&self, completion: Completion) {
        self.unreaped.add(&completion.data);
        // Rule 1: there is room.
        let refused = self.ring.push(completion);
        debug_assert!(refused.is_ok(), "more completions than reservations");
    }

    /// The other half.
    pub(crate) fn announce(&self) {
        // Its fence and that of `close`: who closes finds the completion, or the closing is seen here.
        self.gate.signal();
        if self.is_closed.load(Ordering::Relaxed) {
            self.clear();
        }
    }

    /// A call completes here from now on. Where it is in the list.
    ///
    /// # Errors
    /// `overloaded`: there is no memory for the list.
    pub(crate) fn add_call(&self, call: &Arc<CallCore>) -> Result<usize, Failure> {
        lock(&self.calls).insert(Arc::downgrade(call))
    }

    /// It does so no longer.
    pub(crate) fn remove_call(&self, place: usize) {
        lock(&self.calls).remove(place);
    }

    /// Of a closed one: drops what was not reaped.
    fn clear(&self) {
        while let Some(completion) = self.ring.pop() {
            if self.on_reaped(&completion) {
                self.unreserve();
            }
        }
    }

    /// It was taken out. Whether its place is free now.
    fn on_reaped(&self, completion: &Completion) -> bool {
        self.unreaped.remove(&completion.data);
        completion.kind != Kind::StillRunning || notice_was_reaped(completion.handle)
    }

    pub(crate) fn check_open(&self) -> Result<(), Failure> {
        if self.open_state.0.is_closed() {
            Err(closed())
        } else {
            Ok(())
        }
    }

    /// Takes out what has completed, in one thread at a time.
    ///
    /// # Errors
    /// `argument`: somebody else is at it.
    pub fn reap(&self) -> Result<Reap<'_>, Failure> {
        if self.reaping.swap(true, Ordering::Acquire) {
            return Err(Code::Argument.because("another thread reaps this port"));
        }
        Ok(Reap {
            port: self,
            reaped: 0,
        })
    }

    /// Bytes of the results that were not reaped, without those of up to 512 bytes.
    pub fn unreaped_bytes(&self) -> u64 {
        self.unreaped.bytes()
    }

    /// Whether there is nothing to reap.
    pub fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// The file descriptor that becomes readable after [`arm`](Self::arm) said `false`.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }

    /// Asks for the eventfd to become readable with the next completion. `true`: there is one to reap now, and
    /// nothing was armed.
    ///
    /// # Errors
    /// `closed`.
    pub fn arm(&self) -> Result<bool, Failure> {
        self.check_open()?;
        self.event.reset();
        if !self.ring.is_empty() {
            return Ok(true);
        }
        self.gate.arm(self.event_waker.clone());
        if self.ring.is_empty() && !self.open_state.0.is_closed() {
            return Ok(false);
        }
        self.gate.disarm();
        Ok(true)
    }

    /// Waits until there is something to reap.
    ///
    /// # Errors
    /// `timed_out` at the deadline ([`thalweg_queue::clock`]; 0: at once), `interrupted` by a signal, `closed`; `would_park` where
    /// an actor must not wait, as in [`native`](thalweg_runtime::native).
    pub fn wait(&self, deadline: u64) -> Result<(), Failure> {
        let found = || !self.ring.is_empty() || self.open_state.0.is_closed();
        let mut spin = match self.spin.try_lock() {
            Ok(spin) => spin,
            Err(TryLockError::Poisoned(spin)) => spin.into_inner(),
            Err(TryLockError::WouldBlock) => {
                return Err(Code::Argument.because("another thread waits on this port"));
            }
        };
        loop {
            if found() {
                break;
            }
            if deadline == 0 {
                return Err(Code::TimedOut.because("nothing has completed yet"));
            }
            if spin.until(found) {
                break;
            }
            if !wait::can_park() {
                return Err(would_park());
            }
            self.gate.arm(wait::waker());
            if found() {
                self.gate.disarm();
                break;
            }
            let woke = spin.sleep(|| wait::park(Some(deadline)));
            if woke != WakeReason::Woken {
                self.gate.disarm();
            }
            match woke {
                _ if found() => break,
                WakeReason::Woken => {}
                WakeReason::TimedOut => {
                    return Err(Code::TimedOut.because("nothing completed until the deadline"));
                }
                WakeReason::Interrupted => {
                    return Err(Code::Interrupted.because("a signal arrived"));
                }
                WakeReason::Stopping => return Err(Code::ShutDown.because("the runtime stops")),
            }
        }
        self.check_open()
    }

    /// Ends the calls under way as cancelled, and wakes who waits. What was not reaped is dropped.
    pub fn close(&self) {
        if !self.open_state.0.close() {
            return;
        }
        self.is_closed.store(true, Ordering::Relaxed);
        let calls = std::mem::take(&mut *lock(&self.calls));
        for call in calls.iter().filter_map(Weak::upgrade) {
            call.port_closed(self);
        }
        let host_calls = std::mem::take(&mut *lock(&self.host_calls));
        end_host_calls(host_calls);
        self.gate.signal();
        self.clear();
    }

    /// A host is asked here, by the call with this handle.
    pub(crate) fn add_host_call(&self, call: u64) {
        let prune = {
            let mut host_calls = lock(&self.host_calls);
            host_calls.push(call);
            let is_due = host_calls.len() >= 16 && host_calls.len().is_power_of_two();
            is_due.then(|| std::mem::take(&mut *host_calls))
        };
        if let Some(mut prune) = prune {
            // Without the lock, under which nothing else may be locked.
            prune.retain(|call| handles::find(*call).is_ok());
            lock(&self.host_calls).append(&mut prune);
        }
    }
}
