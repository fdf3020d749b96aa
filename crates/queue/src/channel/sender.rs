//! The sending handle of every channel.

use std::fmt;
use std::mem;
use std::time::{Duration, Instant};

use super::wait::Side;
use super::{Overflow, Push, SendFuture, Stats};
use crate::clock;
use crate::error::{Closed, SendError, SendTimeoutError, TrySendError};
use crate::park_hooks::timed_out;
use crate::spin::Looked;
use crate::sync::{Ordering, yield_now};

/// How often a sender that evicts values yields to a thread that is using the last slot.
const EVICT_YIELDS: u32 = 64;
/// After these yields, the sender sleeps for this long between attempts.
const RETRY_INTERVAL: Duration = Duration::from_millis(1);

/// Sends values into a channel: [`spsc::Sender`](crate::spsc::Sender),
/// [`mpsc::Sender`](crate::mpsc::Sender), [`mpmc::Sender`](crate::mpmc::Sender),
/// [`rendezvous::Sender`](crate::rendezvous::Sender),
/// [`broadcast::Sender`](crate::broadcast::Sender).
///
/// When the last sender is dropped, the channel is closed. Values in it can still be received.
pub struct Sender<P: Push> {
    pub(super) push: P,
}

impl<P: Push> Sender<P> {
    pub(crate) fn new(push: P) -> Self {
        Self { push }
    }

    pub(crate) fn flavour(&self) -> &P {
        &self.push
    }

    /// Sends if the channel has capacity now. Ignores the overflow policy.
    ///
    /// # Errors
    /// Returns the value if the channel is full or closed.
    #[inline]
    pub fn try_send(&self, value: P::Item) -> Result<(), TrySendError<P::Item>> {
        match self.push.push_fast(value) {
            Ok(()) => Ok(()),
            Err(value) => self.try_send_slow(value),
        }
    }

    #[cold]
    #[inline(never)]
    fn try_send_slow(&self, value: P::Item) -> Result<(), TrySendError<P::Item>> {
        if self.push.core().is_closed() {
            return Err(TrySendError::Closed(value));
        }
        match self.push.try_push(value) {
            Ok(()) => Ok(()),
            Err(value) if self.push.core().is_closed() => Err(TrySendError::Closed(value)),
            Err(value) => Err(TrySendError::Full(value)),
        }
    }

    /// Sends according to the channel's [`Overflow`] policy. By default, it waits for capacity.
    ///
    /// # Errors
    /// Returns the value if the channel is closed, or if the policy returns it.
    #[inline]
    pub fn send(&self, value: P::Item) -> Result<(), SendError<P::Item>> {
        match self.push.push_fast(value) {
            Ok(()) => Ok(()),
            Err(value) => self.send_slow(value),
        }
    }

    #[cold]
    #[inline(never)]
    fn send_slow(&self, value: P::Item) -> Result<(), SendError<P::Item>> {
        let policy = self.push.core().options.overflow;
        if self.push.exchange().is_some()
            && matches!(policy, Overflow::Block | Overflow::BlockFor(_))
        {
            // It waits until the value is taken. `try_send` does not.
            return self.overflow(value);
        }
        match self.try_send_slow(value) {
            Ok(()) => Ok(()),
            Err(TrySendError::Closed(value)) => Err(SendError::Closed(value)),
            Err(TrySendError::Full(value)) => self.overflow(value),
        }
    }

