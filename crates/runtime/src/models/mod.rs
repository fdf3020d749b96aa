//! Small models of what must hold between threads, explored by loom:
//! `RUSTFLAGS="--cfg loom" LOOM_MAX_PREEMPTIONS=2 cargo test --profile loom -p thalweg-runtime --lib models`.
//!
//! What waits for ever is a deadlock, which loom finds; so "it is woken" is what every model says in which somebody waits. A job's memory
//! is watched (`sync::Memory`): loom finds a use after it was freed, and one that is not freed.

mod idle;
mod job;
mod join_set;
mod kill;
mod mailbox_state;
mod placement;
mod poller;
mod remote_queue;
mod restartable;
mod ring;
mod shortage;
mod sync;

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::id::ActorId;
use crate::join::JoinHandle;
use crate::remote_queue::RemoteQueue;
use crate::task::Task;

/// A job that no worker has.
fn job<T: 'static>(f: impl FnOnce() -> T + 'static) -> (Task, JoinHandle<T>) {
    let task = Task::new(ActorId::next(), None, f);
    (task, JoinHandle::new(task))
}

/// As its worker has it that runs it: woken through this queue. There is no worker in a model, so everybody wakes it from afar.
fn settle(task: Task, queue: &'static RemoteQueue) {
    task.settle(queue, std::ptr::NonNull::dangling());
}

/// Runs it as a worker does.
fn run(task: Task) {
    // SAFETY: the model started nothing else with it, and has a handle besides.
    unsafe { task.run() };
}

/// The actor of `queue` ends, and then `other`, who may have woken it.
fn go(
    queue: &RemoteQueue,
    (me, handle): (Task, JoinHandle<()>),
    other: loom::thread::JoinHandle<()>,
) {
    run(me);
    drop(handle);
    other.join().unwrap();
    for left in queue.drain() {
        left.drop_reference();
    }
}

/// The worker of `queue`: takes what is in its inbox, and sleeps while nothing was there.
fn take_some(queue: &RemoteQueue, mut wake: impl FnMut(Task)) {
    loop {
        let mut some = false;
        for task in queue.drain() {
            some = true;
            task.wake_from_remote_queue(&mut wake);
        }
        if some {
            return;
        }
        queue.prepare_park(false);
        if queue.is_empty() {
            queue.parker.park(None);
        }
        queue.finish_park();
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
