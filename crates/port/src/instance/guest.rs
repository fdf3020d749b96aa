//! Instances whose service is foreign code, and the functions that the foreign code calls.

use std::sync::{Arc, Weak};

use thalweg_runtime::{Handle as Runtime, TurnSlot};
use thalweg_wire::{Handle, message};

use super::{Instance, Make};
use crate::call::{Call, CallRef};
use crate::code::{Code, Failure, append, unencodable};
use crate::completion::{CallBuffer, Outcome};
use crate::end_stream::EndStream;
use crate::guest::{
    Guest, GuestInstance, GuestObject, GuestPackage, GuestResource, GuestService, MethodTypes,
    state_of, take_current, with_current,
};
use crate::handles::{self, Kind};
use crate::message_handles::close_resources;
use crate::port::{Port, Unannounced};
use crate::resource;
use crate::stream::future::ONE_RECORD;
use crate::stream::{RecordWriter, StreamCore};

impl Instance {
    /// An instance that `guest` serves. Its state is opened by the first call.
    pub fn open_guest(
        package: &'static GuestPackage,
        guest: Arc<dyn Guest>,
        runtime: Runtime,
    ) -> Arc<Self> {
        let port = Arc::clone(&guest).port();
        let guest = GuestInstance::new(package, guest);
        let package = package.package();
        let make: Make = {
            let guest = Arc::clone(&guest);
            Box::new(move || Ok(Box::new(GuestService::open(&guest)?)))
        };
        let capacity = package.limits.max_queued_calls;
        let mut instance = Self::new(package, capacity, make, || None, runtime);
        instance.guest = Some(guest);
        instance.turn_slot = TurnSlot::on_worker_stack();
        instance.guest_port = port;
        Arc::new(instance)
    }

    /// Lets another guest with the same package serve the calls that are submitted from here on. The
    /// state in the guest before it drains: it serves calls with its resources, answers its calls and
    /// writes its streams. It ends when nothing of it is left, and at `drain_deadline`, a time of
    /// [`thalweg_queue::clock`], at the latest. What is left then ends as `stale`.
    pub fn reload_guest(self: &Arc<Self>, guest: Arc<dyn Guest>, drain_deadline: u64) {
        let Some(instance) = self.guest.as_ref().filter(|_| !self.is_forked()) else {
            return;
        };
        instance.reload(guest, drain_deadline);
        self.schedule_if_idle();
    }
}

/// A call that a guest serves, and its instance.
pub(super) struct Served {
    pub(super) call: CallRef,
    instance: Arc<Instance>,
    pub(super) guest: Arc<GuestInstance>,
}

impl Served {
    fn of(call: CallRef) -> Option<Self> {
        let instance = Instance::of_call(&call);
        let guest = Arc::clone(instance.guest.as_ref()?);
        Some(Self {
            call,
            instance,
            guest,
        })
    }

    /// # Errors
    /// `stale`: the call has ended. `argument`: no guest serves it.
    pub(super) fn find(handle: u64) -> Result<Self, Failure> {
        let call = match with_current(handle, Clone::clone) {
            Some(call) => call,
            None => CallRef::find(handle)?,
        };
        match call.is_host_call() {
            false => Self::of(call),
            true => None,
        }
        .ok_or_else(|| Code::Argument.because("the call is not served by a guest"))
    }

    /// Records the guest's end of a stream of the call, until what is returned is dropped.
    ///
    /// # Errors
    /// `stale`: the call has ended.
    pub(super) fn add_stream(&self, stream: &Arc<dyn EndStream>) -> Result<OpenStream, Failure> {
        let number = self.guest.add_stream(self.call.handle(), stream);
        Ok(OpenStream {
            instance: Arc::clone(&self.instance),
            number: number.ok_or_else(handles::stale)?,
        })
    }
}

/// The guest's end of a stream. Its state ends after it, if it drains.
pub(super) struct OpenStream {
    instance: Arc<Instance>,
    number: (u64, u64),
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let guest = self.instance.guest.as_ref();
        if guest.is_some_and(|guest| guest.remove_stream(self.number)) {
            self.instance.schedule_if_idle();
        }
    }
}

