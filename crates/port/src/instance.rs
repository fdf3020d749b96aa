//! An instance of a service, and the actor that runs it.
//!
//! Hosts push calls into the instance's mailbox. A thread that finds the instance unscheduled
//! schedules a turn. A turn serves up to 64 calls and then yields to other actors. It also yields
//! between two calls when its time slice has passed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::task::{Wake, Waker};

use thalweg_queue::no_preempt::lock;
use thalweg_queue::{CachePadded, prefetch};
use thalweg_runtime::log::{self, Level};
use thalweg_runtime::{Handle, Run, TimerKey, TurnSlot};

use crate::call::{CallCore, CallOwner, CallRef, Destination, catch_in_call};
use crate::code::{self, Code, Failure};
use crate::completion::CallBuffer;
use crate::end_stream::EndStream;
use crate::guest::{GuestInstance, GuestPort};
use crate::handles::{self, HandleObject, Kind};
use crate::incoming::Incoming;
use crate::inline::Inline;
use crate::mailbox::{Found, List, Mailbox};
use crate::mailbox_waiters::MailboxWaiters;
use crate::message_handles::close_unread_streams;
use crate::nested::REPLACED_SERVICE;
use crate::open_state::OpenState;
use crate::package::Package;
use crate::queued_bytes::QueuedBytes;
use crate::resource::{DroppedResource, Resource, ResourceOwner, Value};
use crate::service::{Dispatch, Service};
use crate::slab::Slab;
use crate::spare::{SpareCall, SpareCalls, SpareKey};
use crate::stream::StatsByMethod;
use crate::time_slice::TimeSlice;
use crate::versions::VersionMap;
use crate::weak_list::WeakList;

mod brief;
mod calls;
pub(crate) mod guard;
pub(crate) mod guest;
pub(crate) mod guest_input;
pub(crate) mod host;
mod inline_calls;
mod on_port;
mod push_batch;
mod streams;
pub(crate) mod submit;

use self::host::HostBinding;

/// Maximum number of calls in a turn, so that many calls do not starve the other actors of a
/// worker.
const CALLS_PER_TURN: usize = 64;

/// Creates the service.
type Make = Box<dyn Fn() -> Result<Box<dyn Dispatch>, Failure> + Send>;

struct ActorState {
    make: Make,
    service: Option<Box<dyn Dispatch>>,
    /// Calls that this turn took out of the mailbox.
    batch: List<CallBuffer>,
    /// Memory for the next brief call that a caller's thread serves.
    brief_memory: Option<SpareCall>,
    /// Schedules a turn at a deadline of the service.
    timer: Option<(u64, TimerKey)>,
}

/// A timer that schedules a turn. It does not keep the instance.
struct TurnAt(Weak<Instance>);

impl Wake for TurnAt {
    fn wake(self: Arc<Self>) {
        if let Some(instance) = self.0.upgrade() {
            instance.schedule_if_idle();
        }
    }
}

/// An instance of a service: a mailbox and the actor that serves it.
pub struct Instance {
    pub(crate) package: &'static Package,
    pub(crate) runtime: Handle,
    epoch: u64,
    open_state: OpenState,
    /// The service panicked. The next turn drops it, and the next call creates a new one.
    is_replaced: AtomicBool,
    incarnation: AtomicU64,
    streams: Mutex<WeakList<dyn EndStream>>,
    /// What answers the service's host calls.
    pub(crate) host: HostBinding,
    /// The object that serves inline methods, created by the first inline call.
    pub(crate) inline: OnceLock<Option<Box<dyn Inline>>>,
    /// Conversions for a caller with another version of the package.
    pub(crate) versions: OnceLock<VersionMap>,
    pub(crate) make_inline: fn() -> Option<Box<dyn Inline>>,
    /// Statistics of the streams of each method.
    pub(crate) method_stats: StatsByMethod,
    /// The memory of all calls of this instance.
    calls: Mutex<Slab<Weak<CallCore>>>,
    mailbox: CachePadded<Mailbox<CallBuffer>>,
    /// Resources without any handle. A turn drops them.
    dropped: Mutex<Vec<DroppedResource>>,
    /// The mailbox may contain calls that have ended.
    has_stopped_calls: AtomicBool,
    /// The port of a call had too many unreaped results. Until the mailbox is empty, each call
    /// checks its port before it begins.
    saw_full_port: AtomicBool,
    /// Submissions that wait for capacity in the mailbox.
    mailbox_waiters: MailboxWaiters,
    /// Size of the arguments in the mailbox, and of those that a turn took out and has not served
    /// yet.
    queued_bytes: QueuedBytes,
    /// Memory of calls that ended, for reuse.
    spare: CachePadded<SpareCalls>,
    actor: CachePadded<Mutex<ActorState>>,
    turn_slot: TurnSlot,
    /// The foreign code that is the service.
    guest: Option<Arc<GuestInstance>>,
    /// Its threads run the turns.
    guest_port: Option<Arc<GuestPort>>,
    /// Number of turns that submissions scheduled.
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
    /// An instance that creates its service with `make`, at the first call and after every panic.
    ///
    /// # Errors
    /// `overloaded`: the runtime found no threads.
    pub fn open<S: Service>(make: impl Fn() -> S + Send + 'static, runtime: Handle) -> Arc<Self> {
        Arc::new(Self::new(
            S::PACKAGE,
            S::PACKAGE.limits.max_queued_calls,
            Box::new(move || Ok(Box::new(make()))),
            S::inline,
            runtime,
        ))
    }

