//! The limits of queued bytes and calls, and `retryable` for idempotent methods.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use thalweg_port::{
    CallError, Client, Code, Incoming, Instance, Method, MethodOptions, NoError, Package, Pending,
    Port, QueueLimits, Service,
};
use thalweg_queue::clock;
use thalweg_wire::{Decode, message};

const ECHO: u32 = 0;
const BREAK: u32 = 1;
const BREAK_GENTLY: u32 = 2;
const FORGET_GENTLY: u32 = 3;
const GIVE: u32 = 4;

const MIB: usize = 1 << 20;

const fn method(name: &'static str, is_idempotent: bool) -> Method {
    Method {
        name,
        params: <(Vec<u8>,)>::HASH,
        ok: <Vec<u8>>::HASH,
        error: 0,
        element: 0,
        is_async: false,
        options: MethodOptions {
            is_idempotent,
            ..MethodOptions::NONE
        },
        stream: None,
        description: "",
    }
}

/// Serves no call until the first flag is set. The second flag reports that a call has begun.
struct Slow(Arc<AtomicBool>, Arc<AtomicBool>);

impl Service for Slow {
    const PACKAGE: &'static Package = &Package {
        name: "test:slow",
        version: "0.1.0",
        layout: 1,
        imports: &[],
        limits: QueueLimits {
            max_queued_calls: 40,
            max_queued_bytes: 4 * MIB as u64,
            blocks_on_overflow: false,
        },
        methods: &[
            method("slow.echo", false),
            method("slow.break", false),
            method("slow.break-gently", true),
            method("slow.forget-gently", true),
            method("slow.give", false),
        ],
    };

    fn dispatch(&mut self, incoming: Incoming) {
        self.1.store(true, Ordering::Release);
        while !self.0.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        match (incoming.method(), incoming.params::<(Vec<u8>,)>()) {
            (ECHO, Ok((bytes,))) => incoming.reply(&bytes),
            (FORGET_GENTLY, _) => drop(incoming),
            (GIVE, _) => incoming.reply(&vec![7u8; MIB]),
            (_, Ok(_)) => panic!("on purpose"),
            (_, Err(refusal)) => incoming.refuse(refusal),
        }
    }
}

struct Host {
    instance: Arc<Instance>,
    port: Arc<Port>,
    open: Arc<AtomicBool>,
    begun: Arc<AtomicBool>,
}

fn encoded(size: usize) -> Vec<u8> {
    let layout = <(Vec<u8>,)>::HASH;
    message::encode(&(vec![7u8; size],), layout, Vec::new()).unwrap()
}

impl Host {
    fn new(open: bool) -> Self {
        let open = Arc::new(AtomicBool::new(open));
        let its = Arc::clone(&open);
        let begun = Arc::new(AtomicBool::new(false));
        let tells = Arc::clone(&begun);
        let make = move || Slow(Arc::clone(&its), Arc::clone(&tells));
        Self {
            instance: Instance::open(make, Instance::runtime().unwrap()),
            port: Port::open(64).unwrap(),
            open,
            begun,
        }
    }

    /// The service is busy with one call, so further calls stay in the mailbox.
    fn busy() -> Self {
        let host = Self::new(false);
        host.submit(&encoded(1)).unwrap();
        while !host.begun.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        host
    }

    fn submit(&self, args: &[u8]) -> Result<u64, Code> {
        let submitted = self.instance.submit(&self.port, 0, ECHO, args, u64::MAX);
        submitted.map_err(|refused| {
            assert!(refused.retryable());
            refused.code
        })
    }

    /// Reaps `count` successful calls.
    fn reap(&self, count: usize) {
        let mut done = 0;
        while done < count {
            self.port.wait(u64::MAX).unwrap();
            for ended in self.port.reap().unwrap() {
                assert_eq!(ended.code, Code::Ok);
                done += 1;
            }
        }
        assert_eq!(done, count);
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.open.store(true, Ordering::Release);
        self.instance.close();
        self.port.close();
    }
}

#[test]
fn arguments_beyond_the_byte_limit_are_refused_and_accepted_calls_complete() {
    let host = Host::busy();
    let large = encoded(MIB);
    let mut accepted = 1;
    let refused = loop {
        match host.submit(&large) {
            Ok(_) => accepted += 1,
            Err(code) => break code,
        }
    };
    // A call is its arguments and a few bytes more, so three fit into 4 MiB.
    assert_eq!((refused, accepted), (Code::Overloaded, 1 + 3));
    // Small arguments are not counted.
    host.submit(&encoded(100)).unwrap();
    host.open.store(true, Ordering::Release);
    host.reap(accepted + 1);
    // The calls ended, so there is capacity again, and a call above the limit may wait alone.
    host.submit(&encoded(9 * MIB)).unwrap();
    host.reap(1);
    host.submit(&large).unwrap();
    host.reap(1);
}

