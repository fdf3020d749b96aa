//! Defects of similar libraries, which `docs/migrating/` describes, as tests.

mod pair;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use pair::{CAPACITY, POLICIES, pairs};
use thalweg_port::{
    Bounds, CallError, Client, Code, Completion, Incoming, Instance, Method, MethodOptions, Object,
    Own, Package, Pending, Port, Service, Task, find,
};
use thalweg_queue::clock;
use thalweg_runtime::{Config, Runtime, wait};
use thalweg_wire::{Decode, Encode, Handle, message};

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
    bounds: Bounds::DEFAULT,
    methods: &[
        method::<(u64,), Handle>("defects.[constructor]thing"),
        method::<(u64,), u64>("defects.echo"),
        method::<(), u64>("defects.stay"),
        method::<(), u64>("defects.stay-in-a-task"),
        method::<(u64,), ()>("defects.sleep"),
        method::<(), ()>("defects.never"),
    ],
};

/// A handler is in `stay`.
static ENTERED: AtomicU32 = AtomicU32::new(0);
/// It may go on.
static LEAVE: AtomicBool = AtomicBool::new(false);
/// What those who stayed found in their memory.
static SUM: AtomicU64 = AtomicU64::new(0);
/// Services that were dropped after they had stayed.
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

/// Does not look whether it is to stop.
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
            // Not answered while it is among the last eight.
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

fn construct(client: &Client, number: u64) -> Pending<Own, String> {
    client.call(CONSTRUCT, &(number,), |reply| reply.own())
}

fn encode<P: Encode>(method: u32, params: &P) -> Vec<u8> {
    message::encode(params, PACKAGE.methods[method as usize].params, Vec::new()).unwrap()
}

fn echoed(completed: &Completion) -> u64 {
    let message = message::open(&completed.data, PACKAGE.methods[ECHO as usize].ok).unwrap();
    message.owned::<u64>().unwrap()
}

/// nim-ffi 5: what a constructor that fails had taken.
#[test]
fn thousands_of_constructors_that_fail_take_nothing_from_the_next() {
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
    // Whatever the other tests have just now: not one place for each that failed.
    let place = good.handle().0 & 0x00ff_ffff;
    assert!(place < 8_000, "{place}");
}

/// The same for the service itself.
#[test]
fn a_thousand_services_that_cannot_be_made_take_nothing_from_the_next() {
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

/// nim-ffi 6: places that are given back and not found again.
#[test]
fn a_full_port_takes_one_for_each_that_was_reaped() {
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
        // Its place is the completion's until that was reaped.
        assert_eq!(submit(99).unwrap_err().code, Code::Overloaded);
        let completed = next(&port);
        assert_eq!((completed.token, completed.code), (token, Code::Cancelled));
        drop(completed);
        calls[token as usize] = submit(token).unwrap();
        // What was cancelled waits for the service until that looks.
        if turn % 1_000 == 0 {
            let other = Port::open(1).unwrap();
            let args = encode(ECHO, &(turn,));
            instance.submit(&other, 0, ECHO, &args, u64::MAX).unwrap();
            assert_eq!(echoed(&next(&other)), turn);
        }
    }
    instance.close();
}

/// nim-ffi 4: a slot that a refused call leaves behind.
#[test]
fn a_port_that_refused_serves_in_all_its_places() {
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
            assert_eq!(echoed(&completed), token, "in order, with its own result");
        }
        assert_eq!(
            port.wait(0).unwrap_err().code,
            Code::TimedOut,
            "nothing more"
        );
    }
    instance.close();
}

/// nim-ffi 13: events of who had the place before.
#[test]
fn a_stream_after_a_full_one_that_was_closed_has_nothing_of_it() {
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
            // Closed with all its room taken, and a batch open.
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

/// nim-ffi 14: memory that is freed under who still runs.
#[test]
fn a_handler_that_does_not_look_ends_on_its_own_memory() {
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
        // The host does not wait for it.
        assert_eq!(next(&port).code, Code::Cancelled);
        port.close();
        if method == STAY {
            assert_eq!(DROPPED.load(Ordering::SeqCst), dropped, "it is at work");
        }
        LEAVE.store(true, Ordering::SeqCst);
        while DROPPED.load(Ordering::SeqCst) == dropped || SUM.load(Ordering::SeqCst) == before {
            std::thread::yield_now();
        }
        assert_eq!(SUM.load(Ordering::SeqCst), before + 499_500);
    }
}

/// nim-ffi 1: a wait that a flood starves. One worker, and a timer that is due after a fraction of what is submitted.
#[test]
fn a_sleep_ends_beside_a_flood() {
    let runtime = Runtime::start(Config::exact(1)).unwrap();
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

/// Part 4: whoever destroys does not wait until the flood is over, and nothing is lost or told twice.
#[test]
fn what_is_destroyed_while_it_is_flooded_ends_each_call_once() {
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
                        "nothing more"
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
            "told twice"
        );
    }
}

/// The same with the port that goes.
#[test]
fn a_port_closed_while_it_is_flooded_leaves_the_instance_to_others() {
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
