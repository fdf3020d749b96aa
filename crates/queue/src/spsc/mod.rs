//! A channel with one sender and one receiver: a bounded ring.
//!
//! ```
//! let (sender, receiver) = thalweg_queue::spsc::channel(1_024).unwrap();
//! let numbers = std::thread::spawn(move || (0..10_000u64).for_each(|i| sender.send(i).unwrap()));
//! assert_eq!(receiver.iter().sum::<u64>(), 49_995_000);
//! numbers.join().unwrap();
//! ```

mod batch;
pub(crate) mod ring;

use std::fmt;

use crate::channel::{self, Core, CreateError, HasCore, Options, Pop, Push, SharedRef};
use crate::error::{CapacityError, Closed};
use crate::wait_list::WaitList;

use self::ring::{Ring, Side};

/// The one sending handle. `Send`, not `Sync`, not `Clone`.
pub type Sender<T> = channel::Sender<Tx<T>>;
/// The one receiving handle. `Send`, not `Sync`, not `Clone`.
pub type Receiver<T> = channel::Receiver<Rx<T>>;

struct Shared<T> {
    core: Core,
    ring: Ring<T>,
}

impl<T> HasCore for Shared<T> {
    #[inline(always)]
    fn core(&self) -> &Core {
        &self.core
    }
}

/// The sending half of the ring.
pub struct Tx<T> {
    shared: SharedRef<Shared<T>>,
    writer: Side<T>,
}

/// The receiving half of the ring.
pub struct Rx<T> {
    shared: SharedRef<Shared<T>>,
    reader: Side<T>,
}

/// Creates a channel for at most `capacity` values.
///
/// # Errors
/// The capacity is 0 or more than 2^30, or there is not enough memory for it.
pub fn channel<T>(capacity: usize) -> Result<(Sender<T>, Receiver<T>), CapacityError> {
    make(capacity, Options::new())
}

/// Creates a channel for at most `capacity` values, with `options`.
///
/// # Errors
/// As [`channel`], or a policy that only `mpmc` supports.
pub fn with<T>(capacity: usize, options: Options) -> Result<(Sender<T>, Receiver<T>), CreateError> {
    let options = options.without_eviction()?;
    Ok(make(capacity, options)?)
}

fn make<T>(capacity: usize, options: Options) -> Result<(Sender<T>, Receiver<T>), CapacityError> {
    let (ring, writer, reader) = Ring::new(capacity)?;
    let shared = SharedRef::new(Shared {
        core: Core::new(options),
        ring,
    });
    let sender = Tx {
        shared: shared.clone(),
        writer,
    };
    let receiver = Rx { shared, reader };
    Ok((Sender::new(sender), Receiver::new(receiver)))
}

impl<T> Push for Tx<T> {
    type Item = T;

    #[inline(always)]
    fn core(&self) -> &Core {
        &self.shared.core
    }

    #[inline(always)]
    fn push_fast(&self, value: T) -> Result<(), T> {
        let shared = &*self.shared;
        if !Ring::has_granted(&self.writer) || shared.core.is_closed() {
            return Err(value);
        }
        // SAFETY: the writer belongs to the ring. This handle is its only user and is not Sync.
        // There is a free slot.
        unsafe { shared.ring.push(&self.writer, value) };
        shared.core.recv_waiters.signal(1);
        Ok(())
    }

    fn try_push(&self, value: T) -> Result<(), T> {
        if !self.has_capacity() {
            return Err(value);
        }
        // SAFETY: as in `push_fast`.
        unsafe { self.shared.ring.push(&self.writer, value) };
        self.shared.core.recv_waiters.signal(1);
        Ok(())
    }

    fn push_some(&self, values: &mut Vec<T>) -> usize {
        // SAFETY: as in `push_fast`.
        let count = unsafe { self.shared.ring.push_from(&self.writer, values) };
        if count > 0 {
            self.shared.core.recv_waiters.signal(count);
        }
        count
    }

    fn has_capacity(&self) -> bool {
        self.shared.ring.has_capacity(&self.writer)
    }

    fn transferred(&self) -> u64 {
        self.shared.ring.pushed()
    }

    fn len(&self) -> usize {
        self.shared.ring.len()
    }

    fn capacity(&self) -> usize {
        self.shared.ring.capacity()
    }
}

