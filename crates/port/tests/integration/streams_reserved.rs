//! Records that the writer fills in place: `StreamWriter::reserve`.

use std::ops::ControlFlow::{self, Break, Continue};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use thalweg_port::{
    Code, Event, Failure, Overflow, Sent, StreamReader, StreamWriter, Subscription,
};
use thalweg_wire::Field;

use crate::lab;
use crate::pair::{BY_WRITER, CAPACITY, Record, pair};

const WRITER: Field<Record, u64> = Field::at(0);
const NUMBER: Field<Record, u64> = Field::at(8);
const TEXT: Field<Record, String> = Field::at(16);

const RECORDS: u64 = if cfg!(miri) { 100 } else { 20_000 };

/// The record during which a test disturbs the writer. It holds the lease of the callback by then.
const LATE: u64 = 40;

fn text(number: u64) -> String {
    "x".repeat((number % 40) as usize)
}

/// Writes the record in place. Its first field is not set, and is therefore 0.
fn write(writer: &mut StreamWriter<Record>, number: u64) -> Result<Sent, Failure> {
    let text = text(number);
    let Some(mut record) = writer.reserve(text.len() as u32)? else {
        return Ok(Sent::Dropped);
    };
    record.set(NUMBER, &number);
    record.set(TEXT, text.as_str());
    record.commit()
}

fn write_all(writer: &mut StreamWriter<Record>, end: u64) {
    for number in 0..end {
        write(writer, number).unwrap();
    }
}

fn write_until_over(writer: &mut StreamWriter<Record>) -> Code {
    let refused = (0..).find_map(|number| write(writer, number).err());
    refused.expect("the stream ends").code
}

/// Subscribes with a callback that gets the number of each record, which is complete.
fn subscribe(
    reader: StreamReader<Record>,
    mut each: impl FnMut(u64) -> ControlFlow<()> + Send + 'static,
) -> Subscription<Record> {
    let mut next = 0;
    let callback = move |event: Event<'_, Record>| {
        let Event::Records(records) = event else {
            return Continue(());
        };
        assert_eq!(records.first_sequence(), next);
        for (writer, number, found) in records.iter() {
            assert_eq!((writer, found), (0, &*text(number)));
            next += 1;
            each(number)?;
        }
        Continue(())
    };
    reader.subscribe(callback).unwrap()
}

/// Waits until the callback has all `records`, so that the next one finds the stream empty.
fn wait_for(subscription: &Subscription<Record>, records: u64) {
    while subscription.counts().delivered < records {
        thread::yield_now();
    }
}

#[test]
fn reader_gets_reserved_and_sent_records_in_order() {
    let (mut writer, mut reader) = pair(Overflow::Block);
    let writing = thread::spawn(move || {
        for number in 0..RECORDS {
            if number % 3 == 0 {
                writer.send(&(0_u64, number, text(number))).unwrap();
            } else {
                write(&mut writer, number).unwrap();
            }
        }
        writer.finish().unwrap();
    });
    for number in 0..RECORDS {
        let record = reader.next().unwrap().unwrap();
        assert_eq!(record, (0, number, text(number)));
    }
    assert!(reader.next().is_none());
    writing.join().unwrap();
}

#[test]
fn callback_gets_reserved_and_sent_records_in_order() {
    let (mut writer, reader) = pair(Overflow::Block);
    let mut next = 0;
    let subscription = subscribe(reader, move |number| {
        assert_eq!(number, next);
        next += 1;
        Continue(())
    });
    for number in 0..RECORDS {
        match number % 5 {
            0 => drop(writer.send(&(0_u64, number, text(number))).unwrap()),
            1 => drop(
                writer
                    .batch(4)
                    .send(&(0_u64, number, text(number)))
                    .unwrap(),
            ),
            _ => drop(write(&mut writer, number).unwrap()),
        }
    }
    writer.finish().unwrap();
    subscription.join(u64::MAX).unwrap();
    let counts = subscription.counts();
    assert_eq!((counts.delivered, counts.published), (RECORDS, RECORDS));
}

#[test]
fn reservation_without_commit_writes_nothing_and_leaves_no_trace() {
    for is_leased in [false, true] {
        let (mut writer, reader) = pair(Overflow::Block);
        let subscription = subscribe(reader, |_| Continue(()));
        if is_leased {
            write_all(&mut writer, LATE);
            wait_for(&subscription, LATE);
        }
        for number in 0..LATE {
            let mut unused = writer.reserve(3).unwrap().unwrap();
            unused.set(WRITER, &u64::MAX);
            unused.set(TEXT, "abc");
            match number % 2 {
                0 => drop(unused),
                _ => std::mem::forget(unused),
            }
            // The callback checks that the fields which are not set here are 0 and empty.
            let mut record = writer.reserve(0).unwrap().unwrap();
            record.set(NUMBER, &(number * 40));
            record.commit().unwrap();
        }
        writer.finish().unwrap();
        subscription.join(u64::MAX).unwrap();
        let before = if is_leased { LATE } else { 0 };
        assert_eq!(subscription.counts().delivered, before + LATE);
    }
}

#[test]
fn callback_that_breaks_or_panics_is_not_called_again() {
    for panics in [false, true] {
        let (mut writer, reader) = pair(Overflow::Block);
        let subscription = subscribe(reader, move |number| {
            assert!(number <= LATE, "called again");
            assert!(!panics || number < LATE, "in a callback, on purpose");
            if number == LATE {
                Break(())
            } else {
                Continue(())
            }
        });
        assert_eq!(write_until_over(&mut writer), Code::Closed);
        subscription.join(u64::MAX).unwrap();
        assert_eq!(subscription.counts().delivered, LATE + 1);
    }
}

