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

/// Receives values from a channel: [`spsc::Receiver`](crate::spsc::Receiver), [`mpsc::Receiver`](crate::mpsc::Receiver),
/// [`mpmc::Receiver`](crate::mpmc::Receiver).
///
/// When the last one is dropped the channel is closed, and what is in it is dropped.
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

    /// The oldest value, if there is one now.
    ///
    /// # Errors
    /// There is none, now or for ever.
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
        // What was sent before it was closed is visible now.
        match self.pop.try_pop() {
            Some(value) => Ok(value),
            None if self.pop.is_drained() => {
                self.wake_others(0);
                Err(TryRecvError::Closed)
            }
            None => Err(TryRecvError::Empty),
        }
    }

    /// The oldest value; waits until there is one.
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

    /// The oldest value; waits for at most `timeout` until there is one.
    ///
    /// # Errors
    /// None came in time, or the channel is closed and drained.
    pub fn recv_timeout(&self, timeout: Duration) -> Result<P::Item, RecvTimeoutError> {
        self.block(Some(clock::deadline(timeout)))
    }

    /// The oldest value; waits until `deadline` until there is one.
    ///
    /// # Errors
    /// None came in time, or the channel is closed and drained.
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
                Err(TryRecvError::Empty) => in_time = self.wait(deadline),
            }
            waited = true;
        }
    }

    /// WaiterKind waited and sees more than `mine` lets the others know: while it was on its way they were not signalled.
    pub(super) fn wake_others(&self, mine: usize) {
        let items = &self.pop.core().recv_waiters;
        if !items.has_any() {
            return;
        }
        if items.is_closed() {
            // Some may sleep since before the last value, which was under way when it was closed.
            items.close();
        } else if self.pop.has_value() {
            items.signal(self.pop.len().saturating_sub(mine));
        }
    }

    #[cold]
    fn wait(&self, deadline: Option<u64>) -> bool {
        let core = self.pop.core();
        let side = Side {
            waiters: &core.recv_waiters,
            spin: &core.recv_spin,
            wait_strategy: core.options.wait_strategy,
            transferred: self.pop.transferred(),
            capacity: self.pop.capacity(),
        };
        let ready = side.wait(deadline, || self.is_ready(), || self.is_ready());
        core.record_depth(self.pop.len());
        ready
    }

    /// Whether a receive would not wait: there is a value, or there will be none.
    pub(crate) fn is_ready(&self) -> bool {
        self.pop.has_value() || (self.is_closed() && self.pop.is_drained())
    }

    /// The oldest value, when there is one; lets the task wait until then. A future that is dropped took nothing.
    ///
    /// The receiver of an `spsc` or `mpsc` channel is not `Sync`, so this future is not `Send`: it is for tasks that stay on one
    /// thread. A task that may move between threads uses [`recv_async_mut`](Self::recv_async_mut).
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

    /// As [`recv_async`](Self::recv_async). The future has the receiver alone, so it is `Send` if the values are.
    ///
    /// # Errors
    /// As [`recv_async`](Self::recv_async).
    pub fn recv_async_mut(&mut self) -> RecvFuture<'_, P> {
        RecvFuture::new(self)
    }

    /// The values as they come, until the channel is closed and drained, as a [`Stream`](futures_core::Stream). It is `Send` where
    /// [`recv_async`](Self::recv_async) is.
    pub fn stream(&self) -> RecvStream<'_, P, &Self> {
        RecvStream::new(self)
    }

    /// As [`stream`](Self::stream). The stream has the receiver alone, so it is `Send` if the values are.
    pub fn stream_mut(&mut self) -> RecvStream<'_, P> {
        RecvStream::new(self)
    }

    /// Appends what is there to `values`, oldest first, `most` at most; how many, 1 or more.
    ///
    /// # Errors
    /// There is nothing, now or for ever.
    pub fn try_recv_batch(
        &self,
        values: &mut Vec<P::Item>,
        most: usize,
    ) -> Result<usize, TryRecvError> {
        if most == 0 {
            return Ok(0);
        }
        let count = {
            // `values` may grow in the middle of a line.
            let _no_preempt = NoPreemptGuard::enter();
            self.pop.pop_some(most, |value| values.push(value))
        };
        if count > 0 {
            return Ok(count);
        }
        values.push(self.try_recv_slow()?);
        Ok(1)
    }

    /// Appends what is there to `values`, oldest first, `most` at most; waits until there is something. How many, 1 or more.
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

    /// The values as they come, waiting for each, until the channel is closed and drained.
    pub fn iter(&self) -> Iter<'_, P> {
        Iter { receiver: self }
    }

    /// The values that are there.
    pub fn try_iter(&self) -> TryIter<'_, P> {
        TryIter { receiver: self }
    }

    /// Closes the channel: later sends are refused, and what is in it is still received. See [`Sender::close`](crate::Sender::close).
    pub fn close(&self) {
        self.pop.close();
        self.pop.core().close();
    }

    /// Whether sends are refused. There may be values left.
    pub fn is_closed(&self) -> bool {
        self.pop.core().is_closed()
    }

    /// Values inside, or a moment ago.
    pub fn len(&self) -> usize {
        self.pop.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        !self.pop.has_value()
    }

    /// Most values inside; `usize::MAX` where there is no bound.
    pub fn capacity(&self) -> usize {
        self.pop.capacity()
    }

    /// The channel's figures.
    pub fn stats(&self) -> Stats {
        self.pop.core().stats(self.pop.len())
    }

    /// A file descriptor for event loops that says when to receive.
    ///
    /// # Errors
    /// The system's: no more file descriptors.
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
        if self.pop.core().remove_receiver() {
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

/// [`Receiver::iter`].
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

/// [`Receiver::try_iter`].
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
