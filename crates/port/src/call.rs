//! A call under way: its one ending, its deadline, and what stops with it.
//!
//! A call's memory, with its place in the table of handles, is used again by the next call of its client. [`OpenState`] says whose it is: each
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
use crate::completion::{CallBuffer, Completion, Kind, Outcome, close_handles};
use crate::handles;
use crate::instance::Instance;
use crate::nested::{self, catch_in_call};
use crate::notice::NoticeState;
use crate::open_state::OpenState;
use crate::pending::ResultCell;
use crate::port::Port;
use crate::stream::EndStream;
use crate::weak_list::WeakList;

/// Where a completion is to go.
#[derive(Clone, Copy)]
pub(crate) enum Destination<'a> {
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
        slab_key: usize,
    },
}

pub(crate) struct CallState {
    pub(crate) sink: Sink,
    pub(crate) token: u64,
    timer: Option<TimerKey>,
    pub(crate) notices: Option<Box<NoticeState>>,
    /// Why the service should stop working on it.
    pub(crate) stop_reason: Option<Failure>,
    streams: WeakList<dyn EndStream>,
    /// The calls that were made for this one.
    pub(crate) nested: Vec<u64>,
    /// The call for which a service asks this of its host; 0: it does not.
    origin: u64,
}

/// One call, shared by its caller, its service and its timer.
pub struct CallCore {
    pub(crate) instance: Arc<Instance>,
    pub(crate) open_state: OpenState,
    /// The lower half of its handles.
    handle_index: u32,
    /// In the instance's list of its calls; set once, before anybody else has it.
    slab_key: AtomicUsize,
    method: AtomicU32,
    deadline: AtomicU64,
    /// Of the service that serves it: what it makes is that one's.
    incarnation: AtomicU64,
    /// `stop_reason` has a reason.
    has_stop_reason: AtomicBool,
    /// It has, or had, a stream, which may outlive it: its memory is not used again.
    has_streams: AtomicBool,
    pub(crate) state: Mutex<CallState>,
    pub(crate) result: ResultCell,
}

