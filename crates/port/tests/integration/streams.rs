//! Streams: order, credit and outcomes.

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_core::Stream;
use thalweg_port::{Code, Failure, Instance};
use thalweg_queue::clock;
use thalweg_runtime::{native, wait};

use crate::lab;
use crate::lab::client;

#[test]
fn records_of_each_writer_arrive_once_and_in_order() {
    let mut next: HashMap<u64, u64> = HashMap::new();
    let mut seen = 0;
    for record in lab::stream(&client(), 5_000, 4, false).wait().unwrap() {
        let (key, text) = record.unwrap();
        let (writer, i) = (key >> 32, key & 0xffff_ffff);
        assert!(text.starts_with(&format!("{writer}:{i}:")));
        let expected = next.entry(writer).or_default();
        assert_eq!(i, *expected);
        *expected += 1;
        seen += 1;
    }
    assert_eq!(seen, 20_000);
}

#[test]
fn stream_wait_in_native_code_is_would_park_on_both_sides() {
    let (client, seen) = lab::seen();
    let mut reader = lab::hasty(&client, 1_000_000).wait().unwrap();
    // There is no reader, so the writer runs out of credit and stops.
    lab::wait_until(&seen.refused, 1);
    let actor = Instance::runtime().unwrap().spawn(move || {
        let mut read = 0;
        loop {
            let batch = native(|| {
                let batch = reader.next_batch(100, u64::MAX)?;
                Ok::<_, Failure>(batch.map(|batch| batch.len()))
            });
            match batch {
                Ok(Some(records)) => read += u64::from(records),
                Ok(None) => break,
                // The writer is about to finish.
                Err(failure) => {
                    assert_eq!(failure.code, Code::WouldPark);
                    wait::yield_now();
                }
            }
        }
        read
    });
    let read = actor.join().unwrap();
    assert!((1..1_000_000).contains(&read), "{read}");
}

#[test]
fn batch_numbers_its_records_and_shows_them_in_place() {
    let mut reader = lab::stream(&client(), 1_000, 1, false).wait().unwrap();
    let mut next = 0;
    while let Some(batch) = reader.next_batch(100, u64::MAX).unwrap() {
        assert!((1..=100).contains(&batch.len()));
        assert_eq!(batch.first_sequence(), next);
        assert_eq!(batch.lost_before(), 0);
        for (key, text) in batch.iter() {
            assert_eq!(key, next);
            assert!(text.starts_with("0:"));
            next += 1;
        }
    }
    assert_eq!(next, 1_000);
}

#[test]
fn writers_wait_while_the_reader_does_not_read() {
    const WRITERS: u64 = 3;
    const MOST: u64 = 4_000;
    let (client, seen) = lab::seen();
    let mut reader = lab::stream(&client, 1_000_000, WRITERS, false)
        .wait()
        .unwrap();
    let written = || seen.written.load(Ordering::SeqCst);
    // The capacity is 1,024 records in segments, with at least two segments for each of three
    // writers.
    while (reader.stats().waits < WRITERS || written() < 1_000) && written() < MOST {
        std::thread::yield_now();
    }
    let in_flight = written();
    assert!(in_flight < MOST, "{in_flight} in flight");
    // It continues after the records that were read.
    for _ in 0..5_000 {
        reader.next().unwrap().unwrap();
    }
    assert!(seen.ended.load(Ordering::SeqCst) == 0 && written() > in_flight);
    drop(reader);
    lab::wait_until(&seen.ended, WRITERS as u32);
    assert!(written() < WRITERS * 1_000_000);
}

#[test]
fn deadline_ends_the_stream_after_the_written_records() {
    // On a busy machine, a short deadline may pass before the call is made or the first record is
    // written.
    for millis in [50, 500, 5_000, 50_000] {
        let deadline = Duration::from_millis(millis);
        let client = client().with_timeout(deadline);
        let Ok(mut reader) = lab::stream(&client, 1_000_000, 1, false).wait() else {
            continue;
        };
        std::thread::sleep(2 * deadline);
        let mut seen = 0;
        let failure = loop {
            match reader.next().unwrap() {
                Ok(_) => seen += 1,
                Err(failure) => break failure,
            }
        };
        assert_eq!(failure.code, Code::TimedOut);
        assert!(reader.next().is_none(), "an error is the last item");
        if seen > 0 {
            return;
        }
    }
    panic!("no deadline was long enough for a record");
}

#[test]
fn writer_that_panics_ends_the_stream_with_its_message() {
    // More than the stream's capacity, so the writer waits for its reader, which exists only after
    // the call was answered. A panic before the answer would end the call.
    let count = 2 * 1024;
    let mut reader = lab::stream(&client(), count, 1, true).wait().unwrap();
    let records: Vec<_> = reader.by_ref().take(count as usize).collect();
    assert!(records.iter().all(Result::is_ok));
    let failure = reader.next().unwrap().unwrap_err();
    assert_eq!(failure.code, Code::GuestPanicked);
    assert_eq!(failure.message, "in a writer, on purpose");
}

#[test]
fn client_close_ends_its_streams() {
    let client = client();
    let mut reader = lab::stream(&client, 1_000_000, 1, false).wait().unwrap();
    reader.next().unwrap().unwrap();
    client.close();
    let failure = reader.find_map(Result::err).unwrap();
    assert_eq!(failure.code, Code::Cancelled);
}

#[test]
fn latest_delivers_the_newest_record_and_the_number_of_conflated_ones() {
    let mut reader = lab::newest(&client(), 100).wait().unwrap();
    // All records were written before the reader read.
    let batch = reader.next_batch(10, u64::MAX).unwrap().unwrap();
    assert_eq!(batch.iter().collect::<Vec<_>>(), [99]);
    assert_eq!((batch.first_sequence(), batch.lost_before()), (99, 99));
    drop(batch);
    assert!(reader.next_batch(10, u64::MAX).unwrap().is_none());
}

#[test]
fn reader_wait_ends_at_its_deadline_and_the_stream_continues() {
    let mut reader = lab::stream(&client(), 3, 0, false).wait().unwrap();
    // There are no writers, so the stream has ended.
    assert!(reader.next_batch(1, 0).unwrap().is_none());
    let (streams, _) = lab::sources(&client(), 1, lab::GOES_ON).wait().unwrap();
    let held = streams.into_iter().next().unwrap();
    let mut reader = held.into_reader().unwrap();
    assert_eq!(reader.next(), Some(Ok(0)));
    for _ in 0..2 {
        let late = reader.next_batch(1, clock::now() + 1).unwrap_err();
        assert_eq!(late.code, Code::TimedOut);
    }
}

#[test]
fn stream_reader_works_on_any_executor() {
    let mut reader = lab::stream(&client(), 3_000, 2, false).wait().unwrap();
    let seen = lab::block_on(async {
        let mut seen = 0;
        while let Some(record) = poll_fn(|cx| Pin::new(&mut reader).poll_next(cx)).await {
            record.unwrap();
            seen += 1;
        }
        seen
    });
    assert_eq!(seen, 6_000);
}
