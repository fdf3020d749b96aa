//! Collects the list of actors from the workers.

use std::sync::Arc;
use std::time::Duration;

use thalweg_queue::{NoPreemptGuard, clock, oneshot};

use crate::actor_info::{ActorInfo, ActorList, ActorState, UnresponsiveWorker};
use crate::scheduler::Scheduler;
use crate::worker::{self, Worker};

pub(super) fn gather(scheduler: &Arc<Scheduler>, timeout: Duration) -> ActorList {
    let deadline = clock::deadline(timeout);
    // Rule 1 of `actor_info::moved`.
    let watch = scheduler.moved.watch();
    let mut actors = queued_actors(scheduler);
    let (lists, mut unresponsive) = ask_all(scheduler, deadline, |worker| worker.list());
    actors.extend(lists.into_iter().flatten());
    // Rule 3 of `actor_info::moved`.
    let (_, unresponsive_now) = ask_all(scheduler, deadline, |_| ());
    for worker in unresponsive_now {
        if unresponsive
            .iter()
            .all(|before| before.worker != worker.worker)
        {
            unresponsive.push(worker);
        }
    }
    actors.extend(watch.moved());
    if let Some(table) = &scheduler.actor_table {
        table.each(|actor| actors.push(actor));
    }
    ActorList {
        actors: merge_duplicates(actors),
        unresponsive,
        includes_idle: scheduler.actor_table.is_some(),
    }
}

/// Lets each worker reply between two of its turns, until `deadline`. Returns the replies and the
/// workers that did not reply.
fn ask_all<T: Send + 'static>(
    scheduler: &Arc<Scheduler>,
    deadline: u64,
    request: fn(&Worker) -> T,
) -> (Vec<T>, Vec<UnresponsiveWorker>) {
    let here = worker::current().filter(|here| Arc::ptr_eq(&here.scheduler, scheduler));
    let mut asked = Vec::new();
    for (index, shared) in scheduler.workers.iter().enumerate() {
        let is_here = here.is_some_and(|here| here.index() == index);
        if is_here || index >= scheduler.started() {
            continue;
        }
        let (reply, reply_receiver) = oneshot::channel();
        shared.ask(move |worker| {
            // The caller may have stopped waiting.
            let _ = reply.send(request(worker));
        });
        asked.push((index, reply_receiver));
    }
    let mut replies = Vec::new();
    if let Some(here) = here {
        let _no_preempt = NoPreemptGuard::enter();
        replies.push(request(here));
    }
    let mut unresponsive = Vec::new();
    for (index, mut reply_receiver) in asked {
        let left = Duration::from_nanos(deadline.saturating_sub(clock::now()));
        match reply_receiver.recv_timeout(left) {
            Ok(reply) => replies.push(reply),
            // The worker has stopped, and its actors have ended.
            Err(_) if scheduler.is_stopping() => {}
            Err(_) => unresponsive.push(UnresponsiveWorker {
                worker: index,
                running_actor: scheduler.workers[index].status.actor(),
            }),
        }
    }
    (replies, unresponsive)
}

/// The tasks in the queues that all workers share.
fn queued_actors(scheduler: &Arc<Scheduler>) -> Vec<ActorInfo> {
    let mut waiting = Vec::new();
    scheduler.for_each_waiting(|task| waiting.push(task.info_as_new()));
    waiting
}

/// Sorts by number and merges duplicates. The entry from the worker that runs the actor is
/// preferred, then the most specific one.
fn merge_duplicates(mut actors: Vec<ActorInfo>) -> Vec<ActorInfo> {
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
        ActorState::New | ActorState::Idle => 2,
        _ => 1,
    }
}
