//! Callbacks for a stream's records: the calling thread, the order, and the end.

use std::ops::ControlFlow::{self, Break, Continue};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::thread;

use thalweg_port::{Code, Event, Overflow, Sent, Subscription};

use crate::lab;
use crate::pair::{CAPACITY, POLICIES, Record, pair};

const RACES: u64 = if cfg!(miri) { 3 } else { 500 };
const RECORDS: u64 = if cfg!(miri) { 200 } else { 50_000 };

fn record(number: u64) -> Record {
    (0, number, "x".repeat((number % 40) as usize))
}

/// The state of a callback. It counts its drops and records calls after a drop.
struct Owned {
    dropped: Arc<AtomicU64>,
    gone: Arc<AtomicU64>,
}

impl Owned {
    fn new(dropped: &Arc<AtomicU64>) -> Self {
        Self {
            dropped: Arc::clone(dropped),
            gone: Arc::default(),
        }
    }

    fn called(&self) {
        assert_eq!(self.gone.load(Ordering::SeqCst), 0, "called after its drop");
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        self.gone.store(1, Ordering::SeqCst);
        self.dropped.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn record_is_delivered_before_its_send_returns() {
    let (writer, reader) = pair(Overflow::Block);
    let (seen, ended) = (Arc::new(Mutex::new(Vec::new())), mpsc::channel());
    let subscription = {
        let seen = Arc::clone(&seen);
        let mut next = 0;
        reader.subscribe(move |event| {
            match event {
                Event::Records(records) => {
                    assert_eq!((records.first_sequence(), records.lost_before()), (next, 0));
                    assert_eq!(records.iter().len() as u32, records.len());
                    for (_, number, text) in records.iter() {
                        assert_eq!((number, text.len() as u64), (next, next % 40));
                        next += 1;
                    }
                    seen.lock().unwrap().push(thread::current().id());
                }
                Event::Ended {
                    result,
                    lost,
                    reason,
                } => {
                    assert!(result.is_ok() && lost == 0 && reason.is_none());
                    ended.0.send(next).unwrap();
                }
            }
            Continue(())
        })
    };
    let subscription = subscription.unwrap();
    for number in 0..10 {
        writer.send(&record(number)).unwrap();
        // The actor that delivers the records from before the subscription may still be running,
        // and then it delivers the first ones.
        if number > 0 && seen.lock().unwrap().len() == number as usize + 1 {
            assert_eq!(seen.lock().unwrap().last(), Some(&thread::current().id()));
        }
    }
    writer.finish().unwrap();
    assert_eq!(ended.1.recv(), Ok(10));
    subscription.join(u64::MAX).unwrap();
    assert_eq!(subscription.counts().delivered, 10);
    assert!(seen.lock().unwrap().contains(&thread::current().id()));
}

#[test]
fn records_before_the_subscription_come_first_and_the_state_is_dropped_once() {
    let (writer, reader) = pair(Overflow::Block);
    for number in 0..500 {
        writer.send(&record(number)).unwrap();
    }
    writer.finish().unwrap();
    let dropped = Arc::new(AtomicU64::new(0));
    let held = Owned::new(&dropped);
    let mut next = 0;
    let subscription = reader
        .subscribe(move |event| {
            held.called();
            match event {
                Event::Records(records) => {
                    for (_, number, _) in records.iter() {
                        assert_eq!(number, next);
                        next += 1;
                    }
                }
                Event::Ended { .. } => assert_eq!(next, 500),
            }
            Continue(())
        })
        .unwrap();
    subscription.join(u64::MAX).unwrap();
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
    subscription.close();
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
}

/// Sends until the stream has ended, and returns the outcome.
fn send_until_over(writer: &thalweg_port::StreamWriter<Record>) -> Code {
    let mut number = 0;
    loop {
        if let Err(failure) = writer.send(&record(number)) {
            return failure.code;
        }
        number += 1;
    }
}

#[test]
fn callback_that_breaks_or_panics_closes_its_stream_and_is_not_called_again() {
    for panics in [false, true] {
        let (writer, reader) = pair(Overflow::Block);
        let (dropped, calls) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let (held, counted) = (Owned::new(&dropped), Arc::clone(&calls));
        let subscription = reader
            .subscribe(move |_: Event<'_, Record>| {
                held.called();
                counted.fetch_add(1, Ordering::SeqCst);
                assert!(!panics, "in a callback, on purpose");
                Break(())
            })
            .unwrap();
        assert_eq!(send_until_over(&writer), Code::Closed);
        subscription.join(u64::MAX).unwrap();
        assert_eq!(calls.load(Ordering::SeqCst), 1);
        assert_eq!(dropped.load(Ordering::SeqCst), 1);
    }
}

#[test]
fn callback_can_close_its_own_subscription_but_not_wait_for_it() {
    let (writer, reader) = pair(Overflow::Block);
    let own: Arc<Mutex<Option<Subscription<Record>>>> = Arc::default();
    let (dropped, calls) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (held, mine, counted) = (Owned::new(&dropped), Arc::clone(&own), Arc::clone(&calls));
    let mut keeps = own.lock().unwrap();
    let subscription = reader.subscribe(move |_: Event<'_, Record>| {
        held.called();
        counted.fetch_add(1, Ordering::SeqCst);
        let subscription = mine.lock().unwrap().take().unwrap();
        assert_eq!(
            subscription.join(u64::MAX).unwrap_err().code,
            Code::WouldPark
        );
        subscription.close();
        assert_eq!(
            held.dropped.load(Ordering::SeqCst),
            0,
            "the callback is running"
        );
        Continue(())
    });
    *keeps = Some(subscription.unwrap());
    drop(keeps);
    assert_eq!(send_until_over(&writer), Code::Closed);
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    // The runner drops the callback, possibly the actor that delivered the records from before the
    // subscription.
    while dropped.load(Ordering::SeqCst) == 0 {
        thread::yield_now();
    }
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
}

