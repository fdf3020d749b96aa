//! When and how a stream's reader is woken if it does not wait inside `acquire`: as a task, or in
//! an event loop through its port.
//!
//! A reader that finds no record does one of three things, by the time between the records that
//! came since it last found none:
//!
//! - 25 us or more, or no record came: it is armed, and the next record wakes it at once.
//! - Less: a reader on its own thread spins first, as a waiting caller does ([`AdaptiveSpin`](thalweg_queue::AdaptiveSpin)), because
//!   the next record comes sooner than a wake-up would take. If it misses, it is armed.
//! - Less than 300 ns: several records arrive in the time of one wake-up, and a reader that took them
//!   one by one would exchange cache lines with the writer for each. It lingers: it waits without being
//!   armed, for 64 us, and twice as long each time that records arrived in the meantime, up to 512 us.
//!   Such a stream thus wakes its reader 2,000 times a second, which is 1 % of a processor at 5 us per
//!   wake-up. If no record arrived, the reader is armed. This is a wait with a limit, not a poll: a
//!   stream without records wakes no reader.
//!
//! An event loop cannot spin, and nor can a reader on one processor. They linger from 2 us on. If there
//! are as many busy workers as processors, each time that a reader runs, it takes one of these away
//! from them. It does not spin then, and lingers from 8 us on.
//!
//! The option `linger` lets all readers of a stream linger instead of spinning, and sets the limit.
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

use thalweg_queue::spin::{self, Spun};
use thalweg_queue::{EventFd, barrier, clock};
use thalweg_runtime::wait;

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

/// The same if workers use all processors, so that each wake-up takes one of these away from them. It is
/// less than the time between two records at 100,000 per second.
const FAST_IF_BUSY_NS: u64 = 8_000;

/// The same for a reader that can spin. It takes a record in 100 to 200 ns.
const FAST_FOR_SPIN_NS: u64 = 300;

/// Time between two records up to which their reader spins: half of the longest spin.
const SLOW_NS: u64 = 25_000;

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

/// What a reader that found no record does next.
pub(super) enum BeforeSleep {
    /// It looks again.
    Readable,
    /// It waits until this time without being armed.
    Linger(u64),
    /// It is armed.
    Sleep,
}

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

    /// Called by a reader on its own thread that found no record, before it is armed. It spins at most
    /// until `deadline`.
    pub(super) fn before_sleep(&self, deadline: u64) -> BeforeSleep {
        let (interval, should_yield) = {
            let mut queue = lock(&self.queue);
            (queue.interval_when_empty(), queue.should_yield)
        };
        if should_yield {
            if self.yield_for_records(deadline) {
                return BeforeSleep::Readable;
            }
        } else if spins_at(interval, self.options.linger_ns, spin::processors())
            && !self.workers_use_all_processors()
        {
            match self.spin_for_records(interval, deadline) {
                Spun::Found => return BeforeSleep::Readable,
                Spun::Missed => {
                    lock(&self.queue).stop_linger();
                    return BeforeSleep::Sleep;
                }
                Spun::Not => {}
            }
        }
        match self.start_linger(interval, wait::waker()) {
            Some(until) => BeforeSleep::Linger(until),
            None => BeforeSleep::Sleep,
        }
    }

    fn workers_use_all_processors(&self) -> bool {
        let processors = spin::processors();
        processors > 1 && self.owner.runtime().busy_workers() >= processors
    }

    /// Spins as a waiting caller does. `interval` is the time between the last records.
    fn spin_for_records(&self, interval: u64, deadline: u64) -> Spun {
        let mut spin = std::mem::take(&mut lock(&self.queue).spin);
        spin.record_sleep(interval);
        let most = deadline.saturating_sub(clock::now());
        let found = || match self.queue.try_lock() {
            Ok(queue) => self.is_readable(&queue),
            // A writer has the lock.
            Err(_) => false,
        };
        let spun = spin.spin(most, found);
        lock(&self.queue).spin = spin;
        spun
    }

    /// Yields the processor as long as no record comes, for a stream that was full. Returns whether
    /// the stream is readable now.
    fn yield_for_records(&self, deadline: u64) -> bool {
        let until = deadline.min(clock::now() + SPIN_NS);
        while clock::now() < until {
            thread::yield_now();
            if self.is_readable(&lock(&self.queue)) {
                return true;
            }
        }
        lock(&self.queue).should_yield = false;
        false
    }

    /// Called if the reader found no record. `interval` is the time between the last records. Returns
    /// the end of the linger time. Before that, `waker` is woken only if the stream becomes full or
    /// ends. `None`: the reader does not linger, and must be armed.
    fn start_linger(&self, interval: u64, waker: Waker) -> Option<u64> {
        let limit = match self.options.linger_ns {
            0 if interval < FAST_NS => MAX_LINGER_NS,
            0 if interval < FAST_IF_BUSY_NS && self.workers_use_all_processors() => MAX_LINGER_NS,
            limit => limit,
        };
        let mut queue = lock(&self.queue);
        if !std::mem::take(&mut queue.delivered_since_empty) || limit < MIN_LINGER_NS {
            queue.stop_linger();
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
        let interval = lock(&self.queue).interval_when_empty();
        let Some(until) = self.start_linger(interval, waker.clone()) else {
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

/// Whether a reader on its own thread spins for the next record if records come `interval` nanoseconds
/// apart.
fn spins_at(interval: u64, linger_ns: u64, processors: usize) -> bool {
    linger_ns == 0 && processors > 1 && (FAST_FOR_SPIN_NS..SLOW_NS).contains(&interval)
}

/// The failure of reading a stream whose records a callback receives.
pub(super) fn callback_attached() -> Failure {
    Code::Argument.because("the stream's records go to a callback")
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::spins_at;

    #[test]
    fn reader_spins_if_the_next_record_comes_sooner_than_a_wake_up_but_not_at_once() {
        for (interval, spins) in [(50, false), (300, true), (24_999, true), (25_000, false)] {
            assert_eq!(spins_at(interval, 0, 2), spins, "{interval} ns");
            assert!(!spins_at(interval, 0, 1), "nobody spins on one processor");
            assert!(
                !spins_at(interval, 1_000, 2),
                "the option `linger` replaces spinning"
            );
        }
        assert!(!spins_at(u64::MAX, 0, 2), "no record came");
    }
}
