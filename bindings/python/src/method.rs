//! Calls: encodes arguments, submits, and converts the outcome.

use std::cell::RefCell;
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple, PyType};
use thalweg_capi::abi::{TW_ERROR, TW_FOREVER, TW_OK};

use crate::async_stream::AsyncStream;
use crate::client::{Caller, Client, Seed};
use crate::completion::Completion;
use crate::decode::{DecodeError, Decoder};
use crate::function_info::FunctionInfo;
use crate::handle::Owned;
use crate::kind::{Field, Kind};
use crate::library::Library;
use crate::message;
use crate::owned::Handles;
use crate::pending_call::{self, PendingCall, Ticket};
use crate::raw_type;
use crate::reader::{Reader, StreamError};
use crate::resource::Resource;
use crate::stream::Stream;
use crate::submission::Submission;
use crate::thread_port::ThreadPort;
use crate::upstream::Source;
use crate::{awaitable, cbor, encode, errors, host, inline, together, upstream};

/// Layout hashes of a method's messages, and of its package.
#[derive(Clone, Copy)]
pub struct Hashes {
    pub package: u64,
    pub params: u64,
    pub ok: u64,
    pub error: u64,
    pub element: u64,
}

/// The type of a call's successful result.
pub enum Outcome {
    Nothing,
    Value(Arc<Kind>),
    Stream {
        element: Arc<Kind>,
        view: Option<Arc<Py<PyType>>>,
    },
    Resource,
}

/// Whether a stream is sync or async.
#[derive(Clone, Copy)]
pub enum Face {
    Sync,
    Async,
}

/// A method of a package.
#[pyclass(frozen, module = "thalweg.layout")]
pub struct Method {
    pub number: u32,
    pub name: String,
    pub fields: Vec<Field>,
    pub params_size: u32,
    pub outcome: Outcome,
    pub error: Option<Arc<Kind>>,
    pub error_class: Option<Py<PyType>>,
    pub hashes: Hashes,
    /// Its names and texts.
    pub known: Arc<FunctionInfo>,
}

