//! Descriptions of functions in the generated package, for a library of another version.

use std::ffi::CString;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use thalweg_capi::abi::TwMethod;

/// A method or a host import.
#[derive(Debug)]
pub struct FunctionInfo {
    /// The name in WIT.
    pub name: CString,
    /// The layout hashes of the parameters, the result, the error's payload and the stream's
    /// element; 0 if there is none.
    pub hashes: [u64; 4],
    /// The four texts that were hashed, one per line.
    pub description: String,
}

impl FunctionInfo {
    /// # Errors
    /// `ValueError`: a name or a text that is invalid for a type.
    pub fn new(name: &str, texts: &[String; 4]) -> PyResult<Self> {
        let description = texts.join("\n");
        let size_fits = u32::try_from(description.len()).is_ok();
        if !size_fits || texts.iter().any(|text| text.contains('\n')) {
            return Err(PyValueError::new_err(format!("{name}: no texts of types")));
        }
        Ok(Self {
            name: CString::new(name)?,
            hashes: texts.each_ref().map(|text| thalweg_capi::layout_of(text)),
            description,
        })
    }

    /// The description for the table. It is valid as long as `self`.
    pub fn as_method(&self) -> TwMethod {
        let [params, ok, error, element] = self.hashes;
        TwMethod {
            name: self.name.as_ptr(),
            params,
            ok,
            error,
            element,
            flags: 0,
            description_size: self.description.len() as u32,
            description: self.description.as_ptr(),
        }
    }
}
