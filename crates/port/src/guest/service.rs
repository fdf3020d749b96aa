//! A guest's instance: its state, the calls that the guest has, and its resources.

use std::cell::RefCell;
use std::collections::HashMap;
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use thalweg_queue::no_preempt::lock;
use thalweg_runtime::native;
use thalweg_wire::message;

use super::package::MethodTypes;
use super::{Guest, GuestCall, GuestObject, GuestPackage};
use crate::call::CallRef;
use crate::code::{self, Failure};
use crate::completion::CallBuffer;
use crate::handles;
use crate::incoming::{Incoming, Refusal, join_arguments};
use crate::message_handles::close_unread_streams;
use crate::nested::DropCause;
use crate::queued_bytes::SPARE_BYTES;
use crate::resource;
use crate::service::Dispatch;

/// A guest, as its instance knows it. It outlives the states of the instance.
pub(crate) struct GuestInstance {
    pub(crate) package: &'static GuestPackage,
    guest: Arc<dyn Guest>,
    /// The call whose [`Guest::call`] runs, or 0.
    running: AtomicU64,
    open: Mutex<OpenState>,
}

/// The state of the instance that the guest has opened, and its calls and objects.
#[derive(Default)]
struct OpenState {
    /// The number that the guest has returned for it.
    state: u64,
    /// The calls that the guest has not answered, although [`Guest::call`] has returned.
    kept: HashMap<u64, UnreadStreams>,
    /// The call that another thread answers, or has answered, while [`Guest::call`] runs for it; or 0.
    answered_early: u64,
    /// Those that ended otherwise, which the guest does not know yet.
    cancelled: Vec<u64>,
    /// The objects that the core owns, by the number of their resource.
    objects: HashMap<u64, OwnedObject>,
    /// Number of resources so far, in all states.
    resources: u64,
}

struct OwnedObject {
    object: GuestObject,
    /// The handle of the resource, if the guest has it and has not given it away.
    kept_handle: Option<u64>,
}

thread_local! {
    /// The call whose [`Guest::call`] runs on this thread.
    static CURRENT: RefCell<Option<Current>> = const { RefCell::new(None) };
}

struct Current {
    call: u64,
    /// `None` once the guest has answered.
    buffer: Option<CallBuffer>,
    types: &'static MethodTypes,
}

/// [`Guest::call`] runs on this thread until [`end`](Self::end), or until this is dropped by a panic.
struct CurrentScope {
    outer: Option<Current>,
}

impl CurrentScope {
    fn enter(current: Current) -> Self {
        Self {
            outer: CURRENT.replace(Some(current)),
        }
    }

    /// Returns the call if the guest has not answered it.
    fn end(mut self) -> Option<CallBuffer> {
        let ended = CURRENT.replace(self.outer.take());
        mem::forget(self);
        ended?.buffer
    }
}

impl Drop for CurrentScope {
    fn drop(&mut self) {
        let ended = CURRENT.replace(self.outer.take());
        // Not while it is borrowed: dropping a buffer uses the call.
        drop(ended);
    }
}

/// Takes the call with this handle if its [`Guest::call`] runs on this thread and has not answered
/// it.
pub(crate) fn take_current(call: u64) -> Option<(CallBuffer, &'static MethodTypes)> {
    CURRENT.with_borrow_mut(|current| match current {
        Some(current) if current.call == call => Some((current.buffer.take()?, current.types)),
        _ => None,
    })
}

/// Calls `f` with the call with this handle if its [`Guest::call`] runs on this thread and has not
/// answered it.
pub(crate) fn with_current<R>(call: u64, f: impl FnOnce(&CallRef) -> R) -> Option<R> {
    CURRENT.with_borrow(|current| {
        let current = current.as_ref().filter(|current| current.call == call)?;
        current.buffer.as_ref().map(|buffer| f(&buffer.call().core))
    })
}

impl GuestInstance {
    pub(crate) fn new(package: &'static GuestPackage, guest: Arc<dyn Guest>) -> Arc<Self> {
        Arc::new(Self {
            package,
            guest,
            running: AtomicU64::new(0),
            open: Mutex::default(),
        })
    }

