//! A channel whose receivers each get every message: for events, prices, configuration.
//!
//! A receiver gets the messages that are sent after it subscribed. The channel retains the newest
//! messages, as many as its capacity. A send never waits and overwrites the oldest message. A
//! receiver that is too slow for its next message gets [`Lagged`] with the number of messages that
//! it missed, and continues with the oldest one that is retained:
//!
//! ```
//! use thalweg_queue::broadcast::{self, Lagged};
//!
//! let (sender, receiver) = broadcast::channel(2)?;
//! sender.send("one").unwrap();
//! let other = sender.subscribe();
//! sender.send("two").unwrap();
//! sender.send("three").unwrap();
//! drop(sender);
//!
//! assert!(other.iter().eq([Ok("two"), Ok("three")]));
//! assert!(receiver.iter().eq([Err(Lagged(1)), Ok("two"), Ok("three")]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A receive therefore returns a `Result<T, Lagged>`:
//!
//! ```
//! # use thalweg_queue::broadcast::{self, Lagged};
//! # let (sender, receiver) = broadcast::channel(2)?;
//! # sender.send(7).unwrap();
//! # drop(sender);
//! loop {
//!     match receiver.recv() {
//!         Ok(Ok(message)) => println!("{message}"),
//!         Ok(Err(Lagged(missed))) => println!("missed {missed} messages"),
//!         Err(closed) => break println!("{closed}"),
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The handles have the operations of all channels: blocking, deadlines, futures, streams, batches,
//! [`Select`](crate::Select), [`Readiness`](crate::Readiness), statistics. These points differ:
//!
//! * The channel stays open without receivers. Its messages, and those that are sent meanwhile, are
//!   dropped.
//! * A clone of a receiver continues at the same message. [`Receiver::resubscribe`] starts with the
//!   next one that is sent.
//! * The channel is never full, so the [`Overflow`](crate::Overflow) policy has no effect.
//! * A message is cloned for each receiver. It stays in memory until it is overwritten or the last
//!   receiver is dropped, also when all receivers have received it. Send an `Arc` if a clone is
//!   expensive.
//! * Several receivers may clone one message at the same time, so handles can move to other threads
//!   only if the messages are `Send` and `Sync`.
//! * [`Receiver::close`] closes the channel for all.
//!
//! ```compile_fail
//! let (_sender, receiver) = thalweg_queue::broadcast::channel::<std::cell::Cell<u8>>(4).unwrap();
//! // A `Cell` is not `Sync`: two threads could clone one message while one of them changes it.
//! std::thread::spawn(move || receiver.recv());
//! ```

mod ring;
mod word;
mod writer;

use std::error::Error;
use std::fmt;
use std::mem::needs_drop;

use self::ring::{Place, Read, Ring};
use crate::channel::{self, Core, HasCore, Options, Pop, Push, SharedRef};
use crate::error::CapacityError;
use crate::sync::Ordering;

/// A sending handle. `Send`, `Sync` and `Clone`.
pub type Sender<T> = channel::Sender<Handle<T>>;
/// A receiving handle. `Send` and `Clone`, not `Sync`.
pub type Receiver<T> = channel::Receiver<Cursor<T>>;

/// The receiver was too slow: this many messages were overwritten before it received them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lagged(pub u64);

impl fmt::Display for Lagged {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "the receiver lagged and missed {} messages", self.0)
    }
}

impl Error for Lagged {}

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

/// A sender's reference to the ring.
pub struct Handle<T> {
    shared: SharedRef<Shared<T>>,
}

/// A receiver's reference to the ring, and its place in it.
pub struct Cursor<T> {
    shared: SharedRef<Shared<T>>,
    place: Place,
}

/// Creates a channel that retains the newest `capacity` messages.
///
/// # Errors
/// The capacity is 0 or more than 2^30, or there is not enough memory for it.
pub fn channel<T: Clone>(capacity: usize) -> Result<(Sender<T>, Receiver<T>), CapacityError> {
    with(capacity, Options::new())
}

/// Creates a channel that retains the newest `capacity` messages, with the wait strategy of
/// `options`.
///
/// # Errors
/// As [`channel`].
pub fn with<T: Clone>(
    capacity: usize,
    options: Options,
) -> Result<(Sender<T>, Receiver<T>), CapacityError> {
    let shared = SharedRef::new(Shared {
        core: Core::new(options),
        ring: Ring::new(capacity)?,
    });
    let place = shared.ring.subscribe();
    let sender = Handle {
        shared: shared.clone(),
    };
    Ok((Sender::new(sender), Receiver::new(Cursor { shared, place })))
}

impl<T: Clone> channel::Sender<Handle<T>> {
    /// Creates a receiver of the messages that are sent from now on.
    ///
    /// ```
    /// use thalweg_queue::broadcast;
    /// let (sender, _) = broadcast::channel(8)?;
    /// assert_eq!(sender.receiver_count(), 0);
    /// sender.send(1)?;
    /// let receiver = sender.subscribe();
    /// sender.send(2)?;
    /// assert_eq!(receiver.recv()?, Ok(2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn subscribe(&self) -> Receiver<T> {
        subscribe(&self.flavour().shared)
    }

    /// The number of receivers.
    pub fn receiver_count(&self) -> usize {
        self.flavour().shared.ring.reader_count()
    }
}

