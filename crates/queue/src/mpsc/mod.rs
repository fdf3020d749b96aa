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
//! 2. The receiver reads a new lane only when it has taken from the common path all that was there when the lane was created:
//!    so the order of a sender's values holds.
//! 3. Capacity is the channel's, and exact: a sender needs a **credit** for each value. It claims credits by adding to `claimed`, and
//!    the receiver gives them back by adding to `popped`. At any time `values inside <= claimed - popped <= capacity`. A sender with a
//!    lane claims a block in advance, capacity / (8 x lanes), but at most half of its share of the room that is left.
//! 4. The receiver takes at most 64 values from a lane, then goes on to the next that has some. Up to 8 lanes it looks at each;
//!    with more it follows a **hint**, a bit a lane: a sender sets its bit when it finds it clear, the receiver clears it before it reads
//!    the lane. The hint may miss a value that was on its way; so before it says that there is nothing, and at every 64th turn, the receiver looks at
//!    all lanes.
//! 5. A lane's number is used again only after the receiver saw the lane closed and, after that, empty.
//! 6. A sender that finds no capacity **reclaims** the unused credits of other lanes before it refuses or
//!    blocks. Under the lock of the lanes, it marks each lane as revoked, executes the heavy barrier, and
//!    takes back `claimed - put` from each lane. A sender announces a value (by its mark in the lane) or a
//!    batch (by `announced`), executes the light barrier, and checks the lane's mark `revoked`. Either it
//!    sees the mark, or the reclaiming sender sees the announced value. A sender whose lane is revoked
//!    takes the lock, reads its remaining credits, stores its value, gives up the rest, and signals. If the
//!    barriers are not asymmetric, no sender claims in advance.
//! 7. Closing revokes all lanes for good: a send in a lane asks whether the channel is closed only if its lane is revoked.

mod credits;
mod lanes;
mod receiver;
mod sender;
mod shared_lane;

pub use self::receiver::Rx;
pub use self::sender::Tx;

use self::credits::Credits;
use self::lanes::Lanes;
use self::shared_lane::SharedLane;
use crate::cache_padded::CachePadded;
use crate::channel::{self, Core, CreateError, Options};
use crate::error::CapacityError;
use crate::sync::{Arc, AtomicUsize};

/// A sending handle. `Send` and `Clone`, not `Sync`.
pub type Sender<T> = channel::Sender<Tx<T>>;
/// The one receiving handle. `Send`, not `Sync`, not `Clone`.
pub type Receiver<T> = channel::Receiver<Rx<T>>;

struct Shared<T> {
    core: Core,
    /// `usize::MAX`: without a bound, and without credits.
    capacity: usize,
    shared_lane: SharedLane<T>,
    lanes: Lanes<T>,
    credits: CachePadded<Credits>,
    /// Values ever taken out. Stored by the receiver alone.
    popped: CachePadded<AtomicUsize>,
}

/// A channel for at most `capacity` values, of all senders together.
///
/// # Errors
/// A capacity of 0, beyond 2^30, or beyond memory.
pub fn channel<T>(capacity: usize) -> Result<(Sender<T>, Receiver<T>), CapacityError> {
    Ok(make(
        SharedLane::bounded(capacity)?,
        capacity,
        Options::new(),
    ))
}

/// A channel for at most `capacity` values, with `options`.
///
/// # Errors
/// As [`channel`], and a policy that only `mpmc` can have.
pub fn with<T>(capacity: usize, options: Options) -> Result<(Sender<T>, Receiver<T>), CreateError> {
    let options = options.without_eviction()?;
    Ok(make(SharedLane::bounded(capacity)?, capacity, options))
}

/// A channel without a bound: a send never waits, and what is not received stays in memory.
pub fn unbounded<T>() -> (Sender<T>, Receiver<T>) {
    make(SharedLane::unbounded(), usize::MAX, Options::new())
}

fn make<T>(
    shared_lane: SharedLane<T>,
    capacity: usize,
    options: Options,
) -> (Sender<T>, Receiver<T>) {
    let shared = Arc::new(Shared {
        core: Core::new(options),
        capacity,
        shared_lane,
        lanes: Lanes::new(capacity),
        credits: CachePadded::new(Credits::new()),
        popped: CachePadded::new(AtomicUsize::new(0)),
    });
    let sender = Tx::new(Arc::clone(&shared));
    (Sender::new(sender), Receiver::new(Rx::new(shared)))
}

impl<T> Shared<T> {
    fn is_bounded(&self) -> bool {
        self.capacity != usize::MAX
    }

    fn len(&self) -> usize {
        (self.shared_lane.len() + self.lanes.len()).min(self.capacity)
    }

    /// Rule 7.
    fn close(&self) {
        self.shared_lane.close();
        self.lanes.close();
    }
}
