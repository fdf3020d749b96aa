//! Models of `exit`: a signal reaches an actor in every state, and its end is reported once. No
//! signal reaches it afterwards.

use std::sync::{Arc, Mutex};

use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;
use thalweg_queue::barrier::model::use_both;
use thalweg_queue::explore::{large_model, model};

use super::mailbox_state::{Bit, Model};
use super::{bind, drain_or_park, drop_counter, new_task, run};
use crate::control::{Control, DownListener, KillFlag, SignalKind};
use crate::reason::{ExitReason, JoinError};
use crate::remote_queue::RemoteQueue;
use crate::task::Task;

/// The ends that were reported. Not a loom type.
#[derive(Clone, Default)]
pub(super) struct ReportedEnds(Arc<Mutex<Vec<&'static str>>>);

impl ReportedEnds {
    pub(super) fn of(control: &Control) -> Self {
        let ends = Self::default();
        ends.watch(control);
        ends
    }

    fn watch(&self, control: &Control) {
        let list = Arc::clone(&self.0);
        control.add_listener_or_notify(DownListener::Callback(Box::new(move |down| {
            list.lock().unwrap().push(down.reason.kind());
        })));
    }

    pub(super) fn only(&self) -> &'static str {
        let ends = self.0.lock().unwrap();
        assert_eq!(ends.len(), 1, "{ends:?}");
        ends[0]
    }
}

fn kill(control: &Control) -> bool {
    control.signal(None, ExitReason::Killed, SignalKind::Kill)
}

/// Runs an actor that waits for a signal to end it, as its worker does.
fn run_until_killed(task: Task, queue: &RemoteQueue) {
    while !task.must_unwind() {
        drain_or_park(queue, |woken| assert!(woken == task));
    }
    run(task);
}

fn drop_references(queue: &RemoteQueue) {
    for left in queue.drain() {
        left.wake_from_remote_queue(|_| unreachable!("the task has ended"));
    }
}

fn kill_starting_actor() {
    let queue = RemoteQueue::allocate();
    let (task, handle) = new_task(|| ());
    let control = task.control();
    let ends = ReportedEnds::of(&control);
    let killer = thread::spawn(move || assert!(kill(&control)));
    bind(task, queue);
    run_until_killed(task, queue);
    assert!(matches!(
        handle.join(),
        Err(JoinError::Exit(ExitReason::Killed))
    ));
    killer.join().unwrap();
    assert_eq!(ends.only(), "killed");
    drop_references(queue);
}

/// The actor has not started, runs, is about to wait, or waits. A lost signal is a deadlock.
#[test]
fn kill_reaches_an_actor_that_starts_and_waits() {
    model(kill_starting_actor);
}

/// The heavy barrier of `set_kill_flag`, and the light barrier of `bind`.
#[test]
fn kill_reaches_an_actor_that_starts_with_a_light_barrier() {
    model(|| use_both(kill_starting_actor));
}

/// The masked actor may consume the wake-up of the kill: it checks again when the mask ends.
#[test]
fn kill_waits_for_the_end_of_a_mask() {
    for kill_first in [true, false] {
        model(move || {
            let queue = RemoteQueue::allocate();
            let (task, handle) = new_task(|| ());
            bind(task, queue);
            let (control, waker) = (task.control(), task.waker());
            let said = loom::sync::Arc::new(AtomicBool::new(false));
            let killer = thread::spawn({
                let said = said.clone();
                move || {
                    if kill_first {
                        assert!(kill(&control));
                    }
                    said.store(true, Ordering::Release);
                    waker.wake();
                    if !kill_first {
                        assert!(kill(&control));
                    }
                }
            });
            task.header().masks.set(1);
            while !said.load(Ordering::Acquire) {
                assert!(!task.must_unwind());
                drain_or_park(queue, |woken| assert!(woken == task));
            }
            assert!(!task.must_unwind());
            task.header().masks.set(0);
            assert!(task.must_unwind() || !kill_first);
            run_until_killed(task, queue);
            killer.join().unwrap();
            assert!(handle.join().is_err());
            drop_references(queue);
        });
    }
}

#[test]
fn kill_during_the_end_comes_first_or_is_refused() {
    model(|| {
        let queue = RemoteQueue::allocate();
        let (task, handle) = new_task(|| ());
        let control = task.control();
        let ends = ReportedEnds::of(&control);
        let killer = thread::spawn({
            let control = Arc::clone(&control);
            move || kill(&control)
        });
        bind(task, queue);
        run(task);
        let how = handle.join();
        let reached = killer.join().unwrap();
        assert_eq!(ends.only(), if how.is_ok() { "normal" } else { "killed" });
        assert!(reached || how.is_ok());
        assert!(!kill(&control));
        drop_references(queue);
    });
}

/// `task::state`'s `HAS_CONTROL`: the end sees the control, or the control is created as ended.
#[test]
fn control_created_during_the_end_is_notified_once() {
    model(|| {
        let (task, handle) = new_task(|| ());
        let namer = thread::spawn(move || {
            let control = task.control();
            let ends = ReportedEnds::of(&control);
            let reached = kill(&control);
            // The namer's reference keeps the task alive.
            drop(handle);
            (control, ends, reached)
        });
        run(task);
        let (control, ends, reached) = namer.join().unwrap();
        let how = ends.only();
        assert!(["normal", "killed", "no_actor"].contains(&how));
        assert!(reached || how != "killed");
        assert!(!kill(&control));
    });
}

