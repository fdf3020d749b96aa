//! The actor of a supervisor: how it reacts to the exit of a child and to requests.
//!
//! 1. The exit of a child arrives as a system message with the incarnation's number. It counts only
//!    if that incarnation is the child's current one. An incarnation that the supervisor stopped
//!    itself is no longer current when its message is read.
//! 2. The supervisor waits for each child that it starts, until its state is created, and for each
//!    child that it stops. It does one thing at a time; messages that arrive meanwhile wait.
//! 3. A delayed or repeated restart is triggered by a timer, so that other messages are handled in
//!    between. A system message that the supervisor sent to itself would be handled before all of
//!    them, each time.
//! 4. However a supervisor ends, its children end first: in an orderly way in [`Actor::stopped`],
//!    otherwise in its destructor, which kills them. Their mailboxes are closed, also those of
//!    children that were never started.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use thalweg_queue::clock;

use super::backoff::Random;
use super::child::{Child, ChildCounts, ChildInfo, ChildState};
use super::error::{ChildError, SupervisorStartError};
use super::restart_intensity::RestartIntensity;
use super::spec::{AutoShutdown, ChildKind, ChildSpec, Restart, Strategy, Supervisor};
use super::view::SnapshotRequest;
use crate::behaviour::{Actor, Context, Handler, SystemRef};
use crate::exit::{Pid, exit};
use crate::id::ActorId;
use crate::log::{self, Level};
use crate::reason::ExitReason;
use crate::wait;

/// The position of a child. A later child has a larger key and is further to the right.
type Key = u64;

pub(super) struct SupervisorActor {
    strategy: Strategy,
    auto_shutdown: AutoShutdown,
    restarts: RestartIntensity,
    /// From left to right.
    children: BTreeMap<Key, Child>,
    names: HashMap<String, Key>,
    /// The children that `started` has not started yet.
    specs: VecDeque<ChildSpec>,
    next: Key,
    random: Random,
    self_ref: Option<SystemRef<Self>>,
}

/// An incarnation of a child has ended by itself.
struct ChildExited {
    key: Key,
    incarnation: ActorId,
    reason: ExitReason,
}

/// The timer of rule 3.
struct RetryRestart(Key);

pub(super) struct StartChild(pub(super) ChildSpec);
pub(super) struct TerminateChild(pub(super) String);
pub(super) struct RestartChild(pub(super) String);
pub(super) struct DeleteChild(pub(super) String);
pub(super) struct WhichChildren;
pub(super) struct CountChildren;

/// The delay before a failed restart is repeated, for a child without a back-off: the first step of
/// [`Backoff`](super::Backoff)'s default.
const RETRY_DELAY: Duration = Duration::from_millis(1);

/// The exit reason of a supervisor whose restart intensity was exceeded.
const TOO_MANY_RESTARTS: &str = "it restarted its children too often";

impl SupervisorActor {
    pub(super) fn new(supervisor: Supervisor) -> Result<Self, SupervisorStartError> {
        let actor = Self {
            strategy: supervisor.strategy,
            auto_shutdown: supervisor.auto_shutdown,
            restarts: RestartIntensity::new(supervisor.intensity, supervisor.period),
            children: BTreeMap::new(),
            names: HashMap::new(),
            specs: supervisor.children.into(),
            next: 0,
            random: Random(clock::now()),
            self_ref: None,
        };
        let mut names = HashSet::new();
        for spec in &actor.specs {
            check(spec, actor.auto_shutdown)?;
            if !names.insert(&spec.id) {
                return Err(SupervisorStartError::DuplicateId(spec.id.clone()));
            }
        }
        Ok(actor)
    }

    fn self_ref(&self) -> &SystemRef<Self> {
        self.self_ref.as_ref().expect("the supervisor has started")
    }

