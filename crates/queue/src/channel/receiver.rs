//! The receiving handle of every channel.

use std::fmt;
use std::time::{Duration, Instant};
use std::{io, iter};

use super::wait::Side;
use super::{Pop, Readiness, RecvFuture, RecvStream, Stats};
use crate::clock;
use crate::error::{RecvError, RecvTimeoutError, TryRecvError};
use crate::no_preempt::NoPreemptGuard;
use crate::park_hooks::timed_out;
use crate::spin::Looked;

/// Receives values from a channel: [`spsc::Receiver`](crate::spsc::Receiver),
/// [`mpsc::Receiver`](crate::mpsc::Receiver), [`mpmc::Receiver`](crate::mpmc::Receiver),
/// [`rendezvous::Receiver`](crate::rendezvous::Receiver),
/// [`broadcast::Receiver`](crate::broadcast::Receiver).
///
/// When the last receiver is dropped, the channel is closed and the values in it are dropped. A
/// [`broadcast`](crate::broadcast) channel stays open.
pub struct Receiver<P: Pop> {
    pub(super) pop: P,
}

impl<P: Pop> Receiver<P> {
    pub(crate) fn new(pop: P) -> Self {
        Self { pop }
    }

    pub(crate) fn flavour(&self) -> &P {
        &self.pop
    }

    /// Returns the oldest value, if there is one now.
    ///
    /// # Errors
    /// [`Empty`](TryRecvError::Empty) or [`Closed`](TryRecvError::Closed).
    #[inline]
    pub fn try_recv(&self) -> Result<P::Item, TryRecvError> {
        match self.pop.pop_fast() {
            Some(value) => Ok(value),
            None => self.try_recv_slow(),
        }
    }

    #[cold]
    #[inline(never)]
    fn try_recv_slow(&self) -> Result<P::Item, TryRecvError> {
        if let Some(value) = self.pop.try_pop() {
            return Ok(value);
        }
        if !self.pop.core().is_closed() {
            return Err(TryRecvError::Empty);
        }
        // Values that were sent before the close are visible now.
        match self.pop.try_pop() {
            Some(value) => Ok(value),
            None if self.pop.is_drained() => {
                self.wake_others(0);
                Err(TryRecvError::Closed)
            }
            None => Err(TryRecvError::Empty),
        }
    }

    /// Returns the oldest value; waits until there is one.
    ///
    /// # Errors
    /// The channel is closed and drained.
    #[inline]
    pub fn recv(&self) -> Result<P::Item, RecvError> {
        match self.pop.pop_fast() {
            Some(value) => Ok(value),
            None => self.recv_slow(),
        }
    }

    #[cold]
    #[inline(never)]
    fn recv_slow(&self) -> Result<P::Item, RecvError> {
        self.block(None).map_err(|_| RecvError)
    }

    /// Returns the oldest value; waits at most `timeout` for one.
    ///
    /// # Errors
    /// No value arrived in time, or the channel is closed and drained.
    pub fn recv_timeout(&self, timeout: Duration) -> Result<P::Item, RecvTimeoutError> {
        self.block(Some(clock::deadline(timeout)))
    }

    /// Returns the oldest value; waits until `deadline` for one.
    ///
    /// # Errors
    /// No value arrived in time, or the channel is closed and drained.
    pub fn recv_deadline(&self, deadline: Instant) -> Result<P::Item, RecvTimeoutError> {
        self.block(Some(clock::at(deadline)))
    }

    fn block(&self, deadline: Option<u64>) -> Result<P::Item, RecvTimeoutError> {
        let mut in_time = true;
        let mut waited = false;
        loop {
            match self.try_recv_slow() {
                Ok(value) => {
                    if waited {
                        self.wake_others(0);
                    }
                    return Ok(value);
                }
                Err(TryRecvError::Closed) => return Err(RecvTimeoutError::Closed),
                Err(TryRecvError::Empty) if !in_time => {
                    timed_out();
                    return Err(RecvTimeoutError::TimedOut);
                }
                Err(TryRecvError::Empty) => in_time = self.wait_committed(deadline),
            }
            waited = true;
        }
    }

    /// Waits. In a rendezvous, the caller must try to receive afterwards.
    fn wait_committed(&self, deadline: Option<u64>) -> bool {
        let Some(exchange) = self.pop.exchange() else {
            return self.wait(deadline);
        };
        exchange.commit();
        self.announce();
        let in_time = self.wait(deadline);
        exchange.end_commitment();
        in_time
    }

