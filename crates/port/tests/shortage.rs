//! Shortage of memory whose size a caller chooses: the allocator refuses large blocks.
//!
//! A binary of its own: it replaces the allocator of the whole process.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use thalweg_port::{
    CallError, Client, Code, Failure, Incoming, Instance, Method, MethodOptions, NoError, Package,
    Pending, Port, QueueLimits, Refusal, Service,
};
use thalweg_wire::{Decode, Rule, message};

/// The allocator refuses blocks of this size and larger ones.
static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);

struct Limited;

// SAFETY: it forwards to the system's allocator or returns null.
unsafe impl GlobalAlloc for Limited {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() >= LIMIT.load(Ordering::Relaxed) {
            return std::ptr::null_mut();
        }
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(block, layout) };
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if size >= LIMIT.load(Ordering::Relaxed) {
            return std::ptr::null_mut();
        }
        // SAFETY: as the caller promised.
        unsafe { System.realloc(block, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Limited = Limited;

/// The limit is process-wide, so one test runs at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `f` while blocks of this size and larger ones are refused.
fn below<R>(limit: usize, f: impl FnOnce() -> R) -> R {
    struct Back;
    impl Drop for Back {
        fn drop(&mut self) {
            LIMIT.store(usize::MAX, Ordering::Relaxed);
        }
    }
    let _back = Back;
    LIMIT.store(limit, Ordering::Relaxed);
    f()
}

const TAKE: u32 = 0;
const GIVE: u32 = 1;
const READ: u32 = 2;

const LARGE: usize = 1 << 20;
/// More than any other block of the runtime and the tests.
const LEAST: usize = LARGE / 2;

static RESULT: [u8; LARGE] = [7; LARGE];

const fn method(name: &'static str, params: u64, ok: u64) -> Method {
    Method {
        name,
        params,
        ok,
        error: 0,
        element: 0,
        is_async: false,
        options: MethodOptions::NONE,
        stream: None,
        description: "",
    }
}

/// Counts the bytes of its argument, returns a megabyte, and reads the bytes of a stream's
/// elements.
struct Store;

impl Service for Store {
    const PACKAGE: &'static Package = &Package {
        name: "test:store",
        version: "0.1.0",
        layout: 1,
        imports: &[],
        limits: QueueLimits::DEFAULT,
        methods: &[
            method("store.take", <(Vec<u8>,)>::HASH, u64::HASH),
            method("store.give", <()>::HASH, <Vec<u8>>::HASH),
            Method {
                description: "record{items:stream<list<u8>>}\nu64\n\n",
                ..method("store.read", 0, u64::HASH)
            },
        ],
    };

    fn dispatch(&mut self, incoming: Incoming) {
        match incoming.method() {
            TAKE => match incoming.params::<(Vec<u8>,)>() {
                Ok((bytes,)) => incoming.reply(&(bytes.len() as u64)),
                Err(refusal) => incoming.refuse(refusal),
            },
            GIVE => incoming.reply(&RESULT[..]),
            _ => incoming.reply(&0u64),
        }
    }
}

fn ended<T: std::fmt::Debug>(result: Result<T, CallError<NoError>>) -> (Code, bool) {
    match result {
        Err(CallError::Ended(failure)) => (failure.code, failure.retryable()),
        other => panic!("{other:?}"),
    }
}

fn refused<T: std::fmt::Debug>(result: Result<T, Failure>) -> (Code, bool) {
    let failure = result.unwrap_err();
    (failure.code, failure.retryable())
}

#[test]
fn port_without_memory_is_overloaded() {
    let _alone = alone();
    let most = 65_536;
    assert_eq!(
        below(LEAST, || refused(Port::open(most))),
        (Code::Overloaded, true)
    );
    Port::open(most).unwrap().close();
    assert_eq!(refused(Port::open(most + 1)), (Code::Argument, false));
}

#[test]
fn arguments_without_memory_are_overloaded_and_the_next_call_is_served() {
    let _alone = alone();
    let instance = Instance::open(|| Store, Instance::runtime().unwrap());
    let port = Port::open(4).unwrap();
    let args = message::encode(&(&RESULT[..],), <(Vec<u8>,)>::HASH, Vec::new()).unwrap();
    let submit = || instance.submit(&port, 1, TAKE, &args, u64::MAX);
    for _ in 0..8 {
        // More often than the port has slots, so no slot is lost.
        assert_eq!(below(LEAST, || refused(submit())), (Code::Overloaded, true));
    }
    submit().unwrap();
    port.wait(u64::MAX).unwrap();
    let completed = port.reap().unwrap().next().unwrap();
    assert_eq!(completed.code, Code::Ok);
    instance.close();
    port.close();
}

#[test]
fn call_of_a_client_without_memory_is_overloaded() {
    let _alone = alone();
    let client = Client::start(|| Store).unwrap();
    let take =
        || -> Pending<u64, NoError> { client.call(TAKE, &(&RESULT[..],), |reply| reply.value()) };
    assert_eq!(
        below(LEAST, || ended(take().wait())),
        (Code::Overloaded, true)
    );
    assert_eq!(take().wait().unwrap(), LARGE as u64);
}

#[test]
fn value_of_a_message_without_memory_is_refused() {
    let _alone = alone();
    let list = vec![String::from("a text"); LARGE / 16];
    let layout = <(Vec<String>,)>::HASH;
    let args = message::encode(&(&list,), layout, Vec::new()).unwrap();
    let read = || {
        message::open(&args, layout)
            .unwrap()
            .owned::<(Vec<String>,)>()
    };
    assert_eq!(below(LEAST, read).unwrap_err().rule, Rule::Memory);
    assert_eq!(read().unwrap().0, list);
    let code = Refusal::from(below(LEAST, read).unwrap_err());
    assert!(format!("{code:?}").contains("Overloaded"), "{code:?}");
}

#[test]
fn result_without_memory_is_lost_and_the_next_call_is_served() {
    let _alone = alone();
    let client = Client::start(|| Store).unwrap();
    let give = || -> Pending<Vec<u8>, NoError> { client.call(GIVE, &(), |reply| reply.value()) };
    // The service has run, so a repetition is not reported as safe.
    assert_eq!(
        below(LEAST, || ended(give().wait())),
        (Code::GuestLost, false)
    );
    assert_eq!(give().wait().unwrap().len(), LARGE);
}

#[test]
fn upstream_element_without_memory_is_overloaded_and_the_stream_continues() {
    let _alone = alone();
    let instance = Instance::open(|| Store, Instance::runtime().unwrap());
    let stream = instance.upstream(READ, 0).unwrap();
    let element = message::encode(&RESULT[..], <Vec<u8>>::HASH, Vec::new()).unwrap();
    let send = || stream.send(&element, 0);
    assert_eq!(below(LEAST, || refused(send())), (Code::Overloaded, true));
    send().unwrap();
    instance.close();
}
