//! Inputs of guests during calls: elements of streams, and answers of their hosts.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use thalweg_port::stream::UpstreamCore;
use thalweg_port::{
    Code, Completion, Failure, FunctionDescription, Guest, GuestCall, GuestEvent, GuestObject,
    GuestPackage, GuestPort, Instance, Kind, MethodOptions, Object, PackageDescription, Port,
    QueueLimits, StreamOptions, answer_host_call, close_handle, find, find_element_reader,
    find_record_writer, guest_answer, guest_answer_stream, guest_import_answer, guest_import_begin,
    guest_import_call, guest_reader_open, insert,
};
use thalweg_queue::clock;
use thalweg_wire::{Decode, Encode, Handle, Shape, message};

const SUM: u32 = 0;
const ASK: u32 = 1;

const TYPES: [(&str, &str); 2] = [
    (
        "input.sum",
        "record{names:stream<string>,numbers:stream<u64>}\nu64\n\n",
    ),
    ("input.ask", "record{number:u64}\nu64\n\n"),
];

const CONFIRM: (&str, &str) = ("host.confirm", "record{number:u64}\nu64\nstring\n");

fn layouts(types: &str) -> [u64; 4] {
    Shape::hash_lines(types)
}

fn written<T: Encode + ?Sized>(value: &T, layout: u64) -> Vec<u8> {
    message::encode(value, layout, Vec::new()).unwrap()
}

fn read<T: Decode>(data: &[u8], layout: u64) -> T {
    message::open(data, layout).unwrap().owned::<T>().unwrap()
}

fn soon() -> u64 {
    clock::deadline(Duration::from_secs(60))
}

fn package() -> &'static GuestPackage {
    let function = |(name, types)| FunctionDescription {
        name,
        types,
        is_async: true,
        options: MethodOptions::NONE,
        stream: StreamOptions::DEFAULT,
    };
    let description = PackageDescription {
        name: "test:input",
        version: "0.1.0",
        methods: TYPES.map(function).to_vec(),
        imports: vec![function(CONFIRM)],
        limits: QueueLimits::DEFAULT,
    };
    GuestPackage::of(&description).unwrap()
}

/// A guest's port, and a client of it.
struct Pair {
    guest: Arc<GuestPort>,
    instance: Arc<Instance>,
    port: Arc<Port>,
}

impl Pair {
    fn open() -> Self {
        let guest = GuestPort::new().unwrap();
        let runtime = Instance::runtime().unwrap();
        Self {
            instance: Instance::open_guest(package(), guest.clone(), runtime),
            port: Port::open(16).unwrap(),
            guest,
        }
    }

    fn submit(&self, method: u32, params: &impl Encode, deadline: u64) {
        let args = written(params, layouts(TYPES[method as usize].1)[0]);
        self.instance
            .submit(&self.port, 0, method, &args, deadline)
            .unwrap();
    }

    fn reap(&self) -> Completion {
        self.port.wait(soon()).unwrap();
        self.port.reap().unwrap().next().unwrap()
    }

    /// The next call and its arguments.
    fn take_call(&self) -> (u64, Vec<u8>) {
        loop {
            let mut taken = Vec::new();
            self.guest
                .take(1, soon(), |event| taken.push(event))
                .unwrap();
            if let Some(GuestEvent::Call { call, args, .. }) = taken.pop() {
                return (call, args);
            }
        }
    }
}

fn upstream<T: Decode>() -> (Arc<UpstreamCore>, Handle) {
    let stream = UpstreamCore::new(T::HASH, false);
    let handle = insert(Object::Upstream(Arc::clone(&stream))).unwrap();
    (stream, Handle(handle))
}

fn send<T: Encode + Decode>(stream: &UpstreamCore, value: &T) -> Result<(), Code> {
    let element = written(value, T::HASH);
    stream.send(&element, soon()).map_err(|why| why.code)
}

/// The handles in the arguments of `sum`.
fn streams(args: &[u8]) -> Vec<u64> {
    let message = message::open(args, layouts(TYPES[0].1)[0]).unwrap();
    message.handles().map(|handle| handle.0).collect()
}

fn is_stale<T>(result: Result<T, Failure>) -> bool {
    result.is_err_and(|why| why.code == Code::Stale)
}

