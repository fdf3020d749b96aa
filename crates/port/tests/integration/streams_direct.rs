//! Callbacks under a lease: the only writer of a stream calls without the queue, until anything
//! else needs the callback.

use std::ops::ControlFlow::{self, Break, Continue};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use thalweg_port::{Code, Event, Overflow, StreamReader, StreamWriter, Subscription};

use crate::lab;
use crate::pair::{Record, pair};

const RECORDS: u64 = if cfg!(miri) { 100 } else { 20_000 };

/// The record after which a test disturbs the lease.
const LATE: u64 = 40;

fn record(number: u64) -> Record {
    (0, number, "x".repeat((number % 40) as usize))
}

/// Subscribes with a callback that gets each record's number. It runs on the writer's thread from
/// some record on.
fn subscribe(
    reader: StreamReader<Record>,
    mut each: impl FnMut(u64) -> ControlFlow<()> + Send + 'static,
) -> Subscription<Record> {
    let mut next = 0;
    let callback = move |event: Event<'_, Record>| {
        let Event::Records(records) = event else {
            return Continue(());
        };
        assert!(records.is_control() || records.first_sequence() == next);
        assert_eq!(records.lost_before(), 0);
        for (writer, number, text) in records.iter() {
            assert_eq!(text.len() as u64, number % 40);
            next += u64::from(!records.is_control());
            if writer == 0 {
                each(number)?;
            }
        }
        Continue(())
    };
    reader.subscribe(callback).unwrap()
}

/// Sends records with the numbers below `end`.
fn send(writer: &StreamWriter<Record>, end: u64) {
    for number in 0..end {
        writer.send(&record(number)).unwrap();
    }
}

/// Sends until the stream has ended, and returns the outcome.
fn send_until_over(writer: &StreamWriter<Record>) -> Code {
    let refused = (0..).find_map(|number| writer.send(&record(number)).err());
    refused.expect("the stream ends").code
}

#[test]
fn counts_are_exact_at_any_time() {
    let (writer, reader) = pair(Overflow::Block);
    let seen = Arc::new(AtomicU64::new(0));
    let its = Arc::clone(&seen);
    let subscription = subscribe(reader, move |number| {
        assert_eq!(its.fetch_add(1, Ordering::SeqCst), number);
        Continue(())
    });
    let writing = thread::spawn(move || {
        send(&writer, RECORDS);
        writer.finish().unwrap();
    });
    while !writing.is_finished() {
        let before = seen.load(Ordering::SeqCst);
        let delivered = subscription.counts().delivered;
        assert!(before <= delivered, "{before} of {delivered}");
    }
    writing.join().unwrap();
    subscription.join(u64::MAX).unwrap();
    let counts = subscription.counts();
    assert_eq!((counts.delivered, counts.published), (RECORDS, RECORDS));
    assert_eq!((counts.undelivered, counts.dropped()), (0, 0));
    let stats = subscription.stats().counts;
    assert!(stats.delivered >= RECORDS);
}

#[test]
fn other_writers_and_control_records_keep_the_order_of_a_writer() {
    let (writer, reader) = pair(Overflow::Block);
    let seen = Arc::new(AtomicU64::new(0));
    let its = Arc::clone(&seen);
    let subscription = subscribe(reader, move |number| {
        if number != u64::MAX {
            assert_eq!(its.fetch_add(1, Ordering::SeqCst), number);
        }
        Continue(())
    });
    let other = writer.clone();
    let writing = thread::spawn(move || {
        for number in 0..RECORDS {
            writer.send(&record(number)).unwrap();
            if number % 97 == 0 {
                let control = (0_u64, u64::MAX, "x".repeat((u64::MAX % 40) as usize));
                writer.control(&control).unwrap();
            }
            if number % 89 == 0 {
                let mut batch = writer.batch(2);
                batch.send(&(1_u64, 0_u64, String::new())).unwrap();
            }
        }
        writer.finish().unwrap();
    });
    for number in 0..20_u64 {
        other
            .send(&(1_u64, number, "x".repeat(number as usize)))
            .unwrap();
        thread::yield_now();
    }
    other.finish().unwrap();
    writing.join().unwrap();
    subscription.join(u64::MAX).unwrap();
    assert_eq!(seen.load(Ordering::SeqCst), RECORDS);
    let counts = subscription.counts();
    assert_eq!(counts.delivered, counts.published);
}

