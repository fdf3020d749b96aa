//! Tests for defects of similar libraries that `docs/migrating/` describes.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use thalweg_port::{
    CallError, Client, Code, Completion, Incoming, Instance, Method, MethodOptions, Object,
    OwnedHandle, Package, Pending, Port, QueueLimits, Service, Task, find,
};
use thalweg_queue::clock;
use thalweg_runtime::{Config, Runtime, wait};
use thalweg_wire::{Decode, Encode, Handle, message};

use crate::pair::{CAPACITY, POLICIES, pairs};

const CONSTRUCT: u32 = 0;
const ECHO: u32 = 1;
const STAY: u32 = 2;
const STAY_IN_A_TASK: u32 = 3;
const SLEEP: u32 = 4;
const NEVER: u32 = 5;

const fn method<P: Decode, T: Decode>(name: &'static str) -> Method {
    Method {
        name,
        params: P::HASH,
        ok: T::HASH,
        error: String::HASH,
        element: 0,
        is_async: false,
        options: MethodOptions::NONE,
        stream: None,
        description: "",
    }
}

const PACKAGE: Package = Package {
    name: "test:defects",
    version: "0.1.0",
    layout: 1,
    imports: &[],
    limits: QueueLimits::DEFAULT,
    methods: &[
        method::<(u64,), Handle>("defects.[constructor]thing"),
        method::<(u64,), u64>("defects.echo"),
        method::<(), u64>("defects.stay"),
        method::<(), u64>("defects.stay-in-a-task"),
        method::<(u64,), ()>("defects.sleep"),
        method::<(), ()>("defects.never"),
    ],
};

/// Number of handlers that are in `stay`.
static ENTERED: AtomicU32 = AtomicU32::new(0);
/// Handlers may leave `stay`.
static LEAVE: AtomicBool = AtomicBool::new(false);
/// The sum of the memory of the handlers that left `stay`.
static SUM: AtomicU64 = AtomicU64::new(0);
/// Services that were dropped after they had been in `stay`.
static DROPPED: AtomicU32 = AtomicU32::new(0);

struct Thing;

struct Defects {
    numbers: Arc<Vec<u64>>,
    stayed: bool,
    held: VecDeque<Incoming>,
}

impl Defects {
    fn new() -> Self {
        Self {
            numbers: Arc::new((0..1000).collect()),
            stayed: false,
            held: VecDeque::new(),
        }
    }
}

impl Drop for Defects {
    fn drop(&mut self) {
        DROPPED.fetch_add(self.stayed.into(), Ordering::SeqCst);
    }
}

/// Does not check whether it should stop.
fn stay(numbers: &[u64]) -> u64 {
    ENTERED.fetch_add(1, Ordering::SeqCst);
    while !LEAVE.load(Ordering::SeqCst) {
        std::thread::yield_now();
    }
    let sum = numbers.iter().sum();
    SUM.fetch_add(sum, Ordering::SeqCst);
    sum
}

impl Service for Defects {
    const PACKAGE: &'static Package = &PACKAGE;

    fn dispatch(&mut self, incoming: Incoming) {
        let number = || incoming.params::<(u64,)>().map_or(0, |(number,)| number);
        match incoming.method() {
            CONSTRUCT => match number() % 3 {
                0 => incoming.reply_own(Thing),
                1 => incoming.reply_error("odd, on purpose"),
                _ => drop(incoming),
            },
            ECHO => {
                let number = number();
                incoming.reply(&number);
            }
            STAY => {
                self.stayed = true;
                let sum = stay(&self.numbers);
                incoming.reply(&sum);
            }
            STAY_IN_A_TASK => {
                self.stayed = true;
                let numbers = Arc::clone(&self.numbers);
                let task = Task::new(move |_| stay(&numbers));
                incoming.run(task, |incoming, sum| incoming.reply(&sum));
            }
            SLEEP => {
                let end = clock::deadline(Duration::from_millis(number()));
                let task = Task::new(move |_| {
                    while clock::now() < end {
                        wait::park(Some(end));
                    }
                });
                incoming.run(task, |incoming, ()| incoming.reply(&()));
            }
            // A call is not answered while it is among the last eight.
            _ => {
                self.held.push_back(incoming);
                if self.held.len() > 8 {
                    self.held.pop_front();
                }
            }
        }
    }
}

