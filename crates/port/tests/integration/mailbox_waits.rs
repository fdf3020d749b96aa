//! QueueLimits under which a submission waits for capacity.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use thalweg_port::{
    Code, Incoming, Instance, Method, MethodOptions, Object, Package, Port, QueueLimits, Service,
    SubmitOptions, Submitter, find,
};
use thalweg_queue::clock;
use thalweg_wire::{Decode, message};

/// Answers no call until the flag is set, and reports each call that has begun.
struct Slow(Arc<AtomicBool>, mpsc::Sender<()>);

impl Service for Slow {
    const PACKAGE: &'static Package = &Package {
        name: "test:slow",
        version: "0.1.0",
        layout: 1,
        imports: &[],
        limits: QueueLimits {
            max_queued_calls: 2,
            max_queued_bytes: 4096,
            blocks_on_overflow: true,
        },
        methods: &[Method {
            name: "slow.take",
            params: <(Vec<u8>,)>::HASH,
            ok: <()>::HASH,
            error: 0,
            element: 0,
            is_async: false,
            options: MethodOptions::NONE,
            stream: None,
            description: "",
        }],
    };

    fn dispatch(&mut self, incoming: Incoming) {
        let _ = self.1.send(());
        while !self.0.load(Ordering::Acquire) {
            thread::yield_now();
        }
        incoming.reply(&());
    }
}

struct Host {
    instance: Arc<Instance>,
    port: Arc<Port>,
    open: Arc<AtomicBool>,
    /// The last call that waits in the mailbox.
    last: u64,
}

impl Drop for Host {
    fn drop(&mut self) {
        self.open();
        self.instance.close();
        self.port.close();
    }
}

impl Host {
    /// The service is busy with one call, and two calls of `size` bytes are in the mailbox.
    fn full(size: usize) -> Self {
        let open = Arc::new(AtomicBool::new(false));
        let (begun, begins) = mpsc::channel();
        let its = Arc::clone(&open);
        let make = move || Slow(Arc::clone(&its), begun.clone());
        let mut host = Self {
            instance: Instance::open(make, Instance::runtime().unwrap()),
            port: Port::open(600).unwrap(),
            open,
            last: 0,
        };
        host.submit(0, 1, u64::MAX).unwrap();
        begins.recv().unwrap();
        host.submit(1, size, u64::MAX).unwrap();
        host.last = host.submit(2, size, u64::MAX).unwrap();
        host
    }

    fn open(&self) {
        self.open.store(true, Ordering::Release);
    }

    fn submit(&self, token: u64, size: usize, deadline: u64) -> Result<u64, Code> {
        self.submit_as(token, size, deadline, true)
    }

    fn submit_as(&self, token: u64, size: usize, deadline: u64, waits: bool) -> Result<u64, Code> {
        let options = SubmitOptions {
            waits,
            ..SubmitOptions::default()
        };
        let args = message::encode(&(vec![7u8; size],), <(Vec<u8>,)>::HASH, Vec::new()).unwrap();
        let mut submitter = Submitter::new(&self.instance, &self.port);
        let submitted = submitter.submit(token, 0, &args, deadline, options);
        submitted.map_err(|refused| refused.code)
    }

    /// The next `count` outcomes, sorted by token.
    fn reap(&self, count: usize) -> Vec<(u64, Code)> {
        let mut ended = Vec::new();
        while ended.len() < count {
            self.port.wait(u64::MAX).unwrap();
            ended.extend(self.port.reap().unwrap().map(|one| (one.token, one.code)));
        }
        ended.sort_by_key(|(token, _)| *token);
        ended
    }
}

#[test]
fn submission_to_a_full_mailbox_waits_and_all_complete() {
    for size in [1, 1500] {
        let host = Host::full(size);
        thread::scope(|scope| {
            for first in [100, 200, 300, 400] {
                let host = &host;
                scope.spawn(move || {
                    for token in first..first + 100 {
                        host.submit(token, size, u64::MAX).unwrap();
                    }
                });
            }
            host.open();
        });
        let ended = host.reap(403);
        assert!(ended.iter().all(|(_, code)| *code == Code::Ok));
        let tokens = ended.iter().map(|(token, _)| *token);
        assert!(tokens.eq((0..3).chain(100..500)));
    }
}

#[test]
fn submission_that_waits_until_the_deadline_times_out() {
    for size in [1, 1500] {
        let host = Host::full(size);
        let soon = clock::deadline(Duration::from_millis(20));
        host.submit(3, size, soon).unwrap();
        assert_eq!(host.reap(1), [(3, Code::TimedOut)]);
    }
}

#[test]
fn call_that_ends_in_the_mailbox_admits_a_waiting_submission() {
    let host = Host::full(1);
    let Ok(Object::Call(call)) = find(host.last) else {
        panic!("the submission waits")
    };
    thread::scope(|scope| {
        let waits = scope.spawn(|| host.submit(3, 1, u64::MAX));
        call.cancel();
        waits.join().unwrap().unwrap();
    });
    drop(call);
    assert_eq!(host.reap(1), [(2, Code::Cancelled)]);
}

#[test]
fn port_close_ends_waiting_submissions() {
    let host = Host::full(1);
    thread::scope(|scope| {
        let waits = scope.spawn(|| host.submit(3, 1, u64::MAX));
        host.port.close();
        let ended = waits.join().unwrap();
        assert!(ended.is_ok() || ended == Err(Code::Closed), "{ended:?}");
    });
}

#[test]
fn client_close_ends_waiting_submissions() {
    let host = Host::full(1);
    thread::scope(|scope| {
        let waits = scope.spawn(|| host.submit(3, 1, u64::MAX));
        host.instance.close();
        let ended = waits.join().unwrap();
        assert!(ended.is_ok() || ended == Err(Code::Closed), "{ended:?}");
    });
}

#[test]
fn submission_without_the_wait_option_is_refused() {
    for size in [1, 1500] {
        let host = Host::full(size);
        let refused = host.submit_as(3, size, u64::MAX, false);
        assert_eq!(refused, Err(Code::Overloaded));
    }
}

#[test]
fn batch_that_waits_for_capacity_has_its_earlier_calls_served() {
    let host = Host::full(1);
    host.open();
    let options = SubmitOptions {
        waits: true,
        ..SubmitOptions::default()
    };
    let args = message::encode(&(vec![7u8; 1],), <(Vec<u8>,)>::HASH, Vec::new()).unwrap();
    let mut batch = Submitter::new(&host.instance, &host.port);
    for token in 3..300 {
        batch.submit(token, 0, &args, u64::MAX, options).unwrap();
    }
    drop(batch);
    let ended = host.reap(300);
    assert!(ended.iter().all(|(_, code)| *code == Code::Ok));
}
