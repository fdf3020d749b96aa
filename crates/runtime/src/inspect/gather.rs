//! Asks all who know.

use std::sync::Arc;
use std::time::Duration;

use thalweg_queue::{NoPreemptGuard, clock, oneshot};

use super::info::{ActorInfo, ActorList, ActorState, Silent};
use crate::scheduler::Scheduler;
use crate::worker::{self, Worker};

pub(super) fn gather(scheduler: &Arc<Scheduler>, patience: Duration) -> ActorList {
    let deadline = clock::deadline(patience);
    // Rule 1 of `moved`.
    let watching = scheduler.moved.watch();
    let mut actors = waiting(scheduler);
    let (lists, mut silent) = ask_all(scheduler, deadline, |worker| worker.list());
    actors.extend(lists.into_iter().flatten());
    // Rule 3 of `moved`.
    let (_, silent_now) = ask_all(scheduler, deadline, |_| ());
    for one in silent_now {
        if silent.iter().all(|before| before.worker != one.worker) {
            silent.push(one);
        }
    }
    actors.extend(watching.moved());
    if let Some(register) = &scheduler.register {
        register.each(|actor| actors.push(actor));
    }
    ActorList {
        actors: each_once(actors),
        silent,
        has_resting: scheduler.register.is_some(),
    }
}

/// Has each worker answer between two of its turns, until `deadline`. The answers, and who did not.
fn ask_all<T: Send + 'static>(
    scheduler: &Arc<Scheduler>,
    deadline: u64,
    request: fn(&Worker) -> T,
) -> (Vec<T>, Vec<Silent>) {
    let here = worker::current().filter(|here| Arc::ptr_eq(&here.scheduler, scheduler));
    let mut asked = Vec::new();
    for (index, shared) in scheduler.workers.iter().enumerate() {
        let is_here = here.is_some_and(|here| here.index() == index);
        if is_here || index >= scheduler.started() {
            continue;
        }
        let (answer, answered) = oneshot::channel();
        shared.ask(move |worker| {
            // Who asked may have lost patience.
            let _ = answer.send(request(worker));
        });
        asked.push((index, answered));
    }
    let mut answers = Vec::new();
    if let Some(here) = here {
        let _no_preempt = NoPreemptGuard::enter();
        answers.push(request(here));
    }
    let mut silent = Vec::new();
    for (index, mut answered) in asked {
        let left = Duration::from_nanos(deadline.saturating_sub(clock::now()));
        match answered.recv_timeout(left) {
            Ok(answer) => answers.push(answer),
            // It has left, and its actors have ended.
            Err(_) if scheduler.is_stopping() => {}
            Err(_) => silent.push(Silent {
                worker: index,
                kept_by: scheduler.workers[index].status.actor(),
            }),
        }
    }
    (answers, silent)
}

/// What waits for a worker in queues that all see.
fn waiting(scheduler: &Scheduler) -> Vec<ActorInfo> {
    let mut waiting = Vec::new();
    scheduler.for_each_waiting(|task| waiting.push(task.info_as_new()));
    waiting
}

/// By number. Of an actor that was seen twice, what was seen where it runs goes before, and then what is known of it at all.
fn each_once(mut actors: Vec<ActorInfo>) -> Vec<ActorInfo> {
    actors.sort_by_key(|actor| (actor.id, rank(actor)));
    actors.dedup_by(|later, first| {
        let same = later.id == first.id;
        if same {
            first.parent = first.parent.or(later.parent);
            first.supervisor = first.supervisor.or(later.supervisor);
            first.mailbox = first.mailbox.or(later.mailbox);
            first.slices = first.slices.or(later.slices);
            first.worker_time = first.worker_time.or(later.worker_time);
        }
        same
    });
    actors
}

fn rank(actor: &ActorInfo) -> u8 {
    match actor.state {
        _ if actor.worker.is_some() => 0,
        ActorState::New | ActorState::Resting => 2,
        _ => 1,
    }
}