fn client() -> Client {
    Client::start(Defects::new).unwrap()
}

fn instance() -> Arc<Instance> {
    Instance::open(Defects::new, Instance::runtime().unwrap())
}

fn construct(client: &Client, number: u64) -> Pending<OwnedHandle, String> {
    client.call(CONSTRUCT, &(number,), |reply| reply.own())
}

fn encode<P: Encode>(method: u32, params: &P) -> Vec<u8> {
    message::encode(params, PACKAGE.methods[method as usize].params, Vec::new()).unwrap()
}

fn echoed(completed: &Completion) -> u64 {
    let message = message::open(&completed.data, PACKAGE.methods[ECHO as usize].ok).unwrap();
    message.owned::<u64>().unwrap()
}

/// nim-ffi 5: the resources that a failed constructor had allocated.
#[test]
fn failed_resource_constructors_leave_no_handles() {
    const TURNS: u64 = if cfg!(miri) { 10 } else { 5_000 };
    let client = client();
    for _ in 0..TURNS {
        let failed = construct(&client, 1).wait().unwrap_err();
        assert_eq!(failed, CallError::Service("odd, on purpose".to_owned()));
        match construct(&client, 2).wait().unwrap_err() {
            CallError::Ended(failure) => assert_eq!(failure.code, Code::GuestLost),
            CallError::Service(error) => panic!("{error}"),
        }
    }
    let good = construct(&client, 0).wait().unwrap();
    // The bound covers the handles of concurrent tests, but not one slot per failed constructor.
    let place = good.handle().0 & 0x00ff_ffff;
    assert!(place < 8_000, "{place}");
}

/// The same for the constructor of the service.
#[test]
fn failed_service_constructors_leave_nothing_behind() {
    let runtime = Instance::runtime().unwrap();
    let args = encode(ECHO, &(7u64,));
    let port = Port::open(1).unwrap();
    for _ in 0..1000 {
        let make = || -> Defects { std::panic::resume_unwind(Box::new("on purpose")) };
        let instance = Instance::open(make, runtime.clone());
        instance.submit(&port, 0, ECHO, &args, u64::MAX).unwrap();
        assert_eq!(next(&port).code, Code::GuestLost);
        instance.close();
    }
    let good = instance();
    good.submit(&port, 0, ECHO, &args, u64::MAX).unwrap();
    assert_eq!(echoed(&next(&port)), 7);
    good.close();
}

fn next(port: &Port) -> Completion {
    loop {
        port.wait(u64::MAX).unwrap();
        if let Some(completed) = port.reap().unwrap().next() {
            return completed;
        }
    }
}

/// nim-ffi 6: slots that are released and not found again.
#[test]
fn full_port_accepts_one_call_per_reaped_completion() {
    const CAPACITY: u64 = 4;
    let (instance, port) = (instance(), Port::open(CAPACITY as u32).unwrap());
    let submit = |token| instance.submit(&port, token, NEVER, &encode(NEVER, &()), u64::MAX);
    let mut calls: Vec<u64> = (0..CAPACITY).map(|token| submit(token).unwrap()).collect();
    for turn in 0..10_000 {
        assert_eq!(submit(99).unwrap_err().code, Code::Overloaded);
        let token = turn * 3 % CAPACITY;
        if let Ok(Object::Call(call)) = find(calls[token as usize]) {
            call.cancel();
        }
        // The slot belongs to the completion until it is reaped.
        assert_eq!(submit(99).unwrap_err().code, Code::Overloaded);
        let completed = next(&port);
        assert_eq!((completed.token, completed.code), (token, Code::Cancelled));
        drop(completed);
        calls[token as usize] = submit(token).unwrap();
        // A cancelled call stays in the mailbox until the service takes it out.
        if turn % 1_000 == 0 {
            let other = Port::open(1).unwrap();
            let args = encode(ECHO, &(turn,));
            instance.submit(&other, 0, ECHO, &args, u64::MAX).unwrap();
            assert_eq!(echoed(&next(&other)), turn);
        }
    }
    instance.close();
}

