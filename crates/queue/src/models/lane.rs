//! Loom models of a lane with one writer and one reader. loom tracks each value cell and detects a
//! write to a slot that the reader may read.

use loom::sync::Arc;
use loom::thread;

use crate::explore::model;
use crate::lane::{Lane, OwnedLane, Writer};

/// Larger than a line, so each value has its own stamp.
type Large = [u64; 12];

/// Pushes values one by one until the lane is full. Returns their number.
fn push_each<T>(lane: &Lane<T>, writer: &Writer, values: impl Iterator<Item = T>) -> usize {
    let mut count = 0;
    for value in values {
        if !lane.reserve(writer, |_| lane.newest_limit()) {
            break;
        }
        // SAFETY: the caller is the only user of the writer, and there is a free slot.
        unsafe { lane.push(writer, value) };
        count += 1;
    }
    count
}

/// One thread fills the lane and continues while the other drains it. Every value must arrive once
/// and in order.
fn goes_round<T: Send + 'static>(
    capacity: usize,
    make: fn(u64) -> T,
    number: fn(&T) -> u64,
    batches: bool,
) {
    model(move || {
        let (lane, writer, reader) = OwnedLane::new(Lane::bounded(capacity).unwrap());
        let lane = Arc::new(lane);
        let full = push_each(&lane, &writer, (0..).map(make));
        assert_eq!(full, capacity);
        let writing = thread::spawn({
            let lane = Arc::clone(&lane);
            move || {
                let values = (full as u64..).map(make);
                if batches {
                    let mut values = values;
                    writer.set_limit(lane.newest_limit());
                    // SAFETY: this thread is the only user of the writer.
                    unsafe { lane.push_some(&writer, 2, || values.next()) }
                } else {
                    push_each(&lane, &writer, values.take(2))
                }
            }
        });
        let mut next = 0;
        let mut take = |value: T| {
            assert_eq!(number(&value), next);
            next += 1;
        };
        // One more than there were before, so that values that are being written are read, too.
        for _ in 0..=capacity.min(2) {
            let most = if batches { 2 } else { 1 };
            // SAFETY: this thread is the only user of the reader.
            unsafe { lane.pop_some(&reader, most, &mut take) };
        }
        let more = writing.join().unwrap();
        // SAFETY: as above.
        unsafe { lane.pop_some(&reader, usize::MAX, &mut take) };
        assert_eq!(next, (full + more) as u64);
        // SAFETY: the reader belongs to this lane and is not used afterwards.
        unsafe { lane.return_reader(&reader) };
    });
}

#[test]
fn a_line_of_several_values_is_filled_and_drained_over_and_over() {
    const { assert!(Lane::<u8>::PER_LINE > 1) };
    goes_round(2, |n| n as u8, |n| u64::from(*n), false);
}

#[test]
fn lines_of_one_value_are_filled_and_drained_over_and_over() {
    const { assert!(Lane::<Large>::PER_LINE == 1) };
    goes_round(2, |n| [n; 12], |n| n[11], false);
}

#[test]
fn batches_go_round_a_block_of_two_lines() {
    goes_round(
        Lane::<u8>::PER_LINE + 1,
        |n| n as u8,
        |n| u64::from(*n),
        true,
    );
}

/// Rule 4: the next block is linked before its first value is visible, and a drained block is
/// filled again.
fn is_linked<T: Send + 'static>(values: u64, make: fn(u64) -> T, number: fn(&T) -> u64) {
    model(move || {
        let (lane, writer, reader) = OwnedLane::new(Lane::unbounded(1));
        let lane = Arc::new(lane);
        let writing = thread::spawn({
            let lane = Arc::clone(&lane);
            move || push_each(&lane, &writer, (0..values).map(make))
        });
        let mut next = 0;
        let mut take = |value: T| {
            assert_eq!(number(&value), next);
            next += 1;
        };
        for _ in 0..values {
            // SAFETY: this thread is the only user of the reader.
            if let Some(value) = unsafe { lane.try_pop(&reader) } {
                take(value);
            }
        }
        assert_eq!(writing.join().unwrap() as u64, values);
        // SAFETY: as above.
        unsafe { lane.pop_some(&reader, usize::MAX, &mut take) };
        assert_eq!(next, values);
        // SAFETY: the reader belongs to this lane and is not used afterwards.
        unsafe { lane.return_reader(&reader) };
    });
}

#[test]
fn blocks_of_one_value_are_linked_and_used_again() {
    is_linked(4, |n| [n; 12], |n| n[11]);
}

#[test]
fn blocks_of_several_values_are_linked_and_used_again() {
    let values = 2 * Lane::<u8>::PER_LINE as u64 + 1;
    is_linked(values, |n| n as u8, |n| u64::from(*n));
}

/// The side that is dropped last drops the remaining values, each once.
#[test]
fn values_that_are_left_inside_are_dropped_once() {
    for capacity in [Some(3), None] {
        model(move || {
            let token = std::sync::Arc::new(());
            let lane = match capacity {
                Some(capacity) => Lane::bounded(capacity).unwrap(),
                None => Lane::unbounded(1),
            };
            let (lane, writer, reader) = OwnedLane::new(lane);
            let lane = Arc::new(lane);
            let writing = thread::spawn({
                let (lane, token) = (Arc::clone(&lane), token.clone());
                move || push_each(&lane, &writer, (0..3).map(|_| token.clone()))
            });
            // SAFETY: this thread is the only user of the reader.
            drop(unsafe { lane.try_pop(&reader) });
            // SAFETY: the reader belongs to this lane and is not used afterwards.
            unsafe { lane.return_reader(&reader) };
            drop(lane);
            assert_eq!(writing.join().unwrap(), 3);
            assert_eq!(std::sync::Arc::strong_count(&token), 1);
        });
    }
}
