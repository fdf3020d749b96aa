//! Models of `behaviour/incarnation` and of its rules about the mailbox state. Across restarts, no
//! accepted message is lost or read twice, incarnations do not overlap, and nothing that was meant
//! for one incarnation reaches another.
//!
//! The senders are the workers, as in [`super::mailbox_state`]. Each of them also acts as the exit
//! listener once it is notified of an end.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};

use loom::cell::UnsafeCell;
use loom::thread;
use thalweg_queue::explore::{large_model, model};
use thalweg_queue::oneshot;

use super::{DropCounter, drop_counter};
use crate::behaviour::mailbox_state::{MailboxState, NextAction, ReserveResult};
use crate::behaviour::{Actor, ActorRef, Context, Handler, Restartable, restartable};
use crate::config::Config;
use crate::control::SignalKind;
use crate::exit::Pid;
use crate::mailbox::Mailbox;
use crate::reason::ExitReason;
use crate::runtime::Handle;
use crate::scheduler::Scheduler;
use crate::shim;

/// Accessed by all incarnations, one after the other, which loom checks.
struct ExclusiveCell(UnsafeCell<usize>);

// SAFETY: the models check that incarnations do not overlap.
unsafe impl Send for ExclusiveCell {}
// SAFETY: as above.
unsafe impl Sync for ExclusiveCell {}

/// The results that the models check at the end. Except for `exclusive` and the list of ends, not
/// loom types.
struct Results {
    exclusive: ExclusiveCell,
    living: AtomicUsize,
    read: AtomicU32,
    /// The ends that the exit listener has not handled yet.
    ended: shim::Mutex<VecDeque<&'static str>>,
    /// The number of ends that the exit listener received.
    ends: AtomicUsize,
}

impl Results {
    fn touch(&self) {
        // SAFETY: as above.
        self.exclusive.0.with_mut(|times| unsafe { *times += 1 });
    }
}

struct Incarnation(Arc<Results>);

