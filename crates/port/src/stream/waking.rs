//! When a stream's reader is woken, and how where it does not wait inside of `acquire`: as a task, or as an event loop
//! through its port.
//!
//! A lively stream's reader lingers. Woken for every record, it would take one at a time and cost its writers a context switch
//! each. So a reader that was given something just now, and finds nothing more, first waits a while without being armed: 64 us,
//! and twice as long each time that something came meanwhile, up to 512 us: a lively stream wakes its reader 2,000 times a second, 1 % of a processor at 5 us a
//! wake-up. A stream's options may say less, for who wants each record soon. If nothing came it is armed, and the next
//! record wakes it at once. This is a wait with an end, not a poll: a stream without records wakes nobody.
//!
//! A stream that was full while its reader slept is small for its writers: they fill it in the time that a wake-up takes. There a reader in a thread of
//! its own looks again for 40 us before it lingers, as long as that succeeds, and yields its processor each time, which a writer may need. In a stream
//! with room enough it would only take records away from under a writer's hands, one by one, whose lines the processors then hand to and fro.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Wake, Waker};
use std::thread;

use thalweg_queue::{EventFd, barrier, clock};

use crate::code::{Code, Failure};
use crate::completion::Completion;
use crate::port::Port;
use crate::stream::core::{StreamCore, lock};
use crate::stream::queue::Queue;

/// What a wake across processors costs, doubled: a shorter wait would not save one.
const MIN_LINGER_NS: u64 = 64_000;

/// How long a reader looks again before it sleeps where the stream was full.
const SPIN_NS: u64 = 40_000;

/// Records between two sleeps up to which a fence for each costs less than one `membarrier`.
const FENCE_LIMIT: u64 = 512;

/// How writers tell of what they wrote, by bits: without a fence; with one; by calling the reader's callback; and other readers too.
pub(super) const UNFENCED: u8 = 0;
pub(super) const FENCED: u8 = 1;
pub(super) const CALLBACK: u8 = 2;
pub(super) const MANY_READERS: u8 = 4;

/// Wakes a reader that waits through a port. It has a reserved slot there, and gives it back if it is replaced by another
/// before it was woken.
struct PortWaker {
    port: Arc<Port>,
    token: u64,
    handle: u64,
    is_announced: AtomicBool,
}

impl Drop for PortWaker {
    fn drop(&mut self) {
        if !*self.is_announced.get_mut() {
            self.port.unreserve();
        }
    }
}

/// What tells `port` once. It takes a place there.
///
/// # Errors
/// `overloaded`, `closed`: the port takes no more.
pub(super) fn port_waker(port: &Arc<Port>, token: u64, handle: u64) -> Result<Waker, Failure> {
    port.reserve()?;
    Ok(Waker::from(Arc::new(PortWaker {
        port: Arc::clone(port),
        token,
        handle,
        is_announced: AtomicBool::new(false),
    })))
}

impl Wake for PortWaker {
    fn wake(self: Arc<Self>) {
        // The slot holds one completion.
        if self.is_announced.swap(true, Ordering::Relaxed) {
            return;
        }
        self.port
            .complete(Completion::ready(self.token, self.handle));
    }
}

/// Arms a stream when its lingering is over: the timer's side of [`StreamCore::arm_port`].
struct LingerTimer {
    stream: Weak<StreamCore>,
    wake_request: u64,
    arm_port: Waker,
}

impl Wake for LingerTimer {
    fn wake(self: Arc<Self>) {
        let Some(stream) = self.stream.upgrade() else {
            return;
        };
        let mut queue = lock(&stream.queue);
        if queue.wake_request != self.wake_request {
            return;
        }
        // Under the lock: a reader that asks to be woken in another way meanwhile comes after this.
        let ready = stream.is_readable(&queue) || {
            queue.linger = 0;
            stream.arm_gate(&mut queue, self.arm_port.clone());
            stream.is_readable(&queue) && stream.gate.disarm()
        };
        drop(queue);
        if ready {
            self.arm_port.wake_by_ref();
        }
    }
}

