//! A service with host imports. The host is a port that a thread reaps, or a service in Rust.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use thalweg_port::{
    Call, CallError, Client, Code, Completion, Failure, Incoming, Instance, Kind, Method,
    MethodOptions, NoError, Package, Pending, Port, QueueLimits, Service, Task, answer_host_call,
    host_call_deadline,
};
use thalweg_queue::clock;
use thalweg_wire::{Decode, Encode, message};

const fn method<P: Decode, T: Decode>(name: &'static str) -> Method {
    Method {
        name,
        params: P::HASH,
        ok: T::HASH,
        error: String::HASH,
        element: 0,
        is_async: false,
        options: MethodOptions::NONE,
        stream: None,
        description: "",
    }
}

const LOOK_UP: Method = method::<(u64,), u64>("book.look-up");

/// The methods of the service: a `func` and an `async func` that call the host, one that calls the
/// host and drops the call, and one that counts.
const ASK: u32 = 0;
const ASK_LATER: u32 = 1;
const FORGET: u32 = 2;
const COUNT: u32 = 3;

#[derive(Default)]
struct Asker(u64);

/// A host's answer as a service returns it: the number, or the code and the text.
type Said = Result<u64, (u32, String)>;

fn look_up(call: &Call, key: u64) -> Pending<u64, String> {
    call.ask(0, &(key,), |reply| reply.value())
}

fn said(ended: Result<u64, CallError<String>>) -> Said {
    ended.map_err(|why| match why {
        CallError::Service(text) => (Code::Error as u32, text),
        CallError::Ended(failure) => (failure.code as u32, failure.message),
    })
}

impl Service for Asker {
    const PACKAGE: &'static Package = &Package {
        name: "test:asker",
        version: "0.1.0",
        layout: 1,
        methods: &[
            method::<(u64,), Said>("asker.ask"),
            method::<(u64,), Said>("asker.ask-later"),
            method::<(u64,), ()>("asker.forget"),
            method::<(), u64>("asker.count"),
        ],
        imports: &[LOOK_UP],
        limits: QueueLimits::DEFAULT,
    };

    fn dispatch(&mut self, incoming: Incoming) {
        let number = incoming.method();
        if number == COUNT {
            self.0 += 1;
            return incoming.reply(&self.0);
        }
        let (key,) = match incoming.params::<(u64,)>() {
            Ok(params) => params,
            Err(refusal) => return incoming.refuse(refusal),
        };
        match number {
            ASK => {
                let result = said(look_up(incoming.call(), key).wait());
                incoming.reply(&result);
            }
            ASK_LATER => incoming.run(
                Task::new(move |call| said(look_up(call, key).wait())),
                |incoming, result| incoming.reply(&result),
            ),
            _ => {
                drop(look_up(incoming.call(), key));
                incoming.reply(&());
            }
        }
    }
}

fn encoded<T: Encode>(value: &T, layout: u64) -> Vec<u8> {
    message::encode(value, layout, Vec::new()).unwrap()
}

/// A host as in C: an instance, and a port for calls and for host calls.
struct Host {
    instance: Arc<Instance>,
    port: Arc<Port>,
}

impl Host {
    fn new(capacity: u32) -> Self {
        let instance = Instance::open(Asker::default, Instance::runtime().unwrap());
        let port = Port::open(capacity).unwrap();
        instance.set_host_port(&port, 77).unwrap();
        Self { instance, port }
    }

    fn submit(&self, method: u32, key: u64, deadline: u64) {
        let args = encoded(&(key,), <(u64,)>::HASH);
        self.instance
            .submit(&self.port, key, method, &args, deadline)
            .unwrap();
    }

    fn next(&self) -> Completion {
        loop {
            self.port.wait(u64::MAX).unwrap();
            if let Some(completed) = self.port.reap().unwrap().next() {
                return completed;
            }
        }
    }

    /// The next host call and its key.
    fn asked(&self) -> (u64, u64) {
        let asked = self.next();
        assert_eq!(
            (asked.kind, asked.token, asked.number),
            (Kind::HostCall, 77, 0)
        );
        let key = message::open(&asked.data, LOOK_UP.params).unwrap();
        let (key,) = key.owned::<(u64,)>().unwrap();
        (asked.handle, key)
    }

    fn said(&self) -> Said {
        let ended = self.next();
        assert_eq!(
            (ended.kind, ended.code),
            (Kind::CallEnded, Code::Ok),
            "{}",
            ended.message
        );
        let message = message::open(&ended.data, Said::HASH).unwrap();
        message.owned::<Said>().unwrap()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.instance.close();
        self.port.close();
    }
}

