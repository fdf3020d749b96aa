//! Loom models of the wait list: each rule with as few threads as it needs.
//!
//! A lost wake-up is a deadlock, which loom detects.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::thread;

use crate::barrier::model::use_both;
use crate::explore::{large_model, model};
use crate::park::{ParkResult, Parker};
use crate::wait_list::{WaitList, WaiterKind};

/// Two slots for values and a wait list. A value becomes visible by a load alone, as in a lane.
struct Values {
    there: [AtomicBool; 2],
    taken: AtomicUsize,
    waiters: WaitList,
}

impl Values {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            there: [false; 2].map(AtomicBool::new),
            taken: AtomicUsize::new(0),
            waiters: WaitList::new(),
        })
    }

    fn publish(&self, slot: usize) {
        self.there[slot].store(true, Ordering::Release);
        self.waiters.signal(1);
    }

    fn any(&self) -> bool {
        self.there.iter().any(|there| there.load(Ordering::Acquire))
    }

    fn take(&self) -> bool {
        let taken = self
            .there
            .iter()
            .any(|there| there.load(Ordering::Acquire) && there.swap(false, Ordering::AcqRel));
        if taken {
            self.taken.fetch_add(1, Ordering::Relaxed);
        }
        taken
    }

    fn wake_others(&self) {
        if self.waiters.has_any() && self.any() {
            self.waiters.signal(1);
        }
    }

    /// Waits like a blocking call of a channel. `false`: the deadline passed, or the list is
    /// closed.
    fn wait(&self, deadline: Option<u64>) -> bool {
        let parker = Parker::current();
        let mut in_time = true;
        let mut waited = false;
        loop {
            if self.take() {
                if waited {
                    self.wake_others();
                }
                return true;
            }
            if !in_time || self.waiters.is_closed() {
                return false;
            }
            let moved = self.taken.load(Ordering::Relaxed) as u64;
            let ticket = self.waiters.arm(WaiterKind::Thread, parker.waker(), moved);
            if !self.any() && !self.waiters.is_closed() {
                in_time = parker.park(deadline) == ParkResult::Woken;
            }
            self.waiters.disarm(WaiterKind::Thread, ticket);
            waited = true;
        }
    }
}

#[test]
fn one_waiter_and_one_publisher() {
    model(|| {
        let values = Values::new();
        let publisher = thread::spawn({
            let values = Arc::clone(&values);
            move || values.publish(0)
        });
        assert!(values.wait(None));
        publisher.join().unwrap();
    });
}

#[test]
fn one_waiter_and_two_publishers() {
    model(|| {
        let values = Values::new();
        let publishers = [0, 1].map(|slot| {
            let values = Arc::clone(&values);
            thread::spawn(move || values.publish(slot))
        });
        assert!(values.wait(None));
        assert!(values.wait(None));
        for publisher in publishers {
            publisher.join().unwrap();
        }
    });
}

/// Rule 7: no second waiter is woken while a woken one has not run, so the woken one wakes the
/// other.
#[test]
fn two_waiters_and_one_publisher() {
    large_model(|| {
        let values = Values::new();
        let waiters = [(); 2].map(|()| {
            let values = Arc::clone(&values);
            thread::spawn(move || values.wait(None))
        });
        // The publisher is spawned last, so that both waiters sleep before it starts if nobody is
        // preempted.
        let publisher = thread::spawn(move || {
            values.publish(0);
            values.publish(1);
        });
        for waiter in waiters {
            assert!(waiter.join().unwrap());
        }
        publisher.join().unwrap();
    });
}

