//! Services in foreign code. The guest of these tests is in Rust, and uses only what foreign code has.

mod reload;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use thalweg_port::{
    Code, Completion, Failure, FunctionDescription, Guest, GuestCall, GuestObject, GuestPackage,
    Instance, MethodOptions, Object, PackageDescription, Port, QueueLimits, StreamOptions,
    close_handle, guest_answer, guest_answer_resource, guest_call_check, guest_fail,
    guest_resource, guest_resource_new, guest_resource_take, insert,
};
use thalweg_queue::clock;
use thalweg_wire::{Decode, Encode, Handle, Shape, message};

const ADD: u32 = 0;
const ECHO: u32 = 1;
const KEEP: u32 = 2;
const NEW_BOX: u32 = 3;
const GET_BOX: u32 = 4;
const TAKE_BOX: u32 = 5;
const MISBEHAVE: u32 = 6;

/// The type number of the resource.
const BOX: u32 = 7;

const TYPES: [(&str, &str); 7] = [
    ("guest.add", "record{number:u64}\nu64\n\n"),
    ("guest.echo", "record{text:string}\nstring\n\n"),
    ("guest.keep", "record{text:string}\nstring\nstring\n"),
    ("guest.[constructor]box", "record{value:u64}\nown<box>\n\n"),
    ("guest.[method]box.get", "record{self:borrow<box>}\nu64\n\n"),
    ("guest.[static]box.take", "record{box:own<box>}\nu64\n\n"),
    ("guest.misbehave", "record{how:u32}\nstring\nstring\n"),
];

fn function(name: &'static str, types: &'static str) -> FunctionDescription<'static> {
    FunctionDescription {
        name,
        types,
        is_async: name == "guest.keep",
        options: MethodOptions::NONE,
        stream: StreamOptions::DEFAULT,
    }
}

fn description() -> PackageDescription<'static> {
    PackageDescription {
        name: "test:guest",
        version: "0.1.0",
        methods: TYPES.map(|(name, types)| function(name, types)).to_vec(),
        imports: vec![],
        limits: QueueLimits::DEFAULT,
    }
}

fn layouts(method: u32) -> [u64; 4] {
    Shape::hash_lines(TYPES[method as usize].1)
}

fn written<T: Encode + ?Sized>(value: &T, layout: u64) -> Vec<u8> {
    message::encode(value, layout, Vec::new()).unwrap()
}

fn read<T: Decode>(data: &[u8], layout: u64) -> T {
    message::open(data, layout).unwrap().owned::<T>().unwrap()
}

/// The guest.
#[derive(Default)]
struct Probe {
    states: AtomicU64,
    sums: Mutex<HashMap<u64, u64>>,
    boxes: Mutex<HashMap<u64, u64>>,
    next_box: AtomicU64,
    /// The functions that were called, in order.
    events: Mutex<Vec<String>>,
    /// Calls that it has not answered.
    kept: Mutex<Option<mpsc::Sender<u64>>>,
}

impl Probe {
    fn note(&self, event: impl Into<String>) {
        self.events.lock().unwrap().push(event.into());
    }

    fn answer<T: Encode + ?Sized>(&self, call: &GuestCall<'_>, value: &T) {
        let message = written(value, layouts(call.method)[1]);
        guest_answer(call.call, Code::Ok, &message).unwrap();
    }

