//! The channels with blocking calls of their own: `crossbeam`, `kanal`, `flume`, `async-channel` for
//! any number of senders and receivers, `std` and `tokio` for any number of senders.

use std::sync::mpsc;

use tokio::sync::mpsc as tokio_mpsc;

use crate::channel::{Channel, ManyReceivers, ManySenders, Waiting};

/// The message of a call that cannot fail: no channel is closed while it is measured.
const OPEN: &str = "both sides live as long as the measurement";

macro_rules! shared {
    ($subject:ident, $library:ident, $name:literal, $send:ident, $receive:ident,
     |$try_sender:ident, $message:ident| $try_send:expr,
     |$try_receiver:ident| $try_receive:expr) => {
        #[doc = concat!("`", $name, "`.")]
        #[derive(Debug)]
        pub struct $subject;

        impl Channel for $subject {
            const NAME: &'static str = $name;
            const WAITING: Waiting = Waiting::Own;
            type Sender = $library::Sender<u64>;
            type Receiver = $library::Receiver<u64>;

            fn bounded(capacity: usize) -> (Self::Sender, Self::Receiver) {
                $library::bounded(capacity)
            }

            #[inline]
            fn send(sender: &mut Self::Sender, message: u64) {
                sender.$send(message).expect(OPEN);
            }

            #[inline]
            fn receive(receiver: &mut Self::Receiver) -> u64 {
                receiver.$receive().expect(OPEN)
            }

            #[inline]
            fn try_send($try_sender: &mut Self::Sender, $message: u64) -> bool {
                $try_send
            }

            #[inline]
            fn try_receive($try_receiver: &mut Self::Receiver) -> Option<u64> {
                $try_receive
            }
        }

        impl ManySenders for $subject {
            fn unbounded() -> Option<(Self::Sender, Self::Receiver)> {
                Some($library::unbounded())
            }
        }

        impl ManyReceivers for $subject {}
    };
}

shared!(
    Crossbeam,
    crossbeam_channel,
    "crossbeam",
    send,
    recv,
    |sender, message| sender.try_send(message).is_ok(),
    |receiver| receiver.try_recv().ok()
);

// A try returns whether there was space or a message; an error means that the channel is closed.
shared!(
    Kanal,
    kanal,
    "kanal",
    send,
    recv,
    |sender, message| sender.try_send(message) == Ok(true),
    |receiver| receiver.try_recv().ok().flatten()
);

shared!(
    Flume,
    flume,
    "flume",
    send,
    recv,
    |sender, message| sender.try_send(message).is_ok(),
    |receiver| receiver.try_recv().ok()
);

shared!(
    AsyncChannel,
    async_channel,
    "async-channel",
    send_blocking,
    recv_blocking,
    |sender, message| sender.try_send(message).is_ok(),
    |receiver| receiver.try_recv().ok()
);

/// One side of a channel that has two types, such as one with a bound and one without. A side never changes its
/// type, so the branch is predicted.
#[derive(Clone, Debug)]
pub enum End<B, U> {
    /// Of a channel with a bound.
    Bounded(B),
    /// Of a channel without.
    Unbounded(U),
}

/// `std`: `sync_channel` and `channel`.
#[derive(Debug)]
pub struct Std;

impl Channel for Std {
    const NAME: &'static str = "std";
    const WAITING: Waiting = Waiting::Own;
    type Sender = End<mpsc::SyncSender<u64>, mpsc::Sender<u64>>;
    type Receiver = mpsc::Receiver<u64>;

    fn bounded(capacity: usize) -> (Self::Sender, Self::Receiver) {
        let (sender, receiver) = mpsc::sync_channel(capacity);
        (End::Bounded(sender), receiver)
    }

    #[inline]
    fn send(sender: &mut Self::Sender, message: u64) {
        match sender {
            End::Bounded(sender) => sender.send(message),
            End::Unbounded(sender) => sender.send(message),
        }
        .expect(OPEN);
    }

    #[inline]
    fn receive(receiver: &mut Self::Receiver) -> u64 {
        receiver.recv().expect(OPEN)
    }

    #[inline]
    fn try_send(sender: &mut Self::Sender, message: u64) -> bool {
        match sender {
            End::Bounded(sender) => sender.try_send(message).is_ok(),
            End::Unbounded(sender) => sender.send(message).is_ok(),
        }
    }

    #[inline]
    fn try_receive(receiver: &mut Self::Receiver) -> Option<u64> {
        receiver.try_recv().ok()
    }
}

impl ManySenders for Std {
    fn unbounded() -> Option<(Self::Sender, Self::Receiver)> {
        let (sender, receiver) = mpsc::channel();
        Some((End::Unbounded(sender), receiver))
    }
}

/// `tokio`: its `mpsc` through the blocking calls, from threads outside of a runtime.
#[derive(Debug)]
pub struct Tokio;

/// The receiving side of tokio's `mpsc`.
pub type TokioReceiver = End<tokio_mpsc::Receiver<u64>, tokio_mpsc::UnboundedReceiver<u64>>;

impl TokioReceiver {
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
    type Sender = End<tokio_mpsc::Sender<u64>, tokio_mpsc::UnboundedSender<u64>>;
    type Receiver = TokioReceiver;

    fn bounded(capacity: usize) -> (Self::Sender, Self::Receiver) {
        let (sender, receiver) = tokio_mpsc::channel(capacity);
        (End::Bounded(sender), End::Bounded(receiver))
    }

    #[inline]
    fn send(sender: &mut Self::Sender, message: u64) {
        match sender {
            End::Bounded(sender) => sender.blocking_send(message),
            End::Unbounded(sender) => sender.send(message),
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
            End::Bounded(sender) => sender.try_send(message).is_ok(),
            End::Unbounded(sender) => sender.send(message).is_ok(),
        }
    }

    #[inline]
    fn try_receive(receiver: &mut Self::Receiver) -> Option<u64> {
        match receiver {
            End::Bounded(receiver) => receiver.try_recv().ok(),
            End::Unbounded(receiver) => receiver.try_recv().ok(),
        }
    }
}

impl ManySenders for Tokio {
    fn unbounded() -> Option<(Self::Sender, Self::Receiver)> {
        let (sender, receiver) = tokio_mpsc::unbounded_channel();
        Some((End::Unbounded(sender), End::Unbounded(receiver)))
    }
}