impl StreamCore {
    /// A writer, after it committed: wakes the reader if that is armed. Without a fence, for which a reader that sleeps seldom pays by
    /// `membarrier`; one that sleeps often has writers pass it.
    #[inline]
    pub(super) fn wake_reader(&self) {
        match self.wake_mode.load(Ordering::Relaxed) {
            UNFENCED => self.count_wake(self.gate.signal_light()),
            FENCED => {
                self.count_wake(self.gate.signal());
                // Behind the fence: where the kernel passes no barrier for others, a word that changed is seen here, or what was committed there.
                if self.wake_mode.load(Ordering::Relaxed) & (CALLBACK | MANY_READERS) != 0 {
                    self.wake_readers();
                }
            }
            _ => self.wake_readers(),
        }
    }

    #[inline]
    pub(super) fn count_wake(&self, woke: bool) {
        if woke {
            self.wakes.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The same where the reader may wait for more than what was just committed.
    pub(super) fn wake_readers(&self) {
        let wake_mode = self.wake_mode.load(Ordering::Relaxed);
        if wake_mode & CALLBACK != 0 {
            self.deliver();
        } else {
            self.count_wake(self.gate.signal());
        }
        if wake_mode & MANY_READERS != 0 {
            self.tees().iter().for_each(|tee| tee.wake_readers());
        }
    }

    /// The reader: from now on a writer wakes `waker`. It looks again before it sleeps.
    ///
    /// Only where both the arming before and this one were fenced is a fence enough here: a writer that saw another word than is there now
    /// loaded it before the heavy barrier that came with the change, and what it had committed is seen after that.
    pub(super) fn arm_gate(&self, queue: &mut Queue, waker: Waker) {
        queue.stats.parks += 1;
        let delivered = queue.counts.delivered;
        let sleeps_often = delivered - queue.armed_at < FENCE_LIMIT || !barrier::is_asymmetric();
        queue.armed_at = delivered;
        // Under the lock, as every change of the word. Where there are other readers writers always pass the fence.
        let before = self.wake_mode.load(Ordering::Relaxed);
        let wake_mode = if sleeps_often { FENCED } else { UNFENCED };
        self.wake_mode
            .store((before & MANY_READERS) | wake_mode, Ordering::Relaxed);
        if before & MANY_READERS != 0 || (before & FENCED != 0 && sleeps_often) {
            self.gate.arm(waker);
        } else {
            self.gate.arm_heavy(waker);
        }
    }

    /// Whether `acquire` would not wait.
    fn is_readable(&self, queue: &Queue) -> bool {
        self.has_ended.load(Ordering::Acquire) || queue.has_records()
    }

    /// The reader found nothing. Whether there is something now, where the stream was full before and the reader has looked for a while, at most until
    /// `deadline`.
    pub(super) fn spin_for_records(&self, deadline: u64) -> bool {
        if !lock(&self.queue).should_spin {
            return false;
        }
        let until = deadline.min(clock::now() + SPIN_NS);
        while clock::now() < until {
            thread::yield_now();
            if self.is_readable(&lock(&self.queue)) {
                return true;
            }
        }
        lock(&self.queue).should_spin = false;
        false
    }

    /// The reader found nothing. Until when it lingers, unless `waker` is woken before, since the stream fills; `None`: it
    /// does not linger, and is to be armed.
    pub(super) fn start_linger(&self, waker: Waker) -> Option<u64> {
        let mut queue = lock(&self.queue);
        let limit = self.options.linger_ns;
        if !std::mem::take(&mut queue.delivered_since_empty) || limit < MIN_LINGER_NS {
            queue.linger = 0;
            queue.lingering_reader = None;
            return None;
        }
        let linger = queue.linger.max(MIN_LINGER_NS);
        queue.linger = (linger * 2).min(limit);
        queue.lingering_reader = Some(waker);
        Some(clock::now() + linger)
    }

    /// The reader asks to be woken in another way than before.
    pub(super) fn cancel_wake_request(&self) {
        let (linger_timer, lingering_reader) = {
            let mut queue = lock(&self.queue);
            queue.wake_request += 1;
            (queue.linger_timer.take(), queue.lingering_reader.take())
        };
        drop(lingering_reader);
        if let Some(timer) = linger_timer {
            self.call.instance.runtime.timers().cancel(timer);
        }
    }

    /// Has `waker` woken as soon as `acquire` would not wait. `true`: it would not now, and nothing was armed.
    pub(crate) fn arm(&self, waker: Waker) -> bool {
        self.cancel_wake_request();
        let mut queue = lock(&self.queue);
        if self.is_readable(&queue) {
            return true;
        }
        self.arm_gate(&mut queue, waker);
        // If a writer had the waker already, it is woken, and that is the answer.
        self.is_readable(&queue) && self.gate.disarm()
    }

    /// Has a [`StreamReady`](crate::Kind::StreamReady) come to `port` as soon as `acquire` would not wait, or a little later where the stream is
    /// lively. `true`: it would not now, and nothing was armed.
    ///
    /// # Errors
    /// `overloaded`, `closed`: the port takes no more. `argument`: a callback takes what comes.
    pub fn arm_port(
        self: &Arc<Self>,
        port: &Arc<Port>,
        token: u64,
        handle: u64,
    ) -> Result<bool, Failure> {
        if self.check_readable()? {
            return Ok(true);
        }
        let arm_port = port_waker(port, token, handle)?;
        Ok(self.linger_or_arm(arm_port))
    }

    /// The stream's own file descriptor, an eventfd, readable after [`arm_fd`](Self::arm_fd) said `false` and something came.
    ///
    /// # Errors
    /// `overloaded`: no file descriptor.
    pub fn fd(&self) -> Result<BorrowedFd<'_>, Failure> {
        self.event().map(|event| event.as_fd())
    }

    fn event(&self) -> Result<&Arc<EventFd>, Failure> {
        if let Some(event) = self.event.get() {
            return Ok(event);
        }
        let event = EventFd::new()
            .map_err(|error| Code::Overloaded.because(format!("no eventfd: {error}")))?;
        // Another thread may have made one meanwhile.
        Ok(self.event.get_or_init(|| Arc::new(event)))
    }

    /// As [`arm_port`](Self::announce), and the stream's own file descriptor becomes readable.
    ///
    /// # Errors
    /// `overloaded`: no file descriptor. `argument`: a callback takes what comes.
    pub fn arm_fd(self: &Arc<Self>) -> Result<bool, Failure> {
        let event = self.event()?;
        event.reset();
        if self.check_readable()? {
            return Ok(true);
        }
        Ok(self.linger_or_arm(Waker::from(Arc::clone(event))))
    }

    fn check_readable(&self) -> Result<bool, Failure> {
        let queue = lock(&self.queue);
        if queue.callback.is_set() {
            return Err(has_callback());
        }
        Ok(self.is_readable(&queue))
    }

    /// Whether there is something now, and nothing was armed.
    fn linger_or_arm(self: &Arc<Self>, waker: Waker) -> bool {
        self.cancel_wake_request();
        let Some(until) = self.start_linger(waker.clone()) else {
            return self.arm(waker);
        };
        let linger_timer = LingerTimer {
            stream: Arc::downgrade(self),
            wake_request: lock(&self.queue).wake_request,
            arm_port: waker,
        };
        // What was armed before is replaced now, not when the timer fires.
        self.gate.disarm();
        let timers = self.call.instance.runtime.timers();
        let timer = timers.at(until, Waker::from(Arc::new(linger_timer)));
        lock(&self.queue).linger_timer = Some(timer);
        false
    }
}

/// Why a stream with a callback has no reader.
pub(super) fn has_callback() -> Failure {
    Code::Argument.because("the stream's records go to a callback")
}
