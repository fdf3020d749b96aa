//! One instance of a service, and the actor that runs it.
//!
//! Hosts push into its mailbox; whoever finds it unscheduled schedules a turn. A turn serves up to 64 calls, then lets others
//! have theirs; between two calls, too, where its time slice is over.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use thalweg_queue::quiet::lock;
use thalweg_runtime::{Handle, Run};

use crate::call::{Call, CallCore, CallRef, Destination};
use crate::code::{self, Code, Failure};
use crate::completion::{CallBuffer, Outcome, close_unread_streams};
use crate::handles::{self, Object};
use crate::host::HostBinding;
use crate::incoming::Incoming;
use crate::inline::Inline;
use crate::mailbox_waiters::MailboxWaiters;
use crate::nested::{REPLACED_SERVICE, catch_in_call};
use crate::open_state::OpenState;
use crate::port::Port;
use crate::queued_bytes::QueuedBytes;
use crate::resource::{DroppedResource, Resource, Value};
use crate::service::{Dispatch, Package, Service};
use crate::slab::Slab;
use crate::stream::{EndStream, StatsByMethod};
use crate::sync::CachePadded;
use crate::time_slice::TimeSlice;
use crate::versions::VersionMap;
use crate::weak_list::WeakList;

pub(crate) mod submit;

/// Calls in a turn, so that a flood does not starve the other actors of a worker.
const CALLS_PER_TURN: usize = 64;
/// Calls whose memory is kept for the next ones.
const MAX_SPARE_CALLS: usize = 4096;

struct ActorState {
    make: Box<dyn Fn() -> Box<dyn Dispatch> + Send>,
    service: Option<Box<dyn Dispatch>>,
    /// Taken out of the mailbox for this turn.
    batch: VecDeque<CallBuffer>,
}

#[derive(Default)]
struct Mailbox {
    calls: VecDeque<CallBuffer>,
    /// Resources that nobody names any more.
    dropped: Vec<DroppedResource>,
    /// The owner word: while it is set there is one turn, running or to come, so the service is never entered twice.
    scheduled: bool,
}

impl Mailbox {
    /// Whether the caller is to schedule a turn.
    fn claim_schedule(&mut self) -> bool {
        !std::mem::replace(&mut self.scheduled, true)
    }
}

/// The memory of a call and of its parcel.
type SpareCall = (Arc<CallCore>, Box<Outcome>);

/// An instance of a service: a mailbox, and an actor behind it.
pub struct Instance {
    pub(crate) package: &'static Package,
    pub(crate) runtime: Handle,
    epoch: u64,
    open_state: OpenState,
    /// The service panicked: the next turn drops it, and the next call finds a fresh one.
    is_replaced: AtomicBool,
    incarnation: AtomicU64,
    streams: Mutex<WeakList<dyn EndStream>>,
    /// Who answers what the service asks.
    pub(crate) host: HostBinding,
    /// What serves inline methods, once one was called.
    pub(crate) inline: OnceLock<Option<Box<dyn Inline>>>,
    /// Of a caller of another version.
    pub(crate) versions: OnceLock<VersionMap>,
    pub(crate) make_inline: fn() -> Option<Box<dyn Inline>>,
    /// What its streams did.
    pub(crate) method_stats: StatsByMethod,
    /// All places for calls that are its own.
    calls: Mutex<Slab<Weak<CallCore>>>,
    mailbox: CachePadded<Mutex<Mailbox>>,
    /// Something that has ended may be in it.
    has_stopped_calls: AtomicBool,
    /// A port of its calls has had more results than it may: each call looks, until the mailbox is empty.
    saw_full_port: AtomicBool,
    /// Who waits for a place in it.
    mailbox_waiters: MailboxWaiters,
    /// Of the arguments in it, and of those that a turn took out and has not served.
    queued_bytes: QueuedBytes,
    /// Of calls that ended, for the next ones.
    spare: CachePadded<Mutex<Vec<SpareCall>>>,
    actor: CachePadded<Mutex<ActorState>>,
    /// Turns that those who submit asked for.
    #[cfg(test)]
    schedules: AtomicU64,
}