    fn misbehave(&self, call: &GuestCall<'_>, how: u32) {
        let [_, ok, error, _] = layouts(MISBEHAVE);
        let handle = call.call;
        let answered =
            |code, message: &[u8]| guest_answer(handle, code, message).map_err(|why| why.code);
        match how {
            // The types of another message.
            0 => assert_eq!(
                answered(Code::Ok, &written(&1u64, ok ^ 1)),
                Err(Code::GuestLost)
            ),
            // A text that is not UTF-8.
            1 => {
                let mut message = written("text", ok);
                *message.last_mut().unwrap() = 0xff;
                assert_eq!(answered(Code::Ok, &message), Err(Code::GuestLost));
            }
            // Twice.
            2 => {
                answered(Code::Ok, &written("first", ok)).unwrap();
                assert_eq!(answered(Code::Ok, &written("second", ok)), Err(Code::Stale));
                let failed = guest_fail(handle, Code::Argument.because("third"));
                assert_eq!(failed.unwrap_err().code, Code::Stale);
            }
            // Handles that are none of its own: a port, and nothing.
            3 => {
                let port = insert(Object::Port(Port::open(1).unwrap())).unwrap();
                let message = written(&Handle(port), layouts(NEW_BOX)[1]);
                assert_eq!(answered(Code::Ok, &message), Err(Code::GuestLost));
            }
            4 => guest_fail(handle, Code::GuestPanicked.because("it went wrong")).unwrap(),
            5 => answered(Code::Error, &written("the error", error)).unwrap(),
            // Outcomes that a guest cannot cause; the call goes on.
            6 => {
                for code in [
                    Code::Ok,
                    Code::Error,
                    Code::Closed,
                    Code::ShutDown,
                    Code::Version,
                ] {
                    let failed = guest_fail(handle, code.because("no"));
                    assert_eq!(failed.unwrap_err().code, Code::Argument);
                }
                assert_eq!(answered(Code::TimedOut, &[]), Err(Code::Argument));
                answered(Code::Ok, &written("still there", ok)).unwrap();
            }
            // An empty message.
            7 => assert_eq!(answered(Code::Ok, &[]), Err(Code::GuestLost)),
            _ => guest_fail(handle, Code::Argument.because("no such case")).unwrap(),
        }
    }
}

impl Guest for Probe {
    fn open(&self) -> Result<u64, Failure> {
        let state = self.states.fetch_add(1, Ordering::Relaxed) + 1;
        self.note(format!("open {state}"));
        self.sums.lock().unwrap().insert(state, 0);
        Ok(state)
    }

    fn call(&self, state: u64, call: GuestCall<'_>) {
        let params = layouts(call.method)[0];
        match call.method {
            ADD => {
                let (number,): (u64,) = read(call.args, params);
                let sum = {
                    let mut sums = self.sums.lock().unwrap();
                    let sum = sums.get_mut(&state).unwrap();
                    *sum += number;
                    *sum
                };
                self.answer(&call, &sum);
            }
            ECHO => {
                let (text,): (String,) = read(call.args, params);
                self.answer(&call, &*text);
                // The arguments are still the guest's after the answer, which it may overwrite.
                assert_eq!(read::<(String,)>(call.args, params).0, text);
                call.args.fill(0xff);
            }
            KEEP => {
                let (text,): (String,) = read(call.args, params);
                self.note(format!("keep {text}"));
                let kept = self.kept.lock().unwrap();
                kept.as_ref().unwrap().send(call.call).unwrap();
            }
            NEW_BOX => {
                let (value,): (u64,) = read(call.args, params);
                let number = self.next_box.fetch_add(1, Ordering::Relaxed);
                self.boxes.lock().unwrap().insert(number, value);
                let object = GuestObject { kind: BOX, number };
                match number % 2 {
                    0 => guest_answer_resource(call.call, object).unwrap(),
                    _ => {
                        let handle = guest_resource_new(call.call, object).unwrap();
                        self.answer(&call, &Handle(handle));
                    }
                }
            }
            GET_BOX | TAKE_BOX => {
                let (handle,): (Handle,) = read(call.args, params);
                let wrong = guest_resource(call.call, handle.0, BOX + 1);
                assert!(
                    matches!(wrong, Err(why) if [Code::Argument, Code::Stale].contains(&why.code))
                );
                let number = match call.method {
                    GET_BOX => guest_resource(call.call, handle.0, BOX),
                    _ => guest_resource_take(call.call, handle.0, BOX),
                };
                match number {
                    Ok(number) => {
                        let value = self.boxes.lock().unwrap()[&number];
                        self.answer(&call, &value);
                    }
                    Err(why) => guest_fail(call.call, why).unwrap(),
                }
            }
            _ => {
                let (how,): (u32,) = read(call.args, params);
                self.misbehave(&call, how);
            }
        }
    }

    fn cancel(&self, state: u64, _: u64) {
        self.note(format!("cancel {state}"));
    }

    fn drop_resource(&self, state: u64, resource: GuestObject) {
        assert_eq!(resource.kind, BOX);
        self.note(format!("drop {state} {}", resource.number));
        self.boxes.lock().unwrap().remove(&resource.number);
    }

    fn close(&self, state: u64) {
        self.note(format!("close {state}"));
        self.sums.lock().unwrap().remove(&state);
    }
}

