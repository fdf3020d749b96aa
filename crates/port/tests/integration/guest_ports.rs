//! Guests whose threads take their calls from a port.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use thalweg_port::{
    Code, Completion, FunctionDescription, GuestAnswers, GuestEvent, GuestObject, GuestPackage,
    GuestPort, Instance, MethodOptions, PackageDescription, Port, QueueLimits, StreamOptions,
    close_handle, find, guest_answer, guest_answer_resource,
};
use thalweg_queue::clock;
use thalweg_wire::{Encode, Shape, message};

const ECHO: u32 = 0;
const NEW_BOX: u32 = 1;

const TYPES: [(&str, &str); 2] = [
    ("ports.echo", "record{number:u64}\nu64\n\n"),
    ("ports.[constructor]box", "record{}\nown<box>\n\n"),
];

fn layouts(method: u32) -> [u64; 4] {
    Shape::hash_lines(TYPES[method as usize].1)
}

fn written<T: Encode + ?Sized>(value: &T, layout: u64) -> Vec<u8> {
    message::encode(value, layout, Vec::new()).unwrap()
}

/// A guest's port, and a client of it.
struct Pair {
    guest: Arc<GuestPort>,
    instance: Arc<Instance>,
    port: Arc<Port>,
}

impl Pair {
    fn open() -> Self {
        let function = |(name, types)| FunctionDescription {
            name,
            types,
            is_async: false,
            options: MethodOptions::NONE,
            stream: StreamOptions::DEFAULT,
        };
        let package = GuestPackage::of(&PackageDescription {
            name: "test:ports",
            version: "0.1.0",
            methods: TYPES.map(function).to_vec(),
            imports: vec![],
            limits: QueueLimits::DEFAULT,
        });
        let guest = GuestPort::new().unwrap();
        let runtime = Instance::runtime().unwrap();
        Self {
            instance: Instance::open_guest(package.unwrap(), guest.clone(), runtime),
            port: Port::open(1024).unwrap(),
            guest,
        }
    }

    fn submit(&self, number: u64, deadline: u64) -> u64 {
        let args = written(&(number,), layouts(ECHO)[0]);
        self.instance
            .submit(&self.port, number, ECHO, &args, deadline)
            .unwrap()
    }

    fn reap(&self) -> Completion {
        self.port.wait(soon()).unwrap();
        self.port.reap().unwrap().next().unwrap()
    }

    fn take_now(&self, most: usize) -> Vec<GuestEvent> {
        let mut events = Vec::new();
        let count = self.guest.take(most, 0, |event| events.push(event));
        assert_eq!(count.unwrap(), events.len());
        events
    }
}

fn soon() -> u64 {
    clock::deadline(Duration::from_secs(60))
}

/// Answers the calls among the events. Returns their number.
fn answer(events: Vec<GuestEvent>) -> usize {
    let calls = events.into_iter().filter_map(|event| match event {
        GuestEvent::Call { call, args, .. } => Some((call, args)),
        _ => None,
    });
    let [params, ok, ..] = layouts(ECHO);
    let answer = |(call, args): (u64, Vec<u8>)| {
        let (number,): (u64,) = message::open(&args, params).unwrap().owned().unwrap();
        guest_answer(call, Code::Ok, &written(&number, ok)).unwrap();
    };
    calls.map(answer).count()
}

fn is_readable(fd: i32) -> bool {
    let mut polled = libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: there is one pollfd.
    let ready = unsafe { libc::poll(&raw mut polled, 1, 0) };
    assert!(ready >= 0, "{}", io::Error::last_os_error());
    ready == 1
}

