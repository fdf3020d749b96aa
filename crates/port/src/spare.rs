//! The memory of calls that have ended, for reuse by the next calls of the same instance.

use std::sync::Arc;

use crate::call::CallCore;
use crate::completion::Outcome;
use crate::queued_bytes::SPARE_BYTES;

/// Maximum number of calls whose memory is kept.
const MAX_CALLS: usize = 4096;
/// Maximum capacity in bytes of a message buffer that is kept with its call.
pub(crate) const MAX_BUFFER_BYTES: usize = 256 << 10;
/// Maximum total capacity in bytes of the kept buffers that are larger than [`SPARE_BYTES`]. It is
/// enough for 50 answers of 100 KiB. See "Large answers" in `docs/internals/port.md`.
const MAX_LARGE_BYTES: usize = 8 << 20;

/// The memory of a call and of its buffer.
pub(crate) type SpareCall = (Arc<CallCore>, Box<Outcome>);

/// The memory of calls that ended.
#[derive(Default)]
pub(crate) struct SpareCalls {
    calls: Vec<SpareCall>,
    /// Total capacity of the large buffers.
    large_bytes: usize,
}

/// The capacity that counts for a buffer.
#[inline]
fn large_bytes(outcome: &Outcome) -> usize {
    match outcome.data.capacity() {
        small if small <= SPARE_BYTES => 0,
        large => large,
    }
}

impl SpareCalls {
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<SpareCall> {
        let spare = self.calls.pop()?;
        self.large_bytes -= large_bytes(&spare.1);
        Some(spare)
    }

    /// Keeps the memory of a call. Returns a buffer that is not kept, which the caller drops without
    /// the lock.
    ///
    /// # Errors
    /// There are enough calls, or there is no memory for the list. The call is returned.
    #[inline]
    pub(crate) fn push(&mut self, (call, mut outcome): SpareCall) -> Result<Vec<u8>, SpareCall> {
        if self.calls.len() >= MAX_CALLS || self.calls.try_reserve(1).is_err() {
            return Err((call, outcome));
        }
        let mut refused = Vec::new();
        let large = large_bytes(&outcome);
        if self.large_bytes + large > MAX_LARGE_BYTES {
            refused = std::mem::take(&mut outcome.data);
        } else {
            self.large_bytes += large;
        }
        self.calls.push((call, outcome));
        Ok(refused)
    }

    /// All calls.
    pub(crate) fn take_all(&mut self) -> Vec<SpareCall> {
        std::mem::take(self).calls
    }
}
