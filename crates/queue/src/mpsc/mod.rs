//! A channel with many senders and one receiver. Each busy sender has its own lane, so senders do
//! not contend.
//!
//! Values of one sender arrive in the order of its sends. Between senders there is no order. A
//! clone of a [`Sender`] is another sender. The capacity is exact, and is shared by all senders.
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

// The rules of this module:
//
// 1. A sender's first 63 values use the **shared lane**. With its 64th value, it creates a lane of
//    its own, if possible: a channel has at most 256 lanes, and at most one for each 4 of its
//    capacity.
// 2. The receiver reads a new lane only when it has received everything that was in the shared lane
//    when the lane was created. This preserves the order of a sender's values.
// 3. The capacity belongs to the channel and is exact: a sender needs a **credit** for each value.
//    Senders claim credits by adding to `claimed`; the receiver returns them by adding to `popped`.
//    At any time `values inside <= claimed - popped <= capacity`. A sender with a lane claims a
//    block in advance: capacity / (8 x lanes), but at most half of its share of the available
//    credits.
// 4. The receiver takes at most 64 values from a lane, then continues with the next lane that has a
//    value. With up to 8 lanes, it checks each lane. With more, it follows a **hint**, one bit per
//    lane: a sender sets its bit when it finds it clear, and the receiver clears it before it reads
//    the lane. The hint may miss a value that is being sent. Therefore the receiver checks all
//    lanes before it reports that the channel is empty, and at every 64th turn.
// 5. The number of a lane is reused only after the receiver has seen the lane closed and, after
//    that, empty.
// 6. A sender that finds no capacity **reclaims** the unused credits of other lanes before it fails
//    or blocks. Under the lock of the lanes, it marks each lane as revoked, executes the heavy
//    barrier, and takes back `claimed - pushed` from each lane. A sender announces a value (by its
//    offset in the lane) or a batch (by `announced`), executes the light barrier, and checks the
//    flag `revoked` of the lane. Either it sees the flag, or the reclaiming sender sees the
//    announced value. A sender whose lane is revoked takes the lock, reads its remaining credits,
//    stores its value, gives up the rest, and signals. If the barriers are not asymmetric, no
//    sender claims in advance.
// 7. Closing revokes all lanes permanently. A send in a lane therefore checks whether the channel
//    is closed only if its lane is revoked.

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
use crate::channel::{self, Core, CreateError, HasCore, Options, SharedRef};
use crate::error::CapacityError;
use crate::sync::AtomicUsize;

/// A sending handle. `Send` and `Clone`, not `Sync`.
pub type Sender<T> = channel::Sender<Tx<T>>;
/// The one receiving handle. `Send`, not `Sync`, not `Clone`.
pub type Receiver<T> = channel::Receiver<Rx<T>>;

struct Shared<T> {
    core: Core,
    /// `usize::MAX` if the channel is unbounded. It then uses no credits.
    capacity: usize,
    shared_lane: SharedLane<T>,
    lanes: Lanes<T>,
    credits: CachePadded<Credits>,
    /// Values that were ever popped. Only the receiver stores it.
    popped: CachePadded<AtomicUsize>,
}

impl<T> HasCore for Shared<T> {
    #[inline(always)]
    fn core(&self) -> &Core {
        &self.core
    }
}

/// Creates a channel for at most `capacity` values, shared by all senders.
///
/// # Errors
/// The capacity is 0 or more than 2^30, or there is not enough memory for it.
pub fn channel<T>(capacity: usize) -> Result<(Sender<T>, Receiver<T>), CapacityError> {
    Ok(make(
        SharedLane::bounded(capacity)?,
        capacity,
        Options::new(),
    ))
}

/// Creates a channel for at most `capacity` values, with `options`.
///
/// # Errors
/// As [`channel`], or a policy that only `mpmc` supports.
pub fn with<T>(capacity: usize, options: Options) -> Result<(Sender<T>, Receiver<T>), CreateError> {
    let options = options.without_eviction()?;
    Ok(make(SharedLane::bounded(capacity)?, capacity, options))
}

/// Creates an unbounded channel. A send never waits. Values stay in memory until they are received.
pub fn unbounded<T>() -> (Sender<T>, Receiver<T>) {
    make(SharedLane::unbounded(), usize::MAX, Options::new())
}

fn make<T>(
    shared_lane: SharedLane<T>,
    capacity: usize,
    options: Options,
) -> (Sender<T>, Receiver<T>) {
    let shared = SharedRef::new(Shared {
        core: Core::new(options),
        capacity,
        shared_lane,
        lanes: Lanes::new(capacity),
        credits: CachePadded::new(Credits::new()),
        popped: CachePadded::new(AtomicUsize::new(0)),
    });
    let sender = Tx::new(shared.clone());
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
