//! Small models of the protocols between threads, explored by loom: `RUSTFLAGS="--cfg loom"
//! LOOM_MAX_PREEMPTIONS=2 cargo test --profile loom -p thalweg-runtime --lib models`.
//!
//! A thread that waits forever is a deadlock, which loom detects. Every model in which a thread
//! waits therefore checks that it is woken. The memory of tasks is tracked (`shim::Memory`): loom
//! detects a use after the free, and a leak.

mod exit;
mod idle;
mod injector_slot;
mod join_set;
mod mailbox_state;
mod members;
mod placement;
mod poller;
mod remote_queue;
mod reply;
mod restartable;
mod ring;
mod shortage;
mod sync;
mod task;
mod turn;

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::id::ActorId;
use crate::join::JoinHandle;
use crate::remote_queue::RemoteQueue;
use crate::task::Task;

/// Creates a task that has no worker.
fn new_task<T: 'static>(f: impl FnOnce() -> T + 'static) -> (Task, JoinHandle<T>) {
    let task = Task::new(ActorId::next(), None, f);
    (task, JoinHandle::new(task))
}

/// Binds the task to this queue, as its worker does. A model has no workers, so every wake-up is
/// remote.
fn bind(task: Task, queue: &'static RemoteQueue) {
    task.bind(queue, Some(std::ptr::NonNull::dangling()));
}

/// Runs the task, as a worker does.
fn run(task: Task) {
    // SAFETY: the model has not started the task before, and keeps a handle.
    unsafe { task.run() };
}

/// Ends the actor of `queue`, and then joins `other`, which may have woken it.
fn finish(
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

/// The worker of `queue`: takes the tasks in the queue, and sleeps while it is empty.
fn drain_or_park(queue: &RemoteQueue, mut wake: impl FnMut(Task)) {
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

/// Counts its drops. Not a loom type.
struct DropCounter(std::sync::Arc<AtomicUsize>);

impl Drop for DropCounter {
    fn drop(&mut self) {
        self.0.fetch_add(1, Relaxed);
    }
}

fn drop_counter() -> (DropCounter, std::sync::Arc<AtomicUsize>) {
    let count = std::sync::Arc::new(AtomicUsize::new(0));
    (DropCounter(count.clone()), count)
}
