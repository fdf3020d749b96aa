//! A stream is complete only when every writer has finished. Otherwise it ends with a reason.

use std::ops::ControlFlow::Continue;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;

use thalweg_port::{
    Call, CallError, Client, Code, Event, Failure, FutureReader, Incoming, Method, MethodOptions,
    NoError, Overflow, Package, QueueLimits, Service, StreamOptions, StreamReader, Untyped,
};
use thalweg_wire::{Decode, Handle};

use crate::pair;
use crate::pair::{Record, pair};

const FORGOTTEN: &str = "a writer was dropped without finish()";

/// A record above the limit.
fn too_large() -> Record {
    (0, 1, "x".repeat(80_000_000))
}

fn record(number: u64) -> Record {
    (0, number, String::new())
}

/// The outcome of the stream after `records` records.
fn outcome_of(reader: StreamReader<Record>, records: usize) -> Option<Failure> {
    let mut all = reader.collect::<Vec<_>>();
    let last = all.pop_if(|last| last.is_err());
    assert_eq!(all.len(), records);
    last.and_then(Result::err)
}

fn lost(why: Option<Failure>) -> String {
    let why = why.expect("the stream is not complete");
    assert_eq!(why.code, Code::GuestLost);
    why.message
}

#[test]
fn writer_dropped_without_finish_ends_the_stream_as_guest_lost() {
    let (writer, reader) = pair(Overflow::Block);
    writer.send(&record(0)).unwrap();
    drop(writer);
    assert_eq!(lost(outcome_of(reader, 1)), FORGOTTEN);
}

#[test]
fn writer_dropped_after_a_failed_send_names_the_failure() {
    let (writer, reader) = pair(Overflow::Block);
    writer.send(&record(0)).unwrap();
    let refused = writer.send(&too_large()).unwrap_err();
    assert_eq!(refused.code, Code::Argument);
    drop(writer);
    let expected = "a writer was dropped after a send failed: argument: the record has 80,000,024 \
                    bytes, the limit is 67,108,864";
    assert_eq!(lost(outcome_of(reader, 1)), expected);
}

#[test]
fn writer_dropped_after_a_failed_control_record_names_the_failure() {
    let (writer, reader) = pair(Overflow::Block);
    writer.control(&too_large()).unwrap_err();
    drop(writer);
    assert!(
        lost(outcome_of(reader, 0)).starts_with("a writer was dropped after a send failed: arg")
    );
}

#[test]
fn writer_that_finishes_after_a_failed_send_completes_the_stream() {
    let (writer, reader) = pair(Overflow::Block);
    writer.send(&too_large()).unwrap_err();
    writer.send(&record(0)).unwrap();
    writer.finish().unwrap();
    assert_eq!(outcome_of(reader, 1), None);
}

#[test]
fn stream_is_complete_when_both_clones_have_finished() {
    for policy in pair::POLICIES {
        let (writer, reader) = pair(policy);
        let other = writer.clone();
        writer.send(&record(0)).unwrap();
        writer.finish().unwrap();
        other.check().unwrap();
        other.finish().unwrap();
        assert_eq!(outcome_of(reader, 1), None, "{policy:?}");
    }
}

#[test]
fn stream_is_not_complete_when_one_of_two_clones_has_finished() {
    for policy in pair::POLICIES {
        let (writer, reader) = pair(policy);
        let other = writer.clone();
        writer.send(&record(0)).unwrap();
        drop(other);
        assert_eq!(writer.finish().unwrap_err().code, Code::GuestLost);
        assert_eq!(lost(outcome_of(reader, 1)), FORGOTTEN, "{policy:?}");
    }
}

#[test]
fn write_batch_dropped_does_not_finish() {
    let (writer, reader) = pair(Overflow::Block);
    let mut batch = writer.batch(16);
    batch.send(&record(0)).unwrap();
    drop(batch);
    drop(writer);
    assert_eq!(lost(outcome_of(reader, 1)), FORGOTTEN);
}

#[test]
fn finish_after_the_reader_left_is_closed() {
    let (writer, reader) = pair(Overflow::Block);
    drop(reader);
    assert_eq!(writer.finish().unwrap_err().code, Code::Closed);
}