    /// Records that the guest answers a call on another thread than that of its [`Guest::call`].
    pub(crate) fn forget_kept(&self, call: u64) {
        let unread = {
            let open = &mut *lock(&self.open);
            let unread = open.kept.remove(&call);
            if unread.is_none() && self.running.load(Ordering::Acquire) == call {
                open.answered_early = call;
            }
            unread
        };
        // Not under the lock.
        drop(unread);
    }

    /// Records that [`Guest::call`] returns and has not answered the call on its thread.
    fn add_kept(&self, call: u64, unread: UnreadStreams) {
        let open = &mut *lock(&self.open);
        if mem::take(&mut open.answered_early) != call {
            open.kept.insert(call, unread);
        }
    }

    /// Takes over an object of the state that serves a call. `None`: the guest does not have the call
    /// any more.
    pub(crate) fn new_resource(
        self: &Arc<Self>,
        call: u64,
        object: GuestObject,
    ) -> Option<GuestResource> {
        let open = &mut *lock(&self.open);
        // The lock keeps the state open.
        if self.running.load(Ordering::Acquire) != call && !open.kept.contains_key(&call) {
            return None;
        }
        open.resources += 1;
        let owned = OwnedObject {
            object,
            kept_handle: None,
        };
        open.objects.insert(open.resources, owned);
        Some(GuestResource {
            instance: Arc::clone(self),
            number: open.resources,
            state: open.state,
            object,
        })
    }

    /// Records that a call was stopped. Returns whether a turn must tell the guest.
    pub(crate) fn note_stopped(&self, call: u64) -> bool {
        let unread = {
            let open = &mut *lock(&self.open);
            let unread = open.kept.remove(&call);
            if unread.is_some() {
                open.cancelled.push(call);
            }
            unread
        };
        unread.is_some()
    }
}

/// The arguments of a call with streams. Those that the guest has not taken are closed with it.
#[derive(Default)]
pub(crate) struct UnreadStreams(Option<Vec<u8>>);

impl Drop for UnreadStreams {
    fn drop(&mut self) {
        if let Some(args) = &self.0 {
            close_unread_streams(args);
        }
    }
}

/// The service of an instance whose code is foreign.
pub(crate) struct GuestService {
    instance: Arc<GuestInstance>,
    state: u64,
    /// Memory for the next answer.
    spare: Vec<u8>,
}

impl GuestService {
    /// Opens a state.
    ///
    /// # Errors
    /// The guest has refused it.
    pub(crate) fn open(instance: &Arc<GuestInstance>) -> Result<Self, Failure> {
        let state = native(|| instance.guest.open())?;
        lock(&instance.open).state = state;
        Ok(Self {
            instance: Arc::clone(instance),
            state,
            spare: Vec::new(),
        })
    }

    /// The guest has returned from a call that it did not answer.
    fn keep(&self, buffer: CallBuffer, unread: UnreadStreams) {
        let call = &buffer.call().core;
        let handle = call.handle();
        self.instance.add_kept(handle, unread);
        // It may have been stopped meanwhile.
        if call.has_ended() && self.instance.note_stopped(handle) {
            self.tell_cancelled();
        }
    }

    fn tell_cancelled(&self) {
        let cancelled = mem::take(&mut lock(&self.instance.open).cancelled);
        if !cancelled.is_empty() {
            let tell = |call| self.instance.guest.cancel(self.state, call);
            native(|| cancelled.into_iter().for_each(tell));
        }
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
        // Rule 2. The answer is written into other memory, because it may be a part of the arguments.
        let mut args = mem::replace(&mut buffer.data, mem::take(&mut self.spare));
        let scope = CurrentScope::enter(Current {
            call,
            buffer: Some(buffer),
            types,
        });
        // The guest may overwrite the arguments.
        let has_streams = !types.streamed_params().is_empty();
        let unread = UnreadStreams(has_streams.then(|| args.clone()));
        let seen = GuestCall {
            call,
            method,
            deadline,
            args: &mut args,
        };
        self.instance.running.store(call, Ordering::Release);
        native(|| self.instance.guest.call(self.state, seen));
        if let Some(buffer) = scope.end() {
            self.keep(buffer, unread);
        }
        // Not before: other threads of the guest may use the call already.
        self.instance.running.store(0, Ordering::Release);
        if args.capacity() <= SPARE_BYTES {
            args.clear();
            self.spare = args;
        }
    }

