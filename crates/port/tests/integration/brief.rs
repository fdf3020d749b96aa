//! Brief methods: a caller's thread runs them while the instance is idle.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread::{self, ThreadId};
use std::time::Duration;

use thalweg_port::{
    CallError, Client, Code, Failure, Incoming, Instance, Method, MethodOptions, NoError, Package,
    Pending, Port, QueueLimits, Reply, Service, StreamOptions, StreamReader,
};
use thalweg_runtime::{Config, Runtime, sleep, wait};
use thalweg_wire::{Decode, Handle, message};

const ADD: u32 = 0;
const WAIT: u32 = 1;
const PANIC: u32 = 2;
const KEEP: u32 = 3;
const HOLD: u32 = 4;
const ADD_LATER: u32 = 5;
const COUNT: u32 = 6;
const CATCH: u32 = 7;
const SPIN: u32 = 8;

const fn method<P: Decode, T: Decode>(name: &'static str, is_brief: bool) -> Method {
    Method {
        name,
        params: P::HASH,
        ok: T::HASH,
        error: 0,
        element: u64::HASH,
        is_async: false,
        options: MethodOptions {
            is_brief,
            ..MethodOptions::NONE
        },
        stream: Some(StreamOptions::DEFAULT),
        description: "",
    }
}

/// Set while a call of `counter.hold` waits for its end.
static IS_HELD: AtomicBool = AtomicBool::new(false);

/// Where a method ran: on which thread, and whether in an actor.
type Place = (ThreadId, bool);

struct Counter {
    sum: u64,
    places: mpsc::Sender<Place>,
    kept: Vec<Incoming>,
    own: Arc<OnceLock<Client>>,
}

impl Service for Counter {
    const PACKAGE: &'static Package = &Package {
        name: "test:counter",
        version: "0.1.0",
        layout: 1,
        imports: &[],
        limits: QueueLimits::DEFAULT,
        methods: &[
            method::<(u64,), u64>("counter.add", true),
            method::<(), ()>("counter.wait", true),
            method::<(), ()>("counter.panic", true),
            method::<(), ()>("counter.keep", true),
            method::<(), ()>("counter.hold", false),
            method::<(u64,), ()>("counter.add-later", true),
            method::<(u64,), Handle>("counter.count", true),
            method::<(), u64>("counter.catch", true),
            method::<(), u64>("counter.spin", true),
        ],
    };

    fn dispatch(&mut self, incoming: Incoming) {
        let number = || incoming.params::<(u64,)>().unwrap().0;
        match incoming.method() {
            ADD => {
                self.sum += number();
                let place = (thread::current().id(), wait::is_actor());
                let _ = self.places.send(place);
                incoming.reply(&self.sum);
            }
            WAIT => {
                sleep(Duration::from_millis(1));
                incoming.reply(&());
            }
            PANIC => panic!("on purpose"),
            KEEP => self.kept.push(incoming),
            HOLD => {
                IS_HELD.store(true, Ordering::SeqCst);
                while IS_HELD.load(Ordering::SeqCst) {
                    sleep(Duration::from_millis(1));
                }
                incoming.reply(&());
            }
            ADD_LATER => {
                let own = self.own.get().unwrap().detached();
                let later: Pending<u64> = own.call(ADD, &(number(),), Reply::value);
                // Dropping it would cancel the call.
                std::mem::forget(later);
                incoming.reply(&());
            }
            COUNT => {
                let to = number();
                let (writer, reader) = incoming.call().stream::<u64, NoError>();
                incoming.call().spawn(move |_| {
                    for number in 0..to {
                        writer.send(&number).unwrap();
                    }
                    writer.finish().unwrap();
                });
                incoming.reply_stream(reader);
            }
            CATCH => {
                let waited = std::panic::catch_unwind(|| sleep(Duration::from_millis(1)));
                assert!(waited.is_err() && !wait::can_park());
                incoming.reply(&self.sum);
            }
            SPIN => {
                while incoming.call().check().is_ok() {
                    std::hint::spin_loop();
                }
                incoming.reply(&self.sum);
            }
            other => unreachable!("there is no method {other}"),
        }
    }
}

struct Setup {
    client: Client,
    places: mpsc::Receiver<Place>,
    runtime: Runtime,
}

