//! Calls of a client that are submitted together.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use thalweg_port::{
    CallError, Client, Code, Incoming, Method, MethodOptions, NoError, Package, Pending,
    QueueLimits, Service,
};
use thalweg_wire::Decode;

/// Answers each call with its number and records the number. The first call waits until the test
/// opens it.
struct Notes {
    open: Arc<AtomicBool>,
    begun: mpsc::Sender<()>,
    seen: Arc<Mutex<Vec<u64>>>,
}

type Params = (u64, Vec<u8>);

impl Service for Notes {
    const PACKAGE: &'static Package = &Package {
        name: "test:notes",
        version: "0.1.0",
        layout: 1,
        imports: &[],
        limits: QueueLimits {
            max_queued_calls: 200,
            max_queued_bytes: 4096,
            blocks_on_overflow: false,
        },
        methods: &[Method {
            name: "notes.take",
            params: Params::HASH,
            ok: u64::HASH,
            error: 0,
            element: 0,
            is_async: false,
            options: MethodOptions::NONE,
            stream: None,
            description: "",
        }],
    };

    fn dispatch(&mut self, incoming: Incoming) {
        let (number, _) = incoming.params::<Params>().unwrap();
        let _ = self.begun.send(());
        while !self.open.load(Ordering::Acquire) {
            thread::yield_now();
        }
        self.seen.lock().unwrap().push(number);
        incoming.reply(&number);
    }
}

struct Host {
    client: Client,
    open: Arc<AtomicBool>,
    begins: mpsc::Receiver<()>,
    seen: Arc<Mutex<Vec<u64>>>,
}

impl Host {
    fn new(is_open: bool) -> Self {
        let open = Arc::new(AtomicBool::new(is_open));
        let (begun, begins) = mpsc::channel();
        let seen = Arc::default();
        let (its, list) = (Arc::clone(&open), Arc::clone(&seen));
        let make = move || Notes {
            open: Arc::clone(&its),
            begun: begun.clone(),
            seen: Arc::clone(&list),
        };
        Self {
            client: Client::start(make).unwrap(),
            open,
            begins,
            seen,
        }
    }
}

fn take(client: &Client, number: u64, size: usize) -> Pending<u64, NoError> {
    client.call(0, &(number, vec![7u8; size]), |reply| reply.value())
}

fn ended(call: Pending<u64, NoError>) -> Result<u64, Code> {
    call.wait().map_err(|error| match error {
        CallError::Ended(why) => why.code,
        CallError::Service(never) => match never {},
    })
}

#[test]
fn call_refused_in_a_batch_does_not_affect_the_others_or_their_order() {
    let host = Host::new(false);
    let first = take(&host.client, 0, 1);
    host.begins.recv().unwrap();
    let calls = host.client.batch(|client| {
        let sizes = [1, 3000, 3000, 1, 900, 900, 1];
        let numbered = (1..).zip(sizes);
        numbered
            .map(|(number, size)| take(client, number, size))
            .collect::<Vec<_>>()
    });
    host.open.store(true, Ordering::Release);
    let ends: Vec<_> = calls.into_iter().map(ended).collect();
    let no = Err(Code::Overloaded);
    assert_eq!(ends, [Ok(1), Ok(2), no, Ok(4), Ok(5), no, Ok(7)]);
    assert_eq!(ended(first), Ok(0));
    assert_eq!(*host.seen.lock().unwrap(), [0, 1, 2, 4, 5, 7]);
}

#[test]
fn wait_inside_a_batch_submits_the_calls_before_it() {
    let host = Host::new(true);
    let (first, last) = host.client.batch(|client| {
        let first = take(client, 1, 1);
        assert_eq!(ended(take(client, 2, 1)), Ok(2));
        assert_eq!(thalweg_runtime::block_on(take(client, 3, 1)), Ok(3));
        (first, take(client, 4, 1))
    });
    assert_eq!((ended(first), ended(last)), (Ok(1), Ok(4)));
    assert_eq!(*host.seen.lock().unwrap(), [1, 2, 3, 4]);
}

#[test]
fn call_dropped_inside_a_batch_is_never_served() {
    let host = Host::new(true);
    let last = host.client.batch(|client| {
        drop(take(client, 1, 3000));
        take(client, 2, 3000)
    });
    assert_eq!(ended(last), Ok(2));
    assert_eq!(*host.seen.lock().unwrap(), [2]);
}

#[test]
fn client_that_outlives_its_batch_submits_at_once() {
    let host = Host::new(true);
    let kept = host.client.batch(Client::clone);
    assert_eq!(ended(take(&kept, 1, 1)), Ok(1));
}

#[test]
fn batch_that_panics_drops_the_calls_that_were_made() {
    let host = Host::new(true);
    let (made, makes) = mpsc::channel();
    let client = host.client.clone();
    let ends = thread::spawn(move || {
        client.batch(|client| {
            made.send(take(client, 1, 1)).unwrap();
            panic!("in the middle");
        })
    });
    assert!(ends.join().is_err());
    assert_eq!(ended(makes.recv().unwrap()), Ok(1));
}
