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
use crate::completion::Port;
use crate::parcel::Completed;
use crate::stream::core::{StreamCore, lock};
use crate::stream::queue::Queue;

/// What a wake across processors costs, doubled: a shorter wait would not save one.
const LEAST_LINGER_NS: u64 = 64_000;

/// How long a reader looks again before it sleeps where the stream was full.
const LOOK_NS: u64 = 40_000;

/// Records between two sleeps up to which a fence for each costs less than one `membarrier`.
const FEW: u64 = 512;

/// How writers tell of what they wrote, by bits: without a fence; with one; by calling the reader's callback; and other readers too.
pub(super) const LIGHTLY: u8 = 0;
pub(super) const FENCED: u8 = 1;
pub(super) const DIRECT: u8 = 2;
pub(super) const MANY: u8 = 4;

/// Wakes a reader that waits through a port. It has a reserved slot there, and gives it back if it is replaced by another
/// before it was woken.
struct Announce {
    port: Arc<Port>,
    token: u64,
    handle: u64,
    announced: AtomicBool,
}

impl Drop for Announce {
    fn drop(&mut self) {
        if !*self.announced.get_mut() {
            self.port.unreserve();
        }
    }
}

/// What tells `port` once. It takes a place there.
///
/// # Errors
/// `overloaded`, `closed`: the port takes no more.
pub(super) fn announcing(port: &Arc<Port>, token: u64, handle: u64) -> Result<Waker, Failure> {
    port.reserve()?;
    Ok(Waker::from(Arc::new(Announce {
        port: Arc::clone(port),
        token,
        handle,
        announced: AtomicBool::new(false),
    })))
}

impl Wake for Announce {
    fn wake(self: Arc<Self>) {
        // The slot holds one completion.
        if self.announced.swap(true, Ordering::Relaxed) {
            return;
        }
        self.port
            .complete(Completed::ready(self.token, self.handle));
    }
}

/// Arms a stream when its lingering is over: the timer's side of [`StreamCore::announce`].
struct Later {
    stream: Weak<StreamCore>,
    request: u64,
    announce: Waker,
}

impl Wake for Later {
    fn wake(self: Arc<Self>) {
        let Some(stream) = self.stream.upgrade() else {
            return;
        };
        let mut queue = lock(&stream.queue);
        if queue.request != self.request {
            return;
        }
        // Under the lock: a reader that asks to be woken in another way meanwhile comes after this.
        let ready = stream.has_something(&queue) || {
            queue.linger = 0;
            stream.arm_gate(&mut queue, self.announce.clone());
            stream.has_something(&queue) && stream.gate.disarm()
        };
        drop(queue);
        if ready {
            self.announce.wake_by_ref();
        }
    }
}

impl StreamCore {
    /// A writer, after it committed: wakes the reader if that is armed. Without a fence, for which a reader that sleeps seldom pays by
    /// `membarrier`; one that sleeps often has writers pass it.
    #[inline]
    pub(super) fn tell(&self) {
        match self.telling.load(Ordering::Relaxed) {
            LIGHTLY => self.woke_if(self.gate.signal_lightly()),
            FENCED => {
                self.woke_if(self.gate.signal());
                // Behind the fence: where the kernel passes no barrier for others, a word that changed is seen here, or what was committed there.
                if self.telling.load(Ordering::Relaxed) & (DIRECT | MANY) != 0 {
                    self.tell_surely();
                }
            }
            _ => self.tell_surely(),
        }
    }