#[test]
fn host_answers_with_a_value_an_error_or_another_outcome() {
    let host = Host::new(4);
    for (method, key) in [(ASK, 20), (ASK_LATER, 21)] {
        host.submit(method, key, u64::MAX);
        let (call, asked) = host.asked();
        assert_eq!(asked, key);
        assert_eq!(host_call_deadline(call), Ok(u64::MAX));
        answer_host_call(call, Code::Ok, &encoded(&(key * 2), LOOK_UP.ok)).unwrap();
        assert_eq!(host.said(), Ok(key * 2));
        let again = answer_host_call(call, Code::Ok, &[]).unwrap_err();
        assert_eq!(again.code, Code::Stale, "the call has ended");
    }
    host.submit(ASK, 1, u64::MAX);
    let text = "no such key".to_owned();
    answer_host_call(host.asked().0, Code::Error, &encoded(&text, LOOK_UP.error)).unwrap();
    assert_eq!(host.said(), Err((Code::Error as u32, text)));
    host.submit(ASK, 1, u64::MAX);
    let (call, _) = host.asked();
    let not_text = answer_host_call(call, Code::GuestPanicked, &[0xff]).unwrap_err();
    assert_eq!(not_text.code, Code::Argument);
    answer_host_call(call, Code::GuestPanicked, b"the handler threw").unwrap();
    let wanted = (Code::GuestPanicked as u32, "the handler threw".to_owned());
    assert_eq!(host.said(), Err(wanted));
    // The reader of a malformed answer detects it.
    host.submit(ASK, 1, u64::MAX);
    answer_host_call(host.asked().0, Code::Ok, &[1, 2, 3]).unwrap();
    assert_eq!(host.said().unwrap_err().0, Code::Version as u32);
}

#[test]
fn missing_full_or_closed_host_fails_the_host_call_at_once() {
    let instance = Instance::open(Asker::default, Instance::runtime().unwrap());
    let host = Host {
        instance,
        port: Port::open(4).unwrap(),
    };
    host.submit(ASK, 1, u64::MAX);
    assert_eq!(
        host.said().unwrap_err().0,
        Code::Closed as u32,
        "there is no host call"
    );

    // The host call of the first call uses the only slot.
    let narrow = Port::open(1).unwrap();
    host.instance.set_host_port(&narrow, 1).unwrap();
    host.submit(ASK_LATER, 1, u64::MAX);
    narrow.wait(u64::MAX).unwrap();
    host.submit(ASK, 2, u64::MAX);
    assert_eq!(host.said().unwrap_err().0, Code::Overloaded as u32);

    // A port that closes ends its host calls without an answer.
    for key in 3..5 {
        host.submit(ASK_LATER, key, u64::MAX);
    }
    narrow.close();
    for _ in 0..3 {
        let code = host.said().unwrap_err().0;
        assert!(
            [Code::Closed as u32, Code::Overloaded as u32].contains(&code),
            "{code}"
        );
    }
    host.submit(ASK, 6, u64::MAX);
    assert_eq!(host.said().unwrap_err().0, Code::Closed as u32);
    let refused = host.instance.set_host_port(&narrow, 1).unwrap_err();
    assert_eq!(refused.code, Code::Closed);
}

#[test]
fn host_call_ends_with_the_call_that_it_belongs_to() {
    let host = Host::new(4);
    // By its deadline. If it passes before the host is called, the next call has twice the time.
    let mut key = 100;
    let (call, deadline) = loop {
        let deadline = clock::deadline(Duration::from_millis(key));
        host.submit(ASK_LATER, key, deadline);
        let first = host.next();
        if first.kind == Kind::HostCall {
            break (first.handle, deadline);
        }
        assert_eq!((first.token, first.code), (key, Code::TimedOut));
        key *= 2;
    };
    assert_eq!(host_call_deadline(call).unwrap_or(deadline), deadline);
    let ended = host.next();
    assert_eq!((ended.token, ended.code), (key, Code::TimedOut));
    let late = answer_host_call(call, Code::Ok, &encoded(&1u64, LOOK_UP.ok)).unwrap_err();
    assert_eq!(late.code, Code::Stale);
    // The service drops the host call.
    host.submit(FORGET, 2, u64::MAX);
    let mut seen = [host.next(), host.next()];
    seen.sort_by_key(|completed| completed.kind == Kind::HostCall);
    let [ended, asked] = seen;
    assert_eq!((ended.token, ended.code), (2, Code::Ok));
    let refused =
        answer_host_call(asked.handle, Code::Ok, &encoded(&1u64, LOOK_UP.ok)).unwrap_err();
    assert_eq!(refused.code, Code::Stale);
    // With the client.
    host.submit(ASK_LATER, 3, u64::MAX);
    let (call, _) = host.asked();
    host.instance.close();
    let ended = host.next();
    assert_eq!((ended.token, ended.code), (3, Code::Cancelled));
    assert_eq!(
        answer_host_call(call, Code::Ok, &[]).unwrap_err().code,
        Code::Stale
    );
}

#[test]
fn host_call_sent_to_the_callers_port_is_answered_there() {
    let host = Host::new(4);
    let other = Port::open(4).unwrap();
    host.instance.set_host_port(&other, 1).unwrap();
    host.instance.set_host_to_caller(77).unwrap();
    for method in [ASK, ASK_LATER] {
        host.submit(method, 3, u64::MAX);
        answer_host_call(host.asked().0, Code::Ok, &encoded(&6u64, LOOK_UP.ok)).unwrap();
        assert_eq!(host.said(), Ok(6));
    }
    assert!(other.is_empty());
}