impl<T: Clone> channel::Receiver<Cursor<T>> {
    /// Creates a receiver of the messages that are sent from now on. A clone continues at this
    /// receiver's next message instead.
    ///
    /// ```
    /// use thalweg_queue::{TryRecvError, broadcast};
    /// let (sender, receiver) = broadcast::channel(8)?;
    /// sender.send(1)?;
    /// let (clone, later) = (receiver.clone(), receiver.resubscribe());
    /// assert_eq!(clone.try_recv(), Ok(Ok(1)));
    /// assert_eq!(later.try_recv(), Err(TryRecvError::Empty));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn resubscribe(&self) -> Self {
        subscribe(&self.flavour().shared)
    }
}

fn subscribe<T: Clone>(shared: &SharedRef<Shared<T>>) -> Receiver<T> {
    shared.core.add_receiver();
    Receiver::new(Cursor {
        place: shared.ring.subscribe(),
        shared: shared.clone(),
    })
}

impl<T> Handle<T> {
    fn is_closed(&self) -> bool {
        self.shared.core.is_closed()
    }

    fn wake_receivers(&self) {
        self.shared.core.recv_waiters.signal(usize::MAX);
    }
}

impl<T> Push for Handle<T> {
    type Item = T;

    #[inline(always)]
    fn core(&self) -> &Core {
        &self.shared.core
    }

    #[inline]
    fn push_fast(&self, value: T) -> Result<(), T> {
        let replaced = self.shared.ring.write(|writer| {
            if self.is_closed() {
                return Err(value);
            }
            writer.write_fast(value)
        })?;
        self.wake_receivers();
        // The drop of a message may panic, so it comes last.
        drop(replaced);
        Ok(())
    }

    fn try_push(&self, value: T) -> Result<(), T> {
        let written = self.shared.ring.write(|writer| {
            if self.is_closed() {
                return Err(value);
            }
            Ok(writer.write(value))
        });
        let replaced = written?;
        self.wake_receivers();
        drop(replaced);
        Ok(())
    }

    fn push_some(&self, values: &mut Vec<T>) -> usize {
        let mut replaced = Vec::new();
        let count = self.shared.ring.write(|writer| {
            if self.is_closed() {
                return 0;
            }
            let count = values.len();
            for value in values.drain(..) {
                let old = writer.write(value);
                // Values without drop code are dropped here: it saves the allocation.
                if needs_drop::<T>() {
                    replaced.push(old);
                }
            }
            count
        });
        if count > 0 {
            self.wake_receivers();
        }
        count
    }

    fn has_capacity(&self) -> bool {
        true
    }

    fn transferred(&self) -> u64 {
        self.shared.ring.sent()
    }

    /// The messages that at least one receiver has not received.
    fn len(&self) -> usize {
        self.shared.ring.unread()
    }

    fn capacity(&self) -> usize {
        self.shared.ring.capacity()
    }

    fn close(&self) {
        self.shared.close();
    }
}

impl<T: Clone> Pop for Cursor<T> {
    type Item = Result<T, Lagged>;

    const IS_BROADCAST: bool = true;

    #[inline(always)]
    fn core(&self) -> &Core {
        &self.shared.core
    }

    #[inline(always)]
    fn pop_fast(&self) -> Option<Self::Item> {
        let mut message = None;
        let ring = &self.shared.ring;
        ring.read_in_place(&self.place, 1, |value| message = Some(Ok(value)));
        message
    }

    fn try_pop(&self) -> Option<Self::Item> {
        Some(match self.shared.ring.read(&self.place)? {
            Read::Message(message) => Ok(message),
            Read::Missed(count) => {
                let missed = &self.shared.core.dropped_oldest;
                missed.fetch_add(count, Ordering::Relaxed);
                Err(Lagged(count))
            }
        })
    }

    fn pop_into(&self, most: usize, values: &mut Vec<Self::Item>) -> usize {
        let ring = &self.shared.ring;
        ring.read_in_place(&self.place, most, |message| values.push(Ok(message)))
    }

    #[inline]
    fn has_value(&self) -> bool {
        self.shared.ring.is_ready(&self.place)
    }

    fn is_drained(&self) -> bool {
        self.shared.ring.is_drained(&self.place)
    }

    fn transferred(&self) -> u64 {
        self.shared.ring.sent()
    }

    fn len(&self) -> usize {
        self.shared.ring.left(&self.place)
    }

    fn capacity(&self) -> usize {
        self.shared.ring.capacity()
    }

    fn close(&self) {
        self.shared.close();
    }
}

impl<T> Shared<T> {
    /// Under the lock, so that every send is either refused or complete before the receivers see
    /// the end.
    fn close(&self) {
        self.ring.write(|_| self.core.recv_waiters.mark_closed());
    }
}

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
        }
    }
}

impl<T> Clone for Cursor<T> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
            place: self.shared.ring.duplicate(&self.place),
        }
    }
}

impl<T> Drop for Cursor<T> {
    fn drop(&mut self) {
        self.shared.ring.remove(&self.place);
    }
}

impl<T> fmt::Debug for Handle<T> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Handle")
            .field("sent", &self.shared.ring.sent())
            .finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Cursor<T> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Cursor")
            .field("left", &self.shared.ring.left(&self.place))
            .finish_non_exhaustive()
    }
}