    /// `capacity` is the maximum number of calls in the mailbox.
    fn new(
        package: &'static Package,
        capacity: u32,
        make: Make,
        make_inline: fn() -> Option<Box<dyn Inline>>,
        runtime: Handle,
    ) -> Self {
        Self {
            package,
            runtime,
            epoch: handles::epoch(),
            open_state: OpenState::new(),
            is_replaced: AtomicBool::new(false),
            incarnation: AtomicU64::new(1),
            streams: Mutex::default(),
            host: HostBinding::default(),
            inline: OnceLock::new(),
            versions: OnceLock::new(),
            make_inline,
            method_stats: StatsByMethod::default(),
            calls: Mutex::default(),
            mailbox: CachePadded::new(Mailbox::new(capacity)),
            dropped: Mutex::default(),
            has_stopped_calls: AtomicBool::new(false),
            saw_full_port: AtomicBool::new(false),
            mailbox_waiters: MailboxWaiters::default(),
            queued_bytes: QueuedBytes::default(),
            spare: CachePadded::new(SpareCalls::new(capacity)),
            actor: CachePadded::new(Mutex::new(ActorState {
                make,
                service: None,
                batch: List::default(),
                brief_memory: None,
                timer: None,
            })),
            turn_slot: TurnSlot::default(),
            guest: None,
            guest_port: None,
            #[cfg(test)]
            schedules: AtomicU64::new(0),
        }
    }

    /// The process's runtime, for [`open`](Self::open).
    ///
    /// # Errors
    /// `overloaded`: no threads; `argument`: the environment contains an invalid setting.
    pub fn runtime() -> Result<Handle, Failure> {
        use thalweg_runtime::{Runtime, StartError};
        Runtime::global().map_err(|error| match error {
            StartError::Setting(..) | StartError::Abort => {
                Code::Argument.because(error.to_string())
            }
            StartError::Thread(_) => Code::Overloaded.because(error.to_string()),
        })
    }

    /// The process's runtime if it has started.
    pub fn runtime_if_started() -> Option<Handle> {
        thalweg_runtime::Runtime::global_if_started()
    }

