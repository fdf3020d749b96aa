//! Streams and futures as parameters, which Python sends.
//!
//! 1. Each one is created for one call. Its reader goes into the call's message and belongs to the
//!    service once the call is submitted. If the call is refused, both ends are closed.
//! 2. The value of a future is sent before the submission. An awaitable for it is sent like an
//!    element of a stream.
//! 3. Sync: the calling thread sends while it waits: one element of each stream in turn, without
//!    waiting. If all streams are full, it waits for capacity in one of them or for the end of the
//!    call, and answers host imports.
//! 4. asyncio: each stream has a task (`thalweg/_upstream.py`), which is cancelled when the call
//!    has ended.
//! 5. An exception of the values closes the writer without finishing it and cancels the call, and
//!    the call raises it.
//! 6. If the service stops reading a stream, or the call ends, sending stops without an error.

use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyString};
use thalweg_capi::abi::{TW_ARGUMENT, TW_FOREVER, TW_OK, TW_WOULD_PARK, TwHandle};

use crate::armed::{self, Armed};
use crate::awaitable::{self, Polled, Step};
use crate::client::Caller;
use crate::completion::Completion;
use crate::encode::{self, StreamArgument};
use crate::gil::GilCell;
use crate::handle::Owned;
use crate::kind::{Kind, Shape, Upstream};
use crate::method::{Face, Method};
use crate::results::Wrappers;
use crate::thread_port::ThreadPort;
use crate::{errors, message};

/// After this number of elements, a thread checks for signals and for the end of the call, and lets
/// other threads have the GIL, even if there is capacity. If no Python code runs between the
/// elements, nothing else would do so.
const CHECK_INTERVAL: u32 = 64;

/// The caller's end of a stream or future that is a parameter.
#[pyclass(frozen, module = "thalweg._native")]
pub struct Writer {
    handle: Owned,
    /// The method and the parameter, for messages.
    name: String,
    parameter: String,
    element: Arc<Kind>,
    hash: u64,
    /// The number of elements that were encoded.
    count: GilCell<u64>,
    /// The message of the element that was encoded last. The memory is reused.
    unsent: GilCell<Vec<u8>>,
    /// Whether that element was not sent yet.
    has_unsent: GilCell<bool>,
    armed: GilCell<Option<Armed>>,
    /// The call to cancel with it; 0 if there is none, or it has ended.
    call: GilCell<TwHandle>,
    raised: GilCell<Option<PyErr>>,
}

/// The result of sending an element.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Sending {
    Sent,
    /// The stream is full; the element is kept.
    Full,
    /// The stream has ended and is closed.
    Over,
}

impl Writer {
    /// Encodes the next element.
    fn encode(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = value.py();
        // The buffer is taken out, because encoding can run code that sends here, too.
        let mut buffer = self.unsent.take(py);
        let count = self.count.get(py);
        self.count.set(py, count + 1);
        let place = || format!("{}[{count}]", self.parameter);
        encode::alone(
            py,
            &self.name,
            place,
            &self.element,
            self.hash,
            value,
            &mut buffer,
        )?;
        self.unsent.set(py, buffer);
        self.has_unsent.set(py, true);
        Ok(())
    }

    /// Sends the encoded element, if there is capacity.
    ///
    /// # Errors
    /// `thalweg.BadArgument`: the element is too large. `thalweg.Forked`.
    fn push(&self, py: Python<'_>) -> PyResult<Sending> {
        if self.handle.is_closed() {
            return Ok(Sending::Over);
        }
        let writer = self.handle.number(py)?;
        let element = self.unsent.take(py);
        let mut error = errors::blank();
        // SAFETY: the element has this size, and the function reads it before it returns. The
        // function does not wait.
        let code = unsafe {
            (self.handle.library.table.stream_send)(
                writer,
                element.as_ptr(),
                element.len() as u64,
                0,
                &raw mut error,
            )
        };
        self.unsent.set(py, element);
        if code == TW_WOULD_PARK {
            return Ok(Sending::Full);
        }
        self.has_unsent.set(py, false);
        match code {
            TW_OK => Ok(Sending::Sent),
            TW_ARGUMENT => Err(errors::from_table(py, code, &error)),
            _ => {
                self.handle.close_stream();
                Ok(Sending::Over)
            }
        }
    }

    /// Finishes the stream and closes it.
    fn finish(&self, py: Python<'_>) {
        if let Ok(writer) = self.handle.number(py) {
            // SAFETY: a handle is a number. If the stream has ended in another way, the call
            // reports it.
            unsafe { (self.handle.library.table.stream_finish)(writer, std::ptr::null_mut()) };
        }
        self.handle.close_stream();
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.handle.close_stream();
    }
}

