//! Calls while no stack is free for a turn of their service.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use thalweg_port::{
    CallError, Client, Code, Incoming, Method, MethodOptions, NoError, Package, Pending,
    QueueLimits, Service, Task,
};
use thalweg_runtime::{Config, JoinError, Runtime, WakeReason, wait};
use thalweg_wire::{Decode, Encode};

const HOLD: u32 = 0;
const ECHO: u32 = 1;
const LATER: u32 = 2;
const NEST: u32 = 3;

/// Stacks that a worker reserves for turns, in addition to its share of `max_stacks`.
const TURN_RESERVE: usize = 16;

/// Only a call that hangs takes this long.
const LONG: Duration = Duration::from_secs(60);

const fn method<P: Decode, T: Decode>(name: &'static str) -> Method {
    Method {
        name,
        params: P::HASH,
        ok: T::HASH,
        error: NoError::HASH,
        element: 0,
        is_async: false,
        options: MethodOptions::NONE,
        stream: None,
        description: "",
    }
}

const PACKAGE: Package = Package {
    name: "test:stacks",
    version: "0.1.0",
    layout: 1,
    imports: &[],
    limits: QueueLimits::DEFAULT,
    methods: &[
        method::<(), ()>("stacks.hold"),
        method::<(u64,), u64>("stacks.echo"),
        method::<(u64,), u64>("stacks.later"),
        method::<(u64,), u64>("stacks.nest"),
    ],
};

/// State that all services of one test share.
#[derive(Default)]
struct Shared {
    held: AtomicUsize,
    released: AtomicBool,
    wakers: Mutex<Vec<std::task::Waker>>,
    echoed: Mutex<Vec<u64>>,
    /// The client that `NEST` calls.
    below: Mutex<Option<Client>>,
}

impl Shared {
    /// Holds the caller's stack until the test releases it.
    fn hold(&self) {
        self.wakers.lock().unwrap().push(wait::waker());
        self.held.fetch_add(1, Ordering::SeqCst);
        while !self.released.load(Ordering::SeqCst) {
            if wait::park(None) == WakeReason::Stopping {
                break;
            }
        }
    }

    fn release(&self) {
        self.released.store(true, Ordering::SeqCst);
        let wakers = std::mem::take(&mut *self.wakers.lock().unwrap());
        wakers.into_iter().for_each(std::task::Waker::wake);
    }

    fn wait_until_held(&self, count: usize) {
        while self.held.load(Ordering::SeqCst) < count {
            std::thread::yield_now();
        }
    }
}

struct Stacks(Arc<Shared>);

impl Service for Stacks {
    const PACKAGE: &'static Package = &PACKAGE;

    fn dispatch(&mut self, incoming: Incoming) {
        let number = || incoming.params::<(u64,)>().map_or(0, |(number,)| number);
        match incoming.method() {
            HOLD => {
                self.0.hold();
                incoming.reply(&());
            }
            ECHO => {
                let number = number();
                self.0.echoed.lock().unwrap().push(number);
                incoming.reply(&number);
            }
            NEST => {
                let below = self
                    .0
                    .below
                    .lock()
                    .unwrap()
                    .clone()
                    .expect("the client is set");
                match echo(&below, number()).wait() {
                    Ok(number) => incoming.reply(&number),
                    // The outcome of the nested call.
                    Err(CallError::Ended(failure)) => incoming.reply(&(failure.code as u64 + 100)),
                    Err(CallError::Service(error)) => match error {},
                }
            }
            _ => {
                let number = number();
                incoming.run(Task::new(move |_| number), |incoming, number| {
                    incoming.reply(&number);
                });
            }
        }
    }
}

fn call<P: Encode, T: Decode>(client: &Client, method: u32, params: &P) -> Pending<T, NoError> {
    client.call(method, params, |reply| reply.value())
}

fn echo(client: &Client, number: u64) -> Pending<u64, NoError> {
    call(client, ECHO, &(number,))
}

fn code<T: std::fmt::Debug>(ended: Result<T, CallError<NoError>>) -> Code {
    match ended.unwrap_err() {
        CallError::Ended(failure) => failure.code,
        CallError::Service(error) => match error {},
    }
}

struct Bench {
    shared: Arc<Shared>,
    runtime: Runtime,
}

impl Bench {
    /// One worker, and one stack for spawned actors.
    fn new() -> Self {
        Self {
            shared: Arc::default(),
            runtime: Runtime::start(Config::with_workers(1).max_stacks(1)).unwrap(),
        }
    }

    fn client(&self) -> Client {
        let shared = Arc::clone(&self.shared);
        let client = Client::start_on(self.runtime.handle(), move || Stacks(Arc::clone(&shared)));
        client.with_timeout(LONG)
    }

