//! The memory that clients and calls use, counted by the allocator.
//!
//! A binary of its own: it replaces the allocator and counts the memory of the whole process.

#[path = "integration/lab/mod.rs"]
mod lab;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use thalweg_port::{
    Client, Code, Incoming, Inline, InlineCall, Instance, Method, MethodOptions, NoError, Package,
    Port, QueueLimits, Service,
};
use thalweg_queue::clock;
use thalweg_wire::Decode;

static LIVE: AtomicIsize = AtomicIsize::new(0);
static COUNT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static HERE: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: it counts and forwards to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size() as isize, Ordering::Relaxed);
        COUNT.fetch_add(1, Ordering::Relaxed);
        HERE.set(HERE.get() + 1);
        // SAFETY: the caller's promise is the system's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The counters are process-wide, so one test runs at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn ten_thousand_open_clients_take_less_than_64_mib() {
    let _alone = alone();
    let first = lab::client();
    first.clone().close();
    let before = LIVE.load(Ordering::Relaxed);
    let clients: Vec<Client> = (0..10_000).map(|_| lab::client()).collect();
    let taken = LIVE.load(Ordering::Relaxed) - before;
    println!("{} bytes per client", taken / 10_000);
    assert!(taken < 64 << 20, "{taken} bytes");
    drop(clients);
    // Each client is closed in a turn of its own.
    let patience = clock::deadline(Duration::from_secs(60));
    while LIVE.load(Ordering::Relaxed) - before >= 4 << 20 {
        assert!(clock::now() < patience, "clients leak");
        std::thread::yield_now();
    }
}

/// 64 calls, all submitted before the first one is served.
fn batch(instance: &Arc<Instance>, port: &Arc<Port>, open: &AtomicBool) {
    open.store(false, Ordering::Release);
    for token in 0..64 {
        instance.submit(port, token, 0, &[], u64::MAX).unwrap();
    }
    open.store(true, Ordering::Release);
    let mut done = 0;
    while done < 64 {
        for completed in port.reap().unwrap() {
            assert_eq!(completed.code, Code::Ok);
            done += 1;
        }
        std::thread::yield_now();
    }
}

#[test]
fn empty_call_allocates_nothing() {
    let _alone = alone();
    let (instance, open) = stuck();
    let port = Port::open(64).unwrap();
    (0..200).for_each(|_| batch(&instance, &port, &open));
    let (all, here) = (COUNT.load(Ordering::Relaxed), HERE.get());
    (0..500).for_each(|_| batch(&instance, &port, &open));
    let all = COUNT.load(Ordering::Relaxed) - all;
    let here = HERE.get() - here;
    let calls = 500 * 64;
    println!("{all} allocations for {calls} calls, {here} on the host's thread");
    // A turn of the service's actor is a job of the runtime, which the host allocates if the
    // service is idle. There are two turns if the first call is taken out alone.
    assert!(all <= calls / 16, "{all} allocations for {calls} calls");
    instance.close();
}

/// Has one inline method, which adds.
struct Sum;

impl Service for Sum {
    const PACKAGE: &'static Package = &Package {
        name: "test:sum",
        version: "0.1.0",
        layout: 1,
        imports: &[],
        limits: QueueLimits::DEFAULT,
        methods: &[Method {
            name: "sum.add",
            params: <(u64, u64)>::HASH,
            ok: u64::HASH,
            error: 0,
            element: 0,
            is_async: false,
            options: MethodOptions {
                is_inline: true,
                ..MethodOptions::NONE
            },
            stream: None,
            description: "",
        }],
    };

    fn dispatch(&mut self, _: Incoming) {}

    fn inline() -> Option<Box<dyn Inline>> {
        Some(Box::new(Sum))
    }
}

impl Inline for Sum {
    fn dispatch(&self, asked: InlineCall<'_>) {
        match asked.params::<(u64, u64)>() {
            Ok((one, other)) => asked.reply(&(one + other)),
            Err(refusal) => asked.refuse(refusal),
        }
    }
}

#[test]
fn inline_call_allocates_nothing() {
    let _alone = alone();
    let client = Client::start(|| Sum).unwrap();
    let add = |one: u64, other: u64| {
        client.call_inline::<_, u64, NoError>(0, &(one, other), |reply| reply.value())
    };
    assert_eq!(add(1, 2), Ok(3));
    let before = HERE.get();
    for i in 0..1_000 {
        assert_eq!(add(i, 1), Ok(i + 1));
    }
    assert_eq!(HERE.get() - before, 0);
}

/// Serves no call until the flag is set.
struct Stuck(Arc<AtomicBool>);

/// An instance of it, and its flag.
fn stuck() -> (Arc<Instance>, Arc<AtomicBool>) {
    let open = Arc::new(AtomicBool::new(false));
    let its = Arc::clone(&open);
    let make = move || Stuck(Arc::clone(&its));
    (Instance::open(make, Instance::runtime().unwrap()), open)
}

impl Service for Stuck {
    const PACKAGE: &'static Package = &Package {
        name: "test:stuck",
        version: "0.1.0",
        layout: 1,
        imports: &[],
        limits: QueueLimits::DEFAULT,
        methods: &[Method {
            name: "stuck.wait",
            params: 0,
            ok: 0,
            error: 0,
            element: 0,
            is_async: false,
            options: MethodOptions::NONE,
            stream: None,
            description: "",
        }],
    };

    fn dispatch(&mut self, incoming: Incoming) {
        while !self.0.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        incoming.reply(&());
    }
}

#[test]
fn submissions_beyond_the_limit_use_no_memory_and_accepted_calls_complete() {
    let _alone = alone();
    let (instance, open) = stuck();
    let port = Port::open(65_536).unwrap();
    let before = LIVE.load(Ordering::Relaxed);
    let mut accepted = 0;
    for token in 0..50_000 {
        match instance.submit(&port, token, 0, &[7; 64], u64::MAX) {
            Ok(_) => accepted += 1,
            Err(refused) => assert_eq!(refused.code, Code::Overloaded),
        }
    }
    let taken = LIVE.load(Ordering::Relaxed) - before;
    println!("{accepted} accepted, {taken} bytes");
    // 4,096 in the mailbox and 64 in a turn.
    assert!((4_096..=4_096 + 64).contains(&accepted), "{accepted}");
    assert!(taken < 8 << 20, "{taken} bytes");
    open.store(true, Ordering::Release);
    let mut done = 0;
    while done < accepted {
        port.wait(u64::MAX).unwrap();
        done += port.reap().unwrap().count();
    }
    instance.close();
    port.close();
}