#[test]
fn guest_reads_streams_of_its_caller() {
    let pair = Pair::open();
    let (names, names_handle) = upstream::<String>();
    let (numbers, numbers_handle) = upstream::<u64>();
    pair.submit(SUM, &(names_handle, numbers_handle), u64::MAX);
    let (call, args) = pair.take_call();
    let [names_handle, numbers_handle] = streams(&args)[..] else {
        panic!("there are two streams");
    };
    let reader = guest_reader_open(call, numbers_handle).unwrap();
    assert!(is_stale(guest_reader_open(call, numbers_handle)));
    let elements = find_element_reader(reader).unwrap();
    assert_eq!(elements.receive(0).unwrap_err().code, Code::WouldPark);
    let late = clock::now() + 1_000_000;
    assert_eq!(elements.receive(late).unwrap_err().code, Code::TimedOut);

    let sending = thread::spawn(move || {
        for number in 0..1000u64 {
            send(&numbers, &number).unwrap();
        }
        numbers.finish().unwrap();
        numbers
    });
    let mut sum = 0;
    while let Some(element) = elements.receive(soon()).unwrap() {
        sum += read::<u64>(&element, u64::HASH);
    }
    assert_eq!(sum, 499_500);
    sending.join().unwrap();
    drop(elements);
    close_handle(reader).unwrap();
    assert!(is_stale(find_element_reader(reader)));

    let result = written(&sum, layouts(TYPES[0].1)[1]);
    guest_answer(call, Code::Ok, &result).unwrap();
    assert_eq!(pair.reap().code, Code::Ok);
    // The guest has not taken the other stream.
    assert_eq!(send(&names, &"late".to_owned()), Err(Code::Closed));
    assert!(is_stale(guest_reader_open(call, names_handle)));
}

#[test]
fn stream_ends_with_its_call_and_with_its_writer() {
    let pair = Pair::open();
    let (names, names_handle) = upstream::<String>();
    let (_numbers, numbers_handle) = upstream::<u64>();
    let deadline = clock::deadline(Duration::from_millis(20));
    pair.submit(SUM, &(names_handle, numbers_handle), deadline);
    let (call, args) = pair.take_call();
    let readers: Vec<_> = streams(&args)
        .iter()
        .map(|stream| guest_reader_open(call, *stream).unwrap())
        .collect();
    names.abandon();
    let elements = find_element_reader(readers[0]).unwrap();
    assert_eq!(elements.receive(soon()).unwrap_err().code, Code::Cancelled);
    let elements = find_element_reader(readers[1]).unwrap();
    assert_eq!(elements.receive(soon()).unwrap_err().code, Code::TimedOut);
    assert_eq!(pair.reap().code, Code::TimedOut);
    // The readers are closed with their handles.
    readers
        .into_iter()
        .for_each(|reader| close_handle(reader).unwrap());
}

#[test]
fn closed_reader_is_reported_to_the_writer() {
    let pair = Pair::open();
    let (names, names_handle) = upstream::<String>();
    let (_numbers, numbers_handle) = upstream::<u64>();
    pair.submit(SUM, &(names_handle, numbers_handle), u64::MAX);
    let (call, args) = pair.take_call();
    let reader = guest_reader_open(call, streams(&args)[0]).unwrap();
    close_handle(reader).unwrap();
    assert_eq!(send(&names, &"unread".to_owned()), Err(Code::Closed));
}

#[test]
fn malformed_element_and_foreign_handles_are_refused() {
    let pair = Pair::open();
    let (names, names_handle) = upstream::<String>();
    let (_numbers, numbers_handle) = upstream::<u64>();
    pair.submit(SUM, &(names_handle, numbers_handle), u64::MAX);
    let (call, args) = pair.take_call();
    let (_, foreign) = upstream::<u8>();
    assert_eq!(
        guest_reader_open(call, foreign.0).unwrap_err().code,
        Code::Argument
    );
    let port = insert(Object::Port(Port::open(1).unwrap())).unwrap();
    assert_eq!(
        guest_reader_open(call, port).unwrap_err().code,
        Code::Argument
    );
    close_handle(port).unwrap();
    close_handle(foreign.0).unwrap();

    let mut element = written("name", String::HASH);
    *element.last_mut().unwrap() = 0xff;
    names.send(&element, soon()).unwrap();
    let reader = guest_reader_open(call, streams(&args)[0]).unwrap();
    let elements = find_element_reader(reader).unwrap();
    assert_eq!(elements.receive(soon()).unwrap_err().code, Code::Argument);
    assert_eq!(send(&names, &"name".to_owned()), Err(Code::Argument));
}