impl<T> Tx<T> {
    #[inline]
    fn fill(&self, most: usize, next: impl FnMut() -> Option<T>) -> usize {
        let mut signal = SignalOnDrop::to(&self.shared.core.recv_waiters);
        // SAFETY: as in `push_fast`.
        signal.count = unsafe { self.shared.ring.push_some(&self.writer, most, next) };
        signal.count
    }
}

impl<T> Pop for Rx<T> {
    type Item = T;

    #[inline(always)]
    fn core(&self) -> &Core {
        &self.shared.core
    }

    #[inline(always)]
    fn pop_fast(&self) -> Option<T> {
        let shared = &*self.shared;
        if !shared.ring.has_visible_value(&self.reader) {
            return None;
        }
        // SAFETY: the reader belongs to the ring. This handle is its only user and is not Sync.
        // There is a value.
        let value = unsafe { shared.ring.pop(&self.reader) };
        Some(shared.core.send_waiters.signal_returning(value))
    }

    #[inline(always)]
    fn try_pop(&self) -> Option<T> {
        if !self.has_value() {
            return None;
        }
        self.pop_fast()
    }

    fn pop_into(&self, most: usize, values: &mut Vec<T>) -> usize {
        // SAFETY: as in `pop_fast`.
        let count = unsafe { self.shared.ring.pop_into(&self.reader, most, values) };
        if count > 0 {
            self.shared.core.send_waiters.signal(count);
        }
        count
    }

    fn has_value(&self) -> bool {
        self.shared.ring.has_value(&self.reader)
    }

    fn transferred(&self) -> u64 {
        self.shared.ring.popped()
    }

    fn len(&self) -> usize {
        self.shared.ring.len()
    }

    fn capacity(&self) -> usize {
        self.shared.ring.capacity()
    }
}

/// Sending in place.
impl<T> channel::Sender<Tx<T>> {
    /// Writes the values that `next` returns directly into the ring: as many as fit, at most
    /// `most`. Returns their number.
    ///
    /// The receiver sees the values 64 at a time at most, and is woken once.
    ///
    /// ```
    /// let (mut sender, mut receiver) = thalweg_queue::spsc::channel(4).unwrap();
    /// let mut numbers = 0..10u64;
    /// assert_eq!(sender.try_fill(100, || numbers.next()), Ok(4));
    /// assert_eq!(receiver.try_drain(2, |number| assert!(*number < 2)), 2);
    /// assert_eq!(sender.try_fill(100, || numbers.next()), Ok(2));
    /// assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [2, 3, 4, 5]);
    /// ```
    ///
    /// # Errors
    /// The channel is closed. `next` was not called.
    #[inline]
    pub fn try_fill(
        &mut self,
        most: usize,
        next: impl FnMut() -> Option<T>,
    ) -> Result<usize, Closed> {
        if self.is_closed() {
            return Err(Closed);
        }
        Ok(self.flavour().fill(most, next))
    }
}

/// Receiving in place.
impl<T> channel::Receiver<Rx<T>> {
    /// Passes the values in the ring to `look`, oldest first, at most `most`, and drops each of
    /// them afterwards. Returns their number. Their slots are released together at the end.
    #[inline]
    pub fn try_drain(&mut self, most: usize, look: impl FnMut(&T)) -> usize {
        let flavour = self.flavour();
        let mut signal = SignalOnDrop::to(&flavour.shared.core.send_waiters);
        // SAFETY: the reader belongs to the ring, and this handle is its only user. The exclusive
        // borrow keeps `look` from using it.
        signal.count = unsafe { flavour.shared.ring.peek_some(&flavour.reader, most, look) };
        signal.count
    }
}

/// Wakes the waiters for the values that were processed in place, also after a panic.
struct SignalOnDrop<'a> {
    waiters: &'a WaitList,
    count: usize,
}

impl<'a> SignalOnDrop<'a> {
    fn to(waiters: &'a WaitList) -> Self {
        Self { waiters, count: 1 }
    }
}

impl Drop for SignalOnDrop<'_> {
    fn drop(&mut self) {
        if self.count > 0 {
            self.waiters.signal(self.count);
        }
    }
}

impl<T> fmt::Debug for Tx<T> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("spsc::Tx")
    }
}

impl<T> fmt::Debug for Rx<T> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("spsc::Rx")
    }
}