/// A client of a guest.
struct Host {
    probe: Arc<Probe>,
    instance: Arc<Instance>,
    port: Arc<Port>,
}

impl Host {
    fn open() -> Self {
        let probe = Arc::new(Probe::default());
        let package = GuestPackage::of(&description()).unwrap();
        let runtime = Instance::runtime().unwrap();
        let guest = Arc::clone(&probe);
        Self {
            instance: Instance::open_guest(package, guest, runtime),
            port: Port::open(1024).unwrap(),
            probe,
        }
    }

    /// The calls that the guest keeps from here on.
    fn kept(&self) -> mpsc::Receiver<u64> {
        let (sender, kept) = mpsc::channel();
        *self.probe.kept.lock().unwrap() = Some(sender);
        kept
    }

    fn submit<P: Encode>(&self, method: u32, params: &P, deadline: u64) -> u64 {
        let args = written(params, layouts(method)[0]);
        self.instance
            .submit(&self.port, 0, method, &args, deadline)
            .unwrap()
    }

    fn reap(&self) -> Completion {
        let deadline = clock::deadline(Duration::from_secs(60));
        self.port.wait(deadline).unwrap();
        self.port.reap().unwrap().next().unwrap()
    }

    fn outcome<P: Encode>(&self, method: u32, params: &P) -> Completion {
        self.submit(method, params, u64::MAX);
        self.reap()
    }

    fn call<P: Encode, T: Decode>(&self, method: u32, params: &P) -> T {
        let completion = self.outcome(method, params);
        assert_eq!((completion.code, &*completion.message), (Code::Ok, ""));
        read(&completion.data, layouts(method)[1])
    }

    /// A new resource. Its handle is the test's.
    fn new_box(&self, value: u64) -> Handle {
        let mut completion = self.outcome(NEW_BOX, &(value,));
        assert_eq!(completion.code, Code::Ok);
        Handle(completion.take(0).unwrap())
    }

    fn failure<P: Encode>(&self, method: u32, params: &P) -> (Code, String) {
        let completion = self.outcome(method, params);
        (completion.code, completion.message.clone())
    }

