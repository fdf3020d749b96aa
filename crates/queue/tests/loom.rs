//! Tiny models of each protocol, explored by loom:
//! `RUSTFLAGS="--cfg loom" LOOM_MAX_PREEMPTIONS=2 cargo test --release -p thalweg-queue --test loom`.
#![cfg(loom)]

use std::sync::atomic::Ordering::Relaxed;
use std::task::{Wake, Waker};

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::thread;
use thalweg_queue::{Gate, Inbox, Ring};

/// Two writers, one reader, two slots: nothing lost, nothing doubled.
#[test]
fn ring_hands_over_each_value_once() {
    loom::model(|| {
        let ring = Arc::new(Ring::new(2).unwrap());
        let writers: Vec<_> = (1..=2usize)
            .map(|value| {
                let ring = Arc::clone(&ring);
                thread::spawn(move || ring.push(value).is_ok())
            })
            .collect();
        let mut sum = ring.pop().unwrap_or(0);
        let mut pushed = 0;
        for (i, writer) in writers.into_iter().enumerate() {
            if writer.join().unwrap() {
                pushed += i + 1;
            }
        }
        while let Some(value) = ring.pop() {
            sum += value;
        }
        assert_eq!(sum, pushed);
        assert_eq!(pushed, 3, "two slots hold two values");
    });
}

/// A full ring and a reader at once: the writer is refused or finds the slot free, and the value survives.
#[test]
fn ring_wraps_under_a_reader() {
    loom::model(|| {
        let ring = Arc::new(Ring::new(2).unwrap());
        ring.push(1usize).unwrap();
        ring.push(2).unwrap();
        let reader = {
            let ring = Arc::clone(&ring);
            thread::spawn(move || ring.pop())
        };
        let third = ring.push(3);
        let first = reader.join().unwrap();
        assert_eq!(first, Some(1));
        assert_eq!(ring.pop(), Some(2));
        assert_eq!(ring.pop(), third.ok().map(|()| 3));
    });
}

/// Two writers and a reader that takes all twice: each value comes once.
#[test]
fn inbox_is_taken_whole_and_once() {
    loom::model(|| {
        let inbox = Arc::new(Inbox::new());
        let writers: Vec<_> = (1..=2usize)
            .map(|value| {
                let inbox = Arc::clone(&inbox);
                thread::spawn(move || inbox.push(value))
            })
            .collect();
        let mut sum: usize = inbox.take_all().sum();
        for writer in writers {
            writer.join().unwrap();
        }
        sum += inbox.take_all().sum::<usize>();
        assert_eq!(sum, 3);
    });
}

struct Count(std::sync::atomic::AtomicUsize);

impl Wake for Count {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

fn counter() -> (std::sync::Arc<Count>, Waker) {
    let count = std::sync::Arc::new(Count(0.into()));
    (count.clone(), Waker::from(count))
}

/// Rule 2: the reader that armed and saw no data is woken.
#[test]
fn gate_never_misses_what_is_published_while_arming() {
    loom::model(|| {
        let gate = Arc::new(Gate::new());
        let data = Arc::new(AtomicBool::new(false));
        let writer = {
            let (gate, data) = (Arc::clone(&gate), Arc::clone(&data));
            thread::spawn(move || {
                data.store(true, Ordering::Release);
                gate.signal();
            })
        };
        let (count, waker) = counter();
        gate.arm(waker);
        let seen = data.load(Ordering::Acquire);
        writer.join().unwrap();
        assert!(seen || count.0.load(Relaxed) == 1, "asleep for ever");
    });
}

/// Rule 3: two writers, one arming, one wake-up.
#[test]
fn gate_wakes_once_an_arming() {
    loom::model(|| {
        let gate = Arc::new(Gate::new());
        let (count, waker) = counter();
        gate.arm(waker);
        let woke = Arc::new(AtomicUsize::new(0));
        let writers: Vec<_> = (0..2)
            .map(|_| {
                let (gate, woke) = (Arc::clone(&gate), Arc::clone(&woke));
                thread::spawn(move || {
                    if gate.signal() {
                        woke.fetch_add(1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.join().unwrap();
        }
        assert_eq!(woke.load(Ordering::Relaxed), 1);
        assert_eq!(count.0.load(Relaxed), 1);
    });
}

/// Rule 3: the reader that takes its waker back, and the writer that fires it: one of them has it.
#[test]
fn gate_disarms_or_fires_never_both() {
    loom::model(|| {
        let gate = Arc::new(Gate::new());
        let (count, waker) = counter();
        gate.arm(waker);
        let writer = {
            let gate = Arc::clone(&gate);
            thread::spawn(move || gate.signal())
        };
        let disarmed = gate.disarm();
        let fired = writer.join().unwrap();
        assert!(disarmed != fired);
        assert_eq!(count.0.load(Relaxed), usize::from(fired));
    });
}
