//! A stream without linger time: a record wakes the waiting reader at once, even in a busy stream.

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use thalweg_port::{
    Incoming, Instance, Kind, Method, MethodOptions, Object, Overflow, Package, Port, QueueLimits,
    Service, StreamOptions, StreamWriter, find,
};
use thalweg_wire::{Decode, Handle, message};

struct Feed(Sender<StreamWriter<u64>>);

impl Service for Feed {
    const PACKAGE: &'static Package = &Package {
        name: "test:feed",
        version: "0.1.0",
        layout: 1,
        imports: &[],
        limits: QueueLimits::DEFAULT,
        methods: &[Method {
            name: "feed.soon",
            params: <()>::HASH,
            ok: Handle::HASH,
            error: 0,
            element: u64::HASH,
            is_async: false,
            options: MethodOptions::NONE,
            stream: Some(StreamOptions {
                overflow: Overflow::Block,
                capacity: 256,
                linger_ns: 1_000,
                ..StreamOptions::DEFAULT
            }),
            description: "",
        }],
    };

    fn dispatch(&mut self, incoming: Incoming) {
        let (writer, reader) = incoming.call().stream::<u64, thalweg_port::Untyped>();
        self.0.send(writer).unwrap();
        incoming.reply_stream(reader);
    }
}

#[test]
fn record_without_linger_wakes_its_reader_at_once() {
    let (gives, writers) = channel();
    let instance = Instance::open(move || Feed(gives.clone()), Instance::runtime().unwrap());
    let port = Port::open(4).unwrap();
    let args = message::encode(&(), <()>::HASH, Vec::new()).unwrap();
    instance.submit(&port, 0, 0, &args, u64::MAX).unwrap();
    port.wait(u64::MAX).unwrap();
    let mut ended = port.reap().unwrap().next().unwrap();
    let handle = ended.take(0).unwrap();
    let Object::Stream(core) = find(handle).unwrap() else {
        panic!("the handle is a stream");
    };
    let writer = writers.recv().unwrap();
    let stream = Arc::clone(&core);
    for number in 0..100u64 {
        // The reader has just received a record and finds no more.
        let token = 1_000 + number;
        assert!(!stream.arm_port(&port, token, handle).unwrap());
        writer.send(&number).unwrap();
        assert_eq!(stream.stats().wakes, number + 1);
        let ready = port.reap().unwrap().next().unwrap();
        assert_eq!((ready.kind, ready.token), (Kind::StreamReady, token));
        let batch = stream.try_acquire(u32::MAX).unwrap();
        assert_eq!((batch.count, batch.first_sequence), (1, number));
        stream.release(1).unwrap();
    }
    thalweg_port::close_handle(handle).unwrap();
}