/// Rule 7 in its critical window: a woken thread checks again while a publisher still sees WAKING.
#[test]
fn a_value_that_comes_while_a_woken_thread_resumes_wakes_the_next() {
    model(|| {
        let values = Values::new();
        let first = Parker::new();
        let ticket = values.waiters.arm(WaiterKind::Thread, first.waker(), 0);
        let next = Parker::new();
        values.waiters.arm(WaiterKind::Task, next.waker(), 0);
        values.publish(0);
        let publisher = thread::spawn({
            let values = Arc::clone(&values);
            move || values.publish(1)
        });
        assert!(
            !values.waiters.disarm(WaiterKind::Thread, ticket),
            "it was woken"
        );
        assert!(values.take());
        values.wake_others();
        publisher.join().unwrap();
        assert_eq!(next.park(Some(0)), ParkResult::Woken);
    });
}

/// Rule 7 without FENCED: the publisher executes no fence while a woken thread has not run.
#[test]
fn a_value_that_comes_without_a_fence_while_a_woken_thread_resumes_is_not_missed() {
    model(|| {
        use_both(|| {
            let values = Values::new();
            let first = Parker::new();
            let ticket = values.waiters.arm(WaiterKind::Thread, first.waker(), 9);
            let next = Parker::new();
            values.waiters.arm(WaiterKind::Task, next.waker(), 18);
            let publisher = thread::spawn({
                let values = Arc::clone(&values);
                move || {
                    values.publish(0);
                    values.publish(1);
                }
            });
            assert_eq!(first.park(None), ParkResult::Woken);
            assert!(
                !values.waiters.disarm(WaiterKind::Thread, ticket),
                "it was woken"
            );
            assert!(values.take());
            values.wake_others();
            publisher.join().unwrap();
            assert_eq!(next.park(Some(0)), ParkResult::Woken);
        });
    });
}

/// Rule 7: a publisher that finds the woken thread on its way again sets SKIP_FENCE, although nobody
/// waits behind that thread. It executes no fence for its next value.
#[test]
fn a_value_without_a_fence_after_a_slow_wakeup_is_not_missed() {
    // FENCED is set, or not.
    for moved in [0, 9] {
        model(move || {
            use_both(|| {
                let values = Values::new();
                let first = Parker::new();
                let ticket = values.waiters.arm(WaiterKind::Thread, first.waker(), moved);
                let publisher = thread::spawn({
                    let values = Arc::clone(&values);
                    move || {
                        values.publish(0);
                        values.waiters.signal(1);
                        values.publish(1);
                    }
                });
                assert_eq!(first.park(None), ParkResult::Woken);
                assert!(
                    !values.waiters.disarm(WaiterKind::Thread, ticket),
                    "it was woken"
                );
                assert!(values.take());
                assert!(values.wait(None));
                publisher.join().unwrap();
            });
        });
    }
}

/// Without a fence, like two models before, but an arming waiter sets FENCED meanwhile.
#[test]
fn fenced_is_set_while_a_woken_thread_resumes() {
    large_model(|| {
        use_both(|| {
            let values = Values::new();
            let first = Parker::new();
            let ticket = values.waiters.arm(WaiterKind::Thread, first.waker(), 9);
            values.publish(0);
            let publisher = thread::spawn({
                let values = Arc::clone(&values);
                move || values.publish(1)
            });
            let last = thread::spawn({
                let values = Arc::clone(&values);
                move || values.wait(None)
            });
            assert!(
                !values.waiters.disarm(WaiterKind::Thread, ticket),
                "it was woken"
            );
            // The other waiter may have taken the first value. Then a second value will arrive.
            if values.take() {
                values.wake_others();
            } else {
                assert!(values.wait(None));
            }
            publisher.join().unwrap();
            assert!(last.join().unwrap());
        });
    });
}

/// Rule 6: a waiter may be woken at the moment its deadline passes.
#[test]
fn a_waiter_whose_time_is_over_takes_no_wake_up_with_it() {
    large_model(|| {
        let values = Values::new();
        let hurried = thread::spawn({
            let values = Arc::clone(&values);
            move || {
                if values.wait(Some(0)) {
                    values.publish(1);
                }
            }
        });
        let publisher = thread::spawn({
            let values = Arc::clone(&values);
            move || values.publish(0)
        });
        assert!(values.wait(None));
        publisher.join().unwrap();
        hurried.join().unwrap();
    });
}