    /// In a rendezvous: tells senders that select that a receiver waits. It is called after the
    /// receiver was added to the wait list.
    pub(super) fn announce(&self) {
        if self.pop.exchange().is_some() {
            self.pop.core().send_waiters.signal(1);
        }
    }

    /// Wakes other receivers for the values beyond the `kept` ones. A receiver that has waited
    /// calls this, because senders do not signal while a woken receiver is about to run.
    pub(super) fn wake_others(&self, kept: usize) {
        let items = &self.pop.core().recv_waiters;
        if P::IS_BROADCAST || !items.has_any() {
            return;
        }
        if items.is_closed() {
            // Some receivers may have been asleep since before the last value, which was being sent
            // when the channel was closed.
            items.close();
        } else if self.pop.has_value() {
            items.signal(self.pop.len().saturating_sub(kept));
        }
    }

    #[cold]
    fn wait(&self, deadline: Option<u64>) -> bool {
        let ready = self
            .side()
            .wait(deadline, || self.is_ready(), || self.is_ready());
        self.pop.core().record_depth(self.pop.len());
        ready
    }

    /// For a task that is about to arm: see [`Side::look`].
    #[inline(always)]
    pub(super) fn look(&self) -> Looked {
        if self.pop.core().recv_spin.is_look_due() {
            self.look_now()
        } else {
            Looked::Missed
        }
    }

    #[inline(never)]
    fn look_now(&self) -> Looked {
        self.side().look(|| self.is_ready())
    }

    fn side(&self) -> Side<'_> {
        let core = self.pop.core();
        Side {
            waiters: &core.recv_waiters,
            spin: &core.recv_spin,
            wait_strategy: core.options.wait_strategy,
            transferred: self.pop.transferred(),
            capacity: self.pop.capacity(),
            wakes_all: P::IS_BROADCAST,
        }
    }

    /// Whether a receive would return at once: there is a value, or the channel is closed and
    /// drained.
    pub(crate) fn is_ready(&self) -> bool {
        self.pop.has_value() || (self.is_closed() && self.pop.is_drained())
    }

    /// Returns a future of the oldest value. If the future is dropped, no value is lost.
    ///
    /// The receiver of an `spsc` or `mpsc` channel is not `Sync`, so this future is not `Send`: it
    /// is for tasks that stay on one thread. A task that can move between threads uses
    /// [`recv_async_mut`](Self::recv_async_mut).
    ///
    /// # Errors
    /// The channel is closed and drained.
    ///
    /// ```
    /// # use std::{future::Future, pin::pin, task::{Context, Poll, Waker}};
    /// let (sender, receiver) = thalweg_queue::spsc::channel(4).unwrap();
    /// let mut context = Context::from_waker(Waker::noop());
    /// let mut first = pin!(receiver.recv_async());
    /// assert!(first.as_mut().poll(&mut context).is_pending());
    /// sender.try_send(7).unwrap();
    /// assert_eq!(first.poll(&mut context), Poll::Ready(Ok(7)));
    /// ```
    pub fn recv_async(&self) -> RecvFuture<'_, P, &Self> {
        RecvFuture::new(self)
    }

    /// Like [`recv_async`](Self::recv_async), with an exclusive borrow of the receiver. The future
    /// is `Send` if the values are.
    ///
    /// # Errors
    /// Like [`recv_async`](Self::recv_async).
    pub fn recv_async_mut(&mut self) -> RecvFuture<'_, P> {
        RecvFuture::new(self)
    }

    /// Returns a [`Stream`](futures_core::Stream) of the values, until the channel is closed and
    /// drained. It is `Send` under the same conditions as [`recv_async`](Self::recv_async).
    pub fn stream(&self) -> RecvStream<'_, P, &Self> {
        RecvStream::new(self)
    }

    /// Like [`stream`](Self::stream), with an exclusive borrow of the receiver. The stream is
    /// `Send` if the values are.
    pub fn stream_mut(&mut self) -> RecvStream<'_, P> {
        RecvStream::new(self)
    }

    /// Appends the values that are available to `values`, oldest first, at most `most`. Returns
    /// their number, at least 1.
    ///
    /// # Errors
    /// [`Empty`](TryRecvError::Empty) or [`Closed`](TryRecvError::Closed).
    pub fn try_recv_batch(
        &self,
        values: &mut Vec<P::Item>,
        most: usize,
    ) -> Result<usize, TryRecvError> {
        if most == 0 {
            return Ok(0);
        }
        let count = {
            // `values` may reallocate between two values.
            let _no_preempt = NoPreemptGuard::enter();
            self.pop.pop_into(most, values)
        };
        if count > 0 {
            return Ok(count);
        }
        values.push(self.try_recv_slow()?);
        Ok(1)
    }

    /// Appends the values that are available to `values`, oldest first, at most `most`; waits until
    /// there is one. Returns their number, at least 1.
    ///
    /// # Errors
    /// The channel is closed and drained.
    pub fn recv_batch(&self, values: &mut Vec<P::Item>, most: usize) -> Result<usize, RecvError> {
        let mut in_time = true;
        let mut waited = false;
        loop {
            match self.try_recv_batch(values, most) {
                Ok(count) => {
                    if waited {
                        self.wake_others(0);
                    }
                    return Ok(count);
                }
                Err(TryRecvError::Closed) => return Err(RecvError),
                Err(TryRecvError::Empty) if !in_time => {
                    timed_out();
                    return Err(RecvError);
                }
                Err(TryRecvError::Empty) => in_time = self.wait(None),
            }
            waited = true;
        }
    }

    /// Returns an iterator that waits for each value, until the channel is closed and drained.
    pub fn iter(&self) -> Iter<'_, P> {
        Iter { receiver: self }
    }

    /// Returns an iterator over the values that are available. It never waits.
    pub fn try_iter(&self) -> TryIter<'_, P> {
        TryIter { receiver: self }
    }

    /// Closes the channel: later sends fail, and values in the channel can still be received. See
    /// [`Sender::close`](crate::Sender::close).
    pub fn close(&self) {
        self.pop.close();
        self.pop.core().close();
    }

    /// Whether the channel is closed. It may still contain values.
    pub fn is_closed(&self) -> bool {
        self.pop.core().is_closed()
    }

    /// The number of values in the channel. It may lag behind other threads.
    pub fn len(&self) -> usize {
        self.pop.len()
    }

    /// Whether the channel contains no value.
    pub fn is_empty(&self) -> bool {
        !self.pop.has_value()
    }

    /// The capacity of the channel; `usize::MAX` if it is unbounded.
    pub fn capacity(&self) -> usize {
        self.pop.capacity()
    }

    /// The statistics of the channel.
    pub fn stats(&self) -> Stats {
        self.pop.core().stats(self.pop.len())
    }

    /// Returns a file descriptor that tells an event loop when to receive.
    ///
    /// # Errors
    /// The error of the system: the limit of file descriptors is reached.
    pub fn readiness(&self) -> io::Result<Readiness<'_, P>> {
        Readiness::new(self)
    }
}