/// Answers a call of a guest with the message of the result (`Ok`) or of the error (`Error`). The
/// resources in the message belong to the caller of the method afterwards.
///
/// # Errors
/// `stale`: the call has ended, for example because it was answered before. `argument`: no guest
/// serves the call, or the code is another one. `guest_lost`: the message is malformed, or has a
/// handle that the guest cannot give away; the call has ended with this failure. In all cases, the
/// resources in the message are closed.
pub fn guest_answer(call: u64, code: Code, message: &[u8]) -> Result<(), Failure> {
    answer_then(call, code, message, |port| port.announce())
}

/// Answers of a guest to calls, whose callers are woken together: each port once, if its calls are adjacent.
#[derive(Debug, Default)]
pub struct GuestAnswers {
    unannounced: Unannounced,
}

impl GuestAnswers {
    /// Answers a call as [`guest_answer`] does. Its caller is woken when this is dropped, at the latest.
    ///
    /// # Errors
    /// The errors of [`guest_answer`].
    pub fn add(&mut self, call: u64, code: Code, message: &[u8]) -> Result<(), Failure> {
        answer_then(call, code, message, |port| self.unannounced.add(port))
    }
}

fn answer_then(
    call: u64,
    code: Code,
    message: &[u8],
    announce: impl FnOnce(Arc<Port>),
) -> Result<(), Failure> {
    let answered = answer(call, code, message, Kind::Resource, announce);
    match answered {
        Ok(()) => GuestResource::note_given(message),
        Err(_) => close_resources(message),
    }
    answered
}

/// Answers a call. The handles in the message are of the kind `given`.
fn answer(
    call: u64,
    code: Code,
    message: &[u8],
    given: Kind,
    announce: impl FnOnce(Arc<Port>),
) -> Result<(), Failure> {
    if !matches!(code, Code::Ok | Code::Error) {
        return Err(Code::Argument.because("an answer is a result or an error"));
    }
    let (mut buffer, types) = take_answer(call)?;
    let checked = types
        .check_answer(code, message)
        .and_then(|has_handles| match has_handles {
            true if code == Code::Ok && types.element().is_some() && given == Kind::Resource => {
                Err("it is no stream".to_owned())
            }
            true => check_handles(&buffer.call().core, message, given),
            false => Ok(()),
        });
    if let Err(why) = checked {
        let why = {
            let core = &buffer.call().core;
            let (package, method) = (core.package.name, core.method_name());
            Code::GuestLost.because(format!(
                "the guest of {package} answered {method} wrongly: {why}"
            ))
        };
        buffer.fail(why.clone());
        return Err(match buffer.deliver() {
            true => why,
            false => handles::stale(),
        });
    }
    match append(&mut buffer.data, message) {
        Ok(()) => {
            buffer.code = code;
            buffer.convert_for_caller();
        }
        // The handles in it are closed.
        Err(why) => {
            buffer.fail(Code::GuestLost.because(why.message.clone()));
            buffer.deliver();
            return Err(why);
        }
    }
    match buffer.deliver_then(announce) {
        true => Ok(()),
        // It has closed the handles in its copy of the message.
        false => Err(handles::stale()),
    }
}

/// The memory for the answer of a call, which is the guest's last use of it.
///
/// # Errors
/// `stale`, `argument`.
#[inline(always)]
fn take_answer(call: u64) -> Result<(CallBuffer, &'static MethodTypes), Failure> {
    match take_current(call) {
        Some(current) => Ok(current),
        None => take_late_answer(call),
    }
}

fn take_late_answer(call: u64) -> Result<(CallBuffer, &'static MethodTypes), Failure> {
    let served = Served::find(call)?;
    let (kept, is_drained) = served.guest.take_kept(call);
    if is_drained {
        served.instance.schedule_if_idle();
    }
    let types = served.guest.package.types(served.call.method());
    let buffer = kept.unwrap_or_else(|| {
        let mut outcome = Outcome::spare();
        outcome.data.clear();
        CallBuffer::new(outcome, Call { core: served.call })
    });
    Ok((buffer, types))
}

