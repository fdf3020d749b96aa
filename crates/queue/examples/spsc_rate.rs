//! Prints the nanoseconds per message between two threads on an `spsc` channel. Other languages'
//! benchmarks run it as their peer.
//!
//! `spsc_rate MESSAGES CAPACITY`

use std::thread;
use std::time::Instant;

fn main() {
    let numbers: Vec<usize> = std::env::args()
        .skip(1)
        .map(|word| word.parse().expect("a number"))
        .collect();
    let [messages, capacity] = numbers[..] else {
        panic!("usage: spsc_rate MESSAGES CAPACITY");
    };
    let (sender, receiver) = thalweg_queue::spsc::channel(capacity).expect("a capacity");
    let (started, start) = thalweg_queue::oneshot::channel();
    let producer = thread::spawn(move || {
        started.send(()).expect("the consumer waits");
        for i in 1..=messages {
            sender.send(i).expect("the consumer takes all");
        }
    });
    start.recv().expect("the producer starts");
    let begin = Instant::now();
    for expected in 1..=messages {
        assert_eq!(receiver.recv(), Ok(expected));
    }
    let elapsed = begin.elapsed();
    producer.join().expect("the producer ends");
    println!("{}", elapsed.as_nanos() as f64 / messages as f64);
}
