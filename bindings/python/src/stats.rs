//! Statistics of the streams of a method.

use pyo3::prelude::*;
use thalweg_capi::abi::{TW_OK, TwStats};

use crate::errors;
use crate::handle::Owned;

/// Statistics of the streams of a client's method since the client was opened (`tw_stats`). The
/// unit is records, unless the field names another one.
#[pyclass(frozen, get_all, module = "thalweg")]
pub struct StreamStats {
    streams: u64,
    published: u64,
    delivered: u64,
    undelivered: u64,
    occupancy: u64,
    lost: [u64; 8],
    high_water: u64,
    control: u64,
    wakes: u64,
    parks: u64,
    waits: u64,
    faults: u64,
    age: [u64; 32],
}

#[pymethods]
impl StreamStats {
    fn __repr__(&self) -> String {
        format!(
            "StreamStats(streams={}, published={}, delivered={}, undelivered={}, occupancy={}, lost={:?}, control={})",
            self.streams,
            self.published,
            self.delivered,
            self.undelivered,
            self.occupancy,
            self.lost,
            self.control
        )
    }
}

/// The statistics of the method and client of `stream`.
///
/// # Errors
/// `thalweg.Closed` if the stream is closed.
pub fn of(py: Python<'_>, stream: &Owned) -> PyResult<StreamStats> {
    let number = stream.number(py)?;
    let (mut stats, mut error) = (TwStats::default(), errors::blank());
    #[expect(clippy::cast_possible_truncation, reason = "some hundred bytes")]
    let size = size_of::<TwStats>() as u32;
    let table = stream.library.table;
    // SAFETY: both pointers are ours, and the first points to `size` bytes.
    let code = unsafe { (table.stream_stats)(number, 0, &raw mut stats, size, &raw mut error) };
    if code != TW_OK {
        return Err(errors::from_table(py, code, &error));
    }
    Ok(StreamStats {
        streams: stats.streams,
        published: stats.published,
        delivered: stats.delivered,
        undelivered: stats.undelivered,
        occupancy: stats.occupancy,
        lost: stats.lost,
        high_water: stats.high_water,
        control: stats.control,
        wakes: stats.wakes,
        parks: stats.parks,
        waits: stats.waits,
        faults: stats.faults,
        age: stats.age,
    })
}