/// Rule 6 for a task that is dropped before or after it was woken.
#[test]
fn a_task_that_goes_passes_its_wake_up_on() {
    model(|| {
        let values = Values::new();
        let waker = std::task::Waker::noop();
        let ticket = values.waiters.arm(WaiterKind::Task, waker.clone(), 0);
        let publisher = thread::spawn({
            let values = Arc::clone(&values);
            move || values.publish(0)
        });
        let waiter = thread::spawn({
            let values = Arc::clone(&values);
            move || values.wait(None)
        });
        values.waiters.disarm_or_pass_on(WaiterKind::Task, ticket);
        publisher.join().unwrap();
        assert!(waiter.join().unwrap());
    });
}

#[test]
fn a_close_wakes_all() {
    model(|| {
        let values = Values::new();
        let waiter = thread::spawn({
            let values = Arc::clone(&values);
            move || values.wait(None)
        });
        let closing = thread::spawn({
            let values = Arc::clone(&values);
            move || values.waiters.close()
        });
        assert!(!values.wait(None));
        assert!(closing.join().unwrap(), "it was the first to close");
        assert!(!waiter.join().unwrap());
    });
}

/// Arms once before the model starts. FENCED is then set until publishers have signalled `signals`
/// more times without a waiter.
fn is_fenced(values: &Values, signals: usize) {
    let ticket = values
        .waiters
        .arm(WaiterKind::Task, std::task::Waker::noop().clone(), 0);
    values.waiters.disarm(WaiterKind::Task, ticket);
    for _ in 0..signals {
        values.waiters.signal(1);
    }
}

/// Rule 5: a waiter that sleeps again soon sets FENCED, and a publisher that finds no waiter twice
/// clears it, in any order.
#[test]
fn the_barriers_change_while_one_sleeps_and_one_publishes() {
    // A waiter that arms after more values than BUSY does not set FENCED.
    for (taken, signals) in [
        (0, None),
        (9, None),
        (0, Some(0)),
        (0, Some(1)),
        (9, Some(1)),
    ] {
        model(move || {
            use_both(|| {
                let values = Values::new();
                if let Some(signals) = signals {
                    is_fenced(&values, signals);
                }
                values.taken.store(taken, Ordering::Relaxed);
                let publisher = thread::spawn({
                    let values = Arc::clone(&values);
                    move || {
                        values.publish(0);
                        values.publish(1);
                    }
                });
                assert!(values.wait(None));
                assert!(values.wait(None));
                publisher.join().unwrap();
            });
        });
    }
}

/// Rule 5: one publisher clears FENCED while another has not seen it yet.
#[test]
fn the_barriers_change_between_two_publishers() {
    model(|| {
        use_both(|| {
            let values = Values::new();
            is_fenced(&values, 1);
            let publishers = [0, 1].map(|slot| {
                let values = Arc::clone(&values);
                thread::spawn(move || values.publish(slot))
            });
            assert!(values.wait(None));
            assert!(values.wait(None));
            for publisher in publishers {
                publisher.join().unwrap();
            }
        });
    });
}

/// Rule 9: a thread on which tasks arm publishes without a fence, while waiters arm on other
/// threads.
#[test]
fn the_home_of_tasks_is_taken_away_while_it_publishes() {
    for others in [1, 2] {
        large_model(move || {
            use_both(|| {
                let values = Values::new();
                is_fenced(&values, 0);
                let waiters: Vec<_> = (0..others)
                    .map(|_| {
                        let values = Arc::clone(&values);
                        thread::spawn(move || values.wait(None))
                    })
                    .collect();
                for slot in 0..others {
                    values.publish(slot);
                }
                for waiter in waiters {
                    assert!(waiter.join().unwrap());
                }
            });
        });
    }
}
