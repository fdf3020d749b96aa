//! The Python peer that uses PyO3: an await through pyo3-async-runtimes, and a stream of ticks as
//! an iterator written by hand.

use std::thread;

use crossbeam_channel::Receiver;
use pyo3::prelude::*;

/// An await that does nothing, on a tokio worker.
#[pyfunction]
fn nop(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    pyo3_async_runtimes::tokio::future_into_py(py, async { Ok(()) })
}

/// The same as in `crates/bench/wit/lab.wit`.
#[pyclass(frozen, get_all)]
struct Tick {
    number: u64,
    at: u64,
    bid: u64,
    ask: u64,
    bid_size: u64,
    ask_size: u64,
    last: u64,
    volume: u64,
}

/// The same as in `crates/bench/service/src/ticks.rs`.
fn tick(n: u64) -> Tick {
    let bid = 10_000 + n % 97;
    Tick {
        number: n,
        at: 0,
        bid,
        ask: bid + 1,
        bid_size: n % 7,
        ask_size: n % 11,
        last: bid,
        volume: 3 * n,
    }
}

/// Ticks that a thread sends through a channel of capacity 8,192.
#[pyclass(frozen)]
struct Ticks {
    receiver: Receiver<Tick>,
}

#[pymethods]
impl Ticks {
    fn __iter__(of: PyRef<'_, Self>) -> PyRef<'_, Self> {
        of
    }

    /// A tick that is ready is taken at once; the interpreter is released only to wait.
    fn __next__(&self, py: Python<'_>) -> Option<Tick> {
        match self.receiver.try_recv() {
            Ok(tick) => Some(tick),
            Err(_) => py.detach(|| self.receiver.recv().ok()),
        }
    }
}

/// Ticks number 0 to `count - 1`.
#[pyfunction]
fn ticks(count: u64) -> Ticks {
    let (sender, receiver) = crossbeam_channel::bounded(8192);
    thread::spawn(move || (0..count).try_for_each(|n| sender.send(tick(n))));
    Ticks { receiver }
}

#[pymodule]
fn peer_pyo3(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(nop, module)?)?;
    module.add_function(wrap_pyfunction!(ticks, module)?)
}
