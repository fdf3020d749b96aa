//! The supervisor as an actor: what it does when a child ends, and when it is asked.
//!
//! 1. A child's end comes through the system lane, with its incarnation's number. It counts if that incarnation is the child's: what the supervisor
//!    ended itself is not the child's any more when its message is read.
//! 2. The supervisor waits for each child that it starts, until its state is made, and for each that it ends. So it does one thing at a time, and
//!    what comes meanwhile waits.
//! 3. A restart that is not at once, or is tried again, comes by a timer, so that others are heard in between: what it sent itself at once would come
//!    before all of them, each time.
//! 4. Whatever way it goes, its children go before: in order by [`Actor::stopped`], else by its destructor, which kills them. Their mailboxes close,
//!    also of those that it did not come to start.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use thalweg_queue::clock;

use super::backoff::Random;
use super::child::{Child, ChildInfo, ChildState, Counts};
use super::error::{ChildError, StartError};
use super::restarts::Restarts;
use super::spec::{AutoShutdown, ChildKind, ChildSpec, Restart, Strategy, Supervisor};
use super::view::Look;
use crate::behaviour::{Actor, Context, Handler, SystemRef};
use crate::exit::{ExitReason, Pid, exit};
use crate::id::ActorId;

/// A child's place: younger ones are further to the right.
type Key = u64;

pub(super) struct Tree {
    strategy: Strategy,
    auto_shutdown: AutoShutdown,
    restarts: Restarts,
    /// From left to right.
    children: BTreeMap<Key, Child>,
    names: HashMap<String, Key>,
    /// Those that its start is to start.
    specs: VecDeque<ChildSpec>,
    next: Key,
    random: Random,
    to_self: Option<SystemRef<Self>>,
}

/// An incarnation of a child has ended by itself.
struct Ended {
    key: Key,
    incarnation: ActorId,
    reason: ExitReason,
}

/// Rule 3.
struct TryAgain(Key);

pub(super) struct Start(pub(super) ChildSpec);
pub(super) struct Terminate(pub(super) String);
pub(super) struct StartAgain(pub(super) String);
pub(super) struct Delete(pub(super) String);
pub(super) struct Which;
pub(super) struct Count;

/// Before a restart is tried again that has no back-off: where [`Backoff`](super::Backoff)'s default begins.
const PAUSE: Duration = Duration::from_millis(1);

/// Why a supervisor ended that restarted too often.
const TOO_OFTEN: &str = "it restarted its children too often";

impl Tree {
    pub(super) fn new(supervisor: Supervisor) -> Result<Self, StartError> {
        let tree = Self {
            strategy: supervisor.strategy,
            auto_shutdown: supervisor.auto_shutdown,
            restarts: Restarts::new(supervisor.intensity, supervisor.period),
            children: BTreeMap::new(),
            names: HashMap::new(),
            specs: supervisor.children.into(),
            next: 0,
            random: Random(clock::now()),
            to_self: None,
        };
        let mut names = HashSet::new();
        for spec in &tree.specs {
            check(spec, tree.auto_shutdown)?;
            if !names.insert(&spec.id) {
                return Err(StartError::DuplicateId(spec.id.clone()));
            }
        }
        Ok(tree)
    }

    fn to_self(&self) -> &SystemRef<Self> {
        self.to_self.as_ref().expect("it has started")
    }

    /// A child more, to the right, and its first incarnation.
    fn add(&mut self, spec: ChildSpec) -> Result<Pid, StartError> {
        check(&spec, self.auto_shutdown)?;
        if self.names.contains_key(&spec.id) {
            return Err(StartError::DuplicateId(spec.id));
        }
        let key = self.next;
        self.next += 1;
        self.names.insert(spec.id.clone(), key);
        self.children.insert(key, Child::new(spec));
        let started = self.start(key);
        if started.is_err() {
            self.remove(key);
        }
        started
    }

    /// An incarnation of a child that does not live.
    fn start(&mut self, key: Key) -> Result<Pid, StartError> {
        let to_self = self.to_self().clone();
        let child = self.children.get_mut(&key).expect("it is there");
        let place = &child.spec.place;
        if !child.has_listener {
            let listener = Arc::new(move |incarnation, reason| {
                to_self.send(Ended {
                    key,
                    incarnation,
                    reason,
                });
            });
            if !place.set_exit_listener(listener) {
                return Err(StartError::Supervised(child.spec.id.clone()));
            }
            child.has_listener = true;
            // A keeper that was killed may have left one behind.
            if let Some(pid) = place.restartable().running_pid() {
                let _ = pid.kill();
                pid.monitor().wait();
            }
        }
        match child.start() {
            Ok(()) => Ok(child.pid.clone().expect("it runs")),
            Err(reason) => Err(StartError::Child {
                id: child.spec.id.clone(),
                reason,
            }),
        }
    }

