//! Answers of guests: those that are accepted, and those that are refused.

use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use thalweg_port::{
    Code, Completion, Failure, FunctionDescription, Guest, GuestCall, GuestObject, GuestPackage,
    Instance, MethodOptions, Object, PackageDescription, Port, QueueLimits, StreamOptions,
    close_handle, find, guest_answer, guest_answer_stream, guest_fail, guest_resource_new, insert,
};
use thalweg_queue::clock;
use thalweg_wire::{Handle, Shape, message};

const TEXT: u32 = 0;
const CELL: u32 = 1;
const NUMBERS: u32 = 2;

const TYPES: [(&str, &str); 3] = [
    ("answers.text", "record{}\nstring\n\n"),
    ("answers.cell", "record{}\nown<cell>\n\n"),
    ("answers.numbers", "record{}\nstream<u64>\n\nu64"),
];

type Serve = dyn Fn(u64) + Send + Sync;

/// A guest that serves each call with a function of the test.
struct Scripted {
    serve: Box<Serve>,
    dropped: Mutex<Vec<u64>>,
    closed: mpsc::Sender<()>,
}

impl Guest for Scripted {
    fn open(&self) -> Result<u64, Failure> {
        Ok(0)
    }

    fn call(&self, _: u64, call: GuestCall<'_>) {
        (self.serve)(call.call);
    }

    fn cancel(&self, _: u64, _: u64) {}

    fn drop_resource(&self, _: u64, resource: GuestObject) {
        self.dropped.lock().unwrap().push(resource.number);
    }

    fn close(&self, _: u64) {
        self.closed.send(()).unwrap();
    }
}

struct Host {
    guest: Arc<Scripted>,
    instance: Arc<Instance>,
    port: Arc<Port>,
    closed: mpsc::Receiver<()>,
}

impl Host {
    fn open(serve: impl Fn(u64) + Send + Sync + 'static) -> Self {
        let function = |(name, types)| FunctionDescription {
            name,
            types,
            is_async: true,
            options: MethodOptions::NONE,
            stream: StreamOptions::DEFAULT,
        };
        let package = GuestPackage::of(&PackageDescription {
            name: "test:answers",
            version: "0.1.0",
            methods: TYPES.map(function).to_vec(),
            imports: vec![],
            limits: QueueLimits::DEFAULT,
        });
        let (sender, closed) = mpsc::channel();
        let guest = Arc::new(Scripted {
            serve: Box::new(serve),
            dropped: Mutex::default(),
            closed: sender,
        });
        let runtime = Instance::runtime().unwrap();
        Self {
            instance: Instance::open_guest(package.unwrap(), Arc::clone(&guest) as _, runtime),
            port: Port::open(64).unwrap(),
            guest,
            closed,
        }
    }

    fn submit(&self, method: u32) -> u64 {
        let args = written(&(), layouts(method)[0]);
        self.instance
            .submit(&self.port, 0, method, &args, u64::MAX)
            .unwrap()
    }

    fn reap(&self) -> Completion {
        self.port
            .wait(clock::deadline(Duration::from_secs(60)))
            .unwrap();
        self.port.reap().unwrap().next().unwrap()
    }

    fn call(&self, method: u32) -> Completion {
        self.submit(method);
        self.reap()
    }

    /// Closes the client, and waits until the state has ended.
    fn close(&self) {
        self.instance.close();
        self.closed.recv_timeout(Duration::from_secs(60)).unwrap();
    }
}

fn layouts(method: u32) -> [u64; 4] {
    Shape::hash_lines(TYPES[method as usize].1)
}

fn written<T: thalweg_wire::Encode + ?Sized>(value: &T, layout: u64) -> Vec<u8> {
    message::encode(value, layout, Vec::new()).unwrap()
}

/// A message of the result of a method that is a handle.
fn handle_message(method: u32, handle: u64) -> Vec<u8> {
    written(&Handle(handle), layouts(method)[1])
}

fn object(number: u64) -> GuestObject {
    GuestObject { kind: 0, number }
}

