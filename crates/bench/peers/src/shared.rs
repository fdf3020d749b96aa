//! The channels for any number of senders and receivers: `crossbeam`, `kanal`, `flume`, `async-channel`.

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
