//! Models of `cancel::members`: the last actor that leaves wakes the waiter, and none enters after the
//! close.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use thalweg_queue::Parker;
use thalweg_queue::explore::model;

use crate::cancel::members::Members;

/// What each of two actors writes before it leaves.
struct Scope {
    members: Members,
    written: [UnsafeCell<bool>; 2],
}

// SAFETY: an actor writes its place before it leaves, and the waiter reads it when there are no members.
// loom checks that.
unsafe impl Send for Scope {}
// SAFETY: as above.
unsafe impl Sync for Scope {}

impl Scope {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            members: Members::new(),
            written: [UnsafeCell::new(false), UnsafeCell::new(false)],
        })
    }

    fn work(&self, place: usize) {
        // SAFETY: as above.
        self.written[place].with_mut(|written| unsafe { *written = true });
        self.members.leave();
    }

    fn has_written(&self, place: usize) -> bool {
        // SAFETY: as above.
        self.written[place].with(|written| unsafe { *written })
    }

    fn wait(&self) {
        let parker = Parker::current();
        while self.members.count() > 0 && self.members.must_wait(parker.waker()) {
            parker.park(None);
        }
    }
}

#[test]
fn waiter_is_woken_by_the_last_member() {
    model(|| {
        let scope = Scope::new();
        assert!(scope.members.enter() && scope.members.enter());
        let others = [0, 1].map(|place| {
            let scope = Arc::clone(&scope);
            thread::spawn(move || scope.work(place))
        });
        scope.wait();
        assert!(scope.members.close_if_empty());
        assert!(scope.has_written(0) && scope.has_written(1));
        scope.members.forget_waiter();
        others.into_iter().for_each(|other| other.join().unwrap());
    });
}

#[test]
fn no_member_enters_after_the_close() {
    model(|| {
        let scope = Scope::new();
        assert!(scope.members.enter());
        let member = {
            let scope = Arc::clone(&scope);
            thread::spawn(move || scope.work(0))
        };
        let outsider = {
            let scope = Arc::clone(&scope);
            thread::spawn(move || {
                let entered = scope.members.enter();
                if entered {
                    scope.work(1);
                }
                entered
            })
        };
        while !scope.members.close_if_empty() {
            scope.wait();
        }
        assert!(scope.has_written(0));
        assert!(!scope.members.enter());
        member.join().unwrap();
        let entered = outsider.join().unwrap();
        assert_eq!((scope.members.count(), scope.has_written(1)), (0, entered));
        scope.members.forget_waiter();
    });
}