/// Methods for the task that sends.
#[pymethods]
impl Writer {
    /// Sends an element. If there is no capacity, it returns an awaitable.
    fn send<'py>(
        slf: &Bound<'py, Self>,
        value: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let this = slf.get();
        this.encode(value)?;
        match this.push(slf.py())? {
            Sending::Sent | Sending::Over => Ok(None),
            Sending::Full => {
                let room = CapacityWait(slf.clone().unbind());
                awaitable::new(slf.py(), Box::new(room)).map(Some)
            }
        }
    }

    /// Finishes the stream.
    fn end(&self, py: Python<'_>) {
        self.finish(py);
    }

    /// Closes the stream. If it was not finished, the service reads `cancelled` after the last
    /// element. A second call has no effect.
    fn close(&self) {
        self.handle.close_stream();
    }

    /// Whether the stream was closed, or the service has stopped reading.
    #[getter]
    fn closed(&self) -> bool {
        self.handle.is_closed()
    }

    /// The values raised this exception. The call raises it.
    fn fail(&self, py: Python<'_>, raised: Bound<'_, PyAny>) {
        self.handle.close_stream();
        let call = self.call.get(py);
        if call != 0 {
            self.raised.set(py, Some(PyErr::from_value(raised)));
            // SAFETY: the table reports a stale call as an error, and the text is not needed.
            unsafe { (self.handle.library.table.cancel)(call, std::ptr::null_mut()) };
        }
    }
}

/// The step that waits for capacity.
struct CapacityWait(Py<Writer>);

impl Step for CapacityWait {
    fn poll<'py>(&mut self, py: Python<'py>) -> PyResult<Polled<'py>> {
        let writer = self.0.clone_ref(py);
        let writer = writer.get();
        loop {
            match writer.push(py)? {
                Sending::Sent | Sending::Over => return Ok(Polled::Done(py.None().into_bound(py))),
                Sending::Full => {
                    if let Some(future) = armed::wait(py, &writer.handle, &writer.armed)? {
                        return Ok(Polled::Wait(future));
                    }
                }
            }
        }
    }
}

/// The readers of a call's streams, until the call is submitted: rule 1.
pub struct Readers(Vec<Owned>);

impl Readers {
    /// Forgets the readers, which belong to the service now.
    pub fn given(self) {
        for reader in &self.0 {
            let _theirs = reader.take();
        }
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.0.iter().for_each(Owned::close_stream);
    }
}

/// A writer, and the Python value to be sent with it after the submission.
pub type Source<'py> = (Writer, Bound<'py, PyAny>);

/// Creates the streams among the arguments of `method` and puts their readers into the message in
/// `buffer`.
///
/// # Errors
/// `TypeError` for a value that is not iterable; exceptions while the value of a future is encoded.
pub fn open<'py>(
    caller: &Caller<'py>,
    method: &Method,
    streams: Vec<StreamArgument<'py>>,
    face: Face,
    buffer: &mut [u8],
) -> PyResult<(Readers, Vec<Source<'py>>)> {
    let mut readers = Readers(Vec::new());
    let mut sources = Vec::new();
    for StreamArgument {
        parameter,
        place,
        value,
    } in streams
    {
        let field = &method.fields[parameter];
        let Shape::Upstream(up) = &field.kind.shape else {
            continue;
        };
        let parameter = u32::try_from(parameter).unwrap_or(u32::MAX);
        let py = value.py();
        let (mut writer, mut reader, mut error) = (0, 0, errors::blank());
        let library = caller.library;
        // SAFETY: the pointers are ours.
        let code = unsafe {
            (library.table.stream_new)(
                caller.number,
                method.number,
                parameter,
                &raw mut writer,
                &raw mut reader,
                &raw mut error,
            )
        };
        if code != TW_OK {
            return Err(errors::from_table(py, code, &error));
        }
        message::set_handle(buffer, place, reader);
        let owned = |number| Owned::new(library, number, "the stream");
        readers.0.push(owned(reader));
        let writer = Writer {
            handle: owned(writer),
            name: method.name.clone(),
            parameter: field.name.to_string(),
            element: Arc::clone(&up.element),
            hash: up.hash,
            count: GilCell::new(0),
            unsent: GilCell::new(Vec::new()),
            has_unsent: GilCell::new(false),
            armed: GilCell::new(None),
            call: GilCell::new(0),
            raised: GilCell::new(None),
        };
        if let Some(values) = values(&writer, up, value, face)? {
            sources.push((writer, values));
        }
    }
    Ok((readers, sources))
}

/// The remaining elements of an argument.
fn values<'py>(
    writer: &Writer,
    up: &Upstream,
    given: Bound<'py, PyAny>,
    face: Face,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = given.py();
    if up.is_future {
        if let Face::Async = face
            && given.hasattr(intern!(py, "__await__"))?
        {
            return Ok(Some(given));
        }
        // Rule 2. A future without a value is closed.
        if !given.is_instance(Wrappers::of(py)?.no_value.bind(py))? {
            writer.encode(&given)?;
            writer.push(py)?;
        }
        return Ok(None);
    }
    let is_async = match face {
        Face::Sync => false,
        Face::Async => given.hasattr(intern!(py, "__aiter__"))?,
    };
    // A str is an iterable of str, but a caller never means it as a stream of strings.
    let iterator = match given.is_instance_of::<PyString>() {
        true => None,
        false if is_async => return Ok(Some(given)),
        false => given.try_iter().ok(),
    };
    match iterator {
        Some(iterator) => Ok(Some(iterator.into_any())),
        None => {
            let (name, parameter) = (&writer.name, &writer.parameter);
            let got = given.get_type().name()?;
            let text = format!("{name}: {parameter}: expected an iterable, got {got}");
            Err(PyTypeError::new_err(text))
        }
    }
}

