//! The channels, on one thread: what a message costs where nobody waits and no cache line travels.

use std::hint::black_box;

use thalweg_queue::{mpmc, mpsc, oneshot, spsc};

/// Room for a batch, and small enough for the nearest cache.
const CAPACITY: usize = 1_024;

/// Messages of a batch.
const BATCH: u64 = 64;

/// A message is sent and received.
pub fn spsc_pair(count: u64) {
    let (sender, receiver) = spsc::channel(CAPACITY).expect("there is memory");
    for message in 0..count {
        sender.try_send(black_box(message)).expect("there is room");
        black_box(receiver.try_recv().expect("it was sent"));
    }
}

/// The same through `rtrb`, the peer.
pub fn spsc_pair_rtrb(count: u64) {
    let (mut producer, mut consumer) = rtrb::RingBuffer::new(CAPACITY);
    for message in 0..count {
        producer.push(black_box(message)).expect("there is room");
        black_box(consumer.pop().expect("it was sent"));
    }
}

/// 64 messages are written into the ring in place, and looked at in place.
pub fn spsc_batch_64(count: u64) {
    let (mut sender, mut receiver) = spsc::channel(CAPACITY).expect("there is memory");
    for first in 0..count {
        let mut messages = (black_box(first)..).take(BATCH as usize);
        let filled = sender.try_fill(BATCH as usize, || messages.next());
        let drained = receiver.try_drain(BATCH as usize, |message| {
            black_box(*message);
        });
        assert_eq!((filled, drained), (Ok(BATCH as usize), BATCH as usize));
    }
}

/// Nothing is there to receive.
pub fn spsc_empty(count: u64) {
    let (sender, receiver) = spsc::channel::<u64>(CAPACITY).expect("there is memory");
    for _ in 0..count {
        assert!(black_box(&receiver).try_recv().is_err());
    }
    drop(sender);
}

/// A message is sent and received, by the sender's own lane after the first 63.
pub fn mpsc_pair(count: u64) {
    let (sender, receiver) = mpsc::channel(CAPACITY).expect("there is memory");
    for message in 0..count {
        sender.try_send(black_box(message)).expect("there is room");
        black_box(receiver.try_recv().expect("it was sent"));
    }
}

/// Nothing is there to receive, in the lanes or beside them.
pub fn mpsc_empty(count: u64) {
    let (sender, receiver) = mpsc::channel(CAPACITY).expect("there is memory");
    for message in 0..64u64 {
        sender.try_send(message).expect("there is room");
        receiver.try_recv().expect("it was sent");
    }
    for _ in 0..count {
        assert!(black_box(&receiver).try_recv().is_err());
    }
    drop(sender);
}

/// A message is sent and received.
pub fn mpmc_pair(count: u64) {
    let (sender, receiver) = mpmc::channel(CAPACITY).expect("there is memory");
    for message in 0..count {
        sender.try_send(black_box(message)).expect("there is room");
        black_box(receiver.try_recv().expect("it was sent"));
    }
}

/// Nothing is there to receive.
pub fn mpmc_empty(count: u64) {
    let (sender, receiver) = mpmc::channel::<u64>(CAPACITY).expect("there is memory");
    for _ in 0..count {
        assert!(black_box(&receiver).try_recv().is_err());
    }
    drop(sender);
}

/// A channel is made, used and gone.
pub fn oneshot_pair(count: u64) {
    for message in 0..count {
        let (sender, receiver) = oneshot::channel();
        sender.send(black_box(message)).expect("it is awaited");
        black_box(receiver.recv().expect("it was sent"));
    }
}
