//! Many senders, one receiver: each busy sender has a lane of its own, so that senders do not meet.
//!
//! The order is that of each sender's sends; between senders there is none. A clone of a [`Sender`] is another sender.
//!
//! ```
//! let (sender, receiver) = thalweg_queue::mpsc::channel(1_024).unwrap();
//! std::thread::scope(|scope| {
//!     for i in 0..4u64 {
//!         let sender = sender.clone();
//!         scope.spawn(move || (0..1_000).for_each(|_| sender.send(i).unwrap()));
//!     }
//!     drop(sender);
//!     assert_eq!(receiver.iter().sum::<u64>(), 6_000);
//! });
//! ```
//!
//! 1. A sender's first 63 values take the **common** path that all share. Its 64th makes a lane, where there is one to be had:
//!    at most 256, and at most one for each 4 of the capacity.
//! 2. The receiver reads a new lane only when it has taken from the common path all that was there when the lane was made:
//!    so the order of a sender's values holds.
//! 3. Capacity is the channel's: a sender takes **credits** from `claimed`, a block of capacity / (8 x lanes) at a time, and the receiver
//!    gives them back by counting `popped`. At any time `values inside <= claimed - popped <= capacity`. Blocks that
//!    idle senders hold can never be all: capacity / 8 x (1 + 1/2 + .. + 1/256) is 0.77 of it.
//! 4. The receiver takes at most 64 values from a lane, then goes on to the next that has some. Up to 8 lanes it looks at each;
//!    with more it follows a **hint**, a bit a lane: a sender sets its bit when it finds it clear, the receiver clears it before it reads
//!    the lane. The hint may miss a value that was on its way; so before it says that there is nothing, and at every 64th turn, the receiver looks at
//!    all lanes.
//! 5. A lane's number is used again only after the receiver saw the lane closed and, after that, empty.

mod common;
mod lanes;
mod receiving;
mod sending;

pub use self::receiving::Rx;
pub use self::sending::Tx;

use self::common::Common;
use self::lanes::Lanes;
use crate::channel::{self, Core, Options, Unsupported};
use crate::error::BadCapacity;
use crate::sync::{Arc, AtomicUsize, Ordering, Padded};

/// A sending handle. `Send` and `Clone`, not `Sync`.
pub type Sender<T> = channel::Sender<Tx<T>>;
/// The one receiving handle. `Send`, not `Sync`, not `Clone`.
pub type Receiver<T> = channel::Receiver<Rx<T>>;

struct Shared<T> {
    core: Core,
    /// `usize::MAX`: without a bound, and without credits.
    capacity: usize,
    common: Common<T>,
    lanes: Lanes<T>,
    /// Credits ever taken, less those given back unused.
    claimed: Padded<AtomicUsize>,
    /// Values ever taken out. Stored by the receiver alone.
    popped: Padded<AtomicUsize>,
}

/// A channel for at most `capacity` values, of all senders together.
///
/// # Errors
/// A capacity of 0, beyond 2^30, or beyond memory.
pub fn channel<T>(capacity: usize) -> Result<(Sender<T>, Receiver<T>), BadCapacity> {
    Ok(make(Common::bounded(capacity)?, capacity, Options::new()))
}

/// A channel for at most `capacity` values, with `options`.
///
/// # Errors
/// As [`channel`], and a policy that only `mpmc` can have.
pub fn with<T>(capacity: usize, options: Options) -> Result<(Sender<T>, Receiver<T>), Unsupported> {
    let options = options.without_eviction()?;
    Ok(make(Common::bounded(capacity)?, capacity, options))
}

/// A channel without a bound: a send never waits, and what is not received stays in memory.
pub fn unbounded<T>() -> (Sender<T>, Receiver<T>) {
    make(Common::unbounded(), usize::MAX, Options::new())
}

fn make<T>(common: Common<T>, capacity: usize, options: Options) -> (Sender<T>, Receiver<T>) {
    let shared = Arc::new(Shared {
        core: Core::new(options),
        capacity,
        common,
        lanes: Lanes::new(capacity),
        claimed: Padded(AtomicUsize::new(0)),
        popped: Padded(AtomicUsize::new(0)),
    });
    let sender = Tx::new(Arc::clone(&shared));
    (Sender::new(sender), Receiver::new(Rx::new(shared)))
}

impl<T> Shared<T> {
    fn is_bounded(&self) -> bool {
        self.capacity != usize::MAX
    }

    /// Values that fit now, beyond those that senders hold credits for.
    fn room(&self) -> usize {
        // The receiver may be ahead of the first look: then there is as much room as can be.
        let claimed = self.claimed.0.load(Ordering::Relaxed);
        let popped = self.popped.0.load(Ordering::Acquire);
        self.capacity - claimed.saturating_sub(popped).min(self.capacity)
    }

    /// Rule 3: takes up to `wanted` credits, but no more than this sender's share; how many.
    fn claim(&self, wanted: usize) -> usize {
        let share = (self.capacity / (8 * self.lanes.count().max(1))).max(1);
        let mut claimed = self.claimed.0.load(Ordering::Relaxed);
        loop {
            let popped = self.popped.0.load(Ordering::Acquire);
            let room = self.capacity - claimed.saturating_sub(popped).min(self.capacity);
            let count = room.min(share).min(wanted);
            if count == 0 {
                return 0;
            }
            match self.claimed.0.compare_exchange_weak(
                claimed,
                claimed + count,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return count,
                Err(now) => claimed = now,
            }
        }
    }

    fn give_back(&self, credits: usize) {
        if credits > 0 {
            self.claimed.0.fetch_sub(credits, Ordering::Relaxed);
            self.core.room.0.signal(credits);
        }
    }

    fn len(&self) -> usize {
        (self.common.len() + self.lanes.len()).min(self.capacity)
    }
}
