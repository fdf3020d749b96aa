//! Views: records read in place, field by field.
//!
//! A generated view class derives from [`View`](class) and has one [`Field`](field_class) per
//! field. That is a descriptor whose `__get__` is one C function: it checks that the batch is open,
//! and reads. A view allocates nothing but itself.

use std::ffi::{c_int, c_void};
use std::mem::ManuallyDrop;
use std::sync::Arc;

use pyo3::exceptions::{PyAttributeError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use crate::batch::Batch;
use crate::decode::Decoder;
use crate::describe::PyKind;
use crate::kind::{Kind, Shape};
use crate::raw_type::{self, Slot, guard};

#[repr(C)]
struct ViewObject {
    head: ffi::PyObject,
    /// A counted reference. It is null only while the object is being created.
    batch: *mut ffi::PyObject,
    /// The Rust value inside `batch`.
    inside: *const Batch,
    /// The offset of the record in the batch's region.
    at: u32,
}

#[repr(C)]
struct FieldObject {
    head: ffi::PyObject,
    kind: ManuallyDrop<Option<Arc<Kind>>>,
    offset: u32,
}

static VIEW: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static FIELD: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// `thalweg.View`.
pub fn class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    let make = || -> PyResult<Py<PyType>> {
        let mut methods = vec![
            ffi::PyMethodDef {
                ml_name: c"copy".as_ptr(),
                ml_meth: ffi::PyMethodDefPointer { PyCFunction: copy },
                ml_flags: ffi::METH_NOARGS,
                ml_doc:
                    c"copy()\n--\n\nThe record as an object of its own, which outlives the batch."
                        .as_ptr(),
            },
            ffi::PyMethodDef {
                ml_name: c"__class_getitem__".as_ptr(),
                ml_meth: ffi::PyMethodDefPointer {
                    PyCFunction: class_getitem,
                },
                ml_flags: ffi::METH_O | ffi::METH_CLASS,
                ml_doc: c"".as_ptr(),
            },
        ];
        methods.push(ffi::PyMethodDef::zeroed());
        // The type keeps the address of the definitions, and lives as long as the process.
        let methods = methods.leak();
        let slots = [
            Slot(ffi::Py_tp_dealloc, view_dealloc as *mut c_void),
            Slot(ffi::Py_tp_repr, view_repr as *mut c_void),
            Slot(ffi::Py_tp_methods, methods.as_mut_ptr().cast()),
        ];
        let flags = ffi::Py_TPFLAGS_BASETYPE | ffi::Py_TPFLAGS_DISALLOW_INSTANTIATION;
        // SAFETY: the functions have the signatures of their slots and expect `ViewObject`s. A
        // subclass keeps their size or adds to it.
        let class = unsafe {
            raw_type::make(
                py,
                c"thalweg._native.View",
                size_of::<ViewObject>(),
                flags,
                &slots,
            )
        }?;
        Ok(class.unbind())
    };
    Ok(VIEW.get_or_try_init(py, make)?.bind(py))
}

/// `thalweg.layout.Field`.
pub fn field_class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    let make = || -> PyResult<Py<PyType>> {
        let slots = [
            Slot(ffi::Py_tp_dealloc, field_dealloc as *mut c_void),
            Slot(ffi::Py_tp_descr_get, field_get as *mut c_void),
            Slot(ffi::Py_tp_descr_set, field_set as *mut c_void),
        ];
        let (size, flags) = (
            size_of::<FieldObject>(),
            ffi::Py_TPFLAGS_DISALLOW_INSTANTIATION,
        );
        // SAFETY: the functions have the signatures of their slots and expect `FieldObject`s; the
        // type is final.
        let class = unsafe { raw_type::make(py, c"thalweg._native.Field", size, flags, &slots) }?;
        Ok(class.unbind())
    };
    Ok(FIELD.get_or_try_init(py, make)?.bind(py))
}

/// The descriptor of a field of `kind` at `offset` bytes in the record.
#[pyfunction]
pub fn field<'py>(offset: u32, kind: &Bound<'py, PyKind>) -> PyResult<Bound<'py, PyAny>> {
    let py = kind.py();
    let class = field_class(py)?;
    // SAFETY: the type's instances are `FieldObject`s. The memory is zeroed, and the kind is
    // written without dropping an old value.
    unsafe {
        let object =
            Bound::from_owned_ptr_or_err(py, ffi::PyType_GenericAlloc(class.as_type_ptr(), 0))?;
        let place = object.as_ptr().cast::<FieldObject>();
        (&raw mut (*place).kind).write(ManuallyDrop::new(Some(Arc::clone(&kind.get().0))));
        (*place).offset = offset;
        Ok(object)
    }
}

/// Checks that `class` is a view class.
pub fn check_class(of: &Bound<'_, PyType>) -> PyResult<()> {
    if of.is_subclass(class(of.py())?)? {
        Ok(())
    } else {
        Err(PyTypeError::new_err(format!(
            "{of} does not derive from thalweg.View"
        )))
    }
}

/// A view of the record at `at` of `batch`, of a class that [`check_class`] accepted.
pub fn new<'py>(
    class: &Bound<'py, PyType>,
    batch: &Bound<'py, Batch>,
    at: u32,
) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: the type derives from `View`, so its objects begin with a `ViewObject`. The memory is
    // zeroed.
    unsafe {
        let object = Bound::from_owned_ptr_or_err(
            class.py(),
            ffi::PyType_GenericAlloc(class.as_type_ptr(), 0),
        )?;
        let view = object.as_ptr().cast::<ViewObject>();
        (*view).batch = batch.clone().into_ptr();
        (*view).inside = batch.get();
        (*view).at = at;
        Ok(object)
    }
}

