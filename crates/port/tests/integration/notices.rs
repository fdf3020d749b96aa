//! Progress notices of long calls. They do not affect the call.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use thalweg_port::{
    Client, Code, Incoming, Instance, Kind, Method, MethodOptions, NoError, Package, Pending, Port,
    QueueLimits, Service, SubmitOptions, Submitter,
};
use thalweg_wire::{Decode, message};

const TOLD: u32 = 0;
const SILENT: u32 = 1;

const fn method(name: &'static str, notice_interval_ns: u64) -> Method {
    Method {
        name,
        params: <()>::HASH,
        ok: <()>::HASH,
        error: 0,
        element: 0,
        is_async: false,
        options: MethodOptions {
            notice_interval_ns,
            ..MethodOptions::NONE
        },
        stream: None,
        description: "",
    }
}

/// Answers no call until the flag is set.
struct Slow(Arc<AtomicBool>);

impl Service for Slow {
    const PACKAGE: &'static Package = &Package {
        name: "test:slow",
        version: "0.1.0",
        layout: 1,
        imports: &[],
        limits: QueueLimits::DEFAULT,
        methods: &[method("slow.told", 1_000_000), method("slow.silent", 0)],
    };

    fn dispatch(&mut self, incoming: Incoming) {
        while !self.0.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        incoming.reply(&());
    }
}

struct Host {
    instance: Arc<Instance>,
    port: Arc<Port>,
    open: Arc<AtomicBool>,
}

impl Drop for Host {
    fn drop(&mut self) {
        self.open();
        self.instance.close();
        self.port.close();
    }
}

impl Host {
    fn with_places(places: u32) -> Self {
        let open = Arc::new(AtomicBool::new(false));
        let its = Arc::clone(&open);
        Self {
            instance: Instance::open(move || Slow(Arc::clone(&its)), Instance::runtime().unwrap()),
            port: Port::open(places).unwrap(),
            open,
        }
    }

    fn open(&self) {
        self.open.store(true, Ordering::Release);
    }

    fn submit(&self, token: u64, method: u32) -> Result<u64, Code> {
        let args = message::encode(&(), <()>::HASH, Vec::new()).unwrap();
        let options = SubmitOptions {
            notices: true,
            ..SubmitOptions::default()
        };
        Submitter::new(&self.instance, &self.port)
            .submit(token, method, &args, u64::MAX, options)
            .map_err(|failure| failure.code)
    }

    /// The token and kind of the next completion, and the elapsed time if it is a notice.
    fn next(&self) -> (u64, Kind, Option<u64>) {
        loop {
            self.port.wait(u64::MAX).unwrap();
            if let Some(one) = self.port.reap().unwrap().next() {
                assert_eq!(one.code, Code::Ok);
                let elapsed = one.data.as_slice().try_into().ok().map(u64::from_le_bytes);
                return (one.token, one.kind, elapsed);
            }
        }
    }

    /// The kinds of all available completions.
    fn kinds(&self) -> Vec<Kind> {
        self.port.reap().unwrap().map(|one| one.kind).collect()
    }
}

#[test]
fn long_call_sends_notices_and_then_ends_once() {
    let host = Host::with_places(2);
    host.submit(7, TOLD).unwrap();
    let mut last = 0;
    for _ in 0..3 {
        let (token, kind, elapsed) = host.next();
        assert_eq!((token, kind), (7, Kind::StillRunning));
        let elapsed = elapsed.expect("a notice has 8 bytes");
        assert!(elapsed >= 1_000_000 && elapsed > last);
        last = elapsed;
    }
    host.open();
    loop {
        match host.next() {
            (7, Kind::StillRunning, _) => {}
            (token, kind, _) => {
                assert_eq!((token, kind), (7, Kind::CallEnded));
                break;
            }
        }
    }
    assert_eq!(host.kinds(), []);
    // Both slots are free again.
    host.submit(8, TOLD).unwrap();
}

