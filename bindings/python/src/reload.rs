//! Replacing the library of a guest.

use std::path::Path;

use pyo3::prelude::*;

use crate::{errors, guest, library, method};

/// Replaces the library of a guest by the one at `to`, or by the one that is now at its own address.
///
/// # Errors
/// `thalweg.BadArgument`: no guest was opened with this address. The errors of `tw_address_reload`.
#[pyfunction]
#[pyo3(signature = (address, to=None, *, drain_timeout=None))]
pub fn reload(
    py: Python<'_>,
    address: &str,
    to: Option<&str>,
    drain_timeout: Option<f64>,
) -> PyResult<()> {
    let Some(opened) = library::find(Path::new(address)) else {
        return Err(errors::argument(py, &format!("{address} is not open")));
    };
    let deadline = method::deadline(opened, drain_timeout)?;
    guest::reload(py, opened.table, to, deadline)
}
