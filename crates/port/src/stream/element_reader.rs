//! The reading end of a stream parameter in foreign code, which knows the type of its elements only at
//! run time.

use std::fmt;
use std::sync::Arc;
use std::task::Waker;

use thalweg_wire::prepared::PreparedType;

use crate::code::Failure;
use crate::handles::{HandleObject, Kind};
use crate::stream::described::WhileOpen;
use crate::stream::upstream_core::UpstreamCore;

/// The reading end. One thread at a time uses it. Dropping it closes the stream.
pub struct ElementReader {
    core: Arc<UpstreamCore>,
    element: &'static PreparedType<'static>,
    /// Dropped when no thread uses the reader any more.
    _owned: WhileOpen,
}

impl fmt::Debug for ElementReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ElementReader").field(&self.core).finish()
    }
}

impl ElementReader {
    /// The reader of a stream with elements of this type.
    pub(crate) fn new(
        core: Arc<UpstreamCore>,
        element: &'static PreparedType<'static>,
        owned: WhileOpen,
    ) -> Arc<Self> {
        Arc::new(Self {
            core,
            element,
            _owned: owned,
        })
    }

    /// The message of the next element, which was checked. Waits until `deadline`
    /// ([`thalweg_queue::clock`]; 0: does not wait). `None`: the stream has ended regularly.
    ///
    /// # Errors
    /// Another outcome of the stream: `cancelled` if the caller dropped it, `argument` for a malformed
    /// element, or the outcome of the call. `would_park`, `timed_out`, `interrupted`.
    pub fn receive(&self, deadline: u64) -> Result<Option<Vec<u8>>, Failure> {
        self.core
            .read_message(deadline, |element| self.element.check(element))
    }

    /// Wakes `waker` when [`receive`](Self::receive) need not wait, at once if that is so now.
    pub fn notify(&self, waker: Waker) {
        if self.core.arm_element(waker.clone()) {
            waker.wake();
        }
    }
}

impl Drop for ElementReader {
    fn drop(&mut self) {
        self.core.close();
    }
}

// SAFETY: readers of elements have no other type.
unsafe impl HandleObject for ElementReader {
    fn has_kind(kind: Kind) -> bool {
        kind == Kind::ElementReader
    }

    fn close_handle(self: Arc<Self>, _: Kind, _: u32) {
        self.core.close();
    }
}