impl std::fmt::Debug for Instance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Instance")
            .field("package", &self.package.name)
            .field("incarnation", &self.incarnation)
            .finish_non_exhaustive()
    }
}

impl Instance {
    /// An instance that makes its service with `make`, at its first call and after every panic.
    ///
    /// # Errors
    /// `overloaded`: the runtime found no threads.
    pub fn open<S: Service>(make: impl Fn() -> S + Send + 'static, runtime: Handle) -> Arc<Self> {
        Arc::new(Self {
            package: S::PACKAGE,
            runtime,
            epoch: handles::epoch(),
            open_state: OpenState::new(),
            is_replaced: AtomicBool::new(false),
            incarnation: AtomicU64::new(1),
            streams: Mutex::default(),
            host: HostBinding::default(),
            inline: OnceLock::new(),
            versions: OnceLock::new(),
            make_inline: S::inline,
            method_stats: StatsByMethod::default(),
            calls: Mutex::default(),
            mailbox: CachePadded::default(),
            has_stopped_calls: AtomicBool::new(false),
            saw_full_port: AtomicBool::new(false),
            mailbox_waiters: MailboxWaiters::default(),
            queued_bytes: QueuedBytes::default(),
            spare: CachePadded::default(),
            actor: CachePadded(Mutex::new(ActorState {
                make: Box::new(move || Box::new(make())),
                service: None,
                batch: VecDeque::new(),
            })),
            #[cfg(test)]
            schedules: AtomicU64::new(0),
        })
    }

    /// The process's runtime, for an instance.
    ///
    /// # Errors
    /// `overloaded`: no threads; `argument`: the environment has a bad setting.
    pub fn runtime() -> Result<Handle, Failure> {
        use thalweg_runtime::{Runtime, StartError};
        Runtime::global().map_err(|error| match error {
            StartError::Setting(..) | StartError::Abort => {
                Code::Argument.because(error.to_string())
            }
            StartError::Thread(_) => Code::Overloaded.because(error.to_string()),
        })
    }

