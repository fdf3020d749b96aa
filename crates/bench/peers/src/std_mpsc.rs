//! `std`: the standard library's `mpsc`, bounded (`sync_channel`) and unbounded.

use std::sync::mpsc;

use crate::channel::{Channel, ManySenders, Waiting};

/// The message of a call that cannot fail.
const OPEN: &str = "both sides live as long as the measurement";

/// `std`.
#[derive(Debug)]
pub struct Std;

/// `std` has two types of senders. A sender never changes its type, so the branch is predicted.
#[derive(Clone, Debug)]
pub enum Sender {
    /// The sender of a `sync_channel`.
    Bounded(mpsc::SyncSender<u64>),
    /// The sender of a `channel`.
    Unbounded(mpsc::Sender<u64>),
}

impl Channel for Std {
    const NAME: &'static str = "std";
    const WAITING: Waiting = Waiting::Own;
    type Sender = Sender;
    type Receiver = mpsc::Receiver<u64>;

    fn bounded(capacity: usize) -> (Self::Sender, Self::Receiver) {
        let (sender, receiver) = mpsc::sync_channel(capacity);
        (Sender::Bounded(sender), receiver)
    }

    #[inline]
    fn send(sender: &mut Self::Sender, message: u64) {
        match sender {
            Sender::Bounded(sender) => sender.send(message),
            Sender::Unbounded(sender) => sender.send(message),
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
            Sender::Bounded(sender) => sender.try_send(message).is_ok(),
            Sender::Unbounded(sender) => sender.send(message).is_ok(),
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
        Some((Sender::Unbounded(sender), receiver))
    }
}
