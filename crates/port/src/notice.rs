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

use crate::call::{CallCore, CallRef, Sink, State};
use crate::code::{Code, Failure};
use crate::completion::Port;
use crate::handles;
use crate::parcel::Completed;
use crate::service::Method;

/// Of a call whose host wants them.
pub(crate) struct Notices {
    /// One is unreaped.
    is_out: bool,
    timer: Option<TimerKey>,
}

/// What fires at the end of each interval.
struct Clock {
    call: Weak<CallCore>,
    generation: u32,
    began: u64,
    every: u64,
}

/// The interval of a method's notices, in nanoseconds.
///
/// # Errors
/// `argument`: its policy file names none.
pub(crate) fn interval(method: &Method) -> Result<u64, Failure> {
    match method.options.notice_ns {
        0 => Err(Code::Argument.because(format!(
            "{} tells nobody that it still runs: its policy file has no `notice`",
            method.name
        ))),
        every => Ok(every),
    }
}

/// Whom a caller in Rust has told, while it waits itself.
pub(crate) struct Watch {
    every: u64,
    began: u64,
    next: u64,
    timer: Option<TimerKey>,
    tell: Mutex<Box<dyn FnMut(Duration) + Send>>,
}

impl Watch {
    /// Of a call that is made now; `None`: its method has no interval.
    pub(crate) fn new(
        method: &Method,
        tell: impl FnMut(Duration) + Send + 'static,
    ) -> Option<Box<Self>> {
        let every = interval(method).ok()?;
        let began = clock::now();
        Some(Box::new(Self {
            every,
            began,
            next: began.saturating_add(every),
            timer: None,
            tell: Mutex::new(Box::new(tell)),
        }))
    }

    /// Tells it if it is time. When it is next.
    pub(crate) fn look(&mut self) -> u64 {
        let now = clock::now();
        if now >= self.next {
            self.next = now.saturating_add(self.every);
            let tell = self.tell.get_mut().unwrap_or_else(PoisonError::into_inner);
            tell(Duration::from_nanos(now.saturating_sub(self.began)));
        }
        self.next
    }

    /// As [`look`](Self::look); `waker` wakes who has to look next.
    pub(crate) fn look_later(&mut self, call: &CallCore, waker: &Waker) {
        let next = self.look();
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
    /// From now on the call tells its port each `every` nanoseconds that it runs. The second place is promised, and the call's.
    pub(crate) fn tell_each(&self, port: &Port, every: u64) {
        let has_ended = {
            let mut state = lock(&self.state);
            let has_ended = self.has_ended();
            if !has_ended {
                state.notices = Some(Box::new(Notices {
                    is_out: false,
                    timer: None,
                }));
            }
            has_ended
        };
        if has_ended {
            port.unreserve();
            return;
        }
        let clock = Clock {
            call: Arc::downgrade(self.core()),
            generation: self.generation(),
            began: clock::now(),
            every,
        };
        Arc::new(clock).wind(self);
    }
}

impl Notices {
    /// Gives back what the call had for them.
    pub(crate) fn settle(self, call: &CallCore, port: &Port) {
        if let Some(key) = self.timer {
            call.instance.runtime.timers().cancel(key);
        }
        if !self.is_out {
            port.unreserve();
        }
    }
}

impl Clock {
    /// Fires once more, an interval from now.
    fn wind(self: Arc<Self>, call: &CallRef) {
        let at = clock::now().saturating_add(self.every);
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

impl Wake for Clock {
    fn wake(self: Arc<Self>) {
        let Some(core) = self.call.upgrade() else {
            return;
        };
        let Some(call) = CallRef::enter(&core, self.generation) else {
            return;
        };
        let told = {
            let mut state = lock(&call.state);
            let State {
                notices,
                sink,
                token,
                ..
            } = &mut *state;
            match (notices, sink) {
                (Some(notices), Sink::Port { port, .. }) if !call.has_ended() => {
                    let is_out = std::mem::replace(&mut notices.is_out, true);
                    (!is_out).then(|| {
                        let elapsed = clock::now().saturating_sub(self.began);
                        // Rule 3: under the lock.
                        port.put(Completed::still_running(*token, call.handle(), elapsed));
                        Arc::clone(port)
                    })
                }
                _ => return,
            }
        };
        if let Some(port) = told {
            port.announce();
        }
        self.wind(&call);
    }
}

/// The notice of the call with this handle was taken out of the ring. Whether its place is free: rule 2.
pub(crate) fn is_place_free(call: u64) -> bool {
    let Some((core, generation)) = handles::find_calls(call) else {
        return true;
    };
    let mut state = lock(&core.state);
    if core.generation() != generation {
        return true;
    }
    match &mut state.notices {
        Some(notices) => {
            notices.is_out = false;
            false
        }
        None => true,
    }
}
