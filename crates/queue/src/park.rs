//! Blocks a thread until it is unparked, a deadline passes, or a signal arrives.

use std::sync::Arc;
use std::task::Waker;

use crate::futex::Futex;
pub use crate::futex::ParkResult;
use crate::no_preempt::NoPreemptGuard;
#[cfg(loom)]
use crate::sync::thread_local;

#[derive(Debug)]
struct Unparker(Futex);

impl std::task::Wake for Unparker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.wake();
    }
}

/// Parks one thread.
#[derive(Clone, Debug)]
pub struct Parker {
    unparker: Arc<Unparker>,
    waker: Waker,
}

impl Default for Parker {
    fn default() -> Self {
        Self::new()
    }
}

thread_local! {
    static CURRENT: Parker = {
        // Another actor of this thread could otherwise create a second one.
        let _no_preempt = NoPreemptGuard::enter();
        Parker::new()
    };
}

impl Parker {
    /// Creates a parker. Only one thread at a time may [`park`](Self::park) on it.
    pub fn new() -> Self {
        let unparker = Arc::new(Unparker(Futex::new()));
        let waker = Waker::from(Arc::clone(&unparker));
        Self { unparker, waker }
    }

    /// The parker of the calling thread.
    pub fn current() -> Self {
        // While a thread destroys its thread-locals, it gets a temporary parker.
        CURRENT.try_with(Clone::clone).unwrap_or_default()
    }

    /// A waker that unparks this parker.
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Wakes the parked thread. If no thread is parked, the next [`park`](Self::park) returns at
    /// once.
    pub fn unpark(&self) {
        self.waker.wake_by_ref();
    }

    /// Parks until woken, until `deadline` ([`crate::clock`]; `None` and `u64::MAX`: no deadline),
    /// or until a signal handler has run. There are no spurious wake-ups, but an old wake-up can
    /// end a later `park`.
    pub fn park(&self, deadline: Option<u64>) -> ParkResult {
        self.unparker.0.park(deadline)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{ParkResult, Parker};
    use crate::clock;
    use std::time::Duration;

    #[test]
    fn a_wake_before_the_sleep_is_not_lost_and_counts_once() {
        let parker = Parker::new();
        parker.unpark();
        parker.unpark();
        assert_eq!(parker.park(None), ParkResult::Woken);
        let soon = clock::deadline(Duration::from_millis(5));
        assert_eq!(parker.park(Some(soon)), ParkResult::TimedOut);
        assert!(clock::now() >= soon);
    }

    #[test]
    fn a_deadline_in_the_past_does_not_sleep() {
        assert_eq!(Parker::new().park(Some(0)), ParkResult::TimedOut);
    }

    #[test]
    fn another_thread_wakes_it() {
        let parker = Parker::new();
        let waker = parker.waker();
        let thread = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(5));
            waker.wake();
        });
        assert_eq!(parker.park(None), ParkResult::Woken);
        thread.join().unwrap();
    }
}
