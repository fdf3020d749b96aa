//! Decodes messages and batches into Python values. Every access is checked, whatever the bytes
//! are.

use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyTuple, PyType};

use crate::errors;
use crate::kind::{self, Case, Kind, Record, Shape};
use crate::message::{MAX_EMPTY_ELEMENTS, Malformed, Region};
use crate::owned::Handles;
use crate::results::{Wrapper, Wrappers};

/// Why a value cannot be decoded.
pub enum DecodeError {
    /// The bytes are malformed.
    Malformed(Malformed),
    /// Python raised an exception.
    Raised(PyErr),
}

impl From<Malformed> for DecodeError {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed)
    }
}

impl From<PyErr> for DecodeError {
    fn from(error: PyErr) -> Self {
        Self::Raised(error)
    }
}

impl DecodeError {
    /// The exception: `thalweg.BadArgument` for malformed bytes from `whose`.
    pub fn raise(self, py: Python<'_>, whose: &str) -> PyErr {
        match self {
            Self::Malformed(Malformed(why)) => errors::argument(
                py,
                &format!("malformed data from the library in {whose}: {why}"),
            ),
            Self::Raised(error) => error,
        }
    }
}

/// Reads values out of one region.
pub struct Decoder<'a, 'py> {
    py: Python<'py>,
    region: Region,
    /// The earliest offset of the next tail. Tails lie in the order in which they are met, so no
    /// bytes are read twice, and a short message cannot describe a huge value. `None` while single
    /// fields are read.
    tails_from: Option<u64>,
    /// The handles of the message.
    handles: Option<Handles<'a, 'py>>,
}

impl<'a, 'py> Decoder<'a, 'py> {
    /// For a whole message or record whose tails begin at `tails_from` at the earliest. Without
    /// `handles`, it can contain none.
    pub fn whole(
        py: Python<'py>,
        region: Region,
        tails_from: u32,
        handles: Option<Handles<'a, 'py>>,
    ) -> Self {
        Self {
            py,
            region,
            tails_from: Some(u64::from(tails_from)),
            handles,
        }
    }

    /// For single fields, in any order.
    pub fn field(py: Python<'py>, region: Region) -> Self {
        Self {
            py,
            region,
            tails_from: None,
            handles: None,
        }
    }

