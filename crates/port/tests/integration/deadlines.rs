//! The timeout that a policy file sets for a method, combined with the caller's deadline.

use std::time::Duration;

use thalweg_port::{
    CallError, Client, Code, Incoming, Method, MethodOptions, NoError, Overflow, Package,
    QueueLimits, Service, StreamOptions, StreamReader, StreamWriter,
};
use thalweg_queue::clock;
use thalweg_wire::{Decode, Handle};

const HOUR: Duration = Duration::from_hours(1);
const SOON: Duration = Duration::from_millis(20);

const UNTIL: u32 = 0;
const FREE: u32 = 1;
const NESTED: u32 = 2;
const NUMBERS: u32 = 3;

const fn method(name: &'static str, ok: u64, deadline: Duration) -> Method {
    Method {
        name,
        params: <()>::HASH,
        ok,
        error: 0,
        element: 0,
        is_async: false,
        options: MethodOptions {
            timeout_ns: deadline.as_nanos() as u64,
            ..MethodOptions::NONE
        },
        stream: None,
        description: "",
    }
}

/// Reports the deadline of its calls, or, with a client of another service, the deadline of the
/// call that it makes there. It keeps a stream's writer.
struct Limits(Option<Client>, Option<StreamWriter<u64>>);

impl Service for Limits {
    const PACKAGE: &'static Package = &Package {
        name: "test:limits",
        version: "0.1.0",
        layout: 1,
        imports: &[],
        limits: QueueLimits::DEFAULT,
        methods: &[
            method("limits.until", u64::HASH, HOUR),
            method("limits.free", u64::HASH, Duration::ZERO),
            method("limits.nested", u64::HASH, Duration::ZERO),
            Method {
                element: u64::HASH,
                stream: Some(StreamOptions {
                    overflow: Overflow::Block,
                    capacity: 64,
                    ..StreamOptions::DEFAULT
                }),
                ..method("limits.numbers", Handle::HASH, SOON)
            },
        ],
    };

    fn dispatch(&mut self, incoming: Incoming) {
        match incoming.method() {
            NESTED => {
                let next = self.0.clone().unwrap();
                incoming.reply(&until(&next, UNTIL));
            }
            // No record is sent, so only the deadline ends it.
            NUMBERS => {
                let (writer, reader) = incoming.call().stream::<u64, thalweg_port::Untyped>();
                self.1 = Some(writer);
                incoming.reply_stream(reader);
            }
            _ => {
                let until = incoming.call().deadline().unwrap_or(0);
                incoming.reply(&until);
            }
        }
    }
}

fn open() -> Client {
    Client::start(|| Limits(None, None)).unwrap()
}

/// 0: no deadline.
fn until(client: &Client, method: u32) -> u64 {
    let call = client.call::<_, u64, NoError>(method, &(), |reply| reply.value());
    call.wait().unwrap()
}

#[test]
fn call_without_a_deadline_has_the_timeout_of_the_policy_file() {
    let client = open();
    let earliest = clock::deadline(HOUR);
    let seen = until(&client, UNTIL);
    assert!((earliest..=clock::deadline(HOUR)).contains(&seen));
    assert_eq!(until(&client, FREE), 0);
}

#[test]
fn earlier_of_two_deadlines_applies() {
    let client = open();
    let half = client.with_timeout(HOUR / 2);
    assert!(until(&half, UNTIL) <= clock::deadline(HOUR / 2));
    let twice = client.with_timeout(HOUR * 2);
    assert!(until(&twice, UNTIL) <= clock::deadline(HOUR));
    assert!(until(&twice, FREE) > clock::deadline(HOUR));
}

#[test]
fn timeout_applies_to_nested_calls() {
    let inner = open();
    let client = Client::start(move || Limits(Some(inner.clone()), None)).unwrap();
    for (outer, limit) in [(HOUR / 2, HOUR / 2), (HOUR * 2, HOUR)] {
        let before = clock::now();
        let seen = until(&client.with_timeout(outer), NESTED);
        let limit = limit.as_nanos() as u64;
        assert!((before + limit..=clock::now() + limit).contains(&seen));
    }
}

#[test]
fn stream_ends_at_the_timeout_of_its_method() {
    let read = |reader: StreamReader<u64>| reader.collect::<Result<Vec<_>, _>>();
    let client = open();
    let numbers = client.call::<_, _, NoError>(NUMBERS, &(), |reply| reply.stream());
    let ended = match numbers.wait() {
        Ok(reader) => read(reader).unwrap_err(),
        // The deadline passed before the call began.
        Err(CallError::Ended(failure)) => failure,
        Err(other) => panic!("{other}"),
    };
    assert_eq!(ended.code, Code::TimedOut);
}
