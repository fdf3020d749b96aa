//! A stream as an Arrow stream, through Arrow's C stream interface:
//! <https://arrow.apache.org/docs/format/CStreamInterface.html>. Each batch becomes one array.
//!
//! 1. The consumer owns the structure and calls its functions from one thread at a time, with or
//!    without the GIL. Each function attaches to the interpreter.
//! 2. The structure keeps the reader alive. `release` drops it, once.
//! 3. An exception becomes `EIO` and a text, because the interface has no other way.

use std::ffi::{CString, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use pyo3::ffi;
use pyo3::prelude::*;
use thalweg_capi::abi::TW_FOREVER;

use crate::arrow;
use crate::arrow_data::{ArrowArray, ArrowSchema, capsule};
use crate::raw_type::{drop_attached, guard};
use crate::reader::Reader;
use crate::stream::next_batch;

/// The maximum number of records of an array: the default capacity of a stream.
const MAX_RECORDS: u32 = 8_192;

/// `struct ArrowArrayStream`.
#[repr(C)]
struct ArrowArrayStream {
    get_schema: Option<unsafe extern "C" fn(*mut Self, *mut ArrowSchema) -> c_int>,
    get_next: Option<unsafe extern "C" fn(*mut Self, *mut ArrowArray) -> c_int>,
    get_last_error: Option<unsafe extern "C" fn(*mut Self) -> *const c_char>,
    release: Option<unsafe extern "C" fn(*mut Self)>,
    private_data: *mut c_void,
}

/// Owns the memory of a stream.
struct StreamOwned {
    reader: Arc<Reader>,
    last_error: CString,
}

/// The remaining batches of `reader` as a capsule.
///
/// # Errors
/// `TypeError` if the type of its records has no column.
pub fn export<'py>(py: Python<'py>, reader: &Arc<Reader>) -> PyResult<Bound<'py, PyAny>> {
    // A type without a column is refused here, where the caller gets an exception.
    arrow::empty_column(py, reader)?;
    let owned = Box::new(StreamOwned {
        reader: Arc::clone(reader),
        last_error: CString::default(),
    });
    let stream = ArrowArrayStream {
        get_schema: Some(get_schema),
        get_next: Some(get_next),
        get_last_error: Some(get_last_error),
        release: Some(release),
        private_data: Box::into_raw(owned).cast(),
    };
    capsule(py, c"arrow_array_stream", stream, free)
}

/// Runs `body` for `stream`. Returns 0, or `EIO` and keeps the text of the exception.
///
/// # Safety
/// `stream` is alive, and [`export`] created it (rule 1).
unsafe fn attached(
    stream: *mut ArrowArrayStream,
    body: impl FnOnce(Python<'_>, &Arc<Reader>) -> PyResult<()>,
) -> c_int {
    // SAFETY: `private_data` is the box of `export` until `release`, and no other thread uses it.
    let owned = unsafe { &mut *(*stream).private_data.cast::<StreamOwned>() };
    let reader = &owned.reader;
    let result = catch_unwind(AssertUnwindSafe(|| {
        Python::try_attach(|py| body(py, reader).map_err(|error| error.to_string()))
    }));
    let text = match result {
        Ok(Some(Ok(()))) => return 0,
        Ok(Some(Err(text))) => text,
        Ok(None) => "the interpreter is shutting down".to_owned(),
        Err(_) => "reading the stream panicked".to_owned(),
    };
    owned.last_error = CString::new(text.replace('\0', "")).unwrap_or_default();
    libc::EIO
}

unsafe extern "C" fn get_schema(stream: *mut ArrowArrayStream, out: *mut ArrowSchema) -> c_int {
    // SAFETY: the consumer passes its stream, and memory for a schema.
    unsafe {
        attached(stream, |py, reader| {
            out.write(arrow::empty_column(py, reader)?.schema());
            Ok(())
        })
    }
}

unsafe extern "C" fn get_next(stream: *mut ArrowArrayStream, out: *mut ArrowArray) -> c_int {
    // SAFETY: the consumer passes its stream, and memory for an array.
    unsafe {
        attached(stream, |py, reader| {
            out.write(match next_batch(py, reader, MAX_RECORDS, TW_FOREVER)? {
                Some(batch) => arrow::column(&batch, py)?.array(),
                // A released array is the end of the stream.
                None => ArrowArray::released(),
            });
            Ok(())
        })
    }
}

unsafe extern "C" fn get_last_error(stream: *mut ArrowArrayStream) -> *const c_char {
    // SAFETY: as in `attached`. The text lives until the next call of a function of the stream.
    unsafe {
        (*(*stream).private_data.cast::<StreamOwned>())
            .last_error
            .as_ptr()
    }
}

unsafe extern "C" fn release(stream: *mut ArrowArrayStream) {
    // SAFETY: the consumer calls this once (rule 2).
    let owned = unsafe {
        (*stream).release = None;
        Box::from_raw((*stream).private_data.cast::<StreamOwned>())
    };
    drop_attached(owned);
}

unsafe extern "C" fn free(capsule: *mut ffi::PyObject) {
    guard((), |_| {
        // SAFETY: this is the capsule's own destructor. The capsule contains a box of an
        // `ArrowArrayStream` under this name. A consumer that took it has set `release` to null.
        unsafe {
            let stream = ffi::PyCapsule_GetPointer(capsule, c"arrow_array_stream".as_ptr());
            let mut stream = Box::from_raw(stream.cast::<ArrowArrayStream>());
            if let Some(release) = stream.release {
                release(&raw mut *stream);
            }
        }
        Ok(())
    });
}
