//! Tests of internal behaviour.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Barrier};
use std::task::Wake;

use thalweg_runtime::{Config, Runtime};
use thalweg_wire::message;

use super::Instance;
use crate::call::CallOwner;
use crate::handles::LOOKUPS;
use crate::object::{self, Object};
use crate::package::{Method, MethodOptions, Package, QueueLimits};
use crate::queued_bytes::SPARE_BYTES;
use crate::service::Service;
use crate::spare::{MAX_BUFFER_BYTES, SpareKey};
use crate::{CallError, Client, Code, Incoming, NoError, Pending, Port, SubmitOptions, Submitter};

/// Keeps its calls and never answers them.
#[derive(Default)]
struct HoldsCalls(Vec<Incoming>);

impl Service for HoldsCalls {
    const PACKAGE: &'static Package = &Package {
        name: "test:keeper",
        version: "0.1.0",
        layout: 1,
        imports: &[],
        limits: QueueLimits::DEFAULT,
        methods: &[Method {
            name: "keeper.keep",
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
        self.0.push(incoming);
    }
}

/// A runtime of the test's own, because Miri requires that all threads have ended when the tests
/// end.
fn runtime() -> Runtime {
    Runtime::start(Config::with_workers(1)).unwrap()
}

fn open(runtime: &Runtime) -> Arc<Instance> {
    Instance::open(HoldsCalls::default, runtime.handle().clone())
}

/// Number of slots of the handle table that this thread looks up in `f`.
fn slot_lookups(f: impl FnOnce()) -> usize {
    let before = LOOKUPS.get();
    f();
    LOOKUPS.get() - before
}

#[test]
fn close_looks_up_only_its_own_handles() {
    let runtime = runtime();
    let port = Port::open(1_000).unwrap();
    let clients: Vec<_> = (0..if cfg!(miri) { 3 } else { 200 })
        .map(|_| open(&runtime))
        .collect();
    for client in &clients {
        for token in 0..2 {
            client.submit(&port, token, 0, &[], u64::MAX).unwrap();
        }
    }
    let other = Port::open(4).unwrap();
    clients[0].submit(&other, 0, 0, &[], u64::MAX).unwrap();
    let slots = slot_lookups(|| other.close());
    assert!(slots <= 1, "the port looked up {slots} slots");
    let slots = slot_lookups(|| clients[1].close());
    assert!(slots <= 2, "the client looked up {slots} slots");
    clients.iter().for_each(|client| client.close());
    port.close();
}

#[test]
fn late_timer_does_not_end_a_later_call() {
    let runtime = runtime();
    let (client, port) = (open(&runtime), Port::open(4).unwrap());
    let call = client.submit(&port, 1, 0, &[], u64::MAX).unwrap();
    let Ok(Object::Call(core)) = object::find(call) else {
        panic!("the call is running")
    };
    Arc::clone(core.core()).wake();
    assert!(!core.has_ended());
    drop(core);
    client.close();
}

fn schedules(instance: &Instance) -> u64 {
    instance.schedules.load(Ordering::Relaxed)
}

#[test]
fn batch_of_64_calls_schedules_once() {
    let runtime = runtime();
    let schedules_of = |count: u64| {
        let (client, port) = (open(&runtime), Port::open(65).unwrap());
        let mut batch = Submitter::new(&client, &port);
        for token in 0..count {
            batch
                .submit(token, 0, &[], u64::MAX, SubmitOptions::default())
                .unwrap();
            assert_eq!(schedules(&client) == 0, token < 63, "{token}");
        }
        drop(batch);
        client.close();
        port.close();
        schedules(&client)
    };
    assert_eq!(schedules_of(64), 1);
    assert!(
        (1..=2).contains(&schedules_of(65)),
        "a long batch is scheduled early"
    );
}

/// Submits `count` calls. Returns how many were accepted, and why not all.
fn submit_all(submitter: &mut Submitter<'_>, count: u64) -> (u64, Option<Code>) {
    for token in 0..count {
        let options = SubmitOptions::default();
        if let Err(why) = submitter.submit(token, 0, &[], u64::MAX, options) {
            return (token, Some(why.code));
        }
    }
    (count, None)
}

/// Tokens and codes of the completions that are available.
fn reaped(port: &Port) -> Vec<(u64, Code)> {
    let reaped = port.reap().unwrap();
    reaped.map(|ended| (ended.token, ended.code)).collect()
}

#[test]
fn expected_calls_that_are_not_made_leave_nothing_reserved() {
    let runtime = runtime();
    let client = Instance::open(|| Dropper, runtime.handle().clone());
    let port = Port::open(4).unwrap();
    // The memory of the first calls is used again.
    for _ in 0..3 {
        let all = submit_all(&mut Submitter::for_calls(&client, &port, 10), 3);
        assert_eq!(all, (3, None));
        let mut ended = Vec::new();
        while ended.len() < 3 {
            port.wait(u64::MAX).unwrap();
            ended.append(&mut reaped(&port));
        }
        let lost = (0..3).map(|token| (token, Code::GuestLost));
        assert_eq!(ended, lost.collect::<Vec<_>>());
        assert_eq!(client.queued_calls(), 0);
    }
    let all = submit_all(&mut Submitter::for_calls(&client, &port, 4), 4);
    assert_eq!(all, (4, None), "the port has all slots again");
    client.close();
    port.close();
}

#[test]
fn expected_calls_end_where_the_port_or_the_mailbox_is_full() {
    let runtime = runtime();
    // No thread runs a turn.
    let waiting = |capacity| {
        let runtime = runtime.handle().clone();
        Instance::open_on_port(capacity, HoldsCalls::default, runtime).unwrap()
    };
    for (calls, slots) in [(4, 100), (100, 4)] {
        let (client, port) = (waiting(calls), Port::open(slots).unwrap());
        let mut submitter = Submitter::for_calls(&client, &port, 10);
        let refused = (4, Some(Code::Overloaded));
        assert_eq!(submit_all(&mut submitter, 10), refused);
        // The submitter may continue when there is capacity.
        assert_eq!(submit_all(&mut submitter, 1), (0, refused.1));
        drop(submitter);
        assert_eq!(client.queued_calls(), 4);
        client.close();
        let closed = (0..4).map(|token| (token, Code::Cancelled));
        assert_eq!(reaped(&port), closed.collect::<Vec<_>>());
        port.close();
    }
}

#[test]
fn expected_calls_of_a_closed_client_end_once() {
    let runtime = runtime();
    let (client, port) = (open(&runtime), Port::open(4).unwrap());
    let mut submitter = Submitter::for_calls(&client, &port, 4);
    assert_eq!(submit_all(&mut submitter, 2), (2, None));
    client.close();
    assert_eq!(submit_all(&mut submitter, 1), (0, Some(Code::Closed)));
    drop(submitter);
    assert_eq!(reaped(&port), [(0, Code::Cancelled), (1, Code::Cancelled)]);
    let (other, options) = (open(&runtime), SubmitOptions::default());
    let mut submitter = Submitter::for_calls(&other, &port, 4);
    submitter.submit(7, 0, &[], u64::MAX, options).unwrap();
    port.close();
    assert_eq!(submit_all(&mut submitter, 1).1, Some(Code::Closed));
    drop(submitter);
    other.close();
}

#[test]
fn client_batch_schedules_once_and_keeps_the_order() {
    let runtime = runtime();
    let client = Client::start_on::<HoldsCalls>(runtime.handle(), HoldsCalls::default);
    let before = schedules(client.instance());
    let calls: Vec<Pending<(), NoError>> = client.batch(|client| {
        let call = |_| client.call(0, &(), |reply| reply.value());
        let calls = (0..64).map(call).collect();
        assert_eq!(
            schedules(client.instance()),
            before,
            "no call is submitted yet"
        );
        calls
    });
    assert_eq!(schedules(client.instance()) - before, 1);
    client.close();
    for call in calls {
        let ended = call.wait().unwrap_err();
        assert!(matches!(ended, CallError::Ended(why) if why.code == Code::Cancelled));
    }
}

/// Drops its calls without an answer.
struct Dropper;

impl Service for Dropper {
    const PACKAGE: &'static Package = HoldsCalls::PACKAGE;

