//! `desk`: what is put in comes out, and the worker is woken for it.

use loom::thread;

use super::{job, large_model, settle, take_some};
use crate::desk::Desk;

#[test]
fn two_wake_one_actor_each() {
    large_model(|| {
        let desk = Desk::make();
        let [(one, its_handle), (other, others_handle)] = [(); 2].map(|()| job(|| ()));
        let tasks = [one, other];
        let threads = tasks.map(|task| {
            settle(task, desk);
            let waker = task.waker();
            thread::spawn(move || waker.wake())
        });
        let mut woken = 0;
        while woken < 2 {
            take_some(desk, |task| {
                assert!(tasks.contains(&task));
                woken += 1;
            });
        }
        for thread in threads {
            thread.join().unwrap();
        }
        assert!(desk.is_empty());
        for task in tasks {
            // SAFETY: nobody else started it.
            unsafe { task.run() };
        }
        drop((its_handle, others_handle));
    });
}
