//! The two structures of Arrow's C data interface, and their release functions.
//!
//! <https://arrow.apache.org/docs/format/CDataInterface.html>: a structure belongs to its last
//! consumer, which calls `release` once. `release` also frees its children, except those that were
//! moved out of it (their `release` is null).

use std::ffi::{CStr, CString, c_char, c_void};

use pyo3::ffi;
use pyo3::prelude::*;

use crate::columns::RetainedBatch;
use crate::raw_type::guard;

/// `struct ArrowSchema`.
#[repr(C)]
pub struct ArrowSchema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut ArrowSchema,
    dictionary: *mut ArrowSchema,
    release: Option<unsafe extern "C" fn(*mut ArrowSchema)>,
    private_data: *mut c_void,
}

/// `struct ArrowArray`.
#[repr(C)]
pub struct ArrowArray {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *mut *const c_void,
    children: *mut *mut ArrowArray,
    dictionary: *mut ArrowArray,
    release: Option<unsafe extern "C" fn(*mut ArrowArray)>,
    private_data: *mut c_void,
}

const NULLABLE: i64 = 2;

/// One buffer of an array.
pub enum Bytes {
    /// There is no buffer.
    Absent,
    /// Words, so that every number in the buffer is aligned.
    Words(Vec<u64>),
    /// Bytes without alignment.
    Text(Vec<u8>),
    /// A batch's own memory.
    InPlace {
        /// The first byte.
        start: *const u8,
        /// Keeps the memory alive.
        _kept: RetainedBatch,
    },
}

/// A finished column.
pub struct Column {
    /// The type, in Arrow's format syntax.
    pub format: CString,
    /// The name of the field.
    pub name: CString,
    /// The number of values.
    pub length: usize,
    /// The number of nulls; `None` if no value can be null.
    pub nulls: Option<usize>,
    /// The validity bits, then the buffers that the format requires.
    pub buffers: Vec<Bytes>,
    /// The child columns.
    pub children: Vec<Column>,
}

/// Owns the memory that a schema points to.
struct SchemaOwned {
    _format: CString,
    _name: CString,
    children: Vec<*mut ArrowSchema>,
}

/// Owns the memory that an array points to.
struct ArrayOwned {
    _bytes: Vec<Bytes>,
    pointers: Vec<*const c_void>,
    children: Vec<*mut ArrowArray>,
}

impl Column {
    /// The column's type as a structure that the consumer releases.
    pub fn schema(&self) -> ArrowSchema {
        let children = self
            .children
            .iter()
            .map(|child| Box::into_raw(Box::new(child.schema())));
        let mut owned = Box::new(SchemaOwned {
            _format: self.format.clone(),
            _name: self.name.clone(),
            children: children.collect(),
        });
        ArrowSchema {
            format: owned._format.as_ptr(),
            name: owned._name.as_ptr(),
            metadata: std::ptr::null(),
            flags: if self.nulls.is_some() { NULLABLE } else { 0 },
            n_children: owned.children.len() as i64,
            children: owned.children.as_mut_ptr(),
            dictionary: std::ptr::null_mut(),
            release: Some(release_schema),
            private_data: Box::into_raw(owned).cast(),
        }
    }

    /// The column's values as a structure that the consumer releases.
    pub fn array(self) -> ArrowArray {
        let pointers = self.buffers.iter().map(|bytes| match bytes {
            Bytes::Absent => std::ptr::null(),
            Bytes::Words(words) => words.as_ptr().cast(),
            Bytes::Text(bytes) => bytes.as_ptr().cast(),
            Bytes::InPlace { start, .. } => start.cast(),
        });
        let pointers = pointers.collect();
        let children = self.children.into_iter();
        let children = children.map(|child| Box::into_raw(Box::new(child.array())));
        let mut owned = Box::new(ArrayOwned {
            pointers,
            _bytes: self.buffers,
            children: children.collect(),
        });
        ArrowArray {
            length: self.length as i64,
            null_count: self.nulls.unwrap_or(0) as i64,
            offset: 0,
            n_buffers: owned.pointers.len() as i64,
            n_children: owned.children.len() as i64,
            buffers: owned.pointers.as_mut_ptr(),
            children: owned.children.as_mut_ptr(),
            dictionary: std::ptr::null_mut(),
            release: Some(release_array),
            private_data: Box::into_raw(owned).cast(),
        }
    }

    /// The schema and the array, each in a capsule.
    pub fn capsules<'py>(
        self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let schema = capsule(py, c"arrow_schema", self.schema(), free_schema)?;
        let array = capsule(py, c"arrow_array", self.array(), free_array)?;
        Ok((schema, array))
    }
}

unsafe extern "C" fn release_schema(schema: *mut ArrowSchema) {
    // SAFETY: the consumer calls this once, with a structure that `Column::schema` created. The
    // structure may have been moved. Its children are our boxes, and the consumer may have moved
    // them out.
    unsafe {
        let owned = Box::from_raw((*schema).private_data.cast::<SchemaOwned>());
        (*schema).release = None;
        for child in &owned.children {
            let mut child = Box::from_raw(*child);
            if let Some(release) = child.release {
                release(&raw mut *child);
            }
        }
    }
}

unsafe extern "C" fn release_array(array: *mut ArrowArray) {
    // SAFETY: as in `release_schema`.
    unsafe {
        let owned = Box::from_raw((*array).private_data.cast::<ArrayOwned>());
        (*array).release = None;
        for child in &owned.children {
            let mut child = Box::from_raw(*child);
            if let Some(release) = child.release {
                release(&raw mut *child);
            }
        }
    }
}

unsafe extern "C" fn free_schema(capsule: *mut ffi::PyObject) {
    guard((), |_| {
        // SAFETY: this is the capsule's own destructor. The capsule contains a box of `ArrowSchema`
        // under this name. A consumer that took the structure has set `release` to null.
        unsafe {
            let schema = ffi::PyCapsule_GetPointer(capsule, c"arrow_schema".as_ptr());
            let mut schema = Box::from_raw(schema.cast::<ArrowSchema>());
            if let Some(release) = schema.release {
                release(&raw mut *schema);
            }
        }
        Ok(())
    });
}

unsafe extern "C" fn free_array(capsule: *mut ffi::PyObject) {
    guard((), |_| {
        // SAFETY: as in `free_schema`.
        unsafe {
            let array = ffi::PyCapsule_GetPointer(capsule, c"arrow_array".as_ptr());
            let mut array = Box::from_raw(array.cast::<ArrowArray>());
            if let Some(release) = array.release {
                release(&raw mut *array);
            }
        }
        Ok(())
    });
}

impl ArrowArray {
    /// An array that is released already: the end of an Arrow stream.
    pub fn released() -> Self {
        Self {
            length: 0,
            null_count: 0,
            offset: 0,
            n_buffers: 0,
            n_children: 0,
            buffers: std::ptr::null_mut(),
            children: std::ptr::null_mut(),
            dictionary: std::ptr::null_mut(),
            release: None,
            private_data: std::ptr::null_mut(),
        }
    }
}

/// A capsule called `name` that contains a box of `value`.
pub fn capsule<'py, T>(
    py: Python<'py>,
    name: &'static CStr,
    value: T,
    free: unsafe extern "C" fn(*mut ffi::PyObject),
) -> PyResult<Bound<'py, PyAny>> {
    let value = Box::into_raw(Box::new(value));
    // SAFETY: the name is static, the pointer is not null, and `free` frees the box.
    unsafe {
        let capsule = ffi::PyCapsule_New(value.cast(), name.as_ptr(), Some(free));
        Bound::from_owned_ptr_or_err(py, capsule)
    }
}
