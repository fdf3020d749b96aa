//! A stream as sync code reads it: object by object, or batch by batch. Waiting releases the GIL.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};
use thalweg_capi::abi::TW_FOREVER;

use crate::batch::Batch;
use crate::held::HeldStream;
use crate::method::deadline;
use crate::raw_type;
use crate::reader::{Acquired, Reader};
use crate::stats::{self, StreamStats};

/// Records that iterating object by object takes at once. Large enough that a crossing costs little per record, small
/// enough that the objects stay in a cache.
pub const BATCH: u32 = 256;

/// Objects that were made of a batch and not handed out yet. Locked with the GIL held and never across code of Python.
#[derive(Default)]
pub struct Buffer {
    objects: Mutex<VecDeque<Py<PyAny>>>,
    /// They are of the control lane: they come from one batch, which is of one kind.
    control: AtomicBool,
}

impl Buffer {
    /// The next object.
    pub fn pop(&self) -> Option<Py<PyAny>> {
        self.objects().pop_front()
    }

    /// Makes objects of a whole batch and releases it.
    pub fn fill(&self, py: Python<'_>, batch: &Batch) -> PyResult<()> {
        let objects = batch.all_objects(py);
        batch.reader.release(py, batch.serial());
        let objects = objects?.into_iter().map(Bound::unbind);
        self.objects().extend(objects);
        self.control.store(batch.is_control(), Ordering::Relaxed);
        Ok(())
    }

    /// Is what was handed out last of the control lane?
    pub fn is_control(&self) -> bool {
        self.control.load(Ordering::Relaxed)
    }

    /// Drops what is left.
    pub fn clear(&self) {
        let left = std::mem::take(&mut *self.objects());
        drop(left);
    }

    fn objects(&self) -> MutexGuard<'_, VecDeque<Py<PyAny>>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// `max` of `batches`.
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

/// Waits for the next batch; `None` is the regular end.
fn next_batch(
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

/// A stream that is read by waiting. One reader at a time.
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
}

#[pymethods]
impl Stream {
    /// The stream in a value. `held` is closed from then on.
    #[staticmethod]
    fn of(held: &Bound<'_, HeldStream>) -> PyResult<Self> {
        held.get().open(held.py()).map(Self::new)
    }

    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        loop {
            if let Some(object) = self.buffer.pop() {
                return Ok(Some(object));
            }
            match next_batch(py, &self.reader, BATCH, TW_FOREVER)? {
                Some(batch) => self.buffer.fill(py, &batch)?,
                None => return Ok(None),
            }
        }
    }

    /// The stream batch by batch, of at most `max` records each. Waiting for one longer than `timeout` seconds raises
    /// `TimedOut`; the iteration may go on after that.
    #[pyo3(signature = (max=BATCH, timeout=None))]
    fn batches(&self, max: u32, timeout: Option<f64>) -> PyResult<Batches> {
        Ok(Batches {
            reader: Arc::clone(&self.reader),
            max: check_max(max)?,
            timeout,
        })
    }

    /// Ends the stream here: its writers see it and stop; an open batch's views raise. Closing twice is fine.
    fn close(&self, py: Python<'_>) {
        self.reader.close(py);
        self.buffer.clear();
    }

    /// Was it closed, or has it ended?
    #[getter]
    fn closed(&self) -> bool {
        self.reader.handle.is_closed()
    }

    /// Records lost so far, as the stream's policy has it.
    #[getter]
    fn lost(&self, py: Python<'_>) -> u64 {
        self.reader.lost(py)
    }

    /// Why the last of them were lost: `TW_GAP_*`; 0 where none were.
    #[getter]
    fn gap_reason(&self, py: Python<'_>) -> u32 {
        self.reader.gap_reason(py)
    }

    /// Was the object that iterating gave last a record of the control lane?
    #[getter]
    fn control(&self) -> bool {
        self.buffer.is_control()
    }

    /// A further reader, for another thread: it begins with what is written from now on.
    fn tee(&self, py: Python<'_>) -> PyResult<Self> {
        self.reader.tee(py).map(Self::new)
    }

    /// What all streams of this one's method and client did.
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

/// An iterator over a stream's batches. The next one releases the one before.
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
