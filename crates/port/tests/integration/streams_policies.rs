//! Overflow policies: every missing record is counted, at its position and with its reason.

use std::thread;

use thalweg_port::{Batch, Code, Counts, Overflow, Reason, Sent, StreamReader, StreamWriter};
use thalweg_queue::clock;

use crate::pair::{CAPACITY, Dice, POLICIES, Record, lost_in_all, pair};

const SEEDS: u64 = if cfg!(miri) { 1 } else { 20 };
const STEPS: u64 = if cfg!(miri) { 40 } else { 300 };

/// The state of one writer.
struct Writer {
    number: u64,
    writer: StreamWriter<Record>,
    published: u64,
}

impl Writer {
    fn send(&mut self, dice: &mut Dice) {
        let text = "x".repeat(dice.below(300) as usize);
        let record = (self.number, self.published, text);
        match self.writer.send_until(&record, 0) {
            Ok(Sent::Written | Sent::Dropped) => self.published += 1,
            Err(failure) => assert!(
                matches!(failure.code, Code::TimedOut | Code::Overloaded),
                "{failure:?}"
            ),
        }
    }
}

/// The state of a reader.
#[derive(Default)]
struct Reader {
    next: u64,
    delivered: u64,
    lost: u64,
    of_writer: [u64; 4],
}

impl Reader {
    fn look(&mut self, batch: &Batch<'_, Record>, writers: usize) {
        let (first, lost) = (batch.first_sequence(), batch.lost_before());
        assert_eq!(
            first - lost,
            self.next,
            "the gap begins after the last record"
        );
        assert_eq!(batch.lost_reason().is_some(), lost > 0);
        for (i, (writer, number, text)) in (0..).zip(batch.iter()) {
            assert!(text.bytes().all(|byte| byte == b'x'));
            if writers == 1 {
                assert_eq!(number, first + i, "the gap is at the missing records");
            }
            let expected = &mut self.of_writer[writer as usize];
            assert!(
                number >= *expected,
                "writer {writer}'s records are in order"
            );
            *expected = number + 1;
        }
        self.next = first + u64::from(batch.len());
        self.delivered += u64::from(batch.len());
        self.lost += lost;
    }
}

fn finish(all: Vec<Writer>) {
    for writer in all {
        writer.writer.finish().unwrap();
    }
}

fn next<'a>(reader: &'a mut StreamReader<Record>, max: u64) -> Option<Batch<'a, Record>> {
    match reader.next_batch(max as u32, 0) {
        Ok(batch) => batch,
        Err(failure) => {
            assert_eq!(failure.code, Code::WouldPark);
            None
        }
    }
}

fn adds_up(counts: &Counts, published: u64, delivered: u64) {
    let sum = counts.delivered + counts.dropped() + counts.conflated() + counts.undelivered;
    assert_eq!(sum, counts.published, "{counts:?}");
    assert_eq!((counts.published, counts.delivered), (published, delivered));
}

