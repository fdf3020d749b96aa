//! Loom models of `AtomicWaker`.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::thread;
use thalweg_queue::AtomicWaker;
use thalweg_queue::explore::model;

use crate::counter;

/// Rule 2: a reader that armed and saw no data is woken.
#[test]
fn signal_while_arming_is_not_missed() {
    model(|| {
        let gate = Arc::new(AtomicWaker::new());
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
        assert!(seen || count.woken() == 1, "asleep for ever");
    });
}

/// Rule 5: the same, with a barrier on the reader's side only.
#[test]
fn light_signal_while_arming_is_not_missed() {
    model(|| thalweg_queue::barrier::model::use_both(light_writer_and_heavy_reader));
}

/// Rules 4 to 6 of `barrier`: the system refuses the reader's barrier.
#[test]
fn light_signal_with_refused_heavy_barrier_is_not_missed() {
    model(|| thalweg_queue::barrier::model::use_both_refused(light_writer_and_heavy_reader));
}

fn light_writer_and_heavy_reader() {
    let gate = Arc::new(AtomicWaker::new());
    let data = Arc::new(AtomicBool::new(false));
    let writer = {
        let (gate, data) = (Arc::clone(&gate), Arc::clone(&data));
        thread::spawn(move || {
            data.store(true, Ordering::Release);
            gate.signal_light();
        })
    };
    let (count, waker) = counter();
    gate.arm_heavy(waker);
    let seen = data.load(Ordering::Acquire);
    writer.join().unwrap();
    assert!(seen || count.woken() == 1, "asleep for ever");
}

/// Rule 3: two writers, one arming, one wake-up.
#[test]
fn waker_is_woken_once_per_arming() {
    model(|| {
        let gate = Arc::new(AtomicWaker::new());
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
        assert_eq!(count.woken(), 1);
    });
}

/// Rule 3: the reader disarms while the writer signals. Exactly one of them gets the waker.
#[test]
fn waker_is_disarmed_or_woken_never_both() {
    model(|| {
        let gate = Arc::new(AtomicWaker::new());
        let (count, waker) = counter();
        gate.arm(waker);
        let writer = {
            let gate = Arc::clone(&gate);
            thread::spawn(move || gate.signal())
        };
        let disarmed = gate.disarm();
        let fired = writer.join().unwrap();
        assert!(disarmed != fired);
        assert_eq!(count.woken(), usize::from(fired));
    });
}
