//! The service of an instance whose code is foreign.

use std::cell::{Cell, RefCell};
use std::sync::{Arc, Mutex};
use std::{mem, ptr};

use thalweg_queue::clock;
use thalweg_queue::no_preempt::lock;
use thalweg_runtime::native;
use thalweg_wire::{Handle, message};

use super::package::MethodTypes;
use super::resource::GuestResource;
use super::states::{GuestInstance, Kept, UnreadStreams};
use super::{Guest, GuestCall, GuestObject};
use crate::call::CallRef;
use crate::code::{self, Code, Failure};
use crate::completion::CallBuffer;
use crate::handles;
use crate::incoming::{Incoming, Refusal, join_arguments};
use crate::nested::DropCause;
use crate::queued_bytes::SPARE_BYTES;
use crate::resource;
use crate::service::Dispatch;

thread_local! {
    /// The innermost call whose [`Guest::call`] runs on this thread, or null.
    static CURRENT: Cell<*const Current> = const { Cell::new(ptr::null()) };
}

struct Current {
    call: u64,
    /// `None` once the guest has answered.
    buffer: RefCell<Option<CallBuffer>>,
    types: &'static MethodTypes,
    outer: *const Current,
}

impl Current {
    /// Makes this the innermost call while `f` runs, and returns the call if the guest has not answered
    /// it.
    fn during(mut self, f: impl FnOnce()) -> Option<CallBuffer> {
        /// Also if `f` panics.
        struct Restore(*const Current);
        impl Drop for Restore {
            fn drop(&mut self) {
                CURRENT.set(self.0);
            }
        }
        self.outer = CURRENT.get();
        let restore = Restore(self.outer);
        CURRENT.set(&raw const self);
        f();
        drop(restore);
        self.buffer.into_inner()
    }
}

/// Calls `f` with the memory of the call with this handle, if its [`Guest::call`] runs on this thread.
#[inline(always)]
fn current<R>(call: u64, f: impl FnOnce(&Current) -> Option<R>) -> Option<R> {
    // SAFETY: `during` runs further out on this thread. It resets the pointer before its call is freed.
    let current = unsafe { CURRENT.get().as_ref() };
    current.filter(|current| current.call == call).and_then(f)
}

/// Takes the call with this handle if its [`Guest::call`] runs on this thread and has not answered
/// it.
pub(crate) fn take_current(call: u64) -> Option<(CallBuffer, &'static MethodTypes)> {
    current(call, |current| {
        let buffer = current.buffer.borrow_mut().take()?;
        Some((buffer, current.types))
    })
}

/// Calls `f` with the call with this handle if its [`Guest::call`] runs on this thread and has not
/// answered it.
pub(crate) fn with_current<R>(call: u64, f: impl FnOnce(&CallRef) -> R) -> Option<R> {
    current(call, |current| {
        let buffer = current.buffer.borrow();
        buffer.as_ref().map(|buffer| f(&buffer.call().core))
    })
}

/// The state that serves a call. `None`: its guest does not have the call any more.
pub(crate) fn state_of(instance: &GuestInstance, call: u64) -> Option<u64> {
    match with_current(call, |_| ()) {
        Some(()) => Some(instance.serving()),
        None => instance.state_of(call),
    }
}

/// The service of an instance whose code is foreign. Its turns are on the stack of a thread, which foreign
/// code needs: on a worker's own stack, on that of a caller that is no actor, or on a thread of the guest. Only
/// the end of a state may be on the stack of an actor, which drops the instance.
pub(crate) struct GuestService {
    instance: Arc<GuestInstance>,
    /// The state that serves calls. `None` between a reload and the next call.
    serving: Option<State>,
    /// The other states, after a reload.
    others: Vec<State>,
    /// A reload has left states that drain, or no state, so that each call is looked at.
    must_choose: bool,
    /// Memory for the next answer.
    spare: Vec<u8>,
}

/// A state in a guest. Dropping it ends it.
struct State {
    instance: Arc<GuestInstance>,
    opened: Arc<Opened>,
    number: u64,
    drains: bool,
    async_may_block: bool,
}

/// The state in the guest. It is closed when its [`State`] is dropped and the calls on the blocking pool
/// have returned.
struct Opened {
    guest: Arc<dyn Guest>,
    /// The number that the guest has returned for the state.
    state: u64,
    /// The objects that are left.
    objects: Mutex<Vec<GuestObject>>,
}

impl Drop for Opened {
    /// Rule 4.
    fn drop(&mut self) {
        let objects = mem::take(&mut *lock(&self.objects));
        native(|| {
            for object in objects {
                self.guest.drop_resource(self.state, object);
            }
            self.guest.close(self.state);
        });
    }
}

