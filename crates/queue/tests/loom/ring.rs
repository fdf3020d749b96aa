//! Loom models of the stamped ring.

use loom::sync::Arc;
use loom::thread;
use thalweg_queue::Ring;
use thalweg_queue::explore::model;

/// Two writers, one reader, two slots: no value is lost or duplicated.
#[test]
fn ring_hands_over_each_value_once() {
    model(|| {
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

/// A full ring and a concurrent pop: the push fails or finds the slot free, and the value survives.
#[test]
fn ring_wraps_during_a_pop() {
    model(|| {
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
