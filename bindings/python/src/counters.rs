//! The counters of the libraries' runtimes (`tw_counters`).

use std::collections::BTreeMap;

use pyo3::prelude::*;
use thalweg_capi::abi::{TW_OK, TwCounters};

use crate::{errors, library};

/// The fields of `tw_counters` by their names.
macro_rules! fields {
    ($counters:ident: $($field:ident)*) => {
        BTreeMap::from([$((stringify!($field), $counters.$field)),*])
    };
}

/// The counters of each library that was opened, by its path.
///
/// # Errors
/// The errors of the table.
#[pyfunction]
pub fn counters(py: Python<'_>) -> PyResult<BTreeMap<String, BTreeMap<&'static str, u64>>> {
    let mut all = BTreeMap::new();
    for library in library::opened(py) {
        let (mut counters, mut error) = (TwCounters::default(), errors::blank());
        #[expect(clippy::cast_possible_truncation, reason = "some hundred bytes")]
        let size = size_of::<TwCounters>() as u32;
        let table = library.table;
        // SAFETY: both pointers are ours, and the first points to `size` bytes.
        let code =
            py.detach(|| unsafe { (table.counters)(&raw mut counters, size, &raw mut error) });
        if code != TW_OK {
            return Err(errors::from_table(py, code, &error));
        }
        let fields = fields!(counters: workers stacks actors actors_started actors_failed
            actors_waiting slices waits remote_wakes deadlines timers steals sleeps messages
            messages_dropped restarts clients ports calls calls_queued streams resources batches
            completions);
        all.insert(library.path.display().to_string(), fields);
    }
    Ok(all)
}
