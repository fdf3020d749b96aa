//! What is cancelled: a tree of flags.
//!
//! 1. A node is cancelled once, and with it all below: by whoever cancels it, before that comes back. A child that is made later is born so.
//! 2. A node names its children weakly, and each takes itself off its parent's list when it goes.
//! 3. The actor that runs in a node's scope is woken when it is cancelled, and who awaits the token; it looks before each wait and after it.
//! 4. The deadline of a node is the earliest of its own and those above. Who first sees that it has passed cancels the node for that.

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
use super::below::Below;
use crate::sleep_future::Sleep;
use crate::sync::Notify;
use crate::worker;

/// Looks between two at the clock, for a scope with a deadline.
const LOOKS_TO_CLOCK: u32 = 64;

/// Cancels what runs in its scope. Clones are one and the same; any thread may have one.
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
    node: Arc<Node>,
}

pub(crate) struct Node {
    cancelled: AtomicBool,
    /// Of [`clock`]; `u64::MAX`: none.
    deadline: u64,
    looks: AtomicU32,
    state: Mutex<State>,
    /// Wakes those that [await](Token::cancelled_async) it.
    ended: Notify,
    above: Option<(Arc<Node>, usize)>,
}

#[derive(Default)]
struct State {
    cause: Option<Cause>,
    below: Below,
    waker: Option<Waker>,
}

impl Default for Token {
    fn default() -> Self {
        Self::new()
    }
}

impl Token {
    /// Of no scope yet, and with no parent.
    pub fn new() -> Self {
        Self::below(None, u64::MAX)
    }

    /// Of a scope that the caller begins now, within the one that it is in.
    pub(super) fn nested(deadline: u64) -> Self {
        let outer = worker::running().map_or(std::ptr::null(), |task| task.header().scope.get());
        let outer = (!outer.is_null()).then(|| {
            // SAFETY: it is from an `Arc`, which who runs in the scope has in a frame below.
            unsafe {
                Arc::increment_strong_count(outer);
                Arc::from_raw(outer)
            }
        });
        Self::below(outer, deadline)
    }

    fn below(above: Option<Arc<Node>>, deadline: u64) -> Self {
        let earliest = above.as_ref().map_or(u64::MAX, |above| above.deadline);
        let make = |above, cause: Option<Cause>| Node {
            cancelled: AtomicBool::new(cause.is_some()),
            deadline: deadline.min(earliest),
            looks: AtomicU32::new(0),
            state: Mutex::new(State {
                cause,
                ..State::default()
            }),
            ended: Notify::new(),
            above,
        };
        let node = match above {
            None => Arc::new(make(None, None)),
            Some(above) => Arc::new_cyclic(|me| {
                let (place, cause) = above.take_in(me.clone());
                make(place.map(|place| (above, place)), cause)
            }),
        };
        Self { node }
    }

    /// One that is cancelled with this one.
    pub fn child(&self) -> Self {
        Self::below(Some(Arc::clone(&self.node)), u64::MAX)
    }

    /// One that is cancelled with this one, or when the time is over.
    pub fn child_with_timeout(&self, timeout: Duration) -> Self {
        Self::below(Some(Arc::clone(&self.node)), clock::deadline(timeout))
    }

    /// Cancels it, and all below. Only the first time counts.
    pub fn cancel(&self, why: impl Into<Arc<str>>) {
        self.cancel_for(Cause::Asked(why.into()));
    }

    pub(super) fn cancel_for(&self, cause: Cause) {
        self.node.cancel(cause);
    }

    /// Whether it was.
    pub fn is_cancelled(&self) -> bool {
        self.node.is_cancelled()
    }

    /// Why it was.
    pub fn cause(&self) -> Option<Cause> {
        // Its deadline may be what it is.
        self.node.is_due();
        self.node.state().cause.clone()
    }

    /// Waits until it is cancelled, as a future: for [`select!`](crate::select), and for tasks.
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
    ///         () = sleep_async(Duration::from_secs(60)) => panic!("nobody cancels it"),
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
            // Whichever comes, there is a cause then.
            let comes = ended.as_mut().poll(context).is_ready()
                || Pin::new(&mut deadline).poll(context).is_ready();
            match self.cause().filter(|_| comes) {
                Some(cause) => Poll::Ready(cause),
                None => Poll::Pending,
            }
        })
        .await
    }

    /// When it is cancelled at the latest, or was. `None`: it has no deadline.
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

    pub(super) fn node(&self) -> *const Node {
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

impl Node {
    fn state(&self) -> LockGuard<'_, State> {
        lock(&self.state)
    }

    /// Rule 1.
    fn take_in(&self, child: Weak<Self>) -> (Option<usize>, Option<Cause>) {
        let mut state = self.state();
        match &state.cause {
            Some(cause) => (None, Some(cause.clone())),
            None => (Some(state.below.insert(child)), None),
        }
    }

    fn cancel(&self, cause: Cause) {
        let mut next = self.cancel_alone(&cause);
        while let Some(node) = next.pop() {
            next.extend(node.cancel_alone(&cause));
        }
    }

    /// Those that are to be cancelled with it.
    fn cancel_alone(&self, cause: &Cause) -> Vec<Arc<Self>> {
        let (below, waker) = {
            let mut state = self.state();
            if state.cause.is_some() {
                return Vec::new();
            }
            state.cause = Some(cause.clone());
            self.cancelled.store(true, Ordering::Release);
            (std::mem::take(&mut state.below), state.waker.take())
        };
        if let Some(waker) = waker {
            waker.wake();
        }
        self.ended.notify_waiters();
        below.into_children().collect()
    }

    #[inline]
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire) || (self.deadline != u64::MAX && self.looks())
    }

    /// Now and then at the clock.
    fn looks(&self) -> bool {
        let looks = self.looks.load(Ordering::Relaxed).wrapping_add(1);
        self.looks.store(looks, Ordering::Relaxed);
        looks.is_multiple_of(LOOKS_TO_CLOCK) && self.is_due()
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

impl Drop for Node {
    fn drop(&mut self) {
        // Rule 2.
        if let Some((above, place)) = self.above.take() {
            above.state().below.remove(place);
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
    fn a_token_keeps_nothing_of_children_that_went() {
        let parent = Token::new();
        let stays = parent.child();
        for _ in 0..100 {
            drop(parent.child());
        }
        let below = |parent: &Token| {
            let state = parent.node.state();
            (state.below.len(), state.below.places())
        };
        assert_eq!(below(&parent), (1, 2));
        let many: Vec<_> = (0..100).map(|_| parent.child()).collect();
        assert_eq!(below(&parent), (101, 101));
        drop(many);
        assert_eq!(below(&parent), (1, 101));
        parent.cancel("enough");
        assert!(stays.is_cancelled() && parent.child().is_cancelled());
        assert_eq!(below(&parent), (0, 0));
        let parent = Token::new();
        drop((0..100).map(|_| parent.child()).collect::<Vec<_>>());
        assert_eq!(below(&parent), (0, 0));
    }

    #[test]
    fn a_token_forgets_the_actor_whose_scope_is_over() {
        crate::run(|| {
            let token = crate::cancel::cancel_scope(|token| {
                assert!(token.node.state().waker.is_some());
                token.clone()
            });
            assert!(token.unwrap().node.state().waker.is_none());
        });
    }
}
