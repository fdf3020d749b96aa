//! What others know of one incarnation of an actor: whether it lives, how a signal reaches it, and who hears of its end. It is made when somebody
//! first asks for the actor's [`Pid`](super::Pid); an actor that nobody names has none.
//!
//! 1. All of it is behind one lock, under which no code of a user runs. Two are held at once only for a link, in the order of their numbers.
//! 2. `reach` names the actor for as long as it is not [`Ended`](Reach::Ended): who ends it says so here before its job or its body may go.
//! 3. A link is in both controls or in neither; so an end is told once, and not after the link was taken back.
//! 4. The first exit that is to end it stays, but a kill takes its place as long as it was not raised.
//! 5. Who watches is told after the lock was left, in the order in which they came.
//! 6. A behaviour actor is marked under the lock, and woken after: so a signal that comes late is never the next incarnation's, which takes the marks
//!    away when it begins.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, Weak};
use std::task::Waker;

use thalweg_queue::{NoPreemptGuard, mpsc, oneshot};

use super::watches::Watches;
use super::{Down, Exit, ExitReason};
use crate::id::ActorId;
use crate::inspect::Seen;
use crate::shim::{LockGuard, Mutex, lock};
use crate::task::Task;
use crate::worker;

#[derive(Debug)]
pub(crate) struct Control {
    pub(crate) id: ActorId,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    reach: Reach,
    links: HashMap<ActorId, Arc<Control>, BuildHasherDefault<Numbers>>,
    watches: Watches,
    trap: Trap,
    /// What is to end it.
    exit: Option<ExitReason>,
}

/// How a signal reaches an actor.
pub(crate) enum Reach {
    /// By its bare address: rule 2.
    Job(Task),
    Body(Weak<dyn Reached>),
    Ended(ExitReason),
}

/// A behaviour actor, as signals see it.
pub(crate) trait Reached: Send + Sync {
    /// That of the incarnation that lives.
    fn control(self: Arc<Self>) -> Arc<Control>;
    /// Rule 6: it is to end now, between two messages or where its handler waits.
    fn set_kill_flag(&self) -> Marked;
    /// Rule 6: it is to end after the message that it handles.
    fn shut_down(&self) -> Marked;
    /// It was marked, and the lock was left.
    fn hear(self: Arc<Self>, marked: Marked);
    /// `shutdown`'s rule 2: its turn is put aside for good. The caller is that turn's worker.
    fn abandoned(self: Arc<Self>);
    /// It traps exits, this incarnation of it.
    fn trapped(self: Arc<Self>, incarnation: ActorId, exit: Exit);
    /// How it is just now.
    fn seen(&self) -> Seen;
}

/// What a mark leaves to do.
pub(crate) enum Marked {
    /// What wakes its handler, if that waits.
    Doomed(Option<Waker>),
    /// Whether a turn is to be made.
    Stopped(bool),
}

#[derive(Debug, Default)]
enum Trap {
    #[default]
    None,
    Channel(mpsc::Sender<Exit>),
    Letters,
}

/// Who hears of the end.
pub(crate) enum Watch {
    Monitor(oneshot::Sender<Down>),
    /// What has its own way, which neither waits nor runs code of a user.
    Tell(Box<dyn FnOnce(Down) + Send>),
    /// One that hears of many.
    Shared(Arc<dyn Hears>),
}

/// As [`Watch::Tell`], of each that it watches.
pub(crate) trait Hears: Send + Sync {
    fn hears(&self, down: Down);
}

/// What kind of exit signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Of a linked actor's end.
    Link,
    /// Somebody's.
    Asked,
    /// The supervisor's: a behaviour actor ends for it in order, whether it traps exits or not, as OTP's behaviours do.
    Parent,
    /// Not trapped.
    Kill,
}

/// What is to be done for a signal when the lock is left.
enum Then {
    Nothing,
    /// It has not begun, and will not: it may wait for a stack.
    Unbegun,
    Wake(Waker),
    Hear(Arc<dyn Reached>, Marked),
    Trapped(Arc<dyn Reached>, Exit),
}

