//! Streams and futures that are parameters: what Python sends.
//!
//! 1. Each is made for one call. Its reader goes into the call's message and is the service's once the call was submitted;
//!    where the call is refused, both ends are closed.
//! 2. A future's value is sent before the submission. What is awaited for it is sent as a stream's element is.
//! 3. Sync: the thread that calls sends, while it waits: one element of each stream in turn, none of which waits. Where all
//!    are full, it waits for room in one of them or for the call's end, and answers what the service asks.
//! 4. asyncio: a task each (`thalweg/_upstream.py`), which is cancelled when the call has ended.
//! 5. What the values raise closes the writer without an end, cancels the call, and is what the call raises.
//! 6. A stream that the service has enough of, or that ended with its call, is sent no more, and nothing is said of it.

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
use crate::encode::{self, SentUp};
use crate::gil::GilCell;
use crate::handle::Owned;
use crate::kind::{Kind, Shape, Upstream};
use crate::method::{Face, Method};
use crate::results::Wrappers;
use crate::thread_port::ThreadPort;
use crate::{errors, message};

/// After so many turns a thread looks for signals and for the call's end, and lets others have the GIL, although there is room:
/// where no code of Python runs between the elements nobody else does.
const LOOK: u32 = 64;

/// The caller's end of one of them.
#[pyclass(frozen, module = "thalweg._native")]
pub struct Writer {
    handle: Owned,
    /// Of whose call, and the parameter: for messages.
    name: String,
    parameter: String,
    element: Arc<Kind>,
    hash: u64,
    /// Elements that were encoded.
    count: GilCell<u64>,
    /// The message of the element that was encoded last; its memory is used again.
    unsent: GilCell<Vec<u8>>,
    /// That was not sent yet.
    has_unsent: GilCell<bool>,
    armed: GilCell<Option<Armed>>,
    /// The call that it is cancelled with; 0: none, or it has ended.
    call: GilCell<TwHandle>,
    raised: GilCell<Option<PyErr>>,
}

/// What became of an element.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Sending {
    Sent,
    /// There is no room; it is kept.
    Full,
    /// The stream has ended, and is closed.
    Over,
}

impl Writer {
    /// Encodes the next element.
    fn encode(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = value.py();
        // Taken out: encoding can run code that sends here, too.
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

    /// Sends what was encoded, if there is room.
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
        // SAFETY: the element has so many bytes and is read before the function returns, which does not wait.
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

    /// Says that nothing more comes, and closes it.
    fn finish(&self, py: Python<'_>) {
        if let Ok(writer) = self.handle.number(py) {
            // SAFETY: a handle is a number. How else it has ended is the call's to say.
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

/// For the task that sends.
#[pymethods]
impl Writer {
    /// Sends an element; what is to be awaited, if there is no room.
    fn send<'py>(
        slf: &Bound<'py, Self>,
        value: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let this = slf.get();
        this.encode(value)?;
        match this.push(slf.py())? {
            Sending::Sent | Sending::Over => Ok(None),
            Sending::Full => {
                let room = Room(slf.clone().unbind());
                awaitable::new(slf.py(), Box::new(room)).map(Some)
            }
        }
    }

    /// Nothing more comes.
    fn end(&self, py: Python<'_>) {
        self.finish(py);
    }

    /// Without an end, the service has `cancelled` behind what was sent. Closing twice is fine.
    fn close(&self) {
        self.handle.close_stream();
    }

    /// Was it closed, or has the service enough?
    #[getter]
    fn closed(&self) -> bool {
        self.handle.is_closed()
    }

    /// The values raised this: it is what the call raises.
    fn fail(&self, py: Python<'_>, raised: Bound<'_, PyAny>) {
        self.handle.close_stream();
        let call = self.call.get(py);
        if call != 0 {
            self.raised.set(py, Some(PyErr::from_value(raised)));
            // SAFETY: a stale call is an error of the table, and its words are of no use here.
            unsafe { (self.handle.library.table.cancel)(call, std::ptr::null_mut()) };
        }
    }
}

/// The step that waits for room.
struct Room(Py<Writer>);

impl Step for Room {
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

/// The readers of a call's streams, until it was submitted: rule 1.
pub struct Readers(Vec<Owned>);

impl Readers {
    /// They are the service's now.
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

/// What is sent after the submission: into a writer, what was given for it.
pub type Source<'py> = (Writer, Bound<'py, PyAny>);

/// Makes the streams among the arguments of `method` and puts their readers into the message in `buffer`.
///
/// # Errors
/// `TypeError` for what cannot be iterated, and what encoding a future's value raises.
pub fn open<'py>(
    caller: &Caller<'py>,
    method: &Method,
    streams: Vec<SentUp<'py>>,
    face: Face,
    buffer: &mut [u8],
) -> PyResult<(Readers, Vec<Source<'py>>)> {
    let mut readers = Readers(Vec::new());
    let mut sources = Vec::new();
    for SentUp {
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

/// What is still to be sent of what was given.
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
        // Rule 2. Without a value it is closed.
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
    // A str is an iterable of str, and a stream of strings is never meant by it.
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

/// One turn of a source: the next element.
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

/// Sends the sources of the call `token`: rule 3. Its completion, where it ended before they did.
///
/// # Errors
/// What they raised, and what a signal handler did.
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

/// Each source stands with the token that it is armed with; 0: it is not.
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
            if round.is_multiple_of(LOOK) {
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

/// Asks for room in each; false: there is some now.
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

/// The tasks that send for a call of asyncio: rule 4. Dropped, they are cancelled, and what they send to is closed.
#[derive(Default)]
pub struct Tasks(Vec<(Py<Writer>, Py<PyAny>)>);

impl Tasks {
    /// Begins to send what `call` was given.
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

    /// What the values of one of them raised.
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
            // It can be dropped while an exception is on its way, which code of Python must not see.
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