#[test]
fn two_threads_create_the_control_during_the_end() {
    large_model(|| {
        let (task, handle) = new_task(|| ());
        let namers = [task.waker(), task.waker()].map(|keeps| {
            thread::spawn(move || {
                let ends = ReportedEnds::of(&task.control());
                drop(keeps);
                ends
            })
        });
        run(task);
        // The second thread may get the control a moment before the first one marks it as ended.
        for ends in namers.map(|namer| namer.join().unwrap()) {
            assert!(["normal", "no_actor"].contains(&ends.only()));
        }
        drop(handle);
    });
}

/// `control`'s rule 3.
#[test]
fn end_is_not_reported_after_unlink() {
    model(|| {
        let queue = RemoteQueue::allocate();
        let ([one, other], handles): (_, Vec<_>) = {
            let (one, other) = (new_task(|| ()), new_task(|| ()));
            ([one.0, other.0], vec![one.1, other.1])
        };
        bind(one, queue);
        bind(other, queue);
        let controls = [one.control(), other.control()];
        assert!(controls[0].link(&controls[1]));
        assert!(kill(&controls[0]));
        let worker = thread::spawn(move || run(one));
        controls[1].unlink(&controls[0]);
        let reached = other.must_unwind();
        worker.join().unwrap();
        assert_eq!(other.must_unwind(), reached);
        run(other);
        drop(handles);
        drop_references(queue);
    });
}

/// A link takes both locks, and each end takes them one after the other.
#[test]
fn two_linked_actors_end_concurrently() {
    model(|| {
        let queue = RemoteQueue::allocate();
        let (one, one_handle) = new_task(|| ());
        let (other, other_handle) = new_task(|| ());
        let controls = [one.control(), other.control()];
        let ends = controls.each_ref().map(|control| ReportedEnds::of(control));
        let linker = thread::spawn({
            let controls = controls.clone();
            move || {
                // Like the other actor, which runs on this thread.
                if !controls[1].link(&controls[0]) {
                    assert!(kill(&controls[1]));
                }
                bind(other, queue);
                run(other);
            }
        });
        assert!(kill(&controls[0]));
        bind(one, queue);
        run(one);
        linker.join().unwrap();
        assert_eq!(ends[0].only(), "killed");
        assert!(["normal", "killed"].contains(&ends[1].only()));
        drop((one_handle, other_handle));
        drop_references(queue);
    });
}

/// The turn of a behaviour actor is a task that other threads know only through this word.
#[test]
fn kill_reaches_a_waiting_handler() {
    model(|| {
        let queue = RemoteQueue::allocate();
        let (turn, handle) = new_task(|| ());
        bind(turn, queue);
        let kill_flag = loom::sync::Arc::new(KillFlag::new());
        let killer = thread::spawn({
            let kill_flag = kill_flag.clone();
            move || wake(kill_flag.set())
        });
        while !kill_flag.is_set() {
            kill_flag.suspend(turn, || {
                drain_or_park(queue, |woken| assert!(woken == turn))
            });
        }
        run(turn);
        drop(handle);
        killer.join().unwrap();
        drop_references(queue);
    });
}

/// The handler continues for another reason, and may have ended before the kill wakes it.
#[test]
fn kill_arrives_while_a_handler_continues_and_ends() {
    large_model(|| {
        let queue = RemoteQueue::allocate();
        let (turn, handle) = new_task(|| ());
        bind(turn, queue);
        let waker = turn.waker();
        let said = loom::sync::Arc::new((AtomicBool::new(false), KillFlag::new()));
        let other = thread::spawn({
            let said = said.clone();
            move || {
                said.0.store(true, Ordering::Release);
                waker.wake();
            }
        });
        let killer = thread::spawn({
            let said = said.clone();
            move || wake(said.1.set())
        });
        let kill_flag = &said.1;
        while !said.0.load(Ordering::Acquire) && !kill_flag.is_set() {
            kill_flag.suspend(turn, || {
                drain_or_park(queue, |woken| assert!(woken == turn))
            });
        }
        run(turn);
        drop(handle);
        killer.join().unwrap();
        other.join().unwrap();
        drop_references(queue);
        assert!(kill_flag.is_set());
    });
}

fn wake(waker: Option<std::task::Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// The kill comes between two messages, before the first, or during the only one. The actor ends
/// once, and the message is dropped once.
#[test]
fn kill_during_a_message_ends_a_behaviour_actor_once() {
    model(|| {
        let (model, actor) = Model::new(8);
        let control = Arc::clone(actor.pid().control());
        let ends = ReportedEnds::of(&control);
        let (message, dropped) = drop_counter();
        let killer = thread::spawn({
            let (model, control) = (model.clone(), Arc::clone(&control));
            move || {
                assert!(kill(&control));
                model.work();
            }
        });
        drop(actor.cast(Bit(1, Some(message))));
        model.work();
        killer.join().unwrap();
        model.work();
        assert_eq!(ends.only(), "killed");
        assert_eq!(dropped.load(std::sync::atomic::Ordering::Relaxed), 1);
        assert!(!kill(&control));
        actor.cast(Bit(2, None)).unwrap_err();
        drop(actor);
        model.was_killed();
    });
}

/// Either may come first, and only the first one counts.
#[test]
fn kill_during_a_stop_ends_a_behaviour_actor_once() {
    model(|| {
        let (model, actor) = Model::new(8);
        let control = Arc::clone(actor.pid().control());
        let ends = ReportedEnds::of(&control);
        let killer = thread::spawn({
            let (model, control) = (model.clone(), Arc::clone(&control));
            move || {
                let reached = kill(&control);
                model.work();
                reached
            }
        });
        actor.stop();
        model.work();
        let reached = killer.join().unwrap();
        model.work();
        assert!(reached || ends.only() == "normal");
        assert!(["normal", "killed"].contains(&ends.only()));
        assert!(!kill(&control));
        drop(actor);
        model.has_no_turn();
    });
}
