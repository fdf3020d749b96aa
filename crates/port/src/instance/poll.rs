//! An instance without an actor: threads of the service take its calls out of the mailbox.
//!
//! This is for a service that brings its own threads, such as foreign code that polls for work. Any
//! number of threads may poll, and any thread may answer.
//!
//! 1. `SCHEDULED` of the [mailbox](crate::mailbox) is set while a poller looks into the mailbox or is
//!    being woken for it. The submission that sets it wakes one poller. A poller that takes the last
//!    call clears it, and a poller that leaves calls behind wakes the next one.
//! 2. A poller that finds no call registers its waker and then clears `SCHEDULED`, unless a call was
//!    pushed meanwhile. A later submission therefore sets it, and finds the waker.
//! 3. A waker is in the list only while its thread sleeps: a submission must not wake a thread that
//!    does something else. A poller that another event woke removes its waker.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Waker;

use thalweg_queue::no_preempt::lock;
use thalweg_queue::{AdaptiveSpin, WakerList};
use thalweg_runtime::{Handle, WakeReason, wait};

use super::Instance;
use crate::code::{Code, Failure};
use crate::completion::CallBuffer;
use crate::incoming::{Incoming, join_arguments};
use crate::service::Service;

/// The threads that poll an instance.
#[derive(Default)]
pub(super) struct Pollers {
    asleep: Mutex<WakerList>,
    /// Changes when a poller must look into the mailbox.
    signals: AtomicU32,
    /// Used by one poller at a time. The others sleep at once.
    spin: Mutex<AdaptiveSpin>,
}

impl Pollers {
    pub(super) fn wake_one(&self) {
        self.signals.fetch_add(1, Ordering::Release);
        // Not under the lock, which the poller takes when it wakes.
        let waker = lock(&self.asleep).pop();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn wake_all(&self) {
        self.signals.fetch_add(1, Ordering::Release);
        let asleep = lock(&self.asleep).take();
        asleep.wake();
    }

    /// Rule 3.
    fn remove(&self, waker: &Waker) {
        lock(&self.asleep).remove(waker);
    }
}

/// What a poller finds in the mailbox.
enum Found {
    Call(CallBuffer),
    Nothing,
    /// No call will come any more.
    End,
}

impl Instance {
    /// An instance without an actor, whose service calls [`poll`](Self::poll). At most `capacity`
    /// calls wait for it; further ones are `overloaded`.
    ///
    /// ```
    /// use thalweg_port::{Incoming, Instance, Method, Package, Port, QueueLimits, Service};
    ///
    /// struct Echo;
    ///
    /// impl Service for Echo {
    ///     const PACKAGE: &'static Package = &Package {
    ///         name: "example:echo",
    ///         version: "0.1.0",
    ///         layout: 0,
    ///         methods: &[Method::new("echo.echo", "record{value:u32}\nu32\n\n")],
    ///         imports: &[],
    ///         limits: QueueLimits::DEFAULT,
    ///     };
    ///
    ///     fn dispatch(&mut self, _: Incoming) {} // an instance without an actor has no service
    /// }
    ///
    /// let instance = Instance::open_polled::<Echo>(16, Instance::runtime()?)?;
    /// let server = std::thread::spawn({
    ///     let instance = instance.clone();
    ///     move || {
    ///         while let Some(call) = instance.poll() {
    ///             call.serve(|_, (value,): (u32,)| Ok(value), Incoming::reply_value);
    ///         }
    ///     }
    /// });
    /// let port = Port::open(16)?;
    /// let mut args = Vec::new();
    /// thalweg_wire::message::encode_into(&(7u32,), Echo::PACKAGE.methods[0].params, &mut args)
    ///     .expect("it is small");
    /// instance.submit(&port, 1, 0, &args, u64::MAX)?;
    /// port.wait(u64::MAX)?;
    /// assert_eq!(port.reap()?.count(), 1);
    /// instance.finish();
    /// server.join().expect("it does not panic");
    /// # Ok::<(), thalweg_port::Failure>(())
    /// ```
    ///
    /// # Errors
    /// `argument`: the capacity is 0.
    pub fn open_polled<S: Service>(capacity: u32, runtime: Handle) -> Result<Arc<Self>, Failure> {
        if capacity == 0 {
            return Err(Code::Argument.because("the capacity is at least 1"));
        }
        let make = Box::new(|| unreachable!("an instance without an actor has no turns"));
        let mut instance = Self::new(S::PACKAGE, capacity, make, || None, runtime);
        instance.pollers = Some(Box::default());
        Ok(Arc::new(instance))
    }