/// nim-ffi 4: a slot that a refused call does not release.
#[test]
fn port_with_refused_calls_keeps_all_its_slots() {
    const CAPACITY: u64 = 8;
    let (instance, port) = (instance(), Port::open(CAPACITY as u32).unwrap());
    let submit = |token| instance.submit(&port, token, ECHO, &encode(ECHO, &(token,)), u64::MAX);
    for round in 0..50 {
        let tokens = round * CAPACITY..(round + 1) * CAPACITY;
        for token in tokens.clone() {
            submit(token).unwrap();
        }
        for _ in 0..100 {
            let refused = submit(u64::MAX).unwrap_err();
            assert!(refused.code == Code::Overloaded && refused.retryable());
        }
        for token in tokens {
            let completed = next(&port);
            assert_eq!((completed.token, completed.code), (token, Code::Ok));
            assert_eq!(
                echoed(&completed),
                token,
                "results are in order and belong to their calls"
            );
        }
        assert_eq!(
            port.wait(0).unwrap_err().code,
            Code::TimedOut,
            "no further completion"
        );
    }
    instance.close();
}

/// nim-ffi 13: events of the previous user of a slot.
#[test]
fn stream_after_a_closed_full_stream_has_none_of_its_records() {
    for policy in POLICIES {
        for (turn, (writer, mut reader)) in (0..50u64).zip(pairs(policy)) {
            writer.send(&(turn, 0u64, String::from("first"))).unwrap();
            let batch = reader.next_batch(1, u64::MAX).unwrap().unwrap();
            assert_eq!(
                (batch.first_sequence(), batch.lost_before()),
                (0, 0),
                "{policy:?}"
            );
            assert_eq!(batch.iter().next().unwrap(), (turn, 0, "first"));
            // The stream is closed while it is full and a batch is open.
            for number in 1..=2 * u64::from(CAPACITY) {
                if writer
                    .send_until(&(turn, number, "x".repeat(100)), 0)
                    .is_err()
                {
                    break;
                }
            }
            drop(batch);
            drop(reader);
            let late = writer.send(&(turn, 0u64, String::new())).unwrap_err();
            assert_eq!(late.code, Code::Closed);
        }
    }
}

/// nim-ffi 14: memory that is freed while a handler uses it.
#[test]
fn handler_that_ignores_a_cancel_keeps_its_memory_valid() {
    for method in [STAY, STAY_IN_A_TASK] {
        LEAVE.store(false, Ordering::SeqCst);
        let (entered, dropped) = (
            ENTERED.load(Ordering::SeqCst),
            DROPPED.load(Ordering::SeqCst),
        );
        let (before, port) = (SUM.load(Ordering::SeqCst), Port::open(2).unwrap());
        let instance = instance();
        instance
            .submit(&port, 1, method, &encode(method, &()), u64::MAX)
            .unwrap();
        while ENTERED.load(Ordering::SeqCst) == entered {
            std::thread::yield_now();
        }
        instance.close();
        drop(instance);
        // The host does not wait for the handler.
        assert_eq!(next(&port).code, Code::Cancelled);
        port.close();
        if method == STAY {
            assert_eq!(
                DROPPED.load(Ordering::SeqCst),
                dropped,
                "the handler is running"
            );
        }
        LEAVE.store(true, Ordering::SeqCst);
        while DROPPED.load(Ordering::SeqCst) == dropped || SUM.load(Ordering::SeqCst) == before {
            std::thread::yield_now();
        }
        assert_eq!(SUM.load(Ordering::SeqCst), before + 499_500);
    }
}

