//! Log records of the libraries, for Python's `logging`.
//!
//! 1. A library calls its sink on its own threads. These never attach to the interpreter: a thread
//!    that waits for the GIL would delay the service, and could deadlock with a thread that has the
//!    GIL and waits for the service; while the interpreter shuts down, it would never return. So
//!    the sink only appends to a queue. A thread of Python takes the records out (`_log.py`).
//! 2. The queue is bounded. Records that do not fit are counted, and reported with the next ones.
//! 3. There is one queue at a time. It is the sink of all libraries that are open, and of those that
//!    are opened later. Each sink owns a reference to the queue.
//! 4. A forked child begins without a queue. The parent's may be locked, so it is left alone.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use thalweg_capi::abi::{TW_LOG_ERROR, TW_LOG_INFO, TW_LOG_WARNING, TW_OK, TwLogRecord, TwTable};

use crate::{errors, fork, library};

/// The maximum number of records in the queue. A reader that is this far behind misses the rest.
const CAPACITY: usize = 1024;

/// The levels of `logging`.
const ERROR: u32 = 40;
const WARNING: u32 = 30;
const INFO: u32 = 20;

/// Level, target, message, and the seconds since 1970.
type Entry = (u32, String, String, f64);

#[derive(Default)]
struct State {
    entries: VecDeque<Entry>,
    left_out: u64,
    is_closed: bool,
}

#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, entry: Entry) {
        let mut state = self.lock();
        if state.entries.len() == CAPACITY {
            state.left_out += 1;
        } else {
            state.entries.push_back(entry);
            self.changed.notify_one();
        }
    }

    /// Waits for records. `None` if the queue is closed and empty.
    fn take(&self) -> Option<Vec<Entry>> {
        let mut state = self.lock();
        while state.entries.is_empty() && !state.is_closed {
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        let mut entries: Vec<_> = state.entries.drain(..).collect();
        let left_out = std::mem::take(&mut state.left_out);
        if let (true, Some(last)) = (left_out > 0, entries.last()) {
            let message = format!("{left_out} log records were left out");
            entries.push((WARNING, "log".to_owned(), message, last.3));
        }
        (!entries.is_empty()).then_some(entries)
    }

    fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }
}

/// Rule 3: the queue, its level, and the process that made it. Locked with the GIL held, and never
/// while Python code runs.
static CURRENT: Mutex<Option<(Arc<Queue>, u32, u64)>> = Mutex::new(None);

fn current() -> MutexGuard<'static, Option<(Arc<Queue>, u32, u64)>> {
    CURRENT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// # Safety
/// `ctx` is the queue of `listen`, and `record` is valid.
unsafe extern "C" fn receive(ctx: *mut c_void, record: *const TwLogRecord) {
    // SAFETY: the caller's promise.
    let (queue, record) = unsafe { (&*ctx.cast::<Queue>(), &*record) };
    let text = |data: *const std::ffi::c_char, size: usize| {
        if size == 0 {
            return String::new();
        }
        // SAFETY: the table guarantees that this memory is readable until the call returns.
        let bytes = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), size) };
        String::from_utf8_lossy(bytes).into_owned()
    };
    let level = match record.level {
        TW_LOG_ERROR => ERROR,
        TW_LOG_WARNING => WARNING,
        _ => INFO,
    };
    let message = usize::try_from(record.message_size).unwrap_or_default();
    #[expect(clippy::cast_precision_loss, reason = "`logging` has times as floats")]
    let seconds = record.time_ns as f64 / 1e9;
    queue.push((
        level,
        text(record.target, record.target_size as usize),
        text(record.message, message),
        seconds,
    ));
}

/// # Safety
/// `ctx` is the queue of `listen`, which the library owns.
unsafe extern "C" fn drop_queue(ctx: *mut c_void) {
    // SAFETY: the caller's promise.
    drop(unsafe { Arc::from_raw(ctx.cast::<Queue>()) });
}

/// Makes the queue the sink of a library.
fn listen(py: Python<'_>, table: &TwTable, queue: &Arc<Queue>, level: u32) -> PyResult<()> {
    let ctx = Arc::into_raw(Arc::clone(queue)).cast_mut().cast::<c_void>();
    // A pointer is not `Send`, and the closure below does not need the GIL.
    let (address, mut error) = (ctx.expose_provenance(), errors::blank());
    let code = py.detach(|| {
        let ctx = std::ptr::with_exposed_provenance_mut(address);
        // SAFETY: both functions accept any thread, and the library owns the reference.
        unsafe { (table.log_set_sink)(Some(receive), ctx, Some(drop_queue), level, &raw mut error) }
    });
    if code == TW_OK {
        return Ok(());
    }
    // SAFETY: it was refused, so the reference is still ours.
    unsafe { drop_queue(ctx) };
    Err(errors::from_table(py, code, &error))
}

/// Rule 3: passes the records of a library that was just opened to the queue, if there is one.
///
/// # Errors
/// The errors of the table.
pub fn attach(py: Python<'_>, table: &TwTable) -> PyResult<()> {
    let known = current().clone();
    match known {
        Some((queue, level, epoch)) if epoch == fork::epoch() => listen(py, table, &queue, level),
        _ => Ok(()),
    }
}

/// Receives the log records of all libraries, from a level of `logging` on.
#[pyclass(frozen, module = "thalweg._native")]
pub struct LogQueue {
    queue: Arc<Queue>,
    epoch: u64,
}

#[pymethods]
impl LogQueue {
    #[new]
    fn new(py: Python<'_>, level: u32) -> PyResult<Self> {
        let level = if level <= INFO {
            TW_LOG_INFO
        } else if level <= WARNING {
            TW_LOG_WARNING
        } else {
            TW_LOG_ERROR
        };
        let (queue, epoch) = (Arc::<Queue>::default(), fork::epoch());
        *current() = Some((Arc::clone(&queue), level, epoch));
        for library in library::opened(py) {
            listen(py, library.table, &queue, level)?;
        }
        Ok(Self { queue, epoch })
    }

    /// Waits for records and returns them: level, target, message, time. `None` once it is closed.
    fn take(&self, py: Python<'_>) -> Option<Vec<Entry>> {
        py.detach(|| self.queue.take())
    }

    /// Stops receiving. Records that have arrived can still be taken.
    fn close(&self, py: Python<'_>) {
        if self.epoch != fork::epoch() {
            return;
        }
        *current() = None;
        for library in library::opened(py) {
            let table = library.table;
            py.detach(|| {
                let no_error = std::ptr::null_mut();
                // SAFETY: without a callback, the other arguments are ignored.
                unsafe { (table.log_set_sink)(None, std::ptr::null_mut(), None, 0, no_error) }
            });
        }
        self.queue.close();
    }
}
