//! What generated code says about a type: how it lies in a message and which class of Python it is.
//!
//! The numbers (offsets, sizes) come from the generator. They decide where the codec reads and writes, but never
//! whether that is allowed: a reader checks every access against the message, and a writer's buffer grows by itself
//! or is checked, so a wrong number gives an error or a wrong value and no worse.

use std::collections::HashMap;
use std::sync::Arc;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};

/// A type: its layout and its shape.
pub struct Kind {
    /// Bytes in place.
    pub size: u32,
    /// 1, 2, 4 or 8.
    pub align: u32,
    /// What it is.
    pub shape: Shape,
}

/// All of WIT's value types, and handles.
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
    /// A list of so many, in place.
    Array(Arc<Kind>, u32),
    /// `None` or the payload, which lies at `offset`. `wrapped`: the payload can itself be `None`, so it comes as
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
    /// A resource that is given away.
    Own,
    /// A stream, or a future: as a parameter one that the caller writes, in a value one to read.
    Upstream(Upstream),
    /// What a stream without an element carries: `None`, of no bytes.
    Nothing,
}

/// What a caller sends up, or reads out of a value.
pub struct Upstream {
    /// Its elements.
    pub element: Arc<Kind>,
    /// The layout of a message of one.
    pub hash: u64,
    /// It has one.
    pub is_future: bool,
}

/// A class with slots, built without its `__init__`.
pub struct Record {
    /// The class: `@dataclass(frozen=True, slots=True)`.
    pub class: Py<PyType>,
    /// In the order of the layout.
    pub fields: Vec<Field>,
}

/// A field of a record, or a parameter.
pub struct Field {
    /// Its name in Python, interned.
    pub name: Py<PyString>,
    /// From the record's start.
    pub offset: u32,
    /// Its type.
    pub kind: Arc<Kind>,
    /// How a value gets into the slot of a new instance. `None`: a parameter.
    pub slot: Option<Slot>,
}

/// The descriptor of a slot: what `__slots__` put into the class.
pub struct Slot {
    descriptor: Py<PyAny>,
    set: ffi::descrsetfunc,
}

/// A case of a variant: its class, and its payload in the slot `value` (or as an exception's argument).
pub struct Case {
    /// The class of this case.
    pub class: Py<PyType>,
    /// What it carries.
    pub payload: Option<Arc<Kind>>,
    /// Where the payload goes in a new instance; `None` for an exception, which is called.
    pub slot: Option<Slot>,
}

/// The members of an enum.
pub struct Labels {
    /// The class.
    pub class: Py<PyType>,
    /// By discriminant.
    pub members: Vec<Py<PyAny>>,
    /// Discriminant by the member's address. Members live as long as `members`.
    pub places: HashMap<usize, u32>,
}

impl Slot {
    /// The slot `name` of `class`.
    ///
    /// # Errors
    /// `TypeError` where the class has no such slot.
    pub fn of(class: &Bound<'_, PyType>, name: &str) -> PyResult<Self> {
        let missing =
            || pyo3::exceptions::PyTypeError::new_err(format!("{class} has no slot {name}"));
        let descriptor = class.as_any().getattr(name)?;
        // SAFETY: `descriptor` is alive, so its type is, and `Py_tp_descr_set` is a slot number that every type
        // answers, with null where it has none.
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

    /// Puts `value` into the slot of `object`.
    ///
    /// A frozen class forbids `setattr`; its slots are what `object.__setattr__` would write, one C call each.
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
    // SAFETY: `describe` lets only heap classes in that derive from `object` alone and have no `__new__` of their own,
    // so this is all that `object.__new__` does.
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