impl<P: Pop + Clone> Clone for Receiver<P> {
    fn clone(&self) -> Self {
        self.pop.core().add_receiver();
        Self {
            pop: self.pop.clone(),
        }
    }
}

impl<P: Pop> Drop for Receiver<P> {
    fn drop(&mut self) {
        if self.pop.core().remove_receiver() && !P::IS_BROADCAST {
            self.close();
            while self.pop.try_pop().is_some() {}
        }
    }
}

impl<P: Pop> fmt::Debug for Receiver<P> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Receiver")
            .field("len", &self.len())
            .field("capacity", &self.capacity())
            .field("closed", &self.is_closed())
            .finish()
    }
}

/// The iterator of [`Receiver::iter`].
#[derive(Debug)]
pub struct Iter<'a, P: Pop> {
    receiver: &'a Receiver<P>,
}

impl<P: Pop> Iterator for Iter<'_, P> {
    type Item = P::Item;

    fn next(&mut self) -> Option<P::Item> {
        self.receiver.recv().ok()
    }
}

impl<P: Pop> iter::FusedIterator for Iter<'_, P> {}

/// The iterator of [`Receiver::try_iter`].
#[derive(Debug)]
pub struct TryIter<'a, P: Pop> {
    receiver: &'a Receiver<P>,
}

impl<P: Pop> Iterator for TryIter<'_, P> {
    type Item = P::Item;

    fn next(&mut self) -> Option<P::Item> {
        self.receiver.try_recv().ok()
    }
}

impl<'a, P: Pop> IntoIterator for &'a Receiver<P> {
    type Item = P::Item;
    type IntoIter = Iter<'a, P>;

    fn into_iter(self) -> Iter<'a, P> {
        self.iter()
    }
}