#[test]
fn callback_that_closes_its_subscription_is_not_called_again() {
    let (mut writer, reader) = pair(Overflow::Block);
    let own: Arc<Mutex<Option<Subscription<Record>>>> = Arc::default();
    let its = Arc::clone(&own);
    let subscription = subscribe(reader, move |number| {
        assert!(number <= LATE, "called again");
        if number == LATE {
            let subscription = its.lock().unwrap().take().unwrap();
            let refused = subscription.join(u64::MAX).unwrap_err();
            assert_eq!(refused.code, Code::WouldPark);
            subscription.close();
        }
        Continue(())
    });
    *own.lock().unwrap() = Some(subscription);
    assert_eq!(write_until_over(&mut writer), Code::Closed);
}

#[test]
fn callback_may_call() {
    let (mut writer, reader) = pair(Overflow::Block);
    let client = lab::client();
    let subscription = subscribe(reader, move |number| {
        if number % 20 == 0 {
            assert_eq!(lab::shout(&client, "a").wait().unwrap(), "A");
        }
        Continue(())
    });
    write_all(&mut writer, 2 * LATE);
    writer.finish().unwrap();
    subscription.join(u64::MAX).unwrap();
    assert_eq!(subscription.counts().delivered, 2 * LATE);
}

#[test]
fn commit_fails_if_the_stream_was_closed_while_the_record_was_reserved() {
    for is_leased in [false, true] {
        let (mut writer, reader) = pair(Overflow::Block);
        let called = Arc::new(AtomicBool::new(false));
        let its = Arc::clone(&called);
        let subscription = subscribe(reader, move |number| {
            its.fetch_or(number == u64::MAX, Ordering::SeqCst);
            Continue(())
        });
        if is_leased {
            write_all(&mut writer, LATE);
        }
        let mut record = writer.reserve(0).unwrap().unwrap();
        record.set(NUMBER, &u64::MAX);
        subscription.close();
        assert_eq!(record.commit().unwrap_err().code, Code::Closed);
        assert_eq!(writer.reserve(0).unwrap_err().code, Code::Closed);
        assert!(!called.load(Ordering::SeqCst));
    }
}

#[test]
fn callback_that_is_replaced_while_a_record_is_reserved_does_not_get_it() {
    let (mut writer, reader) = pair(Overflow::Block);
    let subscription = subscribe(reader, |number| {
        assert_ne!(number, LATE, "it was replaced before");
        Continue(())
    });
    write_all(&mut writer, LATE);
    wait_for(&subscription, LATE);
    let mut record = writer.reserve(0).unwrap().unwrap();
    record.set(NUMBER, &LATE);
    let seen = Arc::new(AtomicU64::new(0));
    let its = Arc::clone(&seen);
    let next = move |event: Event<'_, Record>| {
        if let Event::Records(records) = event {
            its.fetch_add(
                records.iter().map(|(_, number, _)| number).sum(),
                Ordering::SeqCst,
            );
        }
        Continue(())
    };
    subscription.replace(next).unwrap();
    record.commit().unwrap();
    writer.finish().unwrap();
    subscription.join(u64::MAX).unwrap();
    assert_eq!(seen.load(Ordering::SeqCst), LATE);
}

#[test]
fn text_without_space_fails_the_commit_and_the_stream_continues() {
    let (mut writer, reader) = pair(Overflow::Block);
    let subscription = subscribe(reader, |_| Continue(()));
    for round in 0..LATE {
        let mut record = writer.reserve(8).unwrap().unwrap();
        record.set(NUMBER, &u64::MAX);
        record.set(TEXT, "y".repeat(1_000_000).as_str());
        let refused = record.commit().unwrap_err();
        assert_eq!(refused.code, Code::Argument, "{refused}");
        write(&mut writer, round).unwrap();
    }
    writer.finish().unwrap();
    subscription.join(u64::MAX).unwrap();
    assert_eq!(subscription.counts().delivered, LATE);
}

#[test]
fn record_that_is_larger_than_a_segment_is_delivered_in_order() {
    let (mut writer, mut reader) = pair(Overflow::Block);
    let lengths = [3, 100_000, 5, 100_000, 100_000, 0];
    for length in lengths {
        let mut record = writer.reserve(length).unwrap().unwrap();
        record.set(TEXT, "y".repeat(length as usize).as_str());
        record.commit().unwrap();
    }
    let refused = writer.reserve(u32::MAX).unwrap_err();
    assert_eq!(refused.code, Code::Argument);
    writer.finish().unwrap();
    for length in lengths {
        let (_, _, text) = reader.next().unwrap().unwrap();
        assert_eq!(text.len(), length as usize);
    }
    assert!(reader.next().is_none());
}

#[test]
fn policies_drop_and_conflate_reserved_records() {
    let (mut writer, reader) = pair(Overflow::DropNewest);
    let ends: Vec<Sent> = (0..2 * u64::from(CAPACITY))
        .map(|number| write(&mut writer, number).unwrap())
        .collect();
    let dropped = ends.iter().filter(|sent| **sent == Sent::Dropped).count() as u64;
    assert!(dropped > 0);
    assert_eq!(reader.counts().dropped(), dropped);
    for policy in [Overflow::Latest, BY_WRITER] {
        let (mut writer, mut reader) = pair(policy);
        write_all(&mut writer, LATE);
        writer.finish().unwrap();
        let last = (0, LATE - 1, text(LATE - 1));
        assert_eq!(reader.next().unwrap().unwrap(), last);
        assert!(reader.next().is_none());
        assert_eq!(reader.counts().conflated(), LATE - 1);
    }
}
