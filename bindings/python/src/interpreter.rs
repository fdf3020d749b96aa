//! One interpreter per process. Classes, ports and loops are known by address in statics, which another interpreter of
//! the process would share without sharing the objects.

use std::sync::atomic::{AtomicI64, Ordering};

use pyo3::exceptions::PyImportError;
use pyo3::ffi;
use pyo3::prelude::*;

/// The interpreter that imported the module first. -1 is no interpreter's number.
static FIRST: AtomicI64 = AtomicI64::new(-1);

/// Makes the running interpreter the one.
///
/// # Errors
/// `ImportError` where another has imported the module.
pub fn claim(py: Python<'_>) -> PyResult<()> {
    // SAFETY: the thread is attached, so there is an interpreter.
    let this = unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) };
    if this < 0 {
        return Err(PyErr::fetch(py));
    }
    match FIRST.compare_exchange(-1, this, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => Ok(()),
        Err(first) if first == this => Ok(()),
        Err(_) => Err(PyImportError::new_err(
            "thalweg works in one interpreter of a process, and another has imported it",
        )),
    }
}
