//! The channels on one thread: the cost of a message without waiting and without cache-line
//! transfers.

use std::hint::black_box;

use thalweg_queue::{broadcast, mpmc, mpsc, oneshot, spsc};

/// Enough for a batch, and small enough for the first-level cache.
const CAPACITY: usize = 1_024;

/// Messages per batch.
const BATCH: u64 = 64;

/// Sends and receives a message.
pub fn spsc_pair(count: u64) {
    let (sender, receiver) = spsc::channel(CAPACITY).expect("there is memory");
    for message in 0..count {
        sender.try_send(black_box(message)).expect("there is room");
        black_box(receiver.try_recv().expect("it was sent"));
    }
}

/// The same with `rtrb`, the peer.
pub fn spsc_pair_rtrb(count: u64) {
    let (mut producer, mut consumer) = rtrb::RingBuffer::new(CAPACITY);
    for message in 0..count {
        producer.push(black_box(message)).expect("there is room");
        black_box(consumer.pop().expect("it was sent"));
    }
}

/// Writes 64 messages into the ring in place, and reads them in place.
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

/// Tries to receive from an empty channel.
pub fn spsc_empty(count: u64) {
    let (sender, receiver) = spsc::channel::<u64>(CAPACITY).expect("there is memory");
    for _ in 0..count {
        assert!(black_box(&receiver).try_recv().is_err());
    }
    drop(sender);
}

/// Sends and receives a message; after the first 63 it uses the sender's own lane.
pub fn mpsc_pair(count: u64) {
    let (sender, receiver) = mpsc::channel(CAPACITY).expect("there is memory");
    for message in 0..count {
        sender.try_send(black_box(message)).expect("there is room");
        black_box(receiver.try_recv().expect("it was sent"));
    }
}

/// Tries to receive when both the lanes and the shared ring are empty.
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

/// Sends and receives a message.
pub fn mpmc_pair(count: u64) {
    let (sender, receiver) = mpmc::channel(CAPACITY).expect("there is memory");
    for message in 0..count {
        sender.try_send(black_box(message)).expect("there is room");
        black_box(receiver.try_recv().expect("it was sent"));
    }
}

/// Tries to receive from an empty channel.
pub fn mpmc_empty(count: u64) {
    let (sender, receiver) = mpmc::channel::<u64>(CAPACITY).expect("there is memory");
    for _ in 0..count {
        assert!(black_box(&receiver).try_recv().is_err());
    }
    drop(sender);
}

/// Sends a message to one receiver, which receives it.
pub fn broadcast_pair(count: u64) {
    let (sender, receiver) = broadcast::channel(CAPACITY).expect("there is memory");
    for message in 0..count {
        sender.try_send(black_box(message)).expect("it is open");
        let received = receiver.try_recv().expect("it was sent");
        black_box(received.expect("the receiver does not lag"));
    }
}

/// The same with tokio's channel, the peer.
pub fn broadcast_pair_tokio(count: u64) {
    let (sender, mut receiver) = tokio::sync::broadcast::channel(CAPACITY);
    for message in 0..count {
        sender
            .send(black_box(message))
            .expect("there is a receiver");
        black_box(receiver.try_recv().expect("it was sent"));
    }
}

/// Creates, uses and drops a channel.
pub fn oneshot_pair(count: u64) {
    for message in 0..count {
        let (sender, receiver) = oneshot::channel();
        sender.send(black_box(message)).expect("it is awaited");
        black_box(receiver.recv().expect("it was sent"));
    }
}
