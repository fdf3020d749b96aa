//! The output of a pipeline, and the ticket of each item.
//!
//! 1. An item has a **ticket** from its acceptance until it is received. A ticket that is dropped
//!    before that counts its item as lost. Code that drops an item after a panic, a kill or at the
//!    end therefore needs no special handling.
//! 2. A pipeline in order keeps each number in `reorder`, with a result or as skipped. Results
//!    become ready as long as no number is missing.
//! 3. `in_flight` has as many permits as the pipeline may contain items, including results that
//!    were not received. Each ticket owns one.
//! 4. `available` has as many permits as there are results to receive, until it is closed. After
//!    that, receivers check the queue themselves.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use thalweg_queue::no_preempt::{LockGuard, lock};

use super::PipelineEnd;
use crate::sync::Semaphore;

/// An item or a later stage's result for it, with its ticket.
pub(super) struct InFlight<T> {
    pub(super) item: T,
    pub(super) ticket: Ticket,
}

/// Rule 1.
pub(super) struct Ticket {
    counters: Arc<PipelineCounters>,
    number: u64,
    pub(super) state: TicketState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TicketState {
    /// It was not accepted.
    Refused,
    /// Dropping the ticket counts the item as lost.
    Lost,
    Received,
}

/// The counters that all items of a pipeline share.
pub(super) struct PipelineCounters {
    pub(super) in_flight: Semaphore,
    next: AtomicU64,
    pub(super) lost: AtomicU64,
    pub(super) received: AtomicU64,
    output: Weak<dyn OutputControl>,
}

/// An output with results of any type.
pub(super) trait OutputControl: Send + Sync {
    /// This number will have no result.
    fn skip(&self, number: u64);
    /// Ends the pipeline for this reason. Only the first call has an effect.
    fn end(&self, end: PipelineEnd);
}

pub(super) struct Output<T> {
    state: Mutex<State<T>>,
    available: Semaphore,
    pub(super) counters: Arc<PipelineCounters>,
    in_order: bool,
}

struct State<T> {
    ready: VecDeque<InFlight<T>>,
    /// Rule 2.
    reorder: BTreeMap<u64, Option<InFlight<T>>>,
    next: u64,
    end: Option<PipelineEnd>,
}

impl<T> State<T> {
    /// Returns how many results became ready.
    fn advance(&mut self) -> usize {
        let before = self.ready.len();
        while let Some(entry) = self.reorder.remove(&self.next) {
            self.next += 1;
            self.ready.extend(entry);
        }
        self.ready.len() - before
    }
}

impl Ticket {
    /// Takes over the caller's permit of `in_flight`.
    pub(super) fn new(counters: &Arc<PipelineCounters>) -> Self {
        Self {
            counters: Arc::clone(counters),
            number: counters.next.fetch_add(1, Ordering::Relaxed),
            state: TicketState::Refused,
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        match self.state {
            TicketState::Refused => {}
            TicketState::Lost => drop(self.counters.lost.fetch_add(1, Ordering::Relaxed)),
            TicketState::Received => drop(self.counters.received.fetch_add(1, Ordering::Relaxed)),
        }
        if self.state != TicketState::Received
            && let Some(output) = self.counters.output.upgrade()
        {
            output.skip(self.number);
        }
        self.counters.in_flight.add_permits(1);
    }
}

impl<T: Send + 'static> Output<T> {
    pub(super) fn new(in_order: bool, in_flight: usize) -> Arc<Self> {
        Arc::new_cyclic(|me: &Weak<Self>| Self {
            state: Mutex::new(State {
                ready: VecDeque::new(),
                reorder: BTreeMap::new(),
                next: 0,
                end: None,
            }),
            available: Semaphore::new(0),
            counters: Arc::new(PipelineCounters {
                in_flight: Semaphore::new(in_flight),
                next: AtomicU64::new(0),
                lost: AtomicU64::new(0),
                received: AtomicU64::new(0),
                output: me.clone(),
            }),
            in_order,
        })
    }

    fn state(&self) -> LockGuard<'_, State<T>> {
        lock(&self.state)
    }

    /// Adds a result. After the end, it is lost.
    pub(super) fn put(&self, entry: InFlight<T>) {
        let mut late = None;
        let more = {
            let mut state = self.state();
            if state.end.is_some() {
                late = Some(entry);
                0
            } else if self.in_order {
                state.reorder.insert(entry.ticket.number, Some(entry));
                state.advance()
            } else {
                state.ready.push_back(entry);
                1
            }
        };
        drop(late);
        self.available.add_permits(more);
    }

    pub(super) fn ended(&self) -> Option<PipelineEnd> {
        self.state().end.clone()
    }

    /// The next result that is ready.
    pub(super) fn take(&self) -> Option<T> {
        let mut entry = self.state().ready.pop_front()?;
        entry.ticket.state = TicketState::Received;
        Some(entry.item)
    }

    pub(super) fn available(&self) -> &Semaphore {
        &self.available
    }
}

impl<T: Send + 'static> OutputControl for Output<T> {
    fn end(&self, end: PipelineEnd) {
        let lost = {
            let mut state = self.state();
            if state.end.is_some() {
                return;
            }
            let reorder = std::mem::take(&mut state.reorder);
            let left = reorder.into_values().flatten();
            let lost = match end {
                // Each missing number was refused and is not skipped yet.
                PipelineEnd::Drained => {
                    state.ready.extend(left);
                    Vec::new()
                }
                _ => left.collect(),
            };
            state.end = Some(end);
            lost
        };
        drop::<Vec<InFlight<T>>>(lost);
        self.available.close();
        self.counters.in_flight.close();
    }

    fn skip(&self, number: u64) {
        if !self.in_order {
            return;
        }
        let more = {
            let mut state = self.state();
            if state.end.is_some() {
                return;
            }
            state.reorder.insert(number, None);
            state.advance()
        };
        self.available.add_permits(more);
    }
}