thread_local! {
    /// The encoded arguments of the current call. The memory is reused.
    static ARGUMENTS: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The maximum size of the buffer that a thread keeps for arguments, in bytes. A larger buffer is
/// freed after the call.
const KEPT_BYTES: usize = 64 * 1024;

#[pymethods]
impl Method {
    /// Calls and waits.
    #[pyo3(signature = (of, timeout, *arguments, on_notice=None))]
    fn call<'py>(
        &self,
        of: &Bound<'py, PyAny>,
        timeout: Option<f64>,
        arguments: &Bound<'py, PyTuple>,
        on_notice: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (client, completion) = self.run(of, timeout, arguments, on_notice)?;
        self.finish(completion, &client, None, Face::Sync)
    }

    /// Calls and waits. The result is a resource of class `cls`.
    #[pyo3(signature = (cls, of, timeout, *arguments, on_notice=None))]
    fn make<'py>(
        &self,
        cls: &Bound<'py, PyType>,
        of: &Bound<'py, PyAny>,
        timeout: Option<f64>,
        arguments: &Bound<'py, PyTuple>,
        on_notice: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (client, completion) = self.run(of, timeout, arguments, on_notice)?;
        self.finish(completion, &client, Some(cls), Face::Sync)
    }

    /// Calls, and returns an awaitable for the running loop.
    #[pyo3(signature = (of, timeout, *arguments, on_notice=None))]
    fn start<'py>(
        slf: &Bound<'py, Self>,
        of: &Bound<'py, PyAny>,
        timeout: Option<f64>,
        arguments: &Bound<'py, PyTuple>,
        on_notice: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Self::begin(slf, of, timeout, arguments, on_notice, None)
    }

    /// Calls, and returns an awaitable for the running loop, whose result is a `cls`.
    #[pyo3(signature = (cls, of, timeout, *arguments, on_notice=None))]
    fn start_make<'py>(
        slf: &Bound<'py, Self>,
        cls: &Bound<'py, PyType>,
        of: &Bound<'py, PyAny>,
        timeout: Option<f64>,
        arguments: &Bound<'py, PyTuple>,
        on_notice: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Self::begin(slf, of, timeout, arguments, on_notice, Some(cls))
    }

    /// The message that a call with `arguments` would send, for tools and tests of the format.
    #[pyo3(signature = (*arguments))]
    fn message<'py>(&self, arguments: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyBytes>> {
        let py = arguments.py();
        let mut buffer = Vec::new();
        let layout = (self.hashes.params, self.params_size);
        encode::arguments(py, &self.name, &self.fields, layout, arguments, &mut buffer)?;
        Ok(PyBytes::new(py, &buffer))
    }

    /// `value` in CBOR. `part` is `"params"` (a tuple of the arguments), `"result"`, `"error"` or
    /// `"element"`. `of` is any client of the package.
    fn to_cbor<'py>(
        &self,
        of: &Bound<'py, PyAny>,
        part: &str,
        value: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let caller = Caller::of(of, &self.name, self.hashes.package)?;
        cbor::write(self, caller.library, part, value)
    }

    /// Decodes `data` from CBOR.
    #[pyo3(name = "from_cbor")]
    fn of_cbor<'py>(
        &self,
        of: &Bound<'py, PyAny>,
        part: &str,
        data: &[u8],
    ) -> PyResult<Bound<'py, PyAny>> {
        let caller = Caller::of(of, &self.name, self.hashes.package)?;
        cbor::read(of.py(), self, caller.library, part, data)
    }

    #[classmethod]
    fn __class_getitem__<'py>(
        cls: &Bound<'py, PyType>,
        item: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        raw_type::generic_alias(cls, item)
    }
}

/// How far a call is that an awaitable stands for.
enum Begun {
    Submitted(Ticket),
    Ended(Completion),
}