    fn destructor(&self, _: &(dyn std::any::Any + Send + Sync)) -> Option<u32> {
        None
    }

    fn attend(&mut self) {
        self.tell_cancelled();
    }
}

impl Drop for GuestService {
    /// Rule 4.
    fn drop(&mut self) {
        let (kept, objects) = {
            let open = &mut *lock(&self.instance.open);
            open.cancelled.clear();
            (mem::take(&mut open.kept), mem::take(&mut open.objects))
        };
        for call in kept.into_keys() {
            // Unless the service is being replaced, they have ended.
            let why = match DropCause::now(call) {
                DropCause::OtherPanic(why) => why,
                DropCause::OwnPanic | DropCause::Intended => code::client_closed(),
            };
            if let Ok(call) = CallRef::find(call) {
                call.stop(why);
            }
        }
        native(|| {
            let guest = &self.instance.guest;
            for owned in objects.values() {
                guest.drop_resource(self.state, owned.object);
            }
            guest.close(self.state);
        });
        for handle in objects.into_values().filter_map(|owned| owned.kept_handle) {
            let _ = handles::close_handle(handle);
        }
    }
}

/// An object of a guest in the handle table.
pub(crate) struct GuestResource {
    instance: Arc<GuestInstance>,
    /// Its number among the resources of the instance.
    number: u64,
    state: u64,
    pub(crate) object: GuestObject,
}

impl GuestResource {
    /// Records that only the guest has the handle. Returns `false` if its state has ended.
    pub(crate) fn keep_handle(&self, handle: u64) -> bool {
        let open = &mut *lock(&self.instance.open);
        let owned = open.objects.get_mut(&self.number);
        owned
            .map(|owned| owned.kept_handle = Some(handle))
            .is_some()
    }

    /// Records that a host got the resources in a message.
    #[inline]
    pub(crate) fn note_given(message: &[u8]) {
        // Most messages have no handles: their number is after 8 bytes.
        if message.get(8..12) != Some(&[0; 4]) {
            Self::note_each_given(message);
        }
    }

    #[cold]
    fn note_each_given(message: &[u8]) {
        let Ok(message) = message::open_any(message) else {
            return;
        };
        for handle in message.handles() {
            // Without a further reference to the object: it is dropped in a turn.
            resource::with_any_object(handle, |resource: &Self| {
                let open = &mut *lock(&resource.instance.open);
                if let Some(owned) = open.objects.get_mut(&resource.number) {
                    owned.kept_handle = None;
                }
            });
        }
    }

    /// The guest owns the object from here on. Returns `false` if its state has ended, with the object.
    pub(crate) fn take_back(&self) -> bool {
        lock(&self.instance.open)
            .objects
            .remove(&self.number)
            .is_some()
    }
}

impl Drop for GuestResource {
    /// This is in a turn, as for every resource, unless the guest owns the object.
    fn drop(&mut self) {
        if self.take_back() {
            native(|| self.instance.guest.drop_resource(self.state, self.object));
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::package::QueueLimits;
    use crate::{GuestCall, PackageDescription};

    struct Nothing;

    impl Guest for Nothing {
        fn open(&self) -> Result<u64, Failure> {
            Ok(0)
        }
        fn call(&self, _: u64, _: GuestCall<'_>) {}
        fn cancel(&self, _: u64, _: u64) {}
        fn drop_resource(&self, _: u64, _: GuestObject) {}
        fn close(&self, _: u64) {}
    }

    #[test]
    fn call_that_is_answered_while_its_function_runs_is_not_kept() {
        let package = GuestPackage::of(&PackageDescription {
            name: "test:kept",
            version: "0.1.0",
            methods: vec![],
            imports: vec![],
            limits: QueueLimits::DEFAULT,
        });
        let instance = GuestInstance::new(package.unwrap(), Arc::new(Nothing));
        instance.running.store(5, Ordering::Release);
        instance.forget_kept(5);
        instance.add_kept(5, UnreadStreams::default());
        assert!(lock(&instance.open).kept.is_empty());
        instance.running.store(7, Ordering::Release);
        instance.add_kept(7, UnreadStreams::default());
        assert!(lock(&instance.open).kept.contains_key(&7));
        instance.forget_kept(7);
        assert!(lock(&instance.open).kept.is_empty());
    }
}