impl State {
    /// Opens a state in the guest that serves new calls.
    ///
    /// # Errors
    /// The guest has refused it.
    fn open(instance: &Arc<GuestInstance>) -> Result<Self, Failure> {
        let guest = instance.guest();
        let state = guest.open()?;
        Ok(Self {
            number: instance.add(&guest, state),
            instance: Arc::clone(instance),
            async_may_block: guest.async_may_block(),
            opened: Arc::new(Opened {
                guest,
                state,
                objects: Mutex::default(),
            }),
            drains: false,
        })
    }

    /// The guest has returned from a call that it did not answer.
    fn keep(&self, buffer: CallBuffer, unread: UnreadStreams) {
        let call = CallRef::clone(&buffer.call().core);
        let handle = call.handle();
        let kept = Kept {
            buffer,
            _unread: unread,
        };
        self.instance.keep(self.number, handle, kept);
        // It may have been stopped meanwhile.
        if call.has_ended() && self.instance.note_stopped(handle) {
            self.tell_cancelled();
        }
    }

    fn tell_cancelled(&self) {
        let cancelled = self.instance.take_cancelled(self.number);
        if !cancelled.is_empty() {
            let Opened { guest, state, .. } = &*self.opened;
            cancelled
                .into_iter()
                .for_each(|call| guest.cancel(*state, call));
        }
    }

    /// Lets a thread of the blocking pool call the guest.
    fn serve_on_pool(&self, mut buffer: CallBuffer, unread: UnreadStreams) {
        let mut args = mem::take(&mut buffer.data);
        let core = CallRef::clone(&buffer.call().core);
        let (call, method, deadline) = (core.handle(), core.method(), core.deadline());
        // From here on, it is answered and stopped like every call that the guest has kept.
        self.keep(buffer, unread);
        let (instance, opened) = (Arc::clone(&self.instance), Arc::clone(&self.opened));
        let serve = move || {
            let seen = GuestCall {
                call,
                method,
                deadline,
                args: &mut args,
            };
            if instance.state_of(call).is_some() {
                opened.guest.call(opened.state, seen);
            }
        };
        if !core.instance.runtime().spawn_blocking(serve) {
            core.stop(Code::Overloaded.because("no thread can be started for the call"));
        }
    }
}

impl GuestService {
    /// Opens the first state.
    ///
    /// # Errors
    /// The guest has refused it.
    pub(crate) fn open(instance: &Arc<GuestInstance>) -> Result<Self, Failure> {
        Ok(Self {
            serving: Some(State::open(instance)?),
            instance: Arc::clone(instance),
            others: Vec::new(),
            must_choose: false,
            spare: Vec::new(),
        })
    }

    /// Lets the state serve that a call needs after a reload: that of its resources, or the one in the guest
    /// for new calls.
    ///
    /// # Errors
    /// The guest has refused to open a state.
    #[cold]
    fn choose(&mut self, call: &CallRef, args: &[u8]) -> Result<(), Failure> {
        let state_of = |handle: Handle| {
            resource::with_object(&*call.instance, handle, |it: &GuestResource| it.state).ok()
        };
        let message = message::open_any(args);
        let mut of_resources = message
            .iter()
            .flat_map(|message| message.handles())
            .filter_map(state_of);
        let is_open = |number: &u64| self.states().any(|state| state.number == *number);
        let wanted = of_resources.find(is_open);
        let is_wanted = |state: &State| match wanted {
            Some(number) => state.number == number,
            None => !state.drains,
        };
        let number = match &self.serving {
            Some(serving) if is_wanted(serving) => serving.number,
            _ => {
                let next = match self.others.iter().position(is_wanted) {
                    Some(index) => self.others.swap_remove(index),
                    None => State::open(&self.instance)?,
                };
                let number = next.number;
                self.others.extend(self.serving.replace(next));
                number
            }
        };
        self.instance.set_serving(number);
        Ok(())
    }

    fn states(&self) -> impl Iterator<Item = &State> {
        self.serving.iter().chain(&self.others)
    }

    /// Lets states drain if another guest serves new calls.
    fn follow_reload(&mut self) {
        for state in self.serving.iter_mut().chain(&mut self.others) {
            if !state.drains && self.instance.drains(&state.opened.guest, state.number) {
                state.drains = true;
                self.must_choose = true;
            }
        }
        if self.must_choose {
            self.end_drained();
        }
    }

