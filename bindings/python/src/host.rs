//! Host imports: functions that a service calls on its host, which are methods of a Python object.
//!
//! A call of a host import arrives at the port of the call that caused it. The thread that waits
//! for that call therefore runs the function. On asyncio, the function is a coroutine function and
//! runs as a task of the loop.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyException;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple, PyWeakrefReference};
use thalweg_capi::abi::{
    TW_CLOSED, TW_ERROR, TW_GUEST_PANICKED, TW_OK, TW_STALE, TW_WOULD_PARK, TwHandle,
};

use crate::client::Client;
use crate::completion::Completion;
use crate::decode::{DecodeError, Decoder};
use crate::kind::{Field, Kind};
use crate::library::Library;
use crate::{encode, errors, message};

/// A function of the host.
pub struct Import {
    /// The name in WIT: `oracle.look-up`.
    pub name: String,
    /// The method of the object.
    pub method: Py<PyString>,
    pub fields: Vec<Field>,
    pub params_size: u32,
    pub ok: Answer,
    /// The message of its error, if it can fail.
    pub error: Option<Answer>,
    pub hash: u64,
}

/// A message with the host's answer: one field, or none.
pub struct Answer {
    field: Vec<Field>,
    size: u32,
    hash: u64,
}

impl Answer {
    /// For a value of `kind`, or for no value.
    pub fn new(py: Python<'_>, kind: Option<Arc<Kind>>, hash: u64) -> Self {
        let size = kind.as_ref().map_or(0, |kind| kind.size);
        let field = kind.map(|kind| Field {
            name: intern!(py, "answer").clone().unbind(),
            offset: 0,
            kind,
            slot: None,
        });
        Self {
            field: field.into_iter().collect(),
            size,
            hash,
        }
    }

    /// The message that contains `value`.
    fn message(&self, whose: &str, value: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
        let py = value.py();
        let values = match self.field.is_empty() {
            true => PyTuple::empty(py),
            false => PyTuple::new(py, [value])?,
        };
        let mut buffer = Vec::new();
        let layout = (self.hash, self.size);
        encode::arguments(py, whose, &self.field, layout, &values, &mut buffer)?;
        Ok(buffer)
    }
}

/// The host of a client.
pub struct Host {
    object: Py<PyAny>,
    imports: Vec<Arc<Import>>,
}

impl Host {
    /// Shows the garbage collector the references.
    pub fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.object)
    }
}

/// The clients that have a host, by handle number. It is locked with the GIL held, and never while
/// Python code runs.
static CLIENTS: Mutex<Vec<(TwHandle, Py<PyWeakrefReference>)>> = Mutex::new(Vec::new());

thread_local! {
    /// The clients whose host functions are running on this thread.
    static SERVING: RefCell<Vec<TwHandle>> = const { RefCell::new(Vec::new()) };
}

/// Makes `object` the host of `client`.
///
/// # Errors
/// `thalweg.BadArgument` if the service has no host imports.
pub fn attach<'py>(
    client: &Bound<'py, Client>,
    object: &Bound<'py, PyAny>,
    imports: Vec<Arc<Import>>,
) -> PyResult<()> {
    let py = client.py();
    let handle = client.get().handle();
    let number = handle.number(py)?;
    let mut error = errors::blank();
    // SAFETY: numbers, and an error structure that is ours.
    let code = unsafe { (handle.library.table.client_set_host)(number, 0, number, &raw mut error) };
    if code != TW_OK {
        return Err(errors::from_table(py, code, &error));
    }
    let host = Host {
        object: object.clone().unbind(),
        imports,
    };
    client.get().set_host(py, Some(Arc::new(host)));
    let weak = PyWeakrefReference::new(client)?.unbind();
    clients().push((number, weak));
    Ok(())
}

/// Removes the host of a client that was closed.
pub fn detach(number: TwHandle) {
    let gone = {
        let mut clients = clients();
        let place = clients.iter().position(|(client, _)| *client == number);
        place.map(|place| clients.swap_remove(place))
    };
    drop(gone);
}

fn clients() -> MutexGuard<'static, Vec<(TwHandle, Py<PyWeakrefReference>)>> {
    CLIENTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Refuses a call of a client whose host function runs on this thread: the service waits for that
/// function.
///
/// # Errors
/// `thalweg.WouldPark`.
pub fn check_not_serving(py: Python<'_>, client: TwHandle) -> PyResult<()> {
    if SERVING.with_borrow(|serving| serving.contains(&client)) {
        let text = "a host must not call the client whose service waits for its answer";
        return Err(errors::ended(py, TW_WOULD_PARK, text, true));
    }
    Ok(())
}

/// A call of a host import, which is answered once.
#[pyclass(frozen, module = "thalweg._native")]
pub struct HostCall {
    library: &'static Library,
    call: TwHandle,
    import: Arc<Import>,
}

#[pymethods]
impl HostCall {
    /// Answers with the function's return value.
    fn done(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = value.py();
        match self.import.ok.message(&self.import.name, value) {
            Ok(message) => answer(py, self.library, self.call, TW_OK, &message),
            Err(unfit) => self.broke(py, &unfit),
        }
    }