/// Sends the next element of a source.
fn turn(writer: &Writer, values: &Bound<'_, PyAny>) -> PyResult<Sending> {
    let py = values.py();
    if !writer.has_unsent.get(py) {
        match values.cast::<PyIterator>()?.clone().next() {
            Some(value) => writer.encode(&value?)?,
            None => {
                writer.finish(py);
                return Ok(Sending::Over);
            }
        }
    }
    writer.push(py)
}

/// Sends the sources of the call `token`: rule 3. Returns the call's completion, if it ended first.
///
/// # Errors
/// Exceptions of the sources and of a signal handler.
pub fn send_all(
    py: Python<'_>,
    port: &ThreadPort,
    token: u64,
    sources: Vec<Source<'_>>,
) -> PyResult<Option<Completion>> {
    let mut sources: Vec<_> = sources.into_iter().map(|source| (source, 0)).collect();
    let ended = rounds(py, port, token, &mut sources);
    for (_, armed) in &sources {
        port.forget(*armed);
    }
    ended
}

/// Each source has the token with which it is armed; 0 if it is not armed.
fn rounds(
    py: Python<'_>,
    port: &ThreadPort,
    token: u64,
    sources: &mut Vec<(Source<'_>, u64)>,
) -> PyResult<Option<Completion>> {
    let mut round = 0_u32;
    while !sources.is_empty() {
        let (mut all_full, mut place) = (true, 0);
        while let Some(((writer, values), armed)) = sources.get(place) {
            match turn(writer, values)? {
                Sending::Sent => all_full = false,
                Sending::Full => {}
                Sending::Over => {
                    port.forget(*armed);
                    drop(sources.remove(place));
                    continue;
                }
            }
            place += 1;
        }
        let mut came = None;
        if all_full {
            if !sources.is_empty() && arm(py, port, sources)? {
                let mut tokens = vec![token];
                tokens.extend(sources.iter().map(|(_, armed)| *armed));
                came = port.wait(py, &tokens, TW_FOREVER)?;
            }
        } else {
            round = round.wrapping_add(1);
            if round.is_multiple_of(CHECK_INTERVAL) {
                py.check_signals()?;
                py.detach(|| ());
                came = port.reap(py, &[token])?;
            }
        }
        match came {
            Some(ended) if ended.token() == token => return Ok(Some(ended)),
            Some(room) => {
                let armed = sources.iter_mut().find(|(_, armed)| *armed == room.token());
                if let Some((_, armed)) = armed {
                    port.forget(std::mem::take(armed));
                }
            }
            None => {}
        }
    }
    Ok(None)
}

/// Asks for capacity in each source. False if one has capacity now.
fn arm(py: Python<'_>, port: &ThreadPort, sources: &mut [(Source<'_>, u64)]) -> PyResult<bool> {
    for ((writer, _), armed) in sources {
        if *armed == 0 {
            *armed = port.token();
            if writer.handle.arm(py, port.number(), *armed)? {
                port.forget(std::mem::take(armed));
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// The tasks that send for a call on asyncio: rule 4. Dropping this cancels them and closes their
/// streams.
#[derive(Default)]
pub struct Tasks(Vec<(Py<Writer>, Py<PyAny>)>);

impl Tasks {
    /// Starts to send the streams of `call`.
    pub fn begin(
        event_loop: &Bound<'_, PyAny>,
        call: TwHandle,
        sources: Vec<Source<'_>>,
    ) -> PyResult<Self> {
        let mut tasks = Self::default();
        if sources.is_empty() {
            return Ok(tasks);
        }
        let py = event_loop.py();
        let begin = py
            .import("thalweg._upstream")?
            .getattr(intern!(py, "begin"))?;
        for (writer, values) in sources {
            writer.call.set(py, call);
            let writer = Bound::new(py, writer)?;
            let task = begin.call1((event_loop, &writer, values))?;
            tasks.0.push((writer.unbind(), task.unbind()));
        }
        Ok(tasks)
    }

    /// The exception of one of the sources.
    pub fn raised(&self, py: Python<'_>) -> Option<PyErr> {
        self.0
            .iter()
            .find_map(|(writer, _)| writer.get().raised.take(py))
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        if self.0.is_empty() {
            return;
        }
        Python::try_attach(|py| {
            // It can be dropped while an exception is being raised, which Python code must not see.
            let underway = PyErr::take(py);
            for (writer, task) in &self.0 {
                let writer = writer.get();
                writer.call.set(py, 0);
                writer.raised.set(py, None);
                writer.handle.close_stream();
                // A loop that is closed refuses.
                let _refused = task.call_method0(py, intern!(py, "cancel"));
            }
            if let Some(underway) = underway {
                underway.restore(py);
            }
        });
    }
}
