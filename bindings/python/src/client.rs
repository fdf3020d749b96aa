//! Clients and resources: handles that generated classes derive from.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyType;
use thalweg_capi::abi::TwHandle;

use crate::errors;
use crate::gil::GilCell;
use crate::handle::Owned;
use crate::host::{self, Host};
use crate::library::Library;
use crate::package::Package;
use crate::resource::Resource;
use crate::together;

/// The handle and state of a new client or resource, passed through the class's `__new__`. Only
/// this module and [`crate::resource`] can create one, so no other code can create a client or
/// resource.
#[pyclass(frozen, module = "thalweg._native")]
pub struct Seed(pub GilCell<Option<Owned>>);

impl Seed {
    /// Calls `class` with a seed of `handle` and `more`.
    pub fn grow<'py>(
        class: &Bound<'py, PyType>,
        handle: Owned,
        client: Option<&Bound<'py, Client>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let seed = Bound::new(class.py(), Self(GilCell::new(Some(handle))))?;
        match client {
            Some(client) => class.call1((seed, client)),
            None => class.call1((seed,)),
        }
    }

    /// Takes the handle out of the seed.
    pub fn open(&self, py: Python<'_>) -> PyResult<Owned> {
        self.0
            .take(py)
            .ok_or_else(|| errors::argument(py, "the seed is spent"))
    }
}

/// A client, which has its own instance of the service. Generated classes derive from it.
#[pyclass(frozen, subclass, weakref, module = "thalweg._native")]
pub struct Client {
    handle: Owned,
    host: GilCell<Option<Arc<Host>>>,
}

impl Client {
    /// The client's handle.
    pub fn handle(&self) -> &Owned {
        &self.handle
    }

    /// The host that answers the host imports of the client's service.
    pub fn host(&self, py: Python<'_>) -> Option<Arc<Host>> {
        let host = self.host.take(py);
        self.host.replace(py, host.clone());
        host
    }

    /// Sets the host.
    pub fn set_host(&self, py: Python<'_>, host: Option<Arc<Host>>) {
        self.host.set(py, host);
    }
}

#[pymethods]
impl Client {
    #[new]
    fn new(seed: &Bound<'_, Seed>) -> PyResult<Self> {
        Ok(Self {
            handle: seed.get().open(seed.py())?,
            host: GilCell::new(None),
        })
    }

    /// Opens `path` as a library of `package` and creates a client whose host imports go to `host`.
    #[classmethod]
    #[pyo3(signature = (package, path, host=None, /))]
    fn _open<'py>(
        cls: &Bound<'py, PyType>,
        package: &Bound<'py, Package>,
        path: PathBuf,
        host: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = cls.py();
        let library = package.get().open(py, &path)?;
        let client = library.client(py)?;
        let client = Seed::grow(cls, Owned::new(library, client, "the client"), None)?;
        if let Some(host) = host {
            host::attach(client.cast::<Self>()?, &host, package.get().imports())?;
        }
        Ok(client)
    }

    /// Closes the client: its instance of the service is dropped, and its calls and streams end as
    /// cancelled. A second call has no effect.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        together::hand_over(py)?;
        if let Some(client) = self.handle.take() {
            let table = self.handle.library.table;
            // SAFETY: a handle is a number; a stale one is an error of the table.
            py.detach(|| unsafe { (table.client_close)(client, std::ptr::null_mut()) });
            host::detach(client);
            self.host.set(py, None);
        }
        Ok(())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // SAFETY: the garbage collector holds the GIL, and the cell is not written while it visits.
        match unsafe { self.host.peek() } {
            Some(host) => host.traverse(&visit),
            None => Ok(()),
        }
    }

    fn __clear__(&self, py: Python<'_>) {
        self.host.set(py, None);
    }

    /// Whether the client was closed.
    #[getter]
    fn closed(&self) -> bool {
        self.handle.is_closed()
    }

    /// The path of the library file, as it was opened first.
    #[getter]
    fn library(&self) -> PathBuf {
        self.handle.library.path.clone()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if let Some(client) = self.handle.take() {
            // SAFETY: as in `close`. Closing a client posts a message to the core and does not
            // wait.
            unsafe { (self.handle.library.table.client_close)(client, std::ptr::null_mut()) };
            host::detach(client);
        }
    }
}

/// The client that a call goes to.
pub struct Caller<'py> {
    /// The client object.
    pub client: Bound<'py, Client>,
    /// Its library.
    pub library: &'static Library,
    /// The client's handle number.
    pub number: TwHandle,
}

impl<'py> Caller<'py> {
    /// `of` is a client, or a resource, which stands for the client that created it. `method`
    /// belongs to the package with the layout hash `layout`.
    ///
    /// # Errors
    /// `TypeError` if it is neither; `thalweg.BadArgument` if it belongs to another package.
    pub fn of(of: &Bound<'py, PyAny>, method: &str, layout: u64) -> PyResult<Self> {
        let py = of.py();
        let client = match of.cast::<Client>() {
            Ok(client) => client.clone(),
            Err(_) => of.cast::<Resource>()?.get().client().bind(py).clone(),
        };
        let handle = client.get().handle();
        let library = handle.library;
        if library.layout != layout {
            let text = format!(
                "{method}: a client of another package ({})",
                library.path.display()
            );
            return Err(errors::argument(py, &text));
        }
        Ok(Self {
            library,
            number: handle.number(py)?,
            client,
        })
    }
}