    fn dispatch(&mut self, _: Incoming) {}
}

#[test]
fn call_after_the_last_generation_has_another_slot() {
    let runtime = runtime();
    let instance = Instance::open(|| Dropper, runtime.handle().clone());
    let port = Port::open(4).unwrap();
    let call = || {
        let call = instance.submit(&port, 0, 0, &[], u64::MAX).unwrap();
        port.wait(u64::MAX).unwrap();
        // The memory is free once the completion is dropped.
        assert_eq!(port.reap().unwrap().count(), 1);
        call
    };
    let first = call();
    // As if the memory had been used 2^32 - 2 times.
    let used = instance
        .spare
        .take(SpareKey::of_port(port.number()))
        .unwrap();
    used.core().open_state.set_generation(u32::MAX - 1);
    instance.recycle(used);
    let last = call();
    assert_eq!(last, u64::from(u32::MAX) << 32 | u64::from(first as u32));
    for _ in 0..3 {
        let next = call();
        assert_ne!(next as u32, first as u32, "the slot was reused");
        for stale in [first, last] {
            assert_eq!(object::find(stale).unwrap_err().code, Code::Stale);
        }
    }
    instance.close();
    port.close();
}

/// The same with a brief method.
struct BriefDropper;

impl Service for BriefDropper {
    const PACKAGE: &'static Package = &Package {
        methods: &[Method {
            options: MethodOptions {
                is_brief: true,
                ..MethodOptions::NONE
            },
            ..HoldsCalls::PACKAGE.methods[0]
        }],
        ..*HoldsCalls::PACKAGE
    };

