//! Closing the handles in messages that nobody reads.

use thalweg_wire::{Handle, message};

use crate::handles::{self, Kind};

/// Closes the streams in arguments that the service did not read. Otherwise their writers would
/// wait for ever.
#[cold]
pub(crate) fn close_unread_streams(args: &[u8]) {
    if let Ok(message) = message::open_head(args) {
        for handle in message.handles() {
            close_unread_stream(handle);
        }
    }
}

/// Closes one stream as [`close_unread_streams`] does.
pub(crate) fn close_unread_stream(handle: Handle) {
    if handles::with(handle.0, |entry| Some(entry.kind == Kind::Upstream)) == Ok(true) {
        // An error means that another thread closed it at the same time.
        let _ = handles::close_handle(handle.0);
    }
}

/// Closes the handles in a message that was not delivered.
#[inline]
pub(crate) fn close_handles(data: &[u8]) {
    // Most messages have no handles: their number is after 8 bytes.
    if !data.is_empty() && data.get(8..12) != Some(&[0; 4]) {
        close_all(data);
    }
}

#[cold]
fn close_all(data: &[u8]) {
    if let Ok(message) = message::open_any(data) {
        for handle in message.handles().filter(|handle| handle.0 != 0) {
            // A handle that is already closed needs no further action.
            let _ = handles::close_handle(handle.0);
        }
    }
}

/// Closes the resources in a message of foreign code that was not delivered. Other handles in it are
/// not its own.
#[cold]
pub(crate) fn close_resources(data: &[u8]) {
    if let Ok(message) = message::open_any(data) {
        for handle in message.handles() {
            if handles::with(handle.0, |entry| Some(entry.kind == Kind::Resource)) == Ok(true) {
                // An error means that another thread closed it at the same time.
                let _ = handles::close_handle(handle.0);
            }
        }
    }
}
