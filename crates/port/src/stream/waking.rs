//! When and how a stream's reader is woken if it does not wait inside `acquire`: as a task, or in
//! an event loop through its port.
//!
//! A reader that finds no record is armed, and the next record wakes it at once. Only the reader of
//! a stream whose records arrive faster than it could be woken lingers: more than one in 2 us. If it
//! were woken for every record, it would take one record at a time and cost its writers a context
//! switch for each. It therefore first waits without being armed: 64 us, and twice as long each time
//! that records arrived in the meantime, up to 512 us. Such a stream thus wakes its reader 2,000
//! times a second, which is 1 % of a processor at 5 us per wake-up. The option `linger` lets the
//! readers of slower streams wait, too, and sets the limit. If no record arrived, the reader is
//! armed. This is a wait with a limit, not a poll: a stream without records wakes no reader.
//!
//! If a stream was full while its reader slept, it is small for its writers: they fill it in the
//! time of one wake-up. A reader on its own thread then spins for 40 us before it lingers, as long
//! as spinning succeeds, and yields its processor on each iteration because a writer may need it.
//! In a stream with enough capacity, spinning would only take records one by one while the writer
//! is still writing, and the processors would exchange their cache lines for each.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::task::{Wake, Waker};
use std::thread;

use thalweg_queue::{EventFd, barrier, clock};

use crate::code::{Code, Failure};
use crate::stream::core::{StreamCore, lock};
use crate::stream::queue::Queue;

/// Twice the cost of a wake-up across processors: a shorter wait would save none.
const MIN_LINGER_NS: u64 = 64_000;

/// The limit of the wait without the option `linger`: a busy stream wakes its reader 2,000 times a
/// second.
const MAX_LINGER_NS: u64 = 512_000;

/// Time between two records below which their reader lingers without the option `linger`. A wake-up
/// takes 5 us or more, so that several records arrive in its time. Five times the rate of 100,000
/// records per second, up to which a reader is to be woken for each.
const FAST_NS: u64 = 2_000;

/// How long the reader of a full stream spins before it sleeps.
const SPIN_NS: u64 = 40_000;

/// Number of records between two sleeps up to which a fence per record costs less than one
/// `membarrier`.
const FENCE_LIMIT: u64 = 512;

/// How writers notify the reader, as bits: without a fence, with a fence, by calling the reader's
/// callback, and whether there are additional readers.
pub(super) const UNFENCED: u8 = 0;
pub(super) const FENCED: u8 = 1;
pub(super) const CALLBACK: u8 = 2;
pub(super) const MANY_READERS: u8 = 4;