    fn dispatch(&mut self, _: Incoming) {}
}

#[test]
fn brief_calls_reuse_one_slot_until_its_last_generation() {
    let runtime = runtime();
    let instance = Instance::open(|| BriefDropper, runtime.handle().clone());
    let port = Port::open(4).unwrap();
    // The constructor of the service may wait, so the actor serves the first call.
    instance.submit(&port, 0, 0, &[], u64::MAX).unwrap();
    port.wait(u64::MAX).unwrap();
    port.reap().unwrap().for_each(drop);
    let call = || {
        let ended = loop {
            match instance.call_inline(0, &[], u64::MAX) {
                Ok(ended) => break ended,
                // The turn of the first call has not ended yet.
                Err(busy) => assert_eq!(busy.code, Code::WouldPark),
            }
        };
        assert_eq!((ended.code, ended.handle), (Code::GuestLost, 0));
    };
    let memory = || {
        let actor = instance.actor.lock().unwrap();
        let memory = actor.brief_memory.as_ref()?;
        Some(Arc::clone(memory.core()))
    };
    call();
    let first = memory().unwrap();
    call();
    assert!(Arc::ptr_eq(&first, &memory().unwrap()));
    first.open_state.set_generation(u32::MAX - 1);
    call();
    assert!(memory().is_none(), "its last generation was used");
    call();
    assert!(!Arc::ptr_eq(&first, &memory().unwrap()));
    instance.close();
    port.close();
}

/// Answers with the number of bytes of its argument. It meets the test at the barrier when it begins,
/// and again before it reads.
struct Counts(Arc<Barrier>);