#[test]
fn events_of_a_state_come_in_order() {
    let pair = Pair::open();
    for number in 0..100 {
        pair.submit(number, u64::MAX);
    }
    let mut events = Vec::new();
    loop {
        let taken = pair.take_now(7);
        assert!(taken.len() <= 7);
        match taken.is_empty() {
            true => break,
            false => events.extend(taken),
        }
    }
    let GuestEvent::Open { state: opened } = events.remove(0) else {
        panic!("the state is opened first");
    };
    let params = layouts(ECHO)[0];
    for (number, event) in events.iter().enumerate() {
        let GuestEvent::Call { state, args, .. } = event else {
            panic!("{event:?}");
        };
        let (sent,): (usize,) = {
            let (sent,): (u64,) = message::open(args, params).unwrap().owned().unwrap();
            (sent as usize,)
        };
        assert_eq!((*state, sent), (opened, number));
    }
    assert_eq!(answer(events), 100);
    for _ in 0..100 {
        assert_eq!(pair.reap().code, Code::Ok);
    }
    pair.instance.close();
    assert_eq!(pair.take_now(8), [GuestEvent::Close { state: opened }]);
}

#[test]
fn calls_that_nobody_takes_end_at_their_deadline() {
    let pair = Pair::open();
    pair.submit(1, clock::deadline(Duration::from_millis(5)));
    assert_eq!(pair.reap().code, Code::TimedOut);
    assert!(pair.take_now(8).is_empty(), "the guest never sees the call");
}

#[test]
fn guest_learns_that_a_call_has_ended() {
    let pair = Pair::open();
    pair.submit(1, clock::deadline(Duration::from_millis(20)));
    let events = pair.take_now(8);
    let GuestEvent::Call { state, call, .. } = events[1] else {
        panic!("{events:?}");
    };
    assert_eq!(pair.reap().code, Code::TimedOut);
    let mut later = Vec::new();
    pair.guest
        .take(8, soon(), |event| later.push(event))
        .unwrap();
    assert_eq!(later, [GuestEvent::Cancel { state, call }]);
    let message = written(&1u64, layouts(ECHO)[1]);
    let late = guest_answer(call, Code::Ok, &message);
    assert_eq!(late.unwrap_err().code, Code::Stale);
}

#[test]
fn resources_are_dropped_by_events() {
    let pair = Pair::open();
    let object = GuestObject {
        kind: 3,
        number: 77,
    };
    let args = written(&(), layouts(NEW_BOX)[0]);
    let instance = &pair.instance;
    instance
        .submit(&pair.port, 0, NEW_BOX, &args, u64::MAX)
        .unwrap();
    let events = pair.take_now(8);
    let GuestEvent::Call { state, call, .. } = events[1] else {
        panic!("{events:?}");
    };
    guest_answer_resource(call, object).unwrap();
    let handle = pair.reap().take(0).unwrap();
    assert!(pair.take_now(8).is_empty());
    close_handle(handle).unwrap();
    assert_eq!(pair.take_now(8), [GuestEvent::Drop { state, object }]);
}

#[test]
fn descriptor_is_readable_when_a_thread_has_found_nothing() {
    let pair = Pair::open();
    let fd = pair.guest.descriptor();
    for round in 0..3 {
        assert!(pair.take_now(8).is_empty());
        assert!(!is_readable(fd));
        pair.submit(round, u64::MAX);
        assert!(is_readable(fd));
        assert_eq!(answer(pair.take_now(8)), 1);
        assert!(!is_readable(fd));
        pair.reap();
    }
    pair.guest.end();
    assert!(is_readable(fd));
}

