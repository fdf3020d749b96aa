//! A batch as arrays: buffers over the library's memory, for consumers of the buffer protocol such
//! as numpy.
//!
//! A buffer keeps the batch's memory (`stream_retain_batch`) until its last consumer is gone, also
//! after the batch and the stream are closed. Nothing is copied: a record's slot is one item, and
//! the stride of a column is the size of a slot.

use std::ffi::{CString, c_int, c_void};
use std::fmt::Write as _;

use pyo3::exceptions::{PyBufferError, PyKeyError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use thalweg_capi::abi::TW_OK;

use crate::batch::Batch;
use crate::errors;
use crate::handle::Owned;
use crate::kind::{Kind, Shape};
use crate::library::Library;
use crate::reader::Reader;

/// Keeps a batch's memory alive.
pub struct RetainedBatch(Owned);

impl RetainedBatch {
    /// Keeps the memory of the open batch of `reader`.
    pub fn new(py: Python<'_>, reader: &Reader) -> PyResult<Self> {
        let library: &'static Library = reader.handle.library;
        let (mut kept, mut error) = (0, errors::blank());
        let stream = reader.handle.number(py)?;
        // SAFETY: the pointers are ours. The table reports a closed or stale handle as an error.
        let code =
            unsafe { (library.table.stream_retain_batch)(stream, &raw mut kept, &raw mut error) };
        if code == TW_OK {
            Ok(Self(Owned::new(library, kept, "the kept batch")))
        } else {
            Err(errors::from_table(py, code, &error))
        }
    }
}

impl Drop for RetainedBatch {
    fn drop(&mut self) {
        if let Some(kept) = self.0.take() {
            // SAFETY: a handle is a number, and the table reports a stale one as an error. Any
            // thread may call this, with or without the GIL.
            unsafe { (self.0.library.table.retained_batch_release)(kept, std::ptr::null_mut()) };
        }
    }
}

/// The format letter of a kind that is a single number.
fn letter(kind: &Kind) -> Option<char> {
    Some(match &kind.shape {
        Shape::Bool => '?',
        Shape::U8 => 'B',
        Shape::S8 => 'b',
        Shape::U16 => 'H',
        Shape::S16 => 'h',
        Shape::U32 | Shape::Char => 'I',
        Shape::S32 => 'i',
        Shape::U64 => 'Q',
        Shape::S64 => 'q',
        Shape::F32 => 'f',
        Shape::F64 => 'd',
        Shape::Enum(_) | Shape::Flags { .. } => match kind.size {
            1 => 'B',
            2 => 'H',
            4 => 'I',
            _ => return None,
        },
        _ => return None,
    })
}

/// The format of `kind`; `None` if it has none: types with tails, variants and results.
fn format(py: Python<'_>, kind: &Kind) -> Option<String> {
    if let Some(letter) = letter(kind) {
        return Some(letter.to_string());
    }
    match &kind.shape {
        Shape::Record(record) => {
            let parts = record.fields.iter().map(|field| {
                let name = field.name.bind(py).to_string();
                (field.offset, name, &*field.kind)
            });
            structure(py, parts, kind.size)
        }
        Shape::Tuple(items) => {
            let parts = (0..).zip(items);
            let parts = parts
                .map(|(place, (offset, kind)): (u32, _)| (*offset, format!("f{place}"), &**kind));
            structure(py, parts, kind.size)
        }
        Shape::Option {
            payload, offset, ..
        } => {
            format(py, payload)?;
            let some = Kind {
                size: 1,
                align: 1,
                shape: Shape::Bool,
            };
            let parts = [
                (0, String::from("some"), &some),
                (*offset, String::from("value"), &**payload),
            ];
            structure(py, parts.into_iter(), kind.size)
        }
        _ => None,
    }
}

/// `T{..}`: fields with a format have their name, and all others are padding. `None` if no field
/// has a format.
fn structure<'a>(
    py: Python<'_>,
    parts: impl Iterator<Item = (u32, String, &'a Kind)>,
    size: u32,
) -> Option<String> {
    let mut text = String::from("T{");
    let mut at = 0;
    for (offset, name, kind) in parts {
        if let Some(format) = format(py, kind) {
            pad(&mut text, offset.checked_sub(at)?);
            let _ = write!(text, "{format}:{name}:");
            at = offset.checked_add(kind.size)?;
        }
    }
    if text == "T{" {
        return None;
    }
    pad(&mut text, size.checked_sub(at)?);
    text.push('}');
    Some(text)
}

fn pad(text: &mut String, bytes: u32) {
    if bytes > 0 {
        let _ = write!(text, "{bytes}x");
    }
}

/// The offset and kind of the column `path` in a record of `kind`. Dots separate the names of
/// nested records.
fn find<'a>(py: Python<'_>, mut kind: &'a Kind, path: &str) -> PyResult<(u32, &'a Kind)> {
    let mut at = 0;
    for name in path.split('.') {
        let Shape::Record(record) = &kind.shape else {
            return Err(PyKeyError::new_err(path.to_owned()));
        };
        let field = record
            .fields
            .iter()
            .find(|field| *field.name.bind(py) == *name);
        let field = field.ok_or_else(|| PyKeyError::new_err(path.to_owned()))?;
        at += field.offset;
        kind = &field.kind;
    }
    Ok((at, kind))
}

