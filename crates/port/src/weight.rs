//! Bytes that wait, so that what has no bound by its number has one.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::parcel::SPARE_BYTES;

/// Bytes of the messages that wait somewhere. Small ones are not counted: there they are as many as there may be calls.
#[derive(Debug, Default)]
pub(crate) struct Weight(AtomicU64);

/// What a message counts.
fn of(message: &[u8]) -> u64 {
    match message.len() {
        small if small <= SPARE_BYTES => 0,
        large => large as u64,
    }
}

impl Weight {
    /// One more, if with it there are no more than `most`. A message that waits alone may have any size.
    pub(crate) fn admit(&self, message: &[u8], most: u64) -> bool {
        let weight = of(message);
        if weight == 0 {
            return true;
        }
        let fits = |now: u64| match now.saturating_add(weight) {
            sum if now == 0 || sum <= most => Some(sum),
            _ => None,
        };
        // Nothing else is published by it.
        self.0
            .try_update(Ordering::Relaxed, Ordering::Relaxed, fits)
            .is_ok()
    }

    /// One more, which was promised its place.
    pub(crate) fn add(&self, message: &[u8]) {
        let weight = of(message);
        if weight != 0 {
            self.0.fetch_add(weight, Ordering::Relaxed);
        }
    }

    /// One that was counted waits no more.
    pub(crate) fn remove(&self, message: &[u8]) {
        let weight = of(message);
        if weight != 0 {
            self.0.fetch_sub(weight, Ordering::Relaxed);
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::Weight;

    #[test]
    fn small_ones_are_free_and_a_large_one_may_wait_alone() {
        let weight = Weight::default();
        let (small, large, huge) = (vec![0; 512], vec![0; 600], vec![0; 5_000]);
        assert!(weight.admit(&huge, 1_000), "alone");
        assert!(weight.admit(&small, 1_000));
        assert!(!weight.admit(&large, 1_000));
        weight.remove(&huge);
        assert!(weight.admit(&large, 1_199));
        assert!(!weight.admit(&large, 1_199));
        weight.add(&large);
        assert_eq!(weight.bytes(), 1_200);
    }
}
