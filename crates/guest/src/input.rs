//! The functions with which a guest receives elements of streams and answers of its host.

use std::mem::ManuallyDrop;
use std::ptr;

use thalweg_capi::abi::{TwError, TwHandle};
use thalweg_capi::enter;
use thalweg_capi::error::argument;
use thalweg_capi::pointers::{message, out};
use thalweg_port::{
    Code, Failure, GuestPort, Object, close_handle, find, find_element_reader, guest_import_answer,
    guest_import_begin, guest_import_call, guest_reader_open,
};

use crate::abi::TwGuestMessage;

/// `tw_guest_core.reader_open`.
pub(crate) unsafe extern "C" fn reader_open(
    call: TwHandle,
    stream: TwHandle,
    reader: *mut TwHandle,
    error: *mut TwError,
) -> u32 {
    // SAFETY: thalweg_guest.h requires of the guest what `enter`, `out` and `message` require; also below.
    unsafe {
        enter(error, || {
            let reader = out(reader, "reader")?;
            *reader = guest_reader_open(call, stream)?;
            Ok(())
        })
    }
}

/// `tw_guest_core.reader_receive`.
pub(crate) unsafe extern "C" fn reader_receive(
    reader: TwHandle,
    deadline_ns: u64,
    element: *mut TwGuestMessage,
    error: *mut TwError,
) -> u32 {
    // SAFETY: see `reader_open`.
    unsafe {
        enter(error, || {
            let element = out(element, "element")?;
            *element = given(Vec::new());
            match find_element_reader(reader)?.receive(deadline_ns)? {
                Some(data) => *element = given(data),
                None => return Err(Code::Closed.because("the stream has ended")),
            }
            Ok(())
        })
    }
}

/// `tw_guest_core.reader_close`.
pub(crate) unsafe extern "C" fn reader_close(reader: TwHandle, error: *mut TwError) -> u32 {
    // SAFETY: see `reader_open`.
    unsafe {
        enter(error, || {
            find_element_reader(reader)?;
            close_handle(reader)
        })
    }
}

/// `tw_guest_core.import_call`.
pub(crate) unsafe extern "C" fn import_call(
    call: TwHandle,
    import: u32,
    args: *const u8,
    args_size: u64,
    answer: *mut TwGuestMessage,
    error: *mut TwError,
) -> u32 {
    // SAFETY: see `reader_open`.
    unsafe {
        enter(error, || {
            let answer = out(answer, "answer")?;
            *answer = given(Vec::new());
            give_answer(
                guest_import_call(call, import, message(args, args_size)?)?,
                answer,
            )
        })
    }
}

/// `tw_guest_core.reader_notify`.
pub(crate) unsafe extern "C" fn reader_notify(
    reader: TwHandle,
    port: TwHandle,
    token: u64,
    error: *mut TwError,
) -> u32 {
    // SAFETY: see `reader_open`.
    unsafe {
        enter(error, || {
            let waker = GuestPort::find(port)?.waker(token);
            find_element_reader(reader)?.notify(waker);
            Ok(())
        })
    }
}

/// `tw_guest_core.import_begin`.
pub(crate) unsafe extern "C" fn import_begin(
    call: TwHandle,
    import: u32,
    args: *const u8,
    args_size: u64,
    port: TwHandle,
    token: u64,
    host_call: *mut TwHandle,
    error: *mut TwError,
) -> u32 {
    // SAFETY: see `reader_open`.
    unsafe {
        enter(error, || {
            let host_call = out(host_call, "host_call")?;
            let waker = GuestPort::find(port)?.waker(token);
            *host_call = guest_import_begin(call, import, message(args, args_size)?, waker)?;
            Ok(())
        })
    }
}

/// `tw_guest_core.import_answer`.
pub(crate) unsafe extern "C" fn import_answer(
    host_call: TwHandle,
    answer: *mut TwGuestMessage,
    error: *mut TwError,
) -> u32 {
    // SAFETY: see `reader_open`.
    unsafe {
        enter(error, || {
            let answer = out(answer, "answer")?;
            *answer = given(Vec::new());
            give_answer(guest_import_answer(host_call)?, answer)
        })
    }
}

/// `tw_guest_core.import_cancel`.
pub(crate) unsafe extern "C" fn import_cancel(host_call: TwHandle, error: *mut TwError) -> u32 {
    // SAFETY: see `reader_open`.
    unsafe {
        enter(error, || match find(host_call)? {
            Object::ImportCall(_) => close_handle(host_call),
            other => Err(argument(format!(
                "the handle is {}, not a call of the host",
                other.kind()
            ))),
        })
    }
}

/// Gives the guest the message of a host's answer.
fn give_answer((code, data): (Code, Vec<u8>), answer: &mut TwGuestMessage) -> Result<(), Failure> {
    *answer = given(data);
    match code {
        Code::Ok => Ok(()),
        code => Err(code.because("the host answered with an error")),
    }
}

/// `tw_guest_core.message_release`.
pub(crate) unsafe extern "C" fn message_release(message: *mut TwGuestMessage) {
    // SAFETY: thalweg_guest.h requires of the guest that it received the message, unless it is null.
    let Some(message) = (unsafe { message.as_mut() }) else {
        return;
    };
    let data = std::mem::replace(&mut message.data, ptr::null_mut());
    if !data.is_null() {
        // SAFETY: `given` has made these of a Vec, and nothing else uses its memory.
        drop(unsafe { Vec::from_raw_parts(data, 0, message.capacity as usize) });
    }
}

/// A message whose memory belongs to the guest.
fn given(data: Vec<u8>) -> TwGuestMessage {
    if data.is_empty() {
        return TwGuestMessage {
            data: ptr::null_mut(),
            size: 0,
            capacity: 0,
        };
    }
    let mut data = ManuallyDrop::new(data);
    TwGuestMessage {
        data: data.as_mut_ptr(),
        size: data.len() as u64,
        capacity: data.capacity() as u64,
    }
}