#[test]
fn handles_that_are_not_the_guests_are_refused_and_stay_open() {
    let port = insert(Object::Port(Port::open(1).unwrap())).unwrap();
    let reader = Arc::new(Mutex::new(0));
    let host = {
        let reader = Arc::clone(&reader);
        Host::open(move |call| {
            for foreign in [port, *reader.lock().unwrap()] {
                if foreign == 0 {
                    // The first call makes the stream.
                    return guest_answer_stream(call).map(drop).unwrap();
                }
                let answered = guest_answer(call, Code::Ok, &handle_message(CELL, foreign));
                let code = answered.unwrap_err().code;
                // The first one ends the call.
                assert!([Code::GuestLost, Code::Stale].contains(&code), "{code:?}");
            }
        })
    };
    // A stream of the program.
    let mut numbers = {
        let host = Host::open(|call| guest_answer_stream(call).map(drop).unwrap());
        host.call(NUMBERS)
    };
    let stream = numbers.take(0).unwrap();
    *reader.lock().unwrap() = stream;
    assert_eq!(host.call(CELL).code, Code::GuestLost);
    close_handle(port).unwrap();
    assert!(matches!(find(stream), Ok(Object::Stream(_))));
    close_handle(stream).unwrap();
}

#[test]
fn stream_is_not_answered_with_another_handle() {
    let host = Host::open(|call| {
        let resource = guest_resource_new(call, object(1)).unwrap();
        let answered = guest_answer(call, Code::Ok, &handle_message(NUMBERS, resource));
        let why = answered.unwrap_err();
        assert_eq!(why.code, Code::GuestLost);
        assert!(why.message.contains("it is no stream"), "{}", why.message);
    });
    assert_eq!(host.call(NUMBERS).code, Code::GuestLost);
    host.close();
    assert_eq!(*host.guest.dropped.lock().unwrap(), [1]);
}

#[test]
fn resource_that_is_not_given_away_ends_with_the_state() {
    let (sender, handles) = mpsc::channel();
    let host = Host::open(move |call| {
        for number in [1, 2] {
            let handle = guest_resource_new(call, object(number)).unwrap();
            sender.send(handle).unwrap();
            if number == 2 {
                guest_answer(call, Code::Ok, &handle_message(CELL, handle)).unwrap();
            }
        }
    });
    let mut completion = host.call(CELL);
    let given = completion.take(0).unwrap();
    let handles: Vec<_> = handles.try_iter().collect();
    assert_eq!(handles[1], given);
    assert!(find(handles[0]).is_ok());
    host.close();
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    while find(handles[0]).is_ok() {
        assert!(std::time::Instant::now() < deadline, "the handle is open");
        std::thread::yield_now();
    }
    // A program closes its own.
    close_handle(given).unwrap();
    let mut dropped = host.guest.dropped.lock().unwrap().clone();
    dropped.sort_unstable();
    assert_eq!(dropped, [1, 2]);
}

#[test]
fn answer_is_accepted_only_if_the_caller_gets_it() {
    let (sender, calls) = mpsc::channel();
    let host = Host::open(move |call| sender.send(call).unwrap());
    let right = written("text", layouts(TEXT)[1]);
    let wrong = written(&1u64, layouts(TEXT)[1]);
    let rounds = if cfg!(miri) { 10 } else { 3_000 };
    for round in 0..rounds {
        let call = host.submit(TEXT);
        let served = calls.recv().unwrap();
        let answered = std::thread::scope(|scope| {
            let cancelling = scope.spawn(|| close_handle(call));
            let answered = match round % 3 {
                0 => guest_answer(served, Code::Ok, &right),
                1 => guest_answer(served, Code::Ok, &wrong),
                _ => guest_fail(served, Code::Overloaded.because("no")),
            };
            let _ = cancelling.join().unwrap();
            answered
        });
        let code = match (answered, round % 3) {
            (Ok(()), 0) => Code::Ok,
            (Ok(()), 2) => Code::Overloaded,
            (Err(why), 1) if why.code == Code::GuestLost => Code::GuestLost,
            (Err(why), _) if why.code == Code::Stale => Code::Cancelled,
            (other, _) => panic!("{other:?}"),
        };
        assert_eq!(host.reap().code, code, "round {round}");
    }
}