    fn overflow(&self, value: P::Item) -> Result<(), SendError<P::Item>> {
        let core = self.push.core();
        core.record_depth(self.push.len());
        match core.options.overflow {
            Overflow::Block => self.block(value, None).map_err(into_send_error),
            Overflow::BlockFor(time) => self
                .block(value, Some(clock::deadline(time)))
                .map_err(into_send_error),
            Overflow::Fail => Err(SendError::Full(value)),
            Overflow::DropNewest => {
                core.dropped_newest.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
            Overflow::DropOldest => self.evict_and_send(value, 1),
            Overflow::Latest => self.evict_and_send(value, usize::MAX),
        }
    }

    /// Evicts up to `most` of the oldest values at a time until the new value fits.
    fn evict_and_send(&self, mut value: P::Item, most: usize) -> Result<(), SendError<P::Item>> {
        let core = self.push.core();
        let count = if most == 1 {
            &core.dropped_oldest
        } else {
            &core.conflated
        };
        let mut tries = 0;
        loop {
            // Values that are sent meanwhile are not older than this one.
            for _ in 0..most.min(self.push.capacity()) {
                let Some(oldest) = self.push.evict() else {
                    break;
                };
                count.fetch_add(1, Ordering::Relaxed);
                drop(oldest);
            }
            match self.try_send(value) {
                Ok(()) => {
                    self.wake_others(0);
                    return Ok(());
                }
                Err(TrySendError::Closed(back)) => return Err(SendError::Closed(back)),
                Err(TrySendError::Full(back)) => value = back,
            }
            // The channel is full, but there is nothing to evict: another thread has claimed a slot
            // and has not filled or released it yet. This takes long only if that thread is not
            // running. No signal follows, so this is the one wait that polls by time.
            tries += 1;
            if tries < EVICT_YIELDS {
                yield_now();
            } else {
                self.wait(Some(clock::deadline(RETRY_INTERVAL)));
                timed_out();
            }
        }
    }

    /// Sends; waits at most `timeout` for capacity. Ignores the overflow policy.
    ///
    /// # Errors
    /// Returns the value if the channel stayed full or is closed.
    pub fn send_timeout(
        &self,
        value: P::Item,
        timeout: Duration,
    ) -> Result<(), SendTimeoutError<P::Item>> {
        self.block(value, Some(clock::deadline(timeout)))
    }

    /// Sends; waits until `deadline` for capacity. Ignores the overflow policy.
    ///
    /// # Errors
    /// Returns the value if the channel stayed full or is closed.
    pub fn send_deadline(
        &self,
        value: P::Item,
        deadline: Instant,
    ) -> Result<(), SendTimeoutError<P::Item>> {
        self.block(value, Some(clock::at(deadline)))
    }

    fn block(
        &self,
        mut value: P::Item,
        deadline: Option<u64>,
    ) -> Result<(), SendTimeoutError<P::Item>> {
        if let Some(exchange) = self.push.exchange() {
            return self.hand_over(exchange, value, deadline);
        }
        let mut in_time = true;
        let mut waited = false;
        loop {
            match self.try_send(value) {
                Ok(()) => {
                    if waited {
                        self.wake_others(0);
                    }
                    return Ok(());
                }
                Err(TrySendError::Closed(back)) => return Err(SendTimeoutError::Closed(back)),
                Err(TrySendError::Full(back)) if !in_time => {
                    timed_out();
                    return Err(SendTimeoutError::TimedOut(back));
                }
                Err(TrySendError::Full(back)) => value = back,
            }
            in_time = self.wait(deadline);
            waited = true;
        }
    }

    /// Wakes other senders for the capacity beyond the `kept` ones. A sender that has waited calls
    /// this, because receivers do not signal while a woken sender is about to run.
    pub(super) fn wake_others(&self, kept: usize) {
        let room = &self.push.core().send_waiters;
        if room.has_any() && self.push.has_capacity() {
            let free = match self.push.exchange() {
                None => self.push.capacity().saturating_sub(self.push.len()),
                // A receiver waits, and perhaps not for the caller.
                Some(_) => kept + 1,
            };
            room.signal(free.saturating_sub(kept));
        }
    }

    #[cold]
    fn wait(&self, deadline: Option<u64>) -> bool {
        self.side().wait(
            deadline,
            || self.shows_capacity(),
            || self.push.has_capacity() || self.push.core().send_waiters.is_closed(),
        )
    }

    /// For a task that is about to arm: see [`Side::look`].
    #[inline(always)]
    pub(super) fn look(&self) -> Looked {
        if self.push.core().send_spin.is_look_due() {
            self.look_now()
        } else {
            Looked::Missed
        }
    }

    #[inline(never)]
    fn look_now(&self) -> Looked {
        self.side().look(|| self.shows_capacity())
    }

    fn side(&self) -> Side<'_> {
        let core = self.push.core();
        Side {
            waiters: &core.send_waiters,
            spin: &core.send_spin,
            wait_strategy: core.options.wait_strategy,
            transferred: self.push.transferred(),
            capacity: self.push.capacity(),
            wakes_all: false,
        }
    }

    /// Whether a send is likely to return at once.
    fn shows_capacity(&self) -> bool {
        self.push.has_visible_capacity() || self.push.core().send_waiters.is_closed()
    }

