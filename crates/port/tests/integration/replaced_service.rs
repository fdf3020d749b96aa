//! The calls and streams that a service kept when a panic in another call replaces it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use thalweg_port::{
    Call, CallError, Client, Code, FutureReader, FutureWriter, Incoming, Method, MethodOptions,
    NoError, Overflow, OwnedHandle, Package, Pending, QueueLimits, Reply, Service, StreamOptions,
    StreamReader, StreamWriter, Task, Upstream,
};
use thalweg_wire::{Decode, Encode, Handle, Malformed};

const SUBSCRIBE: u32 = 0;
const LATER: u32 = 1;
const KEEP: u32 = 2;
const READ: u32 = 3;
const OBJECT: u32 = 4;
const OF_OBJECT: u32 = 5;
const PANIC: u32 = 6;
const WALK: u32 = 7;

/// Number of records of `WALK`.
const WALKED: u64 = 1_000;

/// How it panics.
const AT_ONCE: u8 = 0;
const IN_A_TASK: u8 = 1;
/// While it holds all objects that it kept.
const WITH_ALL: u8 = 2;
/// Also in a destructor, once no handle refers to the object.
const IN_A_DESTRUCTOR: u8 = 3;

const fn method<P: Decode, T: Decode>(name: &'static str) -> Method {
    Method {
        name,
        params: P::HASH,
        ok: T::HASH,
        error: NoError::HASH,
        element: 0,
        is_async: false,
        options: MethodOptions::NONE,
        stream: None,
        description: "",
    }
}

const PACKAGE: Package = Package {
    name: "test:keeper",
    version: "0.1.0",
    layout: 1,
    imports: &[],
    limits: QueueLimits::DEFAULT,
    methods: &[
        method::<(), Handle>("keeper.subscribe"),
        method::<(), Handle>("keeper.later"),
        method::<(), u64>("keeper.keep"),
        method::<(Handle,), ()>("keeper.read"),
        method::<(u8,), Handle>("keeper.[constructor]object"),
        method::<(Handle,), Handle>("keeper.[method]object.subscribe"),
        method::<(u8,), ()>("keeper.panic"),
        Method {
            stream: Some(StreamOptions {
                overflow: Overflow::Block,
                capacity: 64,
                ..StreamOptions::DEFAULT
            }),
            ..method::<(), Handle>("keeper.walk")
        },
    ],
};

#[derive(Default)]
struct Kept {
    writers: Vec<StreamWriter<u64>>,
    futures: Vec<FutureWriter<u64>>,
    calls: Vec<Incoming>,
    read: Vec<Upstream<u64>>,
}

