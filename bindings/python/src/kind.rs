//! The description of a type in generated code: its layout in a message, and its Python class.
//!
//! The generator writes the offsets and sizes. They decide where the codec reads and writes, but
//! not whether it may: a reader checks every access against the message, and a writer's buffer
//! grows or is checked. A wrong number therefore causes an error or a wrong value, but never an
//! invalid access.

use std::collections::HashMap;
use std::sync::Arc;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};

/// A type: its layout and its shape.
pub struct Kind {
    /// Size of the inline part, in bytes.
    pub size: u32,
    /// Alignment: 1, 2, 4 or 8.
    pub align: u32,
    /// The kind of type.
    pub shape: Shape,
}

/// All value types of WIT, and handles.
pub enum Shape {
    Bool,
    U8,
    U16,
    U32,
    U64,
    S8,
    S16,
    S32,
    S64,
    F32,
    F64,
    Char,
    String,
    /// `list<u8>`: `bytes`.
    Bytes,
    List(Arc<Kind>),
    /// `list<u8, N>`: `bytes` of that length, in place.
    FixedBytes(u32),
    /// An inline list of fixed length.
    Array(Arc<Kind>, u32),
    /// `None`, or the payload at `offset`. `wrapped`: the payload can itself be `None`, so it is a
    /// `thalweg.Some`.
    Option {
        payload: Arc<Kind>,
        offset: u32,
        wrapped: bool,
    },
    /// `thalweg.Ok` or `thalweg.Err`.
    Result {
        ok: Option<Arc<Kind>>,
        error: Option<Arc<Kind>>,
        offset: u32,
    },
    /// Each item with its offset.
    Tuple(Vec<(u32, Arc<Kind>)>),
    Record(Record),
    Variant {
        tag_size: u32,
        offset: u32,
        cases: Vec<Case>,
    },
    Enum(Labels),
    Flags {
        class: Py<PyType>,
        labels: u32,
    },
    /// A resource that the callee may use during the call.
    Borrow,
    /// A resource that the callee receives.
    Own,
    /// A stream or a future: as a parameter, the caller writes it; in a value, the receiver reads
    /// it.
    Upstream(Upstream),
    /// The element of a stream without an element type: `None`, with a size of 0 bytes.
    Nothing,
}

/// A stream or future that is a parameter or part of a value.
pub struct Upstream {
    /// The type of its elements.
    pub element: Arc<Kind>,
    /// The layout hash of a message with one element.
    pub hash: u64,
    /// Whether it is a future.
    pub is_future: bool,
}

/// A class with slots, built without its `__init__`.
pub struct Record {
    /// The class: `@dataclass(frozen=True, slots=True)`.
    pub class: Py<PyType>,
    /// The fields, in the order of the layout.
    pub fields: Vec<Field>,
}

/// A field of a record, or a parameter.
pub struct Field {
    /// Its name in Python, interned.
    pub name: Py<PyString>,
    /// The offset from the start of the record.
    pub offset: u32,
    /// Its type.
    pub kind: Arc<Kind>,
    /// The slot of a new instance that takes the value. `None` for a parameter.
    pub slot: Option<Slot>,
}

/// The descriptor of a slot in a class with `__slots__`.
pub struct Slot {
    descriptor: Py<PyAny>,
    set: ffi::descrsetfunc,
}

/// A case of a variant: its class, and its payload in the slot `value` (or as an exception's
/// argument).
pub struct Case {
    /// The class of this case.
    pub class: Py<PyType>,
    /// The payload type.
    pub payload: Option<Arc<Kind>>,
    /// The slot of a new instance that takes the payload. `None` for an exception, whose class is
    /// called.
    pub slot: Option<Slot>,
}

/// The members of an enum.
pub struct Labels {
    /// The class.
    pub class: Py<PyType>,
    /// The members by discriminant.
    pub members: Vec<Py<PyAny>>,
    /// The discriminant by the member's address. Members live as long as `members`.
    pub places: HashMap<usize, u32>,
}

