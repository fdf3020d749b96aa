//! Kills an actor at every point where an actor can wait. It ends there, its destructors run,
//! nothing hangs, and the object that it waited for continues to work without it.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use thalweg_queue::{Select, mpmc, mpsc, oneshot, spsc};
use thalweg_runtime::cancel::Token;
use thalweg_runtime::patterns::{Pipeline, PipelineBuilder, Pool, PoolBuilder};
use thalweg_runtime::supervisor::Shutdown;
use thalweg_runtime::sync::{Mutex, Notify};
use thalweg_runtime::{
    Actor, ActorRef, Builder, Config, Context, Handler, JoinError, Mailbox, block_on,
    block_on_timeout, channel, init, interval, io, net, select, sleep, sleep_async, spawn, start,
    yield_now,
};

use crate::kit::LONG;

struct Slow;
struct Nap;

impl Actor for Slow {}

impl Handler<Nap> for Slow {
    type Reply = ();
    fn handle(&mut self, _: Nap, _: &Context<'_, Self>) {
        sleep(LONG);
    }
}

/// Returns an actor whose mailbox, of capacity 1, is full.
fn full() -> ActorRef<Slow> {
    let slow = Builder::new()
        .mailbox(Mailbox {
            capacity: 1,
            ..Mailbox::default()
        })
        .start(Slow);
    slow.cast(Nap).expect("it lives");
    slow
}

type Wait = fn();

/// Each entry waits forever.
const WAITS: &[(&str, Wait)] = &[
    ("sleep", || sleep(LONG)),
    ("yield", || {
        loop {
            yield_now();
        }
    }),
    ("channel", || {
        let (_tx, rx) = channel::<u8>();
        let _ = rx.recv();
    }),
    ("channel shared", || {
        let (_tx, rx) = channel::<u8>();
        let _other = rx.clone();
        let _ = rx.recv();
    }),
    ("spsc recv", || {
        let (_tx, rx) = spsc::channel::<u8>(4).unwrap();
        let _ = rx.recv();
    }),
    ("spsc recv_timeout", || {
        let (_tx, rx) = spsc::channel::<u8>(4).unwrap();
        let _ = rx.recv_timeout(LONG);
    }),
    ("spsc recv_batch", || {
        let (_tx, rx) = spsc::channel::<u8>(4).unwrap();
        let _ = rx.recv_batch(&mut Vec::new(), 4);
    }),
    ("spsc send", || {
        let (tx, _rx) = spsc::channel(2).unwrap();
        while tx.send(0).is_ok() {}
    }),
    ("spsc send_timeout", || {
        let (tx, _rx) = spsc::channel(2).unwrap();
        while tx.send_timeout(0, LONG).is_ok() {}
    }),
    ("spsc send_batch", || {
        let (tx, _rx) = spsc::channel(2).unwrap();
        let _ = tx.send_batch(&mut vec![0; 100]);
    }),
    ("mpsc recv", || {
        let (_tx, rx) = mpsc::channel::<u8>(4).unwrap();
        let _ = rx.recv();
    }),
    ("mpsc send", || {
        let (tx, _rx) = mpsc::channel(2).unwrap();
        while tx.send(0).is_ok() {}
    }),
    ("mpmc recv", || {
        let (_tx, rx) = mpmc::channel::<u8>(4).unwrap();
        let _ = rx.recv();
    }),
    ("mpmc send", || {
        let (tx, _rx) = mpmc::channel(2).unwrap();
        while tx.send(0).is_ok() {}
    }),
    ("oneshot", || {
        let (_tx, rx) = oneshot::channel::<u8>();
        let _ = rx.recv();
    }),
    ("select", || {
        let (_tx, one) = mpsc::channel::<u8>(4).unwrap();
        let (_tx2, other) = mpmc::channel::<u8>(4).unwrap();
        let mut select = Select::new();
        select.recv(&one);
        select.recv(&other);
        select.ready();
    }),
    ("select_timeout", || {
        let (_tx, one) = mpsc::channel::<u8>(4).unwrap();
        let mut select = Select::new();
        select.recv(&one);
        select.ready_timeout(LONG);
    }),
    ("join", || {
        let _ = spawn(|| sleep(LONG)).join();
    }),
    ("join_timeout", || {
        let _ = spawn(|| sleep(LONG)).join_timeout(LONG);
    }),
    ("monitor", || {
        spawn(|| sleep(LONG)).pid().monitor().wait();
    }),
    ("call", || {
        let _ = start(Slow).call_timeout(Nap, LONG);
    }),
    ("cast to a full mailbox", || {
        let slow = full();
        while slow.cast(Nap).is_ok() {}
    }),
    ("call of a full mailbox", || {
        let slow = full();
        while slow.call_timeout(Nap, LONG).is_ok() {}
    }),
    ("block_on", || block_on(std::future::pending())),
    ("block_on_timeout", || {
        let _ = block_on_timeout(LONG, std::future::pending::<()>());
    }),
    ("interval", || {
        let mut ticks = interval(LONG);
        loop {
            ticks.tick();
        }
    }),
    ("accept", || {
        let listener = net::TcpListener::bind("127.0.0.1:0").unwrap();
        let _ = listener.accept();
    }),
    ("read", || {
        let listener = net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut stream = net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let _ = stream.read(&mut [0; 8]);
    }),
    ("udp", || {
        let socket = net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let _ = socket.recv_from(&mut [0; 8]);
    }),
    ("trap_exits", || {
        // A kill cannot be trapped.
        let exits = thalweg_runtime::trap_exits();
        let _ = exits.recv();
    }),
    ("select", || {
        let (_tx, mut rx) = channel::<u8>();
        let (_other, mut shared) = channel::<u8>();
        let _one = shared.clone();
        let socket = net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let (mutex, notify, token) = (Mutex::new(()), Notify::new(), Token::new());
        let _lock = mutex.lock();
        let slow = full();
        select! {
            _ = rx.recv_async() => {}
            _ = shared.recv_async() => {}
            _ = socket.readable_async() => {}
            _ = mutex.lock_async() => {}
            () = notify.notified() => {}
            _ = token.cancelled_async() => {}
            _ = slow.call_async(Nap) => {}
            () = sleep_async(LONG) => {}
        }
    }),
    ("select default", || {
        loop {
            select! { () = sleep_async(LONG) => break, default => {} }
            // Preemption points are rare, so the actor ends in this yield.
            yield_now();
        }
    }),
    ("pool call", || {
        let pool = slow_pool();
        let _ = pool.call_timeout((), LONG);
    }),
    ("pool cast", || {
        let pool = slow_pool();
        while pool.cast(()).is_ok() {}
    }),
    ("pool drain", || {
        let pool = slow_pool();
        pool.cast(()).expect("there is room");
        pool.drain(LONG);
    }),
    ("pipeline send", || {
        let pipeline = slow_pipeline();
        while pipeline.send(()).is_ok() {}
    }),
    ("pipeline recv", || {
        let _ = slow_pipeline().recv();
    }),
];

