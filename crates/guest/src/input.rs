//! The functions with which a guest receives elements of streams and answers of its host.

use std::mem::ManuallyDrop;
use std::ptr;

use thalweg_capi::abi::{TwError, TwHandle};
use thalweg_capi::enter;
use thalweg_capi::pointers::{message, out};
use thalweg_port::{Code, close_handle, find_element_reader, guest_import_call, guest_reader_open};

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
            let (code, data) = guest_import_call(call, import, message(args, args_size)?)?;
            *answer = given(data);
            match code {
                Code::Ok => Ok(()),
                code => Err(code.because("the host answered with an error")),
            }
        })
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