    /// The package that the service implements.
    pub fn package(&self) -> &'static Package {
        self.package
    }

    /// Number of calls in the mailbox.
    pub(crate) fn queued_calls(&self) -> usize {
        self.mailbox.len()
    }

    #[inline]
    pub(crate) fn check_open(&self) -> Result<(), Failure> {
        if self.is_forked() || self.open_state.is_closed() {
            return Err(self.not_open());
        }
        Ok(())
    }

    #[cold]
    fn not_open(&self) -> Failure {
        if self.is_forked() {
            return Code::Forked.because("the client was made before fork()");
        }
        Code::Closed.because("the client is closed")
    }

    #[inline]
    pub(crate) fn admit(&self, method: u32) -> Result<(), Failure> {
        self.check_open()?;
        if method as usize >= self.package.methods.len() {
            return Err(self.no_method(method));
        }
        Ok(())
    }

    #[cold]
    fn no_method(&self, method: u32) -> Failure {
        Code::Argument.because(format!(
            "{} has {} methods, none with the number {method}",
            self.package.name,
            self.package.methods.len()
        ))
    }

    /// Ends a call that has not begun if its port has too many unreaped results. Otherwise the
    /// calls that were accepted before the first result could fill the port without a limit.
    #[cold]
    fn reject_if_port_full(&self, call: &CallRef) {
        let most = self.package.limits.max_unreaped_bytes();
        if call
            .port()
            .is_some_and(|port| port.unreaped_bytes() >= most)
        {
            call.stop(Code::Overloaded.because(format!(
                "more than {most} bytes of results are unreaped, and the call has not begun"
            )));
        }
    }

    #[inline]
    fn wake_waiters(&self) {
        if self.package.limits.blocks_on_overflow {
            self.mailbox_waiters.wake_all();
        }
    }

    /// Removes the calls that have ended from the mailbox, if there may be any, because they use
    /// capacity. Returns whether it removed any.
    #[cold]
    fn sweep(&self) -> bool {
        if !self.has_stopped_calls.swap(false, Ordering::AcqRel) {
            return false;
        }
        let mut ended = self.mailbox.extract(|outcome| {
            outcome
                .call
                .as_ref()
                .is_some_and(|call| call.core.has_ended())
        });
        let has_any = !ended.is_empty();
        // Not under a lock: dropping them closes handles.
        while let Some(buffer) = ended.pop_front() {
            self.queued_bytes.remove(&buffer.data);
            close_unread_streams(&buffer.data);
        }
        if has_any {
            self.wake_waiters();
        }
        has_any
    }

    /// Makes a turn look for work that is not in the mailbox. Schedules one unless one is scheduled
    /// or running.
    fn schedule_if_idle(self: &Arc<Self>) {
        if self.mailbox.notify() {
            self.schedule();
        }
    }

    fn schedule(self: &Arc<Self>) {
        match &self.guest_port {
            None => self.runtime.schedule(Arc::clone(self) as Arc<dyn Run>),
            Some(port) => port.schedule(Arc::clone(self)),
        }
    }

    /// Whether this process is a forked child of the process that created the instance.
    pub(crate) fn is_forked(&self) -> bool {
        self.epoch != handles::epoch()
    }

    /// Memory for a call and for its buffer.
    #[inline(always)]
    pub(crate) fn take_spare(self: &Arc<Self>, key: SpareKey) -> Result<SpareCall, Failure> {
        match self.spare.take(key) {
            Some(spare) => Ok(spare),
            None => self.make_call(key),
        }
    }

    #[cold]
    fn make_call(self: &Arc<Self>, key: SpareKey) -> Result<SpareCall, Failure> {
        self.spare.make_list(key);
        CallCore::make(Arc::clone(self) as _, key).map(SpareCall::new)
    }

    /// Drops the service if it must be replaced. Other calls that it kept end as `guest_panicked`.
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
            // A further panic changes nothing: the service is already being replaced.
            let _ = catch_in_call(REPLACED_SERVICE, || drop(service));
        }
    }

    /// Calls the async destructor of a resource if it has one, and otherwise drops the resource.
    /// Both run service code.
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
            Arc::clone(self).replace();
        }
    }

    /// Calls the async destructor of a resource in this turn. No caller waits for it, so it uses no
    /// slot in the mailbox.
    #[cold]
    fn call_destructor(self: &Arc<Self>, actor: &mut ActorState, method: u32, value: Value) {
        // If the handle table is full, the resource is dropped in a later turn, without its
        // destructor.
        let Ok(handle) = Resource::for_destructor(Arc::clone(self) as _, value).insert() else {
            return;
        };
        let Ok(mut spare) = self.take_spare(SpareKey::WAITERS) else {
            let _ = handles::close_handle(handle);
            return;
        };
        let layout = self.package.methods[method as usize].params;
        spare.answer(Code::Ok, layout, &(thalweg_wire::Handle(handle),));
        // The arguments are so small that they are not counted in `queued_bytes`.
        match spare.core().begin(method, Destination::Waiter, u64::MAX) {
            Ok(()) => actor.batch.push_front(spare.into_buffer()),
            Err(_) => {
                let _ = handles::close_handle(handle);
                self.recycle(spare);
            }
        }
    }

    /// Ends the streams of a closed client. It is safe to call this repeatedly and concurrently.
    fn end_streams(&self) {
        let streams = lock(&self.streams).live();
        streams
            .iter()
            .for_each(|stream| stream.end(code::client_closed()));
    }

    /// Ends the calls and streams as `cancelled`, and drops the service on its actor.
    pub fn close(self: &Arc<Self>) {
        if self.is_forked() || !self.open_state.close() {
            return;
        }
        // Before the calls are stopped: otherwise the last writer of a stream could finish first,
        // and the stream would end regularly.
        self.end_streams();
        self.spare.free_all();
        let (is_unused, calls) = {
            let calls = lock(&self.calls);
            (calls.is_unused(), calls.iter().cloned().collect::<Vec<_>>())
        };
        let running = calls.iter().filter_map(Weak::upgrade);
        let running = running.filter_map(|call| CallRef::enter_any(&call));
        let (host_calls, calls): (Vec<_>, Vec<_>) = running.partition(|call| call.is_host_call());
        // A host call is stopped by its call. In the other order, the service might still answer the
        // call, because its host call failed.
        for call in calls.into_iter().chain(host_calls) {
            call.stop(code::client_closed());
        }
        // Streams of calls that were answered in the meantime.
        self.end_streams();
        drop(self.host.replace(None));
        self.incarnation.fetch_add(1, Ordering::AcqRel);
        // Without a call the service was never created.
        if !is_unused || self.guest_port.is_some() {
            self.schedule_if_idle();
        }
    }

    /// Whether the service must serve a call that was taken out of the mailbox.
    #[inline(always)]
    fn must_serve(&self, buffer: &CallBuffer) -> bool {
        let call = &buffer.call().core;
        if self.open_state.is_closed() {
            // The call was submitted while the instance closed.
            call.stop(code::client_closed());
        }
        if self.saw_full_port.load(Ordering::Relaxed) {
            self.reject_if_port_full(call);
        }
        let has_ended = call.has_ended();
        if has_ended {
            close_unread_streams(&buffer.data);
        }
        !has_ended
    }

    #[inline]
    fn serve(self: &Arc<Self>, actor: &mut ActorState, mut buffer: CallBuffer) {
        self.drop_replaced_service(actor);
        if !self.must_serve(&buffer) {
            return;
        }
        let call = &buffer.call().core;
        let method = call.method();
        let options = &self.package.methods[method as usize].options;
        if options.is_inline {
            let args = std::mem::take(&mut buffer.data);
            self.answer_inline(method, &args, buffer.contents());
            buffer.deliver();
            return;
        }
        if actor.service.is_none() {
            match catch_unwind(AssertUnwindSafe(|| (actor.make)())) {
                Ok(Ok(service)) => actor.service = Some(service),
                Ok(Err(why)) => {
                    call.stop(Code::GuestLost.because(why.message));
                    return;
                }
                Err(payload) => {
                    drop_catching_panic(payload);
                    let why = "the constructor of the service panicked";
                    log::write(
                        Level::Error,
                        "service",
                        format_args!("{}: {why}", self.package.name),
                    );
                    call.stop(Code::GuestLost.because(why));
                    return;
                }
            }
        }
        if let Some(service) = &mut actor.service {
            // The instance keeps no reference to the call, so that the thread that receives the
            // answer is its last user.
            let handle = call.handle();
            call.set_incarnation(self.incarnation());
            let served = match options.is_brief {
                true => {
                    let call = call.clone();
                    Self::dispatch_brief(&mut **service, &call, buffer)
                }
                false => catch_in_call(handle, || service.dispatch(Incoming::new(buffer))),
            };
            if let Err(why) = served {
                Arc::clone(self).replace();
                if let Ok(call) = CallRef::find(handle) {
                    call.stop(why);
                }
            }
        }
    }
}

