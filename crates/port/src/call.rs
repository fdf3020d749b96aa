//! A call under way: its one ending, its deadline, and what stops with it.
//!
//! A call's memory, with its place in the table of handles, is used again by the next call of its client. [`Life`] says whose it is: each
//! call is a generation, its handle has that number, and inside are all who work for it or hold its result ([`CallRef`]). The last one out, after
//! the end, gives it back to the instance.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};

use thalweg_queue::clock;
use thalweg_queue::quiet::lock;
use thalweg_runtime::{TimerKey, wait};

use crate::code::{Code, Failure};
use crate::completion::Port;
use crate::handles;
use crate::instance::Instance;
use crate::life::Life;
use crate::nested::{self, caught};
use crate::notice::Notices;
use crate::own::Roll;
use crate::parcel::{Completed, Ending, Kind, Parcel, close_handles};
use crate::pending::Slot;
use crate::stream::Ends;

/// Where a completion is to go.
#[derive(Clone, Copy)]
pub(crate) enum To<'a> {
    Port {
        port: &'a Arc<Port>,
        token: u64,
    },
    Waiter,
    /// The same, of what a host is asked.
    Host,
}

/// Where it goes. A call that is not under way keeps its port, since the next one most likely has the same.
pub(crate) enum Sink {
    /// The call's own slot.
    Waiter,
    /// The same; the host ends it.
    Host,
    Port {
        port: Arc<Port>,
        /// In the port's list of its calls.
        place: usize,
    },
}

pub(crate) struct State {
    pub(crate) sink: Sink,
    pub(crate) token: u64,
    timer: Option<TimerKey>,
    pub(crate) notices: Option<Box<Notices>>,
    /// Why the service should stop working on it.
    pub(crate) stopped: Option<Failure>,
    streams: Roll<dyn Ends>,
    /// The calls that were made for this one.
    pub(crate) nested: Vec<u64>,
    /// The call for which a service asks this of its host; 0: it does not.
    asker: u64,
}

/// One call, shared by its caller, its service and its timer.
pub struct CallCore {
    pub(crate) instance: Arc<Instance>,
    pub(crate) life: Life,
    /// The lower half of its handles.
    name: u32,
    /// In the instance's list of its calls; set once, before anybody else has it.
    place: AtomicUsize,
    method: AtomicU32,
    deadline: AtomicU64,
    /// Of the service that serves it: what it makes is that one's.
    incarnation: AtomicU64,
    /// `stopped` has a reason.
    told: AtomicBool,
    /// It has, or had, a stream, which may outlive it: its memory is not used again.
    streamed: AtomicBool,
    pub(crate) state: Mutex<State>,
    pub(crate) slot: Slot,
}

impl std::fmt::Debug for CallCore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Call")
            .field("method", &self.method)
            .field("life", &self.life)
            .finish_non_exhaustive()
    }
}

/// What fires at the deadline, and now and then too late, in the time of a later call: so it asks the clock.
impl Wake for CallCore {
    fn wake(self: Arc<Self>) {
        let why = || Code::TimedOut.because("the deadline passed");
        match CallRef::enter_any(&self) {
            Some(call) if is_past(self.deadline()) => call.stop(why()),
            None if is_past(self.deadline()) => self.stop_streams(why()),
            _ => {}
        }
    }
}

impl CallCore {
    /// A place for calls, none of which is under way.
    ///
    /// # Errors
    /// `overloaded`: as many handles are open as there may be, or there is no memory.
    pub(crate) fn make(instance: &Arc<Instance>) -> Result<Arc<Self>, Failure> {
        handles::insert_calls(|name, generation| {
            let calls = Arc::new(Self {
                instance: Arc::clone(instance),
                life: Life::closed(generation),
                name,
                place: AtomicUsize::new(0),
                method: AtomicU32::new(0),
                deadline: AtomicU64::new(u64::MAX),
                incarnation: AtomicU64::new(0),
                told: AtomicBool::new(false),
                streamed: AtomicBool::new(false),
                state: Mutex::new(State {
                    sink: Sink::Waiter,
                    token: 0,
                    timer: None,
                    notices: None,
                    stopped: None,
                    streams: Roll::default(),
                    nested: Vec::new(),
                    asker: 0,
                }),
                slot: Slot::default(),
            });
            let place = instance.enlist(&calls)?;
            calls.place.store(place, Ordering::Relaxed);
            Ok(calls)
        })
    }

    pub(crate) fn handle(&self) -> u64 {
        u64::from(self.life.generation()) << 32 | u64::from(self.name)
    }

    pub(crate) fn name(&self) -> u32 {
        self.name
    }

    /// The service that has it from now on.
    pub(crate) fn serve_by(&self, incarnation: u64) {
        self.incarnation.store(incarnation, Ordering::Relaxed);
    }

