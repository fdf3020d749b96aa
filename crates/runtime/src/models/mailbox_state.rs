//! `behaviour`: each letter is read or dropped once, one turn runs at a time, and the actor ends once.
//!
//! The workers are those that sent something: they take the turns that wait, whoever made them, until there are none. So a letter for which
//! nobody made a turn is still there at the end, and one turn too many meets another.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};

use loom::cell::UnsafeCell;
use loom::thread;
use thalweg_queue::explore::{large_model, model};

use super::{Counted, counted};
use crate::behaviour::mailbox_state::{MailboxState, NextAction, ReserveResult};
use crate::behaviour::{Actor, ActorRef, Context, Handler, Mailbox};
use crate::config::Config;
use crate::runtime::{Builder, Handle};
use crate::scheduler::{Scheduler, cancel};

/// What the models ask in the end. None of loom's business.
#[derive(Default)]
pub(super) struct Known {
    read: AtomicU32,
    stopped: AtomicUsize,
}

/// Adds up what it is told: two turns at a time, or one that does not see what the last one did, are found by loom.
pub(super) struct Sum(UnsafeCell<u32>, Arc<Known>);

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

/// A bit, and what goes with the letter.
pub(super) struct Bit(
    pub(super) u32,
    #[expect(dead_code, reason = "its drop counts")] pub(super) Option<Counted>,
);

impl Handler<Bit> for Sum {
    type Reply = ();

    fn handle(&mut self, bit: Bit, _: &Context<'_, Self>) {
        // SAFETY: there is one turn at a time; loom looks.
        self.0.with_mut(|sum| unsafe { *sum += bit.0 });
        self.1.read.fetch_add(bit.0, Relaxed);
    }
}

/// Has the actor cast a bit to itself.
struct SelfCast;

impl Handler<SelfCast> for Sum {
    type Reply = ();

    fn handle(&mut self, _: SelfCast, context: &Context<'_, Self>) {
        context.actor().cast(Bit(1, None)).unwrap();
    }
}

/// Has the actor leave a reference to itself there.
struct SelfKeep(Arc<std::sync::Mutex<Option<ActorRef<Sum>>>>);

impl Handler<SelfKeep> for Sum {
    type Reply = ();

    fn handle(&mut self, keep: SelfKeep, context: &Context<'_, Self>) {
        *keep.0.lock().unwrap() = Some(context.actor());
    }
}

pub(super) struct Model {
    scheduler: Arc<Scheduler>,
    known: Arc<Known>,
}

impl Model {
    pub(super) fn new(capacity: u32) -> (Arc<Self>, ActorRef<Sum>) {
        let scheduler = Arc::new(Scheduler::new(Config::exact(1)));
        // So that nobody starts it.
        scheduler.next_worker();
        let known = Arc::<Known>::default();
        let mailbox = Mailbox {
            capacity,
            ..Mailbox::default()
        };
        let actor = Builder::new().mailbox(mailbox).start_on(
            &Handle::new(&scheduler),
            Sum(UnsafeCell::new(0), known.clone()),
        );
        (Arc::new(Self { scheduler, known }), actor)
    }

    /// Makes the turns that wait.
    pub(super) fn work(&self) {
        while let Some(turn) = self.scheduler.take_injected() {
            // SAFETY: it was in the injector, and nobody else's.
            unsafe { turn.run() };
            // A turn that found a letter counted and not there is made again until its sender has put it in.
            thread::yield_now();
        }
    }

    pub(super) fn has_no_turn(&self) {
        assert!(self.scheduler.take_injected().is_none());
    }

    /// It was not asked to stop.
    pub(super) fn was_killed(&self) {
        self.has_no_turn();
        assert_eq!(self.known.stopped.load(Relaxed), 0);
    }

    /// All of these were read, and it ended once: no turn is left.
    fn has_ended(&self, read: u32) {
        self.has_no_turn();
        assert_eq!(self.known.read.load(Relaxed), read);
        assert_eq!(self.known.stopped.load(Relaxed), 1);
    }
}