#[test]
fn guest_calls_its_host() {
    let pair = Pair::open();
    let host = Port::open(16).unwrap();
    pair.instance.set_host_port(&host, 7).unwrap();
    pair.submit(ASK, &(5u64,), u64::MAX);
    let (call, _) = pair.take_call();
    let [params, ok, error, _] = layouts(CONFIRM.1);
    let answering = thread::spawn(move || {
        let answers = [
            (Code::Ok, written(&10u64, ok)),
            (Code::Error, written("no", error)),
            // It is not the type of the result.
            (Code::Ok, written("ten", error)),
            (Code::Overloaded, b"later".to_vec()),
        ];
        for (code, data) in answers {
            host.wait(soon()).unwrap();
            let asked = host.reap().unwrap().next().unwrap();
            assert_eq!((asked.kind, asked.token), (Kind::HostCall, 7));
            assert_eq!(read::<(u64,)>(&asked.data, params), (5,));
            answer_host_call(asked.handle, code, &data).unwrap();
        }
    });
    let args = written(&(5u64,), params);
    let ask = || guest_import_call(call, 0, &args);
    let (code, data) = ask().unwrap();
    assert_eq!((code, read::<u64>(&data, ok)), (Code::Ok, 10));
    let (code, data) = ask().unwrap();
    assert_eq!((code, &*read::<String>(&data, error)), (Code::Error, "no"));
    assert_eq!(ask().unwrap_err().code, Code::GuestLost);
    assert_eq!(ask().unwrap_err(), Code::Overloaded.because("later"));
    answering.join().unwrap();

    let refused = guest_import_call(call, 1, &args).unwrap_err();
    assert_eq!(refused.code, Code::Argument);
    let refused = guest_import_call(call, 0, &args[1..]).unwrap_err();
    assert_eq!(refused.code, Code::Argument);
}

#[test]
fn call_of_the_host_ends_with_its_call() {
    let pair = Pair::open();
    let args = written(&(5u64,), layouts(CONFIRM.1)[0]);
    pair.submit(ASK, &(5u64,), u64::MAX);
    let (call, _) = pair.take_call();
    let no_host = guest_import_call(call, 0, &args).unwrap_err();
    assert_eq!(no_host.code, Code::Closed);

    let silent = Port::open(16).unwrap();
    pair.instance.set_host_port(&silent, 7).unwrap();
    let deadline = clock::deadline(Duration::from_millis(20));
    pair.submit(ASK, &(5u64,), deadline);
    let (call, _) = pair.take_call();
    let late = guest_import_call(call, 0, &args).unwrap_err();
    assert!(
        [Code::TimedOut, Code::Cancelled, Code::Stale].contains(&late.code),
        "{late}"
    );
    assert_eq!(pair.reap().code, Code::TimedOut);
    assert!(is_stale(guest_import_call(call, 0, &args)));
}

/// A guest whose functions try to wait.
struct Waiting;

impl Guest for Waiting {
    fn open(&self) -> Result<u64, Failure> {
        Ok(0)
    }

    fn call(&self, _: u64, call: GuestCall<'_>) {
        let args = written(&(5u64,), layouts(CONFIRM.1)[0]);
        let asked = guest_import_call(call.call, 0, &args).unwrap_err();
        let result = written(&(asked.code as u64), layouts(TYPES[1].1)[1]);
        guest_answer(call.call, Code::Ok, &result).unwrap();
    }

    fn cancel(&self, _: u64, _: u64) {}
    fn drop_resource(&self, _: u64, _: GuestObject) {}
    fn close(&self, _: u64) {}
}

