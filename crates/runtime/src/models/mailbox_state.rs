//! Models of `behaviour`: each message is read or dropped once, one turn runs at a time, and the
//! actor ends once.
//!
//! The senders are the workers: they run the waiting turns until there are
//! none. A message for which no turn was scheduled is therefore left at the end, and a superfluous
//! turn overlaps with another.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};

use loom::cell::UnsafeCell;
use loom::thread;
use thalweg_queue::explore::{large_model, model};

use super::{DropCounter, drop_counter};
use crate::behaviour::mailbox_state::{MailboxState, NextAction, ReserveResult};
use crate::behaviour::{Actor, ActorRef, Context, Handler};
use crate::config::Config;
use crate::mailbox::Mailbox;
use crate::runtime::{Builder, Handle};
use crate::scheduler::{Scheduler, cancel};

/// The results that the models check at the end. Not loom types.
#[derive(Default)]
pub(super) struct Results {
    read: AtomicU32,
    stopped: AtomicUsize,
}

/// Adds up its messages. loom detects two concurrent turns, and a turn that does not see the
/// effects of the previous one.
pub(super) struct Sum(UnsafeCell<u32>, Arc<Results>);

impl Actor for Sum {
    fn stopped(&mut self) {
        let sum = self.0.with(|sum| {
            // SAFETY: as below.
            unsafe { *sum }
        });
        assert_eq!(sum, self.1.read.load(Relaxed));
        self.1.stopped.fetch_add(1, Relaxed);
    }
}

/// A bit, and an object that is dropped with the message.
pub(super) struct Bit(
    pub(super) u32,
    #[expect(dead_code, reason = "only its drop is observed")] pub(super) Option<DropCounter>,
);

impl Handler<Bit> for Sum {
    type Reply = ();

    fn handle(&mut self, bit: Bit, _: &Context<'_, Self>) {
        // SAFETY: only one turn runs at a time, which loom checks.
        self.0.with_mut(|sum| unsafe { *sum += bit.0 });
        self.1.read.fetch_add(bit.0, Relaxed);
    }
}

/// Makes the actor cast a bit to itself.
struct CastToSelf;

impl Handler<CastToSelf> for Sum {
    type Reply = ();

    fn handle(&mut self, _: CastToSelf, context: &Context<'_, Self>) {
        context.actor().cast(Bit(1, None)).unwrap();
    }
}

/// Makes the actor store a reference to itself.
struct KeepSelf(Arc<std::sync::Mutex<Option<ActorRef<Sum>>>>);

impl Handler<KeepSelf> for Sum {
    type Reply = ();

    fn handle(&mut self, keep: KeepSelf, context: &Context<'_, Self>) {
        *keep.0.lock().unwrap() = Some(context.actor());
    }
}

pub(super) struct Model {
    scheduler: Arc<Scheduler>,
    results: Arc<Results>,
}

impl Model {
    pub(super) fn new(capacity: u32) -> (Arc<Self>, ActorRef<Sum>) {
        let scheduler = Arc::new(Scheduler::new(Config::with_workers(1)));
        // Prevents the start of the worker.
        scheduler.next_worker();
        let results = Arc::<Results>::default();
        let mailbox = Mailbox {
            capacity,
            ..Mailbox::default()
        };
        let actor = Builder::new().mailbox(mailbox).start_on(
            &Handle::new(&scheduler),
            Sum(UnsafeCell::new(0), results.clone()),
        );
        (Arc::new(Self { scheduler, results }), actor)
    }

    /// Runs the waiting turns.
    pub(super) fn work(&self) {
        while let Some(turn) = self.scheduler.take_injected() {
            // SAFETY: the turn was in the injector and belongs to the caller.
            unsafe { turn.run() };
            // A turn that found a message that is counted but not yet in the queue is repeated
            // until its sender has inserted it.
            thread::yield_now();
        }
    }

    pub(super) fn has_no_turn(&self) {
        assert!(self.scheduler.take_injected().is_none());
    }

    /// The actor was not asked to stop.
    pub(super) fn was_killed(&self) {
        self.has_no_turn();
        assert_eq!(self.results.stopped.load(Relaxed), 0);
    }

    /// All of these messages were read, the actor ended once, and no turn is left.
    fn has_ended(&self, read: u32) {
        self.has_no_turn();
        assert_eq!(self.results.read.load(Relaxed), read);
        assert_eq!(self.results.stopped.load(Relaxed), 1);
    }
}

/// Checks the state word alone. A turn that is scheduled on the sender's own worker does not go
/// through a queue: only the word orders the two turns.
#[test]
fn turn_sees_the_writes_of_the_previous_turn() {
    fn turn((state, sum): &(MailboxState, UnsafeCell<u32>)) {
        // SAFETY: only one turn runs at a time, which loom checks.
        sum.with_mut(|sum| unsafe { *sum += 1 });
        while state.next(|| false) == NextAction::ReadMessage {
            // This result is also possible if the word has just changed.
            if state.len() > 0 {
                state.release(1);
            }
        }
    }
    fn schedules(state: &MailboxState) -> bool {
        let reserved = state.reserve(8);
        matches!(reserved, ReserveResult::Reserved { is_idle: true, .. })
    }
    let others: [fn(&MailboxState) -> bool; 3] =
        [schedules, MailboxState::stop, MailboxState::close];
    for other in others {
        model(move || {
            let actor = loom::sync::Arc::new((MailboxState::new(), UnsafeCell::new(0)));
            let sender = thread::spawn({
                let actor = actor.clone();
                move || {
                    if other(&actor.0) {
                        turn(&actor);
                    }
                }
            });
            if schedules(&actor.0) {
                turn(&actor);
            }
            sender.join().unwrap();
        });
    }
}

