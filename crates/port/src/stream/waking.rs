//! When a stream's reader is woken, and how where it does not wait inside of `acquire`: as a task, or as an event loop
//! through its port.
//!
//! A lively stream's reader lingers. Woken for every record, it would take one at a time and cost its writers a context switch
//! each. So a reader that was given something just now, and finds nothing more, first waits a while without being armed: 64 us,
//! and twice as long each time that something came meanwhile, up to 512 us. If nothing came it is armed, and the next
//! record wakes it at once. This is a wait with an end, not a poll: a stream without records wakes nobody.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Wake, Waker};

use thalweg_queue::clock;

use crate::code::Failure;
use crate::completion::Port;
use crate::parcel::Completed;
use crate::service::Policy;
use crate::stream::core::{LANES, Reading, StreamCore, lock};

/// What a wake across processors costs, doubled: a shorter wait would not save one.
const LEAST_LINGER_NS: u64 = 64_000;
/// A lively stream wakes its reader 2,000 times a second: 1 % of a processor at 5 us a wake-up.
const MOST_LINGER_NS: u64 = 512_000;

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
        let mut reading = lock(&stream.reading);
        if reading.request != self.request {
            return;
        }
        // Under the lock: a reader that asks to be woken in another way meanwhile comes after this.
        let ready = stream.has_something(&mut reading) || {
            reading.linger = 0;
            stream.gate.arm(self.announce.clone());
            stream.has_something(&mut reading) && stream.gate.disarm()
        };
        drop(reading);
        if ready {
            self.announce.wake_by_ref();
        }
    }
}

impl StreamCore {
    /// Whether `acquire` would not wait.
    fn has_something(&self, reading: &mut Reading) -> bool {
        if self.ending.get().is_some() || self.closed.load(Ordering::Acquire) {
            return true;
        }
        match self.options.policy {
            Policy::Latest => lock(&self.latest).newest.is_some(),
            Policy::Block => {
                reading.read.resize(LANES, 0);
                (0..LANES).any(|lane| self.run_of(reading, lane).is_some())
            }
        }
    }

    /// The reader found nothing. Until when it lingers; `None`: it does not, and is to be armed.
    pub(super) fn lingers_until(&self) -> Option<u64> {
        let mut reading = lock(&self.reading);
        let now = clock::now();
        let linger = reading.linger.max(LEAST_LINGER_NS);
        if now.saturating_sub(reading.last_given) >= linger {
            reading.linger = 0;
            return None;
        }
        reading.linger = (linger * 2).min(MOST_LINGER_NS);
        Some(now + linger)
    }

    /// The reader asks to be woken in another way than before.
    pub(super) fn request_anew(&self) {
        let later = {
            let mut reading = lock(&self.reading);
            reading.request += 1;
            reading.later.take()
        };
        if let Some(timer) = later {
            self.call.instance.runtime.timers().cancel(timer);
        }
    }

    /// Has `waker` woken as soon as `acquire` would not wait. `true`: it would not now, and nothing was armed.
    pub(crate) fn arm(&self, waker: Waker) -> bool {
        self.request_anew();
        let mut reading = lock(&self.reading);
        if self.has_something(&mut reading) {
            return true;
        }
        self.gate.arm(waker);
        // If a writer had the waker already, it is woken, and that is the answer.
        self.has_something(&mut reading) && self.gate.disarm()
    }

    /// Has a [`StreamReady`](crate::Kind::StreamReady) come to `port` as soon as `acquire` would not wait, or a little later where the stream is
    /// lively. `true`: it would not now, and nothing was armed.
    ///
    /// # Errors
    /// `overloaded`, `closed`: the port takes no more.
    pub fn announce(
        self: &Arc<Self>,
        port: &Arc<Port>,
        token: u64,
        handle: u64,
    ) -> Result<bool, Failure> {
        if self.has_something(&mut lock(&self.reading)) {
            return Ok(true);
        }
        port.reserve()?;
        let announce = Waker::from(Arc::new(Announce {
            port: Arc::clone(port),
            token,
            handle,
            announced: AtomicBool::new(false),
        }));
        let Some(until) = self.lingers_until() else {
            return Ok(self.arm(announce));
        };
        self.request_anew();
        let later = Later {
            stream: Arc::downgrade(self),
            request: lock(&self.reading).request,
            announce,
        };
        // What was armed before is replaced now, not when the timer fires.
        self.gate.disarm();
        let timers = self.call.instance.runtime.timers();
        let timer = timers.at(until, Waker::from(Arc::new(later)));
        lock(&self.reading).later = Some(timer);
        Ok(false)
    }
}
