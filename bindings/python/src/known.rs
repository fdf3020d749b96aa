//! Functions as the generated package knows them, for a library of another version.

use std::ffi::CString;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use thalweg_capi::abi::TwMethod;

/// A method, or what is asked of the host.
#[derive(Debug)]
pub struct Known {
    /// As WIT writes it.
    pub name: CString,
    /// Of the parameters, the result, the error's payload and the stream's element; 0 where there is none.
    pub hashes: [u64; 4],
    /// The four texts that they are of, a line each.
    pub description: String,
}

impl Known {
    /// # Errors
    /// `ValueError`: a name or a text that no type has.
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

    /// For the table, as long as this is there.
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
