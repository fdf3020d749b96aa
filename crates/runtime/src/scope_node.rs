//! The nodes of cancellation tokens ([`cancel`](crate::cancel)): a tree of flags.
//!
//! 1. A node is cancelled once, together with its whole subtree, before the cancelling call
//!    returns. A child that is created later is cancelled from the start.
//! 2. A node refers to its children weakly. A child removes itself from its parent when it is
//!    dropped.
//! 3. A cancellation wakes the actors that run in the node's scope, and every task that awaits the
//!    token. An actor checks the node before and after each wait.
//! 4. The deadline of a node is the earliest of its own and its ancestors'. The first check after
//!    the deadline cancels the node.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::task::Waker;

use slab::Slab;
use thalweg_queue::clock;
use thalweg_queue::no_preempt::{LockGuard, lock};

use crate::inline_slab::InlineSlab;
use crate::reason::ExitReason;
use crate::waiters::{WaitId, Waiters};

/// In a scope with a deadline, one in this many checks reads the clock. Each scope counts its own
/// checks. Actors that take turns could otherwise leave all readings to one of them.
const CHECKS_PER_CLOCK_READ: u32 = 64;

/// With more places for children than this, their memory is freed when the last one is removed.
const SHRINK_ABOVE: usize = 64;

/// Why a scope was cancelled.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Cause {
    /// [`Token::cancel`](crate::cancel::Token::cancel) was called, with this text.
    Requested(Arc<str>),
    /// The deadline passed.
    Deadline,
    /// An actor of the same [`scope`](crate::cancel::scope()) failed.
    Failed(ExitReason),
    /// The scope's own actor was unwound or is to end.
    Unwound,
}

impl PartialEq for Cause {
    /// Two failures are never equal, since exit reasons cannot be compared.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Requested(one), Self::Requested(other)) => one == other,
            (Self::Deadline, Self::Deadline) | (Self::Unwound, Self::Unwound) => true,
            _ => false,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Requested(words) => f.write_str(words),
            Self::Deadline => f.write_str("the deadline passed"),
            Self::Failed(reason) => write!(f, "another actor of the scope failed: {reason}"),
            Self::Unwound => f.write_str("the parent of the scope ends"),
        }
    }
}

pub(crate) struct TokenNode {
    cancelled: AtomicBool,
    /// In nanoseconds of [`clock`]. `u64::MAX`: none.
    deadline: u64,
    checks: AtomicU32,
    state: Mutex<State>,
    parent: Option<(Arc<TokenNode>, usize)>,
}

#[derive(Default)]
struct State {
    cause: Option<Cause>,
    children: Slab<Weak<TokenNode>>,
    /// Wakers of the actors that run in the scope. There is none with a cause.
    runners: InlineSlab<Waker>,
    /// The tasks that await the token.
    waiters: Waiters,
    /// The number of waits so far.
    wait_count: WaitId,
}

impl TokenNode {
    /// A node whose deadline is the earlier one of `deadline` and its parent's.
    pub(crate) fn new(parent: Option<Arc<Self>>, deadline: u64) -> Arc<Self> {
        let earliest = parent.as_ref().map_or(u64::MAX, |parent| parent.deadline);
        let make = |parent, cause: Option<Cause>| Self {
            cancelled: AtomicBool::new(cause.is_some()),
            deadline: deadline.min(earliest),
            checks: AtomicU32::new(0),
            state: Mutex::new(State {
                cause,
                ..State::default()
            }),
            parent,
        };
        match parent {
            None => Arc::new(make(None, None)),
            Some(parent) => Arc::new_cyclic(|me| {
                let (slot, cause) = parent.adopt(me.clone());
                make(slot.map(|slot| (parent, slot)), cause)
            }),
        }
    }