impl Incarnation {
    fn make(results: &Arc<Results>) -> Self {
        results.touch();
        assert_eq!(results.living.fetch_add(1, Relaxed), 0);
        Self(Arc::clone(results))
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
    #[expect(dead_code, reason = "only its drop is observed")] Option<DropCounter>,
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
    results: Arc<Results>,
    /// The exit listener starts this many incarnations, then gives up.
    max: usize,
    begun: AtomicUsize,
    /// The results of starts that were not checked yet.
    reports: shim::Mutex<Vec<StartResult>>,
}

type StartResult = oneshot::Receiver<Result<(), ExitReason>>;

impl Model {
    /// The first `failing` starts fail.
    fn new(capacity: u32, max: usize, failing: usize) -> (Arc<Self>, ActorRef<Incarnation>) {
        let scheduler = Arc::new(Scheduler::new(Config::with_workers(1)));
        // Prevents the start of the worker.
        scheduler.next_worker();
        let results = Arc::new(Results {
            exclusive: ExclusiveCell(UnsafeCell::new(0)),
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
            let (results, mut left) = (Arc::clone(&results), failing);
            Box::new(move || {
                if left > 0 {
                    left -= 1;
                    return Err(ExitReason::from("not yet"));
                }
                Ok(Incarnation::make(&results))
            })
        };
        let (restartable, actor) = restartable(&Handle::new(&scheduler), None, mailbox, maker);
        let listener = Arc::clone(&results);
        assert!(
            restartable.set_exit_listener(Arc::new(move |_, reason: ExitReason| {
                shim::lock(&listener.ended).push_back(reason.kind());
            }))
        );
        let begun = AtomicUsize::new(0);
        let model = Self {
            scheduler,
            restartable,
            results,
            max,
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

    /// Waits for an end, or for a start that failed.
    fn take_end(&self) -> bool {
        if shim::lock(&self.results.ended).pop_front().is_some() {
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

    /// Runs the waiting turns, and acts as the exit listener for incarnations that ended.
    fn work(&self) {
        loop {
            if let Some(turn) = self.scheduler.take_injected() {
                // SAFETY: the turn was in the injector and belongs to the caller.
                unsafe { turn.run() };
                // A turn that found a message that is counted but not yet in the queue is repeated
                // until its sender has inserted it.
                thread::yield_now();
                continue;
            }
            if !self.take_end() {
                return;
            }
            self.results.ends.fetch_add(1, Relaxed);
            if self.begun.load(Relaxed) < self.max {
                self.begin();
            } else {
                self.restartable.release();
            }
        }
    }

    /// All of these messages were read. One incarnation lives; it ends when there is no reference
    /// left.
    fn assert_alive(&self, actor: ActorRef<Incarnation>, read: u32) {
        assert!(self.scheduler.take_injected().is_none());
        assert_eq!(self.results.read.load(Relaxed), read);
        assert_eq!(self.results.living.load(Relaxed), 1);
        self.begun.store(self.max, Relaxed);
        drop(actor);
        self.work();
        self.assert_ended();
    }

    fn assert_ended(&self) {
        assert!(self.scheduler.take_injected().is_none());
        assert_eq!(self.results.living.load(Relaxed), 0);
    }
}

/// Runs `f` in another thread, and then the remaining work.
fn spawn_other(
    model: &Arc<Model>,
    actor: &ActorRef<Incarnation>,
    f: impl FnOnce(&Arc<Model>, &ActorRef<Incarnation>) + Send + 'static,
) -> thread::JoinHandle<()> {
    let (model, actor) = (Arc::clone(model), actor.clone());
    thread::spawn(move || {
        f(&model, &actor);
        model.work();
    })
}

/// How a model ends the live incarnation.
type End = fn(&ActorRef<Incarnation>, &Pid);

const ENDS: [End; 3] = [
    |actor, _| actor.stop(),
    |_, pid| assert!(pid.kill().is_ok()),
    |_, pid| assert!(pid.exit(ExitReason::Shutdown).is_ok()),
];

#[test]
fn message_cast_during_a_restart_is_read_once() {
    for end in ENDS {
        model(move || {
            let (model, actor) = Model::new(8, 2, 0);
            let pid = model.begin();
            let (message, dropped) = drop_counter();
            let other = spawn_other(&model, &actor, move |_, actor| end(actor, &pid));
            actor.cast(Bit(1, Some(message))).unwrap();
            model.work();
            other.join().unwrap();
            model.work();
            model.assert_alive(actor, 1);
            assert_eq!(dropped.load(Relaxed), 1);
        });
    }
}

/// One message is sent before, during or after the stop, the other one after it. The first or the
/// second incarnation reads each of them.
#[test]
fn messages_of_two_senders_are_read_across_a_restart() {
    model(|| {
        let (model, actor) = Model::new(8, 2, 0);
        model.begin();
        let sender = spawn_other(&model, &actor, |_, actor| actor.cast(Bit(1, None)).unwrap());
        actor.stop();
        actor.cast(Bit(2, None)).unwrap();
        model.work();
        sender.join().unwrap();
        model.work();
        model.assert_alive(actor, 3);
    });
}

/// The thread that is notified of the failed start begins the next one.
#[test]
fn message_cast_during_a_failed_start_goes_to_the_next_incarnation() {
    model(|| {
        let (model, actor) = Model::new(8, 2, 1);
        model.begin();
        let sender = spawn_other(&model, &actor, |_, actor| actor.cast(Bit(1, None)).unwrap());
        model.work();
        sender.join().unwrap();
        model.work();
        model.assert_alive(actor, 1);
    });
}

/// A lost wake-up is a deadlock.
#[test]
fn sender_that_waits_for_capacity_across_a_restart_is_woken() {
    model(|| {
        let (model, actor) = Model::new(1, 2, 0);
        actor.cast(Bit(1, None)).unwrap();
        let other = spawn_other(&model, &actor, |model, actor| {
            model.begin();
            actor.stop();
        });
        actor.cast(Bit(2, None)).unwrap();
        model.work();
        other.join().unwrap();
        model.work();
        model.assert_alive(actor, 3);
    });
}

/// The close happens between two incarnations or during one. Each accepted message is returned
/// once, and none is accepted afterwards.
#[test]
fn message_cast_during_a_close_is_returned_once() {
    for begins in [false, true] {
        model(move || {
            let (model, actor) = Model::new(8, 1, 0);
            if begins {
                model.begin();
            }
            let (message, dropped) = drop_counter();
            let exit_listener = thread::spawn({
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
            drop(actor.cast(Bit(1, Some(message))));
            model.work();
            exit_listener.join().unwrap();
            model.work();
            assert_eq!(dropped.load(Relaxed), 1);
            actor.cast(Bit(2, None)).unwrap_err();
            drop(actor);
            model.assert_ended();
        });
    }
}

/// `incarnation`'s rule 4: the thread that notices last closes the actor, and waiting messages are
/// returned.
#[test]
fn actor_released_during_its_end_is_closed() {
    model(|| {
        let (model, actor) = Model::new(8, 1, 0);
        let pid = model.begin();
        let (message, dropped) = drop_counter();
        let worker = thread::spawn({
            let model = model.clone();
            move || {
                pid.kill().unwrap();
                model.work();
            }
        });
        model.restartable.release();
        drop(actor.cast(Bit(1, Some(message))));
        worker.join().unwrap();
        model.work();
        assert_eq!(dropped.load(Relaxed), 1);
        actor.cast(Bit(2, None)).unwrap_err();
        drop(actor);
        model.assert_ended();
    });
}

/// Two signals to one incarnation, one of which ends it. The other one arrives before the end or is
/// refused, and does not affect the next incarnation.
#[test]
fn signal_to_one_incarnation_does_not_reach_the_next() {
    let signals: [fn(&Pid) -> bool; 2] = [
        |pid| pid.kill().is_ok(),
        |pid| {
            pid.control()
                .signal(None, ExitReason::Shutdown, SignalKind::Supervisor)
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
            assert_eq!(model.results.ends.load(Relaxed), 1);
            assert!(!signal(&pid));
            model.work();
            model.assert_alive(actor, 0);
        });
    }
}

/// The counters of the turns of one state word.
#[derive(Default)]
struct Counts {
    begun: usize,
    read: u64,
    given_back: u64,
    ended: bool,
}

/// Checks the state word alone: one turn, which continues with the second incarnation when the
/// first one ends.
fn turn(actor: &(MailboxState, UnsafeCell<Counts>)) {
    // SAFETY: only one turn runs at a time, which loom checks.
    let count =
        |f: fn(&mut Counts, u64), by| actor.1.with_mut(|counts| unsafe { f(&mut *counts, by) });
    loop {
        match actor.0.next(|| false) {
            // This result is also possible if the word has just changed.
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

/// Messages are counted while one incarnation ends and the next one begins, or the actor ends for
/// good. Each is read or returned.
#[test]
fn state_word_passes_messages_on_and_admits_one_turn() {
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
                    ReserveResult::Reserved { is_idle: makes, .. } => {
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
            // SAFETY: no other thread is left.
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