/// Arms a stream when the linger time is over: the timer of [`StreamCore::arm_port`].
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
        // Under the lock, so that a reader that concurrently asks to be woken in another way comes
        // after this.
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
    /// Called by a writer after a commit: wakes the reader if it is armed. It uses no fence if the
    /// reader sleeps rarely, because the reader then pays for the ordering with `membarrier`. If
    /// the reader sleeps often, the writer uses a fence.
    ///
    /// Returns whether a callback or several readers were called in this way.
    #[inline]
    pub(super) fn wake_reader(&self) -> bool {
        match self.wake_mode.load(Ordering::Relaxed) {
            UNFENCED => {
                self.count_wake(self.gate.signal_light());
                false
            }
            FENCED => {
                self.count_wake(self.gate.signal());
                // After the fence: if the kernel does not support barriers on behalf of other
                // threads, either the changed word is seen here, or the other side sees the commit.
                if self.wake_mode.load(Ordering::Relaxed) & (CALLBACK | MANY_READERS) != 0 {
                    self.wake_readers();
                }
                false
            }
            _ => {
                self.wake_readers();
                true
            }
        }
    }

    #[inline]
    pub(super) fn count_wake(&self, woke: bool) {
        if woke {
            self.wakes.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Like [`wake_reader`](Self::wake_reader), if the reader may be waiting for more than the last
    /// commit.
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

    /// Arms the gate: from now on a writer wakes `waker`. The reader checks once more before it
    /// sleeps.
    ///
    /// A fence is sufficient here only if both the previous arming and this one use a fence. A
    /// writer that read an older value of the word loaded it before the heavy barrier of the
    /// change, so its commit is visible after that barrier.
    pub(super) fn arm_gate(&self, queue: &mut Queue, waker: Waker) {
        queue.stats.parks += 1;
        let delivered = queue.counts.delivered;
        let sleeps_often = delivered - queue.armed_at < FENCE_LIMIT || !barrier::is_asymmetric();
        queue.armed_at = delivered;
        // Under the lock, like every change of the word. With additional readers, writers always
        // use the fence.
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

    /// Whether `acquire` would return without waiting.
    fn is_readable(&self, queue: &Queue) -> bool {
        self.has_ended.load(Ordering::Acquire) || queue.has_records()
    }

    /// Called if the reader found no record. If the stream was full before, spins at most until
    /// `deadline`. Returns whether the stream is readable now.
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

    /// Called if the reader found no record. Returns the end of the linger time. Before that,
    /// `waker` is woken only if the stream becomes full or ends. `None`: the reader does not
    /// linger, and must be armed.
    pub(super) fn start_linger(&self, waker: Waker) -> Option<u64> {
        let mut queue = lock(&self.queue);
        let limit = match self.options.linger_ns {
            0 if queue.arrive_within(FAST_NS) => MAX_LINGER_NS,
            limit => limit,
        };
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

    /// Cancels the previous wake request, because the reader asks to be woken in another way.
    pub(super) fn cancel_wake_request(&self) {
        let (linger_timer, lingering_reader) = {
            let mut queue = lock(&self.queue);
            queue.wake_request += 1;
            (queue.linger_timer.take(), queue.lingering_reader.take())
        };
        drop(lingering_reader);
        if let Some(timer) = linger_timer {
            self.owner.runtime().timers().cancel(timer);
        }
    }

    /// Wakes `waker` as soon as `acquire` would not wait. Returns `true`, and arms nothing, if it
    /// would not wait now.
    pub(crate) fn arm(&self, waker: Waker) -> bool {
        self.cancel_wake_request();
        let mut queue = lock(&self.queue);
        if self.is_readable(&queue) {
            return true;
        }
        self.arm_gate(&mut queue, waker);
        // If a writer has already taken the waker, that wake-up is the notification.
        self.is_readable(&queue) && self.gate.disarm()
    }

    /// The stream's own file descriptor, an eventfd. It becomes readable with the next record or
    /// the end, after [`arm_fd`](Self::arm_fd) returned `false`.
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
        // Another thread may have created one in the meantime.
        Ok(self.event.get_or_init(|| Arc::new(event)))
    }

    /// Like [`arm_port`](Self::arm_port), but makes the stream's own file descriptor readable.
    ///
    /// # Errors
    /// `overloaded`: no file descriptor. `argument`: a callback receives the records.
    pub fn arm_fd(self: &Arc<Self>) -> Result<bool, Failure> {
        let event = self.event()?;
        event.reset();
        if self.check_readable()? {
            return Ok(true);
        }
        Ok(self.linger_or_arm(Waker::from(Arc::clone(event))))
    }

    pub(crate) fn check_readable(&self) -> Result<bool, Failure> {
        let queue = lock(&self.queue);
        if queue.callback.is_set() {
            return Err(callback_attached());
        }
        Ok(self.is_readable(&queue))
    }

    /// Returns `true`, and arms nothing, if the stream is readable now.
    pub(crate) fn linger_or_arm(self: &Arc<Self>, waker: Waker) -> bool {
        self.cancel_wake_request();
        let Some(until) = self.start_linger(waker.clone()) else {
            return self.arm(waker);
        };
        let linger_timer = LingerTimer {
            stream: Arc::downgrade(self),
            wake_request: lock(&self.queue).wake_request,
            arm_port: waker,
        };
        // Replaces the previous arming now, and not only when the timer fires.
        self.gate.disarm();
        let timers = self.owner.runtime().timers();
        let timer = timers.at(until, Waker::from(Arc::new(linger_timer)));
        lock(&self.queue).linger_timer = Some(timer);
        false
    }
}

/// The failure of reading a stream whose records a callback receives.
pub(super) fn callback_attached() -> Failure {
    Code::Argument.because("the stream's records go to a callback")
}
