//! `tokio`: its `mpsc` through the blocking calls, from threads outside of a runtime.

use tokio::sync::mpsc;

use crate::channel::{Channel, ManySenders, Waiting};

/// The message of a call that cannot fail.
const OPEN: &str = "both sides live as long as the measurement";

/// `tokio`.
#[derive(Debug)]
pub struct Tokio;

/// tokio has two types of senders.
#[derive(Clone, Debug)]
pub enum Sender {
    /// The sender of a `channel`.
    Bounded(mpsc::Sender<u64>),
    /// The sender of an `unbounded_channel`.
    Unbounded(mpsc::UnboundedSender<u64>),
}

/// tokio has two types of receivers.
#[derive(Debug)]
pub enum Receiver {
    /// The receiver of a `channel`.
    Bounded(mpsc::Receiver<u64>),
    /// The receiver of an `unbounded_channel`.
    Unbounded(mpsc::UnboundedReceiver<u64>),
}

impl Receiver {
    /// Waits for the next message; `None` if the channel is closed and drained.
    #[inline]
    pub fn message(&mut self) -> Option<u64> {
        match self {
            Self::Bounded(receiver) => receiver.blocking_recv(),
            Self::Unbounded(receiver) => receiver.blocking_recv(),
        }
    }
}

impl Channel for Tokio {
    const NAME: &'static str = "tokio";
    const WAITING: Waiting = Waiting::Own;
    type Sender = Sender;
    type Receiver = Receiver;

    fn bounded(capacity: usize) -> (Self::Sender, Self::Receiver) {
        let (sender, receiver) = mpsc::channel(capacity);
        (Sender::Bounded(sender), Receiver::Bounded(receiver))
    }

    #[inline]
    fn send(sender: &mut Self::Sender, message: u64) {
        match sender {
            Sender::Bounded(sender) => sender.blocking_send(message),
            Sender::Unbounded(sender) => sender.send(message),
        }
        .expect(OPEN);
    }

    #[inline]
    fn receive(receiver: &mut Self::Receiver) -> u64 {
        receiver.message().expect(OPEN)
    }

    #[inline]
    fn try_send(sender: &mut Self::Sender, message: u64) -> bool {
        match sender {
            Sender::Bounded(sender) => sender.try_send(message).is_ok(),
            Sender::Unbounded(sender) => sender.send(message).is_ok(),
        }
    }

    #[inline]
    fn try_receive(receiver: &mut Self::Receiver) -> Option<u64> {
        match receiver {
            Receiver::Bounded(receiver) => receiver.try_recv().ok(),
            Receiver::Unbounded(receiver) => receiver.try_recv().ok(),
        }
    }
}

impl ManySenders for Tokio {
    fn unbounded() -> Option<(Self::Sender, Self::Receiver)> {
        let (sender, receiver) = mpsc::unbounded_channel();
        Some((Sender::Unbounded(sender), Receiver::Unbounded(receiver)))
    }
}
