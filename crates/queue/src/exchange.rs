//! The place where the senders and receivers of a rendezvous channel meet. It has no capacity.
//!
//! 1. A sender that waits **offers** its value. The offer ends in one of three ways: a receiver
//!    takes the value, the sender withdraws it, or the close rejects it. All three happen under the
//!    lock, so exactly one of them happens. The sender gets the value back in the last two.
//! 2. A receiver that blocks **commits** first. When it has waited, it ends its commitment, and then
//!    takes a value if there is one. It does not return without this attempt.
//! 3. A sender **hands over** its value without waiting if there are more commitments than values.
//!    By rule 2, a committed receiver or a faster one takes it: while values that were handed over
//!    outnumber the commitments, receivers are about to take them.
//! 4. A task that waits does not commit, because it can be dropped. A sender that waits offers its
//!    value to it. A sender that does not wait (`try_send`) can only hand its value over. It does so
//!    if no other value is there and a task waits. If that task is dropped, the value stays for the
//!    next receiver.
//! 5. Values are handed over before they are offered, so receivers take them in this order. Offers
//!    are taken in the order of their numbers.
//!
//! Wakers and values are dropped and called without the lock, because they may run any code.

use std::collections::VecDeque;
use std::mem;
use std::task::Waker;

use crate::sync::{AtomicBool, AtomicU64, AtomicUsize, Mutex, Ordering, lock};

/// See the module. It is part of the traits of channel flavours, and only this crate uses it.
#[derive(Debug)]
pub struct Exchange<T> {
    /// The number of values that a receiver can take. Written under the lock.
    ready: AtomicUsize,
    /// The number of the oldest offer, or of the next one if there is none. Written under the lock.
    oldest: AtomicU64,
    is_closed: AtomicBool,
    state: Mutex<State<T>>,
}

#[derive(Debug)]
struct State<T> {
    handed: VecDeque<T>,
    offers: VecDeque<Offer<T>>,
    /// The values of the offers that the close has rejected, until their senders collect them.
    rejected: Vec<(u64, T)>,
    next: u64,
    committed: usize,
    taken: u64,
    is_closed: bool,
}

#[derive(Debug)]
struct Offer<T> {
    number: u64,
    value: T,
    waker: Waker,
}

/// What became of a value that a sender offers.
#[derive(Debug)]
pub(crate) enum Offered<T> {
    /// A receiver has it, or has committed to take it.
    Taken,
    /// It waits for a receiver; the number identifies the offer.
    Pending(u64),
    /// The sender has it back, because the channel is closed.
    Closed(T),
    /// The sender has it back, because it withdrew the offer.
    Withdrawn(T),
}

impl<T> Exchange<T> {
    pub(crate) fn new() -> Self {
        Self {
            ready: AtomicUsize::new(0),
            oldest: AtomicU64::new(0),
            is_closed: AtomicBool::new(false),
            state: Mutex::new(State {
                handed: VecDeque::new(),
                offers: VecDeque::new(),
                rejected: Vec::new(),
                next: 0,
                committed: 0,
                taken: 0,
                is_closed: false,
            }),
        }
    }

    /// The number of values that a receiver can take now.
    #[inline]
    pub(crate) fn ready(&self) -> usize {
        self.ready.load(Ordering::Acquire)
    }

    /// The number of values that receivers have taken.
    pub(crate) fn taken(&self) -> u64 {
        lock(&self.state).taken
    }

    /// Calls `f` under the lock, then publishes the state for threads without the lock.
    fn update<R>(&self, f: impl FnOnce(&mut State<T>) -> R) -> R {
        let mut state = lock(&self.state);
        let result = f(&mut state);
        self.ready.store(state.ready(), Ordering::Release);
        let oldest = state
            .offers
            .front()
            .map_or(state.next, |offer| offer.number);
        self.oldest.store(oldest, Ordering::Release);
        result
    }
}

/// For senders. They wake a receiver if a value was handed over or offered.
impl<T> Exchange<T> {
    /// Rules 1 and 3. `waker` is called when the offer has ended.
    pub(crate) fn offer(&self, value: T, waker: Waker) -> Offered<T> {
        self.update(|state| {
            if state.is_closed {
                return Offered::Closed(value);
            }
            if state.committed > state.ready() {
                state.handed.push_back(value);
                return Offered::Taken;
            }
            let number = state.next;
            state.next += 1;
            state.offers.push_back(Offer {
                number,
                value,
                waker,
            });
            Offered::Pending(number)
        })
    }