    #[cold]
    fn end_drained(&mut self) {
        let draining = self.states().filter(|state| state.drains);
        let numbers = draining.map(|state| state.number);
        let ended = self.instance.drained(clock::now(), numbers);
        let has_ended = |state: &mut State| ended.contains(&state.number);
        self.others.retain_mut(|state| !has_ended(state));
        drop(self.serving.take_if(has_ended));
        let drains = self.serving.as_ref().is_none_or(|state| state.drains);
        self.must_choose = drains || !self.others.is_empty();
    }
}

/// Adds the second part of the arguments, if the buffer has only the first one. `None`: they are
/// malformed, or the call has ended.
#[cold]
fn complete_arguments(buffer: CallBuffer, types: &MethodTypes) -> Option<CallBuffer> {
    let buffer = join_arguments(buffer)?;
    match types.check_params(&buffer.data) {
        Ok(()) => Some(buffer),
        Err(malformed) => {
            Incoming::new(buffer).refuse(Refusal::from(malformed));
            None
        }
    }
}

impl Dispatch for GuestService {
    fn dispatch(&mut self, incoming: Incoming) {
        let mut buffer = incoming.into_buffer();
        let (call, method, deadline) = {
            let core = &buffer.call().core;
            (core.handle(), core.method(), core.deadline())
        };
        let types = self.instance.package.types(method);
        if types.check_params(&buffer.data).is_err() {
            let Some(joined) = complete_arguments(buffer, types) else {
                return;
            };
            buffer = joined;
        }
        if self.must_choose
            && let Err(why) = self.choose(&buffer.call().core, &buffer.data)
        {
            let refusal = Code::GuestLost.because(why.message);
            Incoming::new(buffer).refuse(Refusal(refusal));
            return;
        }
        let state = self.serving.as_ref().expect("`choose` has opened it");
        let has_streams = !types.streamed_params().is_empty();
        if state.async_may_block && types.is_async() {
            let unread = UnreadStreams(has_streams.then(|| buffer.data.clone()));
            return state.serve_on_pool(buffer, unread);
        }
        // Rule 2. The answer is written into other memory, because it may be a part of the arguments.
        let mut args = mem::replace(&mut buffer.data, mem::take(&mut self.spare));
        let current = Current {
            call,
            buffer: RefCell::new(Some(buffer)),
            types,
            outer: ptr::null(),
        };
        // The guest may overwrite the arguments.
        let unread = UnreadStreams(has_streams.then(|| args.clone()));
        let seen = GuestCall {
            call,
            method,
            deadline,
            args: &mut args,
        };
        self.instance.begin_call(call);
        let unanswered = current.during(|| state.opened.guest.call(state.opened.state, seen));
        if let Some(buffer) = unanswered {
            state.keep(buffer, unread);
        }
        // Not before: other threads of the guest may use the call already.
        self.instance.end_call();
        if args.capacity() <= SPARE_BYTES {
            args.clear();
            self.spare = args;
        }
        if self.must_choose {
            self.end_drained();
        }
    }

    fn destructor(&self, _: &(dyn std::any::Any + Send + Sync)) -> Option<u32> {
        None
    }

    fn attend(&mut self) -> Option<u64> {
        self.states().for_each(State::tell_cancelled);
        self.follow_reload();
        match self.must_choose {
            true => self.instance.next_deadline(),
            false => None,
        }
    }
}

impl Drop for State {
    /// Rule 4.
    fn drop(&mut self) {
        let (owned, drain_deadline) = self.instance.remove(self.number);
        let is_late = drain_deadline.is_some_and(|deadline| deadline <= clock::now());
        for call in owned.kept.keys() {
            // Unless the service is being replaced or reloaded, they have ended.
            let why = match DropCause::now(*call) {
                DropCause::OtherPanic(why) => why,
                _ if is_late => reloaded(),
                DropCause::OwnPanic | DropCause::Intended => code::client_closed(),
            };
            if let Ok(call) = CallRef::find(*call) {
                call.stop(why);
            }
        }
        let end_streams = |why: Failure| owned.streams().for_each(|stream| stream.end(why.clone()));
        match DropCause::now(NO_CALL) {
            DropCause::OtherPanic(why) => end_streams(why),
            _ if is_late => end_streams(reloaded()),
            DropCause::OwnPanic | DropCause::Intended => {}
        }
        let objects = owned.objects.values().map(|owned| owned.object);
        lock(&self.opened.objects).extend(objects);
        for handle in owned.kept_handles() {
            let _ = handles::close_handle(handle);
        }
    }
}

/// No call has this handle.
const NO_CALL: u64 = 0;

/// Why something of an earlier guest has ended.
fn reloaded() -> Failure {
    Code::Stale.because("the guest was reloaded, and this was left at the deadline of the reload")
}
