//! A client that submits many calls does not starve the other actors of its worker.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use thalweg_port::{
    Code, Incoming, Instance, Method, MethodOptions, Package, Port, QueueLimits, Service,
};
use thalweg_queue::clock;
use thalweg_runtime::{Config, Handle, Runtime};

/// Number of served calls.
static SERVED: AtomicU64 = AtomicU64::new(0);
/// Number of served calls when the other actor first ran, plus one.
static SEEN: AtomicU64 = AtomicU64::new(0);
static OPEN: AtomicBool = AtomicBool::new(false);

const WAIT: u32 = 0;
const SPAWN: u32 = 1;
const COMPUTE: u32 = 2;

const fn method(name: &'static str) -> Method {
    Method {
        name,
        params: 0,
        ok: 0,
        error: 0,
        element: 0,
        is_async: false,
        options: MethodOptions::NONE,
        stream: None,
        description: "",
    }
}

struct Busy(Handle);

impl Service for Busy {
    const PACKAGE: &'static Package = &Package {
        name: "test:busy",
        version: "0.1.0",
        layout: 1,
        imports: &[],
        limits: QueueLimits::DEFAULT,
        methods: &[
            method("busy.wait"),
            method("busy.spawn"),
            method("busy.compute"),
        ],
    };

    fn dispatch(&mut self, incoming: Incoming) {
        match incoming.method() {
            WAIT => {
                while !OPEN.load(Ordering::Acquire) {
                    std::hint::spin_loop();
                }
            }
            SPAWN => drop(self.0.spawn(|| {
                SEEN.store(SERVED.load(Ordering::SeqCst) + 1, Ordering::SeqCst);
            })),
            // Runs for several time slices without yielding.
            _ => {
                let end = clock::deadline(Duration::from_millis(1));
                while clock::now() < end {
                    std::hint::spin_loop();
                }
            }
        }
        SERVED.fetch_add(1, Ordering::SeqCst);
        incoming.reply(&());
    }
}

#[test]
fn other_actor_runs_within_a_time_slice_during_many_calls() {
    const CALLS: u64 = 64;
    let runtime = Runtime::start(Config::with_workers(1)).unwrap();
    let handle = runtime.handle().clone();
    let instance = Instance::open(move || Busy(handle.clone()), runtime.handle().clone());
    let port = Port::open(CALLS as u32).unwrap();
    let submit = |method| {
        let call = instance.submit(&port, 0, method, &[], u64::MAX);
        assert!(call.is_ok());
    };
    // All calls are in one turn: the first call waits until the last one is submitted.
    submit(WAIT);
    submit(SPAWN);
    (2..CALLS).for_each(|_| submit(COMPUTE));
    OPEN.store(true, Ordering::Release);
    let mut done = 0;
    while done < CALLS {
        port.wait(u64::MAX).unwrap();
        for completed in port.reap().unwrap() {
            assert_eq!(completed.code, Code::Ok);
            done += 1;
        }
    }
    let seen = SEEN.load(Ordering::SeqCst);
    assert!(seen > 0, "the other actor never ran");
    assert!(
        seen < CALLS / 2,
        "the other actor ran after {} of {CALLS} calls",
        seen - 1
    );
    instance.close();
}