impl Control {
    pub(crate) fn new(id: ActorId, reach: Reach) -> Arc<Self> {
        Arc::new(Self {
            id,
            state: Mutex::new(State {
                reach,
                links: HashMap::default(),
                watches: Watches::default(),
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

    /// What is to end it, or did.
    pub(crate) fn exit_reason(&self) -> Option<ExitReason> {
        let state = self.state();
        match &state.reach {
            Reach::Ended(reason) => Some(reason.clone()),
            _ => state.exit.clone(),
        }
    }

    /// Tells `watch` of the end; the place to take it back by. `Err`: it has ended, and this is how.
    pub(crate) fn watch(&self, watch: Watch) -> Result<usize, Watch> {
        let mut state = self.state();
        if state.has_ended() {
            return Err(watch);
        }
        Ok(state.watches.add(watch))
    }

    /// The same; who has ended already is [`ExitReason::NoActor`].
    pub(crate) fn watch_or_tell(&self, watch: Watch) -> Option<usize> {
        match self.watch(watch) {
            Ok(place) => Some(place),
            Err(watch) => {
                watch.tell(Down {
                    id: self.id,
                    reason: ExitReason::NoActor,
                });
                None
            }
        }
    }

    /// Whoever got the place, once.
    pub(crate) fn unwatch(&self, place: usize) {
        let watch = {
            let mut state = self.state();
            if state.has_ended() {
                return;
            }
            state.watches.take(place)
        };
        drop(watch);
    }

    /// Of the actor that runs: its exits are messages from now on.
    pub(crate) fn trap(&self, sender: mpsc::Sender<Exit>) {
        self.state().trap = Trap::Channel(sender);
    }

    /// The same for a behaviour actor.
    pub(crate) fn trap_letters(&self, on: bool) {
        self.state().trap = if on { Trap::Letters } else { Trap::None };
    }

    /// Links two actors. `false`: `other` has ended. Both are as they were then.
    pub(crate) fn link(self: &Arc<Self>, other: &Arc<Self>) -> bool {
        if Arc::ptr_eq(self, other) {
            return true;
        }
        self.with_both(other, |mine, theirs| {
            if theirs.has_ended() {
                return false;
            }
            // An actor that has ended and is still at work, in a destructor, hears no more.
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

    /// Rule 1.
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

    /// An exit signal. `false`: it has ended already.
    pub(crate) fn signal(&self, from: Option<ActorId>, reason: ExitReason, kind: Kind) -> bool {
        let _no_preempt = NoPreemptGuard::enter();
        let then = {
            let mut state = self.state();
            if state.has_ended() {
                return false;
            }
            // Rule 3.
            if kind == Kind::Link && from.is_none_or(|from| state.links.remove(&from).is_none()) {
                return true;
            }
            state.take(Exit { from, reason }, kind)
        };
        match then {
            Then::Nothing => {}
            // Elsewhere it ends when it gets one.
            Then::Unbegun => {
                if let Some(worker) = worker::current() {
                    worker.scheduler.end_signalled();
                }
            }
            Then::Wake(waker) => waker.wake(),
            Then::Hear(body, marked) => body.hear(marked),
            Then::Trapped(body, exit) => body.trapped(self.id, exit),
        }
        true
    }

    /// It has ended: rules 2 and 5. What comes later is an end of its own, and is not told.
    pub(crate) fn end(&self, reason: ExitReason) {
        let _no_preempt = NoPreemptGuard::enter();
        let (links, watches) = {
            let mut state = self.state();
            if state.has_ended() {
                return;
            }
            state.reach = Reach::Ended(reason.clone());
            state.exit = None;
            state.trap = Trap::None;
            (
                std::mem::take(&mut state.links),
                std::mem::take(&mut state.watches),
            )
        };
        watches.for_each(|watch| {
            watch.tell(Down {
                id: self.id,
                reason: reason.clone(),
            });
        });
        for peer in links.into_values() {
            peer.signal(Some(self.id), reason.clone(), Kind::Link);
        }
    }
}

impl State {
    fn has_ended(&self) -> bool {
        matches!(self.reach, Reach::Ended(_))
    }

    fn take(&mut self, exit: Exit, kind: Kind) -> Then {
        if kind != Kind::Kill {
            match &self.trap {
                Trap::Channel(sender) => {
                    // Its receiver may have gone: then it traps no more.
                    if sender.send(exit.clone()).is_ok() {
                        return Then::Nothing;
                    }
                }
                Trap::Letters if kind != Kind::Parent => {
                    return match self.body() {
                        Some(body) => Then::Trapped(body, exit),
                        None => Then::Nothing,
                    };
                }
                Trap::Letters | Trap::None => {}
            }
            if matches!(exit.reason, ExitReason::Normal) {
                return Then::Nothing;
            }
        }
        let in_order = matches!(
            exit.reason,
            ExitReason::Shutdown | ExitReason::ShutdownWith(_)
        );
        // Rule 4.
        if self.exit.is_none() || kind == Kind::Kill {
            self.exit = Some(exit.reason);
        }
        match &self.reach {
            Reach::Job(task) => task.set_kill_flag().map_or(Then::Unbegun, Then::Wake),
            Reach::Body(_) => match self.body() {
                Some(body) => {
                    let marked = if in_order {
                        body.shut_down()
                    } else {
                        body.set_kill_flag()
                    };
                    Then::Hear(body, marked)
                }
                None => Then::Nothing,
            },
            Reach::Ended(_) => Then::Nothing,
        }
    }

    fn body(&self) -> Option<Arc<dyn Reached>> {
        match &self.reach {
            Reach::Body(body) => body.upgrade(),
            Reach::Job(_) | Reach::Ended(_) => None,
        }
    }
}

impl Watch {
    pub(crate) fn tell(self, down: Down) {
        match self {
            // Who asked may not want it any more.
            Self::Monitor(sender) => drop(sender.send(down)),
            Self::Tell(tell) => tell(down),
            Self::Shared(hears) => hears.hears(down),
        }
    }
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Watch")
    }
}

impl std::fmt::Debug for Reach {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Job(_) => f.write_str("Job"),
            Self::Body(_) => f.write_str("Body"),
            Self::Ended(reason) => write!(f, "Ended({reason})"),
        }
    }
}

/// Actors' numbers are their own hash but for the spreading: nobody chooses them. By Fibonacci's multiplication (Knuth, The Art of Computer
/// Programming 3, 6.4).
#[derive(Debug, Default)]
pub(crate) struct Numbers(u64);

impl Hasher for Numbers {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(32);
    }
}