    /// What it offers.
    pub fn package(&self) -> &'static Package {
        self.package
    }

    pub(crate) fn check_open(&self) -> Result<(), Failure> {
        if self.is_forked() {
            return Err(Code::Forked.because("the client was made before fork()"));
        }
        if self.open_state.is_closed() {
            return Err(Code::Closed.because("the client is closed"));
        }
        Ok(())
    }

    pub(crate) fn admit(&self, method: u32) -> Result<(), Failure> {
        self.check_open()?;
        if method as usize >= self.package.methods.len() {
            return Err(Code::Argument.because(format!(
                "{} has {} methods, none with the number {method}",
                self.package.name,
                self.package.methods.len()
            )));
        }
        Ok(())
    }

    /// A call was stopped, perhaps one that waits in the mailbox.
    pub(crate) fn note_stopped_call(&self) {
        self.has_stopped_calls.store(true, Ordering::Release);
        self.wake_waiters();
    }

    /// Checks a port before a result of `bytes` bytes is put into it.
    #[inline]
    pub(crate) fn check_port_backlog(&self, port: &Port, bytes: usize) {
        if port.unreaped_bytes() + bytes as u64 >= self.package.bounds.max_unreaped_bytes() {
            self.saw_full_port.store(true, Ordering::Relaxed);
        }
    }

    /// Ends a call that has not begun where its port has no room for a result: otherwise whatever was accepted before the first result would make the port as
    /// large as it likes.
    #[cold]
    fn reject_if_port_full(&self, call: &CallRef) {
        let most = self.package.bounds.max_unreaped_bytes();
        if call
            .port()
            .is_some_and(|port| port.unreaped_bytes() >= most)
        {
            call.stop(Code::Overloaded.because(format!(
                "results of more than {most} bytes were not reaped, and the call has not begun"
            )));
        }
    }

    fn wake_waiters(&self) {
        if self.package.bounds.waits {
            self.mailbox_waiters.wake_all();
        }
    }

    /// Takes out of the mailbox what has ended there, where something may have: it waits for nothing, and others want its place. Whether it was worth it.
    #[cold]
    fn sweep(&self) -> bool {
        if !self.has_stopped_calls.swap(false, Ordering::AcqRel) {
            return false;
        }
        let ended: Vec<CallBuffer> = {
            let mut mailbox = lock(&self.mailbox.0);
            let has_ended = |buffer: &CallBuffer| buffer.call().core.has_ended();
            let mut ended = Vec::new();
            // Each once around. Without memory they are left for a later sweep.
            for _ in 0..mailbox.calls.len() {
                match mailbox.calls.pop_front() {
                    Some(buffer) if has_ended(&buffer) && ended.try_reserve(1).is_ok() => {
                        ended.push(buffer);
                    }
                    buffer => mailbox.calls.extend(buffer),
                }
            }
            ended
        };
        // Without the lock: it closes what it holds.
        for buffer in &ended {
            self.queued_bytes.remove(&buffer.data);
            close_unread_streams(&buffer.data);
        }
        if !ended.is_empty() {
            self.wake_waiters();
        }
        !ended.is_empty()
    }

    /// Has a resource dropped, in a turn.
    pub(crate) fn discard(self: &Arc<Self>, dropped: DroppedResource) {
        if self.is_forked() {
            // It is the parent's, and so are the locks.
            std::mem::forget(dropped);
            return;
        }
        let idle = {
            let mut mailbox = lock(&self.mailbox.0);
            mailbox.dropped.push(dropped);
            mailbox.claim_schedule()
        };
        if idle {
            self.schedule();
        }
    }

    /// Unless one is to come, or is under way: that one looks again.
    fn schedule_if_idle(self: &Arc<Self>) {
        if lock(&self.mailbox.0).claim_schedule() {
            self.schedule();
        }
    }

    fn schedule(self: &Arc<Self>) {
        self.runtime.schedule(Arc::clone(self) as Arc<dyn Run>);
    }

    /// Whether this process is a child of the one that made it.
    pub(crate) fn is_forked(&self) -> bool {
        self.epoch != handles::epoch()
    }

    /// A place for a call, and memory for its parcel.
    pub(crate) fn take_spare(self: &Arc<Self>) -> Result<SpareCall, Failure> {
        let spare = lock(&self.spare.0).pop();
        match spare {
            Some(spare) => Ok(spare),
            None => Ok((CallCore::make(self)?, Outcome::new())),
        }
    }

    /// For the next call.
    pub(crate) fn recycle(&self, calls: Arc<CallCore>, mut outcome: Box<Outcome>) {
        outcome.clear();
        let refused = {
            let mut spare = lock(&self.spare.0);
            // Who closes takes out what is there after it said so. Without memory for the list there is none for the next call either.
            if self.open_state.is_closed()
                || calls.open_state.is_exhausted()
                || spare.len() >= MAX_SPARE_CALLS
                || spare.try_reserve(1).is_err()
            {
                Some((calls, outcome))
            } else {
                spare.push((calls, outcome));
                None
            }
        };
        if let Some((calls, _)) = refused {
            calls.retire();
        }
    }

    /// A place for calls is its own from now on. Where it is in the list.
    ///
    /// # Errors
    /// `overloaded`: there is no memory for the list.
    pub(crate) fn add_call(&self, calls: &Arc<CallCore>) -> Result<usize, Failure> {
        lock(&self.calls).insert(Arc::downgrade(calls))
    }

    /// It is not any more.
    pub(crate) fn remove_call(&self, key: usize) {
        lock(&self.calls).remove(key);
    }

    pub(crate) fn incarnation(&self) -> u64 {
        self.incarnation.load(Ordering::Acquire)
    }

    /// Rule 3: its resources are stale from now on, and it is dropped in a turn, with what it kept; the next call finds a fresh one.
    pub(crate) fn replace(self: &Arc<Self>) {
        self.is_replaced.store(true, Ordering::Release);
        self.incarnation.fetch_add(1, Ordering::AcqRel);
        self.schedule_if_idle();
    }

    /// Drops the service, if it is to be replaced: what it kept of other calls ends as panicked.
    #[inline]
    fn drop_replaced_service(&self, actor: &mut ActorState) {
        if self.is_replaced.load(Ordering::Acquire) {
            self.drop_service(actor);
        }
    }

    #[cold]
    fn drop_service(&self, actor: &mut ActorState) {
        if self.is_replaced.swap(false, Ordering::AcqRel) {
            let service = actor.service.take();
            // That it is broken is known.
            let _ = catch_in_call(REPLACED_SERVICE, || drop(service));
        }
    }

    /// Has a resource's async destructor called, if it has one; or drops it: the service's code.
    fn drop_resource(self: &Arc<Self>, actor: &mut ActorState, dropped: DroppedResource) {
        let DroppedResource {
            value,
            incarnation,
            destructor_called,
        } = dropped;
        let is_current = incarnation == self.incarnation();
        if is_current
            && !destructor_called
            && let Some(service) = &actor.service
            && let Some(method) = service.destructor(&*value)
        {
            self.call_destructor(actor, method, value);
            return;
        }
        let whose = if is_current { 0 } else { REPLACED_SERVICE };
        if catch_in_call(whose, || drop(value)).is_err() {
            self.replace();
        }
    }

    /// Has a resource's async destructor called in this turn. Nobody waits for it, so it takes no place in the mailbox.
    #[cold]
    fn call_destructor(self: &Arc<Self>, actor: &mut ActorState, method: u32, value: Value) {
        // Where the tables are full, what was not called is dropped in a later turn.
        let Ok(handle) = handles::insert(Object::Resource(Resource::for_destructor(self, value)))
        else {
            return;
        };
        let Ok((calls, mut outcome)) = self.take_spare() else {
            let _ = handles::close_handle(handle);
            return;
        };
        let layout = self.package.methods[method as usize].params;
        outcome.answer(Code::Ok, layout, &(thalweg_wire::Handle(handle),));
        // Small enough not to be weighed.
        match calls.begin(method, Destination::Waiter, u64::MAX) {
            Ok(core) => actor
                .batch
                .push_front(CallBuffer::new(outcome, Call { core })),
            Err((calls, _)) => {
                let _ = handles::close_handle(handle);
                self.recycle(calls, outcome);
            }
        }
    }

    /// Streams that end when the instance is closed.
    pub(crate) fn track_stream(&self, stream: &Arc<dyn EndStream>) {
        lock(&self.streams).push(stream);
    }

    /// Of a client that is closed. Again and beside another is harmless.
    fn end_streams(&self) {
        let streams = lock(&self.streams).live();
        streams
            .iter()
            .for_each(|stream| stream.end(code::client_closed()));
    }

    /// Ends its calls and streams as cancelled, and drops the service, on its actor.
    pub fn close(self: &Arc<Self>) {
        if self.is_forked() || !self.open_state.close() {
            return;
        }
        // Before a writer hears that it is to stop: a stream whose last writer went first would have ended well.
        self.end_streams();
        let spare = std::mem::take(&mut *lock(&self.spare.0));
        for (calls, _) in spare {
            calls.retire();
        }
        let (is_unused, calls) = {
            let calls = lock(&self.calls);
            (calls.is_unused(), calls.iter().cloned().collect::<Vec<_>>())
        };
        for call in calls.iter().filter_map(Weak::upgrade) {
            if let Some(call) = CallRef::enter_any(&call) {
                call.stop(code::client_closed());
            }
        }
        // Those of a call that was answered meanwhile.
        self.end_streams();
        drop(self.host.replace(None));
        self.incarnation.fetch_add(1, Ordering::AcqRel);
        // Without a call there was no service.
        if !is_unused {
            self.schedule_if_idle();
        }
    }

    fn serve(self: &Arc<Self>, actor: &mut ActorState, mut buffer: CallBuffer) {
        self.drop_replaced_service(actor);
        let call = &buffer.call().core;
        if self.open_state.is_closed() {
            // It came in beside the close.
            call.stop(code::client_closed());
        }
        if self.saw_full_port.load(Ordering::Relaxed) {
            self.reject_if_port_full(call);
        }
        if call.has_ended() {
            close_unread_streams(&buffer.data);
            return;
        }
        let method = call.method();
        if self.package.methods[method as usize].options.is_inline {
            let args = std::mem::take(&mut buffer.data);
            self.answer_inline(method, &args, buffer.contents());
            buffer.deliver();
            return;
        }
        if actor.service.is_none() {
            match catch_unwind(AssertUnwindSafe(|| (actor.make)())) {
                Ok(service) => actor.service = Some(service),
                Err(payload) => {
                    drop_catching_panic(payload);
                    call.stop(Code::GuestLost.because("the service panicked while it was made"));
                    return;
                }
            }
        }
        if let Some(service) = &mut actor.service {
            // Nothing of the call is kept beside: who gets the answer is the last in it.
            let handle = call.handle();
            call.set_incarnation(self.incarnation());
            if let Err(why) = catch_in_call(handle, || service.dispatch(Incoming::new(buffer))) {
                self.replace();
                if let Ok(Object::Call(call)) = handles::find(handle) {
                    call.stop(why);
                }
            }
        }
    }
}

