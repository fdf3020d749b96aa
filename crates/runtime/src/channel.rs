//! An unbounded channel for actors; both ends can be cloned. The channels of [`thalweg_queue`] have
//! more options, and let actors wait as well.
//!
//! A single receiver owns the receiving end of an [`mpsc`] channel. From the first clone on, the
//! receivers pass that end around through an [`mpmc`] channel with one slot: the holder of the end
//! receives.

use std::cell::UnsafeCell;
use std::fmt;
use std::time::Duration;

use thalweg_queue::{RecvError, RecvTimeoutError, SendError, TryRecvError, clock, mpmc, mpsc};

use crate::wait;

/// An unbounded channel: a send never waits, and values stay in memory until they are received. The
/// values of each sender arrive in the order of its sends.
///
/// ```
/// use thalweg_runtime::{channel, run, spawn};
///
/// run(|| {
///     let (jobs, queue) = channel();
///     let (results, all) = channel();
///     for _ in 0..4 {
///         let (queue, results) = (queue.clone(), results.clone());
///         spawn(move || {
///             for job in &queue {
///                 results.send(job * job).expect("the first actor receives to the end");
///             }
///         });
///     }
///     drop(results);
///     (1..=10u64).for_each(|job| jobs.send(job).expect("four receive"));
///     drop(jobs);
///     assert_eq!(all.iter().sum::<u64>(), 385);
/// });
/// ```
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let (sender, receiver) = mpsc::unbounded();
    let receiver = Receiver {
        end: UnsafeCell::new(End::Owned(receiver)),
    };
    (Sender { sender }, receiver)
}

/// The sending half of a [`channel`]. A clone is another sender with its own order.
pub struct Sender<T> {
    sender: mpsc::Sender<T>,
}

/// The receiving half of a [`channel`]. Each value goes to one receiver.
pub struct Receiver<T> {
    /// Only this handle's thread accesses it, and no reference to it outlives a call: the type is
    /// not `Sync`.
    end: UnsafeCell<End<T>>,
}

enum End<T> {
    Owned(mpsc::Receiver<T>),
    Shared(SharedEnd<T>),
}

/// The receiving end as several receivers share it.
struct SharedEnd<T> {
    put_back: EndSender<T>,
    take: mpmc::Receiver<mpsc::Receiver<T>>,
}

type EndSender<T> = mpmc::Sender<mpsc::Receiver<T>>;

impl<T> Clone for SharedEnd<T> {
    fn clone(&self) -> Self {
        Self {
            put_back: self.put_back.clone(),
            take: self.take.clone(),
        }
    }
}

impl<T> SharedEnd<T> {
    fn with<R>(&self, receiver: mpsc::Receiver<T>, f: impl FnOnce(&mpsc::Receiver<T>) -> R) -> R {
        f(EndGuard::new(&self.put_back, receiver).receiver())
    }
}

struct EndGuard<'a, T> {
    put_back: &'a EndSender<T>,
    receiver: Option<mpsc::Receiver<T>>,
}

impl<'a, T> EndGuard<'a, T> {
    fn new(put_back: &'a EndSender<T>, receiver: mpsc::Receiver<T>) -> Self {
        Self {
            put_back,
            receiver: Some(receiver),
        }
    }

    fn receiver(&mut self) -> &mut mpsc::Receiver<T> {
        self.receiver.as_mut().expect("only `drop` takes it out")
    }
}

impl<T> Drop for EndGuard<'_, T> {
    fn drop(&mut self) {
        if let Some(receiver) = self.receiver.take() {
            // There is one end and one slot, so the send succeeds.
            let _ = self.put_back.try_send(receiver);
        }
    }
}

impl<T> Sender<T> {
    /// Sends a value. It never waits, but lets other actors run if the caller is an actor whose
    /// time slice is over.
    ///
    /// # Errors
    /// The value, if all receivers are dropped.
    #[inline]
    pub fn send(&self, value: T) -> Result<(), SendError<T>> {
        wait::check();
        self.sender.send(value)
    }

