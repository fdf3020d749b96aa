//! The functions of `thalweg.layout`. Generated code creates its kinds with them when it is
//! imported.

use std::sync::Arc;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};

use crate::kind::{Case, Field, Kind, Labels, Record, Shape, Slot, Upstream};
use crate::raw_type;

/// The layout of a type in messages.
#[pyclass(frozen, name = "Kind", module = "thalweg.layout")]
pub struct PyKind(pub Arc<Kind>);

#[pymethods]
impl PyKind {
    /// `Kind[T]` is for type checkers.
    #[classmethod]
    fn __class_getitem__<'py>(
        cls: &Bound<'py, PyType>,
        item: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        raw_type::generic_alias(cls, item)
    }
}

fn kind(size: u32, align: u32, shape: Shape) -> PyResult<PyKind> {
    if !matches!(align, 1 | 2 | 4 | 8) {
        return Err(PyValueError::new_err(format!("an alignment of {align}")));
    }
    Ok(PyKind(Arc::new(Kind { size, align, shape })))
}

fn scalars() -> [(&'static str, u32, Shape); 14] {
    [
        ("BOOL", 1, Shape::Bool),
        ("U8", 1, Shape::U8),
        ("U16", 2, Shape::U16),
        ("U32", 4, Shape::U32),
        ("U64", 8, Shape::U64),
        ("S8", 1, Shape::S8),
        ("S16", 2, Shape::S16),
        ("S32", 4, Shape::S32),
        ("S64", 8, Shape::S64),
        ("F32", 4, Shape::F32),
        ("F64", 8, Shape::F64),
        ("CHAR", 4, Shape::Char),
        ("BORROW", 4, Shape::Borrow),
        ("OWN", 4, Shape::Own),
    ]
}

#[pyfunction]
fn list_of(element: &PyKind) -> PyResult<PyKind> {
    kind(8, 4, Shape::List(Arc::clone(&element.0)))
}

/// A list of a fixed length.
#[pyfunction]
fn array_of(element: &PyKind, count: u32) -> PyResult<PyKind> {
    let size = in_place(element.0.size, count)?;
    let shape = Shape::Array(Arc::clone(&element.0), count);
    kind(size, element.0.align, shape)
}

/// A list of bytes with a fixed length.
#[pyfunction]
fn bytes_of(count: u32) -> PyResult<PyKind> {
    kind(in_place(1, count)?, 1, Shape::FixedBytes(count))
}

fn in_place(size: u32, count: u32) -> PyResult<u32> {
    size.checked_mul(count)
        .filter(|size| *size > 0)
        .ok_or_else(|| PyValueError::new_err(format!("{count} elements of {size} bytes in place")))
}

#[pyfunction]
fn option(payload: &PyKind, size: u32, align: u32, offset: u32) -> PyResult<PyKind> {
    kind(
        size,
        align,
        Shape::Option {
            payload: Arc::clone(&payload.0),
            offset,
            wrapped: false,
        },
    )
}

#[pyfunction]
fn nested_option(payload: &PyKind, size: u32, align: u32, offset: u32) -> PyResult<PyKind> {
    kind(
        size,
        align,
        Shape::Option {
            payload: Arc::clone(&payload.0),
            offset,
            wrapped: true,
        },
    )
}

#[pyfunction]
fn result(
    ok: Option<&PyKind>,
    error: Option<&PyKind>,
    size: u32,
    align: u32,
    offset: u32,
) -> PyResult<PyKind> {
    let side = |side: Option<&PyKind>| side.map(|side| Arc::clone(&side.0));
    kind(
        size,
        align,
        Shape::Result {
            ok: side(ok),
            error: side(error),
            offset,
        },
    )
}

#[pyfunction]
#[pyo3(signature = (size, align, *items))]
fn tuple_of(size: u32, align: u32, items: Vec<(u32, PyRef<'_, PyKind>)>) -> PyResult<PyKind> {
    kind(
        size,
        align,
        Shape::Tuple(
            items
                .into_iter()
                .map(|(offset, item)| (offset, Arc::clone(&item.0)))
                .collect(),
        ),
    )
}

/// A stream that is a parameter or part of a result. `hash` is the layout hash of an element.
#[pyfunction]
fn stream_of(element: &PyKind, hash: u64) -> PyResult<PyKind> {
    carrying(element, hash, false)
}

/// The same for a future.
#[pyfunction]
fn future_of(element: &PyKind, hash: u64) -> PyResult<PyKind> {
    carrying(element, hash, true)
}

fn carrying(element: &PyKind, hash: u64, is_future: bool) -> PyResult<PyKind> {
    let element = Arc::clone(&element.0);
    let shape = Shape::Upstream(Upstream {
        element,
        hash,
        is_future,
    });
    kind(4, 4, shape)
}

/// Name, offset and kind of a field or parameter.
pub type FieldOf<'py> = (Bound<'py, PyString>, u32, PyRef<'py, PyKind>);

/// The parameters of a method.
pub fn parameters(fields: Vec<FieldOf<'_>>) -> Vec<Field> {
    fields
        .into_iter()
        .map(|(name, offset, kind)| Field {
            name: name.unbind(),
            offset,
            kind: Arc::clone(&kind.0),
            slot: None,
        })
        .collect()
}

#[pyfunction]
#[pyo3(signature = (class, size, align, *fields))]
fn record(
    class: &Bound<'_, PyType>,
    size: u32,
    align: u32,
    fields: Vec<FieldOf<'_>>,
) -> PyResult<PyKind> {
    plain(class)?;
    let fields = fields
        .into_iter()
        .map(|(name, offset, kind)| {
            let slot = Some(Slot::of(class, name.to_str()?)?);
            let name = PyString::intern(class.py(), name.to_str()?).unbind();
            Ok(Field {
                name,
                offset,
                kind: Arc::clone(&kind.0),
                slot,
            })
        })
        .collect::<PyResult<Vec<_>>>()?;
    kind(
        size,
        align,
        Shape::Record(Record {
            class: class.clone().unbind(),
            fields,
        }),
    )
}

/// The class of a case, and the kind of its payload.
type CaseOf<'py> = (Bound<'py, PyType>, Option<PyRef<'py, PyKind>>);

#[pyfunction]
#[pyo3(signature = (size, align, tag_size, offset, *cases))]
fn variant(
    size: u32,
    align: u32,
    tag_size: u32,
    offset: u32,
    cases: Vec<CaseOf<'_>>,
) -> PyResult<PyKind> {
    let cases = cases
        .into_iter()
        .map(|(class, payload)| {
            let payload = payload.map(|payload| Arc::clone(&payload.0));
            let raised = class.is_subclass_of::<pyo3::exceptions::PyBaseException>()?;
            let slot = if payload.is_some() && !raised {
                plain(&class)?;
                Some(Slot::of(&class, "value")?)
            } else {
                None
            };
            Ok(Case {
                class: class.unbind(),
                payload,
                slot,
            })
        })
        .collect::<PyResult<Vec<_>>>()?;
    kind(
        size,
        align,
        Shape::Variant {
            tag_size,
            offset,
            cases,
        },
    )
}

#[pyfunction]
fn enumeration(class: &Bound<'_, PyType>, size: u32) -> PyResult<PyKind> {
    let members = members(class)?;
    let places = members
        .iter()
        .zip(0..)
        .map(|(member, place)| (member.as_ptr() as usize, place))
        .collect();
    let class = class.clone().unbind();
    kind(
        size,
        size,
        Shape::Enum(Labels {
            class,
            members,
            places,
        }),
    )
}

#[pyfunction]
fn flags(class: &Bound<'_, PyType>, size: u32) -> PyResult<PyKind> {
    let labels = u32::try_from(members(class)?.len())
        .map_err(|_| PyValueError::new_err("too many flags"))?;
    kind(
        size,
        size.min(4),
        Shape::Flags {
            class: class.clone().unbind(),
            labels,
        },
    )
}

/// The members of an enum, in order.
fn members(class: &Bound<'_, PyType>) -> PyResult<Vec<Py<PyAny>>> {
    class
        .try_iter()?
        .map(|member| member.map(Bound::unbind))
        .collect()
}

/// Accepts only classes whose new instances consist of nothing but their slots: see
/// [`crate::kind::allocate`].
fn plain(class: &Bound<'_, PyType>) -> PyResult<()> {
    let py = class.py();
    let object = py.get_type::<PyAny>();
    let same_new = class.getattr("__new__")?.is(object.getattr("__new__")?);
    let no_dict = class.getattr("__dictoffset__")?.extract::<isize>()? == 0;
    if same_new && no_dict {
        Ok(())
    } else {
        Err(PyTypeError::new_err(format!(
            "{class} is not a plain class with slots"
        )))
    }
}

/// Adds the kinds of scalars and the functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyKind>()?;
    for (name, size, shape) in scalars() {
        module.add(name, kind(size, size, shape)?)?;
    }
    module.add("STRING", kind(8, 4, Shape::String)?)?;
    module.add("BYTES", kind(8, 4, Shape::Bytes)?)?;
    module.add("NOTHING", kind(0, 1, Shape::Nothing)?)?;
    for function in [
        wrap_pyfunction!(list_of, module)?,
        wrap_pyfunction!(array_of, module)?,
        wrap_pyfunction!(bytes_of, module)?,
        wrap_pyfunction!(option, module)?,
        wrap_pyfunction!(nested_option, module)?,
        wrap_pyfunction!(result, module)?,
        wrap_pyfunction!(tuple_of, module)?,
        wrap_pyfunction!(record, module)?,
        wrap_pyfunction!(variant, module)?,
        wrap_pyfunction!(enumeration, module)?,
        wrap_pyfunction!(flags, module)?,
        wrap_pyfunction!(stream_of, module)?,
        wrap_pyfunction!(future_of, module)?,
    ] {
        module.add_function(function)?;
    }
    Ok(())
}