impl Method {
    fn run<'py>(
        &self,
        of: &Bound<'py, PyAny>,
        timeout: Option<f64>,
        arguments: &Bound<'py, PyTuple>,
        on_notice: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, Client>, Completion)> {
        let py = of.py();
        let caller = Caller::of(of, &self.name, self.hashes.package)?;
        let deadline = deadline(caller.library, timeout)?;
        let completion = if caller.library.is_inline(self.number) {
            self.with_message(&caller, arguments, Face::Sync, |message, _, _| {
                inline::call(py, &caller, self.number, message, deadline)
            })?
        } else {
            host::check_not_serving(py, caller.number)?;
            self.with_message(&caller, arguments, Face::Sync, |message, sources, _| {
                if let Some(ended) = self.run_if_brief(&caller, message, deadline, on_notice) {
                    return Ok(ended);
                }
                let port = ThreadPort::of(py, caller.library)?;
                let waits = caller.library.waits(self.number);
                let submission = self.submission(&caller, message, deadline, on_notice, waits);
                port.call(py, &submission, sources)
            })?
        };
        Ok((caller.client, completion))
    }

    fn begin<'py>(
        slf: &Bound<'py, Self>,
        of: &Bound<'py, PyAny>,
        timeout: Option<f64>,
        arguments: &Bound<'py, PyTuple>,
        on_notice: Option<&Bound<'py, PyAny>>,
        class: Option<&Bound<'py, PyType>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let this = slf.get();
        let caller = Caller::of(of, &this.name, this.hashes.package)?;
        let deadline = deadline(caller.library, timeout)?;
        if caller.library.is_inline(this.number) {
            let ended = this.with_message(&caller, arguments, Face::Async, |message, _, _| {
                inline::call(py, &caller, this.number, message, deadline)
            })?;
            return this.ready(ended, &caller.client, class);
        }
        let begun = this.with_message(
            &caller,
            arguments,
            Face::Async,
            |message, sources, gives| {
                if let Some(ended) = this.run_if_brief(&caller, message, deadline, on_notice) {
                    return Ok(Begun::Ended(ended));
                }
                // On a loop, a submission never blocks.
                let submission = this.submission(&caller, message, deadline, on_notice, false);
                pending_call::submit(py, caller.library, &submission, sources, gives)
                    .map(Begun::Submitted)
            },
        )?;
        let ticket = match begun {
            Begun::Submitted(ticket) => ticket,
            Begun::Ended(ended) => return this.ready(ended, &caller.client, class),
        };
        let call = PendingCall::new(
            ticket,
            slf.clone().unbind(),
            caller.client.unbind(),
            class.cloned().map(Bound::unbind),
        );
        awaitable::new(py, Box::new(call))
    }

    /// Runs a brief method on this thread, if its service is idle.
    fn run_if_brief(
        &self,
        caller: &Caller<'_>,
        message: &[u8],
        deadline_ns: u64,
        on_notice: Option<&Bound<'_, PyAny>>,
    ) -> Option<Completion> {
        // It must not overtake a call that was made before and is collected.
        if on_notice.is_some() || together::is_used() || !caller.library.is_brief(self.number) {
            return None;
        }
        inline::call_if_idle(caller, self.number, message, deadline_ns)
    }

    /// An awaitable for a call that has ended.
    fn ready<'py>(
        &self,
        ended: Completion,
        client: &Bound<'py, Client>,
        class: Option<&Bound<'py, PyType>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let value = self.finish(ended, client, class, Face::Async);
        let ready = inline::Ready(Some(value.map(Bound::unbind)));
        awaitable::new(client.py(), Box::new(ready))
    }

    fn submission<'a, 'py>(
        &self,
        caller: &Caller<'py>,
        message: &'a [u8],
        deadline_ns: u64,
        on_notice: Option<&'a Bound<'py, PyAny>>,
        waits: bool,
    ) -> Submission<'a, 'py> {
        Submission {
            client: caller.number,
            method: self.number,
            deadline_ns,
            on_notice,
            waits,
            message,
        }
    }

    /// Encodes the arguments and passes them to `submit`, together with the streams to send and
    /// whether the call gives a handle away. On success, the handles that the call takes belong to
    /// the service.
    fn with_message<'py, T>(
        &self,
        caller: &Caller<'py>,
        arguments: &Bound<'py, PyTuple>,
        face: Face,
        submit: impl FnOnce(&[u8], Vec<Source<'py>>, bool) -> PyResult<T>,
    ) -> PyResult<T> {
        let py = arguments.py();
        // The buffer is taken out, not borrowed: encoding and waiting can run code that makes a
        // call on this thread.
        let mut buffer = ARGUMENTS.take();
        let layout = (self.hashes.params, self.params_size);
        let given =
            encode::arguments(py, &self.name, &self.fields, layout, arguments, &mut buffer)?;
        let (readers, sources) = upstream::open(caller, self, given.streams, face, &mut buffer)?;
        let gives = !sources.is_empty() || !given.resources.is_empty();
        let done = submit(&buffer, sources, gives)?;
        readers.given();
        for resource in given.resources {
            resource.get().handle().take();
        }
        if buffer.capacity() <= KEPT_BYTES {
            ARGUMENTS.set(buffer);
        }
        Ok(done)
    }

    /// The value or the exception of a call that ended. A resource becomes an instance of `class`.
    pub fn finish<'py>(
        &self,
        mut completion: Completion,
        client: &Bound<'py, Client>,
        class: Option<&Bound<'py, PyType>>,
        face: Face,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = client.py();
        match completion.code() {
            TW_OK => {}
            TW_ERROR => return Err(self.service_error(py, &mut completion, client)),
            code => {
                return Err(errors::ended(
                    py,
                    code,
                    &completion.message(),
                    completion.retryable(),
                ));
            }
        }
        let library = client.get().handle().library;
        match &self.outcome {
            Outcome::Nothing => Ok(py.None().into_bound(py)),
            Outcome::Value(kind) => self.decode(&mut completion, client, kind, self.hashes.ok),
            Outcome::Stream { element, view } => {
                let stream = self.take_handle(py, &mut completion)?;
                let owned = Owned::new(library, stream, "the stream");
                let (element, view) = (Arc::clone(element), view.clone());
                let serves = client.get().host(py).is_some();
                let error = self.stream_error(py);
                let reader = Reader::new(owned, &self.name, element, view, error, serves);
                Ok(match face {
                    Face::Sync => Bound::new(py, Stream::new(reader))?.into_any(),
                    Face::Async => Bound::new(py, AsyncStream::new(reader))?.into_any(),
                })
            }
            Outcome::Resource => {
                let resource = self.take_handle(py, &mut completion)?;
                let owned = Owned::new(library, resource, "the resource");
                let plain = py.get_type::<Resource>();
                Seed::grow(class.unwrap_or(&plain), owned, Some(client))
            }
        }
    }

    /// The error type of its stream.
    fn stream_error(&self, py: Python<'_>) -> Option<Arc<StreamError>> {
        (self.hashes.error != 0).then(|| {
            Arc::new(StreamError {
                kind: self.error.clone(),
                class: self.error_class.as_ref().map(|class| class.clone_ref(py)),
                hash: self.hashes.error,
            })
        })
    }

    fn take_handle(&self, py: Python<'_>, completion: &mut Completion) -> PyResult<u64> {
        let data = completion.data();
        let place = message::root(data, self.hashes.ok, 4)
            .and_then(|root| data.u32(root))
            .map_err(|malformed| DecodeError::from(malformed).raise(py, &self.name))?;
        completion.take_handle(py, place)
    }

    fn decode<'py>(
        &self,
        completion: &mut Completion,
        client: &Bound<'py, Client>,
        kind: &Kind,
        hash: u64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = client.py();
        let data = completion.data();
        let mut value = || {
            let root = message::root(data, hash, kind.size)?;
            let count = message::handles(data)?;
            let handles = Handles::new(completion, client, &self.name, count);
            let tails_from = root.saturating_add(kind.size);
            Decoder::whole(py, data, tails_from, Some(handles)).value(kind, root)
        };
        value().map_err(|undecodable: DecodeError| undecodable.raise(py, &self.name))
    }

    fn service_error(
        &self,
        py: Python<'_>,
        completion: &mut Completion,
        client: &Bound<'_, Client>,
    ) -> PyErr {
        let payload = match &self.error {
            Some(kind) => match self.decode(completion, client, kind, self.hashes.error) {
                Ok(payload) => payload,
                Err(error) => return error,
            },
            None => py.None().into_bound(py),
        };
        let class = self.error_class.as_ref().map(|class| class.bind(py));
        errors::service(py, payload, class, completion.retryable())
    }
}

/// The deadline `timeout` seconds from now. `None` and infinity mean no deadline.
///
/// # Errors
/// `ValueError` for NaN.
pub fn deadline(library: &Library, timeout: Option<f64>) -> PyResult<u64> {
    let Some(seconds) = timeout else {
        return Ok(TW_FOREVER);
    };
    if seconds.is_nan() {
        return Err(PyValueError::new_err("timeout is not a number"));
    }
    // SAFETY: the function has no arguments and may be called on any thread.
    let now = unsafe { (library.table.now)() };
    // The cast saturates: a negative timeout is now, and infinity is no deadline. `submit` takes 0
    // as no deadline, and now is never 0.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "saturates on purpose"
    )]
    let nanoseconds = (seconds * 1e9) as u64;
    Ok(now.max(1).saturating_add(nanoseconds))
}
