//! Sending through a rendezvous: the sender waits until a receiver has taken the value.

use std::task::{Poll, Waker};

use super::wait::spin;
use super::{Push, Sender, WaitStrategy};
use crate::clock;
use crate::error::{SendError, SendTimeoutError};
use crate::exchange::{Exchange, Offered};
use crate::park_hooks::{CallerParker, timed_out};

impl<P: Push> Sender<P> {
    /// Sends; waits until a receiver has taken the value.
    pub(super) fn hand_over(
        &self,
        exchange: &Exchange<P::Item>,
        value: P::Item,
        deadline: Option<u64>,
    ) -> Result<(), SendTimeoutError<P::Item>> {
        let core = self.push.core();
        let caller = CallerParker::current();
        let mut outcome = exchange.offer(value, caller.waker());
        if !matches!(outcome, Offered::Closed(_)) {
            core.recv_waiters.signal(1);
        }
        if let Offered::Pending(offer) = outcome {
            let mut in_time = true;
            while in_time && !exchange.has_ended(offer) {
                in_time = self.wait_for_end(exchange, offer, &caller, deadline);
            }
            outcome = exchange.withdraw(offer);
        }
        match outcome {
            Offered::Closed(value) => Err(SendTimeoutError::Closed(value)),
            Offered::Withdrawn(value) => {
                self.pass_on();
                timed_out();
                Err(SendTimeoutError::TimedOut(value))
            }
            Offered::Taken | Offered::Pending(_) => Ok(()),
        }
    }

    /// Waits until the offer has ended or the caller is woken (returns `true`), or until the
    /// deadline (returns `false`).
    fn wait_for_end(
        &self,
        exchange: &Exchange<P::Item>,
        offer: u64,
        caller: &CallerParker,
        deadline: Option<u64>,
    ) -> bool {
        let core = self.push.core();
        let has_ended = || exchange.has_ended(offer);
        if caller.is_actor() {
            core.send_waiters.record_park(0);
            return caller.park(deadline);
        }
        match core.options.wait_strategy {
            WaitStrategy::Spin => return spin(deadline, has_ended),
            WaitStrategy::Adaptive => {
                // A receiver takes one value at a time, as if from a channel for one.
                if core.send_spin.until(self.push.transferred(), 1, has_ended) {
                    return true;
                }
            }
            WaitStrategy::Park => {}
        }
        let since = clock::now();
        let woken = core.send_spin.sleep(|| caller.park(deadline));
        let parked = clock::now().saturating_sub(since);
        core.send_waiters.record_park(parked);
        woken
    }

    /// The same in a task. `value` is the value before it is offered, `offer` is set while it is
    /// offered.
    pub(super) fn poll_hand_over(
        &self,
        exchange: &Exchange<P::Item>,
        value: &mut Option<P::Item>,
        offer: &mut Option<u64>,
        waker: &Waker,
    ) -> Poll<Result<(), SendError<P::Item>>> {
        let outcome = match offer.take() {
            Some(offer) => exchange.poll(offer, waker),
            None => {
                let value = value
                    .take()
                    .expect("the future was polled after it completed");
                let outcome = exchange.offer(value, waker.clone());
                if !matches!(outcome, Offered::Closed(_)) {
                    self.push.core().recv_waiters.signal(1);
                }
                outcome
            }
        };
        match outcome {
            Offered::Taken => Poll::Ready(Ok(())),
            Offered::Closed(value) | Offered::Withdrawn(value) => {
                Poll::Ready(Err(SendError::Closed(value)))
            }
            Offered::Pending(number) => {
                *offer = Some(number);
                Poll::Pending
            }
        }
    }

    /// Called when the future of an offer is dropped: no receiver gets the value.
    pub(super) fn cancel_hand_over(&self, offer: u64) {
        if let Some(exchange) = self.push.exchange()
            && let Offered::Withdrawn(value) = exchange.withdraw(offer)
        {
            self.pass_on();
            drop(value);
        }
    }

    /// Called after an offer was withdrawn. A receiver that was woken for it may now wait for a
    /// sender that selects.
    fn pass_on(&self) {
        self.push.core().send_waiters.signal(1);
    }
}