    /// Returns a future that sends when there is capacity. Ignores the overflow policy. If the
    /// future is dropped before it completes, nothing is sent. In a
    /// [`rendezvous`](crate::rendezvous), the future completes when a receiver takes the value, even
    /// if it is not polled again.
    ///
    /// The sender of an `spsc` or `mpsc` channel is not `Sync`, so this future is not `Send`: it is
    /// for tasks that stay on one thread. A task that can move between threads uses
    /// [`send_async_mut`](Self::send_async_mut).
    ///
    /// # Errors
    /// Returns the value if the channel is closed.
    pub fn send_async(&self, value: P::Item) -> SendFuture<'_, P, &Self> {
        SendFuture::new(self, value)
    }

    /// Like [`send_async`](Self::send_async), with an exclusive borrow of the sender. The future is
    /// `Send` if the values are.
    ///
    /// # Errors
    /// Like [`send_async`](Self::send_async).
    pub fn send_async_mut(&mut self, value: P::Item) -> SendFuture<'_, P> {
        SendFuture::new(self, value)
    }

    /// Sends as many of `values` as fit, from the front, and removes them from the vector. Returns
    /// their number.
    ///
    /// # Errors
    /// The channel is closed; `values` is unchanged.
    pub fn try_send_batch(&self, values: &mut Vec<P::Item>) -> Result<usize, Closed> {
        if self.push.core().is_closed() {
            return Err(Closed);
        }
        Ok(self.push.push_some(values))
    }

    /// Sends all of `values`; waits for capacity as often as necessary. Ignores the overflow
    /// policy.
    ///
    /// # Errors
    /// The channel is closed; the values that were not sent remain in `values`.
    pub fn send_batch(&self, values: &mut Vec<P::Item>) -> Result<(), Closed> {
        if self.push.exchange().is_some() {
            return self.send_each(values);
        }
        let mut waited = false;
        loop {
            self.try_send_batch(values)?;
            if values.is_empty() {
                if waited {
                    self.wake_others(0);
                }
                return Ok(());
            }
            if !self.wait(None) && self.is_full() {
                timed_out();
                return Err(Closed);
            }
            waited = true;
        }
    }

    fn send_each(&self, values: &mut Vec<P::Item>) -> Result<(), Closed> {
        let mut rest = mem::take(values).into_iter();
        while let Some(value) = rest.next() {
            if let Err(error) = self.block(value, None) {
                values.push(error.into_inner());
                values.extend(rest);
                return Err(Closed);
            }
        }
        Ok(())
    }

    /// Closes the channel: later sends fail, and values in the channel can still be received.
    ///
    /// On an `spsc` or `mpsc` channel, a send on another handle may run at the same moment. If its
    /// value arrives after the receiver's last check, the value is dropped with the channel.
    pub fn close(&self) {
        self.push.close();
        self.push.core().close();
    }

    /// Whether the channel is closed, so that sends fail.
    pub fn is_closed(&self) -> bool {
        self.push.core().is_closed()
    }

    /// The number of values in the channel. It may lag behind other threads.
    pub fn len(&self) -> usize {
        self.push.len()
    }

    /// Whether the channel contains no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a send would wait.
    pub fn is_full(&self) -> bool {
        !self.push.has_capacity()
    }

    /// The capacity of the channel; `usize::MAX` if it is unbounded.
    pub fn capacity(&self) -> usize {
        self.push.capacity()
    }

    /// The statistics of the channel.
    pub fn stats(&self) -> Stats {
        self.push.core().stats(self.push.len())
    }
}

fn into_send_error<T>(error: SendTimeoutError<T>) -> SendError<T> {
    match error {
        SendTimeoutError::TimedOut(value) => SendError::TimedOut(value),
        SendTimeoutError::Closed(value) => SendError::Closed(value),
    }
}

impl<P: Push + Clone> Clone for Sender<P> {
    fn clone(&self) -> Self {
        self.push.core().add_sender();
        Self {
            push: self.push.clone(),
        }
    }
}

impl<P: Push> Drop for Sender<P> {
    fn drop(&mut self) {
        if self.push.core().remove_sender() {
            self.close();
        }
    }
}

impl<P: Push> fmt::Debug for Sender<P> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Sender")
            .field("len", &self.len())
            .field("capacity", &self.capacity())
            .field("closed", &self.is_closed())
            .finish()
    }
}