    /// Adds a child on the right and starts its first incarnation.
    fn add(&mut self, spec: ChildSpec) -> Result<Pid, SupervisorStartError> {
        check(&spec, self.auto_shutdown)?;
        if self.names.contains_key(&spec.id) {
            return Err(SupervisorStartError::DuplicateId(spec.id));
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

    /// Starts an incarnation of a child that is not running.
    fn start(&mut self, key: Key) -> Result<Pid, SupervisorStartError> {
        let self_ref = self.self_ref().clone();
        let child = self.children.get_mut(&key).expect("the key is in use");
        let handle = &child.spec.handle;
        if !child.has_listener {
            let listener = Arc::new(move |incarnation, reason| {
                self_ref.send(ChildExited {
                    key,
                    incarnation,
                    reason,
                });
            });
            if !handle.set_exit_listener(listener) {
                return Err(SupervisorStartError::Supervised(child.spec.id.clone()));
            }
            child.has_listener = true;
            // A previous supervisor that was killed may have left an incarnation behind.
            if let Some(pid) = handle.restartable().running_pid() {
                let _ = pid.kill();
                pid.monitor().wait();
            }
        }
        match child.start() {
            Ok(()) => Ok(child.pid.clone().expect("the child is running")),
            Err(reason) => Err(SupervisorStartError::Child {
                id: child.spec.id.clone(),
                reason,
            }),
        }
    }

    /// Removes a child that is not running.
    fn remove(&mut self, key: Key) {
        if let Some(mut child) = self.children.remove(&key) {
            self.names.remove(&child.spec.id);
            if child.has_listener {
                child.close_down();
            }
        }
    }

    /// Stops these children, which are given from left to right, from right to left. Their
    /// mailboxes stay open.
    fn stop_children(&mut self, keys: &[Key]) {
        if self.strategy == Strategy::SimpleOneForOne {
            let requested_at = clock::now();
            let monitors: Vec<_> = keys
                .iter()
                .filter_map(|key| Some((*key, self.children.get(key)?.request_exit()?)))
                .collect();
            for (key, monitor) in monitors {
                if let Some(child) = self.children.get_mut(&key) {
                    child.wait_for_exit(monitor, requested_at);
                }
            }
        }
        for key in keys.iter().rev() {
            if let Some(child) = self.children.get_mut(key) {
                child.cancel_restart();
                child.state = ChildState::Stopped;
                let requested_at = clock::now();
                if let Some(monitor) = child.request_exit() {
                    child.wait_for_exit(monitor, requested_at);
                }
            }
        }
    }

    /// Stops and removes all children.
    fn stop_all(&mut self) {
        let keys: Vec<_> = self.children.keys().copied().collect();
        self.stop_children(&keys);
        for key in keys.into_iter().rev() {
            self.remove(key);
        }
    }

    /// A child has failed, or its restart has failed: rule 3.
    fn restart(&mut self, key: Key, again: bool) {
        let number = || wait::current().map_or(0, ActorId::number);
        if !self.restarts.add(clock::now()) {
            log::write(
                Level::Error,
                "supervisor",
                format_args!("supervisor {} ends: {TOO_MANY_RESTARTS}", number()),
            );
            self.stop_all();
            exit(ExitReason::shutdown_with(TOO_MANY_RESTARTS));
        }
        let affected = self.affected(key);
        self.stop_children(&affected);
        let Some(child) = self.children.get_mut(&key) else {
            return;
        };
        log::write(
            Level::Info,
            "supervisor",
            format_args!("supervisor {} restarts {}", number(), child.spec.id()),
        );
        let failures = child.failed();
        let delay = match child.spec.backoff {
            Some(backoff) => backoff.delay(failures, self.random.next()),
            None => Duration::ZERO,
        };
        let delay = if again { delay.max(RETRY_DELAY) } else { delay };
        if delay.is_zero() {
            self.restart_affected(key);
            return;
        }
        child.state = ChildState::Restarting;
        let timer = self.self_ref().send_after(delay, RetryRestart(key));
        if let Some(child) = self.children.get_mut(&key) {
            child.restart_timer = timer;
        }
    }

    /// The children that are restarted with this one, itself included, from left to right.
    fn affected(&self, key: Key) -> Vec<Key> {
        match self.strategy {
            Strategy::OneForOne | Strategy::SimpleOneForOne => vec![key],
            Strategy::OneForAll => self.children.keys().copied().collect(),
            Strategy::RestForOne => self.children.range(key..).map(|(key, _)| *key).collect(),
        }
    }

    /// Starts a child and those that were stopped with it.
    fn restart_affected(&mut self, key: Key) {
        for key in self.affected(key) {
            let child = self.children.get(&key);
            let Some(child) = child.filter(|child| child.pid.is_none()) else {
                continue;
            };
            // A temporary child is not restarted. Its mailbox is closed.
            if child.spec.restart == Restart::Temporary && child.starts > 0 {
                self.remove(key);
                continue;
            }
            if self.start(key).is_err() {
                return self.restart(key, true);
            }
        }
    }

    /// A child has ended by itself and is not restarted.
    fn finish_child(&mut self, key: Key) {
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
            self.stop_all();
            exit(ExitReason::Shutdown);
        }
    }

    fn key(&self, id: &str) -> Result<Key, ChildError> {
        let key = self.names.get(id).copied();
        key.ok_or_else(|| ChildError::NotFound(id.to_owned()))
    }

    /// The key of a child that is neither running nor about to be restarted.
    fn stopped_key(&self, id: &str) -> Result<Key, ChildError> {
        let key = self.key(id)?;
        match self.children.get(&key) {
            Some(child) if child.state == ChildState::Stopped => Ok(key),
            Some(_) => Err(ChildError::Running(id.to_owned())),
            None => Err(ChildError::NotFound(id.to_owned())),
        }
    }
}

fn check(spec: &ChildSpec, auto_shutdown: AutoShutdown) -> Result<(), SupervisorStartError> {
    let is_allowed = auto_shutdown != AutoShutdown::Never && spec.restart != Restart::Permanent;
    if spec.significant && !is_allowed {
        return Err(SupervisorStartError::Significant(spec.id.clone()));
    }
    Ok(())
}

impl Actor for SupervisorActor {
    fn started(&mut self, context: &Context<'_, Self>) {
        self.self_ref = Some(SystemRef::of(context));
        while let Some(spec) = self.specs.pop_front() {
            if let Err(error) = self.add(spec) {
                self.stop_all();
                exit(error.into());
            }
        }
    }

