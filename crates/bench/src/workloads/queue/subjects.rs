//! Thalweg's channels behind the peers' trait, and a lookup of subjects by name.
//!
//! A workload writes its side once for any type that implements the trait. The macros here select
//! the type by name, so each side is compiled for its subject separately.

use thalweg::queue::{self, Options, mpmc, mpsc, spsc};
use thalweg_peers::channel::{Channel, ManyReceivers, ManySenders, Waiting};

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

macro_rules! ours {
    ($subject:ident, $flavour:ident, |$capacity:ident| $new:expr, batches: {$($batches:item)*}) => {
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

            $($batches)*
        }
    };
}

fn parking() -> Options {
    Options::new().wait_strategy(queue::WaitStrategy::Park)
}

ours!(Spsc, spsc, |capacity| spsc::channel(capacity), batches: {
    /// In place; the blocking call only if there is no space.
    #[inline]
    fn send_batch(sender: &mut Self::Sender, first: u64, count: usize) {
        let mut messages = first..first + count as u64;
        while !messages.is_empty() {
            let left = messages.end - messages.start;
            let sent = sender.try_fill(left as usize, || messages.next());
            if sent.expect(OPEN) == 0 {
                sender.send(messages.start).expect(OPEN);
                messages.start += 1;
            }
        }
    }

    /// In place; the blocking call only if there is no message.
    #[inline]
    fn receive_batch(receiver: &mut Self::Receiver, count: usize, mut each: impl FnMut(u64)) {
        let mut left = count;
        while left > 0 {
            let received = receiver.try_drain(left, |message| each(*message));
            left -= received;
            if received == 0 {
                each(receiver.recv().expect(OPEN));
                left -= 1;
            }
        }
    }
});
ours!(SpscParking, spsc, |capacity| spsc::with(capacity, parking()), batches: {});
ours!(Mpsc, mpsc, |capacity| mpsc::channel(capacity), batches: {});
ours!(Mpmc, mpmc, |capacity| mpmc::channel(capacity), batches: {});

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

/// Calls `$side::<Subject>($arguments)` for the single-sender, single-receiver subject with this
/// name.
macro_rules! one_to_one {
    ($name:expr, $side:ident($($argument:expr),*)) => {
        match $name {
            "thalweg" => $side::<$crate::workloads::queue::subjects::Spsc>($($argument),*),
            "rtrb" => $side::<thalweg_peers::ring::Rtrb>($($argument),*),
            "rtrb_0_3" => $side::<thalweg_peers::ring::Rtrb03>($($argument),*),
            "crossbeam" => $side::<thalweg_peers::shared::Crossbeam>($($argument),*),
            "kanal" => $side::<thalweg_peers::shared::Kanal>($($argument),*),
            "flume" => $side::<thalweg_peers::shared::Flume>($($argument),*),
            "async-channel" => $side::<thalweg_peers::shared::AsyncChannel>($($argument),*),
            "std" => $side::<thalweg_peers::std_mpsc::Std>($($argument),*),
            "tokio" => $side::<thalweg_peers::tokio_mpsc::Tokio>($($argument),*),
            "disruptor" => $side::<thalweg_peers::disruptor::Disruptor>($($argument),*),
            "c11_ring" => $side::<thalweg_peers::c11_ring::C11Ring>($($argument),*),
            other => $crate::workloads::queue::subjects::unknown(other),
        }
    };
}

/// The same for many senders and one receiver.
macro_rules! many_to_one {
    ($name:expr, $side:ident($($argument:expr),*)) => {
        match $name {
            "thalweg" => $side::<$crate::workloads::queue::subjects::Mpsc>($($argument),*),
            "crossbeam" => $side::<thalweg_peers::shared::Crossbeam>($($argument),*),
            "kanal" => $side::<thalweg_peers::shared::Kanal>($($argument),*),
            "flume" => $side::<thalweg_peers::shared::Flume>($($argument),*),
            "async-channel" => $side::<thalweg_peers::shared::AsyncChannel>($($argument),*),
            "std" => $side::<thalweg_peers::std_mpsc::Std>($($argument),*),
            "tokio" => $side::<thalweg_peers::tokio_mpsc::Tokio>($($argument),*),
            "disruptor" => $side::<thalweg_peers::disruptor::DisruptorMany>($($argument),*),
            "vyukov" => $side::<thalweg_peers::vyukov::Vyukov>($($argument),*),
            other => $crate::workloads::queue::subjects::unknown(other),
        }
    };
}

/// The same for many senders and many receivers.
macro_rules! many_to_many {
    ($name:expr, $side:ident($($argument:expr),*)) => {
        match $name {
            "thalweg" => $side::<$crate::workloads::queue::subjects::Mpmc>($($argument),*),
            "crossbeam" => $side::<thalweg_peers::shared::Crossbeam>($($argument),*),
            "kanal" => $side::<thalweg_peers::shared::Kanal>($($argument),*),
            "flume" => $side::<thalweg_peers::shared::Flume>($($argument),*),
            "async-channel" => $side::<thalweg_peers::shared::AsyncChannel>($($argument),*),
            "vyukov" => $side::<thalweg_peers::vyukov::Vyukov>($($argument),*),
            other => $crate::workloads::queue::subjects::unknown(other),
        }
    };
}

pub(crate) use {many_to_many, many_to_one, one_to_one};
