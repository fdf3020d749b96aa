//! Services in Rust whose calls threads take from a port, one at a time.

use std::cell::Cell;
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread::JoinHandle;
use std::time::Duration;

use thalweg_port::{
    Code, Completion, Incoming, Instance, Method, Object, Package, Port, QueueLimits, Service,
    SubmitOptions, Submitter, close_handle, find,
};
use thalweg_queue::clock;
use thalweg_wire::message;

thread_local! {
    static LENT: Cell<Option<u64>> = const { Cell::new(None) };
}

struct Echo;

impl Service for Echo {
    const PACKAGE: &'static Package = &Package {
        name: "test:on-port",
        version: "0.1.0",
        layout: 1,
        methods: &[Method::new(
            "on-port.echo",
            "record{text:string}\nstring\n\n",
        )],
        imports: &[],
        limits: QueueLimits::DEFAULT,
    };

    fn dispatch(&mut self, call: Incoming) {
        LENT.set(call.lend().ok());
    }
}

fn open(capacity: u32) -> (Arc<Instance>, Arc<Port>) {
    let runtime = Instance::runtime().unwrap();
    let instance = Instance::open_on_port(capacity, || Echo, runtime).unwrap();
    (instance, Port::open(1024).unwrap())
}

/// Waits for the next call. `None`: the port has ended.
fn take_lent(instance: &Instance) -> Option<u64> {
    let port = instance.guest_port().unwrap();
    loop {
        let ran = port.run_turn(1, u64::MAX).map_err(|why| why.code);
        match (LENT.take(), ran) {
            (Some(lent), Ok(true)) => return Some(lent),
            (None, Ok(true)) => {}
            (None, Err(Code::Closed)) => return None,
            other => panic!("{other:?}"),
        }
    }
}

fn take(instance: &Instance) -> Option<Incoming> {
    take_lent(instance).map(|call| Incoming::take_back(call).unwrap())
}

/// Submits a call whose text is its token. Returns its handle.
fn submit(
    instance: &Arc<Instance>,
    port: &Arc<Port>,
    token: u64,
    deadline: u64,
) -> Result<u64, Code> {
    let mut args = Vec::new();
    let layout = Echo::PACKAGE.methods[0].params;
    message::encode_into(&(token.to_string(),), layout, &mut args).unwrap();
    let submitted = instance.submit(port, token, 0, &args, deadline);
    submitted.map_err(|failure| failure.code)
}

fn answer(call: Incoming) {
    call.serve(|_, (text,): (String,)| Ok(text), Incoming::reply_value);
}

/// A thread that answers calls. Returns their number.
fn server(instance: &Arc<Instance>) -> JoinHandle<usize> {
    let instance = Arc::clone(instance);
    std::thread::spawn(move || std::iter::from_fn(|| take(&instance).map(answer)).count())
}

fn reap(port: &Port) -> Completion {
    port.wait(clock::deadline(Duration::from_secs(60))).unwrap();
    port.reap().unwrap().next().unwrap()
}

#[test]
fn capacity_is_exact_with_and_without_a_waiting_thread() {
    let (instance, port) = open(3);
    let server = server(&instance);
    submit(&instance, &port, 0, u64::MAX).unwrap();
    assert_eq!(reap(&port).token, 0);
    instance.finish();
    assert_eq!(server.join().unwrap(), 1);

    let (instance, port) = open(3);
    for token in 0..3 {
        submit(&instance, &port, token, u64::MAX).unwrap();
    }
    assert_eq!(submit(&instance, &port, 3, u64::MAX), Err(Code::Overloaded));
    answer(take(&instance).unwrap());
    submit(&instance, &port, 3, u64::MAX).unwrap();
    assert_eq!(submit(&instance, &port, 4, u64::MAX), Err(Code::Overloaded));
}

#[test]
fn capacity_of_zero_is_refused() {
    let opened = Instance::open_on_port(0, || Echo, Instance::runtime().unwrap());
    assert_eq!(opened.unwrap_err().code, Code::Argument);
}

#[test]
fn finished_instance_serves_what_waits_and_then_ends_all_threads() {
    let (instance, port) = open(64);
    let taken = {
        submit(&instance, &port, 100, u64::MAX).unwrap();
        take(&instance).unwrap()
    };
    for token in 0..20 {
        submit(&instance, &port, token, u64::MAX).unwrap();
    }
    instance.finish();
    assert_eq!(submit(&instance, &port, 20, u64::MAX), Err(Code::Closed));
    let servers: Vec<_> = (0..3).map(|_| server(&instance)).collect();
    let served: usize = servers
        .into_iter()
        .map(|server| server.join().unwrap())
        .sum();
    assert_eq!(served, 20);
    assert!(take(&instance).is_none());
    // A call that was taken before can still be answered.
    answer(taken);
    let codes: Vec<_> = (0..21).map(|_| reap(&port).code).collect();
    assert_eq!(codes, [Code::Ok; 21]);
}

#[test]
fn closed_instance_ends_its_threads_and_cancels_its_calls() {
    let (instance, port) = open(64);
    submit(&instance, &port, 1, u64::MAX).unwrap();
    let taken = take(&instance).unwrap();
    let servers: Vec<_> = (0..3).map(|_| server(&instance)).collect();
    std::thread::sleep(Duration::from_millis(5)); // some of them sleep
    instance.close();
    for server in servers {
        assert_eq!(server.join().unwrap(), 0);
    }
    assert_eq!(reap(&port).code, Code::Cancelled);
    answer(taken);
    assert!(port.is_empty());
    assert!(take(&instance).is_none());
}

