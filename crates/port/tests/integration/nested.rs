//! A service that calls another one while it works for a call.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use thalweg_port::{
    CallError, Client, Code, Incoming, Method, MethodOptions, NoError, Package, Pending,
    QueueLimits, Service, Task,
};
use thalweg_queue::clock;
use thalweg_wire::{Decode, Encode};

const fn method<P: Decode, T: Decode>(name: &'static str) -> Method {
    Method {
        name,
        params: P::HASH,
        ok: T::HASH,
        error: 0,
        element: 0,
        is_async: false,
        options: MethodOptions::NONE,
        stream: None,
        description: "",
    }
}

const DOWN: u32 = 0;
const DEADLINES: u32 = 1;
const AFTERWARDS: u32 = 2;
const MANY: u32 = 3;

/// Tasks at the end of a chain that began, and tasks that noticed the stop.
static BEGAN: AtomicU32 = AtomicU32::new(0);
static STOPPED: AtomicU32 = AtomicU32::new(0);

/// A service in a chain of services.
struct Link(Option<Client>);

impl Service for Link {
    const PACKAGE: &'static Package = &Package {
        name: "test:link",
        version: "0.1.0",
        layout: 1,
        imports: &[],
        limits: QueueLimits::DEFAULT,
        methods: &[
            method::<(), ()>("link.down"),
            method::<(), Vec<u64>>("link.deadlines"),
            method::<(), u32>("link.afterwards"),
            method::<(), u64>("link.many"),
        ],
    };

    fn dispatch(&mut self, incoming: Incoming) {
        let next = self.0.clone();
        match incoming.method() {
            // Calls down to the last service, which works until it is asked to stop.
            DOWN => incoming.run(
                Task::new(move |call| {
                    if let Some(next) = next {
                        return drop(down(&next).wait());
                    }
                    BEGAN.fetch_add(1, Ordering::SeqCst);
                    while call.check().is_ok() {}
                    STOPPED.fetch_add(1, Ordering::SeqCst);
                }),
                |incoming, ()| incoming.reply(&()),
            ),
            // Returns the deadlines of this call and of all calls below it; 0: none. It is a
            // `func`: its actor waits in it.
            DEADLINES => {
                let mut all = vec![incoming.call().deadline().unwrap_or(0)];
                all.extend(next.map_or(Vec::new(), |next| deadlines(&next).wait().unwrap()));
                incoming.reply(&all);
            }
            // Makes a call after it was asked to stop, and returns the outcome of that call.
            AFTERWARDS => {
                let call = incoming.call().clone();
                BEGAN.fetch_add(1, Ordering::SeqCst);
                while call.check().is_ok() {}
                let code = match next.map(|next| deadlines(&next).wait()) {
                    Some(Err(CallError::Ended(failure))) => failure.code as u32,
                    _ => 0,
                };
                STOPPED.fetch_add(100 + code, Ordering::SeqCst);
                incoming.reply(&code);
            }
            // Makes this number of calls one after the other, and then one that continues.
            _ => {
                let next = next.unwrap();
                let mut sum = 0;
                for _ in 0..1_000 {
                    sum += deadlines(&next).wait().unwrap().len() as u64;
                }
                drop(down(&next).wait());
                incoming.reply(&sum);
            }
        }
    }
}

fn link(next: Option<&Client>) -> Client {
    let next = next.cloned();
    Client::start(move || Link(next.clone())).unwrap()
}

fn call<T: Decode + Encode>(client: &Client, method: u32) -> Pending<T, NoError> {
    client.call(method, &(), |reply| reply.value())
}

fn down(client: &Client) -> Pending<(), NoError> {
    call(client, DOWN)
}

fn deadlines(client: &Client) -> Pending<Vec<u64>, NoError> {
    call(client, DEADLINES)
}

fn until(figure: &AtomicU32, at_least: u32) {
    let patience = clock::deadline(Duration::from_secs(60));
    while figure.load(Ordering::SeqCst) < at_least {
        assert!(clock::now() < patience, "the detached call was not stopped");
        std::thread::yield_now();
    }
}

fn code<T: std::fmt::Debug>(result: Result<T, CallError<NoError>>) -> Code {
    match result.unwrap_err() {
        CallError::Ended(failure) => failure.code,
        CallError::Service(error) => match error {},
    }
}

/// A single test, because the counters are process-wide.
#[test]
fn stopped_call_stops_its_nested_calls() {
    // A, B, C: C does the work.
    let last = link(None);
    let first = link(Some(&link(Some(&last))));
    let pending = down(&first);
    until(&BEGAN, 1);
    pending.cancel();
    assert_eq!(code(pending.wait()), Code::Cancelled);
    until(&STOPPED, 1);

    // A detached call is not stopped. It ends only by itself.
    let next = last.detached();
    let pending = down(&link(Some(&next)));
    until(&BEGAN, 2);
    pending.cancel();
    assert_eq!(code(pending.wait()), Code::Cancelled);
    assert_eq!(lasts(&last), [0], "C serves further calls");
    assert_eq!(STOPPED.load(Ordering::SeqCst), 1);
    last.close();
    until(&STOPPED, 2);

    // A call after the stop is refused.
    let first = link(Some(&link(None)));
    let pending = call::<u32>(&first, AFTERWARDS);
    until(&BEGAN, 3);
    pending.cancel();
    until(&STOPPED, 2 + 100);
    let seen = STOPPED.load(Ordering::SeqCst);
    assert_eq!(seen, 2 + 100 + Code::Cancelled as u32);

    // Many finished calls do not hide the one that is running.
    let pending = call::<u64>(&first, MANY);
    until(&BEGAN, 4);
    pending.cancel();
    assert_eq!(code(pending.wait()), Code::Cancelled);
    until(&STOPPED, seen + 1);
}

fn lasts(client: &Client) -> Vec<u64> {
    deadlines(client).wait().unwrap()
}

#[test]
fn nested_call_has_no_later_deadline_than_its_parent() {
    let hour = Duration::from_secs(3600);
    let last = link(None);
    // Its own deadline is later, so the first deadline applies down the whole chain.
    let slower = last.with_timeout(2 * hour);
    let first = link(Some(&link(Some(&slower)))).with_timeout(hour);
    let all = lasts(&first);
    assert!(all[0] > 0);
    assert_eq!(all, [all[0]; 3]);
    // Its own deadline is earlier.
    let faster = last.with_timeout(hour / 2);
    let all = lasts(&link(Some(&faster)).with_timeout(hour));
    assert!(all[1] > 0 && all[1] < all[0], "{all:?}");
    // The detached call has no deadline.
    let all = lasts(&link(Some(&last.detached())).with_timeout(hour));
    assert_eq!(all[1], 0);
    // Outside a call there is no deadline.
    assert_eq!(lasts(&last), [0]);
}