/// Whether the guest may give the handles of a message to a caller: they are of the kind `given`, and
/// resources are of its own instance.
#[cold]
fn check_handles(call: &CallRef, message: &[u8], given: Kind) -> Result<(), String> {
    let message = message::open_any(message).map_err(|why| why.to_string())?;
    let instance = Instance::of_call(call);
    for handle in message.handles() {
        let found = handles::find(handle.0);
        let kind = found
            .map_err(|why| format!("handle {:#x}: {}", handle.0, why.message))?
            .kind;
        if kind != given {
            let (number, kind) = (handle.0, kind.name());
            return Err(format!("handle {number:#x} is {kind}, which is no result"));
        }
        if kind == Kind::Resource {
            resource::with_object(&*instance, handle, |_: &GuestResource| ())
                .map_err(|why| format!("handle {:#x}: {}", handle.0, why.message))?;
        }
    }
    Ok(())
}

/// Ends a call of a guest without an answer. `guest_panicked` also ends the state of the instance:
/// the next call opens a new one, and the other calls that the guest has end as `guest_panicked`.
///
/// # Errors
/// `stale`: the call has ended. `argument`: no guest serves it, or a guest cannot end a call with this
/// code: `ok`, `error`, `shut_down`, `closed`, `version`, `forked` and `interrupted`.
pub fn guest_fail(call: u64, why: Failure) -> Result<(), Failure> {
    let is_known = matches!(
        why.code,
        Code::Cancelled
            | Code::TimedOut
            | Code::GuestLost
            | Code::GuestPanicked
            | Code::Overloaded
            | Code::Stale
            | Code::Argument
            | Code::WouldPark
    );
    if !is_known {
        let name = why.code.name();
        return Err(Code::Argument.because(format!("a guest cannot end a call as {name}")));
    }
    let (mut buffer, _) = take_answer(call)?;
    if why.code == Code::GuestPanicked {
        crate::nested::log_panic(Some(buffer.call().core.method_name()), &why);
        // Rule 3 of the crate.
        Arc::clone(&buffer.call().core.instance).replace();
    }
    buffer.fail(why);
    match buffer.deliver() {
        true => Ok(()),
        false => Err(handles::stale()),
    }
}

/// Checks whether a guest should go on with a call.
///
/// # Errors
/// Why not: `cancelled`, `timed_out` or `guest_panicked` like the call; `stale` if it has ended and
/// that is all that is known. `argument`: no guest serves it.
pub fn guest_call_check(call: u64) -> Result<(), Failure> {
    match with_current(call, |call| call.check_stopped()) {
        Some(checked) => checked,
        None => Served::find(call)?.call.check_stopped(),
    }
}

/// Creates a resource of a guest, which belongs to the state that serves `call`, and returns its
/// handle. The guest gives the handle away in an answer. The handle is closed with the state if it
/// does not.
///
/// # Errors
/// `stale`: the call has ended. `argument`: no guest serves it. `overloaded`: too many handles are
/// open.
pub fn guest_resource_new(call: u64, object: GuestObject) -> Result<u64, Failure> {
    let (handle, resource) = give_resource(&Served::find(call)?, object)?;
    if !resource
        .upgrade()
        .is_some_and(|new| new.keep_handle(handle))
    {
        // The state has ended with the object.
        let _ = handles::close_handle(handle);
    }
    Ok(handle)
}

/// A new resource and its handle. The caller keeps no reference to it, because it must be dropped in
/// a turn.
fn give_resource(
    served: &Served,
    object: GuestObject,
) -> Result<(u64, Weak<GuestResource>), Failure> {
    let resource = GuestResource::new(&served.guest, served.call.handle(), object);
    let resource = Arc::new(resource.ok_or_else(handles::stale)?);
    let inserted = served
        .call
        .new_resource(Arc::clone(&resource) as _)
        .insert();
    let handle = inserted.inspect_err(|_| {
        resource.take_back();
    })?;
    Ok((handle, Arc::downgrade(&resource)))
}

/// Answers a call of a guest whose result is a resource. The guest does not own the object afterwards,
/// and gets [`Guest::drop_resource`] for it: also if the call or the state ends at the same time.
///
/// # Errors
/// The errors of [`guest_answer`] and [`guest_resource_new`]. The object is the guest's as before, and
/// [`Guest::drop_resource`] is not called for it.
pub fn guest_answer_resource(call: u64, object: GuestObject) -> Result<(), Failure> {
    let served = Served::find(call)?;
    let layout = served.call.package.methods[served.call.method() as usize].ok;
    let (handle, resource) = give_resource(&served, object)?;
    let mut message = Vec::new();
    let answered = match message::encode_into(&Handle(handle), layout, &mut message) {
        Ok(()) => answer(call, Code::Ok, &message, Kind::Resource, |port| {
            port.announce();
        }),
        Err(error) => Err(unencodable(error)),
    };
    if answered.is_err() {
        let is_guests = resource.upgrade().is_some_and(|it| it.take_back());
        let _ = handles::close_handle(handle);
        if !is_guests {
            // A turn drops it, because the call or the state has ended meanwhile.
            return Ok(());
        }
    }
    answered
}