    /// Waits until the guest has seen this event.
    fn wait_for(&self, event: &str) {
        let deadline = std::time::Instant::now() + Duration::from_secs(60);
        while !self
            .probe
            .events
            .lock()
            .unwrap()
            .iter()
            .any(|seen| seen == event)
        {
            assert!(
                std::time::Instant::now() < deadline,
                "{event}: {:?}",
                self.probe.events
            );
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn events(&self) -> Vec<String> {
        self.probe.events.lock().unwrap().clone()
    }
}

#[test]
fn guest_serves_calls_with_its_state() {
    let host = Host::open();
    assert!(host.events().is_empty(), "the first call opens the state");
    for sum in [3, 6, 9] {
        assert_eq!(host.call::<_, u64>(ADD, &(3u64,)), sum);
    }
    assert_eq!(host.call::<_, String>(ECHO, &("text",)), "text");
    assert_eq!(host.call::<_, String>(ECHO, &("",)), "");
    host.instance.close();
    host.wait_for("close 1");
    assert_eq!(host.events(), ["open 1", "close 1"]);
}

#[test]
fn malformed_arguments_do_not_reach_the_guest() {
    let host = Host::open();
    let mut args = written(&("text",), layouts(ECHO)[0]);
    *args.last_mut().unwrap() = 0xff;
    host.instance
        .submit(&host.port, 0, ECHO, &args, u64::MAX)
        .unwrap();
    let completion = host.reap();
    assert_eq!(completion.code, Code::Argument);
    assert!(
        completion.message.contains("UTF-8"),
        "{}",
        completion.message
    );
}

#[test]
fn call_is_answered_later_and_on_another_thread() {
    let host = Host::open();
    let kept = host.kept();
    let calls: Vec<u64> = (0..3)
        .map(|number| {
            host.submit(KEEP, &(number.to_string(),), u64::MAX);
            kept.recv().unwrap()
        })
        .collect();
    // The instance serves other calls meanwhile.
    assert_eq!(host.call::<_, u64>(ADD, &(1u64,)), 1);
    let ok = layouts(KEEP)[1];
    for call in calls {
        std::thread::spawn(move || {
            guest_call_check(call).unwrap();
            guest_answer(call, Code::Ok, &written("late", ok)).unwrap();
            assert_eq!(guest_call_check(call).unwrap_err().code, Code::Stale);
            let again = guest_answer(call, Code::Ok, &written("again", ok));
            assert_eq!(again.unwrap_err().code, Code::Stale);
        })
        .join()
        .unwrap();
        let completion = host.reap();
        assert_eq!(read::<String>(&completion.data, ok), "late");
    }
    assert!(
        !host
            .events()
            .iter()
            .any(|event| event.starts_with("cancel"))
    );
}

#[test]
fn guest_learns_that_a_kept_call_was_stopped() {
    let host = Host::open();
    let kept = host.kept();
    let handle = host.submit(KEEP, &("cancelled",), u64::MAX);
    let call = kept.recv().unwrap();
    close_handle(handle).unwrap();
    assert_eq!(host.reap().code, Code::Cancelled);
    host.wait_for("cancel 1");
    assert_eq!(guest_call_check(call).unwrap_err().code, Code::Stale);
    let late = guest_answer(call, Code::Ok, &written("late", layouts(KEEP)[1]));
    assert_eq!(late.unwrap_err().code, Code::Stale);

    let deadline = clock::deadline(Duration::from_millis(20));
    host.submit(KEEP, &("late",), deadline);
    kept.recv().unwrap();
    assert_eq!(host.reap().code, Code::TimedOut);
    host.instance.close();
    host.wait_for("close 1");
    let cancels = host
        .events()
        .iter()
        .filter(|event| *event == "cancel 1")
        .count();
    assert!((1..=2).contains(&cancels), "{:?}", host.events());
}

#[test]
fn kept_calls_end_with_the_client() {
    let host = Host::open();
    let kept = host.kept();
    host.submit(KEEP, &("kept",), u64::MAX);
    let call = kept.recv().unwrap();
    host.instance.close();
    assert_eq!(host.reap().code, Code::Cancelled);
    host.wait_for("close 1");
    assert_eq!(guest_call_check(call).unwrap_err().code, Code::Stale);
}

#[test]
fn resources_are_dropped_once_and_only_in_their_state() {
    let host = Host::open();
    let (first, second) = (host.new_box(10), host.new_box(20));
    assert_eq!(host.call::<_, u64>(GET_BOX, &(first,)), 10);
    assert_eq!(host.call::<_, u64>(GET_BOX, &(second,)), 20);
    close_handle(first.0).unwrap();
    host.wait_for("drop 1 0");
    assert_eq!(host.failure(GET_BOX, &(first,)).0, Code::Stale);
    // `own` gives the object back to the guest, which then gets no `drop`.
    assert_eq!(host.call::<_, u64>(TAKE_BOX, &(second,)), 20);
    assert_eq!(host.failure(GET_BOX, &(second,)).0, Code::Stale);
    // Another client's resource.
    let other = Host::open();
    let foreign = other.new_box(30);
    assert_eq!(host.failure(GET_BOX, &(foreign,)).0, Code::Argument);
    // The rest ends with the state.
    let third = host.new_box(40);
    host.instance.close();
    host.wait_for("close 1");
    let _ = close_handle(third.0);
    assert_eq!(host.events(), ["open 1", "drop 1 0", "drop 1 2", "close 1"]);
}

#[test]
fn wrong_answers_end_the_call_and_nothing_else() {
    let host = Host::open();
    host.call::<_, u64>(ADD, &(1u64,));
    let misbehave = |how: u32| host.failure(MISBEHAVE, &(how,));
    let lost = |how| {
        let (code, message) = misbehave(how);
        assert_eq!(code, Code::GuestLost, "{how}: {message}");
        assert!(message.contains("test:guest"), "{message}");
        assert!(message.contains("guest.misbehave"), "{message}");
        message
    };
    lost(0);
    assert!(lost(1).contains("UTF-8"));
    assert_eq!(misbehave(2).0, Code::Ok);
    lost(3);
    assert_eq!(misbehave(5).0, Code::Error);
    assert_eq!(misbehave(6).0, Code::Ok);
    lost(7);
    assert_eq!(misbehave(8), (Code::Argument, "no such case".to_owned()));
    assert_eq!(
        host.call::<_, u64>(ADD, &(1u64,)),
        2,
        "the state is the same"
    );
}

#[test]
fn panic_of_the_guest_replaces_its_state() {
    let host = Host::open();
    let kept = host.kept();
    host.call::<_, u64>(ADD, &(5u64,));
    let resource = host.new_box(1);
    host.submit(KEEP, &("kept",), u64::MAX);
    let call = kept.recv().unwrap();
    let (code, message) = host.failure(MISBEHAVE, &(4u32,));
    assert_eq!((code, &*message), (Code::GuestPanicked, "it went wrong"));
    assert_eq!(
        host.reap().code,
        Code::GuestPanicked,
        "the call that it kept"
    );
    assert_eq!(guest_call_check(call).unwrap_err().code, Code::Stale);
    assert_eq!(host.call::<_, u64>(ADD, &(1u64,)), 1, "a new state");
    assert_eq!(host.failure(GET_BOX, &(resource,)).0, Code::Stale);
    let _ = close_handle(resource.0);
    host.instance.close();
    host.wait_for("close 2");
    assert_eq!(
        host.events(),
        [
            "open 1",
            "keep kept",
            "drop 1 0",
            "close 1",
            "open 2",
            "close 2"
        ]
    );
}

#[test]
fn unknown_calls_are_refused() {
    for call in [0, 1, u64::MAX] {
        guest_answer(call, Code::Ok, &written(&1u64, 1)).unwrap_err();
        guest_fail(call, Code::Argument.because("no")).unwrap_err();
        guest_call_check(call).unwrap_err();
        guest_resource_new(call, GuestObject { kind: 0, number: 0 }).unwrap_err();
        guest_resource(call, 0, 0).unwrap_err();
    }
    let port = insert(Object::Port(Port::open(1).unwrap())).unwrap();
    guest_answer(port, Code::Ok, &written(&1u64, 1)).unwrap_err();
    close_handle(port).unwrap();
}

#[test]
fn equal_descriptions_are_one_package() {
    let first = GuestPackage::of(&description()).unwrap();
    assert!(std::ptr::eq(
        first,
        GuestPackage::of(&description()).unwrap()
    ));
    let mut other = description();
    other.version = "0.1.1";
    assert!(!std::ptr::eq(first, GuestPackage::of(&other).unwrap()));
}

#[test]
fn wrong_descriptions_are_refused_with_the_function() {
    let refused = |change: fn(&mut FunctionDescription<'static>), why: &str| {
        let mut description = description();
        change(&mut description.methods[1]);
        let failure = GuestPackage::of(&description).unwrap_err();
        assert_eq!(failure.code, Code::Argument);
        assert!(failure.message.contains(why), "{}", failure.message);
    };
    refused(
        |one| one.types = "record{text:string}\nstring\n",
        "guest.echo",
    );
    refused(
        |one| one.types = "record{text:strin}\nstring\n\n",
        "parameters",
    );
    refused(|one| one.types = "string\nstring\n\n", "not a record");
    refused(|one| one.types = "record{}\n\n\n", "result");
    refused(|one| one.types = "record{}\nstream<u8>\n\nu16", "element");
    refused(|one| one.types = "record{}\nu8\n\nu8", "element");
    refused(|one| one.options.is_inline = true, "inline");
    refused(|one| one.stream.capacity = 0, "capacity");
    refused(|one| one.stream.max_record_size = 1, "record size");
    refused(|one| one.name = "", "name");
}

#[test]
fn calls_from_many_threads_each_end_once() {
    let calls = if cfg!(miri) { 20 } else { 2_000 };
    let host = Host::open();
    let sum: u64 = std::thread::scope(|scope| {
        let threads = (0..4).map(|_| {
            scope.spawn(|| {
                let port = Port::open(64).unwrap();
                let args = written(&(1u64,), layouts(ADD)[0]);
                for _ in 0..calls {
                    host.instance
                        .submit(&port, 0, ADD, &args, u64::MAX)
                        .unwrap();
                    port.wait(clock::deadline(Duration::from_secs(60))).unwrap();
                    assert_eq!(port.reap().unwrap().next().unwrap().code, Code::Ok);
                }
                calls
            })
        });
        let threads: Vec<_> = threads.collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    assert_eq!(host.call::<_, u64>(ADD, &(0u64,)), sum);
}
