//! The total size of queued messages. It bounds messages whose size their number does not bound.

use std::sync::atomic::{AtomicU64, Ordering};

/// Maximum capacity in bytes of a message buffer that is kept for reuse. Smaller messages are not
/// counted.
pub(crate) const SPARE_BYTES: usize = 512;

/// Total size of queued messages in bytes. Small messages are not counted, because another limit
/// bounds their number.
#[derive(Debug, Default)]
pub(crate) struct QueuedBytes(AtomicU64);

/// The size that counts for a message.
fn counted_bytes(message: &[u8]) -> u64 {
    match message.len() {
        small if small <= SPARE_BYTES => 0,
        large => large as u64,
    }
}

impl QueuedBytes {
    /// Adds a message if the sum stays at or below `most`. A single message may have any size.
    pub(crate) fn try_add(&self, message: &[u8], most: u64) -> bool {
        let queued = counted_bytes(message);
        if queued == 0 {
            return true;
        }
        let fits = |now: u64| match now.saturating_add(queued) {
            sum if now == 0 || sum <= most => Some(sum),
            _ => None,
        };
        // Relaxed suffices: this counter publishes no other data.
        self.0
            .try_update(Ordering::Relaxed, Ordering::Relaxed, fits)
            .is_ok()
    }

    /// Adds a message whose slot was reserved.
    pub(crate) fn add(&self, message: &[u8]) {
        let queued = counted_bytes(message);
        if queued != 0 {
            self.0.fetch_add(queued, Ordering::Relaxed);
        }
    }

    /// Removes a message that was added.
    pub(crate) fn remove(&self, message: &[u8]) {
        let queued = counted_bytes(message);
        if queued != 0 {
            self.0.fetch_sub(queued, Ordering::Relaxed);
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::QueuedBytes;

    #[test]
    fn small_messages_are_not_counted_and_a_single_large_one_is_accepted() {
        let queued = QueuedBytes::default();
        let (small, large, huge) = (vec![0; 512], vec![0; 600], vec![0; 5_000]);
        assert!(queued.try_add(&huge, 1_000), "alone");
        assert!(queued.try_add(&small, 1_000));
        assert!(!queued.try_add(&large, 1_000));
        queued.remove(&huge);
        assert!(queued.try_add(&large, 1_199));
        assert!(!queued.try_add(&large, 1_199));
        queued.add(&large);
        assert_eq!(queued.bytes(), 1_200);
    }
}
