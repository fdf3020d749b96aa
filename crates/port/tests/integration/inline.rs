//! Inline methods: they run on the caller's thread and do not use the service's actor.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::ThreadId;
use std::time::Duration;

use thalweg_port::{
    CallError, Client, Code, Completion, Failure, Incoming, Inline, InlineCall, Instance, Method,
    MethodOptions, NoError, Package, Port, QueueLimits, Refusal, Service,
};
use thalweg_runtime::{Config, Runtime};
use thalweg_wire::{Decode, Encode, message};

const TWICE: u32 = 0;
const HALF: u32 = 1;
const PANIC: u32 = 2;
const FORGET: u32 = 3;
const QUEUED: u32 = 4;

/// Number of times the inline object was created.
static MADE: AtomicU32 = AtomicU32::new(0);

const fn method<P: Decode, T: Decode>(name: &'static str, is_inline: bool) -> Method {
    Method {
        name,
        params: P::HASH,
        ok: T::HASH,
        error: String::HASH,
        element: 0,
        is_async: false,
        options: MethodOptions {
            is_inline,
            ..MethodOptions::NONE
        },
        stream: None,
        description: "",
    }
}

/// The state of the actor, which the inline object cannot access.
#[derive(Default)]
struct Math(u64);

struct Pure;

impl Service for Math {
    const PACKAGE: &'static Package = &Package {
        name: "test:math",
        version: "0.1.0",
        layout: 1,
        imports: &[],
        limits: QueueLimits::DEFAULT,
        methods: &[
            method::<(u64,), u64>("math.twice", true),
            method::<(u64,), u64>("math.half", true),
            method::<(), ()>("math.panic", true),
            method::<(), ()>("math.forget", true),
            method::<(), u64>("math.queued", false),
        ],
    };

    fn dispatch(&mut self, incoming: Incoming) {
        assert_eq!(
            incoming.method(),
            QUEUED,
            "the actor does not serve inline methods"
        );
        self.0 += 1;
        incoming.reply(&self.0);
    }

    fn inline() -> Option<Box<dyn Inline>> {
        MADE.fetch_add(1, Ordering::SeqCst);
        Some(Box::new(Pure))
    }
}