    fn state(&self) -> LockGuard<'_, State> {
        lock(&self.state)
    }

    /// Rule 1.
    fn adopt(&self, child: Weak<Self>) -> (Option<usize>, Option<Cause>) {
        let mut state = self.state();
        match &state.cause {
            Some(cause) => (None, Some(cause.clone())),
            None => (Some(state.children.insert(child)), None),
        }
    }

    pub(crate) fn cancel(&self, cause: Cause) {
        let mut next = self.cancel_alone(&cause);
        while let Some(node) = next.pop() {
            next.extend(node.cancel_alone(&cause));
        }
    }

    /// Cancels this node only, and returns its children.
    fn cancel_alone(&self, cause: &Cause) -> Vec<Arc<Self>> {
        let (children, runners, waiters) = {
            let mut state = self.state();
            if state.cause.is_some() {
                return Vec::new();
            }
            state.cause = Some(cause.clone());
            self.cancelled.store(true, Ordering::Release);
            (
                std::mem::take(&mut state.children),
                std::mem::take(&mut state.runners),
                std::mem::take(&mut state.waiters),
            )
        };
        runners.into_iter().for_each(Waker::wake);
        waiters.wake();
        let existing = children
            .into_iter()
            .filter_map(|(_, child)| child.upgrade());
        existing.collect()
    }

    #[inline]
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire) || (self.deadline != u64::MAX && self.check_clock())
    }

    /// Reads the clock at some calls.
    fn check_clock(&self) -> bool {
        let checks = self.checks.load(Ordering::Relaxed).wrapping_add(1);
        self.checks.store(checks, Ordering::Relaxed);
        checks.is_multiple_of(CHECKS_PER_CLOCK_READ) && self.is_due()
    }

    /// Rule 4: whether the deadline has passed.
    pub(crate) fn is_due(&self) -> bool {
        let is_due = self.deadline != u64::MAX && clock::now() >= self.deadline;
        if is_due {
            self.cancel(Cause::Deadline);
        }
        is_due
    }

    pub(crate) fn deadline(&self) -> u64 {
        self.deadline
    }

    /// Why it was cancelled.
    pub(crate) fn cause(&self) -> Option<Cause> {
        // The deadline may have passed.
        self.is_due();
        self.state().cause.clone()
    }

    /// Rule 3: an actor enters the scope. Returns the key with which it leaves; `None` if the scope is
    /// cancelled already.
    pub(crate) fn enter(&self, waker: impl FnOnce() -> Waker) -> Option<usize> {
        let mut state = self.state();
        state.cause.is_none().then(|| state.runners.insert(waker()))
    }

    pub(crate) fn leave(&self, key: usize) {
        let waker = self.state().runners.remove(key);
        drop(waker);
    }

    #[cfg(all(test, not(loom)))]
    pub(crate) fn has_runners(&self) -> bool {
        !self.state().runners.is_empty()
    }
}

impl Drop for TokenNode {
    fn drop(&mut self) {
        // Rule 2.
        if let Some((parent, slot)) = self.parent.take() {
            let children = &mut parent.state().children;
            // There is none if the parent was cancelled.
            children.try_remove(slot);
            if children.is_empty() && children.capacity() > SHRINK_ABOVE {
                *children = Slab::new();
            }
        }
    }
}

/// One wait for the cancellation of a node. Dropping it removes its waker.
pub(crate) struct CancelWait<'a> {
    node: &'a TokenNode,
    wait_id: Option<WaitId>,
}

impl<'a> CancelWait<'a> {
    pub(crate) fn new(node: &'a TokenNode) -> Self {
        Self {
            node,
            wait_id: None,
        }
    }

    /// Returns the cause if the node is cancelled. Otherwise `waker` will be woken.
    pub(crate) fn register(&mut self, waker: &Waker) -> Option<Cause> {
        let mut state = self.node.state();
        if state.cause.is_some() {
            return state.cause.clone();
        }
        let wait_id = *self.wait_id.get_or_insert_with(|| {
            state.wait_count += 1;
            state.wait_count
        });
        let old = state.waiters.add(wait_id, waker);
        drop(state);
        drop(old);
        None
    }
}

impl Drop for CancelWait<'_> {
    fn drop(&mut self) {
        if let Some(wait_id) = self.wait_id {
            let waker = self.node.state().waiters.remove(wait_id);
            drop(waker);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Arc;
    use std::task::Waker;

    use super::{CancelWait, Cause, TokenNode};

    fn child(parent: &Arc<TokenNode>) -> Arc<TokenNode> {
        TokenNode::new(Some(Arc::clone(parent)), u64::MAX)
    }

    #[test]
    fn node_frees_the_slots_of_dropped_children() {
        let parent = TokenNode::new(None, u64::MAX);
        let stays = child(&parent);
        for _ in 0..100 {
            drop(child(&parent));
        }
        let children = |parent: &TokenNode| {
            let state = parent.state();
            (state.children.len(), state.children.capacity())
        };
        let few = children(&parent);
        assert!(few.0 == 1 && few.1 < 10, "{few:?}");
        let many: Vec<_> = (0..100).map(|_| child(&parent)).collect();
        assert_eq!(children(&parent).0, 101);
        drop(many);
        assert_eq!(children(&parent).0, 1);
        parent.cancel(Cause::Unwound);
        assert!(stays.is_cancelled() && child(&parent).is_cancelled());
        assert_eq!(children(&parent), (0, 0));
        let parent = TokenNode::new(None, u64::MAX);
        drop((0..100).map(|_| child(&parent)).collect::<Vec<_>>());
        assert_eq!(children(&parent), (0, 0));
    }

    #[test]
    fn dropped_wait_leaves_no_waker() {
        let node = TokenNode::new(None, u64::MAX);
        let (mut one, mut other) = (CancelWait::new(&node), CancelWait::new(&node));
        for wait in [&mut one, &mut other] {
            assert_eq!(wait.register(Waker::noop()), None);
        }
        drop(one);
        assert!(!node.state().waiters.is_empty());
        drop(other);
        assert!(node.state().waiters.is_empty());
        node.cancel(Cause::Unwound);
        let mut late = CancelWait::new(&node);
        assert_eq!(late.register(Waker::noop()), Some(Cause::Unwound));
    }
}
