//! A batch as an Arrow array.
//!
//! An Arrow column is contiguous, and the records of a batch are not. A column is therefore copied
//! once, without creating Python objects. A stream of numbers is passed in place, because its batch
//! is a column already.

use std::ffi::CString;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::arrow_data::{Bytes, Column};
use crate::batch::Batch;
use crate::columns::RetainedBatch;
use crate::kind::{Kind, Shape};
use crate::message::{MAX_EMPTY_ELEMENTS, Malformed, Region};
use crate::reader::Reader;

/// The records of `batch`: schema and array.
pub fn export<'py>(
    batch: &Batch,
    py: Python<'py>,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    column(batch, py)?.capsules(py)
}

/// A column without values, of the type of the records of `reader`.
///
/// # Errors
/// `TypeError` for types without a column.
pub fn empty_column(py: Python<'_>, reader: &Reader) -> PyResult<Column> {
    Ok(Building::new(py, &reader.element, "", &reader.name)?.finish())
}

/// The records of `batch` as one column.
pub fn column(batch: &Batch, py: Python<'_>) -> PyResult<Column> {
    batch.check(py)?;
    let element = &batch.reader.element;
    let mut building = Building::new(py, element, "", &batch.reader.name)?;
    let (start, stride) = batch.rows(0, element.size)?;
    Ok(match &building.values {
        Values::Numbers { .. } if stride == element.size => Column {
            format: CString::new(building.format)?,
            name: building.name,
            length: batch.count() as usize,
            nulls: None,
            buffers: vec![
                Bytes::Absent,
                Bytes::InPlace {
                    start,
                    _kept: RetainedBatch::new(py, &batch.reader)?,
                },
            ],
            children: Vec::new(),
        },
        _ => {
            for place in 0..batch.count() {
                building
                    .push(batch.region, element, batch.at(place))
                    .map_err(|malformed| {
                        crate::decode::DecodeError::from(malformed).raise(py, &batch.reader.name)
                    })?;
            }
            building.finish()
        }
    })
}

/// A column that is being built.
struct Building {
    format: String,
    name: CString,
    length: usize,
    /// The validity bits and the number of nulls; `None` if no value can be null.
    valid: Option<(Bits, usize)>,
    values: Values,
}

enum Values {
    Bools(Bits),
    /// Numbers of `size` bytes each.
    Numbers {
        size: u32,
        bytes: Vec<u8>,
    },
    /// Text or bytes, and the end of each value.
    Text {
        ends: Vec<i32>,
        bytes: Vec<u8>,
        utf8: bool,
    },
    List {
        ends: Vec<i32>,
        element: Box<Building>,
    },
    /// The parts, each with its offset.
    Parts(Vec<(u32, Building)>),
}

/// Bits, lowest first.
#[derive(Default)]
struct Bits(Vec<u64>);

impl Bits {
    fn push(&mut self, place: usize, bit: bool) {
        if place.is_multiple_of(64) {
            self.0.push(0);
        }
        if bit && let Some(word) = self.0.last_mut() {
            *word |= 1 << (place % 64);
        }
    }
}

const LONG: Malformed = Malformed("a column has at most 2^31 - 1 bytes or elements");

fn end(of: usize) -> Result<i32, Malformed> {
    i32::try_from(of).map_err(|_| LONG)
}

/// The format letter of numbers of this kind.
fn letter(kind: &Kind) -> Option<&'static str> {
    Some(match &kind.shape {
        Shape::U8 => "C",
        Shape::S8 => "c",
        Shape::U16 => "S",
        Shape::S16 => "s",
        Shape::U32 | Shape::Char => "I",
        Shape::S32 => "i",
        Shape::U64 => "L",
        Shape::S64 => "l",
        Shape::F32 => "f",
        Shape::F64 => "g",
        Shape::Enum(_) | Shape::Flags { .. } => match kind.size {
            1 => "C",
            2 => "S",
            4 => "I",
            _ => return None,
        },
        _ => return None,
    })
}

impl Building {
    /// An empty column of `kind`, for the stream `whose`.
    ///
    /// # Errors
    /// `TypeError` for types without a column: variants, results and options of options.
    fn new(py: Python<'_>, kind: &Kind, name: &str, whose: &str) -> PyResult<Self> {
        let mut nullable = false;
        let mut of = kind;
        if let Shape::Option { payload, .. } = &kind.shape {
            (nullable, of) = (true, payload);
        }
        let part = |(offset, name, kind): (u32, String, &Kind)| {
            Ok((offset, Self::new(py, kind, &name, whose)?))
        };
        let text = |utf8| Values::Text {
            ends: vec![0],
            bytes: Vec::new(),
            utf8,
        };
        let (format, values) = match &of.shape {
            Shape::Bool => ("b", Values::Bools(Bits::default())),
            Shape::String => ("u", text(true)),
            Shape::Bytes => ("z", text(false)),
            Shape::List(element) => {
                let element = Box::new(Self::new(py, element, "item", whose)?);
                let ends = vec![0];
                ("+l", Values::List { ends, element })
            }
            Shape::Record(record) => {
                let fields = record.fields.iter();
                let fields = fields
                    .map(|field| (field.offset, field.name.bind(py).to_string(), &*field.kind));
                (
                    "+s",
                    Values::Parts(fields.map(part).collect::<PyResult<_>>()?),
                )
            }
            Shape::Tuple(items) => {
                let items = (0..).zip(items);
                let items = items.map(|(place, (offset, kind)): (u32, _)| {
                    (*offset, format!("f{place}"), &**kind)
                });
                (
                    "+s",
                    Values::Parts(items.map(part).collect::<PyResult<_>>()?),
                )
            }
            _ => match letter(of) {
                Some(letter) => {
                    let bytes = Vec::new();
                    (
                        letter,
                        Values::Numbers {
                            size: of.size,
                            bytes,
                        },
                    )
                }
                None => {
                    let what = of.expected(py);
                    return Err(PyTypeError::new_err(format!(
                        "{whose}: Arrow has no column of {what} here"
                    )));
                }
            },
        };
        Ok(Self {
            format: format.to_owned(),
            name: CString::new(name)?,
            length: 0,
            valid: nullable.then(|| (Bits::default(), 0)),
            values,
        })
    }

