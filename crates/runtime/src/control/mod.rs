//! The control of one incarnation: whether the actor is alive, how a signal reaches it, and which
//! listeners receive its exit. It is created when the actor's [`Pid`](crate::Pid) is first
//! requested; an actor without a `Pid` has none.
//!
//! 1. One lock protects all of it. No user code runs under the lock. Two of these locks are held at
//!    once only for a link, in the order of the actors' numbers.
//! 2. `target` points to the actor until it is [`Ended`](Target::Ended). The control is marked as
//!    ended before the actor's job or body may be freed.
//! 3. A link is in both controls or in neither. An exit is therefore reported once, and never after
//!    an unlink.
//! 4. The first exit reason is kept, but a kill replaces it until the exit was raised.
//! 5. Listeners are notified after the lock is released, in the order in which they were added.
//! 6. A behaviour actor is marked under the lock and woken afterwards. The next incarnation clears
//!    the marks when it starts, so a late signal never reaches it.

mod kill_flag;

use std::collections::HashMap;
use std::fmt;
use std::hash::BuildHasherDefault;
use std::sync::{Arc, Weak};
use std::task::Waker;

use thalweg_queue::{NoPreemptGuard, mpsc, oneshot};

pub(crate) use self::kill_flag::KillFlag;
use crate::actor_info::Snapshot;
use crate::id::{ActorId, ActorIdHasher};
use crate::inline_slab::InlineSlab;
use crate::reason::ExitReason;
use crate::shim::{LockGuard, Mutex, lock};
use crate::task::Task;
use crate::worker;

/// The exit of a monitored actor.
#[derive(Clone, Debug)]
pub struct Down {
    /// The actor that ended.
    pub id: ActorId,
    /// Why it ended. [`ExitReason::NoActor`]: it had ended before it was monitored.
    pub reason: ExitReason,
}

/// A trapped exit signal.
#[derive(Clone, Debug)]
pub struct Exit {
    /// The actor that ended or sent the signal. `None`: a thread sent it.
    pub from: Option<ActorId>,
    /// The reason.
    pub reason: ExitReason,
}

#[derive(Debug)]
pub(crate) struct Control {
    pub(crate) id: ActorId,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    target: Target,
    links: HashMap<ActorId, Arc<Control>, BuildHasherDefault<ActorIdHasher>>,
    listeners: InlineSlab<DownListener>,
    trap: Trap,
    /// The reason of the signal that ends the actor.
    exit: Option<ExitReason>,
}

/// The actor that a signal reaches.
pub(crate) enum Target {
    /// A plain pointer; rule 2 keeps it valid.
    Job(Task),
    Body(Weak<dyn SignalTarget>),
    Ended(ExitReason),
}

/// A behaviour actor as a target of signals.
pub(crate) trait SignalTarget: Snapshot {
    /// The control of the current incarnation.
    fn control(self: Arc<Self>) -> Arc<Control>;
    /// Rule 6: marks the actor to end now, between two messages or where its handler waits.
    fn kill(&self) -> SignalEffect;
    /// Rule 6: marks the actor to end after the message that it is handling.
    fn shut_down(&self) -> SignalEffect;
    /// Completes a signal after the lock was released.
    fn finish_signal(self: Arc<Self>, effect: SignalEffect);
    /// Rule 2 of `shutdown`: the turn never continues. The caller is the worker that ran it.
    fn abandoned(self: Arc<Self>);
    /// Delivers an exit signal to an incarnation that traps exits.
    fn deliver_exit(self: Arc<Self>, incarnation: ActorId, exit: Exit);
}

/// The work that a mark leaves for [`finish_signal`](SignalTarget::finish_signal).
pub(crate) enum SignalEffect {
    /// Wake the handler, if it waits.
    WakeHandler(Option<Waker>),
    /// Whether a turn must be scheduled.
    ScheduleTurn(bool),
}

#[derive(Debug, Default)]
enum Trap {
    #[default]
    None,
    Channel(mpsc::Sender<Exit>),
    Handler,
}

/// A receiver of an actor's exit.
pub(crate) enum DownListener {
    Monitor(oneshot::Sender<Down>),
    /// A function that neither waits nor runs user code.
    Callback(Box<dyn FnOnce(Down) + Send>),
}

/// The watcher of any number of tasks: it is notified of their ends, whether or not they have a control.
pub(crate) trait OnDown: Send + Sync {
    /// Neither waits nor runs user code.
    fn on_down(&self, down: Down);
}

