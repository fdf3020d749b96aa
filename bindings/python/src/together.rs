//! `with thalweg.together():` submits the calls of one iteration of a loop together.
//!
//! 1. While such a block is open on a loop, the loop's port keeps each new call. The port submits
//!    them when the block ends: after the first step of the tasks that were created in the block.
//! 2. A port that keeps calls submits them in the loop's next iteration in any case, so a block
//!    whose body awaits delays nothing.
//! 3. Operations that would reveal that a call was not submitted yet are preceded by the
//!    submission: a call that gives a handle away, closing a client or a resource, a wait of sync
//!    code on the loop's thread.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::loop_port::{self, running_loop};

/// The loops with open blocks, by address: one entry per block. A block ends before its loop.
static BLOCKS: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// The number of entries, to be read without the lock.
static COUNT: AtomicUsize = AtomicUsize::new(0);

fn blocks() -> MutexGuard<'static, Vec<usize>> {
    BLOCKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a block is open on the loop at this address.
pub fn is_open(loop_at: usize) -> bool {
    is_used() && blocks().contains(&loop_at)
}

/// Whether a block is open on any loop.
pub fn is_used() -> bool {
    COUNT.load(Ordering::Relaxed) > 0
}

/// Submits the kept calls of the loop that runs on this thread.
///
/// # Errors
/// An exception of the loop while it is notified of a refused call.
pub fn hand_over(py: Python<'_>) -> PyResult<()> {
    if !is_used() {
        return Ok(());
    }
    match running_loop(py) {
        Ok(event_loop) => loop_port::hand_over(py, event_loop.as_ptr() as usize),
        // No loop runs here.
        Err(_) => Ok(()),
    }
}

/// Makes the running loop submit the kept calls in its next iteration.
///
/// # Errors
/// The exceptions of the loop.
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

/// A block whose calls are submitted together.
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

    /// Ends the block: its tasks have run their first step.
    fn _let_go(&self, py: Python<'_>) -> PyResult<()> {
        self.close();
        next_turn(py)
    }
}

impl Drop for Together {
    /// A loop that is closed drops its scheduled callbacks, and this object with them.
    fn drop(&mut self) {
        self.close();
    }
}
