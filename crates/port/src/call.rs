//! A running call: its single outcome, its deadline, and the work that stops with it.
//!
//! The memory of a call and its slot in the handle table are reused by the next call of the same
//! client. [`OpenState`] counts the users: each call is one generation, and the call's handle
//! contains the number of that generation. A [`CallRef`] belongs to a user that works for the call
//! or holds its result. After the call has ended, the last user to leave returns the memory to the
//! instance.

use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::task::{Wake, Waker};

use thalweg_queue::clock;
use thalweg_queue::no_preempt::{LockGuard, lock};
use thalweg_runtime::{TimerKey, wait};

use crate::code::{Code, Failure};
use crate::completion::{CallBuffer, Completion, Kind, Outcome};
use crate::end_stream::EndStream;
use crate::handles::{self, Entry, HandleObject, Kind as HandleKind};
use crate::message_handles::close_handles;
use crate::open_state::OpenState;
use crate::package::Package;
use crate::port::{Port, PortUser};
use crate::resource::{Resource, Value};
use crate::spare::{SpareCall, SpareKey};
use crate::weak_list::WeakList;

mod nested_calls;
pub(crate) mod notice;
mod owner;
pub(crate) mod result_cell;
mod streams;

use self::nested_calls::stop_nested;
pub(crate) use self::nested_calls::{catch_in_call, nested_failure};
use self::notice::NoticeState;
pub(crate) use self::owner::CallOwner;
use self::result_cell::ResultCell;

/// Where to send a call's completion.
#[derive(Clone, Copy)]
pub(crate) enum Destination<'a> {
    Port {
        port: &'a Arc<Port>,
        token: u64,
    },
    Waiter,
    /// Like `Waiter`, but the call is answered by the host.
    Host,
}

impl Destination<'_> {
    #[inline(always)]
    pub(crate) fn spare_key(&self) -> SpareKey {
        match self {
            Self::Port { port, .. } => SpareKey::of_port(port.number()),
            Self::Waiter | Self::Host => SpareKey::WAITERS,
        }
    }
}

/// Where a call's completion goes. A finished call keeps its port, because the next call most
/// likely uses the same port.
pub(crate) enum Sink {
    /// The call's own result cell.
    Waiter,
    /// The call's own result cell. The host answers the call.
    Host,
    Port {
        port: Arc<Port>,
        /// Key in the port's list of calls.
        slab_key: usize,
    },
}

pub(crate) struct CallState {
    pub(crate) sink: Sink,
    pub(crate) token: u64,
    timer: Option<TimerKey>,
    pub(crate) notices: Option<Box<NoticeState>>,
    /// Why the service should stop the work for this call.
    pub(crate) stop_reason: Option<Failure>,
    streams: WeakList<dyn EndStream>,
    /// Handles of the calls that were made on behalf of this call.
    pub(crate) nested: Vec<u64>,
    /// Handle of the call whose service made this host call, or 0 if this is not a host call.
    origin: u64,
    /// The second part of the arguments, which belongs to the caller. It is read only while the state
    /// is locked. A call that is stopped loses it before its outcome is delivered.
    borrowed: Option<BorrowedBytes>,
}

/// Memory of the caller.
#[derive(Clone, Copy)]
pub(crate) struct BorrowedBytes(*const [u8]);

// SAFETY: `Submitter::submit_borrowed` requires memory that any thread may read.
unsafe impl Send for BorrowedBytes {}

impl BorrowedBytes {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        Self(bytes)
    }
}