fn slow_pool() -> Pool<()> {
    let pool = PoolBuilder::new("slow").workers(1).capacity(1);
    let pool = pool.shutdown(Shutdown::BrutalKill);
    pool.start(|| |()| sleep(LONG)).expect("it starts")
}

fn slow_pipeline() -> Pipeline<(), ()> {
    let pipeline = PipelineBuilder::new().stage("slow", 1, 1, |()| sleep(LONG));
    pipeline.start().expect("it starts")
}

struct Dropped(Arc<AtomicBool>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn is_killed_in(name: &str, wait: Wait, rounds: u32) {
    let dropped = Arc::new(AtomicBool::new(false));
    let held = Dropped(Arc::clone(&dropped));
    let victim = spawn(move || {
        let _held = held;
        wait();
        // A wait that returns an error must not continue past this point.
        "it came back"
    });
    for _ in 0..rounds {
        yield_now();
    }
    if rounds > 3 {
        sleep(Duration::from_millis(1));
    }
    victim.pid().kill().expect("it waits for ever");
    let ended = victim.join();
    assert!(
        matches!(&ended, Err(JoinError::Exit(reason)) if reason.kind() == "killed"),
        "{name} after {rounds}: {ended:?}"
    );
    assert!(dropped.load(Ordering::SeqCst), "{name} after {rounds}");
}

#[test]
fn kill_ends_every_wait() {
    for workers in [1, 2] {
        init(Config::with_workers(workers)).unwrap().run(|| {
            for (name, wait) in WAITS {
                for rounds in 0..6 {
                    is_killed_in(name, *wait, rounds);
                }
            }
        });
    }
}

#[test]
fn wait_in_a_destructor_of_a_killed_actor_fails() {
    struct Waits(Option<thalweg_runtime::Sender<bool>>);
    impl Drop for Waits {
        fn drop(&mut self) {
            let (_tx, rx) = mpsc::channel::<u8>(1).unwrap();
            let ended = rx.recv().is_err();
            let told = self.0.take().expect("once").send(ended);
            assert!(told.is_ok() || std::thread::panicking());
        }
    }
    init(Config::with_workers(1)).unwrap().run(|| {
        let (tx, ended) = channel();
        let victim = spawn(move || {
            let _waits = Waits(Some(tx));
            sleep(LONG);
        });
        yield_now();
        victim.pid().kill().expect("it sleeps");
        assert_eq!(ended.recv(), Ok(true));
        assert!(victim.join().is_err());
    });
}

#[test]
fn wake_up_of_a_killed_receiver_goes_to_another() {
    for workers in [1, 2] {
        init(Config::with_workers(workers)).unwrap().run(|| {
            for _ in 0..200 {
                let (tx, rx) = mpmc::channel::<u32>(4).unwrap();
                let taken: Vec<_> = (0..2)
                    .map(|_| {
                        let rx = rx.clone();
                        spawn(move || rx.recv())
                    })
                    .collect();
                drop(rx);
                yield_now();
                tx.send(1).expect("two receive");
                // The message is not lost, whether or not the killed actor was about to receive it.
                let _ = taken[0].pid().kill();
                tx.send(2).expect("one receives");
                let mut all = Vec::new();
                for one in taken {
                    all.extend(one.join().ok().and_then(Result::ok));
                }
                assert!(!all.is_empty(), "both hung or lost theirs");
            }
        });
    }
}

#[test]
fn blocking_work_continues_after_its_caller_is_killed() {
    init(Config::with_workers(1)).unwrap().run(|| {
        let (done, all) = std::sync::mpsc::channel();
        let (open, gate) = std::sync::mpsc::channel();
        let (begun, beginning) = channel();
        let victim = spawn(move || {
            io::blocking(move || {
                begun.send(()).expect("the test receives");
                gate.recv().expect("the test sends");
                done.send(()).expect("the test receives");
            });
        });
        beginning.recv().expect("the work begins");
        victim.pid().kill().expect("the caller waits");
        assert!(victim.join().is_err());
        open.send(()).expect("the work goes on");
        assert!(all.recv().is_ok());
    });
}
