//! Submissions to a service without capacity: with `TW_SUBMIT_BLOCK` they wait, without it they are
//! refused.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use thalweg_capi::abi::{
    TW_FOREVER, TW_OK, TW_OVERLOADED, TW_SUBMIT_BLOCK, TW_TIMED_OUT, TwCompletion, TwHandle,
    TwSubmission,
};
use thalweg_capi::{Export, Library};
use thalweg_port::{Incoming, Method, MethodOptions, Package, QueueLimits, Service};
use thalweg_wire::{Decode, message};

/// The service has begun a call.
static BEGUN: AtomicBool = AtomicBool::new(false);
/// The service may reply.
static OPEN: AtomicBool = AtomicBool::new(false);

struct Slow;

impl Service for Slow {
    const PACKAGE: &'static Package = &Package {
        name: "test:slow",
        version: "0.1.0",
        layout: 1,
        imports: &[],
        limits: QueueLimits {
            max_queued_calls: 1,
            max_queued_bytes: 4096,
            blocks_on_overflow: true,
        },
        methods: &[Method {
            name: "slow.take",
            params: <()>::HASH,
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
        BEGUN.store(true, Ordering::Release);
        while !OPEN.load(Ordering::Acquire) {
            thread::yield_now();
        }
        incoming.reply(&());
    }
}

struct Exported;

impl Export for Exported {
    type Service = Slow;

    fn make() -> Slow {
        Slow
    }
}

static LIBRARY: Library = Library::new::<Exported>();

/// Submits one call per token. Returns the status and the number of accepted calls.
fn submit(
    (client, port): (TwHandle, TwHandle),
    tokens: std::ops::Range<u64>,
    flags: u32,
    deadline_ns: u64,
) -> (u32, u32) {
    let args = message::encode(&(), <()>::HASH, Vec::new()).unwrap();
    let one = |token| TwSubmission {
        token,
        client,
        method: 0,
        flags,
        args: args.as_ptr(),
        args_size: args.len() as u64,
        deadline_ns,
        call: 0,
    };
    let mut batch: Vec<_> = tokens.map(one).collect();
    let (mut accepted, count) = (0, u32::try_from(batch.len()).unwrap());
    // SAFETY: the batch, its arguments and the count are local variables; the error pointer may be
    // null.
    let code = unsafe {
        (LIBRARY.table().submit)(
            port,
            batch.as_mut_ptr(),
            count,
            &raw mut accepted,
            null_mut(),
        )
    };
    (code, accepted)
}

/// The tokens and codes of the next `count` completions.
fn reap(port: TwHandle, count: usize) -> Vec<(u64, u32)> {
    let mut ended = Vec::new();
    while ended.len() < count {
        let mut completion = std::mem::MaybeUninit::<TwCompletion>::uninit();
        let mut reaped = 0;
        // SAFETY: there is space for one completion, which is initialised if the count is 1; the
        // error pointer may be null.
        unsafe {
            let table = LIBRARY.table();
            assert_eq!((table.port_wait)(port, TW_FOREVER, null_mut()), TW_OK);
            (table.port_reap)(
                port,
                completion.as_mut_ptr(),
                1,
                &raw mut reaped,
                null_mut(),
            );
            if reaped == 1 {
                let mut completion = completion.assume_init();
                ended.push((completion.token, completion.code));
                (table.release)(&raw mut completion);
            }
        }
    }
    ended
}

#[test]
fn submission_with_block_waits_for_capacity_and_without_is_refused() {
    let (mut client, mut port) = (0, 0);
    let table = LIBRARY.table();
    // SAFETY: the handles are local variables, and the error pointer may be null.
    unsafe {
        assert_eq!((table.client_open)(&raw mut client, null_mut()), TW_OK);
        assert_eq!((table.port_open)(32, &raw mut port, null_mut()), TW_OK);
    }
    let at = (client, port);
    assert_eq!(submit(at, 0..1, 0, TW_FOREVER), (TW_OK, 1));
    while !BEGUN.load(Ordering::Acquire) {
        thread::yield_now();
    }
    assert_eq!(submit(at, 1..3, 0, TW_FOREVER), (TW_OVERLOADED, 1));
    // SAFETY: any thread may call `now`.
    let soon = unsafe { (table.now)() } + 10_000_000;
    assert_eq!(submit(at, 2..3, TW_SUBMIT_BLOCK, soon), (TW_OK, 1));
    assert_eq!(reap(port, 1), [(2, TW_TIMED_OUT)]);
    thread::scope(|scope| {
        // A refused call has no effect. A batch waits even if it is larger than the limits.
        let waits = scope.spawn(|| submit(at, 3..19, TW_SUBMIT_BLOCK, TW_FOREVER));
        OPEN.store(true, Ordering::Release);
        assert_eq!(waits.join().unwrap(), (TW_OK, 16));
    });
    let ended = reap(port, 18);
    assert!(ended.iter().all(|(_, code)| *code == TW_OK));
    let tokens: Vec<_> = ended.into_iter().map(|(token, _)| token).collect();
    let expected: Vec<_> = (0..2).chain(3..19).collect();
    assert_eq!(tokens, expected, "in order");
    // SAFETY: the error pointer may be null.
    unsafe {
        (table.client_close)(client, null_mut());
        (table.port_close)(port, null_mut());
    }
}
