//! Ours, behind the peers' trait, and every subject by its name.
//!
//! A workload writes its side once for any type with the trait; the macros here choose the type by name, so that each side
//! is compiled for its subject alone.

use thalweg::queue::{self, Options, mpmc, mpsc, spsc};
use thalweg_peers::channel::{Channel, ManyReceivers, ManySenders, Waiting};

use crate::problem::Problem;

/// Our own subjects' name in every row.
pub const THALWEG: &str = "thalweg";

/// What a call says that cannot fail.
const OPEN: &str = "both sides live as long as the measurement";
/// A cell's capacity is one that all of its subjects take.
const SANE: &str = "a capacity that every subject takes";

/// `spsc`: one sender, one receiver, waiting as it does by default.
#[derive(Debug)]
pub struct Spsc;

/// `spsc` that sleeps at once where it has to wait.
#[derive(Debug)]
pub struct SpscParking;

/// `mpsc`: a lane a sender.
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
    Options::new().waiting(queue::Waiting::Park)
}

ours!(Spsc, spsc, |capacity| spsc::channel(capacity), batches: {
    /// In place, and the blocking call where there is no room.
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

    /// In place, and the blocking call where there is nothing.
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

/// No subject of the workload has this name.
///
/// # Errors
/// Always.
pub fn unknown<T>(name: &str) -> Result<T, Problem> {
    Err(Problem::Usage(format!("`{name}` is no subject here")))
}

/// Calls `$side::<Subject>($arguments)` for the subject with one sender and one receiver that has this name.
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