fn play(policy: Overflow, writers: usize, seed: u64) {
    let mut dice = Dice::new(seed);
    let (writer, mut reader) = pair(policy);
    let mut all: Vec<Writer> = (0..writers as u64)
        .map(|number| Writer {
            number,
            writer: writer.clone(),
            published: 0,
        })
        .collect();
    writer.finish().unwrap();
    let mut seen = Reader::default();
    let flood = 1 + dice.below(120);
    for _ in 0..STEPS {
        let one = &mut all[dice.below(writers as u64) as usize];
        match dice.below(8) {
            0 => {
                let missing = dice.below(5);
                one.writer.lost(missing);
                one.published += missing;
            }
            // The reader keeps a batch open while others write.
            1 => {
                if let Some(batch) = next(&mut reader, 1 + dice.below(300)) {
                    seen.look(&batch, writers);
                    for _ in 0..dice.below(2 * u64::from(CAPACITY)) {
                        all[dice.below(writers as u64) as usize].send(&mut dice);
                    }
                }
            }
            2 | 3 => {
                if let Some(batch) = next(&mut reader, 1 + dice.below(300)) {
                    seen.look(&batch, writers);
                }
            }
            _ => (0..dice.below(flood)).for_each(|_| one.send(&mut dice)),
        }
    }
    let published = all.iter().map(|writer| writer.published).sum();
    let closes = dice.below(2) == 0;
    if closes {
        finish(all);
        // Takes a part of a batch, so that the rest is not delivered.
        if let Some(batch) = next(&mut reader, 1) {
            seen.look(&batch, writers);
        }
        let counts = reader.counts();
        assert!(counts.delivered - seen.delivered <= 256, "a window");
        adds_up(&counts, published, counts.delivered);
    } else {
        finish(all);
        while let Some(batch) = next(&mut reader, 1 + dice.below(300)) {
            seen.look(&batch, writers);
        }
        let counts = reader.counts();
        assert_eq!(counts.undelivered, 0);
        adds_up(&counts, published, seen.delivered);
        let (behind, why) = reader.lost_at_end();
        assert_eq!(why.is_some(), behind > 0);
        assert_eq!(seen.lost + behind, lost_in_all(&counts));
        assert_eq!(seen.next + behind, published);
    }
}

#[test]
fn counts_add_up_under_every_policy() {
    for policy in POLICIES {
        for writers in [1, 4] {
            for seed in 0..SEEDS {
                play(policy, writers, seed);
            }
        }
    }
}

#[test]
fn counts_add_up_with_concurrent_writers_and_reader() {
    for policy in POLICIES {
        let (writer, mut reader) = pair(policy);
        let each = if cfg!(miri) { 100 } else { 20_000 };
        let threads: Vec<_> = (0..4)
            .map(|number| {
                let writer = writer.clone();
                std::thread::spawn(move || {
                    let mut dice = Dice::new(number);
                    let mut published = 0;
                    for _ in 0..each {
                        let text = "x".repeat(dice.below(100) as usize);
                        published += u64::from(writer.send(&(number, published, text)).is_ok());
                    }
                    writer.finish().unwrap();
                    published
                })
            })
            .collect();
        writer.finish().unwrap();
        let mut seen = Reader::default();
        while let Some(batch) = reader.next_batch(100, u64::MAX).unwrap() {
            seen.look(&batch, 4);
        }
        let published = threads.into_iter().map(|one| one.join().unwrap()).sum();
        let counts = reader.counts();
        adds_up(&counts, published, seen.delivered);
        assert_eq!(seen.next + reader.lost_at_end().0, published);
        if matches!(policy, Overflow::Block) {
            assert_eq!(published, 4 * each);
            assert_eq!(counts.delivered, published);
        }
    }
}

fn record(number: u64) -> Record {
    (0, number, String::new())
}

/// Sends until the result is not `Written`.
fn fill(writer: &StreamWriter<Record>) -> (u64, Result<Sent, Code>) {
    for number in 0.. {
        let sent = writer.send_until(&record(number), 0);
        if sent.as_ref() != Ok(&Sent::Written) {
            return (number, sent.map_err(|failure| failure.code));
        }
    }
    unreachable!("a stream has a limited capacity");
}

#[test]
fn full_stream_refuses_drops_or_waits_by_policy() {
    let capacity = u64::from(CAPACITY);
    for (policy, expected) in [
        (Overflow::Block, Err(Code::TimedOut)),
        (Overflow::Fail, Err(Code::Overloaded)),
        (Overflow::DropNewest, Ok(Sent::Dropped)),
    ] {
        let (writer, mut reader) = pair(policy);
        assert_eq!(fill(&writer), (capacity, expected), "{policy:?}");
        // Sending works again once there is capacity.
        let batch = reader.next_batch(u32::MAX, 0).unwrap().unwrap();
        let room = u64::from(batch.len());
        drop(batch);
        let (more, again) = fill(&writer);
        assert_eq!((more, again), (room, expected), "{policy:?}");
        writer.finish().unwrap();
    }
}