/// The kind of an exit signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SignalKind {
    /// The exit of a linked actor.
    Link,
    /// A signal sent by [`Pid::exit`](crate::Pid::exit).
    Requested,
    /// A shutdown by the supervisor. A behaviour actor ends in an orderly way even if it traps
    /// exits, as OTP's behaviours do.
    Supervisor,
    /// A kill, which cannot be trapped.
    Kill,
}

/// The work for a signal after the lock is released.
enum AfterSignal {
    Nothing,
    /// The actor has not started and never will. It may be waiting for a stack.
    NotStarted,
    Wake(Waker),
    Finish(Arc<dyn SignalTarget>, SignalEffect),
    DeliverExit(Arc<dyn SignalTarget>, Exit),
}

impl Control {
    pub(crate) fn new(id: ActorId, target: Target) -> Arc<Self> {
        Arc::new(Self {
            id,
            state: Mutex::new(State {
                target,
                links: HashMap::default(),
                listeners: InlineSlab::default(),
                trap: Trap::None,
                exit: None,
            }),
        })
    }

    fn state(&self) -> LockGuard<'_, State> {
        lock(&self.state)
    }

    pub(crate) fn is_alive(&self) -> bool {
        !self.state().has_ended()
    }

    /// The reason why the actor ended or will end.
    pub(crate) fn exit_reason(&self) -> Option<ExitReason> {
        let state = self.state();
        match &state.target {
            Target::Ended(reason) => Some(reason.clone()),
            _ => state.exit.clone(),
        }
    }

    /// Adds a listener, and returns the index by which it is removed. `Err`: the actor has ended,
    /// and the listener is returned.
    pub(crate) fn add_listener(&self, listener: DownListener) -> Result<usize, DownListener> {
        let mut state = self.state();
        if state.has_ended() {
            return Err(listener);
        }
        Ok(state.listeners.insert(listener))
    }

    /// As [`add_listener`](Self::add_listener). If the actor has ended, the listener receives
    /// [`ExitReason::NoActor`].
    pub(crate) fn add_listener_or_notify(&self, listener: DownListener) -> Option<usize> {
        match self.add_listener(listener) {
            Ok(index) => Some(index),
            Err(listener) => {
                listener.notify(Down {
                    id: self.id,
                    reason: ExitReason::NoActor,
                });
                None
            }
        }
    }

    /// Removes a listener. Call it at most once for an index.
    pub(crate) fn remove_listener(&self, index: usize) {
        let listener = {
            let mut state = self.state();
            if state.has_ended() {
                return;
            }
            state.listeners.remove(index)
        };
        drop(listener);
    }

    /// Sends the exit signals of an actor with a stack to this channel from now on.
    pub(crate) fn trap(&self, sender: mpsc::Sender<Exit>) {
        self.state().trap = Trap::Channel(sender);
    }

    /// Passes exit signals to the handler, for a behaviour actor.
    pub(crate) fn trap_to_handler(&self, on: bool) {
        self.state().trap = if on { Trap::Handler } else { Trap::None };
    }

    /// Links two actors. `false`: `other` has ended, and nothing was changed.
    pub(crate) fn link(self: &Arc<Self>, other: &Arc<Self>) -> bool {
        if Arc::ptr_eq(self, other) {
            return true;
        }
        self.with_both(other, |mine, theirs| {
            if theirs.has_ended() {
                return false;
            }
            // An actor that has ended may still run a destructor. It receives no more signals.
            if !mine.has_ended() {
                mine.links.insert(other.id, Arc::clone(other));
                theirs.links.insert(self.id, Arc::clone(self));
            }
            true
        })
    }

    pub(crate) fn unlink(self: &Arc<Self>, other: &Arc<Self>) {
        if Arc::ptr_eq(self, other) {
            return;
        }
        let taken = self.with_both(other, |mine, theirs| {
            (mine.links.remove(&other.id), theirs.links.remove(&self.id))
        });
        drop(taken);
    }

    /// Locks both controls in the order of rule 1.
    fn with_both<R>(&self, other: &Self, f: impl FnOnce(&mut State, &mut State) -> R) -> R {
        let _no_preempt = NoPreemptGuard::enter();
        if self.id < other.id {
            let mut mine = self.state();
            let mut theirs = other.state();
            f(&mut mine, &mut theirs)
        } else {
            let mut theirs = other.state();
            let mut mine = self.state();
            f(&mut mine, &mut theirs)
        }
    }

    /// Sends an exit signal. `false`: the actor has ended.
    pub(crate) fn signal(
        &self,
        from: Option<ActorId>,
        reason: ExitReason,
        kind: SignalKind,
    ) -> bool {
        let _no_preempt = NoPreemptGuard::enter();
        let action = {
            let mut state = self.state();
            if state.has_ended() {
                return false;
            }
            // Rule 3.
            if kind == SignalKind::Link
                && from.is_none_or(|from| state.links.remove(&from).is_none())
            {
                return true;
            }
            state.apply_signal(Exit { from, reason }, kind)
        };
        match action {
            AfterSignal::Nothing => {}
            // A thread outside the runtime cannot do this. The actor then ends when it gets a
            // stack.
            AfterSignal::NotStarted => {
                if let Some(worker) = worker::current() {
                    worker.scheduler.end_signalled();
                }
            }
            AfterSignal::Wake(waker) => waker.wake(),
            AfterSignal::Finish(body, effect) => body.finish_signal(effect),
            AfterSignal::DeliverExit(body, exit) => body.deliver_exit(self.id, exit),
        }
        true
    }

    /// The actor has ended (rules 2 and 5). Only the first call has an effect.
    pub(crate) fn end(&self, reason: ExitReason) {
        let _no_preempt = NoPreemptGuard::enter();
        let (links, listeners) = {
            let mut state = self.state();
            if state.has_ended() {
                return;
            }
            state.target = Target::Ended(reason.clone());
            state.exit = None;
            state.trap = Trap::None;
            (
                std::mem::take(&mut state.links),
                std::mem::take(&mut state.listeners),
            )
        };
        for listener in listeners {
            listener.notify(Down {
                id: self.id,
                reason: reason.clone(),
            });
        }
        if !links.is_empty() {
            for peer in links.into_values() {
                peer.signal(Some(self.id), reason.clone(), SignalKind::Link);
            }
        }
    }
}

