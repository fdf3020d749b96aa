//! A stream that asyncio reads. A wait arms the stream on the running loop's port.

use std::sync::Arc;

use pyo3::exceptions::PyStopAsyncIteration;
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};

use crate::armed::{self, Armed};
use crate::awaitable::{self, Polled, Step};
use crate::batch::Batch;
use crate::gil::GilCell;
use crate::owned::OwnedStream;
use crate::raw_type;
use crate::reader::{Acquired, Reader};
use crate::stats::{self, StreamStats};
use crate::stream::{BATCH, Buffer, check_max};

/// The number of records that a reader takes before it lets other tasks run. It is the usual batch
/// size, so the cost of a loop iteration is spread over that many records.
const FAIR: u32 = BATCH;

/// A stream that is read with `async for`. One reader at a time.
#[pyclass(frozen, weakref, module = "thalweg")]
pub struct AsyncStream {
    reader: Arc<Reader>,
    buffer: Buffer,
    /// Records taken since the loop last ran other tasks.
    taken: GilCell<u32>,
    /// The loop where the stream was armed last. It stays armed when a wait is cancelled, and the
    /// next wait uses that.
    armed: GilCell<Option<Armed>>,
}

impl AsyncStream {
    /// A stream over `reader`.
    pub fn new(reader: Reader) -> Self {
        Self {
            reader: Arc::new(reader),
            buffer: Buffer::default(),
            taken: GilCell::new(0),
            armed: GilCell::new(None),
        }
    }
}

#[pymethods]
impl AsyncStream {
    /// The stream inside a value. `stream` is closed afterwards.
    #[staticmethod]
    fn of(stream: &Bound<'_, OwnedStream>) -> PyResult<Self> {
        stream.get().open(stream.py()).map(Self::new)
    }

    fn __aiter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __anext__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        match slf.get().buffer.pop() {
            Some(object) => awaitable::new(slf.py(), Box::new(Ready(Some(object)))),
            None => awaitable::new(slf.py(), Box::new(Next::new(slf, BATCH, What::Object))),
        }
    }

    /// The batches of the stream, of at most `max` records each.
    #[pyo3(signature = (max=BATCH))]
    fn batches(slf: &Bound<'_, Self>, max: u32) -> PyResult<AsyncBatches> {
        Ok(AsyncBatches {
            stream: slf.clone().unbind(),
            max: check_max(max)?,
        })
    }

    /// Closes the stream: its writers are notified and stop, and views of an open batch raise. A
    /// second call has no effect.
    fn close(&self, py: Python<'_>) {
        self.reader.close(py);
        self.buffer.clear();
    }

    /// `close()`, for `contextlib.aclosing`. It does not wait.
    fn aclose<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.close(py);
        awaitable::new(py, Box::new(Ready(Some(py.None()))))
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

    /// Another reader, for another task. It starts with the next record that is written.
    fn tee(&self, py: Python<'_>) -> PyResult<Self> {
        self.reader.tee(py).map(Self::new)
    }

    /// Statistics of all streams of this method and client.
    fn stats(&self, py: Python<'_>) -> PyResult<StreamStats> {
        stats::of(py, &self.reader.handle)
    }

    fn __aenter__<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        awaitable::new(py, Box::new(Ready(Some(slf.into_any().unbind()))))
    }

    #[pyo3(signature = (*_exception))]
    fn __aexit__<'py>(
        &self,
        py: Python<'py>,
        _exception: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.aclose(py)
    }

    #[classmethod]
    fn __class_getitem__<'py>(
        cls: &Bound<'py, PyType>,
        item: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        raw_type::generic_alias(cls, item)
    }
}

/// An async iterator over a stream's batches. The next step releases the previous batch.
#[pyclass(frozen, module = "thalweg._native")]
pub struct AsyncBatches {
    stream: Py<AsyncStream>,
    max: u32,
}

#[pymethods]
impl AsyncBatches {
    fn __aiter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __anext__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        awaitable::new(
            py,
            Box::new(Next::new(self.stream.bind(py), self.max, What::Batch)),
        )
    }
}

/// A step that is done at once.
struct Ready(Option<Py<PyAny>>);

impl Step for Ready {
    fn poll<'py>(&mut self, py: Python<'py>) -> PyResult<Polled<'py>> {
        Ok(Polled::Done(
            self.0.take().unwrap_or_else(|| py.None()).into_bound(py),
        ))
    }
}

#[derive(Clone, Copy)]
enum What {
    Object,
    Batch,
}

/// The step that waits for the next object or batch.
struct Next {
    stream: Py<AsyncStream>,
    max: u32,
    what: What,
    /// This step is the stream's current reader.
    began: bool,
}

impl Next {
    fn new(stream: &Bound<'_, AsyncStream>, max: u32, what: What) -> Self {
        Self {
            stream: stream.clone().unbind(),
            max,
            what,
            began: false,
        }
    }
}

impl Step for Next {
    fn poll<'py>(&mut self, py: Python<'py>) -> PyResult<Polled<'py>> {
        let stream = self.stream.clone_ref(py);
        let AsyncStream {
            reader,
            buffer,
            taken,
            armed,
        } = stream.get();
        if !self.began {
            reader.begin(py)?;
            self.began = true;
        }
        loop {
            if let What::Object = self.what
                && let Some(object) = buffer.pop()
            {
                return Ok(Polled::Done(object.into_bound(py)));
            }
            if taken.get(py) >= FAIR {
                taken.set(py, 0);
                return Ok(Polled::Turn);
            }
            match reader.acquire(py, self.max, 0)? {
                Acquired::End => return Err(PyStopAsyncIteration::new_err(())),
                Acquired::WouldPark => {
                    taken.set(py, 0);
                    if let Some(future) = armed::wait(py, &reader.handle, armed)? {
                        return Ok(Polled::Wait(future));
                    }
                }
                Acquired::Batch(raw, serial) => {
                    let batch = Batch::new(py, Arc::clone(reader), raw, serial)?;
                    taken.set(py, taken.get(py) + batch.count());
                    match self.what {
                        What::Batch => return Ok(Polled::Done(Bound::new(py, batch)?.into_any())),
                        What::Object => buffer.fill(py, &batch)?,
                    }
                }
            }
        }
    }
}

impl Drop for Next {
    fn drop(&mut self) {
        if self.began {
            // Nothing can be read while the interpreter shuts down, so nothing is done then.
            Python::try_attach(|py| self.stream.get().reader.end(py));
        }
    }
}