    /// Lets a spawned actor hold the only stack for spawned actors.
    fn hold_by_actor(&self) {
        let shared = Arc::clone(&self.shared);
        drop(self.runtime.handle().spawn(move || shared.hold()));
        self.shared.wait_until_held(1);
        let one_more = self.runtime.handle().spawn(|| ());
        assert!(matches!(one_more.join(), Err(JoinError::NoStack(_))));
    }

    /// Lets a spawned actor and services hold all stacks. Returns the calls of the services.
    fn hold_all(&self) -> Vec<Pending<(), NoError>> {
        self.hold_by_actor();
        let held = (0..TURN_RESERVE).map(|_| call(&self.client(), HOLD, &()));
        let held = held.collect();
        self.shared.wait_until_held(TURN_RESERVE + 1);
        held
    }
}

#[test]
fn call_while_spawned_actors_hold_every_stack_is_served() {
    let bench = Bench::new();
    let client = bench.client();
    bench.hold_by_actor();
    assert_eq!(echo(&client, 1).wait(), Ok(1));
    bench.shared.release();
    assert_eq!(echo(&client, 2).wait(), Ok(2));
}

#[test]
fn calls_without_a_stack_are_overloaded_and_later_ones_are_served_in_order() {
    let bench = Bench::new();
    let client = bench.client();
    let held = bench.hold_all();
    let refused: Vec<_> = (0..3).map(|number| echo(&client, number)).collect();
    for call in refused {
        match call.wait().unwrap_err() {
            CallError::Ended(failure) => {
                assert_eq!(failure.code, Code::Overloaded, "{failure}");
                assert!(failure.retryable());
            }
            CallError::Service(error) => match error {},
        }
    }
    assert_eq!(*bench.shared.echoed.lock().unwrap(), [0; 0]);
    // Again, during the same shortage.
    assert_eq!(code(echo(&client, 3).wait()), Code::Overloaded);
    bench.shared.release();
    held.into_iter().for_each(|call| call.wait().unwrap());
    let served: Vec<_> = (0..100).map(|number| echo(&client, number)).collect();
    for (number, call) in served.into_iter().enumerate() {
        assert_eq!(call.wait(), Ok(number as u64));
    }
    let order = bench.shared.echoed.lock().unwrap().clone();
    assert_eq!(order, (0..100).collect::<Vec<_>>());
}

/// The nested call's turn gets no stack while its caller holds the last one. The call is refused
/// instead of waiting for its own caller.
#[test]
fn nested_call_without_a_stack_is_overloaded_and_its_caller_continues() {
    let bench = Bench::new();
    let (client, below) = (bench.client(), bench.client());
    *bench.shared.below.lock().unwrap() = Some(below.clone());
    bench.hold_by_actor();
    let held: Vec<_> = (1..TURN_RESERVE)
        .map(|_| call::<_, ()>(&bench.client(), HOLD, &()))
        .collect();
    bench.shared.wait_until_held(TURN_RESERVE);
    let nested: Pending<u64, _> = call(&client, NEST, &(5u64,));
    assert_eq!(nested.wait(), Ok(Code::Overloaded as u64 + 100));
    bench.shared.release();
    held.into_iter().for_each(|call| call.wait().unwrap());
    let nested: Pending<u64, _> = call(&client, NEST, &(5u64,));
    assert_eq!(nested.wait(), Ok(5));
    *bench.shared.below.lock().unwrap() = None;
}

/// The method has already run, so the call is not refused: its task waits for a stack.
#[test]
fn task_of_a_call_while_no_stack_is_free_waits_for_one() {
    let bench = Bench::new();
    let client = bench.client();
    bench.hold_by_actor();
    let later: Pending<u64, _> = call(&client, LATER, &(7u64,));
    // Served after the method has run.
    assert_eq!(echo(&client, 1).wait(), Ok(1));
    bench.shared.release();
    assert_eq!(later.wait(), Ok(7));
}

#[test]
fn client_that_closes_while_no_stack_is_free_drops_its_service_later() {
    struct Dropped(mpsc::Sender<()>, Arc<Shared>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.send(()).unwrap();
        }
    }
    impl Service for Dropped {
        const PACKAGE: &'static Package = &PACKAGE;
        fn dispatch(&mut self, incoming: Incoming) {
            Stacks(Arc::clone(&self.1)).dispatch(incoming);
        }
    }
    let bench = Bench::new();
    let (dropped, drops) = mpsc::channel();
    let shared = Arc::clone(&bench.shared);
    let client = Client::start_on(bench.runtime.handle(), move || {
        Dropped(dropped.clone(), Arc::clone(&shared))
    });
    assert_eq!(echo(&client, 1).wait(), Ok(1));
    let held = bench.hold_all();
    let call = echo(&client, 2);
    client.close();
    assert!(matches!(
        code(call.wait()),
        Code::Overloaded | Code::Cancelled
    ));
    assert!(drops.try_recv().is_err());
    bench.shared.release();
    held.into_iter().for_each(|call| call.wait().unwrap());
    drops.recv().unwrap();
}