impl Slot {
    /// The slot `name` of `class`.
    ///
    /// # Errors
    /// `TypeError` if the class has no such slot.
    pub fn of(class: &Bound<'_, PyType>, name: &str) -> PyResult<Self> {
        let missing =
            || pyo3::exceptions::PyTypeError::new_err(format!("{class} has no slot {name}"));
        let descriptor = class.as_any().getattr(name)?;
        // SAFETY: `descriptor` is alive, so its type is too. Every type accepts the slot number
        // `Py_tp_descr_set`, and returns null if it has no such function.
        let set =
            unsafe { ffi::PyType_GetSlot(ffi::Py_TYPE(descriptor.as_ptr()), ffi::Py_tp_descr_set) };
        if set.is_null() {
            return Err(missing());
        }
        // SAFETY: a non-null `tp_descr_set` is a `descrsetfunc`.
        let set = unsafe { std::mem::transmute::<*mut std::ffi::c_void, ffi::descrsetfunc>(set) };
        Ok(Self {
            descriptor: descriptor.unbind(),
            set,
        })
    }

    /// A frozen class forbids `setattr`. Setting a slot has the effect of `object.__setattr__`,
    /// with one C call.
    ///
    /// A frozen class forbids `setattr`; its slots are what `object.__setattr__` would write, one C
    /// call each.
    pub fn fill(&self, object: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        // SAFETY: all three are alive; the function is this descriptor's own.
        let status =
            unsafe { (self.set)(self.descriptor.as_ptr(), object.as_ptr(), value.as_ptr()) };
        if status == 0 {
            Ok(())
        } else {
            Err(PyErr::fetch(object.py()))
        }
    }
}

/// A new instance of `class` with empty slots.
pub fn allocate<'py>(class: &Bound<'py, PyType>) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: `describe` lets only heap classes in that derive from `object` alone and have no
    // `__new__` of their own, so this is all that `object.__new__` does.
    unsafe {
        Bound::from_owned_ptr_or_err(class.py(), ffi::PyType_GenericAlloc(class.as_type_ptr(), 0))
    }
}

impl Kind {
    /// As messages about it say: "str", "Options".
    pub fn expected(&self, py: Python<'_>) -> String {
        let class = |class: &Py<PyType>| {
            class
                .bind(py)
                .name()
                .map_or_else(|_| "?".into(), |name| name.to_string())
        };
        match &self.shape {
            Shape::Bool => "bool".into(),
            Shape::U8
            | Shape::U16
            | Shape::U32
            | Shape::U64
            | Shape::S8
            | Shape::S16
            | Shape::S32
            | Shape::S64 => "int".into(),
            Shape::F32 | Shape::F64 => "float".into(),
            Shape::Char => "str of one character".into(),
            Shape::String => "str".into(),
            Shape::Bytes => "bytes".into(),
            Shape::List(_) => "a sequence".into(),
            Shape::FixedBytes(count) => format!("{count} bytes"),
            Shape::Array(_, count) => format!("a sequence of {count}"),
            Shape::Option {
                payload,
                wrapped: false,
                ..
            } => format!("{} or None", payload.expected(py)),
            Shape::Option { .. } => "thalweg.Some or None".into(),
            Shape::Result { .. } => "thalweg.Ok or thalweg.Err".into(),
            Shape::Tuple(items) => format!("a tuple of {}", items.len()),
            Shape::Record(record) => class(&record.class),
            Shape::Enum(labels) => class(&labels.class),
            Shape::Flags { class: of, .. } => class(of),
            Shape::Variant { cases, .. } => cases
                .iter()
                .map(|case| class(&case.class))
                .collect::<Vec<_>>()
                .join(" or "),
            Shape::Borrow | Shape::Own => "a resource".into(),
            Shape::Upstream(_) => "an iterable".into(),
            Shape::Nothing => "None".into(),
        }
    }
}