    /// The value of `kind` at `at`.
    pub fn value(&mut self, kind: &Kind, at: u32) -> Result<Bound<'py, PyAny>, DecodeError> {
        let py = self.py;
        Ok(match &kind.shape {
            Shape::Bool => match self.byte(at)? {
                0 => false
                    .into_pyobject(py)
                    .map_err(PyErr::from)?
                    .to_owned()
                    .into_any(),
                1 => true
                    .into_pyobject(py)
                    .map_err(PyErr::from)?
                    .to_owned()
                    .into_any(),
                _ => return Err(Malformed("a bool is neither 0 nor 1").into()),
            },
            Shape::U8 => self.unsigned(u64::from(self.byte(at)?))?,
            Shape::U16 => self.unsigned(u64::from(u16::from_le_bytes(self.region.array(at)?)))?,
            Shape::U32 => self.unsigned(u64::from(self.region.u32(at)?))?,
            Shape::U64 => self.unsigned(u64::from_le_bytes(self.region.array(at)?))?,
            Shape::S8 => self.signed(i64::from(i8::from_le_bytes(self.region.array(at)?)))?,
            Shape::S16 => self.signed(i64::from(i16::from_le_bytes(self.region.array(at)?)))?,
            Shape::S32 => self.signed(i64::from(i32::from_le_bytes(self.region.array(at)?)))?,
            Shape::S64 => self.signed(i64::from_le_bytes(self.region.array(at)?))?,
            Shape::F32 => self.float(f64::from(f32::from_le_bytes(self.region.array(at)?)))?,
            Shape::F64 => self.float(f64::from_le_bytes(self.region.array(at)?))?,
            Shape::Char => {
                let scalar = char::from_u32(self.region.u32(at)?)
                    .ok_or(Malformed("a char is not a scalar value"))?;
                PyString::new(py, scalar.encode_utf8(&mut [0; 4])).into_any()
            }
            Shape::String => {
                let text = std::str::from_utf8(self.tail(at, 1)?.1)
                    .map_err(|_| Malformed("a string is not UTF-8"))?;
                PyString::new(py, text).into_any()
            }
            Shape::Bytes => PyBytes::new(py, self.tail(at, 1)?.1).into_any(),
            Shape::List(element) => self.list(element, at)?,
            Shape::FixedBytes(count) => {
                PyBytes::new(py, self.region.bytes(at, *count as usize)?).into_any()
            }
            Shape::Array(element, count) => {
                self.region.bytes(at, kind.size as usize)?;
                self.items(element, at, *count)?
            }
            Shape::Option {
                payload,
                offset,
                wrapped,
            } => match self.byte(at)? {
                0 => py.None().into_bound(py),
                1 if *wrapped => {
                    let value = self.value(payload, self.within(at, *offset)?)?;
                    Wrappers::of(py)?.wrap(Wrapper::Some, &value)?
                }
                1 => self.value(payload, self.within(at, *offset)?)?,
                _ => return Err(Malformed("an option is neither 0 nor 1").into()),
            },
            Shape::Result { ok, error, offset } => {
                let (which, payload) = match self.byte(at)? {
                    0 => (Wrapper::Ok, ok),
                    1 => (Wrapper::Err, error),
                    _ => return Err(Malformed("a result is neither 0 nor 1").into()),
                };
                let value = match payload {
                    Some(payload) => self.value(payload, self.within(at, *offset)?)?,
                    None => py.None().into_bound(py),
                };
                Wrappers::of(py)?.wrap(which, &value)?
            }
            Shape::Tuple(items) => {
                let values = items
                    .iter()
                    .map(|(offset, item)| self.value(item, self.within(at, *offset)?))
                    .collect::<Result<Vec<_>, DecodeError>>()?;
                PyTuple::new(py, values)?.into_any()
            }
            Shape::Record(record) => self.record(record, at)?,
            Shape::Variant {
                tag_size,
                offset,
                cases,
            } => {
                let tag = self.tag(at, *tag_size)?;
                let case = cases
                    .get(tag as usize)
                    .ok_or(Malformed("a variant has no such case"))?;
                let payload = match &case.payload {
                    Some(payload) => Some(self.value(payload, self.within(at, *offset)?)?),
                    None => None,
                };
                new_case(py, case, payload)?
            }
            Shape::Enum(labels) => {
                let tag = self.tag(at, kind.size)?;
                labels
                    .members
                    .get(tag as usize)
                    .ok_or(Malformed("an enum has no such case"))?
                    .bind(py)
                    .clone()
            }
            Shape::Flags { class, labels } => self.flags(class.bind(py), *labels, kind.size, at)?,
            Shape::Own | Shape::Upstream(_) => {
                let place = self.region.u32(at)?;
                let value = match (&mut self.handles, &kind.shape) {
                    (Some(handles), Shape::Upstream(stream)) => handles.stream(place, stream)?,
                    (Some(handles), _) => handles.resource(place)?,
                    (None, _) => None,
                };
                value.ok_or(Malformed("a handle is missing or out of turn"))?
            }
            Shape::Nothing => py.None().into_bound(py),
            Shape::Borrow => {
                return Err(PyTypeError::new_err("a borrowed resource inside a value").into());
            }
        })
    }

    fn byte(&self, at: u32) -> Result<u8, Malformed> {
        self.region.array::<1>(at).map(|byte| byte[0])
    }

    /// A part of the value at `at`.
    #[expect(clippy::unused_self, reason = "reads as the other accessors")]
    fn within(&self, at: u32, offset: u32) -> Result<u32, Malformed> {
        at.checked_add(offset)
            .ok_or(Malformed("an offset leads outside"))
    }

    fn tag(&self, at: u32, size: u32) -> Result<u32, Malformed> {
        Ok(match size {
            1 => u32::from(self.byte(at)?),
            2 => u32::from(u16::from_le_bytes(self.region.array(at)?)),
            _ => self.region.u32(at)?,
        })
    }

    /// The tail of the slice at `at`: its offset and bytes, for elements of `size` bytes.
    fn tail(&mut self, at: u32, size: u32) -> Result<(u32, &[u8]), Malformed> {
        let (offset, count) = (self.region.u32(at)?, self.region.u32(self.within(at, 4)?)?);
        if count == 0 || size == 0 {
            return if offset == 0 {
                Ok((0, &[]))
            } else {
                Err(Malformed("an empty tail has an offset"))
            };
        }
        let length = u64::from(count) * u64::from(size);
        if let Some(from) = &mut self.tails_from {
            if u64::from(offset) < *from {
                return Err(Malformed("tails overlap"));
            }
            *from = u64::from(offset) + length;
        }
        let length = usize::try_from(length).map_err(|_| Malformed("an offset leads outside"))?;
        Ok((offset, self.region.bytes(offset, length)?))
    }

    fn unsigned(&self, number: u64) -> PyResult<Bound<'py, PyAny>> {
        // SAFETY: the GIL is held; null is handled.
        unsafe { Bound::from_owned_ptr_or_err(self.py, ffi::PyLong_FromUnsignedLongLong(number)) }
    }

    fn signed(&self, number: i64) -> PyResult<Bound<'py, PyAny>> {
        // SAFETY: the GIL is held; null is handled.
        unsafe { Bound::from_owned_ptr_or_err(self.py, ffi::PyLong_FromLongLong(number)) }
    }

    fn float(&self, number: f64) -> PyResult<Bound<'py, PyAny>> {
        // SAFETY: the GIL is held; null is handled.
        unsafe { Bound::from_owned_ptr_or_err(self.py, ffi::PyFloat_FromDouble(number)) }
    }

    fn list(&mut self, element: &Kind, at: u32) -> Result<Bound<'py, PyAny>, DecodeError> {
        let count = self.region.u32(self.within(at, 4)?)?;
        if element.size == 0 && count > MAX_EMPTY_ELEMENTS {
            return Err(Malformed("too many elements without a size").into());
        }
        let first = self.tail(at, element.size)?.0;
        if !first.is_multiple_of(element.align.max(1)) {
            return Err(Malformed("a list is not aligned").into());
        }
        self.items(element, first, count)
    }

    /// Decodes `count` contiguous elements.
    fn items(
        &mut self,
        element: &Kind,
        first: u32,
        count: u32,
    ) -> Result<Bound<'py, PyAny>, DecodeError> {
        let mut place = first;
        // A list that other code can see (through the garbage collector) must have no empty items,
        // so the values come first.
        let mut values = Vec::with_capacity(count as usize);
        for _ in 0..count {
            values.push(self.value(element, place)?);
            place = place.wrapping_add(element.size);
        }
        Ok(pyo3::types::PyList::new(self.py, values)?.into_any())
    }

    fn record(&mut self, record: &Record, at: u32) -> Result<Bound<'py, PyAny>, DecodeError> {
        let object = kind::allocate(record.class.bind(self.py))?;
        for field in &record.fields {
            let value = self.value(&field.kind, self.within(at, field.offset)?)?;
            if let Some(slot) = &field.slot {
                slot.fill(&object, &value)?;
            }
        }
        Ok(object)
    }

    fn flags(
        &self,
        class: &Bound<'py, PyType>,
        labels: u32,
        size: u32,
        at: u32,
    ) -> Result<Bound<'py, PyAny>, DecodeError> {
        let bytes = self.region.bytes(at, size as usize)?;
        for (place, byte) in bytes.iter().enumerate() {
            let used = (labels as usize).saturating_sub(place * 8).min(8);
            if u32::from(*byte) >> used != 0 {
                return Err(Malformed("unused flags are set").into());
            }
        }
        let bits = match <[u8; 8]>::try_from(bytes) {
            Ok(word) => self.unsigned(u64::from_le_bytes(word))?,
            Err(_) if bytes.len() < 8 => {
                let mut word = [0; 8];
                word[..bytes.len()].copy_from_slice(bytes);
                self.unsigned(u64::from_le_bytes(word))?
            }
            Err(_) => self
                .py
                .get_type::<pyo3::types::PyInt>()
                .call_method1("from_bytes", (bytes, "little"))?,
        };
        Ok(class.call1((bits,))?)
    }
}

/// An instance of a variant's case.
fn new_case<'py>(
    py: Python<'py>,
    case: &Case,
    payload: Option<Bound<'py, PyAny>>,
) -> Result<Bound<'py, PyAny>, DecodeError> {
    let class = case.class.bind(py);
    match (&case.slot, payload) {
        (Some(slot), Some(payload)) => {
            let object = kind::allocate(class)?;
            slot.fill(&object, &payload)?;
            Ok(object)
        }
        (None, Some(payload)) => Ok(class.call1((payload,))?),
        (_, None) => Ok(class.call0()?),
    }
}
