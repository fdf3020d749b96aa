//! `with thalweg.together():` the calls that a loop makes in one of its turns, handed over by one submission.
//!
//! 1. While such a block is open on a loop, a call on the loop is kept by its port, and the port is handed over when the block
//!    is let go of: behind the tasks that were made inside of it, for each of them has its first turn before.
//! 2. A port that keeps something is handed over in the loop's next turn in any case, so a block whose body awaits holds up
//!    nobody.
//! 3. What could tell a call that was kept from one that was made is preceded by handing over: a call that gives something
//!    away, closing a client or a resource, a wait of sync code on the loop's thread.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::loop_port::{self, running_loop};

/// The loops with open blocks, by their addresses: one entry a block, which is gone before its loop is.
static BLOCKS: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// As many as there are, to be looked at without the lock.
static COUNT: AtomicUsize = AtomicUsize::new(0);

fn blocks() -> MutexGuard<'static, Vec<usize>> {
    BLOCKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Is a block open on the loop at this address?
pub fn is_open(loop_at: usize) -> bool {
    COUNT.load(Ordering::Relaxed) > 0 && blocks().contains(&loop_at)
}

/// Hands over what the loop that runs on this thread keeps.
///
/// # Errors
/// What the loop raises where it is told of a call that was refused.
pub fn hand_over(py: Python<'_>) -> PyResult<()> {
    if COUNT.load(Ordering::Relaxed) == 0 {
        return Ok(());
    }
    match running_loop(py) {
        Ok(event_loop) => loop_port::hand_over(py, event_loop.as_ptr() as usize),
        // No loop runs here.
        Err(_) => Ok(()),
    }
}

/// Has the running loop hand over in its next turn.
///
/// # Errors
/// What the loop raises.
pub fn hand_over_soon(event_loop: &Bound<'_, PyAny>) -> PyResult<()> {
    static FUNCTION: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = event_loop.py();
    let make =
        || -> PyResult<Py<PyAny>> { Ok(wrap_pyfunction!(next_turn, py)?.into_any().unbind()) };
    let function = FUNCTION.get_or_try_init(py, make)?;
    event_loop.call_method1(intern!(py, "call_soon"), (function,))?;
    Ok(())
}

#[pyfunction]
fn next_turn(py: Python<'_>) -> PyResult<()> {
    loop_port::hand_over(py, running_loop(py)?.as_ptr() as usize)
}

/// A block whose calls go together.
#[pyclass(frozen, name = "together", module = "thalweg")]
pub struct Together(Mutex<Option<usize>>);

impl Together {
    fn close(&self) {
        let mine = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(loop_at) = mine {
            let mut blocks = blocks();
            if let Some(place) = blocks.iter().position(|block| *block == loop_at) {
                blocks.swap_remove(place);
            }
            COUNT.store(blocks.len(), Ordering::Relaxed);
        }
    }
}

#[pymethods]
impl Together {
    #[new]
    fn new() -> Self {
        Self(Mutex::new(None))
    }

    fn __enter__(&self, py: Python<'_>) -> PyResult<()> {
        let loop_at = running_loop(py)?.as_ptr() as usize;
        let mut mine = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if mine.is_some() {
            return Err(PyRuntimeError::new_err("this block is open already"));
        }
        *mine = Some(loop_at);
        let mut blocks = blocks();
        blocks.push(loop_at);
        COUNT.store(blocks.len(), Ordering::Relaxed);
        Ok(())
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(slf: &Bound<'_, Self>, _raised: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = slf.py();
        let let_go = slf.getattr(intern!(py, "_let_go"))?;
        running_loop(py)?.call_method1(intern!(py, "call_soon"), (let_go,))?;
        Ok(())
    }

    /// The tasks of the block have had their first turn.
    fn _let_go(&self, py: Python<'_>) -> PyResult<()> {
        self.close();
        next_turn(py)
    }
}

impl Drop for Together {
    /// A loop that is closed drops what it was to call.
    fn drop(&mut self) {
        self.close();
    }
}
