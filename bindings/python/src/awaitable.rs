//! The object that `await` receives. It runs one step after another, without a Python frame between
//! the loop and the core.
//!
//! It has no `throw` and no `close`. If a task is cancelled, or a coroutine is closed, Python
//! unwinds the awaiting frame (PEP 380). That drops the awaitable, and dropping the step cancels
//! the operation that it waited for.

use std::ffi::c_void;
use std::mem::ManuallyDrop;

use pyo3::exceptions::{PyRuntimeError, PyStopIteration};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use crate::raw_type::{self, Slot, guard};

/// The result of polling a step.
pub enum Polled<'py> {
    /// It is done.
    Done(Bound<'py, PyAny>),
    /// Poll again when this future of the running loop is done.
    Wait(Bound<'py, PyAny>),
    /// Poll again in the next iteration of the loop, after other tasks.
    Turn,
}

/// An operation to wait for. Dropping it early cancels it.
pub trait Step: Send {
    /// Continues. An error ends the step.
    fn poll<'py>(&mut self, py: Python<'py>) -> PyResult<Polled<'py>>;
}

#[repr(C)]
struct Awaitable {
    head: ffi::PyObject,
    step: ManuallyDrop<Option<Box<dyn Step>>>,
}

static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// A new awaitable over `step`.
pub fn new<'py>(py: Python<'py>, step: Box<dyn Step>) -> PyResult<Bound<'py, PyAny>> {
    let class = class(py)?;
    // SAFETY: the type's instances are `Awaitable`s. The memory is zeroed, and the step is written
    // without dropping an old value.
    unsafe {
        let object = ffi::PyType_GenericAlloc(class.as_type_ptr(), 0);
        let object = Bound::from_owned_ptr_or_err(py, object)?;
        (&raw mut (*object.as_ptr().cast::<Awaitable>()).step).write(ManuallyDrop::new(Some(step)));
        Ok(object)
    }
}

/// The type, created at its first use.
pub fn class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    let make = || -> PyResult<Py<PyType>> {
        let slots = [
            Slot(ffi::Py_am_await, itself as *mut c_void),
            Slot(ffi::Py_am_send, send as *mut c_void),
            Slot(ffi::Py_tp_iter, itself as *mut c_void),
            Slot(ffi::Py_tp_iternext, next as *mut c_void),
            Slot(ffi::Py_tp_dealloc, dealloc as *mut c_void),
        ];
        let (size, flags) = (
            size_of::<Awaitable>(),
            ffi::Py_TPFLAGS_DISALLOW_INSTANTIATION,
        );
        // SAFETY: the functions below have the signatures of their slots and expect `Awaitable`s.
        let class =
            unsafe { raw_type::make(py, c"thalweg._native.Awaitable", size, flags, &slots) }?;
        Ok(class.unbind())
    };
    Ok(CLASS.get_or_try_init(py, make)?.bind(py))
}

unsafe extern "C" fn itself(object: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: the argument of a slot is alive.
    unsafe { ffi::Py_INCREF(object) };
    object
}

/// Polls the step of `object`. The step is taken out meanwhile, so that code that it runs cannot
/// access it.
///
/// # Safety
/// `object` is an `Awaitable`.
unsafe fn poll<'py>(py: Python<'py>, object: *mut ffi::PyObject) -> PyResult<Polled<'py>> {
    let place = object.cast::<Awaitable>();
    // SAFETY: the caller's promise; no reference to the field outlives the line, and the GIL is
    // held.
    let place = unsafe { &raw mut (*place).step };
    // SAFETY: as above.
    let Some(mut step) = unsafe { &mut *place }.take() else {
        return Err(PyRuntimeError::new_err("this was awaited before"));
    };
    let polled = step.poll(py)?;
    match &polled {
        Polled::Done(_) => {}
        Polled::Wait(future) => {
            // `Future.__await__` does the same: it tells the task that the future was yielded on
            // purpose.
            future.setattr(intern!(py, "_asyncio_future_blocking"), true)?;
            // SAFETY: as above.
            unsafe { **place = Some(step) };
        }
        // SAFETY: as above.
        Polled::Turn => unsafe { **place = Some(step) },
    }
    Ok(polled)
}

unsafe extern "C" fn send(
    object: *mut ffi::PyObject,
    _value: *mut ffi::PyObject,
    result: *mut *mut ffi::PyObject,
) -> ffi::PySendResult {
    guard(ffi::PySendResult::PYGEN_ERROR, |py| {
        // SAFETY: a slot of the type.
        let (status, value) = match unsafe { poll(py, object) } {
            Ok(Polled::Done(value)) => (ffi::PySendResult::PYGEN_RETURN, value.into_ptr()),
            Ok(Polled::Wait(future)) => (ffi::PySendResult::PYGEN_NEXT, future.into_ptr()),
            Ok(Polled::Turn) => (ffi::PySendResult::PYGEN_NEXT, py.None().into_ptr()),
            Err(error) => {
                // SAFETY: CPython's pointer for the result.
                unsafe { *result = std::ptr::null_mut() };
                return Err(error);
            }
        };
        // SAFETY: as above.
        unsafe { *result = value };
        Ok(status)
    })
}

unsafe extern "C" fn next(object: *mut ffi::PyObject) -> *mut ffi::PyObject {
    guard(std::ptr::null_mut(), |py| {
        // SAFETY: a slot of the type.
        match unsafe { poll(py, object) }? {
            Polled::Done(value) => Err(PyErr::from_value(
                py.get_type::<PyStopIteration>().call1((value,))?,
            )),
            Polled::Wait(future) => Ok(future.into_ptr()),
            Polled::Turn => Ok(py.None().into_ptr()),
        }
    })
}

unsafe extern "C" fn dealloc(object: *mut ffi::PyObject) {
    let place = object.cast::<Awaitable>();
    // SAFETY: this is the last use of the object, and the step is dropped once.
    let step = unsafe { &mut (*place).step }.take();
    raw_type::drop_attached(step);
    // SAFETY: `raw_type::make` created the type.
    unsafe { raw_type::free(object) };
}