/// Of the word alone. A turn that is made on its sender's own worker goes through no queue: only the word lies between two turns.
#[test]
fn who_makes_a_turn_sees_what_the_last_one_wrote() {
    fn turn((state, sum): &(MailboxState, UnsafeCell<u32>)) {
        // SAFETY: there is one turn at a time; loom looks.
        sum.with_mut(|sum| unsafe { *sum += 1 });
        while state.next(|| false) == NextAction::ReadMessage {
            // It says so too where the word has just changed.
            if state.len() > 0 {
                state.release(1);
            }
        }
    }
    let others: [fn(&MailboxState) -> bool; 3] = [
        |state| state.reserve(8) == ReserveResult::Reserved(true),
        MailboxState::stop,
        MailboxState::close,
    ];
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
            if actor.0.reserve(8) == ReserveResult::Reserved(true) {
                turn(&actor);
            }
            sender.join().unwrap();
        });
    }
}

#[test]
fn a_letter_cast_while_a_turn_ends_is_read() {
    the_second_of_two_letters_is_read(8);
}

#[test]
fn two_senders_make_one_turn() {
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
        assert_eq!(model.known.read.load(Relaxed), 3);
        drop(actor);
        model.work();
        model.has_ended(3);
    });
}

/// It may be read before the stop; else it is dropped by who sent it, or by the end, for which it may not be there yet.
#[test]
fn a_letter_cast_beside_a_stop_goes_once() {
    model(|| {
        let (model, actor) = Model::new(8);
        let (letter, dropped) = counted();
        let stopper = thread::spawn({
            let (model, actor) = (model.clone(), actor.clone());
            move || {
                actor.stop();
                model.work();
            }
        });
        drop(actor.cast(Bit(1, Some(letter))));
        model.work();
        stopper.join().unwrap();
        model.work();
        assert_eq!(dropped.load(Relaxed), 1);
        actor.cast(Bit(2, None)).unwrap_err();
        actor.stop();
        model.has_ended(model.known.read.load(Relaxed));
        drop(actor);
        model.has_ended(model.known.read.load(Relaxed));
    });
}

#[test]
fn two_stops_and_no_reference_left_make_one_turn() {
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

/// Nothing said so before: letters are counted up to the end, which waits for those that are not there yet.
#[test]
fn a_letter_cast_beside_the_end_of_the_runtime_goes_once() {
    model(|| {
        let (model, actor) = Model::new(8);
        let (letter, dropped) = counted();
        actor.cast(Bit(1, None)).unwrap();
        let stopper = thread::spawn({
            let model = model.clone();
            move || cancel(model.scheduler.take_injected().unwrap())
        });
        drop(actor.cast(Bit(2, Some(letter))));
        stopper.join().unwrap();
        assert_eq!(dropped.load(Relaxed), 1);
        drop(actor);
        assert!(model.scheduler.take_injected().is_none());
    });
}

#[test]
fn the_last_reference_goes_while_a_turn_ends() {
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

/// Each is the last in some order, and what the other one sent is read before the end.
#[test]
fn two_references_go_at_once() {
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

/// Rule 5: the reference that the handler makes may be the first of the actor again, before or after the last one outside has said that it is gone.
#[test]
fn handler_takes_a_reference_while_the_last_one_goes() {
    model(|| {
        let (model, actor) = Model::new(8);
        actor.cast(SelfCast).unwrap();
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

/// Rule 5: the handler's reference is dropped by another thread, while the turn looks whether there is one.
#[test]
fn reference_of_a_handler_goes_while_its_turn_ends() {
    model(|| {
        let (model, actor) = Model::new(8);
        let place = Arc::default();
        actor.cast(SelfKeep(Arc::clone(&place))).unwrap();
        drop(actor);
        let other = thread::spawn({
            let model = model.clone();
            move || {
                // Its mutex is `std`'s, and nobody waits while it is held.
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

/// Nobody casts after it: a wake-up that is lost is a deadlock.
#[test]
fn a_sender_that_waits_for_room_hears_of_it() {
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
        assert_eq!(model.known.read.load(Relaxed), 3);
        drop(actor);
        model.work();
        model.has_ended(3);
    });
}
