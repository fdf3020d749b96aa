//! Cancellation tokens: a tree of flags.
//!
//! 1. A node is cancelled once, together with its whole subtree, before the cancelling call
//!    returns. A child that is created later is cancelled from the start.
//! 2. A node refers to its children weakly. A child removes itself from its parent when it is
//!    dropped.
//! 3. A cancellation wakes the actor that runs in the node's scope, and every task that awaits the
//!    token. The actor checks the node before and after each wait.
//! 4. The deadline of a node is the earliest of its own and its ancestors'. The first check after
//!    the deadline cancels the node.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use thalweg_queue::clock;
use thalweg_queue::no_preempt::{LockGuard, lock};

use super::Cause;
use super::children::Children;
use crate::sleep_future::Sleep;
use crate::sync::Notify;
use crate::worker;

/// In a scope with a deadline, one in this many checks reads the clock.
const CHECKS_PER_CLOCK_READ: u32 = 64;

/// Cancels the code in its scope. Clones refer to the same scope; any thread may use one.
///
/// ```
/// use thalweg_runtime::cancel::Token;
///
/// let parent = Token::new();
/// let child = parent.child();
/// parent.cancel("enough");
/// assert!(child.is_cancelled());
/// assert_eq!(child.cause().unwrap().to_string(), "enough");
/// ```
#[derive(Clone)]
pub struct Token {
    node: Arc<TokenNode>,
}

pub(crate) struct TokenNode {
    cancelled: AtomicBool,
    /// In nanoseconds of [`clock`]. `u64::MAX`: none.
    deadline: u64,
    checks: AtomicU32,
    state: Mutex<State>,
    /// Wakes the tasks that [await](Token::cancelled_async) the token.
    ended: Notify,
    parent: Option<(Arc<TokenNode>, usize)>,
}

#[derive(Default)]
struct State {
    cause: Option<Cause>,
    children: Children,
    waker: Option<Waker>,
}

impl Default for Token {
    fn default() -> Self {
        Self::new()
    }
}

impl Token {
    /// A token without a parent, which belongs to no scope yet.
    pub fn new() -> Self {
        Self::with_parent(None, u64::MAX)
    }

    /// The token of a scope that the caller is about to enter, as a child of its current scope.
    pub(super) fn nested(deadline: u64) -> Self {
        let outer = worker::running().map_or(std::ptr::null(), |task| task.header().scope.get());
        let outer = (!outer.is_null()).then(|| {
            // SAFETY: the pointer is from an `Arc` that a frame below this one owns.
            unsafe {
                Arc::increment_strong_count(outer);
                Arc::from_raw(outer)
            }
        });
        Self::with_parent(outer, deadline)
    }

    fn with_parent(parent: Option<Arc<TokenNode>>, deadline: u64) -> Self {
        let earliest = parent.as_ref().map_or(u64::MAX, |parent| parent.deadline);
        let make = |parent, cause: Option<Cause>| TokenNode {
            cancelled: AtomicBool::new(cause.is_some()),
            deadline: deadline.min(earliest),
            checks: AtomicU32::new(0),
            state: Mutex::new(State {
                cause,
                ..State::default()
            }),
            ended: Notify::new(),
            parent,
        };
        let node = match parent {
            None => Arc::new(make(None, None)),
            Some(parent) => Arc::new_cyclic(|me| {
                let (slot, cause) = parent.adopt(me.clone());
                make(slot.map(|slot| (parent, slot)), cause)
            }),
        };
        Self { node }
    }

    /// A token that is cancelled with this one.
    pub fn child(&self) -> Self {
        Self::with_parent(Some(Arc::clone(&self.node)), u64::MAX)
    }

    /// A token that is cancelled with this one or after `timeout`.
    pub fn child_with_timeout(&self, timeout: Duration) -> Self {
        Self::with_parent(Some(Arc::clone(&self.node)), clock::deadline(timeout))
    }

    /// Cancels the token and its children. Only the first call has an effect.
    pub fn cancel(&self, why: impl Into<Arc<str>>) {
        self.cancel_for(Cause::Requested(why.into()));
    }

    pub(super) fn cancel_for(&self, cause: Cause) {
        self.node.cancel(cause);
    }