/// One call, shared by its caller, its service and its timer.
pub struct CallCore {
    /// The instance that the call belongs to.
    pub(crate) instance: Arc<dyn CallOwner>,
    pub(crate) package: &'static Package,
    /// The process that created the instance.
    epoch: u64,
    pub(crate) open_state: OpenState,
    /// The lower half of the call's handles.
    handle_index: u32,
    pub(crate) spare_key: SpareKey,
    /// Key in the instance's list of calls. Set once, before the call is shared.
    slab_key: AtomicUsize,
    method: AtomicU32,
    deadline: AtomicU64,
    /// Incarnation of the service that serves the call. The resources that the call creates belong
    /// to that incarnation.
    incarnation: AtomicU64,
    /// Whether `stop_reason` is set.
    has_stop_reason: AtomicBool,
    /// Whether the call uses anything of `state`. A user that puts something there, under the lock,
    /// sets this first. A call that does not use it is begun and delivered without the lock: a
    /// caller in Rust waits for it, without a deadline.
    uses_state: AtomicBool,
    /// The call has or had a stream, which may outlive the call. The memory is then not reused.
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

/// Fires at the deadline. It may also fire late, during a later call that reuses the memory, so it
/// compares the deadline with the clock.
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
    /// Memory for calls, with no call running.
    ///
    /// # Errors
    /// `overloaded`: too many handles are open, or there is not enough memory.
    pub(crate) fn make(
        instance: Arc<dyn CallOwner>,
        spare_key: SpareKey,
    ) -> Result<Arc<Self>, Failure> {
        handles::insert_reused(|handle_index, generation| {
            let calls = Arc::new(Self {
                package: instance.package(),
                epoch: handles::epoch(),
                instance: Arc::clone(&instance),
                open_state: OpenState::closed(generation),
                handle_index,
                spare_key,
                slab_key: AtomicUsize::new(0),
                method: AtomicU32::new(0),
                deadline: AtomicU64::new(u64::MAX),
                incarnation: AtomicU64::new(0),
                has_stop_reason: AtomicBool::new(false),
                uses_state: AtomicBool::new(false),
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
                    borrowed: None,
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

    /// Records which incarnation of the service serves the call.
    pub(crate) fn set_incarnation(&self, incarnation: u64) {
        self.incarnation.store(incarnation, Ordering::Relaxed);
    }

    /// The incarnation of the service that serves the call.
    pub(crate) fn incarnation(&self) -> u64 {
        self.incarnation.load(Ordering::Relaxed)
    }

    /// Begins a call: from here on it has a generation, and its deadline is active. The call takes
    /// over the slot that the port reserved. Until this point the caller owns the `CallCore`;
    /// afterwards it is a user of the call.
    ///
    /// # Errors
    /// `overloaded`: there is not enough memory to register the call with its port. The call did
    /// not begin.
    #[inline(always)]
    pub(crate) fn begin(
        self: &Arc<Self>,
        method: u32,
        to: Destination<'_>,
        deadline: u64,
    ) -> Result<(), Failure> {
        self.method.store(method, Ordering::Relaxed);
        self.deadline.store(deadline, Ordering::Relaxed);
        self.result.reset();
        let is_plain = matches!(to, Destination::Waiter) && deadline == u64::MAX;
        if is_plain && !self.uses_state.load(Ordering::Relaxed) {
            self.open_state.reopen();
            return Ok(());
        }
        self.begin_with_state(to, deadline)
    }

    fn begin_with_state(
        self: &Arc<Self>,
        to: Destination<'_>,
        deadline: u64,
    ) -> Result<(), Failure> {
        let mut closed = None;
        {
            let mut state = lock(&self.state);
            if self.has_stop_reason.swap(false, Ordering::Relaxed) {
                state.stop_reason = None;
            }
            state.nested.clear();
            state.origin = 0;
            state.borrowed = None;
            match to {
                Destination::Port { port, token } => {
                    state.token = token;
                    if !matches!(&state.sink, Sink::Port { port: last, .. } if Arc::ptr_eq(last, port))
                    {
                        self.detach_port(&mut state);
                        let user: Weak<dyn PortUser> = Arc::<Self>::downgrade(self);
                        let slab_key = port.add_user(user)?;
                        let own_port = Arc::clone(port);
                        state.sink = Sink::Port {
                            port: own_port,
                            slab_key,
                        };
                        // If the port closed before, its close did not find this call in the list.
                        closed = port.check_open().err();
                    }
                }
                Destination::Waiter => self.detach_port(&mut state),
                Destination::Host => {
                    self.detach_port(&mut state);
                    state.sink = Sink::Host;
                }
            }
            let uses_state = !matches!(to, Destination::Waiter) || deadline != u64::MAX;
            self.uses_state.store(uses_state, Ordering::Relaxed);
            // The lock is held: a port that closes either finds a running call of its own or no
            // call.
            self.open_state.reopen();
        }
        if closed.is_some() {
            CallRef::clone_of_user(self).stop(Code::Cancelled.because("the port was closed"));
        }
        if deadline != u64::MAX {
            let waker = Waker::from(Arc::clone(self));
            let key = self.instance.runtime().timers().at(deadline, waker);
            lock(&self.state).timer = Some(key);
            // The timer may have fired before the key was stored.
            self.cancel_timer_if_done();
        }
        Ok(())
    }

    fn detach_port(&self, state: &mut CallState) {
        if let Sink::Port { port, slab_key } = std::mem::replace(&mut state.sink, Sink::Waiter) {
            port.remove_user(slab_key);
        }
    }

    /// Whether it is safe to run the call's method a second time.
    pub(crate) fn is_idempotent(&self) -> bool {
        let methods = self.package.methods;
        methods
            .get(self.method() as usize)
            .is_some_and(|method| method.options.is_idempotent)
    }

    /// The port that receives the completion.
    pub(crate) fn port(&self) -> Option<Arc<Port>> {
        match &lock(&self.state).sink {
            Sink::Port { port, .. } => Some(Arc::clone(port)),
            Sink::Waiter | Sink::Host => None,
        }
    }

    /// Whether only the host can end this call with a result.
    pub(crate) fn is_host_call(&self) -> bool {
        matches!(lock(&self.state).sink, Sink::Host)
    }

    /// Marks this as a host call that was made during the call with this handle.
    pub(crate) fn set_origin(&self, origin: u64) {
        self.lock_to_use().origin = origin;
    }

    /// Locks the state to put something there (`uses_state`). The caller is a user of the call.
    pub(crate) fn lock_to_use(&self) -> LockGuard<'_, CallState> {
        self.uses_state.store(true, Ordering::Release);
        lock(&self.state)
    }

    /// The instance whose service made this host call. `None` if the call of this generation is not
    /// a host call.
    pub(crate) fn origin_instance(&self, generation: u32) -> Option<Arc<dyn CallOwner>> {
        let origin = {
            let state = lock(&self.state);
            if self.open_state.generation() != generation || state.origin == 0 {
                return None;
            }
            state.origin
        };
        handles::find_reused::<Self>(origin).map(|(origin, _)| Arc::clone(&origin.instance))
    }

    /// A resource that the call's service created.
    pub(crate) fn new_resource(&self, value: Value) -> Resource {
        let instance: Arc<dyn CallOwner> = Arc::clone(&self.instance);
        Resource::new(instance, self.incarnation(), value)
    }

    /// Precondition: the caller holds a reference ([`CallRef`]).
    pub(crate) fn generation(&self) -> u32 {
        self.open_state.generation()
    }

    pub(crate) fn method(&self) -> u32 {
        self.method.load(Ordering::Relaxed)
    }

    /// The name of the method in the library's version of the package.
    pub(crate) fn method_name(&self) -> &'static str {
        let method = self.package.methods.get(self.method() as usize);
        method.map_or("an unknown method", |method| method.name)
    }

    pub(crate) fn deadline(&self) -> u64 {
        self.deadline.load(Ordering::Relaxed)
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.open_state.is_closed()
    }

    /// Reports to the service why it should stop, and ends the call's streams.
    fn request_stop(&self, why: Failure) {
        let (why, streams, nested) = {
            let mut state = self.lock_to_use();
            // Only the first reason counts.
            let why = state.stop_reason.get_or_insert(why).clone();
            state.borrowed = None;
            self.has_stop_reason.store(true, Ordering::Release);
            let nested = std::mem::take(&mut state.nested);
            (why, state.streams.live(), nested)
        };
        for stream in streams {
            stream.end(why.clone());
        }
        for call in nested {
            stop_nested(call, &why);
        }
    }

    /// Sets the second part of the arguments, before the service has the call.
    pub(crate) fn set_borrowed(&self, bytes: BorrowedBytes) {
        let mut state = self.lock_to_use();
        // A call that was stopped meanwhile has ended.
        if state.stop_reason.is_none() {
            state.borrowed = Some(bytes);
        }
    }

    /// Reads the second part of the arguments. `None`: there is none, or the call was stopped. A thread
    /// that stops the call meanwhile waits.
    pub(crate) fn read_borrowed<R>(&self, read: impl FnOnce(&[u8]) -> R) -> Option<R> {
        let mut state = lock(&self.state);
        let BorrowedBytes(bytes) = state.borrowed.take()?;
        // SAFETY: `Submitter::submit_borrowed` requires that the memory is valid until the outcome of the
        // call is delivered. That happens under the lock, and a stop removes `borrowed` before.
        Some(read(unsafe { &*bytes }))
    }

    /// Stops the streams of a call that has ended. Without streams, the memory may already belong
    /// to another call.
    fn stop_streams(&self, why: Failure) {
        if self.has_streams.load(Ordering::Acquire) {
            self.request_stop(why);
        }
    }

    /// Cancels the timer if the call has ended and none of its streams is open.
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
            self.instance.runtime().timers().cancel(key);
        }
    }

    /// The rest of the work when the call has ended.
    #[cold]
    fn finish(
        &self,
        mut state: LockGuard<'_, CallState>,
        port: Option<&Arc<Port>>,
        was_stopped: bool,
    ) {
        let timer = match state.streams.is_dead() {
            true => state.timer.take(),
            false => None,
        };
        let notices = state.notices.take();
        drop(state);
        if was_stopped {
            Arc::clone(&self.instance).note_stopped_call(self.handle());
        }
        if let Some(key) = timer {
            self.instance.runtime().timers().cancel(key);
        }
        if let (Some(notices), Some(port)) = (notices, port) {
            notices.release(self, port);
        }
    }

    /// Makes a stream part of this call, so that it ends with the call.
    pub(crate) fn adopt_stream(&self, stream: &Arc<dyn EndStream>) {
        self.has_streams.store(true, Ordering::Release);
        self.lock_to_use().streams.push(stream);
        self.instance.track_stream(stream);
        // A concurrent stop of the call did not see the new stream.
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

    /// Runs service code for a call of this generation. The call may have ended and its memory may
    /// be reused when this returns. A panic stops the call and replaces the instance (rule 3).
    pub(crate) fn run_guarded(self: &Arc<Self>, generation: u32, code: impl FnOnce()) {
        let handle = u64::from(generation) << 32 | u64::from(self.handle_index);
        if let Err(why) = catch_in_call(handle, code) {
            Arc::clone(&self.instance).replace();
            match CallRef::enter(self, generation) {
                Some(call) => call.stop(why),
                None => self.stop_streams(why),
            }
        }
    }

    /// Removes the call's memory from all lists, so that it is not reused.
    pub(crate) fn retire(self: Arc<Self>) {
        handles::remove_reused(self.handle_index, self.open_state.generation());
        self.detach_port(&mut lock(&self.state));
        self.instance
            .remove_call(self.slab_key.load(Ordering::Relaxed));
    }
}

impl CallState {
    fn completes_on(&self, port: &Port) -> bool {
        matches!(&self.sink, Sink::Port { port: own_port, .. } if std::ptr::eq(&raw const **own_port, port))
    }
}

impl PortUser for CallCore {
    /// Ends the call and releases the port.
    fn on_port_closed(self: Arc<Self>, port: &Port) {
        if let Some(call) = CallRef::enter_any(&self) {
            let is_own = lock(&self.state).completes_on(port);
            if is_own {
                call.stop(Code::Cancelled.because("the port was closed"));
            }
        }
        let mut state = lock(&self.state);
        if self.has_ended() && state.completes_on(port) {
            self.detach_port(&mut state);
        }
    }
}

// SAFETY: calls have no other type.
unsafe impl HandleObject for CallCore {
    fn has_kind(kind: HandleKind) -> bool {
        kind == HandleKind::Call
    }

    fn close_handle(self: Arc<Self>, _: HandleKind, generation: u32) {
        if let Some(call) = CallRef::enter(&self, generation) {
            call.cancel();
        }
    }

    fn is_running(&self, generation: u32) -> bool {
        self.generation() == generation && !self.has_ended()
    }

    fn on_notice_reaped(&self, generation: u32) -> bool {
        self.note_reaped_notice(generation)
    }

    fn on_answerer_closed(self: Arc<Self>, generation: u32) {
        if let Some(call) = CallRef::enter(&self, generation) {
            call.stop(host_closed());
        }
    }
}

/// A reference of a user that works for a call or holds its result.
#[derive(Debug)]
pub struct CallRef(ManuallyDrop<Arc<CallCore>>);

impl CallRef {
    /// The call with this generation, unless it has ended.
    pub(crate) fn enter(core: &Arc<CallCore>, generation: u32) -> Option<Self> {
        core.open_state.enter_generation(generation).ok()?;
        Some(Self::of_user(Arc::clone(core)))
    }

    /// The call with this handle.
    ///
    /// # Errors
    /// `stale`: it has ended. The errors of [`handles::with`].
    pub(crate) fn find(handle: u64) -> Result<Self, Failure> {
        handles::with(handle, |entry| Self::of_entry(entry, handle))
    }

    /// The call in the handle table, unless it has ended or is no call.
    pub(crate) fn of_entry(entry: &Entry, handle: u64) -> Option<Self> {
        let core = entry.get(HandleKind::Call).ok()?;
        Self::enter(&core, handles::generation_of(handle))
    }

    /// The running call, whatever its generation.
    pub(crate) fn enter_any(core: &Arc<CallCore>) -> Option<Self> {
        core.open_state.enter_below(u32::MAX >> 2).ok()?;
        Some(Self::of_user(Arc::clone(core)))
    }

    /// The caller has entered the call.
    #[inline(always)]
    fn of_user(core: Arc<CallCore>) -> Self {
        Self(ManuallyDrop::new(core))
    }

    /// A reference for memory that no call uses ([`SpareCall`]). The call that begins in it counts
    /// the reference as its first user.
    pub(crate) fn of_core(core: Arc<CallCore>) -> Self {
        Self::of_user(core)
    }

    /// A further reference. The caller is a user of the call.
    fn clone_of_user(core: &Arc<CallCore>) -> Self {
        core.open_state.enter_again();
        Self::of_user(Arc::clone(core))
    }

    #[inline(always)]
    pub(crate) fn core(&self) -> &Arc<CallCore> {
        &self.0
    }

    /// Takes the `Arc` out. It stays counted as a user, if it was.
    pub(crate) fn into_core(self) -> Arc<CallCore> {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: it is taken once, because `this` is not dropped.
        unsafe { ManuallyDrop::take(&mut this.0) }
    }

    /// Ends the call as `cancelled`, unless it has already ended.
    pub fn cancel(&self) {
        self.stop(Code::Cancelled.because("cancelled"));
    }

    /// Ends the call, its streams and the work for it, unless they have already ended.
    pub(crate) fn stop(&self, why: Failure) {
        self.request_stop(why);
        if !self.has_ended() {
            // `deliver` uses the recorded stop reason as the outcome.
            let call = Call { core: self.clone() };
            CallBuffer::new(Outcome::new(), call).deliver();
        }
    }

    /// Ends a call that was refused after it had begun. No outcome is delivered. Returns `false` if
    /// the call had already ended and its outcome was delivered.
    pub(crate) fn withdraw(&self) -> bool {
        let is_first = self.open_state.close();
        self.cancel_timer_if_done();
        is_first
    }
}

impl Clone for CallRef {
    fn clone(&self) -> Self {
        Self::clone_of_user(&self.0)
    }
}

impl Deref for CallRef {
    type Target = CallCore;

    fn deref(&self) -> &CallCore {
        self.core()
    }
}

impl Drop for CallRef {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: it is taken once, because this is the drop.
        let core = unsafe { ManuallyDrop::take(&mut self.0) };
        if core.epoch != handles::epoch() {
            // A call that was running at the fork belongs to the parent process, and so do the
            // locks.
            std::mem::forget(core);
        } else if core.open_state.leave(1) {
            core.reuse();
        }
    }
}

impl CallCore {
    /// Removes `count` users of a call that has ended. Returns whether the memory may be used again: there
    /// is no other user, and no stream.
    #[inline]
    pub(crate) fn leave_as_last(self: &Arc<Self>, count: u32) -> bool {
        if !self.open_state.leave(count) {
            return false;
        }
        let has_streams = self.has_streams.load(Ordering::Acquire);
        if has_streams {
            Arc::clone(self).retire();
        }
        !has_streams
    }

