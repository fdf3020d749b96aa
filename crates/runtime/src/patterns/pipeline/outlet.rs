//! Where a pipeline's results come out, and the way of each item.
//!
//! 1. An item has a **ticket** from its acceptance until it is received. A ticket that goes in any other way says that its item is lost: whoever
//!    drops it, over a panic, a kill or at the end, need not know.
//! 2. A pipeline that keeps the order has each ticket's number in its line, as a result or as one that is not to come; results come out as far as no number is missing.
//! 3. There are as many permits of `inside` as there may be items inside, results that nobody received included. A ticket has one.
//! 4. There are as many permits of `there` as results that can be received, until it is closed: then who receives looks itself.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use thalweg_queue::no_preempt::{LockGuard, lock};

use super::PipelineEnd;
use crate::sync::Semaphore;

/// An item, or what became of it so far.
pub(super) struct Flow<T> {
    pub(super) item: T,
    pub(super) ticket: Ticket,
}

/// Rule 1.
pub(super) struct Ticket {
    way: Arc<Way>,
    number: u64,
    pub(super) fate: Fate,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It was not accepted.
    Refused,
    /// It is lost, if it goes now.
    Lost,
    Received,
}

/// What all items of a pipeline share.
pub(super) struct Way {
    pub(super) inside: Semaphore,
    next: AtomicU64,
    pub(super) lost: AtomicU64,
    pub(super) received: AtomicU64,
    line: Weak<dyn Line>,
}

/// An outlet, for whoever need not know of what.
pub(super) trait Line: Send + Sync {
    /// A number is not to come.
    fn skip(&self, number: u64);
    /// Nothing comes any more, and that is why, unless it was said before.
    fn end(&self, end: PipelineEnd);
}

pub(super) struct Outlet<T> {
    state: Mutex<State<T>>,
    there: Semaphore,
    pub(super) way: Arc<Way>,
    in_order: bool,
}

struct State<T> {
    ready: VecDeque<Flow<T>>,
    /// Rule 2.
    line: BTreeMap<u64, Option<Flow<T>>>,
    next: u64,
    end: Option<PipelineEnd>,
}

impl<T> State<T> {
    /// How many became ready.
    fn advance(&mut self) -> usize {
        let before = self.ready.len();
        while let Some(flow) = self.line.remove(&self.next) {
            self.next += 1;
            self.ready.extend(flow);
        }
        self.ready.len() - before
    }
}

impl Ticket {
    /// The caller has a permit of `inside`, which is the ticket's now.
    pub(super) fn new(way: &Arc<Way>) -> Self {
        Self {
            way: Arc::clone(way),
            number: way.next.fetch_add(1, Ordering::Relaxed),
            fate: Fate::Refused,
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        match self.fate {
            Fate::Refused => {}
            Fate::Lost => drop(self.way.lost.fetch_add(1, Ordering::Relaxed)),
            Fate::Received => drop(self.way.received.fetch_add(1, Ordering::Relaxed)),
        }
        if self.fate != Fate::Received
            && let Some(line) = self.way.line.upgrade()
        {
            line.skip(self.number);
        }
        self.way.inside.add_permits(1);
    }
}

impl<T: Send + 'static> Outlet<T> {
    pub(super) fn new(in_order: bool, inside: usize) -> Arc<Self> {
        Arc::new_cyclic(|me: &Weak<Self>| Self {
            state: Mutex::new(State {
                ready: VecDeque::new(),
                line: BTreeMap::new(),
                next: 0,
                end: None,
            }),
            there: Semaphore::new(0),
            way: Arc::new(Way {
                inside: Semaphore::new(inside),
                next: AtomicU64::new(0),
                lost: AtomicU64::new(0),
                received: AtomicU64::new(0),
                line: me.clone(),
            }),
            in_order,
        })
    }

    fn state(&self) -> LockGuard<'_, State<T>> {
        lock(&self.state)
    }

    /// A result. After the end it is lost.
    pub(super) fn put(&self, flow: Flow<T>) {
        let mut late = None;
        let more = {
            let mut state = self.state();
            if state.end.is_some() {
                late = Some(flow);
                0
            } else if self.in_order {
                state.line.insert(flow.ticket.number, Some(flow));
                state.advance()
            } else {
                state.ready.push_back(flow);
                1
            }
        };
        drop(late);
        self.there.add_permits(more);
    }

    pub(super) fn ended(&self) -> Option<PipelineEnd> {
        self.state().end.clone()
    }

    /// The next result that is there.
    pub(super) fn take(&self) -> Option<T> {
        let mut flow = self.state().ready.pop_front()?;
        flow.ticket.fate = Fate::Received;
        Some(flow.item)
    }

    pub(super) fn there(&self) -> &Semaphore {
        &self.there
    }
}

impl<T: Send + 'static> Line for Outlet<T> {
    fn end(&self, end: PipelineEnd) {
        let lost = {
            let mut state = self.state();
            if state.end.is_some() {
                return;
            }
            let line = std::mem::take(&mut state.line);
            let left = line.into_values().flatten();
            let lost = match end {
                // Each number that is missing was refused, and has not said so yet.
                PipelineEnd::Drained => {
                    state.ready.extend(left);
                    Vec::new()
                }
                _ => left.collect(),
            };
            state.end = Some(end);
            lost
        };
        drop::<Vec<Flow<T>>>(lost);
        self.there.close();
        self.way.inside.close();
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
            state.line.insert(number, None);
            state.advance()
        };
        self.there.add_permits(more);
    }
}
