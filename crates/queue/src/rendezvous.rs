//! A channel without capacity, like Go's unbuffered channel: a send ends when a receiver has taken
//! the value. For any number of senders and receivers.
//!
//! ```
//! let (sender, receiver) = thalweg_queue::rendezvous::channel();
//! std::thread::scope(|scope| {
//!     scope.spawn(|| {
//!         sender.send("first").unwrap();
//!         // The receiver has it.
//!         sender.send("second").unwrap();
//!         sender.close();
//!     });
//!     assert!(receiver.iter().eq(["first", "second"]));
//! });
//! ```
//!
//! A send that fails or reaches its deadline returns the value, and no receiver gets it. `send` and
//! its variants wait until a receiver takes the value, or is blocked in a receive and is certain to
//! take it. If a send future is dropped before a receiver takes the value, no receiver gets it. A
//! dropped receive future loses nothing: it takes the value when it completes.
//!
//! `try_send` succeeds if a receiver waits, and `try_recv` if a sender waits:
//!
//! ```
//! # use std::{future::Future, pin::pin, task::{Context, Poll, Waker}};
//! use thalweg_queue::{TryRecvError, TrySendError, rendezvous};
//!
//! let (sender, receiver) = rendezvous::channel();
//! assert_eq!(sender.try_send(1), Err(TrySendError::Full(1)));
//! assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
//!
//! let mut context = Context::from_waker(Waker::noop());
//! let mut sends = pin!(sender.send_async(2));
//! assert!(sends.as_mut().poll(&mut context).is_pending());
//! assert_eq!(receiver.try_recv(), Ok(2));
//! assert_eq!(sends.poll(&mut context), Poll::Ready(Ok(())));
//! ```
//!
//! If the only receiver that waits is a task or a [`Select`](crate::Select), `try_send` gives the
//! value to the channel for it. Another receiver can be faster, and if the task is dropped before it
//! runs, the next receiver gets the value.
//!
//! `len` is the number of values whose senders wait. A `Select` that sends is ready when a receiver
//! waits. Do not select a send and a receive of the same channel: the `Select` can meet itself, and
//! neither of its operations can then be performed.

use std::fmt;

use crate::channel::{self, Core, CreateError, HasCore, Options, Pop, Push, SharedRef};
use crate::exchange::Exchange;

/// A sending handle. `Send`, `Sync` and `Clone`.
pub type Sender<T> = channel::Sender<Handle<T>>;
/// A receiving handle. `Send`, `Sync` and `Clone`.
pub type Receiver<T> = channel::Receiver<Handle<T>>;

struct Shared<T> {
    core: Core,
    exchange: Exchange<T>,
}

impl<T> HasCore for Shared<T> {
    #[inline(always)]
    fn core(&self) -> &Core {
        &self.core
    }
}

/// A handle's reference to the channel.
pub struct Handle<T> {
    shared: SharedRef<Shared<T>>,
}

/// Creates a channel.
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    make(Options::new())
}

/// Creates a channel with `options`. The channel counts as full while no receiver waits.
///
/// # Errors
/// The overflow policy is one that only `mpmc` supports.
pub fn with<T>(options: Options) -> Result<(Sender<T>, Receiver<T>), CreateError> {
    Ok(make(options.without_eviction()?))
}

fn make<T>(options: Options) -> (Sender<T>, Receiver<T>) {
    let shared = SharedRef::new(Shared {
        core: Core::new(options),
        exchange: Exchange::new(),
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
    fn exchange(&self) -> Option<&Exchange<T>> {
        Some(&self.shared.exchange)
    }

    #[inline(always)]
    fn push_fast(&self, value: T) -> Result<(), T> {
        Err(value)
    }

    fn try_push(&self, value: T) -> Result<(), T> {
        let waiters = &self.shared.core.recv_waiters;
        let exchange = &self.shared.exchange;
        exchange.hand_over(value, || waiters.has_any())?;
        waiters.signal(1);
        Ok(())
    }

    fn push_some(&self, values: &mut Vec<T>) -> usize {
        let count = values.len();
        let mut rest = std::mem::take(values).into_iter();
        while let Some(value) = rest.next() {
            if let Err(value) = self.try_push(value) {
                values.push(value);
                values.extend(rest);
                break;
            }
        }
        count - values.len()
    }

    fn has_capacity(&self) -> bool {
        let waiters = &self.shared.core.recv_waiters;
        self.shared.exchange.accepts(|| waiters.has_any())
    }

    fn transferred(&self) -> u64 {
        self.shared.exchange.taken()
    }

    fn len(&self) -> usize {
        self.shared.exchange.ready()
    }

    fn capacity(&self) -> usize {
        0
    }

    fn close(&self) {
        self.shared.exchange.close();
    }
}

impl<T> Pop for Handle<T> {
    type Item = T;

    #[inline(always)]
    fn core(&self) -> &Core {
        &self.shared.core
    }

    #[inline(always)]
    fn exchange(&self) -> Option<&Exchange<T>> {
        Some(&self.shared.exchange)
    }

    #[inline(always)]
    fn pop_fast(&self) -> Option<T> {
        self.try_pop()
    }

    #[inline]
    fn try_pop(&self) -> Option<T> {
        let value = self.shared.exchange.take()?;
        // Another receiver may still wait.
        Some(self.shared.core.send_waiters.signal_returning(value))
    }

    fn pop_into(&self, most: usize, values: &mut Vec<T>) -> usize {
        let mut count = 0;
        while count < most
            && let Some(value) = self.try_pop()
        {
            values.push(value);
            count += 1;
        }
        count
    }

    #[inline]
    fn has_value(&self) -> bool {
        self.shared.exchange.ready() > 0
    }

    fn transferred(&self) -> u64 {
        self.shared.exchange.taken()
    }

    fn len(&self) -> usize {
        self.shared.exchange.ready()
    }

    fn capacity(&self) -> usize {
        0
    }

    fn close(&self) {
        self.shared.exchange.close();
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
        to.debug_struct("Handle")
            .field("ready", &self.shared.exchange.ready())
            .finish_non_exhaustive()
    }
}
