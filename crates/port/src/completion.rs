//! A port: the ring of completions that one event loop, or one thread, reaps.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, TryLockError};
use std::task::Waker;

use thalweg_queue::{EventFd, Gate, Ring, Spin};
use thalweg_runtime::{Woke, wait};
use thalweg_wire::message;

use crate::call::Sink;
use crate::code::{Code, Failure, would_park};
use crate::handles::{self, Object};

/// Most calls that may be unreaped at once on one port.
const MOST: u32 = 65_536;

/// What a completion tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A call ended.
    CallEnded,
    /// An armed stream has something to read, or has ended.
    StreamReady,
}

/// One ending, with what came back. Dropping it closes the handles in its message that nobody took.
#[derive(Debug)]
pub struct Completed {
    /// What the submission carried.
    pub token: u64,
    /// The call's or the stream's handle.
    pub handle: u64,
    /// What it tells.
    pub kind: Kind,
    /// How it ended.
    pub code: Code,
    /// A message; empty unless the code is `Ok` or `Error`.
    pub data: Vec<u8>,
    /// Why, where it failed.
    pub message: String,
}

impl Completed {
    /// The handle number `index` of the message, which is the caller's from now on.
    ///
    /// # Errors
    /// `argument`: there is none with that number, or it was taken.
    pub fn take(&mut self, index: u32) -> Result<u64, Failure> {
        let none = || Code::Argument.because(format!("the message has no handle {index} to take"));
        let count = message::open_any(&self.data).map_or(0, |m| m.handles().len());
        if index as usize >= count {
            return Err(none());
        }
        let at = message::HEADER as usize + 8 * index as usize;
        let place = self.data[at..].first_chunk_mut().ok_or_else(none)?;
        let handle = u64::from_le_bytes(std::mem::take(place));
        if handle == 0 { Err(none()) } else { Ok(handle) }
    }
}

impl Drop for Completed {
    fn drop(&mut self) {
        if let Ok(message) = message::open_any(&self.data) {
            for handle in message.handles().filter(|handle| handle.0 != 0) {
                // What is closed already needs no closing.
                let _ = handles::close_handle(handle.0);
            }
        }
    }
}

/// A completion queue with an eventfd. Submit from any thread, reap from one at a time, close from any.
#[derive(Debug)]
pub struct Port {
    ring: Ring<Completed>,
    capacity: usize,
    /// Slots promised to calls under way and to completions not yet reaped.
    reserved: AtomicUsize,
    gate: Gate,
    event: Arc<EventFd>,
    event_waker: Waker,
    closed: AtomicBool,
    /// Somebody holds a [`Reap`].
    reaping: AtomicBool,
    /// The reaper's: how long spinning pays.
    spin: Mutex<Spin>,
}

/// The one who reaps a port just now: an iterator over what has completed.
#[derive(Debug)]
pub struct Reap<'a> {
    port: &'a Port,
}

impl Iterator for Reap<'_> {
    type Item = Completed;

    fn next(&mut self) -> Option<Completed> {
        self.port.take()
    }
}

impl Drop for Reap<'_> {
    fn drop(&mut self) {
        self.port.reaping.store(false, Ordering::Release);
    }
}

impl Port {
    /// A port on which `capacity` calls may be unreaped at once.
    ///
    /// # Errors
    /// `argument`: a capacity of 0 or beyond 65,536; `overloaded`: no file descriptor.
    pub fn open(capacity: u32) -> Result<Arc<Self>, Failure> {
        if capacity == 0 || capacity > MOST {
            return Err(
                Code::Argument.because(format!("a port's capacity is 1 to {MOST}, not {capacity}"))
            );
        }
        let event = EventFd::new()
            .map_err(|error| Code::Overloaded.because(format!("no eventfd: {error}")))?;
        let event = Arc::new(event);
        Ok(Arc::new(Self {
            ring: Ring::new(capacity as usize).expect("checked above"),
            capacity: capacity as usize,
            reserved: AtomicUsize::new(0),
            gate: Gate::new(),
            event_waker: Waker::from(Arc::clone(&event)),
            event,
            closed: AtomicBool::new(false),
            reaping: AtomicBool::new(false),
            spin: Mutex::default(),
        }))
    }

    /// Rule 1: promises a slot.
    ///
    /// # Errors
    /// `overloaded` or `closed`.
    pub(crate) fn reserve(&self) -> Result<(), Failure> {
        self.check_open()?;
        if self.reserved.fetch_add(1, Ordering::Relaxed) >= self.capacity {
            self.reserved.fetch_sub(1, Ordering::Relaxed);
            return Err(Code::Overloaded.because(format!(
                "all {} places of the port are taken: reap first",
                self.capacity
            )));
        }
        Ok(())
    }

    /// Gives back a slot that was promised and not used.
    pub(crate) fn unreserve(&self) {
        self.reserved.fetch_sub(1, Ordering::Relaxed);
    }

    /// Fills a promised slot. On a closed port the completion is dropped.
    pub(crate) fn complete(&self, completed: Completed) {
        if self.closed.load(Ordering::Acquire) {
            self.unreserve();
            return;
        }
        // Rule 1: there is room.
        let refused = self.ring.push(completed);
        debug_assert!(refused.is_ok(), "more completions than reservations");
        self.gate.signal();
    }

    fn check_open(&self) -> Result<(), Failure> {
        if self.closed.load(Ordering::Acquire) {
            Err(Code::Closed.because("the port is closed"))
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
        Ok(Reap { port: self })
    }

    fn take(&self) -> Option<Completed> {
        let completed = self.ring.pop()?;
        self.unreserve();
        Some(completed)
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
        if self.ring.is_empty() && !self.closed.load(Ordering::Acquire) {
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
        let found = || !self.ring.is_empty() || self.closed.load(Ordering::Acquire);
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
            if !wait::may_park() {
                return Err(would_park());
            }
            self.gate.arm(wait::waker());
            if found() {
                self.gate.disarm();
                break;
            }
            let woke = spin.sleep(|| wait::park(Some(deadline)));
            if woke != Woke::Woken {
                self.gate.disarm();
            }
            match woke {
                _ if found() => break,
                Woke::Woken => {}
                Woke::TimedOut => {
                    return Err(Code::TimedOut.because("nothing completed until the deadline"));
                }
                Woke::Interrupted => {
                    return Err(Code::Interrupted.because("a signal arrived"));
                }
                Woke::Stopping => return Err(Code::ShutDown.because("the runtime stops")),
            }
        }
        self.check_open()
    }

    /// Ends the calls under way as cancelled, and wakes who waits. What was not reaped is dropped.
    pub fn close(&self) {
        if self.closed.swap(true, Ordering::SeqCst) {
            return;
        }
        for object in handles::all() {
            if let Object::Call(call) = object
                && matches!(&call.sink, Sink::Port { port, .. } if std::ptr::eq(&raw const **port, self))
            {
                call.stop(Code::Cancelled.because("the port was closed"));
            }
        }
        while self.take().is_some() {}
        self.gate.signal();
    }
}