/// nim-ffi 1: a wait that is starved by many submissions. There is one worker, and a timer that is
/// due after a fraction of the submissions.
#[test]
fn sleep_during_many_submissions_ends() {
    let runtime = Runtime::start(Config::with_workers(1)).unwrap();
    let flooded = Instance::open(Defects::new, runtime.handle().clone());
    let other = Instance::open(Defects::new, runtime.handle().clone());
    let (ingress, port) = (Port::open(256).unwrap(), Port::open(2).unwrap());
    let args = encode(ECHO, &(1u64,));
    let flood = |instance: &Arc<Instance>| {
        while instance.submit(&ingress, 0, ECHO, &args, u64::MAX).is_ok() {}
        ingress.reap().unwrap().count()
    };
    flood(&flooded);
    for (token, instance) in [&flooded, &other].into_iter().enumerate() {
        let args = encode(SLEEP, &(1u64,));
        instance
            .submit(&port, token as u64, SLEEP, &args, u64::MAX)
            .unwrap();
    }
    let (mut served, mut slept) = (0, 0);
    while slept < 2 {
        served += flood(&flooded);
        assert!(served < 20_000_000, "{slept} of 2 have ended");
        for completed in port.reap().unwrap() {
            assert_eq!(completed.code, Code::Ok);
            slept += 1;
        }
    }
    flooded.close();
    other.close();
}

/// Part 4: a close does not wait for the submissions to end, and no call is lost or ends twice.
#[test]
fn client_close_during_submissions_ends_each_call_once() {
    for round in 0..if cfg!(miri) { 2 } else { 100 } {
        let instance = instance();
        let under_way = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let port = Port::open(128).unwrap();
                    let args = encode(ECHO, &(5u64,));
                    let mut told = Vec::new();
                    let mut token = 0;
                    loop {
                        match instance.submit(&port, token, ECHO, &args, u64::MAX) {
                            Ok(_) => {
                                token += 1;
                                told.push(false);
                                under_way.fetch_add(1, Ordering::Relaxed);
                            }
                            Err(failure) if failure.code == Code::Closed => break,
                            Err(failure) => assert_eq!(failure.code, Code::Overloaded),
                        }
                        take(&port, &mut told);
                    }
                    while told.contains(&false) {
                        port.wait(u64::MAX).unwrap();
                        take(&port, &mut told);
                    }
                    assert_eq!(
                        port.wait(0).unwrap_err().code,
                        Code::TimedOut,
                        "no further completion"
                    );
                });
            }
            while under_way.load(Ordering::Relaxed) < round * 20 {
                std::thread::yield_now();
            }
            instance.close();
        });
    }
}

fn take(port: &Port, told: &mut [bool]) {
    for completed in port.reap().unwrap() {
        assert!(
            matches!(completed.code, Code::Ok | Code::Cancelled),
            "{:?}",
            completed.code
        );
        assert!(
            !std::mem::replace(&mut told[completed.token as usize], true),
            "a call ended twice"
        );
    }
}

/// The same for the close of a port.
#[test]
fn port_close_during_submissions_leaves_the_instance_usable() {
    let instance = instance();
    let args = encode(ECHO, &(5u64,));
    for round in 0..if cfg!(miri) { 2 } else { 100 } {
        let port = Port::open(64).unwrap();
        let accepted = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    loop {
                        match instance.submit(&port, 0, ECHO, &args, u64::MAX) {
                            Ok(_) => drop(accepted.fetch_add(1, Ordering::Relaxed)),
                            Err(failure) if failure.code == Code::Closed => break,
                            Err(failure) => assert_eq!(failure.code, Code::Overloaded),
                        }
                    }
                });
            }
            while accepted.load(Ordering::Relaxed) < (round * 20).min(60) {
                std::thread::yield_now();
            }
            port.close();
        });
        let other = Port::open(1).unwrap();
        instance.submit(&other, 9, ECHO, &args, u64::MAX).unwrap();
        assert_eq!(echoed(&next(&other)), 5);
    }
    instance.close();
}
