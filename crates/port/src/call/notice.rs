//! Progress notices: a host is notified at an interval that a call is still running. Notices do not
//! affect the call.
//!
//! 1. A call with notices reserves a second slot of the port until it ends, so the ring always has
//!    capacity for a notice.
//! 2. At most one notice is unreaped. If it is still unreaped when the call ends, its slot is
//!    released when it is reaped.
//! 3. No notice follows the completion of the call: both are put into the ring in the order of the
//!    call's lock.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Wake, Waker};
use std::time::Duration;

use thalweg_queue::clock;
use thalweg_queue::no_preempt::lock;
use thalweg_runtime::TimerKey;

use super::{CallCore, CallRef, CallState, Sink};
use crate::code::{Code, Failure};
use crate::completion::Completion;
use crate::package::Method;
use crate::port::Port;

/// The notices of a call whose host requested them.
pub(crate) struct NoticeState {
    /// A notice is unreaped.
    is_unreaped: bool,
    timer: Option<TimerKey>,
}

/// Fires at the end of each interval.
struct NoticeTimer {
    call: Weak<CallCore>,
    generation: u32,
    began: u64,
    interval: u64,
}

/// The interval of a method's notices, in nanoseconds.
///
/// # Errors
/// `argument`: the method's policy file has no interval.
pub(crate) fn notice_interval(method: &Method) -> Result<u64, Failure> {
    match method.options.notice_interval_ns {
        0 => Err(Code::Argument.because(format!(
            "{} has no progress notices: its policy file has no `notice_interval`",
            method.name
        ))),
        interval => Ok(interval),
    }
}

/// The callback of a Rust caller that waits for its call.
pub(crate) struct NoticeCallback {
    interval: u64,
    began: u64,
    next: u64,
    timer: Option<TimerKey>,
    callback: Mutex<Box<dyn FnMut(Duration) + Send>>,
}

impl NoticeCallback {
    /// A callback for a call that begins now. `None` if its method has no interval.
    pub(crate) fn new(
        method: &Method,
        callback: impl FnMut(Duration) + Send + 'static,
    ) -> Option<Box<Self>> {
        let interval = notice_interval(method).ok()?;
        let began = clock::now();
        Some(Box::new(Self {
            interval,
            began,
            next: began.saturating_add(interval),
            timer: None,
            callback: Mutex::new(Box::new(callback)),
        }))
    }

    /// Calls the callback if the interval has passed. Returns the time of the next notice.
    pub(crate) fn notify_if_due(&mut self) -> u64 {
        let now = clock::now();
        if now >= self.next {
            self.next = now.saturating_add(self.interval);
            let callback = self
                .callback
                .get_mut()
                .unwrap_or_else(PoisonError::into_inner);
            callback(Duration::from_nanos(now.saturating_sub(self.began)));
        }
        self.next
    }

    /// Like [`notify_if_due`](Self::notify_if_due), and arms a timer that wakes `waker` at the next
    /// notice.
    pub(crate) fn notify_and_rearm(&mut self, call: &CallCore, waker: &Waker) {
        let next = self.notify_if_due();
        self.stop(call);
        self.timer = Some(call.instance.runtime().timers().at(next, waker.clone()));
    }

    /// Stops the timer.
    pub(crate) fn stop(&mut self, call: &CallCore) {
        if let Some(key) = self.timer.take() {
            call.instance.runtime().timers().cancel(key);
        }
    }
}

impl CallRef {
    /// Sends a notice to `port` every `interval` nanoseconds. The second slot is already reserved
    /// and now belongs to the call.
    pub(crate) fn send_notices(&self, port: &Port, interval: u64) {
        let has_ended = {
            let mut state = self.lock_to_use();
            let has_ended = self.has_ended();
            if !has_ended {
                state.notices = Some(Box::new(NoticeState {
                    is_unreaped: false,
                    timer: None,
                }));
            }
            has_ended
        };
        if has_ended {
            port.unreserve();
            return;
        }
        let clock = NoticeTimer {
            call: Arc::downgrade(self.core()),
            generation: self.generation(),
            began: clock::now(),
            interval,
        };
        Arc::new(clock).rearm(self);
    }
}

impl NoticeState {
    /// Releases the timer and the slot.
    pub(crate) fn release(self, call: &CallCore, port: &Port) {
        if let Some(key) = self.timer {
            call.instance.runtime().timers().cancel(key);
        }
        if !self.is_unreaped {
            port.unreserve();
        }
    }
}

impl NoticeTimer {
    /// Arms the timer for the end of the next interval.
    fn rearm(self: Arc<Self>, call: &CallRef) {
        let at = clock::now().saturating_add(self.interval);
        let timers = call.instance.runtime().timers();
        let key = timers.at(at, Waker::from(self));
        let late = match &mut lock(&call.state).notices {
            Some(notices) => {
                notices.timer = Some(key);
                None
            }
            None => Some(key),
        };
        if let Some(key) = late {
            timers.cancel(key);
        }
    }
}

impl Wake for NoticeTimer {
    fn wake(self: Arc<Self>) {
        let Some(core) = self.call.upgrade() else {
            return;
        };
        let Some(call) = CallRef::enter(&core, self.generation) else {
            return;
        };
        let notified = {
            let mut state = lock(&call.state);
            let CallState {
                notices,
                sink,
                token,
                ..
            } = &mut *state;
            match (notices, sink) {
                (Some(notices), Sink::Port { port, .. }) if !call.has_ended() => {
                    let is_unreaped = std::mem::replace(&mut notices.is_unreaped, true);
                    (!is_unreaped).then(|| {
                        let elapsed = clock::now().saturating_sub(self.began);
                        // Rule 3: under the lock.
                        port.put(Completion::still_running(*token, call.handle(), elapsed));
                        Arc::clone(port)
                    })
                }
                _ => return,
            }
        };
        if let Some(port) = notified {
            port.announce();
        }
        self.rearm(&call);
    }
}

impl CallCore {
    /// Called when a notice of this generation was taken out of the ring. Returns whether its slot
    /// is free (rule 2).
    pub(super) fn note_reaped_notice(&self, generation: u32) -> bool {
        let mut state = lock(&self.state);
        if self.generation() != generation {
            return true;
        }
        match &mut state.notices {
            Some(notices) => {
                notices.is_unreaped = false;
                false
            }
            None => true,
        }
    }
}
