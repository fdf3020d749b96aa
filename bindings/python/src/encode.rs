//! Encodes Python values into a message.

use std::borrow::Cow;
use std::ffi::c_int;

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyList, PyString, PyTuple};

use crate::errors;
use crate::kind::{Field, Kind, Labels, Record, Shape};
use crate::message;
use crate::resource::Resource;
use crate::results::Wrappers;

/// A value that does not fit its type, and its path, innermost part first.
struct EncodeError {
    error: PyErr,
    path: Vec<String>,
}

impl From<PyErr> for EncodeError {
    fn from(error: PyErr) -> Self {
        Self {
            error,
            path: Vec::new(),
        }
    }
}

impl EncodeError {
    fn within(mut self, part: impl Into<String>) -> Self {
        self.path.push(part.into());
        self
    }

    /// The exception: of the same class, with the path in front of its text, as in
    /// `options.globs[2]: expected str`.
    fn raise(self, py: Python<'_>, call: &str) -> PyErr {
        let mut place = String::new();
        for part in self.path.iter().rev() {
            if !place.is_empty() && !part.starts_with('[') {
                place.push('.');
            }
            place.push_str(part);
        }
        let text = format!("{call}: {place}: {}", errors::text(self.error.value(py)));
        if self.error.is_instance_of::<PyOverflowError>(py) {
            PyOverflowError::new_err(text)
        } else if self.error.is_instance_of::<PyValueError>(py) {
            PyValueError::new_err(text)
        } else if self.error.is_instance_of::<PyTypeError>(py) {
            PyTypeError::new_err(text)
        } else {
            self.error
        }
    }
}

/// The maximum number of attempts to encode arguments whose number of handles is not known before.
const MOST_TRIES: u32 = 4;

/// Writes one message of arguments.
pub struct Encoder<'a, 'py> {
    py: Python<'py>,
    buffer: &'a mut Vec<u8>,
    /// Capacity of the table of handles, and the number of handles.
    room: u32,
    handles: u32,
    given: Given<'py>,
    /// The argument that is being written.
    parameter: usize,
}

/// The resources and streams that a call takes with its arguments.
#[derive(Default)]
pub struct Given<'py> {
    /// They stay open until the call is accepted, so a refused call leaves them to the caller.
    pub resources: Vec<Bound<'py, Resource>>,
    /// Their entries in the table of handles are empty: [`crate::upstream::open`] fills them.
    pub streams: Vec<StreamArgument<'py>>,
}

/// An argument that is a stream or a future.
pub struct StreamArgument<'py> {
    /// The number of the parameter.
    pub parameter: usize,
    /// Its index in the table of handles.
    pub place: u32,
    /// The Python value that was passed.
    pub value: Bound<'py, PyAny>,
}

/// Encodes `arguments` as the record `fields` into `buffer`. Returns what the call takes from its
/// caller.
///
/// # Errors
/// `TypeError`, `OverflowError` or `ValueError` that names `call` and the path of the value.
pub fn arguments<'py>(
    py: Python<'py>,
    call: &str,
    fields: &[Field],
    layout: (u64, u32),
    arguments: &Bound<'py, PyTuple>,
    buffer: &mut Vec<u8>,
) -> PyResult<Given<'py>> {
    if arguments.len() != fields.len() {
        return Err(PyTypeError::new_err(format!(
            "{call}: {} arguments, expected {}",
            arguments.len(),
            fields.len()
        )));
    }
    let is_handle = |field: &&Field| {
        matches!(
            field.kind.shape,
            Shape::Borrow | Shape::Own | Shape::Upstream(_)
        )
    };
    let handles = fields.iter().filter(is_handle).count();
    let mut room =
        u32::try_from(handles).map_err(|_| PyOverflowError::new_err("too many handles"))?;
    let mut tries = 0;
    let given = loop {
        let root = message::begin(buffer, layout.0, room, layout.1);
        let mut encoder = Encoder {
            py,
            buffer,
            room,
            handles: 0,
            given: Given::default(),
            parameter: 0,
        };
        for (field, value) in fields.iter().zip(arguments.iter_borrowed()) {
            encoder
                .value(&field.kind, &value, root + field.offset)
                .map_err(|unfit| unfit.within(field.name.to_string()).raise(py, call))?;
            encoder.parameter += 1;
        }
        if encoder.handles == room {
            break encoder.given;
        }
        // The values contain handles, and their number is known now. Encoding can run code that
        // changes it, so the number of attempts is limited.
        room = encoder.handles;
        tries += 1;
        if tries == MOST_TRIES {
            let text = format!("{call}: the arguments change while they are read");
            return Err(PyValueError::new_err(text));
        }
    };
    if message::finish(buffer) {
        Ok(given)
    } else {
        Err(PyOverflowError::new_err(format!(
            "{call}: the arguments are longer than 2 GiB"
        )))
    }
}

