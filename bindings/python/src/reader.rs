//! One stream and its open batch, shared by sync and async streams.
//!
//! 1. A stream has at most one open batch. The next acquire releases it, and so do `release`,
//!    leaving `with`, closing the stream, and the end of the batch object.
//! 2. A batch is identified by its serial number. A view may read only while its batch is the open
//!    one, which is checked at each access with the GIL held.
//! 3. Decoding a value with parts can run other code (the garbage collector's finalizers), and that
//!    code may release the batch or close the stream. Decoding therefore *pins* the batch: its
//!    memory is returned when the last pin is dropped.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyType;
use thalweg_capi::abi::{
    TW_BATCH_END, TW_CLOSED, TW_ERROR, TW_INTERRUPTED, TW_OK, TW_TIMED_OUT, TW_WOULD_PARK, TwBatch,
    TwError, TwHandle, TwTable,
};

use crate::decode::{DecodeError, Decoder};
use crate::errors;
use crate::gil::GilCell;
use crate::handle::Owned;
use crate::kind::Kind;
use crate::message::{self, Region};
use crate::thread_port::ThreadPort;

/// The reader of a stream.
pub struct Reader {
    /// The stream.
    pub handle: Owned,
    /// The method that returned it, for messages.
    pub name: String,
    /// The type of its records.
    pub element: Arc<Kind>,
    /// The class of views of a record. `None`: batches contain values.
    pub view: Option<Arc<Py<PyType>>>,
    /// The error type of the function that returned it. `None`: the function has none.
    error: Option<Arc<StreamError>>,
    /// Its client has a host: a waiting thread or task also answers host imports.
    serves: bool,
    /// The serial number of the open batch; 0 if there is none.
    open: GilCell<u64>,
    /// The number of its records.
    count: GilCell<u32>,
    last_serial: GilCell<u64>,
    pins: GilCell<u32>,
    /// Whether to close the stream or release its batch when the last pin is dropped.
    after_pins: GilCell<AfterPins>,
    /// A thread or a task is waiting for the stream.
    reading: GilCell<bool>,
    lost: GilCell<u64>,
    /// Why the last of them were lost.
    gap_reason: GilCell<u32>,
}

/// The error type of the function that returned a stream.
pub struct StreamError {
    /// `None`: an error without a payload.
    pub kind: Option<Arc<Kind>>,
    /// The exception class, if the payload's class is not an exception.
    pub class: Option<Py<PyType>>,
    /// The layout hash of the error's message.
    pub hash: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum AfterPins {
    Nothing,
    Release,
    Close(TwHandle),
}

/// The result of acquiring a batch.
pub enum Acquired {
    /// The batch, and its serial number.
    Batch(TwBatch, u64),
    /// The stream has ended regularly, or was closed on this side.
    End,
    /// No record is available now.
    WouldPark,
}

/// Keeps the open batch's memory: rule 3.
pub struct Pin<'a, 'py> {
    reader: &'a Reader,
    py: Python<'py>,
}

impl Reader {
    /// A reader of `handle`, a stream of `element` that the method `name` returned, which may fail
    /// with `error`. `serves`: its client has a host.
    pub fn new(
        handle: Owned,
        name: &str,
        element: Arc<Kind>,
        view: Option<Arc<Py<PyType>>>,
        error: Option<Arc<StreamError>>,
        serves: bool,
    ) -> Self {
        Self {
            error,
            serves,
            handle,
            name: name.to_owned(),
            element,
            view,
            open: GilCell::new(0),
            count: GilCell::new(0),
            last_serial: GilCell::new(0),
            pins: GilCell::new(0),
            after_pins: GilCell::new(AfterPins::Nothing),
            reading: GilCell::new(false),
            lost: GilCell::new(0),
            gap_reason: GilCell::new(0),
        }
    }

    /// Another reader of the same stream.
    ///
    /// # Errors
    /// `thalweg.Closed` if it is closed.
    pub fn tee(&self, py: Python<'_>) -> PyResult<Self> {
        let stream = self.handle.number(py)?;
        let (mut reader, mut error) = (0, errors::blank());
        let library = self.handle.library;
        // SAFETY: both pointers are ours.
        let code = unsafe { (library.table.stream_tee)(stream, &raw mut reader, &raw mut error) };
        if code != TW_OK {
            return Err(errors::from_table(py, code, &error));
        }
        let owned = Owned::new(library, reader, "the stream");
        let (element, view) = (Arc::clone(&self.element), self.view.clone());
        let error = self.error.clone();
        Ok(Self::new(
            owned,
            &self.name,
            element,
            view,
            error,
            self.serves,
        ))
    }