    /// The number of queued values; it may be outdated when the call returns.
    pub fn len(&self) -> usize {
        self.sender.len()
    }

    /// Whether no value is queued.
    pub fn is_empty(&self) -> bool {
        self.sender.is_empty()
    }
}

impl<T> Receiver<T> {
    #[inline]
    fn end(&self) -> &End<T> {
        // SAFETY: only `clone` writes it, when no borrow of this handle exists, and the handle is
        // not `Sync`.
        unsafe { &*self.end.get() }
    }

    /// Receives the oldest value; waits until there is one.
    ///
    /// # Errors
    /// All senders are dropped, and no value is left.
    #[inline]
    pub fn recv(&self) -> Result<T, RecvError> {
        wait::check();
        match self.end() {
            End::Owned(receiver) => receiver.recv(),
            End::Shared(shared) => shared.with(shared.take.recv()?, mpsc::Receiver::recv),
        }
    }

    /// Receives the oldest value, if there is one and no other receiver is receiving.
    ///
    /// # Errors
    /// There is no value now, or there will be none.
    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        match self.end() {
            End::Owned(receiver) => receiver.try_recv(),
            End::Shared(shared) => shared.with(shared.take.try_recv()?, mpsc::Receiver::try_recv),
        }
    }

    /// Receives the oldest value; waits for at most `timeout`.
    ///
    /// # Errors
    /// The timeout passed, or all senders are dropped and no value is left.
    pub fn recv_timeout(&self, timeout: Duration) -> Result<T, RecvTimeoutError> {
        match self.end() {
            End::Owned(receiver) => receiver.recv_timeout(timeout),
            End::Shared(shared) => {
                let deadline = clock::deadline(timeout);
                let receiver = shared.take.recv_timeout(timeout)?;
                let left = Duration::from_nanos(deadline.saturating_sub(clock::now()));
                shared.with(receiver, |receiver| receiver.recv_timeout(left))
            }
        }
    }

    /// Like [`recv`](Self::recv), as a future. If it is dropped, it has received nothing. While it
    /// waits, the clones of this receiver wait behind it.
    ///
    /// It borrows the receiver exclusively. So the future is `Send` if the values are, and no
    /// [`clone`](Clone::clone) can move the receiving end during the wait.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    pub async fn recv_async(&mut self) -> Result<T, RecvError> {
        match self.end.get_mut() {
            End::Owned(receiver) => receiver.recv_async().await,
            End::Shared(shared) => {
                let receiver = shared.take.recv_async().await?;
                let mut guard = EndGuard::new(&shared.put_back, receiver);
                guard.receiver().recv_async().await
            }
        }
    }

    /// Iterates over received values, and waits for each, until all senders are dropped and no
    /// value is left.
    pub fn iter(&self) -> Iter<'_, T> {
        Iter { receiver: self }
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Self {
            sender: self.sender.clone(),
        }
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        if matches!(self.end(), End::Owned(_)) {
            let (put_back, take) = mpmc::channel(1).expect("1 is a valid capacity");
            // SAFETY: there is no reference to it, as the field `end` documents.
            let end = unsafe { &mut *self.end.get() };
            if let End::Owned(receiver) =
                std::mem::replace(end, End::Shared(SharedEnd { put_back, take }))
                && let End::Shared(shared) = end
            {
                let _ = shared.put_back.try_send(receiver);
            }
        }
        let End::Shared(shared) = self.end() else {
            unreachable!("a cloned receiver is shared");
        };
        Self {
            end: UnsafeCell::new(End::Shared(shared.clone())),
        }
    }
}

/// The iterator of [`Receiver::iter`].
#[derive(Debug)]
pub struct Iter<'a, T> {
    receiver: &'a Receiver<T>,
}

impl<T> Iterator for Iter<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.receiver.recv().ok()
    }
}

impl<'a, T> IntoIterator for &'a Receiver<T> {
    type Item = T;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sender")
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Receiver")
    }
}
