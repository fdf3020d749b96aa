//! Loom models of a lane with one writer and one reader. loom tracks each value cell and detects a
//! write to a slot that the reader may read.

use loom::sync::Arc;
use loom::thread;

use crate::explore::model;
use crate::lane::{Lane, OwnedLane, Writer};

/// Larger than a line, so each value has its own stamp.
type Large = [u64; 12];

/// Pushes each value.
fn push_each<T>(lane: &Lane<T>, writer: &Writer, values: impl Iterator<Item = T>) {
    for value in values {
        assert!(lane.reserve(writer, |_| usize::MAX));
        // SAFETY: the caller is the only user of the writer, and there is a free slot.
        let pushed = unsafe { lane.push_unless(writer, value, || false) };
        assert!(pushed.is_ok());
    }
}

/// Rule 4: the next block is linked before its first value is visible, and a drained block is
/// filled again.
fn is_linked<T: Send + 'static>(
    values: u64,
    make: fn(u64) -> T,
    number: fn(&T) -> u64,
    batches: bool,
) {
    model(move || {
        let (lane, writer, reader) = OwnedLane::new(Lane::unbounded(1));
        let lane = Arc::new(lane);
        let writing = thread::spawn({
            let lane = Arc::clone(&lane);
            move || {
                let mut values = (0..values).map(make);
                if batches {
                    writer.set_limit(usize::MAX);
                    // SAFETY: this thread is the only user of the writer.
                    unsafe { lane.push_some(&writer, usize::MAX, || values.next()) };
                } else {
                    push_each(&lane, &writer, values);
                }
            }
        });
        let mut next = 0;
        let mut take = |value: T| {
            assert_eq!(number(&value), next);
            next += 1;
        };
        for _ in 0..values {
            let most = if batches { 2 } else { 1 };
            // SAFETY: this thread is the only user of the reader.
            unsafe { lane.pop_some(&reader, most, &mut take) };
        }
        writing.join().unwrap();
        // SAFETY: as above.
        unsafe { lane.pop_some(&reader, usize::MAX, &mut take) };
        assert_eq!(next, values);
        // SAFETY: the reader belongs to this lane and is not used afterwards.
        unsafe { lane.return_reader(&reader) };
    });
}

#[test]
fn blocks_of_one_value_are_linked_and_used_again() {
    const { assert!(Lane::<Large>::PER_LINE == 1) };
    is_linked(4, |n| [n; 12] as Large, |n| n[11], false);
}

#[test]
fn blocks_of_several_values_are_linked_and_used_again() {
    const { assert!(Lane::<u8>::PER_LINE > 1) };
    let values = 2 * Lane::<u8>::PER_LINE as u64 + 1;
    is_linked(values, |n| n as u8, |n| u64::from(*n), false);
}

#[test]
fn batches_fill_and_drain_linked_blocks() {
    let values = 2 * Lane::<u8>::PER_LINE as u64 + 1;
    is_linked(values, |n| n as u8, |n| u64::from(*n), true);
}

/// The side that is dropped last drops the remaining values, each once.
#[test]
fn values_that_are_left_inside_are_dropped_once() {
    model(|| {
        let token = std::sync::Arc::new(());
        let (lane, writer, reader) = OwnedLane::new(Lane::unbounded(1));
        let lane = Arc::new(lane);
        let writing = thread::spawn({
            let (lane, token) = (Arc::clone(&lane), token.clone());
            move || push_each(&lane, &writer, (0..3).map(|_| token.clone()))
        });
        // SAFETY: this thread is the only user of the reader.
        drop(unsafe { lane.try_pop(&reader) });
        // SAFETY: the reader belongs to the lane and is not used afterwards.
        unsafe { lane.return_reader(&reader) };
        drop(lane);
        writing.join().unwrap();
        assert_eq!(std::sync::Arc::strong_count(&token), 1);
    });
}