    /// Whether it is cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.node.is_cancelled()
    }

    /// Why it was cancelled.
    pub fn cause(&self) -> Option<Cause> {
        // The deadline may have passed.
        self.node.is_due();
        self.node.state().cause.clone()
    }

    /// Waits until the token is cancelled, as a future for [`select!`](crate::select) and for
    /// tasks.
    ///
    /// ```
    /// use thalweg_runtime::cancel::{Cause, Token};
    /// use thalweg_runtime::{run, select, spawn, sleep_async};
    /// use std::time::Duration;
    ///
    /// run(|| {
    ///     let token = Token::new();
    ///     let other = token.clone();
    ///     spawn(move || other.cancel("enough"));
    ///     select! {
    ///         cause = token.cancelled_async() => assert_eq!(cause.to_string(), "enough"),
    ///         () = sleep_async(Duration::from_secs(60)) => panic!("the token is cancelled"),
    ///     }
    /// });
    /// ```
    pub async fn cancelled_async(&self) -> Cause {
        let mut ended = pin!(self.node.ended.notified());
        let mut deadline = Sleep::until(self.node.deadline);
        poll_fn(|context| {
            if let Some(cause) = self.cause() {
                return Poll::Ready(cause);
            }
            // After either event, there is a cause.
            let is_ready = ended.as_mut().poll(context).is_ready()
                || Pin::new(&mut deadline).poll(context).is_ready();
            match self.cause().filter(|_| is_ready) {
                Some(cause) => Poll::Ready(cause),
                None => Poll::Pending,
            }
        })
        .await
    }

    /// The time at which it is cancelled at the latest. `None`: it has no deadline.
    pub fn deadline(&self) -> Option<Instant> {
        let deadline = self.node.deadline;
        if deadline == u64::MAX {
            return None;
        }
        let (now, here) = (clock::now(), Instant::now());
        match deadline.checked_sub(now) {
            Some(left) => here.checked_add(Duration::from_nanos(left)),
            None => here.checked_sub(Duration::from_nanos(now - deadline)),
        }
    }

    pub(super) fn node(&self) -> *const TokenNode {
        Arc::as_ptr(&self.node)
    }

    /// Rule 3.
    pub(super) fn arm(&self, waker: Waker) {
        self.node.state().waker = Some(waker);
    }

    pub(super) fn disarm(&self) {
        let waker = self.node.state().waker.take();
        drop(waker);
    }
}

impl TokenNode {
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

    fn cancel(&self, cause: Cause) {
        let mut next = self.cancel_alone(&cause);
        while let Some(node) = next.pop() {
            next.extend(node.cancel_alone(&cause));
        }
    }

    /// Cancels this node only, and returns its children.
    fn cancel_alone(&self, cause: &Cause) -> Vec<Arc<Self>> {
        let (children, waker) = {
            let mut state = self.state();
            if state.cause.is_some() {
                return Vec::new();
            }
            state.cause = Some(cause.clone());
            self.cancelled.store(true, Ordering::Release);
            (std::mem::take(&mut state.children), state.waker.take())
        };
        if let Some(waker) = waker {
            waker.wake();
        }
        self.ended.notify_waiters();
        children.into_children().collect()
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
}

impl Drop for TokenNode {
    fn drop(&mut self) {
        // Rule 2.
        if let Some((parent, slot)) = self.parent.take() {
            parent.state().children.remove(slot);
        }
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token")
            .field("cause", &self.node.state().cause)
            .finish()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::Token;

    #[test]
    fn token_frees_the_slots_of_dropped_children() {
        let parent = Token::new();
        let stays = parent.child();
        for _ in 0..100 {
            drop(parent.child());
        }
        let children = |parent: &Token| {
            let state = parent.node.state();
            (state.children.len(), state.children.slots())
        };
        assert_eq!(children(&parent), (1, 2));
        let many: Vec<_> = (0..100).map(|_| parent.child()).collect();
        assert_eq!(children(&parent), (101, 101));
        drop(many);
        assert_eq!(children(&parent), (1, 101));
        parent.cancel("enough");
        assert!(stays.is_cancelled() && parent.child().is_cancelled());
        assert_eq!(children(&parent), (0, 0));
        let parent = Token::new();
        drop((0..100).map(|_| parent.child()).collect::<Vec<_>>());
        assert_eq!(children(&parent), (0, 0));
    }

    #[test]
    fn token_drops_its_waker_when_the_scope_ends() {
        crate::run(|| {
            let token = crate::cancel::cancel_scope(|token| {
                assert!(token.node.state().waker.is_some());
                token.clone()
            });
            assert!(token.unwrap().node.state().waker.is_none());
        });
    }
}