#[test]
fn close_on_another_thread_waits_for_the_running_callback() {
    let (writer, reader) = pair(Overflow::Block);
    let (inside, go_on) = (mpsc::channel(), mpsc::channel::<()>());
    let dropped = Arc::new(AtomicU64::new(0));
    let held = Owned::new(&dropped);
    let subscription = reader
        .subscribe(move |_: Event<'_, Record>| {
            held.called();
            inside.0.send(()).unwrap();
            go_on.1.recv().unwrap();
            Continue(())
        })
        .unwrap();
    let writing = thread::spawn(move || send_until_over(&writer));
    inside.1.recv().unwrap();
    assert_eq!(subscription.join(0).unwrap_err().code, Code::TimedOut);
    let closing = thread::spawn({
        let dropped = Arc::clone(&dropped);
        move || {
            subscription.close();
            dropped.load(Ordering::SeqCst)
        }
    });
    go_on.0.send(()).unwrap();
    // One more call may have begun before the close.
    drop(go_on.0);
    assert_eq!(closing.join().unwrap(), 1, "dropped before close returned");
    assert_eq!(writing.join().unwrap(), Code::Closed);
}

#[test]
fn slow_callback_does_not_block_a_second_stream() {
    let (slow_writer, slow) = pair(Overflow::Block);
    let (writer, reader) = pair(Overflow::Block);
    let (inside, go_on) = (mpsc::channel(), mpsc::channel::<()>());
    let slow = slow
        .subscribe(move |event: Event<'_, Record>| {
            if matches!(event, Event::Records(_)) {
                inside.0.send(()).unwrap();
                let _ = go_on.1.recv();
            }
            Continue(())
        })
        .unwrap();
    let writing = thread::spawn(move || slow_writer.send(&record(0)).map(drop));
    inside.1.recv().unwrap();
    let seen = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&seen);
    let other = reader
        .subscribe(move |event: Event<'_, Record>| {
            if let Event::Records(records) = event {
                counted.fetch_add(records.len().into(), Ordering::SeqCst);
            }
            Continue(())
        })
        .unwrap();
    for number in 0..10 * u64::from(CAPACITY) {
        writer.send(&record(number)).unwrap();
    }
    writer.finish().unwrap();
    other.join(u64::MAX).unwrap();
    assert_eq!(seen.load(Ordering::SeqCst), 10 * u64::from(CAPACITY));
    drop(go_on.0);
    writing.join().unwrap().unwrap();
    slow.join(u64::MAX).unwrap();
}

#[test]
fn single_writer_with_a_callback_loses_no_record_under_any_policy() {
    for policy in POLICIES {
        let (writer, reader) = pair(policy);
        // An actor delivers the first record, so a writer could meanwhile find the stream full.
        let first = mpsc::channel();
        let mut next = 0;
        let subscription = reader
            .subscribe(move |event: Event<'_, Record>| {
                if let Event::Records(records) = event {
                    assert_eq!(records.lost_before(), 0, "{policy:?}");
                    for (_, number, _) in records.iter() {
                        assert_eq!(number, next, "{policy:?}");
                        next += 1;
                    }
                    let _ = first.0.send(());
                }
                Continue(())
            })
            .unwrap();
        assert_eq!(writer.send(&record(0)).unwrap(), Sent::Written);
        first.1.recv().unwrap();
        // The callback is idle again before the next record is written.
        let mut batch = writer.batch(100);
        for number in 1..RECORDS / 10 {
            while subscription.counts().undelivered > 200 {
                thread::yield_now();
            }
            assert_eq!(batch.send(&record(number)).unwrap(), Sent::Written);
        }
        drop(batch);
        writer.finish().unwrap();
        subscription.join(u64::MAX).unwrap();
        let counts = subscription.counts();
        assert_eq!(
            (counts.delivered, counts.published),
            (RECORDS / 10, RECORDS / 10)
        );
    }
}