    /// Whether `serial` is the open batch.
    pub fn is_open(&self, py: Python<'_>, serial: u64) -> bool {
        self.open.get(py) == serial
    }

    /// The number of records that were lost so far.
    pub fn lost(&self, py: Python<'_>) -> u64 {
        self.lost.get(py)
    }

    /// Why the last of them were lost: `TW_GAP_*`, or 0 if none was lost.
    pub fn gap_reason(&self, py: Python<'_>) -> u32 {
        self.gap_reason.get(py)
    }

    fn count_lost(&self, py: Python<'_>, batch: &TwBatch) {
        if batch.lost_before > 0 {
            self.lost.set(py, self.lost.get(py) + batch.lost_before);
            self.gap_reason.set(py, batch.gap_reason);
        }
    }

    /// Starts to read. There is one reader at a time, until [`Self::end`].
    ///
    /// # Errors
    /// `thalweg.BadArgument` if another thread or task is reading.
    pub fn begin(&self, py: Python<'_>) -> PyResult<()> {
        if self.reading.replace(py, true) {
            return Err(errors::argument(
                py,
                &format!("{}: somebody else reads this stream now", self.name),
            ));
        }
        Ok(())
    }

    /// The current reader stops reading.
    pub fn end(&self, py: Python<'_>) {
        self.reading.set(py, false);
    }

    /// Acquires at most `max` records. Waits until `deadline_ns` with the GIL released; 0 means not
    /// to wait.
    ///
    /// # Errors
    /// The outcome of the stream, `thalweg.TimedOut`, or an exception of a signal handler; the
    /// stream is then closed.
    pub fn acquire(&self, py: Python<'_>, max: u32, deadline_ns: u64) -> PyResult<Acquired> {
        self.release(py, self.open.get(py));
        if self.handle.is_closed() {
            return Ok(Acquired::End);
        }
        let stream = self.handle.number(py)?;
        if self.pins.get(py) > 0 {
            return Err(errors::argument(
                py,
                &format!("{}: a batch is being read", self.name),
            ));
        }
        let table = self.handle.library.table;
        if self.serves && deadline_ns != 0 {
            let port = ThreadPort::of(py, self.handle.library)?;
            if let Err(raised) = port.wait_for_stream(py, self, deadline_ns) {
                if self.handle.is_closed() {
                    return Ok(Acquired::End);
                }
                self.close(py);
                return Err(raised);
            }
        }
        loop {
            if deadline_ns != 0
                && let Err(raised) = py.check_signals()
            {
                self.close(py);
                return Err(raised);
            }
            let (mut batch, mut error) = (blank(), errors::blank());
            let mut acquire = || batch.acquire(table, stream, max, deadline_ns, &mut error);
            let code = if deadline_ns == 0 {
                acquire()
            } else {
                py.detach(acquire)
            };
            let batch = batch.0;
            return match code {
                TW_OK => Ok(self.opened(py, batch)),
                TW_INTERRUPTED => continue,
                _ if batch.flags & TW_BATCH_END == 0 && code == TW_WOULD_PARK => {
                    Ok(Acquired::WouldPark)
                }
                _ if batch.flags & TW_BATCH_END == 0 && code == TW_TIMED_OUT => {
                    Err(errors::from_table(py, code, &error))
                }
                _ if self.handle.is_closed() => Ok(Acquired::End),
                _ => {
                    self.count_lost(py, &batch);
                    let ended = match code {
                        TW_CLOSED => Ok(Acquired::End),
                        TW_ERROR => Err(self.service_error(py, stream, &error)),
                        _ => Err(errors::from_table(py, code, &error)),
                    };
                    self.close(py);
                    ended
                }
            };
        }
    }

    /// The exception of a stream that ended with the service's own error: the one that the call
    /// would have raised. `ended` is the table's error.
    fn service_error(&self, py: Python<'_>, stream: TwHandle, ended: &TwError) -> PyErr {
        let (mut data, mut size, mut error) = (std::ptr::null(), 0, errors::blank());
        let table = self.handle.library.table;
        // SAFETY: the pointers are ours.
        let code =
            unsafe { (table.stream_error)(stream, &raw mut data, &raw mut size, &raw mut error) };
        let Some(of) = &self.error else {
            return errors::from_table(py, TW_ERROR, ended);
        };
        if code != TW_OK {
            return errors::from_table(py, code, &error);
        }
        // The message is copied, because decoding can run other code, which can close the stream
        // (rule 3).
        // SAFETY: the message belongs to the stream. Closing the stream needs the GIL, which this
        // thread holds.
        let message = unsafe { std::slice::from_raw_parts(data, size as usize) }.to_vec();
        // SAFETY: the copy outlives the region.
        let region = unsafe { Region::new(message.as_ptr(), message.len()) };
        let payload = match &of.kind {
            None => Ok(py.None().into_bound(py)),
            Some(kind) => message::root(region, of.hash, kind.size)
                .map_err(DecodeError::from)
                .and_then(|root| {
                    let tails_from = root.saturating_add(kind.size);
                    Decoder::whole(py, region, tails_from, None).value(kind, root)
                })
                .map_err(|undecodable| undecodable.raise(py, &self.name)),
        };
        let class = of.class.as_ref().map(|class| class.bind(py));
        match payload {
            Ok(payload) => errors::service(py, payload, class, false),
            Err(raised) => raised,
        }
    }