/// Answers a call of a guest whose result is a stream or a future. Returns the handle of the stream's
/// writer. The guest closes it with [`close_handle`](crate::close_handle) when it has finished.
///
/// # Errors
/// The errors of [`guest_answer`]. `argument`: the result is neither a stream nor a future.
pub fn guest_answer_stream(call: u64) -> Result<u64, Failure> {
    let served = Served::find(call)?;
    let core = served.call.core();
    let types = served.guest.package.types(core.method());
    let Some(element) = types.element() else {
        let why = format!("{} returns no stream", core.method_name());
        return Err(Code::Argument.because(why));
    };
    let method = &core.package.methods[core.method() as usize];
    let options = match types.returns_future() {
        true => ONE_RECORD,
        false => method.stream.unwrap_or_default(),
    };
    let (size, align) = (element.size(), element.align());
    let stream = StreamCore::new(Arc::clone(core) as _, size, align, options);
    let ends: Arc<dyn EndStream> = Arc::clone(&stream) as _;
    core.adopt_stream(&ends);
    let owned = Box::new(served.add_stream(&ends)?);
    let writer = RecordWriter::new(Arc::clone(&stream), element, types.error(), owned);
    let writer = handles::insert(Kind::RecordWriter, writer)?;
    let close_writer = || handles::close_handle(writer);
    let reader = handles::insert(Kind::Stream, stream);
    let reader = reader.inspect_err(|_| drop(close_writer()))?;
    let mut message = Vec::new();
    let answered = match message::encode_into(&Handle(reader), method.ok, &mut message) {
        Ok(()) => answer(call, Code::Ok, &message, Kind::Stream, |port| {
            port.announce();
        }),
        Err(error) => Err(unencodable(error)),
    };
    if answered.is_err() {
        let _ = close_writer();
        // It is stale if the message was delivered to a call that had ended.
        let _ = handles::close_handle(reader);
    }
    answered.map(|()| writer)
}

/// The writer of a stream of a guest.
///
/// # Errors
/// `stale`. `argument`: the handle is that of another kind of object.
pub fn find_record_writer(handle: u64) -> Result<Arc<RecordWriter>, Failure> {
    handles::find_as(handle, Kind::RecordWriter)
}

/// The guest's number of a resource that `call` has as an argument.
///
/// # Errors
/// `stale`: the call has ended, or the resource is of an earlier state. `argument`: no guest serves
/// the call, or the handle is not a resource of this type and instance.
pub fn guest_resource(call: u64, handle: u64, kind: u32) -> Result<u64, Failure> {
    let served = Served::find(call)?;
    let (found, state) =
        resource::with_object(&*served.instance, Handle(handle), |it: &GuestResource| {
            (it.object, it.state)
        })?;
    if state_of(&served.guest, call) != Some(state) {
        return Err(Code::Stale.because("the guest was reloaded since the resource was made"));
    }
    check_kind(found, kind)
}

/// The same for a resource that the caller gives to the guest, which does not get
/// [`Guest::drop_resource`] for it. The handle is stale afterwards.
///
/// # Errors
/// The errors of [`guest_resource`]. The handle stays valid in that case.
pub fn guest_resource_take(call: u64, handle: u64, kind: u32) -> Result<u64, Failure> {
    guest_resource(call, handle, kind)?;
    let served = Served::find(call)?;
    let owned = resource::own::<GuestResource>(&*served.instance, Handle(handle))?;
    match owned.take_back() {
        true => Ok(owned.object.number),
        false => Err(handles::stale()),
    }
}

fn check_kind(object: GuestObject, kind: u32) -> Result<u64, Failure> {
    match object.kind == kind {
        true => Ok(object.number),
        false => Err(Code::Argument.because("the resource has another type")),
    }
}