#[test]
fn writer_dropped_without_finish_ends_every_reader() {
    let (writer, reader) = pair(Overflow::Block);
    let further = reader.tee().unwrap();
    let (told, called) = mpsc::channel();
    let subscription = reader.tee().unwrap().subscribe(move |event| {
        if let Event::Ended { result, .. } = event {
            told.send(result).unwrap();
        }
        Continue(())
    });
    writer.send(&record(0)).unwrap();
    drop(writer);
    assert_eq!(lost(outcome_of(reader, 1)), FORGOTTEN);
    assert_eq!(lost(outcome_of(further, 1)), FORGOTTEN);
    assert_eq!(lost(called.recv().unwrap().err()), FORGOTTEN);
    drop(subscription);
}

#[test]
fn abort_ends_the_stream_with_its_reason_after_the_records() {
    let (writer, reader) = pair(Overflow::Block);
    writer.send(&record(0)).unwrap();
    writer.abort("the disk is gone").unwrap();
    assert_eq!(lost(outcome_of(reader, 1)), "the disk is gone");
}

#[test]
fn send_all_finishes_unless_a_send_fails() {
    let (writer, reader) = pair(Overflow::Block);
    writer.send_all((0..3).map(record)).unwrap();
    assert_eq!(outcome_of(reader, 3), None);
    let (writer, reader) = pair(Overflow::Block);
    let refused = writer.send_all([record(0), too_large(), record(2)]);
    assert_eq!(refused.unwrap_err().code, Code::Argument);
    assert!(lost(outcome_of(reader, 1)).contains("the record has 80,000,024 bytes"));
}

/// How the service ends its writer.
const FAILS: u32 = 0;
const FAILS_BESIDE_ANOTHER: u32 = 1;
const CATCHES: u32 = 2;
const FUTURE_FAILS: u32 = 3;
const FUTURE_DROPPED: u32 = 4;
const LARGE: u32 = 5;

const fn method(name: &'static str, error: u64) -> Method {
    Method {
        name,
        params: <()>::HASH,
        ok: Handle::HASH,
        error,
        element: Record::HASH,
        is_async: false,
        options: MethodOptions::NONE,
        stream: Some(StreamOptions {
            max_record_size: 100_000_000,
            ..StreamOptions::DEFAULT
        }),
        description: "",
    }
}

const PACKAGE: Package = Package {
    name: "test:failing",
    version: "0.1.0",
    layout: 1,
    imports: &[],
    limits: QueueLimits::DEFAULT,
    methods: &[
        method("failing.fails", String::HASH),
        method("failing.fails-beside-another", String::HASH),
        method("failing.catches", 0),
        method("failing.future-fails", String::HASH),
        method("failing.future-dropped", String::HASH),
        method("failing.large", 0),
    ],
};

struct Failing;

impl Service for Failing {
    const PACKAGE: &'static Package = &PACKAGE;

    fn dispatch(&mut self, incoming: Incoming) {
        let call = incoming.call().clone();
        match incoming.method() {
            FAILS => incoming.reply_stream(fails(&call)),
            FAILS_BESIDE_ANOTHER => {
                let (writer, reader) = call.stream::<Record, String>();
                let other = writer.clone();
                other.send(&record(0)).unwrap();
                writer.fail("first").unwrap();
                assert_eq!(other.send(&record(1)).unwrap_err().code, Code::Error);
                other.fail("second").unwrap_err();
                incoming.reply_stream(reader);
            }
            CATCHES => {
                let (writer, reader) = call.stream::<Record, Untyped>();
                writer.send(&record(0)).unwrap();
                let caught = catch_unwind(AssertUnwindSafe(move || {
                    let _writer = writer;
                    panic!("caught by the service, on purpose");
                }));
                caught.unwrap_err();
                incoming.reply_stream(reader);
            }
            FUTURE_FAILS => {
                let (writer, reader) = call.future::<Record, String>();
                writer.fail("no value").unwrap();
                incoming.reply_stream(reader.into_stream());
            }
            FUTURE_DROPPED => {
                let (_, reader) = call.future::<Record, String>();
                incoming.reply_stream(reader.into_stream());
            }
            _ => {
                let (writer, reader) = call.stream::<Record, Untyped>();
                let _ = writer.send_all([too_large(), (0, 1, "x".repeat(100_000_000))]);
                incoming.reply_stream(reader);
            }
        }
    }
}