    /// The service that has it.
    pub(crate) fn incarnation(&self) -> u64 {
        self.incarnation.load(Ordering::Relaxed)
    }

    /// The call begins: it has a number, and its deadline runs. The slot that the port promised is its own from now on. The
    /// place is the caller's until now.
    ///
    /// # Errors
    /// `overloaded`: there is no memory to note where it is completed. It did not begin, and the place comes back.
    pub(crate) fn begin(
        self: Arc<Self>,
        method: u32,
        to: To<'_>,
        deadline: u64,
    ) -> Result<CallRef, (Arc<Self>, Failure)> {
        self.method.store(method, Ordering::Relaxed);
        self.deadline.store(deadline, Ordering::Relaxed);
        let mut closed = None;
        {
            let mut state = lock(&self.state);
            if self.told.swap(false, Ordering::Relaxed) {
                state.stopped = None;
            }
            state.nested.clear();
            state.asker = 0;
            match to {
                To::Port { port, token } => {
                    state.token = token;
                    if !matches!(&state.sink, Sink::Port { port: last, .. } if Arc::ptr_eq(last, port))
                    {
                        self.unsink(&mut state);
                        let place = match port.enlist(&self) {
                            Ok(place) => place,
                            Err(failure) => {
                                drop(state);
                                return Err((self, failure));
                            }
                        };
                        let its = Arc::clone(port);
                        state.sink = Sink::Port { port: its, place };
                        // One that closed before has not seen it in its list.
                        closed = port.check_open().err();
                    }
                }
                To::Waiter | To::Host => {
                    self.unsink(&mut state);
                    if matches!(to, To::Host) {
                        state.sink = Sink::Host;
                    }
                    self.slot.reset();
                }
            }
            // Under the lock: a port that closes sees a call that is its own, or one that is none.
            self.life.renew();
        }
        let call = CallRef(Some(self));
        if closed.is_some() {
            call.stop(Code::Cancelled.because("the port was closed"));
        }
        if deadline != u64::MAX {
            let waker = Waker::from(Arc::clone(call.core()));
            let key = call.instance.runtime.timers().at(deadline, waker);
            lock(&call.state).timer = Some(key);
            // It may have fired before the key was stored.
            call.forget_timer_if_done();
        }
        Ok(call)
    }

    fn unsink(&self, state: &mut State) {
        if let Sink::Port { port, place } = std::mem::replace(&mut state.sink, Sink::Waiter) {
            port.delist(place);
        }
    }

    /// Its second run does no harm.
    pub(crate) fn is_idempotent(&self) -> bool {
        let methods = self.instance.package.methods;
        methods
            .get(self.method() as usize)
            .is_some_and(|method| method.options.is_idempotent)
    }

    /// Where it is completed.
    pub(crate) fn port(&self) -> Option<Arc<Port>> {
        match &lock(&self.state).sink {
            Sink::Port { port, .. } => Some(Arc::clone(port)),
            Sink::Waiter | Sink::Host => None,
        }
    }

    /// Nobody but the host ends it well.
    pub(crate) fn is_for_host(&self) -> bool {
        matches!(lock(&self.state).sink, Sink::Host)
    }

    /// The call with this handle asks it of its host.
    pub(crate) fn is_asked_by(&self, asker: u64) {
        lock(&self.state).asker = asker;
    }

    /// The instance whose service asks it of its host, where the call of this generation is such a one.
    pub(crate) fn asking_instance(&self, generation: u32) -> Option<Arc<Instance>> {
        let asker = {
            let state = lock(&self.state);
            if self.life.generation() != generation || state.asker == 0 {
                return None;
            }
            state.asker
        };
        handles::find_calls(asker).map(|(asker, _)| Arc::clone(&asker.instance))
    }

    /// For who is inside.
    pub(crate) fn generation(&self) -> u32 {
        self.life.generation()
    }

    pub(crate) fn method(&self) -> u32 {
        self.method.load(Ordering::Relaxed)
    }

    pub(crate) fn deadline(&self) -> u64 {
        self.deadline.load(Ordering::Relaxed)
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.life.is_closed()
    }

    /// Tells the service why it should stop, and ends the streams.
    fn tell(&self, why: Failure) {
        let (why, streams, nested) = {
            let mut state = lock(&self.state);
            // The first reason counts.
            let why = state.stopped.get_or_insert(why).clone();
            self.told.store(true, Ordering::Release);
            let nested = std::mem::take(&mut state.nested);
            (why, state.streams.all(), nested)
        };
        for stream in streams {
            stream.end(why.clone());
        }
        for call in nested {
            nested::stop(call, &why);
        }
    }

