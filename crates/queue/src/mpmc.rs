//! A channel with any number of senders and receivers, on one bounded ring. Each value goes to one
//! receiver.
//!
//! Values are received in the order in which they were sent, across all senders. Senders can remove
//! values, so every [`Overflow`](crate::Overflow) policy is supported. Closing is exact: every send
//! either fails or is received.
//!
//! ```
//! let (sender, receiver) = thalweg_queue::mpmc::channel(16).unwrap();
//! std::thread::scope(|scope| {
//!     for _ in 0..2 {
//!         let sender = sender.clone();
//!         scope.spawn(move || (0..100).for_each(|i| sender.send(i).unwrap()));
//!     }
//!     drop(sender);
//!     let second = scope.spawn(|| receiver.iter().count());
//!     assert_eq!(receiver.iter().count() + second.join().unwrap(), 200);
//! });
//! ```

use std::fmt;

use crate::channel::{self, Core, CreateError, HasCore, Options, Pop, Push, SharedRef};
use crate::error::CapacityError;
use crate::ring::Ring;

/// A sending handle. `Send`, `Sync` and `Clone`.
pub type Sender<T> = channel::Sender<Handle<T>>;
/// A receiving handle. `Send`, `Sync` and `Clone`.
pub type Receiver<T> = channel::Receiver<Handle<T>>;

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

/// A handle's reference to the ring.
pub struct Handle<T> {
    shared: SharedRef<Shared<T>>,
}

/// Creates a channel for at most `capacity` values.
///
/// # Errors
/// The capacity is 0 or more than 2^30, or there is not enough memory for it.
pub fn channel<T>(capacity: usize) -> Result<(Sender<T>, Receiver<T>), CapacityError> {
    Ok(make(Ring::new(capacity)?, Options::new()))
}

/// Creates a channel for at most `capacity` values, with `options`.
///
/// # Errors
/// As [`channel`].
pub fn with<T>(capacity: usize, options: Options) -> Result<(Sender<T>, Receiver<T>), CreateError> {
    Ok(make(Ring::new(capacity)?, options))
}

fn make<T>(ring: Ring<T>, options: Options) -> (Sender<T>, Receiver<T>) {
    let shared = SharedRef::new(Shared {
        core: Core::new(options),
        ring,
    });
    let sender = Handle {
        shared: shared.clone(),
    };
    (Sender::new(sender), Receiver::new(Handle { shared }))
}

impl<T> Push for Handle<T> {
    type Item = T;

    #[inline(always)]
    fn core(&self) -> &Core {
        &self.shared.core
    }

    #[inline(always)]
    fn push_fast(&self, value: T) -> Result<(), T> {
        // The ring itself records whether it is closed.
        self.try_push(value)
    }

    #[inline(always)]
    fn try_push(&self, value: T) -> Result<(), T> {
        self.shared.ring.push(value)?;
        self.shared.core.recv_waiters.signal(1);
        Ok(())
    }

    fn push_some(&self, values: &mut Vec<T>) -> usize {
        let count = self.shared.ring.push_some(values);
        if count > 0 {
            self.shared.core.recv_waiters.signal(count);
        }
        count
    }

    #[inline]
    fn has_capacity(&self) -> bool {
        self.shared.ring.has_capacity()
    }

    fn evict(&self) -> Option<T> {
        self.shared.ring.pop()
    }

    fn transferred(&self) -> u64 {
        self.shared.ring.pushed() as u64
    }

    fn len(&self) -> usize {
        self.shared.ring.len()
    }

    fn capacity(&self) -> usize {
        self.shared.ring.capacity()
    }

    fn close(&self) {
        self.shared.ring.close();
    }
}

impl<T> Pop for Handle<T> {
    type Item = T;

    #[inline(always)]
    fn core(&self) -> &Core {
        &self.shared.core
    }

    #[inline(always)]
    fn pop_fast(&self) -> Option<T> {
        self.try_pop()
    }

    #[inline(always)]
    fn try_pop(&self) -> Option<T> {
        let value = self.shared.ring.pop()?;
        self.shared.core.send_waiters.signal(1);
        Some(value)
    }

    fn pop_into(&self, most: usize, values: &mut Vec<T>) -> usize {
        let count = self.shared.ring.pop_some(most, |value| values.push(value));
        if count > 0 {
            self.shared.core.send_waiters.signal(count);
        }
        count
    }

    #[inline]
    fn has_value(&self) -> bool {
        !self.shared.ring.is_empty()
    }

    fn is_drained(&self) -> bool {
        self.shared.ring.is_drained()
    }

    fn transferred(&self) -> u64 {
        self.shared.ring.popped() as u64
    }

    fn len(&self) -> usize {
        self.shared.ring.len()
    }

    fn capacity(&self) -> usize {
        self.shared.ring.capacity()
    }

    fn close(&self) {
        self.shared.ring.close();
    }
}

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
        }
    }
}

impl<T> fmt::Debug for Handle<T> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shared.ring.fmt(to)
    }
}
