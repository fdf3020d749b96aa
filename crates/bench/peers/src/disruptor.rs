//! `disruptor`: one ring of preallocated events, for one producer and for many, read by an event poller.
//!
//! Its capacity is a power of two. It has no blocking call, and its own busy loops have neither a
//! spin hint nor a yield. Both sides therefore retry like every peer without blocking calls.

use disruptor::{
    BusySpin, EventPoller, MultiProducer, MultiProducerBarrier, Producer, SingleConsumerBarrier,
    SingleProducer, SingleProducerBarrier, build_multi_producer, build_single_producer,
};

use crate::channel::{Channel, ManySenders, Waiting};
use crate::patience;

/// `disruptor` with one producer.
#[derive(Debug)]
pub struct Disruptor;

/// `disruptor` with a producer that can be cloned.
#[derive(Debug)]
pub struct DisruptorMany;

/// A producer, and the largest number of messages that it publishes at once.
pub struct Sender<P> {
    producer: P,
    longest_batch: usize,
}

impl<P: Clone> Clone for Sender<P> {
    fn clone(&self) -> Self {
        Self {
            producer: self.producer.clone(),
            longest_batch: self.longest_batch,
        }
    }
}

impl<P> std::fmt::Debug for Sender<P> {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("Sender")
    }
}

/// The consumer.
pub struct Receiver<B> {
    poller: EventPoller<u64, B>,
}

impl<B> std::fmt::Debug for Receiver<B> {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("Receiver")
    }
}

macro_rules! disruptor {
    ($subject:ident, $build:ident, $producer:ident, $barrier:ident) => {
        impl Channel for $subject {
            const NAME: &'static str = "disruptor";
            const WAITING: Waiting = Waiting::Looks;
            type Sender = Sender<$producer<u64, SingleConsumerBarrier>>;
            type Receiver = Receiver<$barrier>;

            fn bounded(capacity: usize) -> (Self::Sender, Self::Receiver) {
                let (poller, builder) = $build(capacity, || 0, BusySpin).new_event_poller();
                let sender = Sender {
                    producer: builder.build(),
                    longest_batch: (capacity / 2).max(1),
                };
                (sender, Receiver { poller })
            }

            #[inline]
            fn send(sender: &mut Self::Sender, message: u64) {
                patience::until(|| Self::try_send(sender, message).then_some(()));
            }

            #[inline]
            fn receive(receiver: &mut Self::Receiver) -> u64 {
                patience::until(|| Self::try_receive(receiver))
            }

            #[inline]
            fn try_send(sender: &mut Self::Sender, message: u64) -> bool {
                sender.producer.try_publish(|slot| *slot = message).is_ok()
            }

            #[inline]
            fn try_receive(receiver: &mut Self::Receiver) -> Option<u64> {
                let mut events = receiver.poller.take(1).ok()?;
                (&mut events).next().copied()
            }

            #[inline]
            fn send_batch(sender: &mut Self::Sender, first: u64, count: usize) {
                let end = first + count as u64;
                let mut next = first;
                while next < end {
                    let length = sender.longest_batch.min((end - next) as usize);
                    patience::until(|| {
                        sender
                            .producer
                            .try_batch_publish(length, |slots| {
                                for (slot, message) in slots.zip(next..) {
                                    *slot = message;
                                }
                            })
                            .ok()
                    });
                    next += length as u64;
                }
            }

            #[inline]
            fn receive_batch(
                receiver: &mut Self::Receiver,
                count: usize,
                mut each: impl FnMut(u64),
            ) {
                let mut left = count;
                while left > 0 {
                    left -= patience::until(|| {
                        let mut events = receiver.poller.take(left as u64).ok()?;
                        let mut taken = 0;
                        for event in &mut events {
                            each(*event);
                            taken += 1;
                        }
                        Some(taken)
                    });
                }
            }
        }
    };
}

disruptor!(
    Disruptor,
    build_single_producer,
    SingleProducer,
    SingleProducerBarrier
);
disruptor!(
    DisruptorMany,
    build_multi_producer,
    MultiProducer,
    MultiProducerBarrier
);

impl ManySenders for DisruptorMany {}
