//! Small models of what must hold between threads, explored by loom:
//! `RUSTFLAGS="--cfg loom" LOOM_MAX_PREEMPTIONS=2 cargo test --profile loom -p thalweg-runtime --lib models`.
//!
//! What waits for ever is a deadlock, which loom finds; so "it is woken" is what every model says in which somebody waits. A job's memory
//! is watched (`sync::Memory`): loom finds a use after it was freed, and one that is not freed.

mod desk;
mod idle;
mod job;
mod join_set;
mod kept;
mod kill;
mod owner;
mod placement;
mod poller;
mod ring;
mod shortage;
mod sync;

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::desk::Desk;
use crate::id::ActorId;
use crate::join::JoinHandle;
use crate::task::Task;

/// A job that no worker has.
fn job<T: 'static>(f: impl FnOnce() -> T + 'static) -> (Task, JoinHandle<T>) {
    let task = Task::new(ActorId::next(), None, f);
    (task, JoinHandle::new(task))
}

/// As its worker has it that runs it: woken through this desk. There is no worker in a model, so everybody wakes it from afar.
fn settle(task: Task, desk: &'static Desk) {
    task.settle(desk, std::ptr::NonNull::dangling());
}

/// Runs it as a worker does.
fn run(task: Task) {
    // SAFETY: the model started nothing else with it, and has a handle besides.
    unsafe { task.run() };
}

/// The actor of `desk` ends, and then `other`, who may have woken it.
fn go(desk: &Desk, (me, handle): (Task, JoinHandle<()>), other: loom::thread::JoinHandle<()>) {
    run(me);
    drop(handle);
    other.join().unwrap();
    for left in desk.take_all() {
        left.drop_reference();
    }
}

/// The worker of `desk`: takes what is in its inbox, and sleeps while nothing was there.
fn take_some(desk: &Desk, mut wake: impl FnMut(Task)) {
    loop {
        let mut some = false;
        for task in desk.take_all() {
            some = true;
            task.wake_from_inbox(&mut wake);
        }
        if some {
            return;
        }
        desk.lie_down(false);
        if desk.is_empty() {
            desk.parker.park(None);
        }
        desk.get_up();
    }
}

/// Counts its drops. None of loom's business.
struct Counted(std::sync::Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Relaxed);
    }
}

fn counted() -> (Counted, std::sync::Arc<AtomicUsize>) {
    let count = std::sync::Arc::new(AtomicUsize::new(0));
    (Counted(count.clone()), count)
}