    /// The call has ended; its streams may not have. Where it has none, the memory may be another call's already.
    fn stop_streams(&self, why: Failure) {
        if self.streamed.load(Ordering::Acquire) {
            self.tell(why);
        }
    }

    /// The timer is of no more use once the call has ended and no stream of it is open.
    pub(crate) fn forget_timer_if_done(&self) {
        if self.deadline() == u64::MAX || !self.has_ended() {
            return;
        }
        let timer = {
            let mut state = lock(&self.state);
            if !state.streams.is_gone() {
                return;
            }
            state.timer.take()
        };
        if let Some(key) = timer {
            self.instance.runtime.timers().cancel(key);
        }
    }

    /// A stream is the call's, and ends with it.
    pub(crate) fn adopt_stream(&self, stream: &Arc<dyn Ends>) {
        self.streamed.store(true, Ordering::Release);
        lock(&self.state).streams.push(stream);
        self.instance.watch(stream);
        // A call that was stopped meanwhile did not see the new stream.
        if let Err(why) = self.check_stopped() {
            stream.end(why);
        }
    }

    pub(crate) fn check_stopped(&self) -> Result<(), Failure> {
        if !self.told.load(Ordering::Acquire) {
            return Ok(());
        }
        match &lock(&self.state).stopped {
            Some(why) => Err(why.clone()),
            None => Ok(()),
        }
    }

    /// Its port closes: it ends, and keeps the port no longer.
    pub(crate) fn leave_port(self: &Arc<Self>, port: &Port) {
        if let Some(call) = CallRef::enter_any(self) {
            let is_its = matches!(&lock(&self.state).sink, Sink::Port { port: its, .. } if std::ptr::eq(&raw const **its, port));
            if is_its {
                call.stop(Code::Cancelled.because("the port was closed"));
            }
        }
        let mut state = lock(&self.state);
        if self.has_ended()
            && matches!(&state.sink, Sink::Port { port: its, .. } if std::ptr::eq(&raw const **its, port))
        {
            self.unsink(&mut state);
        }
    }

    /// Runs code of the service for a call of this generation, which may have ended and be gone when it returns. A panic stops the call and has the
    /// instance replaced (rule 3).
    pub(crate) fn guard(self: &Arc<Self>, generation: u32, code: impl FnOnce()) {
        let handle = u64::from(generation) << 32 | u64::from(self.name);
        if let Err(why) = caught(handle, code) {
            self.instance.replace();
            match CallRef::enter(self, generation) {
                Some(call) => call.stop(why),
                None => self.stop_streams(why),
            }
        }
    }

    /// The memory is not used again.
    pub(crate) fn retire(self: Arc<Self>) {
        handles::remove_calls(&self);
        self.unsink(&mut lock(&self.state));
        self.instance.delist(self.place.load(Ordering::Relaxed));
    }
}

/// Somebody who works for a call, or holds its result.
#[derive(Debug)]
pub struct CallRef(Option<Arc<CallCore>>);

impl CallRef {
    /// The call of this number, if it has not ended.
    pub(crate) fn enter(core: &Arc<CallCore>, generation: u32) -> Option<Self> {
        core.life.enter_generation(generation).ok()?;
        Some(Self(Some(Arc::clone(core))))
    }

    /// Whichever call it is that is under way.
    pub(crate) fn enter_any(core: &Arc<CallCore>) -> Option<Self> {
        core.life.enter_below(u32::MAX >> 2).ok()?;
        Some(Self(Some(Arc::clone(core))))
    }

    pub(crate) fn core(&self) -> &Arc<CallCore> {
        self.0.as_ref().expect("it is not dropped")
    }

    /// The caller has had enough: the call ends as cancelled unless it ended before.
    pub fn cancel(&self) {
        self.stop(Code::Cancelled.because("cancelled"));
    }

    /// Ends the call, its streams and the work on it, if they have not ended.
    pub(crate) fn stop(&self, why: Failure) {
        self.tell(why);
        if !self.has_ended() {
            // What it ends with is the reason that was told.
            let call = Call { core: self.clone() };
            Parcel::new(Ending::new(), call).deliver();
        }
    }

    /// It was refused after it began: nobody hears of it. `false`: it has ended, which was heard of.
    pub(crate) fn withdraw(&self) -> bool {
        let is_first = self.life.close();
        self.forget_timer_if_done();
        is_first
    }

    /// Leaves. The last one out gives the memory back, with that of its parcel.
    pub(crate) fn leave(mut self, ending: Box<Ending>) {
        if let Some(core) = self.0.take() {
            leave(core, Some(ending));
        }
    }
}

impl Clone for CallRef {
    fn clone(&self) -> Self {
        self.life.stay();
        Self(self.0.clone())
    }
}