#[test]
fn concurrent_writers_run_one_callback_at_a_time() {
    let (writer, reader) = pair(Overflow::Block);
    let inside = AtomicU64::new(0);
    let seen = Arc::new(Mutex::new([0u64; 4]));
    let counted = Arc::clone(&seen);
    let subscription = reader
        .subscribe(move |event: Event<'_, Record>| {
            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
            if let Event::Records(records) = event {
                let mut seen = counted.lock().unwrap();
                for (w, number, _) in records.iter() {
                    assert_eq!(number, seen[w as usize]);
                    seen[w as usize] += 1;
                }
            }
            inside.fetch_sub(1, Ordering::SeqCst);
            Continue(())
        })
        .unwrap();
    let threads: Vec<_> = (0..4u64)
        .map(|w| {
            let writer = writer.clone();
            thread::spawn(move || {
                for number in 0..RECORDS {
                    writer.send(&(w, number, String::new())).unwrap();
                }
                writer.finish().unwrap();
            })
        })
        .collect();
    writer.finish().unwrap();
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    subscription.join(u64::MAX).unwrap();
    assert_eq!(*seen.lock().unwrap(), [RECORDS; 4]);
    let counts = subscription.counts();
    assert_eq!(
        (counts.published, counts.delivered),
        (4 * RECORDS, 4 * RECORDS)
    );
}

#[test]
fn racing_callbacks_are_each_dropped_once_and_not_called_after() {
    let dropped = Arc::new(AtomicU64::new(0));
    let mut made = 0;
    for race in 0..RACES {
        let (writer, reader) = pair(Overflow::Block);
        let held = || Owned::new(&dropped);
        let callback = |held: Owned| {
            move |_: Event<'_, Record>| -> ControlFlow<()> {
                held.called();
                Continue(())
            }
        };
        let subscription = Arc::new(reader.subscribe(callback(held())).unwrap());
        made += 1;
        let second = writer.clone();
        let ends = race % 3 == 0;
        let write = move |writer: thalweg_port::StreamWriter<Record>| {
            for number in 0..50 {
                if writer.send(&record(number)).is_err() {
                    break;
                }
            }
            if !ends {
                send_until_over(&writer);
            }
        };
        let threads = [writer, second].map(|writer| thread::spawn(move || write(writer)));
        let replacing = thread::spawn({
            let subscription = Arc::clone(&subscription);
            let (first, second) = (held(), held());
            made += 2;
            move || {
                // Refused if the stream is closed; the callback's state is then dropped with the
                // callback.
                let _ = subscription.replace(callback(first));
                let _ = subscription.replace(callback(second));
            }
        });
        if race % 2 == 0 {
            replacing.join().unwrap();
            Arc::into_inner(subscription).unwrap().close();
        } else {
            drop(subscription);
            replacing.join().unwrap();
        }
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
    }
    while dropped.load(Ordering::SeqCst) < made {
        thread::yield_now();
    }
    assert_eq!(dropped.load(Ordering::SeqCst), made);
}

#[test]
fn client_close_is_the_last_event_of_a_callback() {
    let client = lab::client();
    let reader = lab::stream(&client, u64::MAX, 2, false).wait().unwrap();
    let (ended, first) = (mpsc::channel(), mpsc::channel());
    let subscription = reader
        .subscribe(move |event| {
            match event {
                Event::Records(_) => drop(first.0.send(())),
                Event::Ended { result, .. } => ended.0.send(result.unwrap_err().code).unwrap(),
            }
            Continue(())
        })
        .unwrap();
    first.1.recv().unwrap();
    client.close();
    assert_eq!(ended.1.recv(), Ok(Code::Cancelled));
    subscription.join(u64::MAX).unwrap();
}

#[cfg(not(miri))]
#[test]
fn armed_stream_descriptor_becomes_readable_at_a_record() {
    let readable = |reader: &thalweg_port::StreamReader<Record>| {
        let path = format!("/proc/self/fdinfo/{}", reader.fd().unwrap().as_raw_fd());
        let info = std::fs::read_to_string(path).unwrap();
        let count = info.lines().find(|line| line.starts_with("eventfd-count:"));
        !count.expect("an eventfd").ends_with(" 0")
    };
    let becomes_readable = |reader: &_| {
        while !readable(reader) {
            thread::yield_now();
        }
    };
    let (writer, mut reader) = pair(Overflow::Block);
    for number in 0..3 {
        assert!(!reader.arm().unwrap());
        assert!(!readable(&reader));
        writer.send(&record(number)).unwrap();
        becomes_readable(&reader);
        assert!(reader.arm().unwrap(), "a record is available");
        assert_eq!(reader.next_batch(9, 0).unwrap().unwrap().len(), 1);
    }
    assert!(!reader.arm().unwrap());
    writer.finish().unwrap();
    becomes_readable(&reader);
    assert!(reader.next_batch(9, 0).unwrap().is_none());
}
