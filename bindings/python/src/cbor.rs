//! Conversion of a method's values to and from CBOR, by `tw_table.transcode` (`docs/cbor.md`).

use std::sync::Arc;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use thalweg_capi::abi::{TW_CBOR, TW_FLAT, TW_OK, TW_OVERLOADED};

use crate::decode::{DecodeError, Decoder};
use crate::kind::Kind;
use crate::library::Library;
use crate::message::{self, Region};
use crate::method::{Method, Outcome};
use crate::{encode, errors};

/// The part of a method that a value belongs to: a line of the method's description.
#[derive(Clone, Copy)]
enum Part {
    Params,
    Result,
    Error,
    Element,
}

/// The initial size of the output buffer, in bytes.
const ROOM: usize = 1024;

impl Part {
    fn named(name: &str) -> PyResult<Self> {
        Ok(match name {
            "params" => Self::Params,
            "result" => Self::Result,
            "error" => Self::Error,
            "element" => Self::Element,
            _ => {
                let text = format!("{name:?} is none of params, result, error and element");
                return Err(PyValueError::new_err(text));
            }
        })
    }
}

/// The kind and the layout of a part of `method` other than a parameter.
fn kind(method: &Method, part: Part) -> PyResult<(&Arc<Kind>, u64)> {
    let hashes = method.hashes;
    let found = match (part, &method.outcome) {
        (Part::Result, Outcome::Value(kind)) => Some((kind, hashes.ok)),
        (Part::Element, Outcome::Stream { element, .. }) => Some((element, hashes.element)),
        (Part::Error, _) => method.error.as_ref().map(|kind| (kind, hashes.error)),
        _ => None,
    };
    found.ok_or_else(|| PyTypeError::new_err(format!("{} has no such value", method.name)))
}

/// `value` in CBOR. For `params`, it is a tuple of the arguments.
pub fn write<'py>(
    method: &Method,
    library: &Library,
    part: &str,
    value: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyBytes>> {
    let py = value.py();
    let (part, mut buffer) = (Part::named(part)?, Vec::new());
    match part {
        Part::Params => {
            let layout = (method.hashes.params, method.params_size);
            let arguments = value.cast::<PyTuple>()?;
            encode::arguments(
                py,
                &method.name,
                &method.fields,
                layout,
                arguments,
                &mut buffer,
            )?;
        }
        _ => {
            let (kind, layout) = kind(method, part)?;
            encode::alone(
                py,
                &method.name,
                || "value".into(),
                kind,
                layout,
                value,
                &mut buffer,
            )?;
        }
    }
    let made = transcode(py, library, method, part, TW_CBOR, &buffer)?;
    Ok(PyBytes::new(py, &made))
}

/// The value of `data`. For `params`, it is a tuple of the arguments.
pub fn read<'py>(
    py: Python<'py>,
    method: &Method,
    library: &Library,
    part: &str,
    data: &[u8],
) -> PyResult<Bound<'py, PyAny>> {
    let part = Part::named(part)?;
    let made = transcode(py, library, method, part, TW_FLAT, data)?;
    // SAFETY: `made` lives until the end of this function, and nobody writes it.
    let region = unsafe { Region::new(made.as_ptr(), made.len()) };
    let value = || -> Result<_, DecodeError> {
        if let Part::Params = part {
            let size = method.params_size;
            let root = message::root(region, method.hashes.params, size)?;
            let mut decoder = Decoder::whole(py, region, root.saturating_add(size), None);
            let fields = method.fields.iter();
            let values = fields.map(|field| decoder.value(&field.kind, root + field.offset));
            let values = values.collect::<Result<Vec<_>, _>>()?;
            return Ok(PyTuple::new(py, values)?.into_any());
        }
        let (kind, layout) = kind(method, part)?;
        let root = message::root(region, layout, kind.size)?;
        Decoder::whole(py, region, root.saturating_add(kind.size), None).value(kind, root)
    };
    value().map_err(|undecodable| undecodable.raise(py, &method.name))
}

/// `data` in the other format.
fn transcode(
    py: Python<'_>,
    library: &Library,
    method: &Method,
    part: Part,
    to: u32,
    data: &[u8],
) -> PyResult<Vec<u8>> {
    let line = method.known.description.split('\n').nth(part as usize);
    let line = line.unwrap_or_default();
    let mut room = vec![0; ROOM.max(data.len() * 2)];
    loop {
        let (mut size, mut error) = (0, errors::blank());
        // SAFETY: the pointers and sizes describe our own buffers. The table reports an invalid
        // description as an error. An empty description and empty data have pointers that are not
        // null.
        let code = unsafe {
            (library.table.transcode)(
                line.as_ptr(),
                line.len() as u64,
                to,
                data.as_ptr(),
                data.len() as u64,
                room.as_mut_ptr(),
                room.len() as u64,
                &raw mut size,
                &raw mut error,
            )
        };
        match code {
            TW_OK => {
                room.truncate(usize::try_from(size).unwrap_or(0));
                return Ok(room);
            }
            // A message cannot be larger, so no larger buffer is tried.
            TW_OVERLOADED if room.len() < 1 << 31 => room.resize(room.len() * 4, 0),
            _ => return Err(errors::from_table(py, code, &error)),
        }
    }
}