fn fails(call: &Call) -> StreamReader<Record, String> {
    let (writer, reader) = call.stream();
    writer.send(&record(0)).unwrap();
    writer.send(&record(1)).unwrap();
    writer.fail("the table is gone").unwrap();
    reader
}

fn open<E: thalweg_port::StreamError>(method: u32) -> StreamReader<Record, E> {
    let client = Client::start(|| Failing).unwrap();
    let pending = client.call::<_, _, NoError>(method, &(), |reply| reply.stream());
    pending.wait().unwrap()
}

#[test]
fn fail_ends_the_stream_with_the_typed_error_after_the_records() {
    let mut reader = open::<String>(FAILS);
    assert_eq!(reader.next(), Some(Ok(record(0))));
    assert_eq!(reader.next(), Some(Ok(record(1))));
    let error = CallError::Service("the table is gone".to_owned());
    assert_eq!(reader.next(), Some(Err(error)));
    assert_eq!(reader.next(), None);
}

#[test]
fn fail_reaches_batches_additional_readers_and_callbacks() {
    let mut reader = open::<String>(FAILS);
    let expected = || CallError::Service("the table is gone".to_owned());
    let mut further = reader.tee().unwrap();
    assert_eq!(further.next(), Some(Err(expected())));
    assert_eq!(reader.next_batch(8, u64::MAX).unwrap().unwrap().len(), 2);
    assert_eq!(reader.next_batch(8, u64::MAX).unwrap_err(), expected());
    let (told, called) = mpsc::channel();
    let subscription = open::<String>(FAILS).subscribe(move |event| {
        if let Event::Ended { result, .. } = event {
            told.send(result).unwrap();
        }
        Continue(())
    });
    assert_eq!(called.recv().unwrap(), Err(expected()));
    drop(subscription);
}

#[test]
fn first_of_two_failures_wins() {
    let mut reader = open::<String>(FAILS_BESIDE_ANOTHER);
    assert_eq!(reader.next(), Some(Ok(record(0))));
    let first = CallError::Service("first".to_owned());
    assert_eq!(reader.next(), Some(Err(first)));
}

#[test]
fn error_of_another_type_is_refused_by_the_reader() {
    let error = open::<u64>(FAILS).last().unwrap().unwrap_err();
    let CallError::Ended(why) = error else {
        panic!("{error:?}");
    };
    assert_eq!(why.code, Code::Version);
    let untyped = open::<Untyped>(FAILS).last().unwrap().unwrap_err();
    assert_eq!(untyped.code, Code::Error);
}

#[test]
fn writer_dropped_by_a_panic_that_the_service_catches_ends_the_stream() {
    assert_eq!(
        outcome_of(open(CATCHES), 1).map(|why| why.code),
        Some(Code::GuestPanicked)
    );
}

#[test]
fn future_fails_with_the_typed_error() {
    let future = FutureReader::from(open::<String>(FUTURE_FAILS));
    assert_eq!(
        future.wait(),
        Err(CallError::Service("no value".to_owned()))
    );
}

#[test]
fn future_dropped_without_a_value_names_the_reason() {
    let future = FutureReader::from(open::<String>(FUTURE_DROPPED));
    let Err(CallError::Ended(why)) = future.wait() else {
        panic!("there is no value");
    };
    assert_eq!(why.code, Code::GuestLost);
    assert_eq!(
        why.message,
        "the service dropped the future without a value"
    );
}

#[test]
fn record_limit_of_the_method_applies_to_its_stream() {
    let expected = "a writer was dropped after a send failed: argument: the record has \
                    100,000,024 bytes, the limit is 100,000,000";
    assert_eq!(lost(outcome_of(open(LARGE), 1)), expected);
}