#[test]
fn answer_to_a_handle_that_is_no_host_call_is_refused() {
    let host = Host::new(4);
    assert_eq!(
        answer_host_call(0, Code::Ok, &[]).unwrap_err().code,
        Code::Argument
    );
    let args = encoded(&(1u64,), <(u64,)>::HASH);
    let call = host
        .instance
        .submit(&host.port, 1, ASK_LATER, &args, u64::MAX)
        .unwrap();
    let refused = answer_host_call(call, Code::Ok, &[]).unwrap_err();
    assert_eq!(refused.code, Code::Argument, "a call of the host itself");
    answer_host_call(host.asked().0, Code::Cancelled, &[]).unwrap();
    assert_eq!(host.said(), Err((Code::Cancelled as u32, String::new())));
}

/// Actions of the host in Rust, selected by the key.
const DOUBLE: u64 = 1;
const REFUSE: u64 = 2;
const BREAK: u64 = 3;
const STAY: u64 = 4;
const CALL_BACK: u64 = 5;

static STOPPED: AtomicU32 = AtomicU32::new(0);

/// The client that the host calls back, and the outcome of that call.
type Back = Arc<Mutex<(Option<Client>, Option<Code>)>>;

struct Book(Back);

impl Service for Book {
    const PACKAGE: &'static Package = &Package {
        name: "test:book",
        version: "0.1.0",
        layout: 2,
        methods: &[LOOK_UP],
        imports: &[],
        limits: QueueLimits::DEFAULT,
    };

    fn dispatch(&mut self, incoming: Incoming) {
        let Ok((key,)) = incoming.params::<(u64,)>() else {
            unreachable!("tests send numbers");
        };
        match key {
            DOUBLE => incoming.reply(&(key * 2)),
            REFUSE => incoming.reply_error(&"no".to_owned()),
            BREAK => panic!("while it looked, on purpose"),
            STAY => {
                let call = incoming.call().clone();
                while call.check().is_ok() {}
                STOPPED.fetch_add(1, Ordering::SeqCst);
            }
            _ => {
                let client = self.0.lock().unwrap().0.clone().unwrap();
                let ended = count(&client).wait();
                let code = match ended {
                    Err(CallError::Ended(failure)) => failure.code,
                    other => panic!("{other:?}"),
                };
                self.0.lock().unwrap().1 = Some(code);
                incoming.reply(&key);
            }
        }
    }
}

fn count(client: &Client) -> Pending<u64, NoError> {
    client.call(COUNT, &(), |reply| reply.value())
}

fn ask(client: &Client, key: u64) -> Result<Said, Failure> {
    let call: Pending<Said, NoError> = client.call(ASK, &(key,), |reply| reply.value());
    call.wait().map_err(|why| match why {
        CallError::Ended(failure) => failure,
        CallError::Service(error) => match error {},
    })
}

#[test]
fn service_in_rust_answers_host_calls() {
    let back = Back::default();
    let its = Arc::clone(&back);
    let book = Client::start(move || Book(Arc::clone(&its))).unwrap();
    let client = Client::start_with_host(Asker::default, &book).unwrap();
    assert_eq!(ask(&client, DOUBLE), Ok(Ok(2)));
    let refused = Err((Code::Error as u32, "no".to_owned()));
    assert_eq!(ask(&client, REFUSE), Ok(refused));
    let broken = ask(&client, BREAK).unwrap().unwrap_err();
    assert_eq!(broken.0, Code::GuestPanicked as u32);
    assert_eq!(
        ask(&client, DOUBLE),
        Ok(Ok(2)),
        "the host service is created again"
    );
    // The host call has the deadline of the call, which stops it. If it passes too early, the next
    // call reaches the host.
    let hasty = client.with_timeout(Duration::from_millis(20));
    while STOPPED.load(Ordering::SeqCst) == 0 {
        assert_eq!(ask(&hasty, STAY).unwrap_err().code, Code::TimedOut);
    }
    // A handler that calls its own client fails at once instead of waiting for ever.
    back.lock().unwrap().0 = Some(client.clone());
    assert_eq!(ask(&client, CALL_BACK), Ok(Ok(CALL_BACK)));
    assert_eq!(back.lock().unwrap().1, Some(Code::WouldPark));
    back.lock().unwrap().0 = None;
    // Another host replaces it, if it has the same functions.
    let other = Client::start(|| Book(Back::default())).unwrap();
    client.set_host(&other).unwrap();
    book.close();
    assert_eq!(ask(&client, DOUBLE), Ok(Ok(2)));
    let refused = client.set_host(&client).unwrap_err();
    assert_eq!(refused.code, Code::Version, "{refused}");
    assert_eq!(ask(&client, DOUBLE), Ok(Ok(2)), "the host stays");
    let refused = other.set_host(&client).unwrap_err();
    assert_eq!(refused.code, Code::Argument, "{refused}");
    let none = Client::start_with_host(move || Book(Back::default()), &book);
    assert_eq!(
        none.unwrap_err().code,
        Code::Argument,
        "the service has no imports"
    );
}