impl std::fmt::Debug for CallCore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Call")
            .field("method", &self.method)
            .field("state", &self.open_state)
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
        handles::insert_call_core(|handle_index, generation| {
            let calls = Arc::new(Self {
                instance: Arc::clone(instance),
                open_state: OpenState::closed(generation),
                handle_index,
                slab_key: AtomicUsize::new(0),
                method: AtomicU32::new(0),
                deadline: AtomicU64::new(u64::MAX),
                incarnation: AtomicU64::new(0),
                has_stop_reason: AtomicBool::new(false),
                has_streams: AtomicBool::new(false),
                state: Mutex::new(CallState {
                    sink: Sink::Waiter,
                    token: 0,
                    timer: None,
                    notices: None,
                    stop_reason: None,
                    streams: WeakList::default(),
                    nested: Vec::new(),
                    origin: 0,
                }),
                result: ResultCell::default(),
            });
            let slab_key = instance.add_call(&calls)?;
            calls.slab_key.store(slab_key, Ordering::Relaxed);
            Ok(calls)
        })
    }

    pub(crate) fn handle(&self) -> u64 {
        u64::from(self.open_state.generation()) << 32 | u64::from(self.handle_index)
    }

    pub(crate) fn handle_index(&self) -> u32 {
        self.handle_index
    }

    /// The service that has it from now on.
    pub(crate) fn set_incarnation(&self, incarnation: u64) {
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
        to: Destination<'_>,
        deadline: u64,
    ) -> Result<CallRef, (Arc<Self>, Failure)> {
        self.method.store(method, Ordering::Relaxed);
        self.deadline.store(deadline, Ordering::Relaxed);
        let mut closed = None;
        {
            let mut state = lock(&self.state);
            if self.has_stop_reason.swap(false, Ordering::Relaxed) {
                state.stop_reason = None;
            }
            state.nested.clear();
            state.origin = 0;
            match to {
                Destination::Port { port, token } => {
                    state.token = token;
                    if !matches!(&state.sink, Sink::Port { port: last, .. } if Arc::ptr_eq(last, port))
                    {
                        self.detach_port(&mut state);
                        let slab_key = match port.add_call(&self) {
                            Ok(slab_key) => slab_key,
                            Err(failure) => {
                                drop(state);
                                return Err((self, failure));
                            }
                        };
                        let own_port = Arc::clone(port);
                        state.sink = Sink::Port {
                            port: own_port,
                            slab_key,
                        };
                        // One that closed before has not seen it in its list.
                        closed = port.check_open().err();
                    }
                }
                Destination::Waiter | Destination::Host => {
                    self.detach_port(&mut state);
                    if matches!(to, Destination::Host) {
                        state.sink = Sink::Host;
                    }
                    self.result.reset();
                }
            }
            // Under the lock: a port that closes sees a call that is its own, or one that is none.
            self.open_state.reopen();
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
            call.cancel_timer_if_done();
        }
        Ok(call)
    }

    fn detach_port(&self, state: &mut CallState) {
        if let Sink::Port { port, slab_key } = std::mem::replace(&mut state.sink, Sink::Waiter) {
            port.remove_call(slab_key);
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
    pub(crate) fn is_host_call(&self) -> bool {
        matches!(lock(&self.state).sink, Sink::Host)
    }

    /// The call with this handle asks it of its host.
    pub(crate) fn set_origin(&self, origin: u64) {
        lock(&self.state).origin = origin;
    }

    /// The instance whose service asks it of its host, where the call of this generation is such a one.
    pub(crate) fn origin_instance(&self, generation: u32) -> Option<Arc<Instance>> {
        let origin = {
            let state = lock(&self.state);
            if self.open_state.generation() != generation || state.origin == 0 {
                return None;
            }
            state.origin
        };
        handles::find_call_core(origin).map(|(origin, _)| Arc::clone(&origin.instance))
    }

    /// For who is inside.
    pub(crate) fn generation(&self) -> u32 {
        self.open_state.generation()
    }

    pub(crate) fn method(&self) -> u32 {
        self.method.load(Ordering::Relaxed)
    }

    pub(crate) fn deadline(&self) -> u64 {
        self.deadline.load(Ordering::Relaxed)
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.open_state.is_closed()
    }

    /// Tells the service why it should stop, and ends the streams.
    fn request_stop(&self, why: Failure) {
        let (why, streams, nested) = {
            let mut state = lock(&self.state);
            // The first reason counts.
            let why = state.stop_reason.get_or_insert(why).clone();
            self.has_stop_reason.store(true, Ordering::Release);
            let nested = std::mem::take(&mut state.nested);
            (why, state.streams.live(), nested)
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
        if self.has_streams.load(Ordering::Acquire) {
            self.request_stop(why);
        }
    }

    /// The timer is of no more use once the call has ended and no stream of it is open.
    pub(crate) fn cancel_timer_if_done(&self) {
        if self.deadline() == u64::MAX || !self.has_ended() {
            return;
        }
        let timer = {
            let mut state = lock(&self.state);
            if !state.streams.is_dead() {
                return;
            }
            state.timer.take()
        };
        if let Some(key) = timer {
            self.instance.runtime.timers().cancel(key);
        }
    }

    /// A stream is the call's, and ends with it.
    pub(crate) fn adopt_stream(&self, stream: &Arc<dyn EndStream>) {
        self.has_streams.store(true, Ordering::Release);
        lock(&self.state).streams.push(stream);
        self.instance.track_stream(stream);
        // A call that was stopped meanwhile did not see the new stream.
        if let Err(why) = self.check_stopped() {
            stream.end(why);
        }
    }

    pub(crate) fn check_stopped(&self) -> Result<(), Failure> {
        if !self.has_stop_reason.load(Ordering::Acquire) {
            return Ok(());
        }
        match &lock(&self.state).stop_reason {
            Some(why) => Err(why.clone()),
            None => Ok(()),
        }
    }

    /// Its port closes: it ends, and keeps the port no longer.
    pub(crate) fn port_closed(self: &Arc<Self>, port: &Port) {
        if let Some(call) = CallRef::enter_any(self) {
            let is_own = matches!(&lock(&self.state).sink, Sink::Port { port: own_port, .. } if std::ptr::eq(&raw const **own_port, port));
            if is_own {
                call.stop(Code::Cancelled.because("the port was closed"));
            }
        }
        let mut state = lock(&self.state);
        if self.has_ended()
            && matches!(&state.sink, Sink::Port { port: own_port, .. } if std::ptr::eq(&raw const **own_port, port))
        {
            self.detach_port(&mut state);
        }
    }

    /// Runs code of the service for a call of this generation, which may have ended and be gone when it returns. A panic stops the call and has the
    /// instance replaced (rule 3).
    pub(crate) fn run_guarded(self: &Arc<Self>, generation: u32, code: impl FnOnce()) {
        let handle = u64::from(generation) << 32 | u64::from(self.handle_index);
        if let Err(why) = catch_in_call(handle, code) {
            self.instance.replace();
            match CallRef::enter(self, generation) {
                Some(call) => call.stop(why),
                None => self.stop_streams(why),
            }
        }
    }

    /// The memory is not used again.
    pub(crate) fn retire(self: Arc<Self>) {
        handles::remove_call_core(&self);
        self.detach_port(&mut lock(&self.state));
        self.instance
            .remove_call(self.slab_key.load(Ordering::Relaxed));
    }
}

/// Somebody who works for a call, or holds its result.
#[derive(Debug)]
pub struct CallRef(Option<Arc<CallCore>>);

impl CallRef {
    /// The call of this number, if it has not ended.
    pub(crate) fn enter(core: &Arc<CallCore>, generation: u32) -> Option<Self> {
        core.open_state.enter_generation(generation).ok()?;
        Some(Self(Some(Arc::clone(core))))
    }

    /// Whichever call it is that is under way.
    pub(crate) fn enter_any(core: &Arc<CallCore>) -> Option<Self> {
        core.open_state.enter_below(u32::MAX >> 2).ok()?;
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
        self.request_stop(why);
        if !self.has_ended() {
            // What it ends with is the reason that was told.
            let call = Call { core: self.clone() };
            CallBuffer::new(Outcome::new(), call).deliver();
        }
    }

    /// It was refused after it began: nobody hears of it. `false`: it has ended, which was heard of.
    pub(crate) fn withdraw(&self) -> bool {
        let is_first = self.open_state.close();
        self.cancel_timer_if_done();
        is_first
    }

    /// Leaves. The last one out gives the memory back, with that of its parcel.
    pub(crate) fn leave(mut self, outcome: Box<Outcome>) {
        if let Some(core) = self.0.take() {
            leave(core, Some(outcome));
        }
    }
}

impl Clone for CallRef {
    fn clone(&self) -> Self {
        self.open_state.enter_again();
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

fn leave(core: Arc<CallCore>, outcome: Option<Box<Outcome>>) {
    if core.instance.is_forked() {
        // What was under way at the fork is the parent's, and so are the locks.
        std::mem::forget((core, outcome));
    } else if core.open_state.leave(1) {
        if core.has_streams.load(Ordering::Acquire) {
            core.retire();
        } else {
            let outcome = outcome.unwrap_or_else(Outcome::new);
            Arc::clone(&core.instance).recycle(core, outcome);
        }
    }
}

impl CallBuffer {
    /// Rule 2: the first ending is delivered. A call that was told to stop ends for that reason, also where the service, which
    /// was told too, is faster with an answer.
    pub(crate) fn deliver(mut self) -> bool {
        let outcome = self.contents();
        let core = outcome
            .call
            .as_ref()
            .expect("a parcel is a call's")
            .core
            .core();
        let mut unwanted = Vec::new();
        let (port, timer, notices, was_stopped) = {
            let mut state = lock(&core.state);
            if let Some(why) = &state.stop_reason {
                unwanted = std::mem::take(&mut outcome.data);
                (outcome.code, outcome.message) = (why.code, why.message.clone());
            }
            if !core.open_state.close() {
                drop(state);
                close_handles(&unwanted);
                drop(Completion(self));
                return false;
            }
            outcome.handle = core.handle();
            outcome.kind = Kind::CallEnded;
            outcome.token = state.token;
            let port = match &state.sink {
                Sink::Port { port, .. } => Some(Arc::clone(port)),
                Sink::Waiter | Sink::Host => None,
            };
            let timer = match state.streams.is_dead() {
                true => state.timer.take(),
                false => None,
            };
            (
                port,
                timer,
                state.notices.take(),
                state.stop_reason.is_some(),
            )
        };
        if was_stopped {
            core.instance.note_stopped_call();
        }
        if let Some(key) = timer {
            core.instance.runtime.timers().cancel(key);
        }
        if let (Some(notices), Some(port)) = (notices, &port) {
            notices.release(core, port);
        }
        // What is not delivered is dropped, with the handles in it.
        close_handles(&unwanted);
        match port {
            Some(port) => {
                core.instance.check_port_backlog(&port, outcome.data.len());
                port.complete(Completion(self));
            }
            None => {
                let core = Arc::clone(core);
                core.result.complete(Completion(self));
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
        let unrun = UnrunJob(Some(self.clone()));
        self.core.instance.runtime.spawn_queued(move || {
            let mut unrun = unrun;
            if let Some(call) = unrun.0.take() {
                let generation = call.core.open_state.generation();
                call.core.core().run_guarded(generation, || job(&call));
            }
        });
    }

    /// How many actors can run at a time.
    pub fn workers(&self) -> usize {
        self.core.instance.runtime.workers()
    }
}

/// A job that was dropped before it ran: what it would have done is missing, and the call says so.
struct UnrunJob(Option<Call>);

impl Drop for UnrunJob {
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