    #[inline]
    pub(super) fn woke_if(&self, woke: bool) {
        if woke {
            self.wakes.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The same where the reader may wait for more than what was just committed.
    pub(super) fn tell_surely(&self) {
        let telling = self.telling.load(Ordering::Relaxed);
        if telling & DIRECT != 0 {
            self.deliver();
        } else {
            self.woke_if(self.gate.signal());
        }
        if telling & MANY != 0 {
            self.tees().iter().for_each(|tee| tee.tell_surely());
        }
    }

    /// The reader: from now on a writer wakes `waker`. It looks again before it sleeps.
    ///
    /// Only where both the arming before and this one were fenced is a fence enough here: a writer that saw another word than is there now
    /// loaded it before the heavy barrier that came with the change, and what it had committed is seen after that.
    pub(super) fn arm_gate(&self, queue: &mut Queue, waker: Waker) {
        queue.stats.parks += 1;
        let given = queue.counts.delivered;
        let often = given - queue.armed_at < FEW || !barrier::is_asymmetric();
        queue.armed_at = given;
        // Under the lock, as every change of the word. Where there are other readers writers always pass the fence.
        let before = self.telling.load(Ordering::Relaxed);
        let telling = if often { FENCED } else { LIGHTLY };
        self.telling
            .store((before & MANY) | telling, Ordering::Relaxed);
        if before & MANY != 0 || (before & FENCED != 0 && often) {
            self.gate.arm(waker);
        } else {
            self.gate.arm_heavily(waker);
        }
    }

    /// Whether `acquire` would not wait.
    fn has_something(&self, queue: &Queue) -> bool {
        self.over.load(Ordering::Acquire) || queue.has_records()
    }

    /// The reader found nothing. Whether there is something now, where the stream was full before and the reader has looked for a while, at most until
    /// `deadline`.
    pub(super) fn comes_soon(&self, deadline: u64) -> bool {
        if !lock(&self.queue).looks {
            return false;
        }
        let until = deadline.min(clock::now() + LOOK_NS);
        while clock::now() < until {
            thread::yield_now();
            if self.has_something(&lock(&self.queue)) {
                return true;
            }
        }
        lock(&self.queue).looks = false;
        false
    }

    /// The reader found nothing. Until when it lingers, unless `waker` is woken before, since the stream fills; `None`: it
    /// does not linger, and is to be armed.
    pub(super) fn lingers_until(&self, waker: Waker) -> Option<u64> {
        let mut queue = lock(&self.queue);
        let most = self.options.linger_ns;
        if !std::mem::take(&mut queue.given) || most < LEAST_LINGER_NS {
            queue.linger = 0;
            queue.lingering = None;
            return None;
        }
        let linger = queue.linger.max(LEAST_LINGER_NS);
        queue.linger = (linger * 2).min(most);
        queue.lingering = Some(waker);
        Some(clock::now() + linger)
    }

    /// The reader asks to be woken in another way than before.
    pub(super) fn request_anew(&self) {
        let (later, lingering) = {
            let mut queue = lock(&self.queue);
            queue.request += 1;
            (queue.later.take(), queue.lingering.take())
        };
        drop(lingering);
        if let Some(timer) = later {
            self.call.instance.runtime.timers().cancel(timer);
        }
    }

    /// Has `waker` woken as soon as `acquire` would not wait. `true`: it would not now, and nothing was armed.
    pub(crate) fn arm(&self, waker: Waker) -> bool {
        self.request_anew();
        let mut queue = lock(&self.queue);
        if self.has_something(&queue) {
            return true;
        }
        self.arm_gate(&mut queue, waker);
        // If a writer had the waker already, it is woken, and that is the answer.
        self.has_something(&queue) && self.gate.disarm()
    }

    /// Has a [`StreamReady`](crate::Kind::StreamReady) come to `port` as soon as `acquire` would not wait, or a little later where the stream is
    /// lively. `true`: it would not now, and nothing was armed.
    ///
    /// # Errors
    /// `overloaded`, `closed`: the port takes no more. `argument`: a callback takes what comes.
    pub fn announce(
        self: &Arc<Self>,
        port: &Arc<Port>,
        token: u64,
        handle: u64,
    ) -> Result<bool, Failure> {
        if self.has_something_to_read()? {
            return Ok(true);
        }
        let announce = announcing(port, token, handle)?;
        Ok(self.arm_or_linger(announce))
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

    /// As [`announce`](Self::announce), and the stream's own file descriptor becomes readable.
    ///
    /// # Errors
    /// `overloaded`: no file descriptor. `argument`: a callback takes what comes.
    pub fn arm_fd(self: &Arc<Self>) -> Result<bool, Failure> {
        let event = self.event()?;
        event.reset();
        if self.has_something_to_read()? {
            return Ok(true);
        }
        Ok(self.arm_or_linger(Waker::from(Arc::clone(event))))
    }

    fn has_something_to_read(&self) -> Result<bool, Failure> {
        let queue = lock(&self.queue);
        if queue.direct.is_there() {
            return Err(called_back());
        }
        Ok(self.has_something(&queue))
    }

    /// Whether there is something now, and nothing was armed.
    fn arm_or_linger(self: &Arc<Self>, waker: Waker) -> bool {
        self.request_anew();
        let Some(until) = self.lingers_until(waker.clone()) else {
            return self.arm(waker);
        };
        let later = Later {
            stream: Arc::downgrade(self),
            request: lock(&self.queue).request,
            announce: waker,
        };
        // What was armed before is replaced now, not when the timer fires.
        self.gate.disarm();
        let timers = self.call.instance.runtime.timers();
        let timer = timers.at(until, Waker::from(Arc::new(later)));
        lock(&self.queue).later = Some(timer);
        false
    }
}

/// Why a stream with a callback has no reader.
pub(super) fn called_back() -> Failure {
    Code::Argument.because("the stream's records go to a callback")
}