#[test]
fn call_that_timed_out_is_not_taken_and_frees_its_place() {
    let (instance, port) = open(1);
    submit(
        &instance,
        &port,
        1,
        clock::deadline(Duration::from_millis(1)),
    )
    .unwrap();
    assert_eq!(reap(&port).code, Code::TimedOut);
    submit(&instance, &port, 2, u64::MAX).unwrap();
    let call = take(&instance).unwrap();
    assert_eq!(call.params::<(String,)>().unwrap().0, "2");
    answer(call);
    assert_eq!(reap(&port).token, 2);
}

#[test]
fn lent_call_is_taken_back_once_and_keeps_its_arguments_after_its_end() {
    let (instance, port) = open(4);
    let handle = submit(&instance, &port, 7, u64::MAX).unwrap();
    let number = take_lent(&instance).unwrap();
    let text = |number| Incoming::with_lent::<(String,), _>(number, |(text,), _| text.to_owned());
    assert_eq!(text(number).unwrap(), "7");
    match find(handle).unwrap() {
        Object::Call(call) => call.cancel(),
        other => panic!("{other:?}"),
    }
    let ended = reap(&port);
    assert_eq!(ended.code, Code::Cancelled);
    // The number of a completion is not that of a call.
    let completion = ended.lend().unwrap();
    assert!(Incoming::take_back(completion).is_err());
    drop(Completion::take_back(completion).unwrap());
    assert_eq!(text(number).unwrap(), "7");
    assert!(Completion::take_back(number).is_err());
    assert!(find(number).is_err() && close_handle(number).is_err());
    answer(Incoming::take_back(number).unwrap());
    assert_eq!(Incoming::take_back(number).unwrap_err().code, Code::Stale);
    assert_eq!(text(number).unwrap_err().code, Code::Stale);
    assert!(port.is_empty());
}

/// Submits a call whose text is in borrowed memory. Returns its handle.
fn submit_borrowed(instance: &Arc<Instance>, port: &Arc<Port>, text: &'static str) -> u64 {
    let mut args = Vec::new();
    let layout = Echo::PACKAGE.methods[0].params;
    message::encode_into(&(text,), layout, &mut args).unwrap();
    let head = &args[..args.len() - text.len()];
    let mut submitter = Submitter::new(instance, port);
    let (parts, options) = ((head, text.as_bytes()), SubmitOptions::default());
    // SAFETY: the text is static.
    unsafe { submitter.submit_borrowed(1, 0, parts, u64::MAX, options) }.unwrap()
}

#[test]
fn borrowed_argument_is_copied_when_the_call_is_lent() {
    let (instance, port) = open(4);
    submit_borrowed(&instance, &port, "borrowed");
    let number = take_lent(&instance).unwrap();
    let read = |number| {
        Incoming::with_lent::<(String,), _>(number, |(text,), memory| {
            assert!(memory.contains(&text.as_ptr().cast_mut()));
            // SAFETY: a NUL follows the message.
            assert_eq!(unsafe { memory.end.read() }, 0);
            (text.to_owned(), memory)
        })
    };
    let first = read(number).unwrap();
    assert_eq!(first.0, "borrowed");
    assert_eq!(read(number).unwrap(), first, "it is not moved again");
    answer(Incoming::take_back(number).unwrap());
    assert_eq!(reap(&port).code, Code::Ok);
}

#[test]
fn stopped_call_with_a_borrowed_argument_is_not_taken() {
    let (instance, port) = open(4);
    let handle = submit_borrowed(&instance, &port, "stopped");
    match find(handle).unwrap() {
        Object::Call(call) => call.cancel(),
        other => panic!("{other:?}"),
    }
    assert_eq!(reap(&port).code, Code::Cancelled);
    submit_borrowed(&instance, &port, "next");
    let call = take(&instance).unwrap();
    assert_eq!(call.params::<(String,)>().unwrap().0, "next");
    answer(call);
    assert_eq!(reap(&port).code, Code::Ok);
}

#[test]
fn calls_of_many_threads_are_answered_once_each_by_many_threads() {
    let calls = if cfg!(miri) { 20 } else { 2_000 };
    let (instance, port) = open(4096);
    let servers: Vec<_> = (0..4).map(|_| server(&instance)).collect();
    let start = Arc::new(Barrier::new(4));
    let reaped = Arc::new(AtomicUsize::new(0));
    let submitters: Vec<_> = (0..4)
        .map(|thread| {
            let (instance, port) = (Arc::clone(&instance), Arc::clone(&port));
            let (start, reaped) = (Arc::clone(&start), Arc::clone(&reaped));
            std::thread::spawn(move || {
                start.wait();
                for call in 0..calls {
                    while submit(&instance, &port, (thread * calls + call) as u64, u64::MAX)
                        .is_err()
                    {
                        std::thread::yield_now(); // the port is full
                    }
                    // Now and then, everything is answered, so that the servers sleep.
                    while call % 50 == 0 && reaped.load(Ordering::Acquire) < call {
                        std::thread::yield_now();
                    }
                }
            })
        })
        .collect();
    let mut tokens = HashSet::new();
    for _ in 0..4 * calls {
        let completion = reap(&port);
        assert_eq!(completion.code, Code::Ok);
        assert!(tokens.insert(completion.token), "answered twice");
        reaped.fetch_add(1, Ordering::Release);
    }
    for submitter in submitters {
        submitter.join().unwrap();
    }
    instance.finish();
    let served: usize = servers
        .into_iter()
        .map(|server| server.join().unwrap())
        .sum();
    assert_eq!(served, 4 * calls);
}
