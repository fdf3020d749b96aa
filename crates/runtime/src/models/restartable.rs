//! `behaviour/incarnation` and what `owner` says of it: over restarts no accepted letter is lost or read twice, incarnations do not overlap, and
//! what was for one of them is for no other.
//!
//! The workers are those that sent something, as in [`super::mailbox_state`]; each of them is the keeper, too, as soon as it hears of an end.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};

use loom::cell::UnsafeCell;
use loom::thread;
use thalweg_queue::explore::{large_model, model};
use thalweg_queue::oneshot;

use super::{Counted, counted};
use crate::behaviour::mailbox_state::{MailboxState, NextAction, ReserveResult};
use crate::behaviour::{Actor, ActorRef, Context, Handler, Mailbox, Restartable, restartable};
use crate::config::Config;
use crate::exit::{ExitReason, Kind, Pid};
use crate::runtime::Handle;
use crate::scheduler::Scheduler;
use crate::shim;

/// What all incarnations touch, one after the other: loom looks.
struct Place(UnsafeCell<usize>);

// SAFETY: that incarnations do not overlap is what the models are for.
unsafe impl Send for Place {}
// SAFETY: as above.
unsafe impl Sync for Place {}

/// What the models ask in the end. But for `place`, and the keeper's list, none of loom's business.
struct Known {
    place: Place,
    living: AtomicUsize,
    read: AtomicU32,
    /// Those whose ends the keeper has not looked at yet.
    ended: shim::Mutex<VecDeque<&'static str>>,
    /// All ends that the keeper heard of.
    ends: AtomicUsize,
}

impl Known {
    fn touch(&self) {
        // SAFETY: as said above.
        self.place.0.with_mut(|times| unsafe { *times += 1 });
    }
}

struct Incarnation(Arc<Known>);

impl Incarnation {
    fn make(known: &Arc<Known>) -> Self {
        known.touch();
        assert_eq!(known.living.fetch_add(1, Relaxed), 0);
        Self(Arc::clone(known))
    }
}

impl Actor for Incarnation {}

impl Drop for Incarnation {
    fn drop(&mut self) {
        self.0.touch();
        assert_eq!(self.0.living.fetch_sub(1, Relaxed), 1);
    }
}

struct Bit(
    u32,
    #[expect(dead_code, reason = "its drop counts")] Option<Counted>,
);

impl Handler<Bit> for Incarnation {
    type Reply = ();

    fn handle(&mut self, bit: Bit, _: &Context<'_, Self>) {
        self.0.touch();
        assert_eq!(self.0.read.fetch_or(bit.0, Relaxed) & bit.0, 0);
    }
}

struct Model {
    scheduler: Arc<Scheduler>,
    restartable: Arc<dyn Restartable>,
    known: Arc<Known>,
    /// The keeper begins so many, and gives it up then.
    most: usize,
    begun: AtomicUsize,
    /// Of starts, that nobody has looked at.
    reports: shim::Mutex<Vec<Reported>>,
}

type Reported = oneshot::Receiver<Result<(), ExitReason>>;

impl Model {
    /// The first so many starts fail.
    fn new(capacity: u32, most: usize, failing: usize) -> (Arc<Self>, ActorRef<Incarnation>) {
        let scheduler = Arc::new(Scheduler::new(Config::exact(1)));
        // So that nobody starts it.
        scheduler.next_worker();
        let known = Arc::new(Known {
            place: Place(UnsafeCell::new(0)),
            living: AtomicUsize::new(0),
            read: AtomicU32::new(0),
            ended: shim::Mutex::new(VecDeque::new()),
            ends: AtomicUsize::new(0),
        });
        let mailbox = Mailbox {
            capacity,
            ..Mailbox::default()
        };
        let maker = {
            let (known, mut left) = (Arc::clone(&known), failing);
            Box::new(move || {
                if left > 0 {
                    left -= 1;
                    return Err(ExitReason::from("not yet"));
                }
                Ok(Incarnation::make(&known))
            })
        };
        let (restartable, actor) = restartable(&Handle::new(&scheduler), None, mailbox, maker);
        let heard = Arc::clone(&known);
        assert!(
            restartable.set_exit_listener(Arc::new(move |_, reason: ExitReason| {
                shim::lock(&heard.ended).push_back(reason.kind());
            }))
        );
        let begun = AtomicUsize::new(0);
        let model = Self {
            scheduler,
            restartable,
            known,
            most,
            begun,
            reports: shim::Mutex::new(Vec::new()),
        };
        (Arc::new(model), actor)
    }

    fn begin(&self) -> Pid {
        self.begun.fetch_add(1, Relaxed);
        let (pid, reported) = Arc::clone(&self.restartable).start();
        shim::lock(&self.reports).push(reported);
        pid
    }

    /// Of an end, or of a start that failed.
    fn hears(&self) -> bool {
        if shim::lock(&self.known.ended).pop_front().is_some() {
            return true;
        }
        let reports = std::mem::take(&mut *shim::lock(&self.reports));
        for mut report in reports {
            match report.try_recv() {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return true,
                Err(_) => shim::lock(&self.reports).push(report),
            }
        }
        false
    }