/// Encodes `value` alone, as a message of `kind` and `layout`, into `buffer`. Errors call it
/// `place`.
///
/// # Errors
/// As [`arguments`].
pub fn alone(
    py: Python<'_>,
    call: &str,
    place: impl FnOnce() -> String,
    kind: &Kind,
    layout: u64,
    value: &Bound<'_, PyAny>,
    buffer: &mut Vec<u8>,
) -> PyResult<()> {
    let root = message::begin(buffer, layout, 0, kind.size);
    let mut encoder = Encoder {
        py,
        buffer,
        room: 0,
        handles: 0,
        given: Given::default(),
        parameter: 0,
    };
    encoder
        .value(kind, value, root)
        .map_err(|unfit| unfit.within(place()).raise(py, call))?;
    if message::finish(buffer) {
        Ok(())
    } else {
        let text = format!("{call}: the value is longer than 2 GiB");
        Err(PyOverflowError::new_err(text))
    }
}

impl<'py> Encoder<'_, 'py> {
    /// Writes `value` at `at`, which lies in a zeroed part of the buffer; its tails go to the end.
    fn value(
        &mut self,
        kind: &Kind,
        value: &Bound<'py, PyAny>,
        at: u32,
    ) -> Result<(), EncodeError> {
        match &kind.shape {
            Shape::Bool => {
                let value = value
                    .cast::<PyBool>()
                    .map_err(|_| self.unfit(kind, value))?;
                self.put(at, &[u8::from(value.is_true())]);
            }
            Shape::U8 | Shape::U16 | Shape::U32 | Shape::U64 => self.unsigned(kind, value, at)?,
            Shape::S8 | Shape::S16 | Shape::S32 | Shape::S64 => self.signed(kind, value, at)?,
            Shape::F32 => {
                let wide = self.float(kind, value)?;
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "that is what f32 is; overflow is checked"
                )]
                let narrow = wide as f32;
                if narrow.is_infinite() && wide.is_finite() {
                    return Err(PyOverflowError::new_err(format!("{wide} does not fit f32")).into());
                }
                self.put(at, &narrow.to_le_bytes());
            }
            Shape::F64 => {
                let value = self.float(kind, value)?;
                self.put(at, &value.to_le_bytes());
            }
            Shape::Char => {
                let text = self.text(kind, value)?;
                let mut chars = text.chars();
                let (Some(only), None) = (chars.next(), chars.next()) else {
                    return Err(PyValueError::new_err(format!(
                        "expected one character, got {text:?}"
                    ))
                    .into());
                };
                self.put(at, &u32::from(only).to_le_bytes());
            }
            Shape::String => {
                let text = self.text(kind, value)?;
                self.tail_bytes(text.as_bytes(), at)?;
            }
            Shape::Bytes => self.bytes(kind, value, at)?,
            Shape::List(element) => self.list(kind, element, value, at)?,
            Shape::FixedBytes(count) => {
                let bytes = self.byte_string(kind, value)?;
                Self::as_many(*count, bytes.len(), "bytes")?;
                self.put(at, &bytes);
            }
            Shape::Array(element, count) => {
                let items = self.sequence(kind, value)?;
                Self::as_many(*count, items.len(), "elements")?;
                self.items(element, &items, at)?;
            }
            Shape::Option {
                payload,
                offset,
                wrapped,
            } => {
                if !value.is_none() {
                    self.put(at, &[1]);
                    if *wrapped {
                        let class = Wrappers::of(self.py)?.some.bind(self.py);
                        if !value.is_instance(class)? {
                            return Err(self.unfit(kind, value));
                        }
                        self.value(payload, &value.getattr("value")?, at + offset)?;
                    } else {
                        self.value(payload, value, at + offset)?;
                    }
                }
            }
            Shape::Result { ok, error, offset } => {
                let wrappers = Wrappers::of(self.py)?;
                let (tag, payload) = if value.is_instance(wrappers.ok.bind(self.py))? {
                    (0, ok)
                } else if value.is_instance(wrappers.err.bind(self.py))? {
                    (1, error)
                } else {
                    return Err(self.unfit(kind, value));
                };
                self.put(at, &[tag]);
                if let Some(payload) = payload {
                    self.value(payload, &value.getattr("value")?, at + offset)
                        .map_err(|unfit| unfit.within("value"))?;
                }
            }
            Shape::Tuple(items) => {
                let tuple = value
                    .cast::<PyTuple>()
                    .map_err(|_| self.unfit(kind, value))?;
                if tuple.len() != items.len() {
                    return Err(PyTypeError::new_err(format!(
                        "expected a tuple of {}, got one of {}",
                        items.len(),
                        tuple.len()
                    ))
                    .into());
                }
                for (place, ((offset, item), value)) in
                    items.iter().zip(tuple.iter_borrowed()).enumerate()
                {
                    self.value(item, &value, at + offset)
                        .map_err(|unfit| unfit.within(format!("[{place}]")))?;
                }
            }
            Shape::Record(record) => self.record(kind, record, value, at)?,
            Shape::Variant {
                tag_size,
                offset,
                cases,
            } => {
                for (tag, case) in cases.iter().enumerate() {
                    if value.is_instance(case.class.bind(self.py))? {
                        self.put(at, &tag.to_le_bytes()[..*tag_size as usize]);
                        if let Some(payload) = &case.payload {
                            let name = if case.slot.is_some() {
                                "value"
                            } else {
                                "payload"
                            };
                            self.value(payload, &value.getattr(name)?, at + offset)
                                .map_err(|unfit| unfit.within(name))?;
                        }
                        return Ok(());
                    }
                }
                return Err(self.unfit(kind, value));
            }
            Shape::Enum(labels) => self.label(kind, labels, value, at)?,
            Shape::Flags { class, .. } => {
                if !value.is_instance(class.bind(self.py))? {
                    return Err(self.unfit(kind, value));
                }
                let bits = value
                    .getattr("value")?
                    .call_method1("to_bytes", (kind.size, "little"))?;
                let bits = bits
                    .cast::<PyBytes>()
                    .map_err(PyErr::from)?
                    .as_bytes()
                    .to_vec();
                self.put(at, &bits);
            }
            Shape::Borrow | Shape::Own => {
                let resource = value
                    .cast::<Resource>()
                    .map_err(|_| self.unfit(kind, value))?;
                let number = resource.get().handle().number(self.py)?;
                self.handle(number, at);
                if matches!(kind.shape, Shape::Own) {
                    self.given.resources.push(resource.clone());
                }
            }
            Shape::Upstream(_) => {
                let sent = StreamArgument {
                    parameter: self.parameter,
                    place: self.handle(0, at),
                    value: value.clone(),
                };
                self.given.streams.push(sent);
            }
            Shape::Nothing => {
                if !value.is_none() {
                    return Err(self.unfit(kind, value));
                }
            }
        }
        Ok(())
    }

    /// Writes `number` into the next entry of the table of handles, and the index of the entry at
    /// `at`.
    fn handle(&mut self, number: u64, at: u32) -> u32 {
        let place = self.handles;
        self.handles += 1;
        // If the table is too small, there will be another attempt.
        if place < self.room {
            self.put(message::handle_at(place), &number.to_le_bytes());
            self.put(at, &place.to_le_bytes());
        }
        place
    }

    fn unfit(&self, kind: &Kind, value: &Bound<'py, PyAny>) -> EncodeError {
        let got = value
            .get_type()
            .name()
            .map_or_else(|_| "?".to_owned(), |name| name.to_string());
        PyTypeError::new_err(format!("expected {}, got {got}", kind.expected(self.py))).into()
    }

    fn put(&mut self, at: u32, bytes: &[u8]) {
        let at = at as usize;
        self.buffer[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Adds a zeroed tail of `length` bytes and notes it, with `count`, in the slice at `at`.
    fn tail(
        &mut self,
        length: usize,
        align: u32,
        count: usize,
        at: u32,
    ) -> Result<u32, EncodeError> {
        let start = self.buffer.len().next_multiple_of(align as usize);
        let (Ok(offset), Ok(count), Some(end)) = (
            i32::try_from(start),
            u32::try_from(count),
            start
                .checked_add(length)
                .filter(|end| i32::try_from(*end).is_ok()),
        ) else {
            return Err(PyOverflowError::new_err("the message grows beyond 2 GiB").into());
        };
        self.buffer.resize(end, 0);
        self.put(at, &offset.to_le_bytes());
        self.put(at + 4, &count.to_le_bytes());
        Ok(offset.cast_unsigned())
    }

    fn tail_bytes(&mut self, bytes: &[u8], at: u32) -> Result<(), EncodeError> {
        if !bytes.is_empty() {
            let offset = self.tail(bytes.len(), 1, bytes.len(), at)?;
            self.put(offset, bytes);
        }
        Ok(())
    }

    fn unsigned(
        &mut self,
        kind: &Kind,
        value: &Bound<'py, PyAny>,
        at: u32,
    ) -> Result<(), EncodeError> {
        let value = self.integer(kind, value)?;
        // SAFETY: the object is an int and alive.
        let number = unsafe { ffi::PyLong_AsUnsignedLongLong(value.as_ptr()) };
        let failed = number == u64::MAX && PyErr::take(self.py).is_some();
        let bits = kind.size * 8;
        if failed || (bits < 64 && number >> bits != 0) {
            let value = errors::shown(value);
            return Err(PyOverflowError::new_err(format!("{value} does not fit u{bits}")).into());
        }
        self.put(at, &number.to_le_bytes()[..kind.size as usize]);
        Ok(())
    }

    fn signed(
        &mut self,
        kind: &Kind,
        value: &Bound<'py, PyAny>,
        at: u32,
    ) -> Result<(), EncodeError> {
        let value = self.integer(kind, value)?;
        let mut overflow: c_int = 0;
        // SAFETY: the object is an int and alive; `overflow` is ours.
        let number =
            unsafe { ffi::PyLong_AsLongLongAndOverflow(value.as_ptr(), &raw mut overflow) };
        let bits = kind.size * 8;
        let unused = 64 - bits;
        if overflow != 0 || (number << unused) >> unused != number {
            let value = errors::shown(value);
            return Err(PyOverflowError::new_err(format!("{value} does not fit s{bits}")).into());
        }
        self.put(at, &number.to_le_bytes()[..kind.size as usize]);
        Ok(())
    }

    fn integer<'v>(
        &self,
        kind: &Kind,
        value: &'v Bound<'py, PyAny>,
    ) -> Result<&'v Bound<'py, PyInt>, EncodeError> {
        value.cast::<PyInt>().map_err(|_| self.unfit(kind, value))
    }

    fn float(&self, kind: &Kind, value: &Bound<'py, PyAny>) -> Result<f64, EncodeError> {
        if !value.is_instance_of::<PyFloat>() && !value.is_instance_of::<PyInt>() {
            return Err(self.unfit(kind, value));
        }
        Ok(value.extract::<f64>()?)
    }

    fn text<'v>(&self, kind: &Kind, value: &'v Bound<'py, PyAny>) -> Result<&'v str, EncodeError> {
        let text = value
            .cast::<PyString>()
            .map_err(|_| self.unfit(kind, value))?;
        Ok(text.to_str()?)
    }

    fn bytes(
        &mut self,
        kind: &Kind,
        value: &Bound<'py, PyAny>,
        at: u32,
    ) -> Result<(), EncodeError> {
        let bytes = self.byte_string(kind, value)?;
        self.tail_bytes(&bytes, at)
    }

    fn byte_string<'v>(
        &self,
        kind: &Kind,
        value: &'v Bound<'py, PyAny>,
    ) -> Result<Cow<'v, [u8]>, EncodeError> {
        if let Ok(bytes) = value.cast::<PyBytes>() {
            return Ok(Cow::Borrowed(bytes.as_bytes()));
        }
        let buffer = PyBuffer::<u8>::get(value).map_err(|_| self.unfit(kind, value))?;
        Ok(Cow::Owned(buffer.to_vec(self.py)?))
    }

    /// Checks the length of a list of fixed length.
    fn as_many(expected: u32, got: usize, what: &str) -> Result<(), EncodeError> {
        if got == expected as usize {
            return Ok(());
        }
        Err(PyValueError::new_err(format!("expected {expected} {what}, got {got}")).into())
    }

    /// The elements of a sequence: a copy, because encoding an element can run code that changes
    /// the list.
    fn sequence(
        &self,
        kind: &Kind,
        value: &Bound<'py, PyAny>,
    ) -> Result<Bound<'py, PyTuple>, EncodeError> {
        // A str is a sequence of str, but a caller never means it as a list of strings.
        if value.is_instance_of::<PyString>() || value.is_instance_of::<PyBytes>() {
            return Err(self.unfit(kind, value));
        }
        Ok(match value.cast::<PyTuple>() {
            Ok(tuple) => tuple.clone(),
            Err(_) => match value.cast::<PyList>() {
                Ok(list) => list.to_tuple(),
                Err(_) => {
                    let length = value.len().map_err(|_| self.unfit(kind, value))?;
                    let items = (0..length)
                        .map(|place| value.get_item(place))
                        .collect::<PyResult<Vec<_>>>();
                    PyTuple::new(self.py, items.map_err(|_| self.unfit(kind, value))?)?
                }
            },
        })
    }

    /// Writes contiguous elements.
    fn items(
        &mut self,
        element: &Kind,
        items: &Bound<'py, PyTuple>,
        start: u32,
    ) -> Result<(), EncodeError> {
        let mut place = start;
        for (index, item) in items.iter_borrowed().enumerate() {
            self.value(element, &item, place)
                .map_err(|unfit| unfit.within(format!("[{index}]")))?;
            place += element.size;
        }
        Ok(())
    }

    fn list(
        &mut self,
        kind: &Kind,
        element: &Kind,
        value: &Bound<'py, PyAny>,
        at: u32,
    ) -> Result<(), EncodeError> {
        let items = self.sequence(kind, value)?;
        if items.is_empty() {
            return Ok(());
        }
        let count = items.len();
        if element.size == 0 {
            return match u32::try_from(count) {
                Ok(count) if count <= message::MAX_EMPTY_ELEMENTS => {
                    self.put(at + 4, &count.to_le_bytes());
                    Ok(())
                }
                _ => {
                    Err(PyOverflowError::new_err(format!("{count} elements without a size")).into())
                }
            };
        }
        let Some(length) = count.checked_mul(element.size as usize) else {
            return Err(PyOverflowError::new_err("the message grows beyond 2 GiB").into());
        };
        let start = self.tail(length, element.align, count, at)?;
        self.items(element, &items, start)
    }

    fn record(
        &mut self,
        kind: &Kind,
        record: &Record,
        value: &Bound<'py, PyAny>,
        at: u32,
    ) -> Result<(), EncodeError> {
        if !value.is_instance(record.class.bind(self.py))? {
            return Err(self.unfit(kind, value));
        }
        for field in &record.fields {
            let part = value.getattr(field.name.bind(self.py))?;
            self.value(&field.kind, &part, at + field.offset)
                .map_err(|unfit| unfit.within(field.name.to_string()))?;
        }
        Ok(())
    }

    fn label(
        &mut self,
        kind: &Kind,
        labels: &Labels,
        value: &Bound<'py, PyAny>,
        at: u32,
    ) -> Result<(), EncodeError> {
        let place = labels
            .places
            .get(&(value.as_ptr() as usize))
            .ok_or_else(|| self.unfit(kind, value))?;
        self.put(at, &place.to_le_bytes()[..kind.size as usize]);
        Ok(())
    }
}
