//! Handles inside values: the resources, streams and futures of a message. Each is taken out when
//! its part of the message is read.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::client::{Client, Seed};
use crate::completion::Completion;
use crate::handle::Owned;
use crate::kind::{Kind, Upstream};
use crate::raw_type;
use crate::reader::Reader;
use crate::resource::Resource;

/// The handles of a received message. Handles that no value takes are closed with the completion.
pub struct Handles<'a, 'py> {
    completion: &'a mut Completion,
    client: &'a Bound<'py, Client>,
    /// The method that returned them, for error messages.
    name: &'a str,
    count: u32,
    /// The number of handles that were taken. They occur in the order of their indexes.
    met: u32,
}

impl<'a, 'py> Handles<'a, 'py> {
    /// The handles of a message with `count` handles.
    pub fn new(
        completion: &'a mut Completion,
        client: &'a Bound<'py, Client>,
        name: &'a str,
        count: u32,
    ) -> Self {
        Self {
            completion,
            client,
            name,
            count,
            met: 0,
        }
    }

    /// Takes the handle with index `place`; `None` if it is not the next one.
    fn take(&mut self, place: u32, what: &'static str) -> PyResult<Option<Owned>> {
        if place != self.met || place >= self.count {
            return Ok(None);
        }
        self.met += 1;
        let number = self.completion.take_handle(self.client.py(), place)?;
        let library = self.client.get().handle().library;
        Ok(Some(Owned::new(library, number, what)))
    }

    /// The resource with index `place`.
    pub fn resource(&mut self, place: u32) -> PyResult<Option<Bound<'py, PyAny>>> {
        let plain = self.client.py().get_type::<Resource>();
        let owned = self.take(place, "the resource")?;
        let grow = |owned| Seed::grow(&plain, owned, Some(self.client));
        owned.map(grow).transpose()
    }

    /// The stream or future with index `place`.
    pub fn stream(
        &mut self,
        place: u32,
        carries: &Upstream,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = self.client.py();
        let Some(handle) = self.take(place, "the stream")? else {
            return Ok(None);
        };
        let stream = OwnedStream {
            handle,
            name: self.name.to_owned(),
            element: Arc::clone(&carries.element),
            serves: self.client.get().host(py).is_some(),
        };
        let object = match carries.is_future {
            true => Bound::new(py, (OwnedFuture, stream))?.into_any(),
            false => Bound::new(py, stream)?.into_any(),
        };
        Ok(Some(object))
    }
}

/// A stream inside a value, before it is read. `Stream.of` and `AsyncStream.of` read it.
#[pyclass(frozen, subclass, weakref, module = "thalweg")]
pub struct OwnedStream {
    handle: Owned,
    name: String,
    element: Arc<Kind>,
    serves: bool,
}

impl OwnedStream {
    /// The reader of the stream. This object is closed afterwards.
    ///
    /// # Errors
    /// `thalweg.Closed`, `thalweg.Forked`.
    pub fn open(&self, py: Python<'_>) -> PyResult<Reader> {
        self.handle.number(py)?;
        let number = self.handle.take().unwrap_or_default();
        let owned = Owned::new(self.handle.library, number, "the stream");
        let element = Arc::clone(&self.element);
        Ok(Reader::new(
            owned,
            &self.name,
            element,
            None,
            None,
            self.serves,
        ))
    }
}

#[pymethods]
impl OwnedStream {
    /// Closes the stream: its writers are notified and stop. A second call has no effect.
    fn close(&self) {
        self.handle.close_stream();
    }

    /// Whether it was closed, or taken for reading.
    #[getter]
    fn closed(&self) -> bool {
        self.handle.is_closed()
    }

    #[classmethod]
    fn __class_getitem__<'py>(
        cls: &Bound<'py, PyType>,
        item: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        raw_type::generic_alias(cls, item)
    }
}

impl Drop for OwnedStream {
    fn drop(&mut self) {
        self.handle.close_stream();
    }
}

/// A future inside a value. `Future.of` and `AsyncFuture.of` wait for it.
#[pyclass(frozen, weakref, extends = OwnedStream, module = "thalweg")]
pub struct OwnedFuture;
