//! Several readers of one stream, each with its own position, overflow and counts.

use std::ops::ControlFlow::Continue;
use std::sync::{Arc, Mutex};
use std::thread;

use thalweg_port::{Code, Event, Overflow, Sent, StreamReader, StreamWriter};

use crate::pair::{CAPACITY, Dice, POLICIES, Record, lost_in_all, pair};

const SEEDS: u64 = if cfg!(miri) { 1 } else { 20 };
const RECORDS: u64 = if cfg!(miri) { 200 } else { 5_000 };

fn record(number: u64) -> Record {
    (0, number, "x".repeat((number % 30) as usize))
}

/// The records that one reader received from one writer, whose numbers begin with `first`.
#[derive(Default)]
struct Seen {
    first: u64,
    next: u64,
    delivered: u64,
    lost: u64,
}

impl Seen {
    /// Reads at most `max` available records.
    fn read(&mut self, reader: &mut StreamReader<Record>, max: u64) -> bool {
        let Ok(Some(batch)) = reader.next_batch(max as u32, 0) else {
            return false;
        };
        let (first, lost) = (batch.first_sequence(), batch.lost_before());
        assert_eq!(
            first - lost,
            self.next,
            "the gap covers the missing records"
        );
        for (i, (_, number, text)) in (0..).zip(batch.iter()) {
            assert_eq!(
                number,
                self.first + first + i,
                "the gap is at the missing records"
            );
            assert_eq!(text.len() as u64, number % 30);
        }
        self.next = first + u64::from(batch.len());
        self.delivered += u64::from(batch.len());
        self.lost += lost;
        true
    }

    fn read_all(&mut self, reader: &mut StreamReader<Record>) {
        while self.read(reader, u64::from(u32::MAX)) {}
    }
}

#[test]
fn slow_reader_loses_records_and_a_fast_reader_loses_none() {
    for policy in [Overflow::DropNewest, Overflow::DropOldest] {
        let (writer, mut fast) = pair(policy);
        let mut slow = fast.tee().unwrap();
        let (mut of_fast, mut of_slow) = (Seen::default(), Seen::default());
        let all = 5 * u64::from(CAPACITY);
        for number in 0..all {
            assert_eq!(
                writer.send(&record(number)),
                Ok(Sent::Written),
                "{policy:?}"
            );
            if number % 16 == 0 {
                of_fast.read_all(&mut fast);
            }
        }
        writer.finish().unwrap();
        of_fast.read_all(&mut fast);
        of_slow.read_all(&mut slow);
        assert_eq!((of_fast.delivered, of_fast.lost), (all, 0), "{policy:?}");
        let (lost_at_end, _) = slow.lost_at_end();
        assert_eq!(of_slow.delivered + of_slow.lost + lost_at_end, all);
        assert!(of_slow.delivered <= u64::from(CAPACITY) + 64);
        let (fast, slow) = (fast.counts(), slow.counts());
        assert_eq!((fast.published, lost_in_all(&fast)), (all, 0));
        assert_eq!((slow.published, slow.delivered), (all, of_slow.delivered));
        assert_eq!(slow.dropped(), all - of_slow.delivered);
    }
}

#[test]
fn slowest_reader_blocks_the_writer_until_it_reads_or_is_dropped() {
    for goes in [false, true] {
        let (writer, mut fast) = pair(Overflow::Block);
        let mut slow = fast.tee().unwrap();
        let (mut of_fast, mut of_slow) = (Seen::default(), Seen::default());
        let mut number = 0;
        let mut send = |writer: &StreamWriter<Record>| {
            let sent = writer.send_until(&record(number), 0);
            number += u64::from(sent.is_ok());
            sent
        };
        while send(&writer).is_ok() {
            of_fast.read_all(&mut fast);
        }
        of_fast.read_all(&mut fast);
        assert!(of_fast.delivered >= u64::from(CAPACITY));
        assert_eq!(send(&writer).unwrap_err().code, Code::TimedOut);
        if goes {
            drop(slow);
            for _ in 0..3 * CAPACITY {
                send(&writer).unwrap();
                of_fast.read_all(&mut fast);
            }
        } else {
            of_slow.read_all(&mut slow);
            send(&writer).unwrap();
            of_slow.read_all(&mut slow);
            of_fast.read_all(&mut fast);
            assert_eq!(of_slow.delivered, of_fast.delivered);
        }
    }
}

#[test]
fn waiting_writer_continues_when_the_slow_reader_is_dropped() {
    let (writer, mut fast) = pair(Overflow::Block);
    let slow = fast.tee().unwrap();
    let writing = thread::spawn(move || {
        (0..3 * u64::from(CAPACITY)).all(|number| writer.send(&record(number)).is_ok())
    });
    let mut seen = Seen::default();
    while seen.delivered < u64::from(CAPACITY) {
        seen.read_all(&mut fast);
        thread::yield_now();
    }
    drop(slow);
    while seen.delivered < 3 * u64::from(CAPACITY) {
        seen.read_all(&mut fast);
        thread::yield_now();
    }
    assert!(writing.join().unwrap());
}

#[test]
fn late_reader_begins_with_the_next_record_without_a_gap() {
    for policy in POLICIES {
        let (writer, mut first) = pair(policy);
        let mut of_first = Seen::default();
        for number in 0..10 {
            writer.send(&record(number)).unwrap();
            of_first.read_all(&mut first);
        }
        let mut late = first.tee().unwrap();
        let mut of_late = Seen {
            first: 10,
            ..Seen::default()
        };
        assert_eq!(late.next_batch(1, 0).unwrap_err().code, Code::WouldPark);
        for number in 10..300 {
            writer.send(&record(number)).unwrap();
            of_first.read_all(&mut first);
            of_late.read_all(&mut late);
        }
        writer.finish().unwrap();
        of_first.read_all(&mut first);
        of_late.read_all(&mut late);
        assert_eq!((of_first.delivered, of_first.lost), (300, 0), "{policy:?}");
        assert_eq!((of_late.delivered, of_late.lost), (290, 0), "{policy:?}");
        assert_eq!(late.counts().published, 290);
    }
}