// SAFETY: clients have no other type.
unsafe impl HandleObject for Instance {
    fn has_kind(kind: Kind) -> bool {
        kind == Kind::Client
    }

    fn close_handle(self: Arc<Self>, _: Kind, _: u32) {
        self.close();
    }
}

/// Drops a value whose destructor may panic.
fn drop_catching_panic<T>(value: T) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
        std::mem::forget(payload);
    }
}

impl Instance {
    /// The work of a turn that is not in the mailbox.
    #[cold]
    fn attend(self: &Arc<Self>, actor: &mut ActorState) {
        self.drop_replaced_service(actor);
        // A resource that was dropped before a call was submitted is gone when that call is served.
        let dropped = std::mem::take(&mut *lock(&self.dropped));
        for dropped in dropped {
            self.drop_resource(actor, dropped);
        }
        // Only foreign code has something to do here, and it does not panic.
        let next = actor.service.as_mut().and_then(|service| service.attend());
        self.attend_at(actor, next);
    }

    /// Schedules a turn for this time, instead of the one for which one was scheduled.
    fn attend_at(self: &Arc<Self>, actor: &mut ActorState, next: Option<u64>) {
        let before = actor.timer.map(|(deadline, _)| deadline);
        if before == next {
            return;
        }
        let timers = self.runtime.timers();
        if let Some((_, timer)) = actor.timer.take() {
            timers.cancel(timer);
        }
        if let Some(deadline) = next.filter(|next| *next != u64::MAX) {
            let waker = Waker::from(Arc::new(TurnAt(Arc::downgrade(self))));
            actor.timer = Some((deadline, timers.at(deadline, waker)));
        }
    }

