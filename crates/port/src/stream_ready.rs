//! Completions that report to a host that a stream is ready.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};

use crate::code::Failure;
use crate::completion::Completion;
use crate::port::Port;
use crate::stream::{StreamCore, UpstreamCore};

/// Wakes a reader that waits through a port. It has a reserved slot there, and releases it if it is
/// dropped before it was woken.
struct PortWaker {
    port: Arc<Port>,
    token: u64,
    handle: u64,
    is_announced: AtomicBool,
}

impl Drop for PortWaker {
    fn drop(&mut self) {
        if !*self.is_announced.get_mut() {
            self.port.unreserve();
        }
    }
}

/// A waker that sends one completion to `port`. It reserves a slot there.
///
/// # Errors
/// `overloaded`, `closed`: the port accepts no further completion.
fn port_waker(port: &Arc<Port>, token: u64, handle: u64) -> Result<Waker, Failure> {
    port.reserve()?;
    Ok(Waker::from(Arc::new(PortWaker {
        port: Arc::clone(port),
        token,
        handle,
        is_announced: AtomicBool::new(false),
    })))
}

impl Wake for PortWaker {
    fn wake(self: Arc<Self>) {
        // The slot is for one completion.
        if self.is_announced.swap(true, Ordering::Relaxed) {
            return;
        }
        self.port
            .complete(Completion::ready(self.token, self.handle));
    }
}

impl StreamCore {
    /// Sends a [`StreamReady`](crate::Kind::StreamReady) completion to `port` as soon as `acquire`
    /// would not wait, or after the linger time of a busy stream. Returns `true`, and arms nothing,
    /// if it would not wait now.
    ///
    /// # Errors
    /// `overloaded`, `closed`: the port accepts no further completion. `argument`: a callback
    /// receives the records.
    pub fn arm_port(
        self: &Arc<Self>,
        port: &Arc<Port>,
        token: u64,
        handle: u64,
    ) -> Result<bool, Failure> {
        if self.check_readable()? {
            return Ok(true);
        }
        let arm_port = port_waker(port, token, handle)?;
        Ok(self.linger_or_arm(arm_port))
    }
}

impl UpstreamCore {
    /// Sends a [`StreamReady`](crate::Kind::StreamReady) completion to `port` when there is
    /// capacity for the element that was refused last, or when the stream ends. Returns `true`, and
    /// arms nothing, if this is already the case.
    ///
    /// # Errors
    /// `overloaded`, `closed`: the port accepts no further completion.
    pub fn arm_port(&self, port: &Arc<Port>, token: u64, handle: u64) -> Result<bool, Failure> {
        Ok(self.arm_room(port_waker(port, token, handle)?))
    }
}
