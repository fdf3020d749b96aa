//! Waiting for the first of several channel operations, or for a deadline.

use std::fmt;
use std::task::Waker;
use std::time::{Duration, Instant};

use super::{Pop, Push, Receiver, Sender};
use crate::clock;
use crate::park_hooks::{CallerParker, timed_out};
use crate::random;
use crate::spin::AdaptiveSpin;
use crate::wait_list::{Ticket, WaitList, WaiterKind};

/// One operation to wait for.
struct Case<'a> {
    waiters: &'a WaitList,
    arm: Box<dyn Fn(Waker) -> Ticket + 'a>,
    ready: Box<dyn Fn() -> bool + 'a>,
    /// Wakes other waiters for the values or the capacity beyond this number.
    wake_others: Box<dyn Fn(usize) + 'a>,
}

/// An operation of a [`Select`], as [`Select::recv`] and [`Select::send`] return it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation(usize);

/// Waits until one of several operations would not block.
///
/// A new `Select` chooses at random among the operations that are ready, with equal probability. A
/// `Select` that is used again takes turns: it starts after the operation that was ready last. A
/// busy channel therefore does not starve the others, whether you build the `Select` once or in
/// each round.
///
/// An operation on a closed channel is ready. The `Select` does not perform the operation: call
/// `try_recv` or `try_send`. On an `mpmc` channel another thread may be faster; wait again in that
/// case.
///
/// ```
/// use std::time::Duration;
/// use thalweg_queue::{Select, mpmc, mpsc};
/// let (sender, numbers) = mpsc::channel::<u32>(4).unwrap();
/// let (results, _receiver) = mpmc::channel::<u32>(1).unwrap();
/// sender.send(20).unwrap();
///
/// let mut select = Select::new();
/// let number = select.recv(&numbers);
/// let result = select.send(&results);
/// let (mut received, mut sent) = (0, 0);
/// while let Some(ready) = select.ready_timeout(Duration::from_millis(1)) {
///     if ready == number {
///         received += numbers.try_recv().expect("nobody else receives");
///     } else if ready == result {
///         sent += u32::from(results.try_send(received).is_ok());
///     }
/// }
/// assert_eq!((received, sent), (20, 1));
/// ```
#[derive(Default)]
pub struct Select<'a> {
    cases: Vec<Case<'a>>,
    /// The operation after the one that was ready last; `None` before the first.
    next: Option<usize>,
    /// The indices of all cases in random order.
    order: Vec<usize>,
}

impl<'a> Select<'a> {
    /// Creates an empty set of operations.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an operation that is ready when `receiver` has a value or is closed.
    pub fn recv<P: Pop>(&mut self, receiver: &'a Receiver<P>) -> Operation {
        let waiters: &WaitList = &receiver.flavour().core().recv_waiters;
        self.add(Case {
            waiters,
            arm: Box::new(|waker| {
                let transferred = receiver.flavour().transferred();
                let ticket = waiters.arm(WaiterKind::Task, waker, transferred);
                receiver.announce();
                ticket
            }),
            ready: Box::new(|| receiver.is_ready()),
            wake_others: Box::new(|taken| receiver.wake_others(taken)),
        })
    }

    /// Adds an operation that is ready when `sender` has capacity or is closed.
    pub fn send<P: Push>(&mut self, sender: &'a Sender<P>) -> Operation {
        let waiters: &WaitList = &sender.flavour().core().send_waiters;
        self.add(Case {
            waiters,
            arm: Box::new(|waker| {
                waiters.arm(WaiterKind::Task, waker, sender.flavour().transferred())
            }),
            ready: Box::new(|| sender.flavour().has_capacity() || sender.is_closed()),
            wake_others: Box::new(|taken| sender.wake_others(taken)),
        })
    }

    fn add(&mut self, case: Case<'a>) -> Operation {
        self.order.push(self.cases.len());
        self.cases.push(case);
        Operation(self.cases.len() - 1)
    }

    /// Returns an operation that is ready now. `None`: none is ready, or none has been added.
    pub fn try_ready(&mut self) -> Option<Operation> {
        let count = self.cases.len();
        let is_ready = |index: usize| (self.cases[index].ready)();
        let mut found = None;
        for i in 0..count {
            let index = match self.next {
                Some(next) => (next + i) % count,
                // Every order has the same probability, so every ready operation does too
                // (Fisher-Yates shuffle).
                None => {
                    self.order.swap(i, i + random::below(count - i));
                    self.order[i]
                }
            };
            if is_ready(index) {
                found = Some(index);
                break;
            }
        }
        let index = found?;
        self.next = Some(index + 1);
        Some(Operation(index))
    }

    /// Waits until an operation is ready and returns it.
    ///
    /// # Panics
    /// If no operation has been added: the call would never return.
    pub fn ready(&mut self) -> Operation {
        self.wait(None).expect("there is no deadline")
    }

    /// Waits until an operation is ready and returns it, or returns `None` after `timeout`.
    ///
    /// # Panics
    /// If no operation has been added, at once, like [`ready`](Self::ready). Use
    /// [`try_ready`](Self::try_ready) if the set may be empty.
    ///
    /// ```should_panic
    /// use std::time::Duration;
    /// use thalweg_queue::Select;
    ///
    /// Select::new().ready_timeout(Duration::from_secs(60));
    /// ```
    pub fn ready_timeout(&mut self, timeout: Duration) -> Option<Operation> {
        self.wait(Some(clock::deadline(timeout)))
    }

    /// Waits until an operation is ready and returns it, or returns `None` at `deadline`.
    ///
    /// # Panics
    /// Like [`ready_timeout`](Self::ready_timeout).
    pub fn ready_deadline(&mut self, deadline: Instant) -> Option<Operation> {
        self.wait(Some(clock::at(deadline)))
    }

    fn wait(&mut self, deadline: Option<u64>) -> Option<Operation> {
        assert!(
            !self.cases.is_empty(),
            "a Select without operations cannot become ready"
        );
        let mut spin = AdaptiveSpin::new();
        let caller = CallerParker::current();
        loop {
            let mut found = self.try_ready();
            if found.is_none() && !caller.is_actor() {
                spin.until(|| {
                    found = self.try_ready();
                    found.is_some()
                });
            }
            if found.is_some() {
                return found;
            }
            let tickets: Vec<Ticket> = self
                .cases
                .iter()
                .map(|case| (case.arm)(caller.waker()))
                .collect();
            found = self.try_ready();
            let mut in_time = true;
            if found.is_none() {
                in_time = caller.park(deadline);
                found = self.try_ready();
            }
            for (index, (case, ticket)) in self.cases.iter().zip(tickets).enumerate() {
                if !case.waiters.disarm(WaiterKind::Task, ticket) {
                    // A waker removed this entry for a value that this call does not take, so
                    // another waiter must get it. If there is nothing more, no waiter is woken;
                    // otherwise waiters would wake each other for ever.
                    (case.wake_others)(usize::from(found == Some(Operation(index))));
                }
            }
            if found.is_some() {
                return found;
            }
            if !in_time {
                timed_out();
                return None;
            }
        }
    }
}

impl fmt::Debug for Select<'_> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Select")
            .field("operations", &self.cases.len())
            .finish()
    }
}
