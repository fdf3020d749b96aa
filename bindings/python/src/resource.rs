//! Resources: objects in the service. Generated classes derive from [`Resource`].

use pyo3::prelude::*;
use pyo3::types::PyType;
use thalweg_capi::abi::TwHandle;

use crate::client::{Client, Seed};
use crate::handle::Owned;
use crate::together;

/// A resource of a client. It keeps the client open.
#[pyclass(frozen, subclass, weakref, module = "thalweg._native")]
pub struct Resource {
    handle: Owned,
    client: Py<Client>,
}

impl Resource {
    /// Its handle.
    pub fn handle(&self) -> &Owned {
        &self.handle
    }

    /// The client that returned it.
    pub fn client(&self) -> &Py<Client> {
        &self.client
    }

    fn drop_handle(&self, resource: TwHandle) {
        // SAFETY: a handle is a number, and the table reports a stale one as an error. Dropping a
        // resource posts a message to the core and does not wait.
        unsafe { (self.handle.library.table.resource_drop)(resource, std::ptr::null_mut()) };
    }
}

#[pymethods]
impl Resource {
    #[new]
    fn new(seed: &Bound<'_, Seed>, client: &Bound<'_, Client>) -> PyResult<Self> {
        Ok(Self {
            handle: seed.get().open(seed.py())?,
            client: client.clone().unbind(),
        })
    }

    /// The resource inside a value, as an object of this class. `resource` is closed afterwards.
    #[classmethod]
    fn of<'py>(
        cls: &Bound<'py, PyType>,
        resource: &Bound<'py, Resource>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = cls.py();
        let resource = resource.get();
        resource.handle.number(py)?;
        let number = resource.handle.take().unwrap_or_default();
        let owned = Owned::new(resource.handle.library, number, "the resource");
        Seed::grow(cls, owned, Some(resource.client.bind(py)))
    }

    /// Closes the resource: the service drops it. A second call has no effect.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        together::hand_over(py)?;
        if let Some(resource) = self.handle.take() {
            self.drop_handle(resource);
        }
        Ok(())
    }

    /// Whether it was closed or given away.
    #[getter]
    fn closed(&self) -> bool {
        self.handle.is_closed()
    }
}

impl Drop for Resource {
    fn drop(&mut self) {
        if let Some(resource) = self.handle.take() {
            self.drop_handle(resource);
        }
    }
}