impl Service for Counts {
    const PACKAGE: &'static Package = &Package {
        name: "test:counts",
        version: "0.1.0",
        layout: 1,
        imports: &[],
        limits: QueueLimits::DEFAULT,
        methods: &[Method::new(
            "counts.count",
            "record{bytes:list<u8>}\nu64\n\n",
        )],
    };

    fn dispatch(&mut self, incoming: Incoming) {
        self.0.wait();
        self.0.wait();
        incoming.serve(
            |_, (bytes,): (Vec<u8>,)| Ok(bytes.len() as u64),
            Incoming::reply_value,
        );
    }
}

/// Submits a call that borrows `size` bytes, and runs `meanwhile` after the service has begun. The
/// bytes are freed as soon as the call has completed. Returns its outcome.
fn borrow(size: usize, meanwhile: impl FnOnce(u64)) -> Code {
    let runtime = runtime();
    let barrier = Arc::new(Barrier::new(2));
    let own = Arc::clone(&barrier);
    let client = Instance::open(move || Counts(Arc::clone(&own)), runtime.handle().clone());
    let port = Port::open(4).unwrap();
    let mut head = Vec::new();
    let layout = Counts::PACKAGE.methods[0].params;
    message::encode_into(&(vec![7_u8; size],), layout, &mut head).unwrap();
    let tail = head.split_off(head.len() - size);
    // SAFETY: `tail` is dropped after the completion was reaped.
    let call = unsafe {
        let options = SubmitOptions::default();
        Submitter::new(&client, &port).submit_borrowed(1, 0, (&head, &tail), u64::MAX, options)
    };
    drop(head);
    barrier.wait();
    meanwhile(call.unwrap());
    let was_stopped = !port.is_empty();
    if !was_stopped {
        barrier.wait();
        port.wait(u64::MAX).unwrap();
    }
    let code = port.reap().unwrap().next().unwrap().code;
    drop(tail);
    if was_stopped {
        barrier.wait();
    }
    client.close();
    code
}

#[test]
fn borrowed_argument_is_read_in_place() {
    assert_eq!(borrow(5000, |_| {}), Code::Ok);
    assert_eq!(borrow(1, |_| {}), Code::Ok);
}

#[test]
fn borrowed_argument_of_a_stopped_call_is_not_read() {
    let cancel = |call| match object::find(call) {
        Ok(Object::Call(call)) => call.cancel(),
        _ => panic!("the call is running"),
    };
    assert_eq!(borrow(5000, cancel), Code::Cancelled);
}

#[test]
fn spare_calls_keep_large_buffers_up_to_their_limits() {
    let runtime = runtime();
    let instance = Instance::open(|| Dropper, runtime.handle().clone());
    let sizes = [MAX_BUFFER_BYTES + 1].into_iter();
    let sizes = sizes.chain([MAX_BUFFER_BYTES; 40]).chain([SPARE_BYTES; 2]);
    let calls: Vec<_> = sizes
        .map(|size| (instance.take_spare(SpareKey::WAITERS).unwrap(), size))
        .collect();
    for (mut call, size) in calls {
        call.data = Vec::with_capacity(size);
        instance.recycle(call);
    }
    let mut kept = Vec::new();
    while let Some(call) = instance.spare.take(SpareKey::WAITERS) {
        kept.push(call.data.capacity());
    }
    let count = |size| kept.iter().filter(|kept| **kept == size).count();
    assert_eq!(kept.len(), 43);
    assert_eq!(count(MAX_BUFFER_BYTES), (8 << 20) / MAX_BUFFER_BYTES);
    assert_eq!(count(SPARE_BYTES), 2);
    assert_eq!(count(0), 43 - 32 - 2, "the others are freed");
    // The bytes of the calls that were taken out do not count any more.
    let mut call = instance.take_spare(SpareKey::WAITERS).unwrap();
    call.data = Vec::with_capacity(MAX_BUFFER_BYTES);
    instance.recycle(call);
    let again = instance.take_spare(SpareKey::WAITERS).unwrap();
    assert_eq!(again.data.capacity(), MAX_BUFFER_BYTES);
    instance.recycle(again);
    instance.close();
}
