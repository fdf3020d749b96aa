//! Streams that are parameters, as C writes them.

use std::sync::Arc;

use thalweg_port::stream::UpstreamCore;
use thalweg_port::{Failure, Object, close_handle, find, insert};

use crate::abi::{TwError, TwHandle};
use crate::error::{argument, enter, out};
use crate::library::{find_client, wrong};

fn find_writer(handle: TwHandle) -> Result<Arc<UpstreamCore>, Failure> {
    match find(handle)? {
        Object::UpstreamWriter(stream) => Ok(stream),
        other => Err(wrong(handle, &other, "a stream's writer")),
    }
}

pub(crate) unsafe extern "C" fn new(
    client: TwHandle,
    method: u32,
    parameter: u32,
    writer: *mut TwHandle,
    reader: *mut TwHandle,
    error: *mut TwError,
) -> u32 {
    // SAFETY: the header demands of the caller what `enter` and `out` demand; so in every function here.
    unsafe {
        enter(error, || {
            let (writer, reader) = (out(writer, "writer")?, out(reader, "reader")?);
            let stream = find_client(client)?.upstream(method, parameter)?;
            let reads = insert(Object::Upstream(Arc::clone(&stream)))?;
            *writer = insert(Object::UpstreamWriter(stream)).inspect_err(|_| {
                // It was put there just now.
                let _ = close_handle(reads);
            })?;
            *reader = reads;
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
    // SAFETY: see `new`; and the header says that `element` has `element_size` bytes.
    unsafe {
        enter(error, || {
            if element.is_null() {
                return Err(argument("element is a null pointer"));
            }
            let size = usize::try_from(element_size)
                .map_err(|_| argument("an element of more bytes than there is memory"))?;
            let stream = find_writer(writer)?;
            stream.send(std::slice::from_raw_parts(element, size), deadline_ns)
        })
    }
}

pub(crate) unsafe extern "C" fn end(writer: TwHandle, error: *mut TwError) -> u32 {
    // SAFETY: see `new`.
    unsafe { enter(error, || find_writer(writer)?.finish()) }
}