#[test]
fn writer_stops_when_the_last_reader_is_dropped() {
    let (writer, first) = pair(Overflow::Block);
    let second = first.tee().unwrap();
    drop(first);
    let mut third = second.tee().unwrap();
    writer.send(&record(0)).unwrap();
    drop(second);
    for number in 1..5 * u64::from(CAPACITY) {
        writer.send(&record(number)).unwrap();
        if number % 100 == 0 {
            while third.next_batch(u32::MAX, 0).is_ok() {}
        }
    }
    drop(third);
    assert_eq!(writer.send(&record(0)).unwrap_err().code, Code::Closed);
}

#[test]
fn outcome_reaches_all_readers_and_later_ones() {
    let (writer, mut first) = pair(Overflow::Block);
    let mut second = first.tee().unwrap();
    writer.send(&record(0)).unwrap();
    writer.control(&record(7)).unwrap();
    writer.finish().unwrap();
    let mut late = first.tee().unwrap();
    for reader in [&mut first, &mut second] {
        let numbers: Vec<_> = reader.map(|record| record.unwrap().1).collect();
        assert_eq!(numbers, [7, 0]);
    }
    assert!(late.next().is_none());
}

#[test]
fn concurrent_readers_each_receive_every_record_of_every_writer() {
    let (writer, first) = pair(Overflow::Block);
    let second = first.tee().unwrap();
    let third = second.tee().unwrap();
    let by_callback = first.tee().unwrap();
    let called = Arc::new(Mutex::new([0; 3]));
    let counted = Arc::clone(&called);
    let subscription = by_callback
        .subscribe(move |event: Event<'_, Record>| {
            if let Event::Records(records) = event {
                let mut counted = counted.lock().unwrap();
                for (w, number, _) in records.iter() {
                    assert_eq!(number, counted[w as usize]);
                    counted[w as usize] += 1;
                }
            }
            Continue(())
        })
        .unwrap();
    thread::scope(|scope| {
        for w in 0..3u64 {
            let writer = writer.clone();
            scope.spawn(move || {
                for number in 0..RECORDS {
                    writer.send(&(w, number, String::new())).unwrap();
                }
                writer.finish().unwrap();
            });
        }
        // Additional readers that are created and dropped in the meantime.
        let mut also = third.tee().unwrap();
        scope.spawn(move || {
            for _ in 0..50 {
                let mut passing = also.tee().unwrap();
                // It limits the writers like any other reader, so it reads too.
                while also
                    .next_batch(u32::MAX, 0)
                    .is_ok_and(|batch| batch.is_some())
                {}
                let _ = passing.next_batch(1, 0);
                thread::yield_now();
            }
        });
        writer.finish().unwrap();
        for reader in [first, second, third] {
            scope.spawn(move || {
                let mut next = [0; 3];
                for record in reader {
                    let (w, number, _) = record.unwrap();
                    assert_eq!(number, next[w as usize]);
                    next[w as usize] += 1;
                }
                assert_eq!(next, [RECORDS; 3]);
            });
        }
    });
    subscription.join(u64::MAX).unwrap();
    assert_eq!(*called.lock().unwrap(), [RECORDS; 3]);
}

fn play(policy: Overflow, seed: u64) {
    let mut dice = Dice::new(seed);
    let (writer, first) = pair(policy);
    let mut readers = vec![(first, Seen::default())];
    let mut published = 0;
    for _ in 0..200 {
        match dice.below(8) {
            0 if readers.len() < 4 => {
                // If a reader learns of records that were lost directly before it was created, its
                // numbers begin earlier, so this check does not apply.
                if published == 0
                    || matches!(policy, Overflow::Block | Overflow::Fail | Overflow::Latest)
                {
                    let further = readers[0].0.tee().unwrap();
                    let first = published;
                    readers.push((
                        further,
                        Seen {
                            first,
                            ..Seen::default()
                        },
                    ));
                }
            }
            1 | 2 => {
                let at = dice.below(readers.len() as u64) as usize;
                let (reader, seen) = &mut readers[at];
                seen.read(reader, 1 + dice.below(300));
            }
            3 => {
                for (reader, seen) in &mut readers {
                    seen.read(reader, 1 + dice.below(50));
                }
            }
            _ => {
                for _ in 0..dice.below(200) {
                    if writer.send_until(&record(published), 0).is_ok() {
                        published += 1;
                    }
                }
            }
        }
    }
    writer.finish().unwrap();
    for (mut reader, mut seen) in readers {
        seen.read_all(&mut reader);
        let (at_end, _) = reader.lost_at_end();
        let counts = reader.counts();
        let all = published - seen.first;
        assert_eq!(
            seen.delivered + seen.lost + at_end,
            all,
            "{policy:?} {seed}"
        );
        assert_eq!((counts.published, counts.delivered), (all, seen.delivered));
        assert_eq!(
            (lost_in_all(&counts), counts.undelivered),
            (all - seen.delivered, 0)
        );
    }
}

#[test]
fn gaps_are_reported_to_each_reader_at_their_position_under_every_policy() {
    for policy in POLICIES {
        for seed in 0..SEEDS {
            play(policy, seed);
        }
    }
}