#[test]
fn functions_of_a_guest_must_not_wait_for_the_host() {
    let runtime = Instance::runtime().unwrap();
    let instance = Instance::open_guest(package(), Arc::new(Waiting), runtime);
    let (port, host) = (Port::open(16).unwrap(), Port::open(16).unwrap());
    instance.set_host_port(&host, 7).unwrap();
    let [params, ok, ..] = layouts(TYPES[1].1);
    let args = written(&(5u64,), params);
    instance.submit(&port, 0, ASK, &args, u64::MAX).unwrap();
    port.wait(soon()).unwrap();
    let completion = port.reap().unwrap().next().unwrap();
    let code = read::<u64>(&completion.data, ok);
    assert_eq!(code, Code::WouldPark as u64);
    assert_eq!(host.reap().unwrap().count(), 0, "the host was not called");
}

impl Pair {
    /// The token of the next event of a waker. Calls may be cancelled before it.
    fn take_ready(&self, deadline: u64) -> Option<u64> {
        loop {
            let mut taken = Vec::new();
            self.guest
                .take(1, deadline, |event| taken.push(event))
                .unwrap();
            match taken.pop() {
                Some(GuestEvent::Ready { token }) => return Some(token),
                Some(GuestEvent::Cancel { .. }) => {}
                Some(other) => panic!("{other:?}"),
                None => return None,
            }
        }
    }
}

#[test]
fn port_is_notified_of_elements_and_of_the_end() {
    let pair = Pair::open();
    let (_names, names_handle) = upstream::<String>();
    let (numbers, numbers_handle) = upstream::<u64>();
    pair.submit(SUM, &(names_handle, numbers_handle), u64::MAX);
    let (call, args) = pair.take_call();
    let reader = guest_reader_open(call, streams(&args)[1]).unwrap();
    let elements = find_element_reader(reader).unwrap();
    elements.notify(pair.guest.waker(1));
    elements.notify(pair.guest.waker(2));
    assert_eq!(pair.take_ready(0), None);
    send(&numbers, &7u64).unwrap();
    // Only the last request counts, and only once.
    assert_eq!(pair.take_ready(soon()), Some(2));
    send(&numbers, &8u64).unwrap();
    assert_eq!(pair.take_ready(0), None);
    // There is an element already.
    elements.notify(pair.guest.waker(3));
    assert_eq!(pair.take_ready(0), Some(3));
    for number in [7, 8] {
        let element = elements.receive(0).unwrap().unwrap();
        assert_eq!(read::<u64>(&element, u64::HASH), number);
    }
    elements.notify(pair.guest.waker(4));
    assert_eq!(pair.take_ready(0), None);
    numbers.finish().unwrap();
    assert_eq!(pair.take_ready(soon()), Some(4));
    assert_eq!(elements.receive(0).unwrap(), None);
    drop(elements);
    close_handle(reader).unwrap();
}

#[test]
fn guest_calls_its_host_without_waiting() {
    let pair = Pair::open();
    let host = Port::open(16).unwrap();
    pair.instance.set_host_port(&host, 7).unwrap();
    pair.submit(ASK, &(5u64,), u64::MAX);
    let (call, _) = pair.take_call();
    let [params, ok, error, _] = layouts(CONFIRM.1);
    let args = written(&(5u64,), params);
    let begin = |token| guest_import_begin(call, 0, &args, pair.guest.waker(token)).unwrap();
    let reap = || {
        host.wait(soon()).unwrap();
        host.reap().unwrap().next().unwrap().handle
    };

    let (first, asked) = (begin(1), reap());
    let early = guest_import_answer(first).unwrap_err();
    assert_eq!(early.code, Code::WouldPark);
    assert_eq!(pair.take_ready(0), None);
    answer_host_call(asked, Code::Ok, &written(&10u64, ok)).unwrap();
    assert_eq!(pair.take_ready(soon()), Some(1));
    let (code, data) = guest_import_answer(first).unwrap();
    assert_eq!((code, read::<u64>(&data, ok)), (Code::Ok, 10));
    assert!(is_stale(guest_import_answer(first)));

    // An answer of the wrong type, and another outcome.
    let (second, asked) = (begin(2), reap());
    answer_host_call(asked, Code::Ok, &written("ten", error)).unwrap();
    assert_eq!(pair.take_ready(soon()), Some(2));
    let refused = guest_import_answer(second).unwrap_err();
    assert_eq!(refused.code, Code::GuestLost);
    let (third, asked) = (begin(3), reap());
    answer_host_call(asked, Code::Overloaded, b"later").unwrap();
    assert_eq!(pair.take_ready(soon()), Some(3));
    let refused = guest_import_answer(third).unwrap_err();
    assert_eq!(refused, Code::Overloaded.because("later"));

    // The guest does not wait any more.
    let (fourth, asked) = (begin(4), reap());
    close_handle(fourth).unwrap();
    let late = answer_host_call(asked, Code::Ok, &written(&10u64, ok));
    assert!(is_stale(late));
    assert!(is_stale(guest_import_answer(fourth)));
    assert_eq!(pair.take_ready(0), None);

    // It ends with the call of the guest.
    let (fifth, _asked) = (begin(5), reap());
    let Ok(Object::Call(cancelled)) = find(call) else {
        panic!("the call has not ended");
    };
    cancelled.cancel();
    assert_eq!(pair.take_ready(soon()), Some(5));
    let ended = guest_import_answer(fifth).unwrap_err();
    assert_eq!(ended.code, Code::Cancelled);
    let no_call = guest_import_begin(call, 0, &args, pair.guest.waker(6));
    assert!(is_stale(no_call));
}

