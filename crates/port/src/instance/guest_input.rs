//! What a guest receives during a call besides the arguments: elements of streams, and answers of the
//! host.

use std::sync::Arc;

use thalweg_runtime::wait;
use thalweg_wire::prepared::PreparedType;

use super::brief::completion_of;
use super::guest::Served;
use crate::code::{Code, Failure, append, would_park};
use crate::end_stream::EndStream;
use crate::handles::{self, Kind};
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
    let served = Served::find(call)?;
    let Some(types) = served.guest.package.import_types(import) else {
        let name = served.call.package.name;
        return Err(Code::Argument.because(format!("{name} has no import {import}")));
    };
    types.check_params(args).map_err(|why| {
        Code::Argument.because(format!("the parameters of the import are malformed: {why}"))
    })?;
    if !wait::can_park() {
        return Err(would_park());
    }
    let host_call = served
        .call
        .start_host_call(import, |buffer| append(buffer, args))?;
    let mut answer = completion_of(&host_call);
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
