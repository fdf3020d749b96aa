//! Both ends of a stream in one test: a service that leaves its writers where the test can take
//! them.
#![allow(dead_code)]

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex};

use thalweg_port::stream::StreamCore;
use thalweg_port::{
    Client, ConflationKey, Incoming, Method, MethodOptions, Object, Overflow, OwnedHandle, Package,
    QueueLimits, Reason, Reply, Service, StreamOptions, StreamReader, StreamWriter, find,
};
use thalweg_wire::{Decode, Handle, Malformed};

/// The writer's number, the record's number, and a text.
pub type Record = (u64, u64, String);

pub const CAPACITY: u32 = 1024;

/// The policies, in the order of the methods.
pub const POLICIES: [Overflow; 5] = [
    Overflow::Block,
    Overflow::Latest,
    Overflow::DropNewest,
    Overflow::DropOldest,
    Overflow::Fail,
];

/// The key is the writer's number.
pub const BY_WRITER: Overflow = Overflow::Conflate(ConflationKey(|bytes, at, key| {
    let (writer, ..) = Record::view(bytes, at);
    key.extend_from_slice(&writer.to_le_bytes());
}));

const fn method(policy: Overflow) -> Method {
    Method {
        name: "pair.open",
        params: <(u64,)>::HASH,
        ok: Handle::HASH,
        error: 0,
        element: Record::HASH,
        is_async: false,
        options: MethodOptions::NONE,
        stream: Some(StreamOptions {
            overflow: policy,
            capacity: CAPACITY,
            ..StreamOptions::DEFAULT
        }),
        description: "",
    }
}

const PACKAGE: Package = Package {
    name: "test:pair",
    version: "0.1.0",
    layout: 1,
    imports: &[],
    limits: QueueLimits::DEFAULT,
    methods: &[
        method(POLICIES[0]),
        method(POLICIES[1]),
        method(POLICIES[2]),
        method(POLICIES[3]),
        method(POLICIES[4]),
        method(BY_WRITER),
    ],
};

static WRITERS: LazyLock<Mutex<HashMap<u64, StreamWriter<Record>>>> = LazyLock::new(Mutex::default);

struct Pair;

impl Service for Pair {
    const PACKAGE: &'static Package = &PACKAGE;

    fn dispatch(&mut self, incoming: Incoming) {
        let Ok((number,)) = incoming.params::<(u64,)>() else {
            unreachable!("tests send numbers");
        };
        let (writer, reader) = incoming.call().stream::<Record, thalweg_port::Untyped>();
        WRITERS.lock().unwrap().insert(number, writer);
        incoming.reply_stream(reader);
    }
}

/// A stream with this policy.
pub fn pair(policy: Overflow) -> (StreamWriter<Record>, StreamReader<Record>) {
    open(&Client::start(|| Pair).unwrap(), policy, |reply| {
        reply.stream()
    })
}

/// Streams of one client, one after the other.
pub fn pairs(
    policy: Overflow,
) -> impl Iterator<Item = (StreamWriter<Record>, StreamReader<Record>)> {
    let client = Client::start(|| Pair).unwrap();
    std::iter::repeat_with(move || open(&client, policy, |reply| reply.stream()))
}

/// A stream as in the C table. It lives as long as the returned guard.
pub fn core(policy: Overflow) -> (StreamWriter<Record>, Arc<StreamCore>, OwnedHandle) {
    let (writer, own) = open(&Client::start(|| Pair).unwrap(), policy, Reply::own);
    match find(own.handle().0) {
        Ok(Object::Stream(core)) => (writer, core, own),
        other => unreachable!("{other:?}"),
    }
}

fn open<T>(
    client: &Client,
    policy: Overflow,
    read: fn(&mut Reply) -> Result<T, Malformed>,
) -> (StreamWriter<Record>, T) {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let method = match policy {
        Overflow::Conflate(_) => POLICIES.len() as u32,
        other => POLICIES.iter().position(|known| *known == other).unwrap() as u32,
    };
    let pending = client.call::<_, _, thalweg_port::NoError>(method, &(number,), read);
    let end = pending.wait().unwrap();
    let writer = WRITERS.lock().unwrap().remove(&number).unwrap();
    (writer, end)
}

pub fn lost_in_all(counts: &thalweg_port::Counts) -> u64 {
    Reason::ALL.map(|reason| counts.lost(reason)).iter().sum()
}

/// Pseudo-random numbers, which are equal for equal seeds.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }
}