#[test]
fn drop_newest_reports_position_and_reason() {
    let (writer, mut reader) = pair(Overflow::DropNewest);
    assert_eq!(fill(&writer).1, Ok(Sent::Dropped));
    for _ in 0..9 {
        assert_eq!(writer.send(&record(0)), Ok(Sent::Dropped));
    }
    let mut next = 0;
    while next < u64::from(CAPACITY) {
        let batch = reader.next_batch(u32::MAX, 0).unwrap().unwrap();
        assert_eq!((batch.lost_before(), batch.lost_reason()), (0, None));
        next += u64::from(batch.len());
    }
    assert_eq!(writer.send(&record(7)), Ok(Sent::Written));
    let batch = reader.next_batch(u32::MAX, 0).unwrap().unwrap();
    assert_eq!(batch.first_sequence(), u64::from(CAPACITY) + 10);
    assert_eq!(
        (batch.lost_before(), batch.lost_reason()),
        (10, Some(Reason::DroppedNewest))
    );
}

#[test]
fn drop_oldest_keeps_the_newest_records_and_the_open_batch() {
    let (writer, mut reader) = pair(Overflow::DropOldest);
    let written = 10 * u64::from(CAPACITY);
    for number in 0..written {
        assert_eq!(writer.send(&record(number)), Ok(Sent::Written));
    }
    let batch = reader.next_batch(1, 0).unwrap().unwrap();
    let first = batch.first_sequence();
    assert!(written - first <= u64::from(CAPACITY), "{first}");
    assert!(written - first >= u64::from(CAPACITY) * 95 / 100, "{first}");
    assert_eq!(
        (batch.lost_before(), batch.lost_reason()),
        (first, Some(Reason::DroppedOldest))
    );
    // The segment is in the open batch, so its contents stay unchanged.
    for number in written..2 * written {
        writer.send(&record(number)).unwrap();
    }
    let held: Vec<_> = batch.iter().map(|(_, number, _)| number).collect();
    assert_eq!(held, [first]);
}

#[test]
fn drop_oldest_without_a_droppable_segment_drops_the_newest() {
    let (writer, mut reader) = pair(Overflow::DropOldest);
    let slots = u64::from(CAPACITY / 32);
    // Segments that other writers have begun cannot be dropped.
    let others: Vec<_> = (0..32).map(|_| writer.clone()).collect();
    for other in &others {
        other.send(&record(0)).unwrap();
    }
    for number in 0..slots {
        assert_eq!(writer.send(&record(number)), Ok(Sent::Written));
    }
    for _ in &others {
        assert_eq!(next(&mut reader, 1).unwrap().len(), 1);
    }
    let held = next(&mut reader, 1).unwrap();
    for number in 0..5 {
        assert_eq!(writer.send(&record(slots + number)), Ok(Sent::Dropped));
    }
    assert_eq!(held.first_sequence(), 32);
    drop(held);
    while let Some(batch) = next(&mut reader, 300) {
        assert_eq!(batch.lost_before(), 0);
    }
    assert_eq!(writer.send(&record(slots + 5)), Ok(Sent::Written));
    let batch = next(&mut reader, 1).unwrap();
    assert_eq!(
        (
            batch.first_sequence(),
            batch.lost_before(),
            batch.lost_reason()
        ),
        (32 + slots + 5, 5, Some(Reason::BatchOpen))
    );
}

#[test]
fn writer_without_a_segment_can_always_begin_one() {
    let (writer, mut reader) = pair(Overflow::Block);
    let mut in_flight = fill(&writer).0;
    let writers: Vec<_> = (0..63).map(|_| writer.clone()).collect();
    let slots = u64::from(CAPACITY / 32);
    for other in &writers {
        let (more, _) = fill(other);
        assert_eq!(more, slots);
        in_flight += more;
    }
    assert_eq!(in_flight, u64::from(CAPACITY) + 63 * slots);
    for writer in writers.into_iter().chain([writer]) {
        writer.finish().unwrap();
    }
    let mut read = 0;
    while let Some(batch) = reader.next_batch(u32::MAX, 0).unwrap() {
        read += u64::from(batch.len());
    }
    assert_eq!(read, in_flight);
}

