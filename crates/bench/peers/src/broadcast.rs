//! Channels whose receivers each get every message: `tokio`, and `disruptor` with several pollers.
//!
//! `tokio` waits in its blocking call and overwrites messages that a receiver has not read.
//! `disruptor` has no blocking call and waits for its slowest consumer; see [`crate::disruptor`].

use disruptor::{
    BusySpin, EventPoller, MultiConsumerBarrier, Producer, SingleConsumerBarrier, SingleProducer,
    SingleProducerBarrier, build_single_producer,
};
use tokio::sync::broadcast;

use crate::channel::Waiting;
use crate::channels::End;
use crate::patience;

/// A channel of `u64` with one sender and several receivers. Each receiver gets every message.
pub trait Broadcast: 'static {
    /// Its public name.
    const NAME: &'static str;
    /// How a receiver waits that finds no message.
    const WAITING: Waiting;
    /// The sending side.
    type Sender: Send + 'static;
    /// A receiving side.
    type Receiver: Send + 'static;

    /// A new channel that retains `capacity` messages, with at least one receiver.
    fn bounded(capacity: usize, receivers: usize) -> (Self::Sender, Vec<Self::Receiver>);

    /// Sends a message. The receivers have space for it.
    fn send(sender: &mut Self::Sender, message: u64);

    /// Receives `count` messages and passes each to `each`; waits while there is none.
    fn receive_each(receiver: &mut Self::Receiver, count: u64, each: impl FnMut(u64));
}

/// `tokio`: its `broadcast` through the blocking call, from threads outside of a runtime.
#[derive(Debug)]
pub struct TokioBroadcast;

impl Broadcast for TokioBroadcast {
    const NAME: &'static str = "tokio";
    const WAITING: Waiting = Waiting::Own;
    type Sender = broadcast::Sender<u64>;
    type Receiver = broadcast::Receiver<u64>;

    fn bounded(capacity: usize, receivers: usize) -> (Self::Sender, Vec<Self::Receiver>) {
        let (sender, receiver) = broadcast::channel(capacity);
        let more = (1..receivers)
            .map(|_| sender.subscribe())
            .collect::<Vec<_>>();
        (sender, more.into_iter().chain([receiver]).collect())
    }

    #[inline]
    fn send(sender: &mut Self::Sender, message: u64) {
        sender.send(message).expect("the receivers exist");
    }

    #[inline]
    fn receive_each(receiver: &mut Self::Receiver, count: u64, mut each: impl FnMut(u64)) {
        for _ in 0..count {
            each(receiver.blocking_recv().expect("no receiver lags"));
        }
    }
}

/// `disruptor` with one producer and one poller per receiver.
#[derive(Debug)]
pub struct DisruptorBroadcast;

/// The producer, for one consumer or for several.
#[expect(missing_debug_implementations, reason = "the producers have none")]
pub struct DisruptorSender(
    End<SingleProducer<u64, SingleConsumerBarrier>, SingleProducer<u64, MultiConsumerBarrier>>,
);

/// A consumer.
#[expect(missing_debug_implementations, reason = "the poller has none")]
pub struct DisruptorReceiver(EventPoller<u64, SingleProducerBarrier>);

impl Broadcast for DisruptorBroadcast {
    const NAME: &'static str = "disruptor";
    const WAITING: Waiting = Waiting::Looks;
    type Sender = DisruptorSender;
    type Receiver = DisruptorReceiver;

    fn bounded(capacity: usize, receivers: usize) -> (Self::Sender, Vec<Self::Receiver>) {
        let builder = build_single_producer(capacity, || 0, BusySpin);
        let (first, builder) = builder.new_event_poller();
        if receivers < 2 {
            let sender = DisruptorSender(End::Bounded(builder.build()));
            return (sender, vec![DisruptorReceiver(first)]);
        }
        let (second, mut builder) = builder.new_event_poller();
        let mut pollers = vec![DisruptorReceiver(first), DisruptorReceiver(second)];
        for _ in 2..receivers {
            let (next, with_next) = builder.new_event_poller();
            pollers.push(DisruptorReceiver(next));
            builder = with_next;
        }
        (DisruptorSender(End::Unbounded(builder.build())), pollers)
    }

    #[inline]
    fn send(DisruptorSender(sender): &mut Self::Sender, message: u64) {
        patience::until(|| {
            let sent = match sender {
                End::Bounded(one) => one.try_publish(|slot| *slot = message),
                End::Unbounded(many) => many.try_publish(|slot| *slot = message),
            };
            sent.ok()
        });
    }

    #[inline]
    fn receive_each(
        DisruptorReceiver(poller): &mut Self::Receiver,
        count: u64,
        mut each: impl FnMut(u64),
    ) {
        let mut left = count;
        while left > 0 {
            left -= patience::until(|| {
                let mut events = poller.take(left).ok()?;
                let mut there = 0;
                for message in &mut events {
                    each(*message);
                    there += 1;
                }
                Some(there)
            });
        }
    }
}
