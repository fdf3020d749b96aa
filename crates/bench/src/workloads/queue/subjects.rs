//! Thalweg's channels behind the peers' trait, and the table of subjects.
//!
//! A workload writes its side once for any type that implements the trait. The tables of
//! [`super::sides`] select the type by name, so each side is compiled for its subject separately.

use thalweg::queue::{self, Options, broadcast, mpmc, mpsc, rendezvous, spsc};
use thalweg_peers::broadcast::Broadcast;
use thalweg_peers::channel::{Batches, Channel, ManyReceivers, ManySenders, Partial, Waiting};

use crate::problem::Problem;

/// The name of our subjects in every row.
pub const THALWEG: &str = "thalweg";

/// The message of a call that cannot fail.
const OPEN: &str = "both sides live as long as the measurement";
/// The message for capacities: every subject of a cell accepts the cell's capacity.
const SANE: &str = "a capacity that every subject takes";

/// `spsc`: one sender, one receiver, with the default wait strategy.
#[derive(Debug)]
pub struct Spsc;

/// `spsc` that sleeps at once instead of spinning.
#[derive(Debug)]
pub struct SpscParking;

/// `mpsc`: one lane per sender.
#[derive(Debug)]
pub struct Mpsc;

/// `mpmc`.
#[derive(Debug)]
pub struct Mpmc;

/// `rendezvous`. It ignores the capacity.
#[derive(Debug)]
pub struct Rendezvous;

/// `broadcast`.
#[derive(Debug)]
pub struct Broadcasting;

macro_rules! ours {
    ($subject:ident, $flavour:ident, |$capacity:ident| $new:expr) => {
        impl Channel for $subject {
            const NAME: &'static str = THALWEG;
            const WAITING: Waiting = Waiting::Own;
            type Sender = $flavour::Sender<u64>;
            type Receiver = $flavour::Receiver<u64>;

            fn bounded($capacity: usize) -> (Self::Sender, Self::Receiver) {
                $new.expect(SANE)
            }

            #[inline]
            fn send(sender: &mut Self::Sender, message: u64) {
                sender.send(message).expect(OPEN);
            }

            #[inline]
            fn receive(receiver: &mut Self::Receiver) -> u64 {
                receiver.recv().expect(OPEN)
            }

            #[inline]
            fn try_send(sender: &mut Self::Sender, message: u64) -> bool {
                sender.try_send(message).is_ok()
            }

            #[inline]
            fn try_receive(receiver: &mut Self::Receiver) -> Option<u64> {
                receiver.try_recv().ok()
            }

            fn wakes(receiver: &Self::Receiver) -> Option<u64> {
                Some(receiver.stats().receiver_wakes)
            }
        }
    };
}

fn parking() -> Options {
    Options::new().wait_strategy(queue::WaitStrategy::Park)
}

ours!(Spsc, spsc, |capacity| spsc::channel(capacity));
ours!(SpscParking, spsc, |capacity| spsc::with(
    capacity,
    parking()
));
ours!(Mpsc, mpsc, |capacity| mpsc::channel(capacity));
ours!(Mpmc, mpmc, |capacity| mpmc::channel(capacity));
ours!(Rendezvous, rendezvous, |_capacity| {
    Ok::<_, Problem>(rendezvous::channel())
});

impl Broadcast for Broadcasting {
    const NAME: &'static str = THALWEG;
    const WAITING: Waiting = Waiting::Own;
    type Sender = broadcast::Sender<u64>;
    type Receiver = broadcast::Receiver<u64>;

    fn bounded(capacity: usize, receivers: usize) -> (Self::Sender, Vec<Self::Receiver>) {
        let (sender, receiver) = broadcast::channel(capacity).expect(SANE);
        (sender, vec![receiver; receivers])
    }

    #[inline]
    fn send(sender: &mut Self::Sender, message: u64) {
        sender.send(message).expect(OPEN);
    }

    #[inline]
    fn receive_each(receiver: &mut Self::Receiver, count: u64, mut each: impl FnMut(u64)) {
        for _ in 0..count {
            each(receiver.recv().expect(OPEN).expect("no receiver lags"));
        }
    }
}

impl Batches for Spsc {
    /// In place. The channel has no call that writes all or nothing, so [`Partial::No`] asks for its
    /// length first.
    #[inline]
    fn send_batch(sender: &mut Self::Sender, first: u64, count: usize, rule: Partial) -> usize {
        if rule == Partial::No && sender.capacity() - sender.len() < count {
            return 0;
        }
        let mut messages = first..first + count as u64;
        sender.try_fill(count, || messages.next()).expect(OPEN)
    }

    #[inline]
    fn receive_batch(
        receiver: &mut Self::Receiver,
        count: usize,
        rule: Partial,
        mut each: impl FnMut(u64),
    ) -> usize {
        if rule == Partial::No && receiver.len() < count {
            return 0;
        }
        receiver.try_drain(count, |message| each(*message))
    }
}

impl ManySenders for Mpsc {
    fn unbounded() -> Option<(Self::Sender, Self::Receiver)> {
        Some(mpsc::unbounded())
    }
}

impl ManySenders for Mpmc {}
impl ManyReceivers for Mpmc {}

/// Reports that no subject of the workload has this name.
///
/// # Errors
/// Always.
pub fn unknown<T>(name: &str) -> Result<T, Problem> {
    Err(Problem::Usage(format!("`{name}` is no subject here")))
}