#[test]
fn open_batch_leaves_most_of_the_credit_free() {
    for policy in [Overflow::Block, Overflow::Fail, Overflow::DropNewest] {
        let (writer, mut reader) = pair(policy);
        let _ = fill(&writer);
        for _ in 0..16 {
            drop(reader.next_batch(64, 0).unwrap().unwrap());
        }
        let (room, _) = fill(&writer);
        assert!(room > 0, "reading frees capacity");
        let (writer, mut reader) = pair(policy);
        writer.send(&record(0)).unwrap();
        let _batch = reader.next_batch(1, 0).unwrap().unwrap();
        let (room, _) = fill(&writer);
        assert!(room >= u64::from(CAPACITY) * 95 / 100, "{policy:?}: {room}");
    }
}

#[test]
fn losses_of_a_writer_are_reported_at_their_position_and_at_the_end() {
    let (writer, mut reader) = pair(Overflow::Block);
    writer.lost(3);
    writer.send(&record(3)).unwrap();
    writer.send(&record(4)).unwrap();
    writer.lost(2);
    writer.lost(0);
    writer.send(&record(7)).unwrap();
    writer.lost(5);
    let mut seen = Vec::new();
    for _ in 0..2 {
        let batch = reader.next_batch(u32::MAX, 0).unwrap().unwrap();
        assert_eq!(batch.lost_reason(), Some(Reason::Writer));
        seen.push((batch.first_sequence(), batch.lost_before(), batch.len()));
    }
    assert_eq!(seen, [(3, 3, 2), (7, 2, 1)]);
    writer.finish().unwrap();
    assert!(reader.next_batch(1, 0).unwrap().is_none());
    assert_eq!(reader.lost_at_end(), (5, Some(Reason::Writer)));
    assert_eq!(reader.counts().lost(Reason::Writer), 10);
}

#[test]
fn write_batch_becomes_visible_when_full_or_dropped() {
    let (writer, mut reader) = pair(Overflow::Block);
    let mut batch = writer.batch(3);
    batch.send(&record(0)).unwrap();
    batch.send(&record(1)).unwrap();
    assert!(next(&mut reader, 10).is_none(), "two of three");
    batch.send(&record(2)).unwrap();
    assert_eq!(next(&mut reader, 10).unwrap().len(), 3);
    batch.send(&record(3)).unwrap();
    assert!(next(&mut reader, 10).is_none());
    drop(batch);
    assert_eq!(next(&mut reader, 10).unwrap().len(), 1);
    // A record that is sent outside the batch also makes the batch visible.
    let mut batch = writer.batch(100);
    batch.send(&record(4)).unwrap();
    writer.send(&record(5)).unwrap();
    assert_eq!(next(&mut reader, 10).unwrap().len(), 2);
}

/// The writer is not woken for one segment, and acquires it when its deadline passes.
#[test]
fn writer_at_its_deadline_uses_the_available_credit() {
    loop {
        let (writer, mut reader) = pair(Overflow::Block);
        let record = |number| (0u64, number, String::new());
        let mut written = 0u64;
        while writer.send_until(&record(written), 0).is_ok() {
            written += 1;
        }
        let deadline = clock::now() + 300_000_000;
        let waits = thread::spawn(move || writer.send_until(&record(written), deadline));
        while reader.stats().waits < 2 {
            thread::yield_now();
        }
        // One segment of 32.
        drop(next(&mut reader, u64::from(u32::MAX)));
        let in_time = clock::now() < deadline;
        match waits.join().unwrap() {
            Ok(sent) => return assert_eq!(sent, Sent::Written),
            // The machine was too slow for a conclusion.
            Err(failure) => assert!(!in_time && failure.code == Code::TimedOut, "{failure:?}"),
        }
    }
}