#[test]
fn writer_is_notified_of_room_and_of_the_end() {
    let numbers = FunctionDescription {
        name: "numbers",
        types: "record{}\nstream<u64>\n\nu64",
        is_async: false,
        options: MethodOptions::NONE,
        stream: StreamOptions {
            capacity: 1,
            ..StreamOptions::DEFAULT
        },
    };
    let package = GuestPackage::of(&PackageDescription {
        name: "test:room",
        version: "0.1.0",
        methods: vec![numbers],
        imports: vec![],
        limits: QueueLimits::DEFAULT,
    });
    let guest = GuestPort::new().unwrap();
    let pair = Pair {
        instance: Instance::open_guest(
            package.unwrap(),
            guest.clone(),
            Instance::runtime().unwrap(),
        ),
        port: Port::open(16).unwrap(),
        guest,
    };
    let [params, ..] = layouts("record{}\nstream<u64>\n\nu64");
    let args = written(&(), params);
    pair.instance
        .submit(&pair.port, 0, 0, &args, u64::MAX)
        .unwrap();
    let (call, _) = pair.take_call();
    let handle = guest_answer_stream(call).unwrap();
    let writer = find_record_writer(handle).unwrap();
    let mut ended = pair.reap();
    let stream = ended.take(0).unwrap();
    let Ok(Object::Stream(reader)) = find(stream) else {
        panic!("it is no stream");
    };

    // There is room now.
    writer.notify(pair.guest.waker(1)).unwrap();
    assert_eq!(pair.take_ready(0), Some(1));
    let records = [7u64.to_le_bytes(); 4096].concat();
    let (count, full) = writer.write(&records, 0, 4096, false, 0);
    assert!(count < 4096 && full.is_err());
    writer.notify(pair.guest.waker(2)).unwrap();
    assert_eq!(pair.take_ready(0), None);
    let mut read = 0;
    while read < count {
        let batch = reader.try_acquire(u32::MAX).unwrap();
        read += batch.count;
        reader.release(batch.count).unwrap();
    }
    assert!(reader.try_acquire(u32::MAX).is_err());
    assert_eq!(pair.take_ready(soon()), Some(2));
    assert_eq!(writer.write(&records, 0, 1, false, 0), (1, Ok(())));

    // The reader leaves.
    let (_, full) = writer.write(&records, 0, 4096, false, 0);
    assert!(full.is_err());
    writer.notify(pair.guest.waker(3)).unwrap();
    assert_eq!(pair.take_ready(0), None);
    drop(reader);
    close_handle(stream).unwrap();
    assert_eq!(pair.take_ready(soon()), Some(3));
    assert_eq!(writer.write(&records, 0, 1, false, 0).0, 0);
    let _ = writer.finish();
    assert_eq!(
        writer.notify(pair.guest.waker(4)).unwrap_err().code,
        Code::Closed
    );
    close_handle(handle).unwrap();
}