    /// Returns the memory of a call that its last user has left, without its buffer.
    #[cold]
    fn reuse(self: Arc<Self>) {
        if self.has_streams.load(Ordering::Acquire) {
            self.retire();
        } else {
            Arc::clone(&self.instance).recycle(SpareCall::new(self));
        }
    }
}

/// Drops the buffer of a call, and its reference to the call. If that was the last one, the memory
/// of both is used again.
#[inline]
pub(crate) fn leave_with_buffer(mut outcome: Box<Outcome>) {
    let core = outcome.call.as_ref().expect("it is the buffer of a call");
    let core = core.core.core();
    if core.epoch != handles::epoch() {
        std::mem::forget(outcome);
    } else if core.open_state.leave(1) {
        let has_streams = core.has_streams.load(Ordering::Acquire);
        let instance = Arc::clone(&core.instance);
        let spare = SpareCall::of_outcome(outcome);
        if !has_streams {
            instance.recycle(spare);
        }
    } else if let Some(call) = outcome.call.take() {
        // The reference was counted as a user, and has left.
        drop(call.core.into_core());
    }
}

impl CallBuffer {
    /// Rule 2: delivers the first outcome. If the call was asked to stop, it ends for that reason,
    /// even if the service answers before it notices the request. Returns whether it has ended with this
    /// outcome.
    #[inline]
    pub(crate) fn deliver(self) -> bool {
        self.deliver_then(|port| port.announce())
    }

