//! `disruptor`: one ring of preallocated events, for one producer and for many, read by an event poller.
//!
//! Its capacity is a power of two. It has no blocking call, and its own busy loops have neither a
//! spin hint nor a yield. Both sides therefore retry like every peer without blocking calls. Its
//! documentation recommends to poll and to process all events that are there, so that is its loop
//! for one message after the other; their slots are released together.

use disruptor::{
    BusySpin, EventPoller, MissingFreeSlots, MultiProducer, MultiProducerBarrier, Producer,
    SingleConsumerBarrier, SingleProducer, SingleProducerBarrier, build_multi_producer,
    build_single_producer,
};

use crate::channel::{Batches, Channel, ManySenders, Partial, Waiting};
use crate::patience;

/// `disruptor` with one producer.
#[derive(Debug)]
pub struct Disruptor;

/// `disruptor` with a producer that can be cloned.
#[derive(Debug)]
pub struct DisruptorMany;

/// The producer.
#[derive(Clone)]
pub struct Sender<P> {
    producer: P,
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
                let producer = builder.build();
                (Sender { producer }, Receiver { poller })
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
            fn receive_each(receiver: &mut Self::Receiver, count: u64, mut each: impl FnMut(u64)) {
                let mut left = count;
                while left > 0 {
                    left -= patience::until(|| {
                        let mut events = receiver.poller.take(left).ok()?;
                        let there = (&mut events).len();
                        (&mut events).for_each(|message| each(*message));
                        Some(there as u64)
                    });
                }
            }
        }

        impl Batches for $subject {
            /// The poller takes all available messages; it cannot wait for a whole batch.
            const WHOLE: bool = false;

            #[inline]
            fn send_batch(
                sender: &mut Self::Sender,
                first: u64,
                count: usize,
                rule: Partial,
            ) -> usize {
                let mut publish = |count: usize| {
                    sender.producer.try_batch_publish(count, |slots| {
                        for (slot, message) in slots.zip(first..) {
                            *slot = message;
                        }
                    })
                };
                match publish(count) {
                    Ok(_) => count,
                    Err(MissingFreeSlots(missing)) => {
                        let free = count.saturating_sub(missing as usize);
                        let sent = rule == Partial::Yes && free > 0 && publish(free).is_ok();
                        if sent { free } else { 0 }
                    }
                }
            }

            #[inline]
            fn receive_batch(
                receiver: &mut Self::Receiver,
                count: usize,
                _rule: Partial,
                mut each: impl FnMut(u64),
            ) -> usize {
                let Ok(mut events) = receiver.poller.take(count as u64) else {
                    return 0;
                };
                let there = (&mut events).len();
                (&mut events).for_each(|message| each(*message));
                there
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
