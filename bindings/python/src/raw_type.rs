//! Heap types made of slots, for the few objects whose cost matters: a view, its fields, an
//! awaitable.
//!
//! PyO3 implements all other classes. These three need slots that PyO3 does not support
//! (`am_send`), or instances of a subclass that are created without calling it.

use std::ffi::{CStr, c_int, c_uint, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;

/// One slot: its number and its function.
pub struct Slot(pub c_int, pub *mut c_void);

/// Creates the type `name` of objects of `size` bytes.
///
/// # Safety
/// Each slot's function has the type that its number requires, and behaves as CPython expects.
/// `size` is the size of the objects that those functions use.
pub unsafe fn make<'py>(
    py: Python<'py>,
    name: &'static CStr,
    size: usize,
    flags: std::ffi::c_ulong,
    slots: &[Slot],
) -> PyResult<Bound<'py, PyType>> {
    let mut raw: Vec<ffi::PyType_Slot> = slots
        .iter()
        .map(|slot| ffi::PyType_Slot {
            slot: slot.0,
            pfunc: slot.1,
        })
        .collect();
    raw.push(ffi::PyType_Slot {
        slot: 0,
        pfunc: std::ptr::null_mut(),
    });
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        reason = "a handful of bytes and flags"
    )]
    let mut spec = ffi::PyType_Spec {
        name: name.as_ptr(),
        basicsize: size as c_int,
        itemsize: 0,
        flags: (ffi::Py_TPFLAGS_DEFAULT | flags) as c_uint,
        slots: raw.as_mut_ptr(),
    };
    // SAFETY: the spec is complete. CPython copies it, except the name, which is static. The caller
    // guarantees the slots.
    let class = unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyType_FromSpec(&raw mut spec)) }?;
    Ok(class.cast_into()?)
}

/// Runs the body of a slot. No panic unwinds into C. An error is set for CPython, and the result is
/// then `failed`.
pub fn guard<T>(failed: T, body: impl FnOnce(Python<'_>) -> PyResult<T>) -> T {
    // SAFETY: CPython calls slots with the GIL held.
    let py = unsafe { Python::assume_attached() };
    match catch_unwind(AssertUnwindSafe(|| body(py))) {
        Ok(Ok(value)) => value,
        Ok(Err(error)) => {
            error.restore(py);
            failed
        }
        Err(_) => {
            PyRuntimeError::new_err("thalweg: a bug: a slot of the native module panicked")
                .restore(py);
            failed
        }
    }
}

/// Frees the memory of `object`, whose fields were dropped, and its reference to the type.
///
/// # Safety
/// It is called from `tp_dealloc` of a heap type that was created here and has no garbage
/// collection, once, at the end.
pub unsafe fn free(object: *mut ffi::PyObject) {
    // SAFETY: the object keeps its type alive until the last line. A heap type's `tp_free` is set.
    unsafe {
        let class = ffi::Py_TYPE(object);
        let free = ffi::PyType_GetSlot(class, ffi::Py_tp_free);
        let free = std::mem::transmute::<*mut c_void, ffi::freefunc>(free);
        free(object.cast());
        ffi::Py_DECREF(class.cast());
    }
}

/// `class[item]`, for annotations and their readers.
pub fn generic_alias<'py>(
    class: &Bound<'py, PyType>,
    item: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: both objects are alive, and null is handled.
    unsafe {
        Bound::from_owned_ptr_or_err(
            class.py(),
            ffi::Py_GenericAlias(class.as_ptr(), item.as_ptr()),
        )
    }
}

/// Drops a value that a Python object owned, with the thread attached, so that references are
/// released at once. While the interpreter shuts down, no thread can attach; the remaining
/// references end with the process.
pub fn drop_attached<T>(value: T) {
    let mut value = Some(value);
    Python::try_attach(|_| drop(value.take()));
    drop(value);
}
