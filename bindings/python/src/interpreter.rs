//! Allows one interpreter per process. Statics identify classes, ports and loops by address.
//! Another interpreter of the process would share the statics, but not the objects.

use std::sync::atomic::{AtomicI64, Ordering};

use pyo3::exceptions::PyImportError;
use pyo3::ffi;
use pyo3::prelude::*;

/// The interpreter that imported the module first. No interpreter has the number -1.
static FIRST: AtomicI64 = AtomicI64::new(-1);

/// Makes the running interpreter the only one.
///
/// # Errors
/// `ImportError` if another interpreter has imported the module.
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
