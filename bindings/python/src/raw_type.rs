//! Heap types made of slots, for the few objects whose cost counts: a view, its fields, an awaitable.
//!
//! PyO3 writes every other class. These three need slots that it does not have (`am_send`) or instances of a subclass
//! made without calling it.

use std::ffi::{CStr, c_int, c_uint, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;

/// One slot: its number and its function.
pub struct Slot(pub c_int, pub *mut c_void);

/// Makes the type `name` of objects of `size` bytes.
///
/// # Safety
/// Each slot's function has the type that its number wants, and does what CPython expects of it; `size` bytes are
/// what those functions take an object to be.
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
    // SAFETY: the spec is complete and copied, but for the name, which is static; the slots are the caller's promise.
    let class = unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyType_FromSpec(&raw mut spec)) }?;
    Ok(class.cast_into()?)
}

/// Runs the body of a slot: no unwind crosses into C, and an error is left for CPython, with `failed` as the answer.
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

/// Frees the memory of `object`, whose fields were dropped, and the type's reference that it held.
///
/// # Safety
/// Called from `tp_dealloc` of a heap type made here that has no garbage collection, once, last.
pub unsafe fn free(object: *mut ffi::PyObject) {
    // SAFETY: the object's type is alive: the object holds it until the last line. A heap type's `tp_free` is set.
    unsafe {
        let class = ffi::Py_TYPE(object);
        let free = ffi::PyType_GetSlot(class, ffi::Py_tp_free);
        let free = std::mem::transmute::<*mut c_void, ffi::freefunc>(free);
        free(object.cast());
        ffi::Py_DECREF(class.cast());
    }
}

/// `class[item]`, for annotations and whoever reads them.
pub fn generic_alias<'py>(
    class: &Bound<'py, PyType>,
    item: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: both are alive; null is handled.
    unsafe {
        Bound::from_owned_ptr_or_err(
            class.py(),
            ffi::Py_GenericAlias(class.as_ptr(), item.as_ptr()),
        )
    }
}

/// Drops what an object of Python held, attached for good, so that references go back at once. While the interpreter
/// shuts down nobody can attach any more; what is left of references then ends with the process.
pub fn drop_attached<T>(value: T) {
    let mut value = Some(value);
    Python::try_attach(|_| drop(value.take()));
    drop(value);
}