    /// There is no such child any more. It does not live.
    fn remove(&mut self, key: Key) {
        if let Some(mut child) = self.children.remove(&key) {
            self.names.remove(&child.spec.id);
            if child.has_listener {
                child.close_down();
            }
        }
    }

    /// Ends those, which are given from left to right, from right to left. Their mailboxes stay.
    fn end_all(&mut self, keys: &[Key]) {
        if self.strategy == Strategy::SimpleOneForOne {
            let asked = clock::now();
            let monitors: Vec<_> = keys
                .iter()
                .filter_map(|key| Some((*key, self.children.get(key)?.ask_to_end()?)))
                .collect();
            for (key, monitor) in monitors {
                if let Some(child) = self.children.get_mut(&key) {
                    child.wait_for_end(monitor, asked);
                }
            }
        }
        for key in keys.iter().rev() {
            if let Some(child) = self.children.get_mut(key) {
                child.forget_restart();
                child.state = ChildState::Stopped;
                let asked = clock::now();
                if let Some(monitor) = child.ask_to_end() {
                    child.wait_for_end(monitor, asked);
                }
            }
        }
    }

    /// Ends all, for good.
    fn end(&mut self) {
        let keys: Vec<_> = self.children.keys().copied().collect();
        self.end_all(&keys);
        for key in keys.into_iter().rev() {
            self.remove(key);
        }
    }

    /// A child has failed, or did not start again: rule 3.
    fn restart(&mut self, key: Key, again: bool) {
        if !self.restarts.add(clock::now()) {
            self.end();
            exit(ExitReason::ShutdownWith(Arc::from(Box::<
                dyn std::error::Error + Send + Sync,
            >::from(
                TOO_OFTEN
            ))));
        }
        let affected = self.affected(key);
        self.end_all(&affected);
        let Some(child) = self.children.get_mut(&key) else {
            return;
        };
        let failures = child.failed();
        let delay = match child.spec.backoff {
            Some(backoff) => backoff.delay(failures, self.random.next()),
            None => Duration::ZERO,
        };
        let delay = if again { delay.max(PAUSE) } else { delay };
        if delay.is_zero() {
            self.start_again(key);
            return;
        }
        child.state = ChildState::Restarting;
        let later = self.to_self().send_after(delay, TryAgain(key));
        if let Some(child) = self.children.get_mut(&key) {
            child.later = later;
        }
    }

    /// Those that go with it, from left to right; itself too.
    fn affected(&self, key: Key) -> Vec<Key> {
        match self.strategy {
            Strategy::OneForOne | Strategy::SimpleOneForOne => vec![key],
            Strategy::OneForAll => self.children.keys().copied().collect(),
            Strategy::RestForOne => self.children.range(key..).map(|(key, _)| *key).collect(),
        }
    }

    /// Starts it, and those that went with it.
    fn start_again(&mut self, key: Key) {
        for key in self.affected(key) {
            let child = self.children.get(&key);
            let Some(child) = child.filter(|child| child.pid.is_none()) else {
                continue;
            };
            // What is temporary was not to come back; its mailbox goes with it.
            if child.spec.restart == Restart::Temporary && child.starts > 0 {
                self.remove(key);
                continue;
            }
            if self.start(key).is_err() {
                return self.restart(key, true);
            }
        }
    }

    /// A child has ended by itself, and does not come back.
    fn is_done(&mut self, key: Key) {
        let Some(child) = self.children.get_mut(&key) else {
            return;
        };
        let counts = child.spec.significant;
        if child.spec.restart == Restart::Temporary {
            self.remove(key);
        } else {
            child.close_down();
        }
        let mut others = self.children.values();
        let ends = counts
            && match self.auto_shutdown {
                AutoShutdown::Never => false,
                AutoShutdown::AnySignificant => true,
                AutoShutdown::AllSignificant => {
                    !others.any(|child| child.spec.significant && child.pid.is_some())
                }
            };
        if ends {
            self.end();
            exit(ExitReason::Shutdown);
        }
    }

    fn key(&self, id: &str) -> Result<Key, ChildError> {
        let key = self.names.get(id).copied();
        key.ok_or_else(|| ChildError::NotFound(id.to_owned()))
    }

    /// The child of this name, which neither lives nor is about to.
    fn key_of_stopped(&self, id: &str) -> Result<Key, ChildError> {
        let key = self.key(id)?;
        match self.children.get(&key) {
            Some(child) if child.state == ChildState::Stopped => Ok(key),
            Some(_) => Err(ChildError::Running(id.to_owned())),
            None => Err(ChildError::NotFound(id.to_owned())),
        }
    }
}

