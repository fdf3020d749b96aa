//! The classes that represent `result<T, E>` and a nested `option` inside a value.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use crate::kind::Slot;

/// `thalweg.Some`, `thalweg.Ok` and `thalweg.Err`, each with one slot `value`.
pub struct Wrappers {
    /// An option's payload, if the payload can be `None` itself.
    pub some: Py<PyType>,
    /// The ok side of a result.
    pub ok: Py<PyType>,
    /// The error side of a result.
    pub err: Py<PyType>,
    /// `thalweg.NoValue`: for a future that is a parameter.
    pub no_value: Py<PyType>,
    some_slot: Slot,
    ok_slot: Slot,
    err_slot: Slot,
}

/// One of the three wrapper classes.
#[derive(Clone, Copy)]
pub enum Wrapper {
    Some,
    Ok,
    Err,
}

impl Wrappers {
    /// The classes, imported once.
    pub fn of(py: Python<'_>) -> PyResult<&Self> {
        static WRAPPERS: PyOnceLock<Wrappers> = PyOnceLock::new();
        WRAPPERS.get_or_try_init(py, || {
            let module = py.import("thalweg._results")?;
            let class = |name: &str| -> PyResult<Bound<'_, PyType>> {
                Ok(module.getattr(name)?.cast_into()?)
            };
            let (some, ok, err) = (class("Some")?, class("Ok")?, class("Err")?);
            Ok(Self {
                some_slot: Slot::of(&some, "value")?,
                ok_slot: Slot::of(&ok, "value")?,
                err_slot: Slot::of(&err, "value")?,
                some: some.unbind(),
                ok: ok.unbind(),
                err: err.unbind(),
                no_value: class("NoValue")?.unbind(),
            })
        })
    }

    /// A new wrapper of `value`.
    pub fn wrap<'py>(
        &self,
        which: Wrapper,
        value: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (class, slot) = match which {
            Wrapper::Some => (&self.some, &self.some_slot),
            Wrapper::Ok => (&self.ok, &self.ok_slot),
            Wrapper::Err => (&self.err, &self.err_slot),
        };
        let object = crate::kind::allocate(class.bind(value.py()))?;
        slot.fill(&object, value)?;
        Ok(object)
    }
}