    /// Answers with the exception of the function: as its typed error if it is one, otherwise as a
    /// panic.
    fn fail(&self, raised: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = raised.py();
        let base = errors::class(py, TW_ERROR)?;
        let error = match &self.import.error {
            Some(error) if raised.is_instance(base)? => error,
            _ => return self.broke(py, &PyErr::from_value(raised.clone())),
        };
        // A case of a variant is an exception itself; any other error value is the payload of one.
        let itself = error.message(&self.import.name, raised);
        let message = itself.or_else(|_| {
            let payload = raised.getattr(intern!(py, "payload"))?;
            error.message(&self.import.name, &payload)
        });
        match message {
            Ok(message) => answer(py, self.library, self.call, TW_ERROR, &message),
            Err(unfit) => self.broke(py, &unfit),
        }
    }
}

impl HostCall {
    fn broke(&self, py: Python<'_>, why: &PyErr) -> PyResult<()> {
        let text = format!("the host's {}: {why}", self.import.name);
        answer(
            py,
            self.library,
            self.call,
            TW_GUEST_PANICKED,
            text.as_bytes(),
        )
    }
}

/// An answer that arrives too late is dropped, because no call waits for it.
fn answer(
    py: Python<'_>,
    library: &'static Library,
    call: TwHandle,
    code: u32,
    data: &[u8],
) -> PyResult<()> {
    let mut error = errors::blank();
    // SAFETY: the function reads the data before it returns, and the other pointers are ours.
    let status = unsafe {
        (library.table.host_call_answer)(
            call,
            code,
            data.as_ptr(),
            data.len() as u64,
            &raw mut error,
        )
    };
    match status {
        TW_OK | TW_STALE => Ok(()),
        status => Err(errors::from_table(py, status, &error)),
    }
}

/// A decoded call of a host import: the call, the client, the function and its arguments.
type DecodedHostCall<'py> = (HostCall, TwHandle, Bound<'py, PyAny>, Bound<'py, PyTuple>);

/// `None` if there is no host, or the call is invalid; it has been answered then.
fn decode_host_call<'py>(
    py: Python<'py>,
    library: &'static Library,
    completion: &Completion,
) -> PyResult<Option<DecodedHostCall<'py>>> {
    let number = completion.token();
    let weak = {
        let clients = clients();
        let known = clients.iter().find(|(client, _)| *client == number);
        known.map(|(_, weak)| weak.clone_ref(py))
    };
    let client = weak.and_then(|weak| weak.bind(py).upgrade());
    let client = client.and_then(|client| client.cast_into::<Client>().ok());
    let host = client.and_then(|client| client.get().host(py));
    let asks = completion.code() as usize;
    let known = host.and_then(|host| {
        let import = Arc::clone(host.imports.get(asks)?);
        Some((host.object.clone_ref(py), import))
    });
    let call = completion.call();
    let Some((object, import)) = known else {
        answer(py, library, call, TW_CLOSED, b"the client has no host")?;
        return Ok(None);
    };
    let host_call = HostCall {
        library,
        call,
        import,
    };
    let arguments = host_call.import.arguments(py, completion);
    let method = object.bind(py).getattr(&host_call.import.method);
    match method.and_then(|method| Ok((method, arguments?))) {
        Ok((method, arguments)) => Ok(Some((host_call, number, method, arguments))),
        Err(why) => {
            host_call.broke(py, &why)?;
            Ok(None)
        }
    }
}

impl Import {
    fn arguments<'py>(
        &self,
        py: Python<'py>,
        completion: &Completion,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let data = completion.data();
        let read = || -> Result<Vec<_>, DecodeError> {
            let root = message::root(data, self.hash, self.params_size)?;
            let mut decoder = Decoder::whole(py, data, root.saturating_add(self.params_size), None);
            let fields = self.fields.iter();
            fields
                .map(|field| decoder.value(&field.kind, root + field.offset))
                .collect()
        };
        let values = read().map_err(|wrong| wrong.raise(py, &self.name))?;
        PyTuple::new(py, values)
    }
}

/// Runs the function and answers, on a thread that waits.
///
/// # Errors
/// An exception of the function that is not an `Exception`, for example `KeyboardInterrupt`.
pub fn serve(py: Python<'_>, library: &'static Library, completion: &Completion) -> PyResult<()> {
    let Some((host_call, client, method, arguments)) = decode_host_call(py, library, completion)?
    else {
        return Ok(());
    };
    SERVING.with_borrow_mut(|serving| serving.push(client));
    let ended = method.call1(arguments);
    SERVING.with_borrow_mut(Vec::pop);
    match ended {
        Ok(value) => host_call.done(&value),
        Err(raised) => {
            host_call.fail(raised.value(py).as_any())?;
            match raised.is_instance_of::<PyException>(py) {
                true => Ok(()),
                false => Err(raised),
            }
        }
    }
}

/// Starts the function's coroutine as a task of the running loop, which answers.
pub fn start(
    event_loop: &Bound<'_, PyAny>,
    library: &'static Library,
    completion: &Completion,
) -> PyResult<()> {
    let py = event_loop.py();
    let Some((host_call, _, method, arguments)) = decode_host_call(py, library, completion)? else {
        return Ok(());
    };
    let host_call = Bound::new(py, host_call)?;
    let begin = py.import("thalweg._host")?.getattr(intern!(py, "begin"))?;
    begin.call1((event_loop, host_call, method, arguments))?;
    Ok(())
}