fn check(spec: &ChildSpec, auto_shutdown: AutoShutdown) -> Result<(), StartError> {
    let can_be = auto_shutdown != AutoShutdown::Never && spec.restart != Restart::Permanent;
    if spec.significant && !can_be {
        return Err(StartError::Significant(spec.id.clone()));
    }
    Ok(())
}

impl Actor for Tree {
    fn started(&mut self, context: &Context<'_, Self>) {
        self.to_self = Some(SystemRef::of(context));
        while let Some(spec) = self.specs.pop_front() {
            if let Err(error) = self.add(spec) {
                self.end();
                exit(error.into());
            }
        }
    }

    fn stopped(&mut self) {
        self.end();
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        for child in self.children.values_mut().rev() {
            child.forget_restart();
            if let Some(pid) = &child.pid {
                let _ = pid.kill();
            }
            if child.has_listener {
                child.spec.place.release();
            }
        }
        // Those that its start did not come to.
        for spec in &self.specs {
            if spec.place.set_exit_listener(Arc::new(|_, _| {})) {
                spec.place.release();
            }
        }
    }
}

impl Handler<Ended> for Tree {
    type Reply = ();

    fn handle(&mut self, ended: Ended, _: &Context<'_, Self>) {
        let Ended {
            key,
            incarnation,
            reason,
        } = ended;
        // Rule 1.
        let child = self.children.get_mut(&key);
        let Some(child) = child.filter(|child| child.is(incarnation)) else {
            return;
        };
        child.ended(incarnation, &reason);
        let comes_back = match child.spec.restart {
            Restart::Permanent => true,
            Restart::Transient => !reason.is_orderly(),
            Restart::Temporary => false,
        };
        if comes_back {
            self.restart(key, false);
        } else {
            self.is_done(key);
        }
    }
}

impl Handler<TryAgain> for Tree {
    type Reply = ();

    fn handle(&mut self, TryAgain(key): TryAgain, _: &Context<'_, Self>) {
        let child = self.children.get(&key);
        if child.is_some_and(|child| child.state == ChildState::Restarting) {
            self.start_again(key);
        }
    }
}

impl Handler<Start> for Tree {
    type Reply = Result<Pid, ChildError>;

    fn handle(&mut self, Start(spec): Start, _: &Context<'_, Self>) -> Self::Reply {
        self.add(spec).map_err(ChildError::Start)
    }
}

impl Handler<Terminate> for Tree {
    type Reply = Result<(), ChildError>;

    fn handle(&mut self, Terminate(id): Terminate, _: &Context<'_, Self>) -> Self::Reply {
        let key = self.key(&id)?;
        self.end_all(&[key]);
        match self.children.get_mut(&key) {
            Some(child) if child.spec.restart != Restart::Temporary => child.close_down(),
            _ => self.remove(key),
        }
        Ok(())
    }
}

impl Handler<StartAgain> for Tree {
    type Reply = Result<Pid, ChildError>;

    fn handle(&mut self, StartAgain(id): StartAgain, _: &Context<'_, Self>) -> Self::Reply {
        let key = self.key_of_stopped(&id)?;
        let started = self.start(key).map_err(ChildError::Start);
        if started.is_err()
            && let Some(child) = self.children.get_mut(&key)
        {
            child.close_down();
        }
        started
    }
}

impl Handler<Delete> for Tree {
    type Reply = Result<(), ChildError>;

    fn handle(&mut self, Delete(id): Delete, _: &Context<'_, Self>) -> Self::Reply {
        let key = self.key_of_stopped(&id)?;
        self.remove(key);
        Ok(())
    }
}

impl Handler<Which> for Tree {
    type Reply = Vec<ChildInfo>;

    fn handle(&mut self, _: Which, _: &Context<'_, Self>) -> Vec<ChildInfo> {
        self.children.values().map(Child::info).collect()
    }
}

impl Handler<Look> for Tree {
    type Reply = ();

    fn handle(&mut self, look: Look, _: &Context<'_, Self>) {
        let children = self.children.values();
        let children = children.map(|child| (child.info(), child.spec.below.clone()));
        look.answer(self.strategy, children.collect());
    }
}

impl Handler<Count> for Tree {
    type Reply = Counts;

    fn handle(&mut self, _: Count, _: &Context<'_, Self>) -> Counts {
        let mut counts = Counts::default();
        for child in self.children.values() {
            counts.specs += 1;
            counts.active += usize::from(child.pid.is_some());
            match child.spec.kind {
                ChildKind::Supervisor => counts.supervisors += 1,
                ChildKind::Worker => counts.workers += 1,
            }
        }
        counts
    }
}
