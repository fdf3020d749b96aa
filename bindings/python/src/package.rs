//! What a generated package says about its library.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};

use crate::describe::{self, FieldOf, PyKind};
use crate::host::{Answer, Import};
use crate::library::{self, Expected, Library};
use crate::method::{Hashes, Method, Outcome};

/// A package of WIT: name, version, layout, and its methods in the order of their numbers.
#[pyclass(frozen, module = "thalweg.layout")]
pub struct Package {
    name: String,
    version: String,
    layout: u64,
    /// Hash over what is asked of the host.
    asked: u64,
    methods: Mutex<Vec<(String, [u64; 4])>>,
    imports: Mutex<Vec<Arc<Import>>>,
}

impl Package {
    /// Opens `path` and checks that it is this package.
    pub fn open(&self, py: Python<'_>, path: &Path) -> PyResult<&'static Library> {
        let methods = self
            .methods
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let expected = Expected {
            package: &self.name,
            version: &self.version,
            layout: self.layout,
            imports: self.asked,
            methods: &methods,
        };
        library::open(py, path, &expected)
    }

    /// What its service asks of its host.
    pub fn imports(&self) -> Vec<Arc<Import>> {
        self.imports
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn add(
        &self,
        name: String,
        hashes: [u64; 4],
        parameters: (u32, Vec<FieldOf<'_>>),
        outcome: Outcome,
        error: Option<PyRef<'_, PyKind>>,
        error_class: Option<Bound<'_, PyType>>,
    ) -> Method {
        let (size, fields) = parameters;
        let fields = describe::parameters(fields);
        let mut methods = self.methods.lock().unwrap_or_else(PoisonError::into_inner);
        let number = u32::try_from(methods.len()).unwrap_or(u32::MAX);
        methods.push((name.clone(), hashes));
        let [params, ok, error_hash, element] = hashes;
        Method {
            number,
            name,
            fields,
            params_size: size,
            outcome,
            error: error.map(|kind| Arc::clone(&kind.0)),
            error_class: error_class.map(Bound::unbind),
            hashes: Hashes {
                package: self.layout,
                params,
                ok,
                error: error_hash,
                element,
            },
        }
    }
}

#[pymethods]
impl Package {
    #[new]
    #[pyo3(signature = (name, version, layout, imports=0))]
    fn new(name: String, version: String, layout: u64, imports: u64) -> Self {
        Self {
            name,
            version,
            layout,
            asked: imports,
            methods: Mutex::default(),
            imports: Mutex::default(),
        }
    }

    /// The next function that the service asks of its host: `method` of the host's object.
    #[pyo3(signature = (name, method, hashes, params, ok, error=None))]
    #[expect(clippy::too_many_arguments, reason = "a description, in Python")]
    fn asks(
        &self,
        py: Python<'_>,
        name: String,
        method: &Bound<'_, PyString>,
        hashes: [u64; 4],
        params: (u32, Vec<FieldOf<'_>>),
        ok: Option<PyRef<'_, PyKind>>,
        error: Option<PyRef<'_, PyKind>>,
    ) {
        let [hash, ok_hash, error_hash, _] = hashes;
        let (params_size, fields) = params;
        let kind = |kind: Option<PyRef<'_, PyKind>>| kind.map(|kind| Arc::clone(&kind.0));
        let import = Import {
            name,
            method: method.clone().unbind(),
            fields: describe::parameters(fields),
            params_size,
            ok: Answer::new(py, kind(ok), ok_hash),
            error: (error_hash != 0).then(|| Answer::new(py, kind(error), error_hash)),
            hash,
        };
        let mut imports = self.imports.lock().unwrap_or_else(PoisonError::into_inner);
        imports.push(Arc::new(import));
    }

    /// The next method: one that gives a value, or nothing where `ok` is `None`.
    #[pyo3(signature = (name, hashes, params, ok, error=None, error_class=None))]
    fn method(
        &self,
        name: String,
        hashes: [u64; 4],
        params: (u32, Vec<FieldOf<'_>>),
        ok: Option<PyRef<'_, PyKind>>,
        error: Option<PyRef<'_, PyKind>>,
        error_class: Option<Bound<'_, PyType>>,
    ) -> Method {
        let outcome = match ok {
            Some(kind) => Outcome::Value(Arc::clone(&kind.0)),
            None => Outcome::Nothing,
        };
        self.add(name, hashes, params, outcome, error, error_class)
    }

    /// The next method: one that gives a stream of `element`; batches of it give `view`s, or the values themselves
    /// where it is `None`.
    #[pyo3(signature = (name, hashes, params, element, view=None, error=None, error_class=None))]
    #[expect(clippy::too_many_arguments, reason = "keywords, in Python")]
    fn stream_method(
        &self,
        name: String,
        hashes: [u64; 4],
        params: (u32, Vec<FieldOf<'_>>),
        element: PyRef<'_, PyKind>,
        view: Option<Bound<'_, PyType>>,
        error: Option<PyRef<'_, PyKind>>,
        error_class: Option<Bound<'_, PyType>>,
    ) -> PyResult<Method> {
        let view = view
            .map(|class| crate::view::check_class(&class).map(|()| class.unbind()))
            .transpose()?;
        let outcome = Outcome::Stream {
            element: Arc::clone(&element.0),
            view: view.map(Arc::new),
        };
        Ok(self.add(name, hashes, params, outcome, error, error_class))
    }

    /// The next method: one that gives a resource.
    #[pyo3(signature = (name, hashes, params, error=None, error_class=None))]
    fn resource_method(
        &self,
        name: String,
        hashes: [u64; 4],
        params: (u32, Vec<FieldOf<'_>>),
        error: Option<PyRef<'_, PyKind>>,
        error_class: Option<Bound<'_, PyType>>,
    ) -> Method {
        self.add(name, hashes, params, Outcome::Resource, error, error_class)
    }
}
