//! Loom models: entering, closing, and the last user.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use thalweg_queue::explore::{large_model, model};

use crate::open_state::{EnterError, OpenState};

/// Data that all users read and the last user releases.
struct Shared {
    open_state: OpenState,
    used: UnsafeCell<()>,
    why: UnsafeCell<u32>,
    /// Not a loom type: counts how often each event happened.
    first: AtomicUsize,
    last: AtomicUsize,
}

// SAFETY: the models test the accesses to the cells: loom reports an access that is not ordered.
unsafe impl Sync for Shared {}
// SAFETY: as above.
unsafe impl Send for Shared {}

impl Shared {
    /// One user has entered.
    fn new() -> Arc<Self> {
        let open_state = OpenState::closed(0);
        assert_eq!(open_state.reopen(), 1);
        Arc::new(Self {
            open_state,
            used: UnsafeCell::new(()),
            why: UnsafeCell::new(0),
            first: AtomicUsize::new(0),
            last: AtomicUsize::new(0),
        })
    }

    fn leave(&self) {
        self.used.with(|_| ());
        if self.open_state.leave(1) {
            self.used.with_mut(|_| ());
            self.last.fetch_add(1, Relaxed);
        }
    }

    fn close(&self) {
        if self.open_state.close() {
            self.first.fetch_add(1, Relaxed);
        }
    }

    fn is_over(&self) {
        assert_eq!((self.first.load(Relaxed), self.last.load(Relaxed)), (1, 1));
    }
}

/// Rule 3: exactly one user is the last, after all uses.
#[test]
fn last_user_leaves_after_all_uses() {
    large_model(|| {
        let shared = Shared::new();
        let others: Vec<_> = (0..2)
            .map(|_| {
                let shared = shared.clone();
                thread::spawn(move || {
                    if shared.open_state.enter_generation(1).is_ok() {
                        shared.leave();
                    }
                })
            })
            .collect();
        shared.close();
        shared.leave();
        for other in others {
            other.join().unwrap();
        }
        shared.is_over();
    });
}

/// Rule 2: of an answer, a cancel and a deadline, one ends the call.
#[test]
fn one_of_three_concurrent_closes_succeeds() {
    large_model(|| {
        let shared = Shared::new();
        let others: Vec<_> = (0..2)
            .map(|_| {
                let shared = shared.clone();
                shared.open_state.enter_again();
                thread::spawn(move || {
                    shared.close();
                    shared.leave();
                })
            })
            .collect();
        shared.close();
        shared.leave();
        for other in others {
            other.join().unwrap();
        }
        shared.is_over();
    });
}

/// Rule 2: a thread that finds the object closed sees what the closing thread wrote.
#[test]
fn refused_thread_sees_what_the_closing_thread_wrote() {
    model(|| {
        let shared = Shared::new();
        let closer = thread::spawn({
            let shared = shared.clone();
            move || {
                shared.why.with_mut(|why| {
                    // SAFETY: no thread reads it before the object is closed.
                    unsafe { *why = 7 };
                });
                shared.open_state.close();
            }
        });
        match shared.open_state.enter_below(9) {
            Ok(()) => {}
            Err(why) => {
                assert_eq!(why, EnterError::Closed);
                // SAFETY: rule 2, which this model tests.
                assert_eq!(shared.why.with(|why| unsafe { *why }), 7);
            }
        }
        closer.join().unwrap();
    });
}

/// Rule 4: an old generation number never gives access to the next generation, and the next
/// generation begins after the end of the old one.
#[test]
fn old_generation_does_not_enter_the_next_one() {
    model(|| {
        let shared = Shared::new();
        let late = thread::spawn({
            let shared = shared.clone();
            move || {
                if shared.open_state.enter_generation(1).is_ok() {
                    assert_eq!(shared.open_state.generation(), 1);
                    shared.used.with(|_| ());
                    return shared.open_state.leave(1);
                }
                false
            }
        });
        shared.open_state.close();
        let last = shared.open_state.leave(1);
        let reopen = || {
            shared.used.with_mut(|_| ());
            assert_eq!(shared.open_state.reopen(), 2);
        };
        if last {
            reopen();
        }
        let late = late.join().unwrap();
        assert!(late != last, "exactly one user is the last");
        if late {
            reopen();
        }
        assert_eq!(
            shared.open_state.enter_generation(1),
            Err(EnterError::OtherGeneration)
        );
    });
}
