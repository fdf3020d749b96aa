//! Models of `task::turn`: the memory of an object's turns is reused by one turn at a time, and is
//! freed with the object.

use std::sync::Arc;

use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;
use thalweg_queue::explore::{large_model, model};

use super::bind;
use crate::remote_queue::RemoteQueue;
use crate::task::{Run, Task, TurnSlot};

struct Object {
    slot: TurnSlot,
    turns: AtomicUsize,
}

impl Object {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            slot: TurnSlot::default(),
            turns: AtomicUsize::new(0),
        })
    }
}

impl Run for Object {
    fn run(self: Arc<Self>) {
        self.turns.fetch_add(1, Ordering::Relaxed);
    }

    fn refuse(self: Arc<Self>) {
        unreachable!("a model has no shortage");
    }

    fn turn_slot(&self) -> &TurnSlot {
        &self.slot
    }
}

/// Schedules a turn, and runs it as a worker does.
fn turn(object: Arc<Object>) {
    let task = Task::turn_of(object);
    bind(task, RemoteQueue::allocate());
    // SAFETY: it was not started before.
    unsafe { task.run() };
}

#[test]
fn overlapping_turns_have_their_own_memory() {
    large_model(|| {
        let object = Object::new();
        let other = thread::spawn({
            let object = object.clone();
            move || {
                turn(object.clone());
                turn(object);
            }
        });
        turn(object.clone());
        turn(object.clone());
        other.join().unwrap();
        assert_eq!(object.turns.load(Ordering::Relaxed), 4);
    });
}

#[test]
fn last_turn_may_outlive_its_object() {
    model(|| {
        let object = Object::new();
        let other = thread::spawn({
            let object = object.clone();
            move || turn(object)
        });
        drop(object);
        other.join().unwrap();
    });
}

#[test]
fn memory_with_a_waker_is_not_reused() {
    model(|| {
        let object = Object::new();
        let task = Task::turn_of(object.clone());
        bind(task, RemoteQueue::allocate());
        let waker = task.waker();
        // SAFETY: it was not started before.
        unsafe { task.run() };
        let other = thread::spawn(move || drop(waker));
        turn(object.clone());
        turn(object);
        other.join().unwrap();
    });
}