    /// Does what [`deliver`](Self::deliver) does, except that `announce` announces the completion to its
    /// port, at once or later.
    #[inline]
    pub(crate) fn deliver_then(mut self, announce: impl FnOnce(Arc<Port>)) -> bool {
        let outcome = self.contents();
        let core = outcome
            .call
            .as_ref()
            .expect("a call buffer belongs to a call")
            .core
            .core();
        if core.uses_state.load(Ordering::Acquire) {
            return self.deliver_with_state(announce);
        }
        if !core.open_state.close() {
            drop(Completion(self));
            return false;
        }
        outcome.handle = core.handle();
        outcome.kind = Kind::CallEnded;
        let cell = &raw const core.result;
        // SAFETY: as in `deliver_with_state`.
        unsafe { &*cell }.complete(Completion(self));
        true
    }

    fn deliver_with_state(mut self, announce: impl FnOnce(Arc<Port>)) -> bool {
        let outcome = self.contents();
        let core = outcome
            .call
            .as_ref()
            .expect("a call buffer belongs to a call")
            .core
            .core();
        let state = lock(&core.state);
        let mut unwanted = Vec::new();
        let was_stopped = state.stop_reason.is_some();
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
        let has_more = was_stopped || state.timer.is_some() || state.notices.is_some();
        if has_more {
            core.finish(state, port.as_ref(), was_stopped);
            // An outcome that is not delivered is dropped, and the handles in it are closed.
            close_handles(&unwanted);
        } else {
            drop(state);
        }
        match port {
            Some(port) => {
                let unreaped = port.unreaped_bytes() + outcome.data.len() as u64;
                if unreaped >= core.package.limits.max_unreaped_bytes() {
                    core.instance.note_full_port();
                }
                port.put(Completion(self));
                announce(port);
            }
            None => {
                let cell = &raw const core.result;
                // SAFETY: the buffer keeps the call alive until `complete` has stored it in the
                // cell, and `complete` accesses nothing afterwards (rule 3 of `result_cell`).
                unsafe { &*cell }.complete(Completion(self));
            }
        }
        !was_stopped
    }
}

/// The call that a service method works for. It reports whether to continue, and creates streams
/// and actors that belong to the call.
#[derive(Clone, Debug)]
pub struct Call {
    pub(crate) core: CallRef,
}

impl Call {
    /// Checks whether to continue. Yields to other actors if they wait and this actor has used its
    /// time slice. Call it every few microseconds of work.
    ///
    /// # Errors
    /// Why the work should stop: the call was cancelled, its deadline passed, another part of the
    /// call panicked, or the runtime stops.
    pub fn check(&self) -> Result<(), Failure> {
        wait::check();
        if wait::is_stopping() {
            // An actor that is asked to stop will not answer, so the call ends here.
            self.core.stop(Code::ShutDown.because("the runtime stops"));
        }
        self.core.check_stopped()
    }