    /// Rules 3 and 4. `task_waits`: whether a receiver waits that may not have committed.
    pub(crate) fn hand_over(&self, value: T, task_waits: impl FnOnce() -> bool) -> Result<(), T> {
        self.update(|state| {
            if state.is_closed || !state.accepts(task_waits) {
                return Err(value);
            }
            state.handed.push_back(value);
            Ok(())
        })
    }

    /// Whether [`hand_over`](Self::hand_over) may succeed.
    pub(crate) fn accepts(&self, task_waits: impl FnOnce() -> bool) -> bool {
        lock(&self.state).accepts(task_waits)
    }

    /// Whether an offer has ended. Cheap: for spinning.
    #[inline]
    pub(crate) fn has_ended(&self, number: u64) -> bool {
        self.oldest.load(Ordering::Acquire) > number
    }

    /// Returns what became of an offer. If it is pending, replaces its waker.
    pub(crate) fn poll(&self, number: u64, waker: &Waker) -> Offered<T> {
        if self.has_ended(number) {
            return self.withdraw(number);
        }
        let mut waker = waker.clone();
        let is_pending = self.update(|state| match state.offer(number) {
            Some(at) => {
                mem::swap(&mut state.offers[at].waker, &mut waker);
                true
            }
            None => false,
        });
        if is_pending {
            Offered::Pending(number)
        } else {
            self.withdraw(number)
        }
    }

    /// Ends an offer if it has not ended. Returns what became of it.
    pub(crate) fn withdraw(&self, number: u64) -> Offered<T> {
        // The close sets this before it ends an offer.
        if self.has_ended(number) && !self.is_closed.load(Ordering::Acquire) {
            return Offered::Taken;
        }
        let (withdrawn, _waker) = self.update(|state| {
            if let Some(at) = state.offer(number)
                && let Some(offer) = state.offers.remove(at)
            {
                return (Offered::Withdrawn(offer.value), Some(offer.waker));
            }
            let rejected = state.rejected.iter().position(|(one, _)| *one == number);
            let outcome = match rejected {
                Some(at) => Offered::Closed(state.rejected.swap_remove(at).1),
                None => Offered::Taken,
            };
            (outcome, None)
        });
        withdrawn
    }

    /// Rejects all offers and every later value. Values that were handed over stay.
    pub(crate) fn close(&self) {
        let rejected = self.update(|state| {
            state.is_closed = true;
            self.is_closed.store(true, Ordering::Release);
            let offers = mem::take(&mut state.offers);
            let mut wakers = Vec::with_capacity(offers.len());
            for offer in offers {
                state.rejected.push((offer.number, offer.value));
                wakers.push(offer.waker);
            }
            wakers
        });
        rejected.into_iter().for_each(Waker::wake);
    }
}

/// For receivers. They wake a sender that selects after each commitment and each value.
impl<T> Exchange<T> {
    /// Takes the next value, and wakes its sender if it waits.
    pub(crate) fn take(&self) -> Option<T> {
        if self.ready() == 0 {
            return None;
        }
        let (value, waker) = self.update(State::take)?;
        waker.into_iter().for_each(Waker::wake);
        Some(value)
    }

    /// Rule 2. [`end_commitment`](Self::end_commitment) must follow, and then [`take`](Self::take).
    pub(crate) fn commit(&self) {
        lock(&self.state).committed += 1;
    }

    /// Rule 2.
    pub(crate) fn end_commitment(&self) {
        lock(&self.state).committed -= 1;
    }
}

impl<T> State<T> {
    fn ready(&self) -> usize {
        self.handed.len() + self.offers.len()
    }

    fn accepts(&self, task_waits: impl FnOnce() -> bool) -> bool {
        let ready = self.ready();
        self.committed > ready || (ready == 0 && task_waits())
    }

    /// Rule 5.
    fn take(&mut self) -> Option<(T, Option<Waker>)> {
        let taken = match self.handed.pop_front() {
            Some(value) => (value, None),
            None => {
                let offer = self.offers.pop_front()?;
                (offer.value, Some(offer.waker))
            }
        };
        self.taken += 1;
        Some(taken)
    }

    /// The index of an offer that has not ended.
    fn offer(&self, number: u64) -> Option<usize> {
        self.offers
            .binary_search_by_key(&number, |offer| offer.number)
            .ok()
    }
}
