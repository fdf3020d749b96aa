//! Conflation by key: the newest record of each key, in the order in which the keys were queued.

use std::collections::HashMap;
use std::ops::ControlFlow::Continue;
use std::sync::{Arc, Mutex};
use std::thread;

use thalweg_port::{Code, Event, Reason, Sent, StreamReader, StreamWriter};

use crate::pair::{BY_WRITER, CAPACITY, Dice, Record, lost_in_all, pair};

const KEYS: u64 = if cfg!(miri) { 20 } else { 1_000 };
const UPDATES: u64 = if cfg!(miri) { 5 } else { 100 };

fn send(writer: &StreamWriter<Record>, key: u64, update: u64) {
    let sent = writer.send(&(key, update, "x".repeat((update % 9) as usize)));
    assert_eq!(sent, Ok(Sent::Written));
}

/// Reads the available records: key, update, and number of records that are missing directly
/// before.
fn read_all(reader: &mut StreamReader<Record>) -> Vec<(u64, u64, u64)> {
    let mut seen = Vec::new();
    let mut next = None;
    while let Ok(Some(batch)) = reader.next_batch(u32::MAX, 0) {
        let (first, lost) = (batch.first_sequence(), batch.lost_before());
        assert_eq!(
            batch.len(),
            1,
            "a batch of a conflated stream has one record"
        );
        assert_eq!(batch.lost_reason(), (lost > 0).then_some(Reason::Conflated));
        assert_eq!(first - lost, next.unwrap_or(first - lost));
        next = Some(first + 1);
        let (key, update, _) = batch.iter().next().unwrap();
        seen.push((key, update, lost));
    }
    seen
}

#[test]
fn last_record_of_each_key_is_delivered_once_and_the_counts_add_up() {
    let (writer, mut reader) = pair(BY_WRITER);
    for update in 0..UPDATES {
        for key in 0..KEYS {
            // The first round determines the order; every other round writes in reverse order.
            let key = if update % 2 == 0 { key } else { KEYS - 1 - key };
            send(&writer, key, update);
        }
    }
    let expected: Vec<_> = (0..KEYS)
        .map(|key| (key, UPDATES - 1, UPDATES - 1))
        .collect();
    assert_eq!(reader.counts().undelivered, KEYS);
    assert_eq!(read_all(&mut reader), expected);
    // A key that was read is queued again after the waiting keys.
    for key in [7, 3, 7, 5, 3] {
        send(&writer, key, key);
    }
    assert_eq!(read_all(&mut reader), [(7, 7, 1), (3, 3, 1), (5, 5, 0)]);
    writer.finish().unwrap();
    assert!(reader.next_batch(1, 0).unwrap().is_none());
    let counts = reader.counts();
    assert_eq!(counts.published, KEYS * UPDATES + 5);
    assert_eq!((counts.delivered, counts.undelivered), (KEYS + 3, 0));
    assert_eq!(counts.conflated(), counts.published - counts.delivered);
    assert_eq!(lost_in_all(&counts), counts.conflated());
    assert_eq!(reader.stats().high_water, KEYS);
}

#[test]
fn writer_with_a_new_key_waits_for_capacity_but_not_with_a_queued_key() {
    let (writer, mut reader) = pair(BY_WRITER);
    for key in 0..u64::from(CAPACITY) {
        send(&writer, key, 0);
    }
    let new = u64::from(CAPACITY);
    let refused = writer
        .send_until(&(new, 0u64, String::new()), 0)
        .unwrap_err();
    assert_eq!(refused.code, Code::TimedOut);
    send(&writer, 0, 1);
    thread::scope(|scope| {
        scope.spawn(|| {
            let writer = writer;
            send(&writer, new, 0);
            writer.finish().unwrap();
        });
        while reader.stats().waits == 0 {
            thread::yield_now();
        }
        let (key, update, _) = reader.next().unwrap().unwrap();
        assert_eq!((key, update), (0, 1));
        assert_eq!(reader.by_ref().count() as u64, u64::from(CAPACITY));
    });
}

#[test]
fn gap_of_a_writer_is_before_its_next_record_and_after_the_conflated_ones() {
    let (writer, mut reader) = pair(BY_WRITER);
    send(&writer, 1, 0);
    writer.lost(3);
    send(&writer, 1, 1);
    let batch = reader.next_batch(1, 0).unwrap().unwrap();
    assert_eq!((batch.lost_before(), batch.first_sequence()), (4, 4));
    assert_eq!(batch.lost_reason(), Some(Reason::Conflated));
    drop(batch);
    writer.lost(2);
    writer.finish().unwrap();
    assert_eq!(reader.lost_at_end(), (2, Some(Reason::Writer)));
    let counts = reader.counts();
    assert_eq!((counts.published, counts.delivered), (7, 1));
    assert_eq!((counts.conflated(), counts.dropped()), (1, 5));
}

#[test]
fn each_reader_with_concurrent_writers_ends_with_the_last_record_of_each_key() {
    let (writer, first) = pair(BY_WRITER);
    let second = first.tee().unwrap();
    let by_callback = first.tee().unwrap();
    let last = Arc::new(Mutex::new(HashMap::new()));
    let called = Arc::clone(&last);
    let subscription = by_callback
        .subscribe(move |event: Event<'_, Record>| {
            if let Event::Records(records) = event {
                let mut last = called.lock().unwrap();
                for (key, update, _) in records.iter() {
                    let before = last.insert(key, update);
                    assert!(before.is_none_or(|before| before <= update));
                }
            }
            Continue(())
        })
        .unwrap();
    thread::scope(|scope| {
        for part in 0..3u64 {
            let writer = writer.clone();
            scope.spawn(move || {
                let mut dice = Dice::new(part);
                for update in 0..UPDATES {
                    for _ in 0..20 {
                        send(&writer, part + 3 * dice.below(10), 2 * update);
                    }
                    for key in 0..10 {
                        send(&writer, part + 3 * key, 2 * update + 1);
                    }
                }
                writer.finish().unwrap();
            });
        }
        writer.finish().unwrap();
        for mut reader in [first, second] {
            scope.spawn(move || {
                let last: HashMap<_, _> = reader
                    .by_ref()
                    .map(|record| record.unwrap())
                    .map(|(key, update, _)| (key, update))
                    .collect();
                assert_eq!(last.len(), 30);
                assert!(last.values().all(|update| *update == 2 * UPDATES - 1));
                let counts = reader.counts();
                assert_eq!(counts.published, 90 * UPDATES);
                assert_eq!(counts.delivered + counts.conflated(), 90 * UPDATES);
            });
        }
    });
    subscription.join(u64::MAX).unwrap();
    let last = last.lock().unwrap();
    assert!(last.len() == 30 && last.values().all(|update| *update == 2 * UPDATES - 1));
}