    /// The call's deadline in nanoseconds of [`thalweg_queue::clock`], or `None` if it has no
    /// deadline.
    pub fn deadline(&self) -> Option<u64> {
        Some(self.core.deadline()).filter(|ns| *ns != u64::MAX)
    }

    /// Runs `job` in an actor that belongs to this call. A panic in it ends the call and its
    /// streams.
    pub fn spawn(&self, job: impl FnOnce(&Self) + Send + 'static) {
        let unrun = UnrunJob(Some(self.clone()));
        self.core.instance.runtime().spawn_queued(move || {
            let mut unrun = unrun;
            if let Some(call) = unrun.0.take() {
                let generation = call.core.open_state.generation();
                call.core.core().run_guarded(generation, || job(&call));
            }
        });
    }

    /// How many actors can run in parallel.
    pub fn workers(&self) -> usize {
        self.core.instance.runtime().workers()
    }
}

/// A job that was dropped before it ran. Its part of the work is missing, so the call ends with an
/// error.
struct UnrunJob(Option<Call>);

impl Drop for UnrunJob {
    fn drop(&mut self) {
        if let Some(call) = self.0.take() {
            call.core
                .stop(Code::GuestLost.because("part of the call's work never ran"));
        }
    }
}

/// Whether this deadline, in nanoseconds of the clock, has passed.
pub(crate) fn is_past(deadline: u64) -> bool {
    deadline != u64::MAX && deadline <= clock::now()
}

pub(crate) fn host_closed() -> Failure {
    Code::Closed.because("the host's port was closed")
}