thread_local! {
    static SERVED: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

impl Inline for Pure {
    fn dispatch(&self, asked: InlineCall<'_>) {
        SERVED.set(SERVED.get() + 1);
        if let Err((asked, refusal)) = serve(asked) {
            asked.refuse(refusal);
        }
    }
}

fn serve(asked: InlineCall<'_>) -> Result<(), (InlineCall<'_>, Refusal)> {
    match asked.method() {
        TWICE => match asked.params::<(u64,)>() {
            Ok((value,)) => asked.reply(&(value * 2)),
            Err(refusal) => return Err((asked, refusal)),
        },
        HALF => match asked.params::<(u64,)>() {
            Ok((value,)) if value % 2 == 0 => asked.reply(&(value / 2)),
            Ok((value,)) => asked.reply_error(&format!("{value} is odd")),
            Err(refusal) => return Err((asked, refusal)),
        },
        PANIC => panic!("inline, on purpose"),
        FORGET => {}
        other => unreachable!("{other} is not inline"),
    }
    Ok(())
}

fn client() -> Client {
    Client::start(Math::default).unwrap()
}

fn call<P: Encode, T: Decode>(
    client: &Client,
    method: u32,
    params: &P,
) -> Result<T, CallError<String>> {
    client.call_inline(method, params, |reply| reply.value())
}

fn queued(client: &Client) -> u64 {
    let call = client.call::<_, u64, NoError>(QUEUED, &(), |reply| reply.value());
    call.wait().unwrap()
}

fn failure<T: std::fmt::Debug>(ended: Result<T, CallError<String>>) -> Failure {
    match ended {
        Err(CallError::Ended(failure)) => failure,
        other => panic!("{other:?}"),
    }
}

fn here() -> ThreadId {
    std::thread::current().id()
}

#[test]
fn inline_call_runs_on_the_callers_thread_and_returns_value_or_error() {
    let client = client();
    let served = SERVED.get();
    assert_eq!(call::<_, u64>(&client, TWICE, &(21u64,)), Ok(42));
    assert_eq!(call::<_, u64>(&client, HALF, &(42u64,)), Ok(21));
    assert_eq!(
        call::<_, u64>(&client, HALF, &(7u64,)),
        Err(CallError::Service("7 is odd".to_owned()))
    );
    assert_eq!(SERVED.get() - served, 3, "on {:?}", here());
    // Also on an actor's thread, without leaving its worker.
    let runtime = Runtime::start(Config::with_workers(1)).unwrap();
    let (send, receive) = std::sync::mpsc::channel();
    runtime.handle().spawn(move || {
        let before = SERVED.get();
        let value = call::<_, u64>(&client, TWICE, &(1u64,));
        send.send((SERVED.get() - before, value)).unwrap();
    });
    assert_eq!(receive.recv().unwrap(), (1, Ok(2)));
}

#[test]
fn panic_in_an_inline_call_ends_only_that_call() {
    let client = client();
    assert_eq!(queued(&client), 1);
    let ended = failure(call::<_, ()>(&client, PANIC, &()));
    assert_eq!(ended.code, Code::GuestPanicked);
    assert_eq!(ended.message, "inline, on purpose");
    assert_eq!(queued(&client), 2, "the service keeps its state");
    assert_eq!(call::<_, u64>(&client, TWICE, &(3u64,)), Ok(6));
    let ended = failure(call::<_, ()>(&client, FORGET, &()));
    assert_eq!(ended.code, Code::GuestLost);
    assert!(!ended.message.is_empty());
}

#[test]
fn inline_call_past_its_deadline_does_not_begin() {
    let client = client().with_timeout(Duration::ZERO);
    let served = SERVED.get();
    let ended = failure(call::<_, u64>(&client, TWICE, &(1u64,)));
    assert_eq!(ended.code, Code::TimedOut);
    assert_eq!(SERVED.get(), served);
}

#[test]
fn inline_call_on_a_closed_client_or_another_method_is_refused() {
    let client = client();
    let ended = failure(call::<_, u64>(&client, QUEUED, &()));
    assert_eq!(ended.code, Code::Argument);
    client.close();
    let ended = failure(call::<_, u64>(&client, TWICE, &(1u64,)));
    assert_eq!(ended.code, Code::Closed);
}

fn encoded<P: Encode>(method: u32, params: &P) -> Vec<u8> {
    let layout = Math::PACKAGE.methods[method as usize].params;
    message::encode(params, layout, Vec::new()).unwrap()
}

fn value(completed: &Completion) -> u64 {
    message::open(&completed.data, u64::HASH)
        .and_then(|message| message.owned())
        .unwrap()
}

#[test]
fn inline_call_with_malformed_arguments_is_refused_and_the_next_succeeds() {
    let instance = Instance::open(Math::default, Instance::runtime().unwrap());
    let good = encoded(TWICE, &(4u64,));
    for cut in 0..good.len() {
        let ended = instance.call_inline(TWICE, &good[..cut], u64::MAX).unwrap();
        assert_eq!(ended.code, Code::Argument, "truncated at {cut}");
        assert!(ended.data.is_empty());
    }
    let ended = instance.call_inline(TWICE, &good, u64::MAX).unwrap();
    assert_eq!((ended.code, value(&ended)), (Code::Ok, 8));
    assert_eq!(ended.message, "");
    assert!(instance.call_inline(99, &good, u64::MAX).is_err());
    instance.close();
}

#[test]
fn inline_method_submitted_to_a_port_is_answered() {
    let made = MADE.load(Ordering::SeqCst);
    let instance = Instance::open(Math::default, Instance::runtime().unwrap());
    let port = Port::open(4).unwrap();
    for method in [TWICE, HALF] {
        let args = encoded(method, &(10u64,));
        instance
            .submit(&port, u64::from(method), method, &args, u64::MAX)
            .unwrap();
    }
    let (args, none) = (encoded(PANIC, &()), encoded(QUEUED, &()));
    instance.submit(&port, 7, PANIC, &args, u64::MAX).unwrap();
    instance.submit(&port, 8, QUEUED, &none, u64::MAX).unwrap();
    let mut seen = Vec::new();
    while seen.len() < 4 {
        port.wait(u64::MAX).unwrap();
        for ended in port.reap().unwrap() {
            let value = if ended.code == Code::Ok {
                value(&ended)
            } else {
                0
            };
            seen.push((ended.token, ended.code, value));
        }
    }
    let wanted = [
        (0, Code::Ok, 20),
        (1, Code::Ok, 5),
        (7, Code::GuestPanicked, 0),
        (8, Code::Ok, 1),
    ];
    assert_eq!(seen, wanted);
    assert!(MADE.load(Ordering::SeqCst) > made);
    instance.close();
}

#[test]
fn inline_calls_from_several_threads_run_concurrently() {
    let client = client();
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let client = &client;
            scope.spawn(move || {
                for i in 0..if cfg!(miri) { 20 } else { 1_000 } {
                    let value = thread << 32 | i;
                    assert_eq!(call::<_, u64>(client, TWICE, &(value,)), Ok(value * 2));
                }
            });
        }
    });
}