#[test]
fn callback_that_breaks_or_panics_late_is_not_called_again() {
    for panics in [false, true] {
        let (writer, reader) = pair(Overflow::Block);
        let subscription = subscribe(reader, move |number| {
            assert!(number <= LATE, "called again");
            assert!(!panics || number < LATE, "in a callback, on purpose");
            if number == LATE {
                Break(())
            } else {
                Continue(())
            }
        });
        assert_eq!(send_until_over(&writer), Code::Closed);
        subscription.join(u64::MAX).unwrap();
        assert_eq!(subscription.counts().delivered, LATE + 1);
    }
}

#[test]
fn callback_that_closes_its_subscription_late_is_not_called_again() {
    let (writer, reader) = pair(Overflow::Block);
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
    assert_eq!(send_until_over(&writer), Code::Closed);
}

#[test]
fn close_drops_the_callback_of_a_writer_that_is_idle() {
    let (writer, reader) = pair(Overflow::Block);
    let alive = Arc::new(());
    let its = Arc::clone(&alive);
    let subscription = subscribe(reader, move |_| {
        assert_eq!(Arc::strong_count(&its), 2);
        Continue(())
    });
    send(&writer, LATE);
    subscription.close();
    assert_eq!(Arc::strong_count(&alive), 1);
    assert_eq!(writer.send(&record(LATE)).unwrap_err().code, Code::Closed);
}

#[test]
fn replaced_callback_gets_no_further_record() {
    let (writer, reader) = pair(Overflow::Block);
    let (first, second) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let its = Arc::clone(&first);
    let subscription = subscribe(reader, move |_| {
        its.fetch_add(1, Ordering::SeqCst);
        Continue(())
    });
    send(&writer, LATE);
    // An actor may be delivering the last of them.
    while first.load(Ordering::SeqCst) < LATE {
        thread::yield_now();
    }
    let its = Arc::clone(&second);
    let next = move |event: Event<'_, Record>| {
        if let Event::Records(records) = event {
            its.fetch_add(records.len().into(), Ordering::SeqCst);
        }
        Continue(())
    };
    subscription.replace(next).unwrap();
    send(&writer, LATE);
    writer.finish().unwrap();
    subscription.join(u64::MAX).unwrap();
    assert_eq!(first.load(Ordering::SeqCst), LATE);
    assert_eq!(second.load(Ordering::SeqCst), LATE);
}

#[test]
fn service_error_is_the_last_event_after_the_records() {
    let (writer, reader) = pair(Overflow::Block);
    let ended = mpsc::channel();
    let mut seen = 0;
    let callback = move |event: Event<'_, Record>| {
        match event {
            Event::Records(records) => seen += records.len(),
            Event::Ended { result, .. } => ended.0.send((seen, result)).unwrap(),
        }
        Continue(())
    };
    let subscription = reader.subscribe(callback).unwrap();
    send(&writer, LATE);
    writer.abort("on purpose").unwrap();
    subscription.join(u64::MAX).unwrap();
    let (seen, result) = ended.1.recv().unwrap();
    assert_eq!(u64::from(seen), LATE);
    assert!(format!("{:?}", result.unwrap_err()).contains("on purpose"));
}

#[test]
fn callback_under_a_lease_may_call() {
    let (writer, reader) = pair(Overflow::Block);
    let client = lab::client();
    let subscription = subscribe(reader, move |number| {
        if number % 20 == 0 {
            assert_eq!(lab::shout(&client, "a").wait().unwrap(), "A");
        }
        Continue(())
    });
    send(&writer, 2 * LATE);
    writer.finish().unwrap();
    subscription.join(u64::MAX).unwrap();
    assert_eq!(subscription.counts().delivered, 2 * LATE);
}

#[test]
fn record_that_is_larger_than_a_segment_is_delivered_in_order() {
    let (writer, reader) = pair(Overflow::Block);
    let lengths = Arc::new(Mutex::new(Vec::new()));
    let its = Arc::clone(&lengths);
    let callback = move |event: Event<'_, Record>| {
        if let Event::Records(records) = event {
            let mut lengths = its.lock().unwrap();
            lengths.extend(records.iter().map(|(_, number, text)| (number, text.len())));
        }
        Continue(())
    };
    let subscription = reader.subscribe(callback).unwrap();
    let length = |number: u64| if number % 10 == 9 { 100_000 } else { 3 };
    for number in 0..LATE {
        writer
            .send(&(0_u64, number, "y".repeat(length(number))))
            .unwrap();
    }
    writer.finish().unwrap();
    subscription.join(u64::MAX).unwrap();
    let expected: Vec<_> = (0..LATE).map(|number| (number, length(number))).collect();
    assert_eq!(*lengths.lock().unwrap(), expected);
}