impl Deref for CallRef {
    type Target = CallCore;

    fn deref(&self) -> &CallCore {
        self.core()
    }
}

impl Drop for CallRef {
    fn drop(&mut self) {
        if let Some(core) = self.0.take() {
            leave(core, None);
        }
    }
}

fn leave(core: Arc<CallCore>, ending: Option<Box<Ending>>) {
    if core.instance.is_forked() {
        // What was under way at the fork is the parent's, and so are the locks.
        std::mem::forget((core, ending));
    } else if core.life.leave(1) {
        if core.streamed.load(Ordering::Acquire) {
            core.retire();
        } else {
            let ending = ending.unwrap_or_else(Ending::new);
            Arc::clone(&core.instance).keep(core, ending);
        }
    }
}

impl Parcel {
    /// Rule 2: the first ending is delivered. A call that was told to stop ends for that reason, also where the service, which
    /// was told too, is faster with an answer.
    pub(crate) fn deliver(mut self) -> bool {
        let ending = self.contents();
        let core = ending
            .call
            .as_ref()
            .expect("a parcel is a call's")
            .core
            .core();
        let mut unwanted = Vec::new();
        let (port, timer, notices, was_stopped) = {
            let mut state = lock(&core.state);
            if let Some(why) = &state.stopped {
                unwanted = std::mem::take(&mut ending.data);
                (ending.code, ending.message) = (why.code, why.message.clone());
            }
            if !core.life.close() {
                drop(state);
                close_handles(&unwanted);
                drop(Completed(self));
                return false;
            }
            ending.handle = core.handle();
            ending.kind = Kind::CallEnded;
            ending.token = state.token;
            let port = match &state.sink {
                Sink::Port { port, .. } => Some(Arc::clone(port)),
                Sink::Waiter | Sink::Host => None,
            };
            let timer = match state.streams.is_gone() {
                true => state.timer.take(),
                false => None,
            };
            (port, timer, state.notices.take(), state.stopped.is_some())
        };
        if was_stopped {
            core.instance.one_was_stopped();
        }
        if let Some(key) = timer {
            core.instance.runtime.timers().cancel(key);
        }
        if let (Some(notices), Some(port)) = (notices, &port) {
            notices.settle(core, port);
        }
        // What is not delivered is dropped, with the handles in it.
        close_handles(&unwanted);
        match port {
            Some(port) => {
                core.instance.look_at(&port, ending.data.len());
                port.complete(Completed(self));
            }
            None => {
                let core = Arc::clone(core);
                core.slot.complete(Completed(self));
            }
        }
        true
    }
}

/// What a service's code knows of the call it works for: whether to go on, and how to make streams and actors that belong to it.
#[derive(Clone, Debug)]
pub struct Call {
    pub(crate) core: CallRef,
}

impl Call {
    /// Whether to go on. Lets other actors run if they wait and this one had its time slice; call it every few
    /// microseconds of work.
    ///
    /// # Errors
    /// Why not: cancelled, the deadline passed, another part of the call panicked, the runtime stops.
    pub fn check(&self) -> Result<(), Failure> {
        wait::check();
        if wait::is_stopping() {
            // Whoever is told to give up has no answer: the call ends here.
            self.core.stop(Code::ShutDown.because("the runtime stops"));
        }
        self.core.check_stopped()
    }

    /// When the call must have ended, in nanoseconds of [`thalweg_queue::clock`]; `None`: whenever.
    pub fn deadline(&self) -> Option<u64> {
        Some(self.core.deadline()).filter(|ns| *ns != u64::MAX)
    }

    /// Runs `job` as an actor that belongs to this call: its panic ends the call and its streams.
    pub fn spawn(&self, job: impl FnOnce(&Self) + Send + 'static) {
        let unrun = Unrun(Some(self.clone()));
        self.core.instance.runtime.spawn_queued(move || {
            let mut unrun = unrun;
            if let Some(call) = unrun.0.take() {
                let generation = call.core.life.generation();
                call.core.core().guard(generation, || job(&call));
            }
        });
    }

    /// How many actors can run at a time.
    pub fn workers(&self) -> usize {
        self.core.instance.runtime.workers()
    }
}

/// A job that was dropped before it ran: what it would have done is missing, and the call says so.
struct Unrun(Option<Call>);

impl Drop for Unrun {
    fn drop(&mut self) {
        if let Some(call) = self.0.take() {
            call.core
                .stop(Code::GuestLost.because("a part of the call's work was never run"));
        }
    }
}

/// Nanoseconds of the clock after which a call with this deadline is late at once.
pub(crate) fn is_past(deadline: u64) -> bool {
    deadline != u64::MAX && deadline <= clock::now()
}
