//! A stream that sync code reads, one object or one batch at a time. A wait releases the GIL.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::{PyStopIteration, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};
use thalweg_capi::abi::TW_FOREVER;

use crate::arrow_stream;
use crate::batch::Batch;
use crate::errors;
use crate::method::deadline;
use crate::owned::OwnedStream;
use crate::raw_type;
use crate::reader::{Acquired, Reader};
use crate::stats::{self, StreamStats};

/// The number of records that the iteration over objects takes at once. It is large enough that the
/// cost of a crossing per record is small, and small enough that the objects stay in a cache.
pub const BATCH: u32 = 256;

/// Objects that were created from a batch and not returned yet. Locked with the GIL held, and never
/// while Python code runs.
#[derive(Default)]
pub struct Buffer {
    objects: Mutex<VecDeque<Py<PyAny>>>,
    /// Whether they are records of the control lane. They are from one batch, which has one lane.
    control: AtomicBool,
}

impl Buffer {
    /// The next object.
    pub fn pop(&self) -> Option<Py<PyAny>> {
        self.objects().pop_front()
    }

    /// Creates objects from a whole batch and releases it.
    pub fn fill(&self, py: Python<'_>, batch: &Batch) -> PyResult<()> {
        let objects = batch.all_objects(py);
        batch.reader.release(py, batch.serial());
        let objects = objects?.into_iter().map(Bound::unbind);
        self.objects().extend(objects);
        self.control.store(batch.is_control(), Ordering::Relaxed);
        Ok(())
    }

    /// Whether the object that was returned last is of the control lane.
    pub fn is_control(&self) -> bool {
        self.control.load(Ordering::Relaxed)
    }

    /// Whether no object remains.
    pub fn is_empty(&self) -> bool {
        self.objects().is_empty()
    }

    /// Drops the remaining objects.
    pub fn clear(&self) {
        let left = std::mem::take(&mut *self.objects());
        drop(left);
    }

    fn objects(&self) -> MutexGuard<'_, VecDeque<Py<PyAny>>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Checks the argument `max` of `batches`.
///
/// # Errors
/// `ValueError` for 0.
pub fn check_max(max: u32) -> PyResult<u32> {
    if max == 0 {
        Err(PyValueError::new_err("max is 0"))
    } else {
        Ok(max)
    }
}

/// Waits for the next batch. `None` is the regular end.
pub fn next_batch(
    py: Python<'_>,
    reader: &Arc<Reader>,
    max: u32,
    deadline_ns: u64,
) -> PyResult<Option<Batch>> {
    reader.begin(py)?;
    let acquired = reader.acquire(py, max, deadline_ns);
    reader.end(py);
    match acquired? {
        Acquired::Batch(raw, serial) => Batch::new(py, Arc::clone(reader), raw, serial).map(Some),
        Acquired::End | Acquired::WouldPark => Ok(None),
    }
}

/// A stream for blocking reads. One reader at a time.
#[pyclass(frozen, weakref, module = "thalweg")]
pub struct Stream {
    reader: Arc<Reader>,
    buffer: Buffer,
}

impl Stream {
    /// A stream over `reader`.
    pub fn new(reader: Reader) -> Self {
        Self {
            reader: Arc::new(reader),
            buffer: Buffer::default(),
        }
    }

    /// The next object, or `None` at the regular end.
    fn next_until(&self, py: Python<'_>, deadline_ns: u64) -> PyResult<Option<Py<PyAny>>> {
        loop {
            if let Some(object) = self.buffer.pop() {
                return Ok(Some(object));
            }
            match next_batch(py, &self.reader, BATCH, deadline_ns)? {
                Some(batch) => self.buffer.fill(py, &batch)?,
                None => return Ok(None),
            }
        }
    }
}

#[pymethods]
impl Stream {
    /// The stream inside a value. `stream` is closed afterwards.
    #[staticmethod]
    fn of(stream: &Bound<'_, OwnedStream>) -> PyResult<Self> {
        stream.get().open(stream.py()).map(Self::new)
    }

    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.next_until(py, TW_FOREVER)
    }

    /// The next record. If none arrives within `timeout` seconds, it raises `TimedOut`, and you may
    /// try again. At the regular end it raises `StopIteration`.
    #[pyo3(signature = (timeout=None))]
    fn next(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Py<PyAny>> {
        let deadline_ns = deadline(self.reader.handle.library, timeout)?;
        self.next_until(py, deadline_ns)?
            .ok_or_else(|| PyStopIteration::new_err(()))
    }

    /// The remaining records as an Arrow stream, through Arrow's C stream interface:
    /// `pyarrow.table(stream)`, `pyarrow.RecordBatchReader.from_stream(stream)`.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        // The requested schema is only a hint; the consumer can cast.
        drop(requested_schema);
        if !self.buffer.is_empty() {
            let text = "part of a batch was read as objects: read the rest as objects, too";
            return Err(errors::argument(py, text));
        }
        arrow_stream::export(py, &self.reader)
    }

    /// The batches of the stream, of at most `max` records each. If no batch arrives within
    /// `timeout` seconds, it raises `TimedOut`; the iteration may continue afterwards.
    #[pyo3(signature = (max=BATCH, timeout=None))]
    fn batches(&self, max: u32, timeout: Option<f64>) -> PyResult<Batches> {
        Ok(Batches {
            reader: Arc::clone(&self.reader),
            max: check_max(max)?,
            timeout,
        })
    }

    /// Closes the stream: its writers are notified and stop, and views of an open batch raise. A
    /// second call has no effect.
    fn close(&self, py: Python<'_>) {
        self.reader.close(py);
        self.buffer.clear();
    }

    /// Whether the stream was closed or has ended.
    #[getter]
    fn closed(&self) -> bool {
        self.reader.handle.is_closed()
    }

    /// Records lost so far under the stream's overflow policy.
    #[getter]
    fn lost(&self, py: Python<'_>) -> u64 {
        self.reader.lost(py)
    }

    /// Why the last of them were lost: `TW_GAP_*`, or 0 if none was lost.
    #[getter]
    fn gap_reason(&self, py: Python<'_>) -> u32 {
        self.reader.gap_reason(py)
    }

    /// Whether the last object of the iteration was a record of the control lane.
    #[getter]
    fn control(&self) -> bool {
        self.buffer.is_control()
    }

    /// Another reader, for another thread. It starts with the next record that is written.
    fn tee(&self, py: Python<'_>) -> PyResult<Self> {
        self.reader.tee(py).map(Self::new)
    }

    /// Statistics of all streams of this method and client.
    fn stats(&self, py: Python<'_>) -> PyResult<StreamStats> {
        stats::of(py, &self.reader.handle)
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) {
        self.close(py);
    }

    #[classmethod]
    fn __class_getitem__<'py>(
        cls: &Bound<'py, PyType>,
        item: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        raw_type::generic_alias(cls, item)
    }
}

/// An iterator over a stream's batches. The next step releases the previous batch.
#[pyclass(frozen, module = "thalweg._native")]
pub struct Batches {
    reader: Arc<Reader>,
    max: u32,
    timeout: Option<f64>,
}

#[pymethods]
impl Batches {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Batch>> {
        let deadline_ns = deadline(self.reader.handle.library, self.timeout)?;
        next_batch(py, &self.reader, self.max, deadline_ns)
    }
}