#[test]
fn message_cast_while_a_turn_ends_is_read() {
    the_second_of_two_letters_is_read(8);
}

#[test]
fn two_senders_schedule_one_turn() {
    large_model(|| {
        let (model, actor) = Model::new(8);
        let senders = [1, 2].map(|bit| {
            let (model, actor) = (model.clone(), actor.clone());
            thread::spawn(move || {
                actor.cast(Bit(bit, None)).unwrap();
                model.work();
            })
        });
        for sender in senders {
            sender.join().unwrap();
        }
        assert_eq!(model.results.read.load(Relaxed), 3);
        drop(actor);
        model.work();
        model.has_ended(3);
    });
}

/// The message may be read before the stop. Otherwise it is dropped by its sender, or by the end,
/// which may have to wait for its insertion.
#[test]
fn message_cast_during_a_stop_is_dropped_once() {
    model(|| {
        let (model, actor) = Model::new(8);
        let (message, dropped) = drop_counter();
        let stopper = thread::spawn({
            let (model, actor) = (model.clone(), actor.clone());
            move || {
                actor.stop();
                model.work();
            }
        });
        drop(actor.cast(Bit(1, Some(message))));
        model.work();
        stopper.join().unwrap();
        model.work();
        assert_eq!(dropped.load(Relaxed), 1);
        actor.cast(Bit(2, None)).unwrap_err();
        actor.stop();
        model.has_ended(model.results.read.load(Relaxed));
        drop(actor);
        model.has_ended(model.results.read.load(Relaxed));
    });
}

#[test]
fn two_stops_and_the_last_reference_schedule_one_turn() {
    model(|| {
        let (model, actor) = Model::new(8);
        let stopper = thread::spawn({
            let (model, actor) = (model.clone(), actor.clone());
            move || {
                actor.stop();
                drop(actor);
                model.work();
            }
        });
        actor.stop();
        drop(actor);
        model.work();
        stopper.join().unwrap();
        model.has_ended(0);
    });
}

/// Nothing announced the end: messages are counted up to it, and it waits for those that are not
/// inserted yet.
#[test]
fn message_cast_during_runtime_shutdown_is_dropped_once() {
    model(|| {
        let (model, actor) = Model::new(8);
        let (message, dropped) = drop_counter();
        actor.cast(Bit(1, None)).unwrap();
        let stopper = thread::spawn({
            let model = model.clone();
            move || cancel(model.scheduler.take_injected().unwrap())
        });
        drop(actor.cast(Bit(2, Some(message))));
        stopper.join().unwrap();
        assert_eq!(dropped.load(Relaxed), 1);
        drop(actor);
        assert!(model.scheduler.take_injected().is_none());
    });
}

#[test]
fn last_reference_is_dropped_while_a_turn_ends() {
    model(|| {
        let (model, actor) = Model::new(8);
        actor.cast(Bit(1, None)).unwrap();
        let worker = thread::spawn({
            let model = model.clone();
            move || model.work()
        });
        drop(actor);
        model.work();
        worker.join().unwrap();
        model.work();
        model.has_ended(1);
    });
}

/// In some order, each of them is the last. The message of the other is read before the end.
#[test]
fn two_references_are_dropped_concurrently() {
    model(|| {
        let (model, actor) = Model::new(8);
        let other = thread::spawn({
            let (model, actor) = (model.clone(), actor.clone());
            move || {
                actor.cast(Bit(1, None)).unwrap();
                drop(actor);
                model.work();
            }
        });
        drop(actor);
        model.work();
        other.join().unwrap();
        model.work();
        model.has_ended(1);
    });
}

/// Rule 5: the reference that the handler creates may be the first one again, before or after the
/// last one outside reports that it is dropped.
#[test]
fn handler_creates_a_reference_while_the_last_one_is_dropped() {
    model(|| {
        let (model, actor) = Model::new(8);
        actor.cast(CastToSelf).unwrap();
        let worker = thread::spawn({
            let model = model.clone();
            move || model.work()
        });
        drop(actor);
        model.work();
        worker.join().unwrap();
        model.work();
        model.has_ended(1);
    });
}

/// Rule 5: another thread drops the handler's reference while the turn checks whether there is one.
#[test]
fn handler_reference_is_dropped_while_its_turn_ends() {
    model(|| {
        let (model, actor) = Model::new(8);
        let place = Arc::default();
        actor.cast(KeepSelf(Arc::clone(&place))).unwrap();
        drop(actor);
        let other = thread::spawn({
            let model = model.clone();
            move || {
                // The mutex is `std`'s. No thread waits while it is held.
                let taken = place.lock().unwrap().take();
                let had_one = taken.is_some();
                if let Some(actor) = taken {
                    actor.cast(Bit(1, None)).unwrap();
                }
                model.work();
                (had_one, place)
            }
        });
        model.work();
        let (had_one, place) = other.join().unwrap();
        let left = place.lock().unwrap().take();
        assert_eq!(had_one, left.is_none());
        drop(left);
        model.work();
        model.has_ended(had_one.into());
    });
}

/// No message follows: a lost wake-up is a deadlock.
#[test]
fn sender_that_waits_for_capacity_is_woken() {
    the_second_of_two_letters_is_read(1);
}

fn the_second_of_two_letters_is_read(capacity: u32) {
    model(move || {
        let (model, actor) = Model::new(capacity);
        actor.cast(Bit(1, None)).unwrap();
        let worker = thread::spawn({
            let model = model.clone();
            move || model.work()
        });
        actor.cast(Bit(2, None)).unwrap();
        model.work();
        worker.join().unwrap();
        model.work();
        assert_eq!(model.results.read.load(Relaxed), 3);
        drop(actor);
        model.work();
        model.has_ended(3);
    });
}