/// Number of services that were created and not dropped.
#[derive(Default)]
struct Alive(Arc<AtomicU32>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

struct Keeper {
    kept: Kept,
    /// Dropped last.
    _alive: Alive,
}

struct Object {
    writer: std::sync::Mutex<Option<StreamWriter<u64>>>,
    panics: bool,
}

impl Drop for Object {
    fn drop(&mut self) {
        assert!(!self.panics, "in a destructor, on purpose");
        if let Some(writer) = self.writer.get_mut().unwrap().take() {
            writer.finish().unwrap();
        }
    }
}

fn given<P: Decode>(incoming: &Incoming) -> P {
    incoming.params().expect("well-formed")
}

impl Service for Keeper {
    const PACKAGE: &'static Package = &PACKAGE;

    fn dispatch(&mut self, incoming: Incoming) {
        let subscribe = |call: &Call| {
            let (writer, reader) = call.stream::<u64, thalweg_port::Untyped>();
            writer.send(&7u64).expect("the stream has capacity");
            (writer, reader)
        };
        match incoming.method() {
            SUBSCRIBE => {
                let (writer, reader) = subscribe(incoming.call());
                self.kept.writers.push(writer);
                incoming.reply_stream(reader);
            }
            LATER => {
                let (writer, reader) = incoming.call().future::<u64, thalweg_port::Untyped>();
                self.kept.futures.push(writer);
                incoming.reply_stream(reader.into_stream());
            }
            KEEP => self.kept.calls.push(incoming),
            READ => {
                let (numbers,) = given(&incoming);
                let numbers = incoming.upstream(numbers).expect("well-formed");
                self.kept.read.push(numbers);
                self.kept.calls.push(incoming);
            }
            OBJECT => {
                let (panics,): (u8,) = given(&incoming);
                incoming.reply_own(Object {
                    writer: std::sync::Mutex::default(),
                    panics: panics == IN_A_DESTRUCTOR,
                });
            }
            OF_OBJECT => {
                let (object,) = given(&incoming);
                let object = incoming.borrow::<Object>(object).expect("its own");
                let (writer, reader) = subscribe(incoming.call());
                *object.writer.lock().unwrap() = Some(writer);
                incoming.reply_stream(reader);
            }
            WALK => {
                let (writer, reader) = incoming.call().stream::<u64, thalweg_port::Untyped>();
                incoming.call().spawn(move |_| {
                    // More than the stream's capacity, so the task runs until the reader has read.
                    for number in 0..WALKED {
                        writer.send(&number).unwrap();
                    }
                    writer.finish().unwrap();
                });
                incoming.reply_stream(reader);
            }
            _ => match given::<(u8,)>(&incoming).0 {
                IN_A_TASK => incoming.run(
                    Task::<()>::new(|_| panic!("in a task, on purpose")),
                    |incoming, ()| incoming.reply(&()),
                ),
                WITH_ALL => {
                    let _kept = std::mem::take(&mut self.kept);
                    panic!("with all, on purpose");
                }
                _ => panic!("at once, on purpose"),
            },
        }
    }
}

/// A client, and the number of its services that exist.
fn client() -> (Client, Arc<AtomicU32>) {
    let count = Arc::new(AtomicU32::new(0));
    let alive = Arc::clone(&count);
    let make = move || {
        alive.fetch_add(1, Ordering::SeqCst);
        Keeper {
            kept: Kept::default(),
            _alive: Alive(Arc::clone(&alive)),
        }
    };
    (Client::start(make).unwrap(), count)
}

fn call<T>(
    client: &Client,
    method: u32,
    params: &impl Encode,
    read: fn(&mut Reply) -> Result<T, Malformed>,
) -> Pending<T, NoError> {
    client.call(method, params, read)
}

fn subscribe(client: &Client) -> StreamReader<u64> {
    let mut reader = call(client, SUBSCRIBE, &(), |reply| reply.stream())
        .wait()
        .unwrap();
    assert_eq!(reader.next(), Some(Ok(7)));
    reader
}

fn panic(client: &Client, how: u8) {
    let ended = call(client, PANIC, &(how,), |reply| reply.value::<()>()).wait();
    assert_eq!(code(ended), Code::GuestPanicked);
}

fn code<T: std::fmt::Debug>(result: Result<T, CallError<NoError>>) -> Code {
    match result.unwrap_err() {
        CallError::Ended(failure) => failure.code,
        CallError::Service(never) => match never {},
    }
}

/// Without another call, the kept streams end at once.
fn panicked(mut reader: StreamReader<u64>) {
    let failure = reader
        .next()
        .expect("the stream did not end regularly")
        .unwrap_err();
    assert_eq!(failure.code, Code::GuestPanicked);
    assert!(failure.message.contains("another call"), "{failure}");
    assert!(reader.next().is_none());
}

#[test]
fn streams_written_by_a_replaced_service_end_as_panicked_without_another_call() {
    for how in [AT_ONCE, IN_A_TASK, WITH_ALL] {
        let (client, alive) = client();
        let streams = [subscribe(&client), subscribe(&client)];
        let future = call(&client, LATER, &(), |reply| {
            reply
                .stream::<u64, thalweg_port::Untyped>()
                .map(FutureReader::from)
        });
        let future = future.wait().unwrap();
        panic(&client, how);
        streams.into_iter().for_each(panicked);
        assert_eq!(future.wait().unwrap_err().code, Code::GuestPanicked);
        // The service is dropped, and the next call gets a fresh one.
        while alive.load(Ordering::SeqCst) > 0 {
            std::thread::yield_now();
        }
        let fresh = subscribe(&client);
        assert_eq!(alive.load(Ordering::SeqCst), 1);
        client.close();
        assert_eq!(
            fresh.last().map(|end| end.unwrap_err().code),
            Some(Code::Cancelled)
        );
    }
}

#[test]
fn calls_kept_by_a_replaced_service_end_as_panicked() {
    for how in [AT_ONCE, IN_A_TASK, WITH_ALL] {
        let (client, _) = client();
        let kept = call(&client, KEEP, &(), |reply| reply.value::<u64>());
        panic(&client, how);
        assert_eq!(code(kept.wait()), Code::GuestPanicked);
    }
}

#[test]
fn streams_read_by_a_replaced_service_end_as_panicked() {
    for how in [AT_ONCE, IN_A_TASK, WITH_ALL] {
        let (client, _) = client();
        let (writer, numbers) = Upstream::<u64>::pair().unwrap();
        let reads = call(&client, READ, &(numbers,), |reply| reply.value::<()>());
        writer.send(&1u64).unwrap();
        panic(&client, how);
        assert_eq!(code(reads.wait()), Code::GuestPanicked);
        let failure = writer.send(&2u64).unwrap_err();
        assert_eq!(failure.code, Code::GuestPanicked, "{failure}");
    }
}

fn object(client: &Client, how: u8) -> (OwnedHandle, StreamReader<u64>) {
    let object = call(client, OBJECT, &(how,), |reply| reply.own())
        .wait()
        .unwrap();
    let reader = call(client, OF_OBJECT, &(object.handle(),), |reply| {
        reply.stream()
    });
    let mut reader = reader.wait().unwrap();
    assert_eq!(reader.next(), Some(Ok(7)));
    (object, reader)
}

#[test]
fn streams_written_by_a_stale_resource_end_as_panicked_when_it_is_dropped() {
    let (client, _) = client();
    let (object, reader) = object(&client, AT_ONCE);
    panic(&client, AT_ONCE);
    drop(object);
    panicked(reader);
}

#[test]
fn streams_written_by_a_resource_with_a_panicking_destructor_end_as_panicked() {
    let (client, _) = client();
    let (object, reader) = object(&client, IN_A_DESTRUCTOR);
    let kept = subscribe(&client);
    drop(object);
    panicked(reader);
    panicked(kept);
}

#[test]
fn stream_written_by_another_calls_actor_continues_to_its_end() {
    let (client, _) = client();
    let walk = call(&client, WALK, &(), |reply| {
        reply.stream::<u64, thalweg_port::Untyped>()
    });
    let walk = walk.wait().unwrap();
    panic(&client, AT_ONCE);
    assert!(walk.map(Result::unwrap).eq(0..WALKED));
}

#[test]
fn stream_finished_before_the_replacement_ends_regularly() {
    let (client, _) = client();
    let (object, reader) = object(&client, AT_ONCE);
    drop(object);
    assert_eq!(reader.count(), 0);
    panic(&client, AT_ONCE);
}