#[test]
fn calls_beyond_the_call_limit_are_refused() {
    let host = Host::busy();
    let small = encoded(1);
    let mut accepted = 1;
    while host.submit(&small).is_ok() {
        accepted += 1;
    }
    assert_eq!(accepted, 1 + 40);
    host.open.store(true, Ordering::Release);
    host.reap(accepted);
}

#[test]
fn unreaped_results_beyond_the_limit_refuse_the_next_call() {
    let host = Host::new(true);
    let large = encoded(MIB);
    let mut accepted = 0;
    // One after the other, so that only the unreaped results cause a refusal.
    let served = |count: usize| {
        let patience = clock::deadline(Duration::from_secs(60));
        while host.port.unreaped_bytes() < (count * MIB) as u64 {
            assert!(clock::now() < patience, "nothing is counted");
            std::thread::yield_now();
        }
    };
    let refused = loop {
        match host.submit(&large) {
            Ok(_) => accepted += 1,
            Err(code) => break code,
        }
        served(accepted);
    };
    assert_eq!((refused, accepted), (Code::Overloaded, 4));
    // Small calls are refused too, because their results may be large.
    assert_eq!(host.submit(&encoded(1)), Err(Code::Overloaded));
    host.reap(accepted);
    host.submit(&large).unwrap();
    host.reap(1);
    assert_eq!(host.port.unreaped_bytes(), 0);
}

#[test]
fn queued_calls_with_four_times_the_limit_unreaped_end_as_overloaded() {
    let host = Host::busy();
    let small = encoded(1);
    let submit = |port: &Arc<Port>, method| {
        let call = host.instance.submit(port, 1, method, &small, u64::MAX);
        call.unwrap()
    };
    for _ in 0..39 {
        submit(&host.port, GIVE);
    }
    // Served after all of them, and on another port, which has capacity.
    let other = Port::open(1).unwrap();
    submit(&other, ECHO);
    host.open.store(true, Ordering::Release);
    other.wait(u64::MAX).unwrap();
    assert_eq!(other.reap().unwrap().next().unwrap().code, Code::Ok);
    // A result is its bytes and a few bytes more, so 16 fit into four times 4 MiB.
    assert!(host.port.unreaped_bytes() <= 17 * MIB as u64);
    let ended: Vec<_> = host.port.reap().unwrap().collect();
    let of = |code| ended.iter().filter(|ended| ended.code == code).count();
    assert_eq!((of(Code::Ok), of(Code::Overloaded)), (1 + 16, 39 - 16));
    let is_retryable = |ended: &thalweg_port::Completion| ended.retryable();
    assert!(
        ended
            .iter()
            .filter(|ended| ended.code == Code::Overloaded)
            .all(is_retryable)
    );
    drop(ended);
    submit(&host.port, GIVE);
    host.reap(1);
    other.close();
}

#[test]
fn retryable_depends_on_the_method_being_idempotent() {
    let open = Arc::new(AtomicBool::new(true));
    let client = Client::start(move || Slow(Arc::clone(&open), Arc::default())).unwrap();
    let host = Host::new(true);
    let none = encoded(0);
    for (method, code, retryable) in [
        (BREAK, Code::GuestPanicked, false),
        (BREAK_GENTLY, Code::GuestPanicked, true),
        (FORGET_GENTLY, Code::GuestLost, true),
    ] {
        let call: Pending<Vec<u8>, NoError> =
            client.call(method, &(Vec::<u8>::new(),), |reply| reply.value());
        match call.wait() {
            Err(CallError::Ended(failure)) => {
                assert_eq!((failure.code, failure.retryable()), (code, retryable));
            }
            other => panic!("{other:?}"),
        }
        host.instance
            .submit(&host.port, 0, method, &none, u64::MAX)
            .unwrap();
        host.port.wait(u64::MAX).unwrap();
        let ended = host.port.reap().unwrap().next().unwrap();
        assert_eq!((ended.code, ended.retryable()), (code, retryable));
    }
}

fn cancel(call: u64) {
    match thalweg_port::find(call) {
        Ok(thalweg_port::Object::Call(call)) => call.cancel(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn call_that_ends_in_the_mailbox_releases_its_slot_and_bytes_at_once() {
    let host = Host::busy();
    for size in [1, MIB] {
        let args = encoded(size);
        let mut calls = Vec::new();
        while let Ok(call) = host.submit(&args) {
            calls.push(call);
        }
        assert_eq!(host.submit(&args), Err(Code::Overloaded));
        for _ in 0..3 {
            cancel(calls.pop().unwrap());
            // The slot in the port.
            assert_eq!(host.port.reap().unwrap().count(), 1);
            calls.push(host.submit(&args).unwrap());
            assert_eq!(host.submit(&args), Err(Code::Overloaded));
        }
        calls.into_iter().for_each(cancel);
        assert!(host.port.reap().unwrap().count() > 0);
    }
}