    /// Makes the turns that wait, and is the keeper of what has ended.
    fn work(&self) {
        loop {
            if let Some(turn) = self.scheduler.take_injected() {
                // SAFETY: it was in the injector, and nobody else's.
                unsafe { turn.run() };
                // A turn that found a letter counted and not there is made again until its sender has put it in.
                thread::yield_now();
                continue;
            }
            if !self.hears() {
                return;
            }
            self.known.ends.fetch_add(1, Relaxed);
            if self.begun.load(Relaxed) < self.most {
                self.begin();
            } else {
                self.restartable.release();
            }
        }
    }

    /// All of these were read, and one lives, which ends for good when nobody reaches it any more.
    fn lives(&self, actor: ActorRef<Incarnation>, read: u32) {
        assert!(self.scheduler.take_injected().is_none());
        assert_eq!(self.known.read.load(Relaxed), read);
        assert_eq!(self.known.living.load(Relaxed), 1);
        self.begun.store(self.most, Relaxed);
        drop(actor);
        self.work();
        self.is_over();
    }

    fn is_over(&self) {
        assert!(self.scheduler.take_injected().is_none());
        assert_eq!(self.known.living.load(Relaxed), 0);
    }
}

/// Another thread that does this, and then what there is to do.
fn beside(
    model: &Arc<Model>,
    actor: &ActorRef<Incarnation>,
    does: impl FnOnce(&Arc<Model>, &ActorRef<Incarnation>) + Send + 'static,
) -> thread::JoinHandle<()> {
    let (model, actor) = (Arc::clone(model), actor.clone());
    thread::spawn(move || {
        does(&model, &actor);
        model.work();
    })
}

/// What a model asks of the incarnation that lives.
type End = fn(&ActorRef<Incarnation>, &Pid);

const ENDS: [End; 3] = [
    |actor, _| actor.stop(),
    |_, pid| assert!(pid.kill().is_ok()),
    |_, pid| assert!(pid.exit(ExitReason::Shutdown).is_ok()),
];

#[test]
fn a_letter_cast_over_a_restart_is_read_once() {
    for end in ENDS {
        model(move || {
            let (model, actor) = Model::new(8, 2, 0);
            let pid = model.begin();
            let (letter, dropped) = counted();
            let other = beside(&model, &actor, move |_, actor| end(actor, &pid));
            actor.cast(Bit(1, Some(letter))).unwrap();
            model.work();
            other.join().unwrap();
            model.work();
            model.lives(actor, 1);
            assert_eq!(dropped.load(Relaxed), 1);
        });
    }
}

/// One before, beside or after the stop and the other after it: read by the first incarnation, or by the second.
#[test]
fn letters_of_two_senders_are_read_over_a_restart() {
    model(|| {
        let (model, actor) = Model::new(8, 2, 0);
        model.begin();
        let sender = beside(&model, &actor, |_, actor| actor.cast(Bit(1, None)).unwrap());
        actor.stop();
        actor.cast(Bit(2, None)).unwrap();
        model.work();
        sender.join().unwrap();
        model.work();
        model.lives(actor, 3);
    });
}

/// Who was told that the start failed begins the next one.
#[test]
fn a_letter_cast_beside_a_start_that_fails_is_the_next_ones() {
    model(|| {
        let (model, actor) = Model::new(8, 2, 1);
        model.begin();
        let sender = beside(&model, &actor, |_, actor| actor.cast(Bit(1, None)).unwrap());
        model.work();
        sender.join().unwrap();
        model.work();
        model.lives(actor, 1);
    });
}

/// A wake-up that is lost is a deadlock.
#[test]
fn who_waits_for_room_over_a_restart_gets_it() {
    model(|| {
        let (model, actor) = Model::new(1, 2, 0);
        actor.cast(Bit(1, None)).unwrap();
        let other = beside(&model, &actor, |model, actor| {
            model.begin();
            actor.stop();
        });
        actor.cast(Bit(2, None)).unwrap();
        model.work();
        other.join().unwrap();
        model.work();
        model.lives(actor, 3);
    });
}

/// It is between two incarnations, or one lives: what was accepted is given back, once, and nothing after.
#[test]
fn a_letter_cast_beside_a_close_goes_once() {
    for begins in [false, true] {
        model(move || {
            let (model, actor) = Model::new(8, 1, 0);
            if begins {
                model.begin();
            }
            let (letter, dropped) = counted();
            let keeper = thread::spawn({
                let (model, actor) = (model.clone(), actor.clone());
                move || {
                    if begins {
                        actor.stop();
                        model.work();
                    } else {
                        model.restartable.release();
                    }
                }
            });
            drop(actor.cast(Bit(1, Some(letter))));
            model.work();
            keeper.join().unwrap();
            model.work();
            assert_eq!(dropped.load(Relaxed), 1);
            actor.cast(Bit(2, None)).unwrap_err();
            drop(actor);
            model.is_over();
        });
    }
}

