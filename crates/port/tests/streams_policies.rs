//! What happens where a stream is full, by policy: nothing is lost without being counted, at its place and with its reason.

mod pair;

use std::thread;

use pair::{CAPACITY, Dice, POLICIES, Record, lost_in_all, pair};
use thalweg_port::{Batch, Code, Counts, Policy, Reason, Sent, StreamReader, StreamWriter};
use thalweg_queue::clock;

const SEEDS: u64 = if cfg!(miri) { 1 } else { 20 };
const STEPS: u64 = if cfg!(miri) { 40 } else { 300 };

/// What one writer has done.
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

/// What a reader has seen.
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
            "the range of what was lost begins behind the last record"
        );
        assert_eq!(batch.lost_reason().is_some(), lost > 0);
        for (i, (writer, number, text)) in (0..).zip(batch.iter()) {
            assert!(text.bytes().all(|byte| byte == b'x'));
            if writers == 1 {
                assert_eq!(number, first + i, "a gap is where the records are missing");
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

fn play(policy: Policy, writers: usize, seed: u64) {
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
            // The reader holds a batch while others write.
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
        // A part of a batch, so that the rest of it is not delivered.
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
fn what_was_published_was_delivered_or_dropped_or_lies_there() {
    for policy in POLICIES {
        for writers in [1, 4] {
            for seed in 0..SEEDS {
                play(policy, writers, seed);
            }
        }
    }
}

#[test]
fn it_adds_up_where_writers_and_the_reader_are_threads() {
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
        if matches!(policy, Policy::Block) {
            assert_eq!(published, 4 * each);
            assert_eq!(counts.delivered, published);
        }
    }
}

fn record(number: u64) -> Record {
    (0, number, String::new())
}

/// Sends until something else than `Written` comes of it.
fn fill(writer: &StreamWriter<Record>) -> (u64, Result<Sent, Code>) {
    for number in 0.. {
        let sent = writer.send_until(&record(number), 0);
        if sent.as_ref() != Ok(&Sent::Written) {
            return (number, sent.map_err(|failure| failure.code));
        }
    }
    unreachable!("a stream has an end to its room");
}

#[test]
fn a_full_stream_refuses_drops_or_makes_wait() {
    let capacity = u64::from(CAPACITY);
    for (policy, expected) in [
        (Policy::Block, Err(Code::TimedOut)),
        (Policy::Fail, Err(Code::Overloaded)),
        (Policy::DropNewest, Ok(Sent::Dropped)),
    ] {
        let (writer, mut reader) = pair(policy);
        assert_eq!(fill(&writer), (capacity, expected), "{policy:?}");
        // It goes on once there is room.
        let batch = reader.next_batch(u32::MAX, 0).unwrap().unwrap();
        let room = u64::from(batch.len());
        drop(batch);
        let (more, again) = fill(&writer);
        assert_eq!((more, again), (room, expected), "{policy:?}");
        writer.finish().unwrap();
    }
}

#[test]
fn drop_newest_says_where_and_why() {
    let (writer, mut reader) = pair(Policy::DropNewest);
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
fn drop_oldest_keeps_the_newest_but_not_against_what_the_reader_holds() {
    let (writer, mut reader) = pair(Policy::DropOldest);
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
    // The segment is held, and what is in it stays as it is.
    for number in written..2 * written {
        writer.send(&record(number)).unwrap();
    }
    let held: Vec<_> = batch.iter().map(|(_, number, _)| number).collect();
    assert_eq!(held, [first]);
}

#[test]
fn drop_oldest_drops_the_newest_where_all_the_rest_is_held_or_being_written() {
    let (writer, mut reader) = pair(Policy::DropOldest);
    let slots = u64::from(CAPACITY / 32);
    // Nobody can drop what others have begun.
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
        (32 + slots + 5, 5, Some(Reason::Held))
    );
}

#[test]
fn a_writer_that_has_nothing_in_the_stream_can_always_begin() {
    let (writer, mut reader) = pair(Policy::Block);
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
fn nearly_all_of_the_room_is_there_while_a_batch_is_open() {
    for policy in [Policy::Block, Policy::Fail, Policy::DropNewest] {
        let (writer, mut reader) = pair(policy);
        let _ = fill(&writer);
        for _ in 0..16 {
            drop(reader.next_batch(64, 0).unwrap().unwrap());
        }
        let (room, _) = fill(&writer);
        assert!(room > 0, "what was read made room");
        let (writer, mut reader) = pair(policy);
        writer.send(&record(0)).unwrap();
        let _batch = reader.next_batch(1, 0).unwrap().unwrap();
        let (room, _) = fill(&writer);
        assert!(room >= u64::from(CAPACITY) * 95 / 100, "{policy:?}: {room}");
    }
}

#[test]
fn a_writers_own_losses_are_told_at_their_place_and_at_the_end() {
    let (writer, mut reader) = pair(Policy::Block);
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
fn a_batch_of_writes_is_seen_at_its_end_or_when_it_is_dropped() {
    let (writer, mut reader) = pair(Policy::Block);
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
    // What is sent beside it takes it along.
    let mut batch = writer.batch(100);
    batch.send(&record(4)).unwrap();
    writer.send(&record(5)).unwrap();
    assert_eq!(next(&mut reader, 10).unwrap().len(), 2);
}

/// It is not woken for so little, and takes it when its time is over.
#[test]
fn a_writer_whose_deadline_comes_takes_what_room_there_is() {
    loop {
        let (writer, mut reader) = pair(Policy::Block);
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
            // A machine that stood still for so long shows nothing.
            Err(failure) => assert!(!in_time && failure.code == Code::TimedOut, "{failure:?}"),
        }
    }
}