    fn stopped(&mut self) {
        self.stop_all();
    }
}

impl Drop for SupervisorActor {
    fn drop(&mut self) {
        for child in self.children.values_mut().rev() {
            child.cancel_restart();
            if let Some(pid) = &child.pid {
                let _ = pid.kill();
            }
            if child.has_listener {
                child.spec.handle.release();
            }
        }
        // The children that `started` did not reach.
        for spec in &self.specs {
            if spec.handle.set_exit_listener(Arc::new(|_, _| {})) {
                spec.handle.release();
            }
        }
    }
}

impl Handler<ChildExited> for SupervisorActor {
    type Reply = ();

    fn handle(&mut self, ended: ChildExited, _: &Context<'_, Self>) {
        let ChildExited {
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
        let restarts = match child.spec.restart {
            Restart::Permanent => true,
            Restart::Transient => !reason.is_orderly(),
            Restart::Temporary => false,
        };
        if restarts {
            self.restart(key, false);
        } else {
            self.finish_child(key);
        }
    }
}

impl Handler<RetryRestart> for SupervisorActor {
    type Reply = ();

    fn handle(&mut self, RetryRestart(key): RetryRestart, _: &Context<'_, Self>) {
        let child = self.children.get(&key);
        if child.is_some_and(|child| child.state == ChildState::Restarting) {
            self.restart_affected(key);
        }
    }
}

impl Handler<StartChild> for SupervisorActor {
    type Reply = Result<Pid, ChildError>;

    fn handle(&mut self, StartChild(spec): StartChild, _: &Context<'_, Self>) -> Self::Reply {
        self.add(spec).map_err(ChildError::Start)
    }
}

impl Handler<TerminateChild> for SupervisorActor {
    type Reply = Result<(), ChildError>;

    fn handle(&mut self, TerminateChild(id): TerminateChild, _: &Context<'_, Self>) -> Self::Reply {
        let key = self.key(&id)?;
        self.stop_children(&[key]);
        match self.children.get_mut(&key) {
            Some(child) if child.spec.restart != Restart::Temporary => child.close_down(),
            _ => self.remove(key),
        }
        Ok(())
    }
}

impl Handler<RestartChild> for SupervisorActor {
    type Reply = Result<Pid, ChildError>;

    fn handle(&mut self, RestartChild(id): RestartChild, _: &Context<'_, Self>) -> Self::Reply {
        let key = self.stopped_key(&id)?;
        let started = self.start(key).map_err(ChildError::Start);
        if started.is_err()
            && let Some(child) = self.children.get_mut(&key)
        {
            child.close_down();
        }
        started
    }
}

impl Handler<DeleteChild> for SupervisorActor {
    type Reply = Result<(), ChildError>;

    fn handle(&mut self, DeleteChild(id): DeleteChild, _: &Context<'_, Self>) -> Self::Reply {
        let key = self.stopped_key(&id)?;
        self.remove(key);
        Ok(())
    }
}

impl Handler<WhichChildren> for SupervisorActor {
    type Reply = Vec<ChildInfo>;

    fn handle(&mut self, _: WhichChildren, _: &Context<'_, Self>) -> Vec<ChildInfo> {
        self.children.values().map(Child::info).collect()
    }
}

impl Handler<SnapshotRequest> for SupervisorActor {
    type Reply = ();

    fn handle(&mut self, request: SnapshotRequest, _: &Context<'_, Self>) {
        let children = self.children.values();
        let children = children.map(|child| (child.info(), child.spec.subtree.clone()));
        request.reply(self.strategy, children.collect());
    }
}

impl Handler<CountChildren> for SupervisorActor {
    type Reply = ChildCounts;

    fn handle(&mut self, _: CountChildren, _: &Context<'_, Self>) -> ChildCounts {
        let mut counts = ChildCounts::default();
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