/// `incarnation`'s rule 4: whoever sees it last closes it down, and what waits is given back.
#[test]
fn who_is_abandoned_beside_its_end_is_closed_down() {
    model(|| {
        let (model, actor) = Model::new(8, 1, 0);
        let pid = model.begin();
        let (letter, dropped) = counted();
        let worker = thread::spawn({
            let model = model.clone();
            move || {
                pid.kill().unwrap();
                model.work();
            }
        });
        model.restartable.release();
        drop(actor.cast(Bit(1, Some(letter))));
        worker.join().unwrap();
        model.work();
        assert_eq!(dropped.load(Relaxed), 1);
        actor.cast(Bit(2, None)).unwrap_err();
        drop(actor);
        model.is_over();
    });
}

/// Two signals to one incarnation, of which one ends it: the other one comes before the end, or is refused, and is not the next one's.
#[test]
fn a_signal_to_one_incarnation_is_not_the_next_ones() {
    let signals: [fn(&Pid) -> bool; 2] = [
        |pid| pid.kill().is_ok(),
        |pid| {
            pid.control()
                .signal(None, ExitReason::Shutdown, Kind::Parent)
        },
    ];
    for signal in signals {
        model(move || {
            let (model, actor) = Model::new(8, 3, 0);
            let pid = model.begin();
            let other = thread::spawn({
                let (model, pid) = (model.clone(), pid.clone());
                move || {
                    signal(&pid);
                    model.work();
                }
            });
            pid.kill().ok();
            model.work();
            other.join().unwrap();
            model.work();
            assert_eq!(model.known.ends.load(Relaxed), 1);
            assert!(!signal(&pid));
            model.work();
            model.lives(actor, 0);
        });
    }
}

/// What the turns of one word count.
#[derive(Default)]
struct Counts {
    begun: usize,
    read: u64,
    given_back: u64,
    ended: bool,
}

/// Of the word alone: a turn, which goes on with the second incarnation where the first one ends.
fn turn(actor: &(MailboxState, UnsafeCell<Counts>)) {
    // SAFETY: there is one turn at a time; loom looks.
    let count =
        |f: fn(&mut Counts, u64), by| actor.1.with_mut(|counts| unsafe { f(&mut *counts, by) });
    loop {
        match actor.0.next(|| false) {
            // It says so too where the word has just changed.
            NextAction::ReadMessage if actor.0.len() == 0 => {}
            NextAction::ReadMessage => {
                count(|counts, by| counts.read += by, 1);
                actor.0.release(1);
            }
            NextAction::ReadSystem => {}
            NextAction::Idle => return,
            NextAction::End => {
                count(|counts, by| counts.begun += by as usize, 1);
                // SAFETY: as above.
                if actor.1.with(|counts| unsafe { (*counts).begun }) < 3 {
                    actor.0.restart();
                    continue;
                }
                let left = actor.0.end();
                count(|counts, by| counts.given_back += by, left);
                count(|counts, _| counts.ended = true, 0);
                return;
            }
        }
    }
}

/// Letters are counted while one incarnation ends and the next begins, or ends for good: each is read or given back.
#[test]
fn the_word_passes_letters_on_and_lets_one_turn_run() {
    let others: [fn(&MailboxState) -> bool; 3] = [
        MailboxState::stop,
        MailboxState::close,
        MailboxState::notify_system,
    ];
    for other in others {
        large_model(move || {
            let state = MailboxState::new();
            state.mark_restartable();
            let actor = loom::sync::Arc::new((state, UnsafeCell::new(Counts::default())));
            let accepted = Arc::new(AtomicUsize::new(0));
            let cast = {
                let accepted = Arc::clone(&accepted);
                move |actor: &(MailboxState, UnsafeCell<Counts>)| match actor.0.reserve(8) {
                    ReserveResult::Reserved(makes) => {
                        accepted.fetch_add(1, Relaxed);
                        if makes {
                            turn(actor);
                        }
                    }
                    refused => assert_eq!(refused, ReserveResult::Closed),
                }
            };
            let sender = thread::spawn({
                let (actor, cast) = (actor.clone(), cast.clone());
                move || cast(&actor)
            });
            let asker = thread::spawn({
                let actor = actor.clone();
                move || {
                    if other(&actor.0) {
                        turn(&actor);
                    }
                }
            });
            cast(&actor);
            actor.0.restart();
            turn(&actor);
            sender.join().unwrap();
            asker.join().unwrap();
            // SAFETY: nobody else is there any more.
            while !actor.1.with(|counts| unsafe { (*counts).ended }) {
                assert!(actor.0.stop());
                turn(&actor);
            }
            cast(&actor);
            // SAFETY: as above.
            let counts = actor
                .1
                .with_mut(|counts| unsafe { std::mem::take(&mut *counts) });
            assert_eq!(
                counts.read + counts.given_back,
                accepted.load(Relaxed) as u64
            );
        });
    }
}