    #[cold]
    fn drop_service_of_closed(self: &Arc<Self>, actor: &mut ActorState) {
        // A concurrent `close` may not have done this yet.
        self.end_streams();
        drop_catching_panic(actor.service.take());
        actor.brief_memory = None;
        self.attend_at(actor, None);
    }

    fn serve_batch(self: &Arc<Self>, actor: &mut ActorState, time_slice: &mut TimeSlice) {
        while let Some(buffer) = actor.batch.pop_front() {
            if let [Some(next), after_next] = actor.batch.first_two() {
                next.prefetch_contents();
                if let Some(after_next) = after_next {
                    prefetch::value(after_next);
                }
            }
            self.queued_bytes.remove(&buffer.data);
            self.wake_waiters();
            self.serve(actor, buffer);
            time_slice.after_call();
        }
    }

    /// Ends a turn that found nothing more to do. Returns `false` if there is more.
    #[inline]
    fn end_turn(&self) -> bool {
        let saw_full_port = self.saw_full_port.load(Ordering::Relaxed);
        if saw_full_port {
            self.saw_full_port.store(false, Ordering::Relaxed);
        }
        let has_ended = self.mailbox.end_turn();
        if saw_full_port && !has_ended {
            self.saw_full_port.store(true, Ordering::Relaxed);
        }
        has_ended
    }
}

impl Instance {
    /// Runs a turn that serves up to `most` calls.
    #[inline(always)]
    pub(crate) fn run_turn(self: &Arc<Self>, most: usize) {
        let mut actor = self.actor.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut calls_left, mut time_slice) = (most.min(CALLS_PER_TURN), TimeSlice::new());
        loop {
            let found = self.mailbox.take(calls_left, &mut actor.batch);
            calls_left -= actor.batch.len();
            self.wake_waiters();
            if found == Found::Attention {
                self.attend(&mut actor);
            }
            self.serve_batch(&mut actor, &mut time_slice);
            if found == Found::Attention && self.open_state.is_closed() {
                self.drop_service_of_closed(&mut actor);
            }
            if self.end_turn() {
                return;
            }
            if calls_left == 0 {
                break;
            }
        }
        drop(actor);
        self.schedule();
    }
}

impl Run for Instance {
    fn run(self: Arc<Self>) {
        self.run_turn(CALLS_PER_TURN);
    }

    /// Called if no stack is available for a turn. The calls in the mailbox did not begin, and end
    /// as `overloaded`. All other work waits for the next turn.
    fn refuse(self: Arc<Self>) {
        let mut calls = List::default();
        let found = self.mailbox.take(usize::MAX, &mut calls);
        while let Some(mut buffer) = calls.pop_front() {
            self.queued_bytes.remove(&buffer.data);
            close_unread_streams(&buffer.data);
            buffer.fail(Code::Overloaded.because("no stack was free for a turn of the service"));
            buffer.deliver();
        }
        self.wake_waiters();
        let has_more = found == Found::Attention
            && (!lock(&self.dropped).is_empty()
                || self.open_state.is_closed()
                || self.is_replaced.load(Ordering::Acquire));
        if has_more {
            self.mailbox.notify();
        }
        if has_more || !self.mailbox.end_turn() {
            self.schedule();
        }
    }

    fn turn_slot(&self) -> &TurnSlot {
        &self.turn_slot
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
