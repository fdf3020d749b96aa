//! Waiting for a stream on a loop: it is armed on the running loop's port.

use std::sync::Arc;

use pyo3::prelude::*;

use crate::gil::GilCell;
use crate::handle::Owned;
use crate::loop_port::LoopPort;

/// A stream's place on a loop's port, until the port is closed or the stream dropped.
pub struct Armed {
    port: Arc<LoopPort>,
    token: u64,
}

impl Drop for Armed {
    fn drop(&mut self) {
        if self.port.is_open() {
            self.port.give_up(self.token);
        }
    }
}

/// A future of the running loop that is done when `stream` has something, or room; `None`: it has now. `last` is where it
/// was armed last: it stays armed when a wait is cancelled, and the next wait uses that.
pub fn wait<'py>(
    py: Python<'py>,
    stream: &Owned,
    last: &GilCell<Option<Armed>>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let (event_loop, port) = LoopPort::of_running_loop(py, stream.library)?;
    // An arming that nothing came of yet still stands.
    let standing = last
        .take(py)
        .filter(|armed| Arc::ptr_eq(&armed.port, &port));
    let standing = standing.filter(|armed| port.arrived(armed.token).is_none());
    let (armed, ready) = match standing {
        Some(armed) => (armed, false),
        None => {
            let armed = Armed {
                token: port.reserve(),
                port: Arc::clone(&port),
            };
            let ready = stream.arm(py, port.port, armed.token)?;
            (armed, ready)
        }
    };
    if ready {
        return Ok(None);
    }
    let future = port.future(&event_loop, armed.token);
    last.set(py, Some(armed));
    future.map(Some)
}
