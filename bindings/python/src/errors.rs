//! Converts the table's codes into the exceptions of `thalweg._errors`.

use std::ffi::CStr;
use std::path::Path;

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};
use thalweg_capi::abi::{TW_ARGUMENT, TW_CLOSED, TW_ERROR, TW_FORKED, TW_VERSION, TwError};

/// The exception class of each code. Index 0 is the base class, for codes of a newer library.
static CLASSES: PyOnceLock<Vec<Py<PyType>>> = PyOnceLock::new();

fn classes(py: Python<'_>) -> PyResult<&Vec<Py<PyType>>> {
    CLASSES.get_or_try_init(py, || {
        py.import("thalweg._errors")?.getattr("BY_CODE")?.extract()
    })
}

/// The exception class for `code`.
pub fn class(py: Python<'_>, code: u32) -> PyResult<&Bound<'_, PyType>> {
    let classes = classes(py)?;
    let place = usize::try_from(code)
        .ok()
        .filter(|place| *place < classes.len())
        .unwrap_or(0);
    Ok(classes[place].bind(py))
}

/// The exception for a call, a stream or a function of the table that ended with `code`.
pub fn ended(py: Python<'_>, code: u32, message: &str, retryable: bool) -> PyErr {
    let make = || -> PyResult<PyErr> {
        let keywords = PyDict::new(py);
        keywords.set_item("retryable", retryable)?;
        let raised = class(py, code)?.call((message,), Some(&keywords))?;
        if raised.getattr("code")?.extract::<u32>()? != code {
            raised.setattr("code", code)?;
        }
        Ok(PyErr::from_value(raised))
    };
    make().unwrap_or_else(|failed| failed)
}

/// The exception for a function of the table that wrote `error`.
pub fn from_table(py: Python<'_>, code: u32, error: &TwError) -> PyErr {
    ended(py, code, &message(error), error.retryable != 0)
}

/// The maximum length of a value's text in a message, in characters.
const SHOWN: usize = 80;

/// The text of a value for a message, cut if it is long.
pub fn shown(value: &Bound<'_, PyAny>) -> String {
    let text = text(value);
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}..", &text[..end]),
        None => text,
    }
}

/// The text of an object. If it has none, for example an int with more digits than Python converts,
/// its class is named instead.
pub fn text(object: &Bound<'_, PyAny>) -> String {
    // `Display` of an object writes "Exception ignored" to standard error if `str()` raises.
    let Ok(text) = object.str() else {
        let class = object.get_type().name();
        let class = class.map_or_else(
            |_| "?".to_owned(),
            |name| name.to_string_lossy().into_owned(),
        );
        return match object
            .call_method0("bit_length")
            .and_then(|bits| bits.extract::<u64>())
        {
            Ok(bits) => format!("an {class} of {bits} bits"),
            Err(_) => format!("a {class}"),
        };
    };
    text.to_string_lossy().into_owned()
}

/// An empty error for the table to fill.
pub fn blank() -> TwError {
    TwError {
        code: 0,
        retryable: 0,
        message: [0; 248],
    }
}

/// The text that the table wrote into `error`.
pub fn message(error: &TwError) -> String {
    let bytes: Vec<u8> = error
        .message
        .iter()
        .map(|byte| byte.cast_unsigned())
        .collect();
    CStr::from_bytes_until_nul(&bytes).map_or_else(
        |_| String::from_utf8_lossy(&bytes).into_owned(),
        |text| text.to_string_lossy().into_owned(),
    )
}

/// `thalweg.Closed`.
pub fn closed(py: Python<'_>, what: &str) -> PyErr {
    ended(py, TW_CLOSED, &format!("{what} is closed"), false)
}

/// `thalweg.Forked`.
pub fn forked(py: Python<'_>, what: &str) -> PyErr {
    let text = format!("{what} was made before fork(); open the library again in this process");
    ended(py, TW_FORKED, &text, false)
}

/// `thalweg.BadArgument`.
pub fn argument(py: Python<'_>, text: &str) -> PyErr {
    ended(py, TW_ARGUMENT, text, false)
}

/// `thalweg.VersionMismatch`.
pub fn version(py: Python<'_>, text: &str) -> PyErr {
    ended(py, TW_VERSION, text, false)
}

/// The exception for a call that ended with the service's own error.
///
/// A payload whose class is an exception (a variant used as an error) is raised itself. Any other
/// payload is wrapped in `class`, or in `thalweg.ServiceError` if the generated code has no class
/// for it.
pub fn service(
    py: Python<'_>,
    payload: Bound<'_, PyAny>,
    wrap: Option<&Bound<'_, PyType>>,
    retryable: bool,
) -> PyErr {
    let make = || -> PyResult<PyErr> {
        let base = class(py, TW_ERROR)?;
        let raised = if payload.is_instance(base)? {
            payload
        } else {
            wrap.unwrap_or(base).call1(PyTuple::new(py, [payload])?)?
        };
        if retryable {
            raised.setattr("retryable", true)?;
        }
        Ok(PyErr::from_value(raised))
    };
    make().unwrap_or_else(|failed| failed)
}

/// The system loader's reason for a library that cannot be loaded.
pub fn not_loaded(path: &Path, error: &libloading::Error) -> PyErr {
    // The error's own text does not contain the loader's text.
    let why = match std::error::Error::source(error) {
        Some(source) => source.to_string(),
        None => error.to_string(),
    };
    let path = path.display().to_string();
    let why = why.strip_prefix(&format!("{path}: ")).unwrap_or(&why);
    PyOSError::new_err(format!("cannot load {path}: {why}"))
}