impl State {
    fn has_ended(&self) -> bool {
        matches!(self.target, Target::Ended(_))
    }

    fn apply_signal(&mut self, exit: Exit, kind: SignalKind) -> AfterSignal {
        if kind != SignalKind::Kill {
            match &self.trap {
                Trap::Channel(sender) => {
                    // If the receiver was dropped, exits are no longer trapped.
                    if sender.send(exit.clone()).is_ok() {
                        return AfterSignal::Nothing;
                    }
                }
                Trap::Handler if kind != SignalKind::Supervisor => {
                    return match self.body() {
                        Some(body) => AfterSignal::DeliverExit(body, exit),
                        None => AfterSignal::Nothing,
                    };
                }
                Trap::Handler | Trap::None => {}
            }
            if matches!(exit.reason, ExitReason::Normal) {
                return AfterSignal::Nothing;
            }
        }
        let is_orderly = matches!(
            exit.reason,
            ExitReason::Shutdown | ExitReason::ShutdownWith(_)
        );
        // Rule 4.
        if self.exit.is_none() || kind == SignalKind::Kill {
            self.exit = Some(exit.reason);
        }
        match &self.target {
            Target::Job(task) => task
                .set_kill_flag()
                .map_or(AfterSignal::NotStarted, AfterSignal::Wake),
            Target::Body(_) => match self.body() {
                Some(body) => {
                    let effect = if is_orderly {
                        body.shut_down()
                    } else {
                        body.kill()
                    };
                    AfterSignal::Finish(body, effect)
                }
                None => AfterSignal::Nothing,
            },
            Target::Ended(_) => AfterSignal::Nothing,
        }
    }

    fn body(&self) -> Option<Arc<dyn SignalTarget>> {
        match &self.target {
            Target::Body(body) => body.upgrade(),
            Target::Job(_) | Target::Ended(_) => None,
        }
    }
}

impl DownListener {
    pub(crate) fn notify(self, down: Down) {
        match self {
            // The monitor may have been dropped.
            Self::Monitor(sender) => drop(sender.send(down)),
            Self::Callback(callback) => callback(down),
        }
    }
}

impl fmt::Debug for DownListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DownListener")
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Job(_) => f.write_str("Job"),
            Self::Body(_) => f.write_str("Body"),
            Self::Ended(reason) => write!(f, "Ended({reason})"),
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.from {
            Some(id) => write!(f, "actor {id}: {}", self.reason),
            None => write!(f, "a thread: {}", self.reason),
        }
    }
}

impl fmt::Display for Down {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "actor {} ended: {}", self.id, self.reason)
    }
}