#[test]
fn port_reaped_late_has_one_notice_per_call() {
    let host = Host::with_places(4);
    let call = host.submit(1, TOLD).unwrap();
    host.port.wait(u64::MAX).unwrap();
    // Many intervals pass, but no second notice is added.
    std::thread::sleep(Duration::from_millis(30));
    host.open();
    while thalweg_port::find(call).is_ok() {
        std::thread::yield_now();
    }
    // The call has ended. Its completion is put into the ring after the notice.
    let mut kinds = Vec::new();
    while kinds.last() != Some(&Kind::CallEnded) {
        host.port.wait(u64::MAX).unwrap();
        kinds.extend(host.kinds());
    }
    assert_eq!(kinds, [Kind::StillRunning, Kind::CallEnded]);
}

#[test]
fn notice_unreaped_at_the_end_keeps_its_slot_until_reaped() {
    let host = Host::with_places(2);
    let call = host.submit(1, TOLD).unwrap();
    host.port.wait(u64::MAX).unwrap();
    match thalweg_port::find(call).unwrap() {
        thalweg_port::Object::Call(call) => call.cancel(),
        other => panic!("{other:?}"),
    }
    assert_eq!(host.submit(2, TOLD), Err(Code::Overloaded));
    let codes: Vec<_> = host
        .port
        .reap()
        .unwrap()
        .map(|one| (one.kind, one.code))
        .collect();
    let wanted = [
        (Kind::StillRunning, Code::Ok),
        (Kind::CallEnded, Code::Cancelled),
    ];
    assert_eq!(codes, wanted);
    host.submit(2, TOLD).unwrap();
}

#[test]
fn call_with_notices_uses_two_slots() {
    let host = Host::with_places(3);
    host.submit(1, TOLD).unwrap();
    assert_eq!(host.submit(2, TOLD), Err(Code::Overloaded));
    let args = message::encode(&(), <()>::HASH, Vec::new()).unwrap();
    // The slot that was reserved first was released.
    host.instance
        .submit(&host.port, 3, TOLD, &args, u64::MAX)
        .unwrap();
}

#[test]
fn method_without_an_interval_refuses_notices() {
    let host = Host::with_places(2);
    assert_eq!(host.submit(1, SILENT), Err(Code::Argument));
    host.submit(1, TOLD).unwrap();
}

#[test]
fn port_close_ends_calls_with_notices() {
    let host = Host::with_places(8);
    for token in 0..4 {
        host.submit(token, TOLD).unwrap();
    }
    host.port.wait(u64::MAX).unwrap();
    host.port.close();
    host.open();
}

fn start(open: &Arc<AtomicBool>) -> (Client, Pending<(), NoError>) {
    let its = Arc::clone(open);
    let client = Client::start(move || Slow(Arc::clone(&its))).unwrap();
    let call = client.call(TOLD, &(), |reply| reply.value::<()>());
    (client, call)
}

#[test]
fn waiting_caller_receives_notices() {
    let open = Arc::new(AtomicBool::new(false));
    let (_client, call) = start(&open);
    let mut told = 0;
    let its = Arc::clone(&open);
    let call = call.on_notice(move |elapsed| {
        told += 1;
        assert!(elapsed >= Duration::from_millis(1));
        its.store(told >= 3, Ordering::Release);
    });
    call.wait().unwrap();
}

/// Wakes a polling thread.
#[derive(Default)]
struct Poller(Mutex<bool>, Condvar);

impl Wake for Poller {
    fn wake(self: Arc<Self>) {
        *self.0.lock().unwrap() = true;
        self.1.notify_one();
    }
}

#[test]
fn awaiting_caller_receives_notices() {
    let open = Arc::new(AtomicBool::new(false));
    let (_client, call) = start(&open);
    let told = Arc::new(AtomicU32::new(0));
    let (its, counted) = (Arc::clone(&open), Arc::clone(&told));
    let mut call = call.on_notice(move |_| {
        its.store(
            counted.fetch_add(1, Ordering::Relaxed) >= 2,
            Ordering::Release,
        );
    });
    let poller = Arc::new(Poller::default());
    let waker = Waker::from(Arc::clone(&poller));
    loop {
        match std::pin::Pin::new(&mut call).poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(ended) => break ended.unwrap(),
            Poll::Pending => {
                let mut woken = poller.0.lock().unwrap();
                while !std::mem::take(&mut *woken) {
                    woken = poller.1.wait(woken).unwrap();
                }
            }
        }
    }
    assert!(told.load(Ordering::Relaxed) >= 3);
}