/// A client with a service that has served a first call, `add(0)`.
fn setup() -> Setup {
    let runtime = Runtime::start(Config::with_workers(2)).unwrap();
    let own = Arc::new(OnceLock::new());
    let (sender, places) = mpsc::channel();
    let client = Client::start_on(runtime.handle(), {
        let own = Arc::clone(&own);
        move || Counter {
            sum: 0,
            places: sender.clone(),
            kept: Vec::new(),
            own: Arc::clone(&own),
        }
    });
    own.set(client.clone()).unwrap();
    let setup = Setup {
        client,
        places,
        runtime,
    };
    assert_eq!(add(&setup.client, 0).wait(), Ok(0));
    assert!(
        setup.places.recv().unwrap().1,
        "an actor creates the service"
    );
    setup
}

fn add(client: &Client, value: u64) -> Pending<u64> {
    client.call(ADD, &(value,), Reply::value)
}

fn call(client: &Client, method: u32) -> Result<(), CallError<NoError>> {
    client.call(method, &(), Reply::value::<()>).wait()
}

/// The end of a call that failed.
fn failure<T: std::fmt::Debug>(ended: Result<T, CallError<NoError>>) -> Failure {
    match ended {
        Err(CallError::Ended(failure)) => failure,
        other => panic!("it did not fail: {other:?}"),
    }
}

/// An untyped instance on the same service, for `call_inline`.
fn instance(setup: &Setup) -> Arc<Instance> {
    let sender = mpsc::channel().0;
    Instance::open(
        move || Counter {
            sum: 0,
            places: sender.clone(),
            kept: Vec::new(),
            own: Arc::default(),
        },
        setup.runtime.handle().clone(),
    )
}

fn add_message(value: u64) -> Vec<u8> {
    let mut args = Vec::new();
    message::encode_into(&(value,), <(u64,)>::HASH, &mut args).unwrap();
    args
}

/// Submits `add(value)` and waits for its end.
fn submit_add(instance: &Arc<Instance>, value: u64) -> u64 {
    let port = Port::open(1).unwrap();
    instance
        .submit(&port, 1, ADD, &add_message(value), u64::MAX)
        .unwrap();
    port.wait(u64::MAX).unwrap();
    let sum = port.reap().unwrap().next().unwrap();
    message::open(&sum.data, u64::HASH)
        .unwrap()
        .owned()
        .unwrap()
}

#[test]
fn thread_runs_a_brief_method_of_an_idle_service() {
    let setup = setup();
    let here = thread::current().id();
    let mut ended_at_once = 0;
    for sum in 1..=100 {
        let mut added = add(&setup.client, 1);
        match added.wait_timeout(Duration::ZERO) {
            Some(result) => {
                assert_eq!(result, Ok(sum));
                ended_at_once += 1;
            }
            None => assert_eq!(added.wait(), Ok(sum)),
        }
    }
    // The turn of the first call may not have ended when the next one was made. That one then runs in
    // the actor, too.
    let places: Vec<_> = setup.places.try_iter().collect();
    assert_eq!(places.len(), 100);
    let ran_here = places
        .iter()
        .filter(|&&place| place == (here, false))
        .count();
    assert!(ran_here > 0, "all of them ran in the actor");
    assert!(ended_at_once >= ran_here);
}

#[test]
fn actor_never_runs_a_brief_method_for_its_caller() {
    let setup = setup();
    let client = setup.client.clone();
    let sum = setup.runtime.handle().spawn(move || {
        let sums = (0..20).map(|_| add(&client, 1).wait().unwrap());
        sums.max()
    });
    assert_eq!(sum.join().unwrap(), Some(20));
    assert!(setup.places.try_iter().all(|(_, is_actor)| is_actor));
}

#[test]
fn brief_method_that_waits_ends_as_would_park_and_replaces_the_service() {
    let setup = setup();
    for in_actor in [false, true] {
        assert_eq!(add(&setup.client, 1).wait(), Ok(1));
        let client = setup.client.clone();
        let ended = match in_actor {
            false => call(&client, WAIT),
            true => {
                let waits = move || call(&client, WAIT);
                setup.runtime.handle().spawn(waits).join().unwrap()
            }
        };
        let why = failure(ended);
        assert_eq!(why.code, Code::WouldPark);
        assert!(why.message.contains("counter.wait"), "{}", why.message);
    }
    assert_eq!(add(&setup.client, 1).wait(), Ok(1), "it is a new service");
}

#[test]
fn wait_that_the_method_catches_changes_nothing() {
    let setup = setup();
    assert_eq!(add(&setup.client, 7).wait(), Ok(7));
    let caught = setup.client.call(CATCH, &(), Reply::value::<u64>);
    assert_eq!(Pending::<u64>::wait(caught), Ok(7));
    assert!(wait::can_park());
}

