//! "Still running": what a host is told of a call that takes long, each time its method's interval is over. It ends nothing.
//!
//! 1. Who wants notices has a second place of the port, which is the call's until it ends: so a notice always has room.
//! 2. At most one is unreaped. The place of one that was not reaped when the call ended is given back by who reaps it.
//! 3. None comes after the call's ending: both are put into the ring in the order of the call's lock.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Wake, Waker};
use std::time::Duration;

use thalweg_queue::clock;
use thalweg_queue::quiet::lock;
use thalweg_runtime::TimerKey;

use crate::call::{CallCore, CallRef, CallState, Sink};
use crate::code::{Code, Failure};
use crate::completion::Completion;
use crate::handles;
use crate::port::Port;
use crate::service::Method;

/// Of a call whose host wants them.
pub(crate) struct NoticeState {
    /// One is unreaped.
    is_unreaped: bool,
    timer: Option<TimerKey>,
}

/// What fires at the end of each interval.
struct NoticeTimer {
    call: Weak<CallCore>,
    generation: u32,
    began: u64,
    interval: u64,
}

/// The interval of a method's notices, in nanoseconds.
///
/// # Errors
/// `argument`: its policy file names none.
pub(crate) fn notice_interval(method: &Method) -> Result<u64, Failure> {
    match method.options.notice_ns {
        0 => Err(Code::Argument.because(format!(
            "{} tells nobody that it still runs: its policy file has no `notice_interval`",
            method.name
        ))),
        interval => Ok(interval),
    }
}

/// Whom a caller in Rust has told, while it waits itself.
pub(crate) struct NoticeCallback {
    interval: u64,
    began: u64,
    next: u64,
    timer: Option<TimerKey>,
    callback: Mutex<Box<dyn FnMut(Duration) + Send>>,
}

impl NoticeCallback {
    /// Of a call that is made now; `None`: its method has no interval.
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

    /// Tells it if it is time. When it is next.
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

    /// As [`notify_if_due`](Self::look); `waker` wakes who has to look next.
    pub(crate) fn notify_and_rearm(&mut self, call: &CallCore, waker: &Waker) {
        let next = self.notify_if_due();
        self.stop(call);
        self.timer = Some(call.instance.runtime.timers().at(next, waker.clone()));
    }

    /// Nobody looks any more.
    pub(crate) fn stop(&mut self, call: &CallCore) {
        if let Some(key) = self.timer.take() {
            call.instance.runtime.timers().cancel(key);
        }
    }
}

impl CallRef {
    /// From now on the call tells its port each `interval` nanoseconds that it runs. The second place is promised, and the call's.
    pub(crate) fn send_notices(&self, port: &Port, interval: u64) {
        let has_ended = {
            let mut state = lock(&self.state);
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
    /// Gives back what the call had for them.
    pub(crate) fn release(self, call: &CallCore, port: &Port) {
        if let Some(key) = self.timer {
            call.instance.runtime.timers().cancel(key);
        }
        if !self.is_unreaped {
            port.unreserve();
        }
    }
}

impl NoticeTimer {
    /// Fires once more, an interval from now.
    fn rearm(self: Arc<Self>, call: &CallRef) {
        let at = clock::now().saturating_add(self.interval);
        let timers = call.instance.runtime.timers();
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

/// The notice of the call with this handle was taken out of the ring. Whether its place is free: rule 2.
pub(crate) fn notice_was_reaped(call: u64) -> bool {
    let Some((core, generation)) = handles::find_call_core(call) else {
        return true;
    };
    let mut state = lock(&core.state);
    if core.generation() != generation {
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
