//! Loom model: a submission that waits for capacity in the mailbox.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Wake, Waker};

use loom::sync::Arc;
use loom::sync::atomic::AtomicU64;
use loom::thread;

use thalweg_queue::explore::model;

use crate::mailbox_waiters::MailboxWaiters;

/// Not a loom type: it is read when all threads have ended.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.store(true, Relaxed);
    }
}

/// Either the last try sees the free slot or the waiter is woken: it never sleeps while a slot is
/// free.
#[test]
fn waiter_sees_the_capacity_or_is_woken() {
    model(|| {
        let shared = Arc::new((MailboxWaiters::default(), AtomicU64::new(0)));
        let maker = thread::spawn({
            let shared = shared.clone();
            move || {
                shared.1.store(1, Relaxed);
                shared.0.wake_all();
            }
        });
        let woken = std::sync::Arc::new(Woken::default());
        shared.0.register(Waker::from(woken.clone()));
        let was_seen = shared.1.load(Relaxed) == 1;
        maker.join().unwrap();
        assert!(was_seen || woken.0.load(Relaxed), "a wake-up was lost");
    });
}