/// The batch and the offset of a view.
///
/// # Safety
/// `object` is a `ViewObject` that `new` created, and outlives the result.
unsafe fn of<'a>(object: *mut ffi::PyObject) -> (&'a Batch, u32) {
    let view = object.cast::<ViewObject>();
    // SAFETY: the view holds a reference to its batch, whose class is frozen and whose objects do
    // not move.
    unsafe { (&*(*view).inside, (*view).at) }
}

unsafe extern "C" fn field_get(
    field: *mut ffi::PyObject,
    object: *mut ffi::PyObject,
    _class: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    guard(std::ptr::null_mut(), |py| {
        if object.is_null() {
            // SAFETY: the argument of a slot is alive.
            unsafe { ffi::Py_INCREF(field) };
            return Ok(field);
        }
        let view_class = class(py)?;
        // SAFETY: both are alive.
        if unsafe { ffi::PyObject_TypeCheck(object, view_class.as_type_ptr()) } == 0 {
            return Err(PyTypeError::new_err(
                "a field of a view, on an object that is none",
            ));
        }
        // SAFETY: the type was just checked, and `new` created every view, because the class cannot
        // be instantiated otherwise.
        let (batch, at) = unsafe { of(object) };
        if !batch.is_open(py) {
            return Err(batch.released(py));
        }
        // SAFETY: a slot of the type. The kind exists from `field` to `dealloc`.
        let (kind, offset) = unsafe {
            let field = field.cast::<FieldObject>();
            (&(*field).kind, (*field).offset)
        };
        let Some(kind) = &**kind else {
            return Err(PyTypeError::new_err("a field without a kind"));
        };
        // Reading text and numbers allocates nothing that the garbage collector tracks, so no other
        // code can run meanwhile.
        let _pin = if has_parts(&kind.shape) {
            Some(batch.reader.pin(py))
        } else {
            None
        };
        Decoder::field(py, batch.region)
            .value(kind, at.wrapping_add(offset))
            .map(Bound::into_ptr)
            .map_err(|undecodable| undecodable.raise(py, &batch.reader.name))
    })
}

fn has_parts(shape: &Shape) -> bool {
    match shape {
        Shape::Option {
            payload, wrapped, ..
        } => *wrapped || has_parts(&payload.shape),
        Shape::List(_)
        | Shape::Array(..)
        | Shape::Result { .. }
        | Shape::Tuple(_)
        | Shape::Record(_)
        | Shape::Variant { .. }
        | Shape::Flags { .. } => true,
        _ => false,
    }
}

unsafe extern "C" fn field_set(
    _field: *mut ffi::PyObject,
    _object: *mut ffi::PyObject,
    _value: *mut ffi::PyObject,
) -> c_int {
    guard(-1, |_| {
        Err(PyAttributeError::new_err("a view is read-only"))
    })
}

unsafe extern "C" fn field_dealloc(object: *mut ffi::PyObject) {
    let field = object.cast::<FieldObject>();
    // SAFETY: this is the last use of the object, and the kind is dropped once.
    let kind = unsafe { &mut (*field).kind }.take();
    raw_type::drop_attached(kind);
    // SAFETY: `raw_type::make` created the type.
    unsafe { raw_type::free(object) };
}

unsafe extern "C" fn copy(object: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    guard(std::ptr::null_mut(), |py| {
        // SAFETY: a method of the type.
        let (batch, at) = unsafe { of(object) };
        if !batch.is_open(py) {
            return Err(batch.released(py));
        }
        batch
            .object(py, at)
            .map(Bound::into_ptr)
            .map_err(|undecodable| undecodable.raise(py, &batch.reader.name))
    })
}

unsafe extern "C" fn class_getitem(
    class: *mut ffi::PyObject,
    item: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: both are alive, as a method's arguments are.
    unsafe { ffi::Py_GenericAlias(class, item) }
}

unsafe extern "C" fn view_repr(object: *mut ffi::PyObject) -> *mut ffi::PyObject {
    guard(std::ptr::null_mut(), |py| {
        // SAFETY: alive, as a slot's argument is.
        let this = unsafe { Bound::from_borrowed_ptr(py, object) };
        let name = this.get_type().name()?;
        // SAFETY: a slot of the type.
        let (batch, _) = unsafe { of(object) };
        let text = match &batch.reader.element.shape {
            Shape::Record(record) if batch.is_open(py) => {
                let fields = record.fields.iter().map(|field| {
                    let value = this.getattr(field.name.bind(py))?;
                    Ok(format!("{}={}", field.name.bind(py), value.repr()?))
                });
                format!(
                    "{name}({})",
                    fields.collect::<PyResult<Vec<_>>>()?.join(", ")
                )
            }
            _ => format!("<{name} of a released batch>"),
        };
        Ok(text.into_pyobject(py)?.into_any().into_ptr())
    })
}

unsafe extern "C" fn view_dealloc(object: *mut ffi::PyObject) {
    // SAFETY: this is the last use of the object, and its reference to the batch is dropped once.
    unsafe {
        let batch = (*object.cast::<ViewObject>()).batch;
        if !batch.is_null() {
            ffi::Py_DECREF(batch);
        }
        raw_type::free(object);
    }
}