/// Drops what may panic when it is dropped.
fn drop_catching_panic<T>(value: T) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
        std::mem::forget(payload);
    }
}

impl Run for Instance {
    fn run(self: Arc<Self>) {
        let mut actor = self.actor.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut calls_left, mut time_slice) = (CALLS_PER_TURN, TimeSlice::new());
        while calls_left > 0 {
            let dropped = {
                let mut mailbox = lock(&self.mailbox.0);
                if mailbox.calls.len() <= calls_left {
                    std::mem::swap(&mut actor.batch, &mut mailbox.calls);
                } else {
                    actor.batch.extend(mailbox.calls.drain(..calls_left));
                }
                // Who closes, or replaces it, sets that before it takes the lock.
                let must_close = self.open_state.is_closed() && actor.service.is_some();
                let must_drop = must_close || self.is_replaced.load(Ordering::Acquire);
                if actor.batch.is_empty() && mailbox.dropped.is_empty() && !must_drop {
                    mailbox.scheduled = false;
                    self.saw_full_port.store(false, Ordering::Relaxed);
                    return;
                }
                std::mem::take(&mut mailbox.dropped)
            };
            calls_left -= actor.batch.len();
            self.wake_waiters();
            self.drop_replaced_service(&mut actor);
            // What was let go of before a call is gone when it is served.
            for dropped in dropped {
                self.drop_resource(&mut actor, dropped);
            }
            if actor.batch.is_empty() && self.open_state.is_closed() {
                // Who closes may not have come so far.
                self.end_streams();
                drop_catching_panic(actor.service.take());
            }
            while let Some(buffer) = actor.batch.pop_front() {
                if let Some(next) = actor.batch.front() {
                    next.prefetch_contents();
                }
                if let Some(after_next) = actor.batch.get(1) {
                    after_next.prefetch();
                }
                self.queued_bytes.remove(&buffer.data);
                self.wake_waiters();
                self.serve(&mut actor, buffer);
                time_slice.after_call();
            }
        }
        drop(actor);
        self.schedule();
    }

    /// No stack came for a turn: the calls that wait for it did not begin, and end as `overloaded`.
    /// All other work of a turn waits for the next turn.
    fn refuse(self: Arc<Self>) {
        let (calls, has_more) = {
            let mut mailbox = lock(&self.mailbox.0);
            let has_more = !mailbox.dropped.is_empty()
                || self.open_state.is_closed()
                || self.is_replaced.load(Ordering::Acquire);
            mailbox.scheduled = has_more;
            (std::mem::take(&mut mailbox.calls), has_more)
        };
        for mut buffer in calls {
            self.queued_bytes.remove(&buffer.data);
            close_unread_streams(&buffer.data);
            buffer.fail(Code::Overloaded.because("no stack was free for a turn of the service"));
            buffer.deliver();
        }
        self.wake_waiters();
        if has_more {
            self.schedule();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
