//! Cancellation tokens: references to the nodes of `scope_node`.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use thalweg_queue::clock;

use super::Cause;
use crate::scope_node::{CancelWait, TokenNode};
use crate::sleep_future::Sleep;
use crate::worker;

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
        Self {
            node: TokenNode::new(parent, deadline),
        }
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
        self.node.cause()
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
        let mut wait = CancelWait::new(&self.node);
        let mut deadline = Sleep::until(self.node.deadline());
        poll_fn(|context| {
            if let Some(cause) = self.cause().or_else(|| wait.register(context.waker())) {
                return Poll::Ready(cause);
            }
            // After the deadline, there is a cause.
            let is_due = Pin::new(&mut deadline).poll(context).is_ready();
            match self.cause().filter(|_| is_due) {
                Some(cause) => Poll::Ready(cause),
                None => Poll::Pending,
            }
        })
        .await
    }

    /// The time at which it is cancelled at the latest. `None`: it has no deadline.
    pub fn deadline(&self) -> Option<Instant> {
        let deadline = self.node.deadline();
        if deadline == u64::MAX {
            return None;
        }
        let (now, here) = (clock::now(), Instant::now());
        match deadline.checked_sub(now) {
            Some(left) => here.checked_add(Duration::from_nanos(left)),
            None => here.checked_sub(Duration::from_nanos(now - deadline)),
        }
    }

    pub(super) fn node(&self) -> &TokenNode {
        &self.node
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token")
            .field("cause", &self.node.cause())
            .finish()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    #[test]
    fn token_drops_its_waker_when_the_scope_ends() {
        crate::run(|| {
            let token = crate::cancel::cancel_scope(|token| {
                assert!(token.node.has_runners());
                token.clone()
            });
            assert!(!token.unwrap().node.has_runners());
        });
    }
}