/// All records of `batch` or their column `path`, as a `memoryview`.
pub fn buffer<'py>(
    batch: &Batch,
    py: Python<'py>,
    path: Option<&str>,
) -> PyResult<Bound<'py, PyAny>> {
    batch.check(py)?;
    let element = &batch.reader.element;
    let (at, kind) = match path {
        Some(path) => find(py, element, path)?,
        None => (0, &**element),
    };
    let format = format(py, kind).ok_or_else(|| {
        let what = path.unwrap_or("a record");
        PyTypeError::new_err(format!(
            "{}: {what} has no items of one size; __arrow_c_array__ has text and lists",
            batch.reader.name
        ))
    })?;
    let (start, stride) = batch.rows(at, kind.size)?;
    let buffer = Buffer {
        _kept: RetainedBatch::new(py, &batch.reader)?,
        start,
        // A structure lists the offset of each field. For single numbers, `memoryview` supports
        // only the machine's byte order.
        format: CString::new(if format.starts_with('T') {
            format!("<{format}")
        } else {
            format
        })?,
        size: kind.size as isize,
        shape: [batch.count() as isize],
        strides: [stride as isize],
    };
    let buffer = Bound::new(py, buffer)?;
    // SAFETY: the object is alive; null is handled.
    unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyMemoryView_FromObject(buffer.as_ptr())) }
}

/// Items in a batch's memory. Only its `memoryview` is visible to Python.
#[pyclass(frozen, module = "thalweg._native")]
pub struct Buffer {
    _kept: RetainedBatch,
    start: *const u8,
    format: CString,
    size: isize,
    shape: [isize; 1],
    strides: [isize; 1],
}

// SAFETY: the pointer leads into memory that is kept alive, belongs to no thread and is not
// written.
unsafe impl Send for Buffer {}
// SAFETY: as above; nothing is modified.
unsafe impl Sync for Buffer {}

#[pymethods]
impl Buffer {
    /// # Safety
    /// CPython calls this with a view to fill.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let this = slf.get();
        let steps = this.strides[0] != this.size;
        if flags & ffi::PyBUF_WRITABLE != 0 {
            return Err(PyBufferError::new_err("a batch is read-only"));
        }
        if steps && flags & ffi::PyBUF_STRIDES != ffi::PyBUF_STRIDES {
            return Err(PyBufferError::new_err("a column does not lie in one piece"));
        }
        let asked = |flag: c_int| flags & flag == flag;
        let shape = this.shape.as_ptr().cast_mut();
        let strides = this.strides.as_ptr().cast_mut();
        // SAFETY: the view belongs to CPython. It points to memory that this object keeps alive and
        // that nobody writes: the view is read-only, and CPython leaves shape and strides to the
        // exporter.
        unsafe {
            (*view).buf = this.start.cast_mut().cast::<c_void>();
            (*view).len = this.shape[0] * this.size;
            (*view).readonly = 1;
            (*view).itemsize = this.size;
            (*view).format = if asked(ffi::PyBUF_FORMAT) {
                this.format.as_ptr().cast_mut()
            } else {
                std::ptr::null_mut()
            };
            (*view).ndim = 1;
            (*view).shape = if asked(ffi::PyBUF_ND) {
                shape
            } else {
                std::ptr::null_mut()
            };
            (*view).strides = if asked(ffi::PyBUF_STRIDES) {
                strides
            } else {
                std::ptr::null_mut()
            };
            (*view).suboffsets = std::ptr::null_mut();
            (*view).internal = std::ptr::null_mut();
            (*view).obj = slf.into_ptr();
        }
        Ok(())
    }
}
