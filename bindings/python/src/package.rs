//! The generated package's description of its library.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};

use crate::describe::{self, FieldOf, PyKind};
use crate::function_info::FunctionInfo;
use crate::host::{Answer, Import};
use crate::library::{self, Expected, Library};
use crate::method::{Hashes, Method, Outcome};

/// A package of WIT: name, version, layout, and its methods in the order of their numbers.
#[pyclass(frozen, module = "thalweg.layout")]
pub struct Package {
    name: String,
    version: String,
    layout: u64,
    /// A hash over the host imports.
    imports_layout: u64,
    methods: Mutex<Vec<Arc<FunctionInfo>>>,
    imports: Mutex<Vec<(Arc<FunctionInfo>, Arc<Import>)>>,
}

impl Package {
    /// Opens `path` and checks that it is this package.
    pub fn open(&self, py: Python<'_>, path: &Path) -> PyResult<&'static Library> {
        let imports = lock(&self.imports);
        let known_imports = imports.iter().map(|(known, _)| Arc::clone(known)).collect();
        drop(imports);
        let expected = Expected {
            package: &self.name,
            version: &self.version,
            layout: self.layout,
            imports: self.imports_layout,
            known: [lock(&self.methods).clone(), known_imports],
        };
        library::open(py, path, &expected)
    }

    /// The host imports of its service.
    pub fn imports(&self) -> Vec<Arc<Import>> {
        let imports = lock(&self.imports);
        imports
            .iter()
            .map(|(_, import)| Arc::clone(import))
            .collect()
    }

    fn add(
        &self,
        name: String,
        texts: &[String; 4],
        parameters: (u32, Vec<FieldOf<'_>>),
        outcome: Outcome,
        error: Option<PyRef<'_, PyKind>>,
        error_class: Option<Bound<'_, PyType>>,
    ) -> PyResult<Method> {
        let (size, fields) = parameters;
        let fields = describe::parameters(fields);
        let known = Arc::new(FunctionInfo::new(&name, texts)?);
        let mut methods = lock(&self.methods);
        let number = u32::try_from(methods.len()).unwrap_or(u32::MAX);
        methods.push(Arc::clone(&known));
        let [params, ok, error_hash, element] = known.hashes;
        Ok(Method {
            known,
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
        })
    }
}

/// Locked with the GIL held, and never while Python code runs.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
            imports_layout: imports,
            methods: Mutex::default(),
            imports: Mutex::default(),
        }
    }

    /// Adds the next host import: `method` of the host's object.
    #[pyo3(signature = (name, method, texts, params, ok, error=None))]
    #[expect(clippy::too_many_arguments, reason = "a description, in Python")]
    fn asks(
        &self,
        py: Python<'_>,
        name: String,
        method: &Bound<'_, PyString>,
        texts: [String; 4],
        params: (u32, Vec<FieldOf<'_>>),
        ok: Option<PyRef<'_, PyKind>>,
        error: Option<PyRef<'_, PyKind>>,
    ) -> PyResult<()> {
        let known = Arc::new(FunctionInfo::new(&name, &texts)?);
        let [hash, ok_hash, error_hash, _] = known.hashes;
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
        lock(&self.imports).push((known, Arc::new(import)));
        Ok(())
    }

    /// Adds the next method: it returns a value, or nothing if `ok` is `None`.
    #[pyo3(signature = (name, texts, params, ok, error=None, error_class=None))]
    fn method(
        &self,
        name: String,
        texts: [String; 4],
        params: (u32, Vec<FieldOf<'_>>),
        ok: Option<PyRef<'_, PyKind>>,
        error: Option<PyRef<'_, PyKind>>,
        error_class: Option<Bound<'_, PyType>>,
    ) -> PyResult<Method> {
        let outcome = match ok {
            Some(kind) => Outcome::Value(Arc::clone(&kind.0)),
            None => Outcome::Nothing,
        };
        self.add(name, &texts, params, outcome, error, error_class)
    }

    /// Adds the next method: it returns a stream of `element`. Its batches contain views of class
    /// `view`, or values if `view` is `None`.
    #[pyo3(signature = (name, texts, params, element, view=None, error=None, error_class=None))]
    #[expect(clippy::too_many_arguments, reason = "keywords, in Python")]
    fn stream_method(
        &self,
        name: String,
        texts: [String; 4],
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
        self.add(name, &texts, params, outcome, error, error_class)
    }

    /// Adds the next method: it returns a resource.
    #[pyo3(signature = (name, texts, params, error=None, error_class=None))]
    fn resource_method(
        &self,
        name: String,
        texts: [String; 4],
        params: (u32, Vec<FieldOf<'_>>),
        error: Option<PyRef<'_, PyKind>>,
        error_class: Option<Bound<'_, PyType>>,
    ) -> PyResult<Method> {
        self.add(name, &texts, params, Outcome::Resource, error, error_class)
    }
}