    /// Waits for the next call, on a thread of the service. `None`: none will come any more, because
    /// the instance was [finished](Self::finish) or closed, or has an actor.
    pub fn poll(&self) -> Option<Incoming> {
        let pollers = self.pollers.as_deref()?;
        if self.is_forked() {
            return None;
        }
        let waker = wait::waker();
        loop {
            let signals = pollers.signals.load(Ordering::Acquire);
            let found = match self.take_call(None) {
                Found::Nothing if pollers.spin_until_after(signals) => continue,
                Found::Nothing => self.take_call(Some(&waker)),
                found => found,
            };
            match found {
                Found::Call(buffer) => {
                    let buffer = self.must_serve(&buffer).then_some(buffer);
                    if let Some(buffer) = buffer.and_then(join_arguments) {
                        return Some(Incoming::new(buffer));
                    }
                }
                Found::Nothing => {
                    let woke = pollers.sleep();
                    pollers.remove(&waker);
                    if woke == WakeReason::Stopping {
                        return None;
                    }
                }
                Found::End => return None,
            }
        }
    }

    /// Takes a call out of the mailbox. If there is none, `sleeper` is registered. Rules 1 and 2.
    fn take_call(&self, sleeper: Option<&Waker>) -> Found {
        let pollers = self.pollers.as_deref().expect("a poller calls it");
        loop {
            if let Some((buffer, has_more)) = self.mailbox.poll() {
                self.queued_bytes.remove(&buffer.data);
                self.wake_waiters();
                if has_more {
                    pollers.wake_one();
                } else if self.mailbox.is_finished() {
                    // Pollers may have waited for this call, which was being pushed.
                    pollers.wake_all();
                }
                return Found::Call(buffer);
            }
            self.saw_full_port.store(false, Ordering::Relaxed);
            let mut found = Found::Nothing;
            let is_idle = self.mailbox.idle(|| {
                if self.accepts_no_calls() {
                    found = Found::End;
                } else {
                    lock(&pollers.asleep).extend(sleeper.cloned());
                }
            });
            if is_idle {
                return found;
            }
            sleeper.inspect(|waker| pollers.remove(waker));
        }
    }

    /// Whether the mailbox stays empty.
    fn accepts_no_calls(&self) -> bool {
        self.open_state.is_closed() || self.mailbox.is_finished() && self.mailbox.len() == 0
    }

    /// Accepts no more calls. Pollers get the calls that wait, and then `None`. Calls that they have
    /// taken can still be answered.
    pub fn finish(&self) {
        if self.is_forked() {
            return;
        }
        self.mailbox.finish();
        self.wake_pollers();
    }

    /// Wakes all pollers, because no call will come any more.
    pub(super) fn wake_pollers(&self) {
        if let Some(pollers) = &self.pollers {
            // A poller that has not seen the reason has registered itself when this lock is taken.
            self.mailbox.exclude_idle(|| pollers.wake_all());
        }
    }
}

impl Pollers {
    /// Waits for a moment for another signal than this one. Returns whether there is one.
    fn spin_until_after(&self, signals: u32) -> bool {
        let changed = || self.signals.load(Ordering::Acquire) != signals;
        self.spin
            .try_lock()
            .is_ok_and(|mut spin| spin.until(changed))
    }

    fn sleep(&self) -> WakeReason {
        match self.spin.try_lock() {
            Ok(mut spin) => spin.sleep(|| wait::park(None)),
            Err(_) => wait::park(None),
        }
    }
}
