//! What a guest receives during a call besides the arguments: elements of streams, and answers of the
//! host.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;

use thalweg_runtime::wait;
use thalweg_wire::prepared::PreparedType;

use super::brief::completion_of;
use super::guest::Served;
use crate::call::CallRef;
use crate::code::{Code, Failure, append, would_park};
use crate::completion::Completion;
use crate::end_stream::EndStream;
use crate::guest::MethodTypes;
use crate::handles::{self, HandleObject, Kind};
use crate::stream::{ElementReader, UpstreamCore};

/// A message contains the low half of its layout's hash.
const LOW: u64 = u32::MAX as u64;

/// Takes a stream or future that `call` has as an argument, and returns the handle of its reader, which
/// the guest closes with [`close_handle`](crate::close_handle). Streams that are not taken are closed when
/// the call ends.
///
/// # Errors
/// `stale`: the call has ended, or the stream was taken. `argument`: no guest serves the call, or the
/// handle is not a stream of one of its types.
pub fn guest_reader_open(call: u64, stream: u64) -> Result<u64, Failure> {
    let served = Served::find(call)?;
    let types = served.guest.package.types(served.call.method());
    let found = handles::find(stream)?.get::<UpstreamCore>(Kind::Upstream);
    let core = found.map_err(|other| {
        Code::Argument.because(format!(
            "the handle is {}, not a stream to read",
            other.name()
        ))
    })?;
    let is_its = |ty: &&PreparedType<'static>| ty.hash() & LOW == core.layout() & LOW;
    let element = types.streamed_params().iter().find(is_its);
    let element =
        element.ok_or_else(|| Code::Argument.because("the stream has elements of another type"))?;
    let ends: Arc<dyn EndStream> = Arc::clone(&core) as _;
    let owned = Box::new(served.add_stream(&ends)?);
    handles::remove(stream)?;
    core.set_owner(Arc::clone(served.call.core()) as _);
    served.call.core().adopt_stream(&ends);
    handles::insert(
        Kind::ElementReader,
        ElementReader::new(core, element, owned),
    )
}

/// The reader of a stream parameter of a guest.
///
/// # Errors
/// `stale`. `argument`: the handle is that of another kind of object.
pub fn find_element_reader(handle: u64) -> Result<Arc<ElementReader>, Failure> {
    handles::find_as(handle, Kind::ElementReader)
}

/// Calls a host import during a call of a guest, with the message of its parameters, and waits for the
/// answer: `Ok` with the message of the result, or `Error` with that of the error. It ends with the call.
///
/// # Errors
/// `argument`: no guest serves the call, there is no such import, or the message is malformed. `stale`:
/// the call has ended. `would_park`: the thread must not wait. `closed`: the client has no host.
/// `guest_lost`: the answer is malformed. Other outcomes of the host call.
pub fn guest_import_call(call: u64, import: u32, args: &[u8]) -> Result<(Code, Vec<u8>), Failure> {
    let import = Import::find(call, import, args)?;
    if !wait::can_park() {
        return Err(would_park());
    }
    let host_call = import.start(args)?;
    checked_answer(completion_of(&host_call), import.types)
}

/// Begins a call of a host import without waiting for the answer. `waker` is woken when
/// [`guest_import_answer`] has it. Closing the handle that is returned cancels the call.
///
/// # Errors
/// Those of [`guest_import_call`] before the host is called, except `would_park`. `overloaded`: too many
/// handles are open.
pub fn guest_import_begin(
    call: u64,
    import: u32,
    args: &[u8],
    waker: Waker,
) -> Result<u64, Failure> {
    let import = Import::find(call, import, args)?;
    let begun = ImportCall {
        call: import.start(args)?,
        types: import.types,
        is_taken: AtomicBool::new(false),
    };
    // Before another thread can take the answer.
    let is_armed = begun.call.result.arm(waker.clone());
    let handle = handles::insert(Kind::ImportCall, Arc::new(begun))?;
    if !is_armed {
        waker.wake();
    }
    Ok(handle)
}

/// Takes the answer of a call that [`guest_import_begin`] has begun. The handle is closed, unless the
/// result is `would_park`.
///
/// # Errors
/// `stale`. `argument`: the handle is that of another kind of object. `would_park`: there is no answer yet.
/// Other outcomes as [`guest_import_call`].
pub fn guest_import_answer(handle: u64) -> Result<(Code, Vec<u8>), Failure> {
    let begun: Arc<ImportCall> = handles::find_as(handle, Kind::ImportCall)?;
    if !begun.call.result.is_filled() {
        return Err(Code::WouldPark.because("the host has not answered yet"));
    }
    // Only the thread that removes the handle takes the answer.
    handles::remove(handle)?;
    begun.is_taken.store(true, Ordering::Relaxed);
    let answer = begun.call.result.take().ok_or_else(handles::stale)?;
    checked_answer(answer, begun.types)
}

/// An import that a guest calls, with parameters that were checked.
struct Import {
    served: Served,
    number: u32,
    types: &'static MethodTypes,
}

impl Import {
    fn find(call: u64, number: u32, args: &[u8]) -> Result<Self, Failure> {
        let served = Served::find(call)?;
        let Some(types) = served.guest.package.import_types(number) else {
            let name = served.call.package.name;
            return Err(Code::Argument.because(format!("{name} has no import {number}")));
        };
        types.check_params(args).map_err(|why| {
            Code::Argument.because(format!("the parameters of the import are malformed: {why}"))
        })?;
        Ok(Self {
            served,
            number,
            types,
        })
    }

    fn start(&self, args: &[u8]) -> Result<CallRef, Failure> {
        let write = |buffer: &mut Vec<u8>| append(buffer, args);
        self.served.call.start_host_call(self.number, write)
    }
}

/// A call of a host import that a guest has begun. Dropping it cancels the call.
pub struct ImportCall {
    call: CallRef,
    types: &'static MethodTypes,
    /// The answer was taken, so that the memory of the call may serve another one.
    is_taken: AtomicBool,
}

impl fmt::Debug for ImportCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ImportCall").field(&self.call).finish()
    }
}

impl Drop for ImportCall {
    fn drop(&mut self) {
        if !*self.is_taken.get_mut() {
            // The end of the call is no answer.
            self.call.result.disarm();
            if !self.call.has_ended() {
                self.call.cancel();
            }
            self.call.result.abandon();
        }
    }
}

// SAFETY: no other type has this kind.
unsafe impl HandleObject for ImportCall {
    fn has_kind(kind: Kind) -> bool {
        kind == Kind::ImportCall
    }

    /// The last reference cancels the call.
    fn close_handle(self: Arc<Self>, _: Kind, _: u32) {}
}

/// The message of an answer.
///
/// # Errors
/// `guest_lost`: it is malformed. Another outcome.
fn checked_answer(mut answer: Completion, types: &MethodTypes) -> Result<(Code, Vec<u8>), Failure> {
    match answer.code {
        Code::Ok | Code::Error => {
            let data = std::mem::take(&mut answer.data);
            let checked = types.check_answer(answer.code, &data);
            let malformed = |why| Code::GuestLost.because(format!("the host's answer: {why}"));
            checked.map_err(malformed)?;
            Ok((answer.code, data))
        }
        code => Err(code.because(std::mem::take(&mut answer.message))),
    }
}
