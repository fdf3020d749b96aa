//! Waiting for a stream on a loop: it is armed on the running loop's port.

use std::sync::Arc;

use pyo3::prelude::*;

use crate::gil::GilCell;
use crate::handle::Owned;
use crate::loop_port::LoopPort;

/// The registration of a stream at a loop's port. It lasts until the port is closed or the stream
/// is dropped.
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

/// A future of the running loop that is done when `stream` has a record, or capacity. `None`: it
/// has one now. `last` is the loop where the stream was armed last: it stays armed when a wait is
/// cancelled, and the next wait uses that.
pub fn wait<'py>(
    py: Python<'py>,
    stream: &Owned,
    last: &GilCell<Option<Armed>>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let (event_loop, port) = LoopPort::of_running_loop(py, stream.library)?;
    // The stream may still be armed, if no notification has arrived since.
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