    /// Appends the value of `kind` at `at`.
    fn push(&mut self, from: Region, kind: &Kind, at: u32) -> Result<(), Malformed> {
        let (of, at) = match (&kind.shape, &mut self.valid) {
            (
                Shape::Option {
                    payload, offset, ..
                },
                Some((bits, nulls)),
            ) => {
                let some = match from.array::<1>(at)? {
                    [0] => false,
                    [1] => true,
                    _ => return Err(Malformed("an option is neither 0 nor 1")),
                };
                bits.push(self.length, some);
                if !some {
                    *nulls += 1;
                    self.push_nothing();
                    return Ok(());
                }
                (&**payload, within(at, *offset)?)
            }
            _ => (kind, at),
        };
        match &mut self.values {
            Values::Bools(bits) => match from.array::<1>(at)? {
                [bit @ (0 | 1)] => bits.push(self.length, bit == 1),
                _ => return Err(Malformed("a bool is neither 0 nor 1")),
            },
            Values::Numbers { size, bytes } => {
                bytes.extend_from_slice(from.bytes(at, *size as usize)?)
            }
            Values::Text { ends, bytes, utf8 } => {
                let text = from.bytes(from.u32(at)?, from.u32(within(at, 4)?)? as usize)?;
                if *utf8 && std::str::from_utf8(text).is_err() {
                    return Err(Malformed("a string is not UTF-8"));
                }
                bytes.extend_from_slice(text);
                ends.push(end(bytes.len())?);
            }
            Values::List { ends, element } => {
                let Shape::List(inner) = &of.shape else {
                    return Err(Malformed("no list"));
                };
                let (first, count) = (from.u32(at)?, from.u32(within(at, 4)?)?);
                if inner.size == 0 && count > MAX_EMPTY_ELEMENTS {
                    return Err(Malformed("too many elements without a size"));
                }
                let length = u64::from(count) * u64::from(inner.size);
                from.bytes(first, usize::try_from(length).map_err(|_| LONG)?)?;
                for place in 0..count {
                    element.push(from, inner, first + place * inner.size)?;
                }
                ends.push(end(element.length)?);
            }
            Values::Parts(parts) => {
                let kinds: Vec<&Kind> = match &of.shape {
                    Shape::Record(record) => {
                        record.fields.iter().map(|field| &*field.kind).collect()
                    }
                    Shape::Tuple(items) => items.iter().map(|(_, kind)| &**kind).collect(),
                    _ => return Err(Malformed("no record")),
                };
                for ((offset, part), kind) in parts.iter_mut().zip(kinds) {
                    part.push(from, kind, within(at, *offset)?)?;
                }
            }
        }
        self.length += 1;
        Ok(())
    }

    /// Appends an unused value. The caller clears its validity bit.
    fn push_nothing(&mut self) {
        match &mut self.values {
            Values::Bools(bits) => bits.push(self.length, false),
            Values::Numbers { size, bytes } => bytes.resize(bytes.len() + *size as usize, 0),
            Values::Text { ends, .. } | Values::List { ends, .. } => {
                ends.push(ends[ends.len() - 1])
            }
            Values::Parts(parts) => {
                for (_, part) in parts {
                    if let Some((bits, nulls)) = &mut part.valid {
                        bits.push(part.length, false);
                        *nulls += 1;
                    }
                    part.push_nothing();
                }
            }
        }
        self.length += 1;
    }

    fn finish(self) -> Column {
        let (nulls, valid) = match self.valid {
            Some((bits, nulls)) => (Some(nulls), Bytes::Words(bits.0)),
            None => (None, Bytes::Absent),
        };
        let mut buffers = vec![valid];
        let mut children = Vec::new();
        match self.values {
            Values::Bools(bits) => buffers.push(Bytes::Words(bits.0)),
            Values::Numbers { bytes, .. } => buffers.push(words(&bytes)),
            Values::Text { ends, bytes, .. } => {
                buffers.push(words(&le(&ends)));
                buffers.push(Bytes::Text(bytes));
            }
            Values::List { ends, element } => {
                buffers.push(words(&le(&ends)));
                children.push(element.finish());
            }
            Values::Parts(parts) => {
                children.extend(parts.into_iter().map(|(_, part)| part.finish()));
            }
        }
        Column {
            // The formats are literals above.
            format: CString::new(self.format).unwrap_or_default(),
            name: self.name,
            length: self.length,
            nulls,
            buffers,
            children,
        }
    }
}

fn within(at: u32, offset: u32) -> Result<u32, Malformed> {
    at.checked_add(offset)
        .ok_or(Malformed("an offset leads outside"))
}

fn le(numbers: &[i32]) -> Vec<u8> {
    numbers
        .iter()
        .flat_map(|number| number.to_le_bytes())
        .collect()
}

/// The same bytes, aligned for every number type.
fn words(bytes: &[u8]) -> Bytes {
    let words = bytes.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_ne_bytes(word)
    });
    Bytes::Words(words.collect())
}