#[test]
fn many_threads_take_the_calls_of_many_clients() {
    const CALLS: u64 = if cfg!(miri) { 20 } else { 5000 };
    let pair = Arc::new(Pair::open());
    let taking: Vec<_> = (0..3)
        .map(|_| {
            let guest = Arc::clone(&pair.guest);
            thread::spawn(move || {
                let mut answered = 0;
                loop {
                    let mut events = Vec::new();
                    let taken = guest.take(5, u64::MAX, |event| events.push(event));
                    answered += answer(events);
                    match taken {
                        Ok(_) => {}
                        Err(why) => {
                            assert_eq!(why.code, Code::Closed);
                            return answered;
                        }
                    }
                }
            })
        })
        .collect();
    let calling: Vec<_> = (0..2)
        .map(|_| {
            let pair = Arc::clone(&pair);
            thread::spawn(move || {
                let port = Port::open(64).unwrap();
                let params = layouts(ECHO)[0];
                for number in 0..CALLS {
                    let args = written(&(number,), params);
                    pair.instance
                        .submit(&port, number, ECHO, &args, u64::MAX)
                        .unwrap();
                    port.wait(soon()).unwrap();
                    let completion = port.reap().unwrap().next().unwrap();
                    assert_eq!((completion.token, completion.code), (number, Code::Ok));
                }
            })
        })
        .collect();
    for thread in calling {
        thread.join().unwrap();
    }
    pair.guest.end();
    let answered: usize = taking
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .sum();
    assert_eq!(answered as u64, 2 * CALLS);
}

#[test]
fn ended_port_has_no_further_events() {
    let pair = Pair::open();
    pair.submit(1, u64::MAX);
    let handle = pair.guest.insert().unwrap();
    assert!(find(handle).is_ok());
    close_handle(handle).unwrap();
    // Those from before are still there.
    assert_eq!(answer(pair.take_now(8)), 1);
    let ended = pair.guest.take(8, u64::MAX, |event| panic!("{event:?}"));
    assert_eq!(ended.unwrap_err().code, Code::Closed);
    assert_eq!(GuestPort::find(handle).unwrap_err().code, Code::Stale);
    assert_eq!(pair.reap().code, Code::Ok);
}

#[test]
fn thread_waits_until_its_deadline() {
    let pair = Pair::open();
    let deadline = clock::deadline(Duration::from_millis(10));
    let taken = pair.guest.take(8, deadline, |event| panic!("{event:?}"));
    assert_eq!(taken.unwrap(), 0);
    assert!(clock::now() >= deadline);
}

#[test]
fn several_answers_wake_each_port() {
    let pair = Pair::open();
    let other = Port::open(16).unwrap();
    let [params, ok, ..] = layouts(ECHO);
    for number in 0..4u64 {
        let port = if number < 2 { &pair.port } else { &other };
        let args = written(&(number,), params);
        pair.instance
            .submit(port, number, ECHO, &args, u64::MAX)
            .unwrap();
    }
    let calls: Vec<_> = pair
        .take_now(64)
        .into_iter()
        .filter_map(|event| match event {
            GuestEvent::Call { call, .. } => Some(call),
            _ => None,
        })
        .collect();
    assert_eq!(calls.len(), 4);
    let waiting: Vec<_> = [Arc::clone(&pair.port), other]
        .into_iter()
        .map(|port| {
            thread::spawn(move || {
                let mut codes = Vec::new();
                while codes.len() < 2 {
                    port.wait(soon()).unwrap();
                    codes.extend(port.reap().unwrap().map(|ended| ended.code));
                }
                codes
            })
        })
        .collect();
    let mut answers = GuestAnswers::default();
    let mut add = |call, message: &[u8]| answers.add(call, Code::Ok, message);
    add(calls[0], &written(&0u64, ok)).unwrap();
    // A wrong answer ends its call, and a second one is late.
    assert_eq!(add(calls[1], &[]).unwrap_err().code, Code::GuestLost);
    let late = add(calls[0], &written(&1u64, ok)).unwrap_err();
    assert_eq!(late.code, Code::Stale);
    add(calls[2], &written(&2u64, ok)).unwrap();
    add(calls[3], &written(&3u64, ok)).unwrap();
    drop(answers);
    let ended = waiting.into_iter().map(|thread| thread.join().unwrap());
    let ended: Vec<_> = ended.collect();
    assert_eq!(ended, [[Code::Ok, Code::GuestLost], [Code::Ok, Code::Ok]]);
}