    fn opened(&self, py: Python<'_>, batch: TwBatch) -> Acquired {
        let serial = self.last_serial.get(py) + 1;
        self.last_serial.set(py, serial);
        if self.handle.is_closed() {
            // Another thread closed the stream meanwhile, so the memory may be freed.
            return Acquired::End;
        }
        self.open.set(py, serial);
        self.count.set(py, batch.count);
        self.count_lost(py, &batch);
        Acquired::Batch(batch, serial)
    }

    /// Releases the batch `serial`, if it is the open one. Its views are invalid afterwards.
    pub fn release(&self, py: Python<'_>, serial: u64) {
        if serial == 0 || self.open.get(py) != serial {
            return;
        }
        self.open.set(py, 0);
        if self.pins.get(py) > 0 {
            if self.after_pins.get(py) == AfterPins::Nothing {
                self.after_pins.set(py, AfterPins::Release);
            }
        } else if let Ok(stream) = self.handle.number(py) {
            self.release_all(py, stream);
        }
    }

    fn release_all(&self, py: Python<'_>, stream: TwHandle) {
        // SAFETY: a handle is a number. If the stream was closed meanwhile, there is no batch to
        // release.
        unsafe {
            (self.handle.library.table.stream_release)(
                stream,
                self.count.get(py),
                std::ptr::null_mut(),
            )
        };
    }

    /// Closes the stream. The open batch is invalid afterwards. A second call has no effect.
    pub fn close(&self, py: Python<'_>) {
        self.open.set(py, 0);
        if let Some(stream) = self.handle.take() {
            if self.pins.get(py) > 0 {
                self.after_pins.set(py, AfterPins::Close(stream));
            } else {
                self.close_handle(stream);
            }
        }
    }

    fn close_handle(&self, stream: TwHandle) {
        // SAFETY: a handle is a number, and the table reports a stale one as an error. Closing
        // posts a message and does not wait.
        unsafe { (self.handle.library.table.stream_close)(stream, std::ptr::null_mut()) };
    }

    /// Keeps the open batch's memory until the pin is dropped.
    pub fn pin<'a, 'py>(&'a self, py: Python<'py>) -> Pin<'a, 'py> {
        self.pins.set(py, self.pins.get(py) + 1);
        Pin { reader: self, py }
    }
}

impl Drop for Pin<'_, '_> {
    fn drop(&mut self) {
        let (reader, py) = (self.reader, self.py);
        let pins = reader.pins.get(py) - 1;
        reader.pins.set(py, pins);
        if pins == 0 {
            match reader.after_pins.replace(py, AfterPins::Nothing) {
                AfterPins::Nothing => {}
                AfterPins::Release => {
                    if let Ok(stream) = reader.handle.number(py) {
                        reader.release_all(py, stream);
                    }
                }
                AfterPins::Close(stream) => reader.close_handle(stream),
            }
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.handle.close_stream();
    }
}

/// A batch for the table to fill. It is `Send`, so that it can be filled with the GIL released.
struct Blank(TwBatch);

// SAFETY: a batch consists of numbers and pointers into the library's memory, and belongs to no
// thread.
unsafe impl Send for Blank {}

impl Blank {
    fn acquire(
        &mut self,
        table: &TwTable,
        stream: TwHandle,
        max: u32,
        deadline_ns: u64,
        error: &mut TwError,
    ) -> u32 {
        // SAFETY: the pointers are ours. The table reports a closed or stale handle as an error.
        unsafe { (table.stream_acquire)(stream, max, deadline_ns, &raw mut self.0, error) }
    }
}

fn blank() -> Blank {
    Blank(TwBatch {
        base: std::ptr::null(),
        slots: std::ptr::null(),
        count: 0,
        stride: 0,
        first_seq: 0,
        lost_before: 0,
        gap_reason: 0,
        flags: 0,
        size: 0,
    })
}