#[test]
fn panic_on_the_callers_thread_ends_only_that_call_and_replaces_the_service() {
    let setup = setup();
    assert_eq!(add(&setup.client, 7).wait(), Ok(7));
    let why = failure(call(&setup.client, PANIC));
    assert_eq!(
        (why.code, &*why.message),
        (Code::GuestPanicked, "on purpose")
    );
    assert!(wait::can_park());
    assert_eq!(add(&setup.client, 1).wait(), Ok(1), "it is a new service");
}

#[test]
fn brief_method_must_answer_before_it_returns() {
    let setup = setup();
    for _ in 0..2 {
        let why = failure(call(&setup.client, KEEP));
        assert_eq!(why.code, Code::WouldPark);
        assert!(why.message.contains("counter.keep"), "{}", why.message);
    }
}

#[test]
fn calls_of_many_threads_are_served_one_at_a_time_and_in_order() {
    let setup = setup();
    let each = if cfg!(miri) { 20 } else { 2_000 };
    let sums: Vec<Vec<u64>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let sums = (0..each).map(|_| add(&setup.client, 1).wait().unwrap());
                    sums.collect::<Vec<_>>()
                })
            })
            .collect();
        threads.into_iter().map(|it| it.join().unwrap()).collect()
    });
    assert!(sums.iter().all(|of_one| of_one.is_sorted()));
    let mut all: Vec<_> = sums.into_iter().flatten().collect();
    all.sort_unstable();
    assert!(all.into_iter().eq(1..=4 * each));
}

#[test]
fn call_waits_its_turn_while_the_service_is_busy() {
    let setup = setup();
    let instance = instance(&setup);
    let here = || instance.call_inline(ADD, &add_message(1), u64::MAX);
    // The service does not exist yet.
    assert_eq!(here().unwrap_err().code, Code::WouldPark);
    assert_eq!(submit_add(&instance, 1), 1);
    let port = Port::open(1).unwrap();
    let nothing = {
        let mut args = Vec::new();
        message::encode_into(&(), <()>::HASH, &mut args).unwrap();
        args
    };
    instance.submit(&port, 1, HOLD, &nothing, u64::MAX).unwrap();
    while !IS_HELD.load(Ordering::SeqCst) {
        thread::yield_now();
    }
    assert_eq!(here().unwrap_err().code, Code::WouldPark);
    IS_HELD.store(false, Ordering::SeqCst);
    port.wait(u64::MAX).unwrap();
    // The turn ends soon after the answer.
    let ended = loop {
        match here() {
            Ok(ended) => break ended,
            Err(why) => assert_eq!(why.code, Code::WouldPark),
        }
        thread::yield_now();
    };
    let sum = message::open(&ended.data, u64::HASH)
        .unwrap()
        .owned::<u64>();
    assert_eq!((ended.code, ended.handle, sum), (Code::Ok, 0, Ok(2)));
    drop(ended);
    instance.close();
    assert_eq!(here().unwrap_err().code, Code::Closed);
}

#[test]
fn call_made_in_a_brief_method_is_served_after_it() {
    let setup = setup();
    let later = setup.client.call(ADD_LATER, &(5u64,), Reply::value::<()>);
    assert_eq!(Pending::<()>::wait(later), Ok(()));
    assert_eq!(add(&setup.client, 1).wait(), Ok(6));
}

#[test]
fn brief_method_returns_a_stream() {
    let setup = setup();
    let stream: Pending<StreamReader<u64, NoError>> =
        setup
            .client
            .call(COUNT, &(100u64,), Reply::stream::<u64, NoError>);
    let numbers: Result<Vec<u64>, _> = stream.wait().unwrap().collect();
    assert!(numbers.unwrap().into_iter().eq(0..100));
}

#[test]
fn deadline_and_close_end_a_brief_call_that_runs() {
    let setup = setup();
    let hasty = setup.client.with_timeout(Duration::from_millis(20));
    let spins = |client: &Client| {
        let call = client.call(SPIN, &(), Reply::value::<u64>);
        failure(Pending::<u64>::wait(call)).code
    };
    assert_eq!(spins(&hasty), Code::TimedOut);
    let passed = setup.client.with_timeout(Duration::ZERO);
    assert_eq!(spins(&passed), Code::TimedOut);
    let client = setup.client.clone();
    let spinning = thread::spawn(move || {
        let call = client.call(SPIN, &(), Reply::value::<u64>);
        failure(Pending::<u64>::wait(call)).code
    });
    thread::sleep(Duration::from_millis(5));
    setup.client.close();
    assert!(matches!(
        spinning.join().unwrap(),
        Code::Cancelled | Code::Closed
    ));
}
