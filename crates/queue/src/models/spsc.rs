//! Loom models of the ring with one writer and one reader. loom tracks each slot and detects a
//! write to a slot that the reader may read.

use loom::sync::Arc;
use loom::thread;

use crate::explore::model;
use crate::spsc::ring::{Ring, Side};

/// Pushes values one by one until the ring is full. Returns their number.
fn push_each(ring: &Ring<u64>, writer: &Side<u64>, values: impl Iterator<Item = u64>) -> usize {
    let mut count = 0;
    for value in values {
        if !ring.has_capacity(writer) {
            break;
        }
        // SAFETY: the caller is the only user of the writer, and there is a free slot.
        unsafe { ring.push(writer, value) };
        count += 1;
    }
    count
}

/// One thread fills the ring and continues while the other drains it. Every value must arrive once
/// and in order.
fn goes_round(capacity: usize, batches: bool) {
    model(move || {
        let (ring, writer, reader) = Ring::new(capacity).unwrap();
        let ring = Arc::new(ring);
        let full = push_each(&ring, &writer, 0..);
        assert_eq!(full, capacity);
        let writing = thread::spawn({
            let ring = Arc::clone(&ring);
            move || {
                let mut values: Vec<u64> = (full as u64..full as u64 + 3).collect();
                if batches {
                    // SAFETY: this thread is the only user of the writer.
                    unsafe { ring.push_from(&writer, &mut values) }
                } else {
                    push_each(&ring, &writer, values.into_iter())
                }
            }
        });
        let mut next = 0;
        let mut take = |value: u64| {
            assert_eq!(value, next);
            next += 1;
        };
        // One more than there were before, so that values that are being written are read, too.
        for _ in 0..=capacity {
            if batches {
                // SAFETY: this thread is the only user of the reader.
                unsafe { ring.peek_some(&reader, 2, |value| take(*value)) };
            } else if ring.has_visible_value(&reader) || ring.has_value(&reader) {
                // SAFETY: as above, and there is a value.
                take(unsafe { ring.pop(&reader) });
            }
        }
        let more = writing.join().unwrap();
        let mut rest = Vec::new();
        // SAFETY: as above.
        unsafe { ring.pop_into(&reader, usize::MAX, &mut rest) };
        rest.into_iter().for_each(take);
        assert_eq!(next, (full + more) as u64);
    });
}

#[test]
fn one_slot_is_filled_and_drained_over_and_over() {
    goes_round(1, false);
}

#[test]
fn two_slots_are_filled_and_drained_over_and_over() {
    goes_round(2, false);
}

#[test]
fn batches_go_round() {
    goes_round(2, true);
}

/// The side that is dropped last drops the remaining values, each once.
#[test]
fn values_that_are_left_inside_are_dropped_once() {
    model(|| {
        let token = std::sync::Arc::new(());
        let (ring, writer, reader) = Ring::new(2).unwrap();
        let ring = Arc::new(ring);
        let writing = thread::spawn({
            let (ring, token) = (Arc::clone(&ring), token.clone());
            move || {
                let mut tokens = vec![token; 3];
                // SAFETY: this thread is the only user of the writer.
                unsafe { ring.push_from(&writer, &mut tokens) }
            }
        });
        // SAFETY: this thread is the only user of the reader.
        unsafe { ring.pop_into(&reader, 1, &mut Vec::new()) };
        drop(ring);
        let pushed = writing.join().unwrap();
        assert!(pushed >= 2);
        assert_eq!(std::sync::Arc::strong_count(&token), 1);
    });
}
