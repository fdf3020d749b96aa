//! Streams and futures that the caller writes.

use std::sync::Arc;

use thalweg_port::{Object, close_handle, insert};

use crate::abi::{TwError, TwHandle};
use crate::error::{argument, enter};
use crate::handles::{find_client, find_stream_writer};
use crate::pointers::out;

pub(crate) unsafe extern "C" fn new(
    client: TwHandle,
    method: u32,
    parameter: u32,
    writer: *mut TwHandle,
    reader: *mut TwHandle,
    error: *mut TwError,
) -> u32 {
    // SAFETY: thalweg.h requires of the caller what `enter` and `out` require; also in all
    // functions below.
    unsafe {
        enter(error, || {
            let (writer, reader) = (out(writer, "writer")?, out(reader, "reader")?);
            let stream = find_client(client)?.upstream(method, parameter)?;
            let reading_end = insert(Object::Upstream(Arc::clone(&stream)))?;
            *writer = insert(Object::UpstreamWriter(stream)).inspect_err(|_| {
                // It was inserted just now, so this cannot fail.
                let _ = close_handle(reading_end);
            })?;
            *reader = reading_end;
            Ok(())
        })
    }
}

pub(crate) unsafe extern "C" fn send(
    writer: TwHandle,
    element: *const u8,
    element_size: u64,
    deadline_ns: u64,
    error: *mut TwError,
) -> u32 {
    // SAFETY: see `new`; `element` has `element_size` bytes.
    unsafe {
        enter(error, || {
            if element.is_null() {
                return Err(argument("element is a null pointer"));
            }
            let size = usize::try_from(element_size)
                .map_err(|_| argument("an element that is larger than the memory"))?;
            let stream = find_stream_writer(writer)?;
            stream.send(std::slice::from_raw_parts(element, size), deadline_ns)
        })
    }
}

pub(crate) unsafe extern "C" fn finish(writer: TwHandle, error: *mut TwError) -> u32 {
    // SAFETY: see `new`.
    unsafe { enter(error, || find_stream_writer(writer)?.finish()) }
}
