//! One child of a supervisor, and the information about it.

use std::collections::{BTreeMap, VecDeque};
use std::time::SystemTime;

use thalweg_queue::clock;

use super::spec::{ChildKind, ChildSpec, Restart, Shutdown};
use crate::behaviour::DelayedSend;
use crate::exit::{Monitor, Pid};
use crate::id::ActorId;
use crate::reason::ExitReason;
use crate::runtime::Handle;
use crate::time_of_day;

/// Crashes that are kept for each child.
const MAX_CRASHES: usize = 8;

/// The state of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildState {
    /// It is running.
    Running,
    /// It will be restarted after a delay.
    Restarting,
    /// It ended or was stopped, and can be started again.
    Stopped,
}

/// An exit of a child that was a failure.
#[derive(Clone, Debug)]
pub struct ChildCrash {
    /// The incarnation that ended.
    pub incarnation: ActorId,
    /// The exit reason.
    pub reason: ExitReason,
    /// When the supervisor learnt of it.
    pub at: SystemTime,
}

/// Information about a child.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ChildInfo {
    /// Its name.
    pub id: String,
    /// Its kind.
    pub kind: ChildKind,
    /// When it is restarted.
    pub restart: Restart,
    /// Its state.
    pub state: ChildState,
    /// The running incarnation.
    pub pid: Option<Pid>,
    /// The number of messages in its mailbox.
    pub waiting: usize,
    /// The number of starts after the first.
    pub restarts: u64,
    /// The last eight crashes, oldest first.
    pub crashes: Vec<ChildCrash>,
    /// The number of exits by [kind](ExitReason::kind) of reason.
    pub reasons: BTreeMap<&'static str, u64>,
}

/// The number of children.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChildCounts {
    /// All children, running or not.
    pub specs: usize,
    /// Running children.
    pub active: usize,
    /// Children that are supervisors, running or not.
    pub supervisors: usize,
    /// All other children, running or not.
    pub workers: usize,
}

pub(super) struct Child {
    pub(super) spec: ChildSpec,
    /// Present while it is [`Running`](ChildState::Running).
    pub(super) pid: Option<Pid>,
    pub(super) state: ChildState,
    pub(super) starts: u64,
    /// Consecutive failures.
    pub(super) failures: u32,
    since: u64,
    /// The timer of a delayed restart.
    pub(super) restart_timer: Option<DelayedSend>,
    /// Whether this supervisor receives the child's exits.
    pub(super) has_listener: bool,
    crashes: VecDeque<ChildCrash>,
    reasons: BTreeMap<&'static str, u64>,
}

impl Child {
    pub(super) fn new(spec: ChildSpec) -> Self {
        Self {
            spec,
            pid: None,
            state: ChildState::Stopped,
            starts: 0,
            failures: 0,
            since: 0,
            restart_timer: None,
            has_listener: false,
            crashes: VecDeque::new(),
            reasons: BTreeMap::new(),
        }
    }

    pub(super) fn is(&self, incarnation: ActorId) -> bool {
        self.pid.as_ref().is_some_and(|pid| pid.id() == incarnation)
    }

    /// Starts an incarnation, and waits until its state is created.
    pub(super) fn start(&mut self) -> Result<(), ExitReason> {
        self.cancel_restart();
        let (pid, started) = self.spec.handle.restartable().start();
        let incarnation = pid.id();
        self.pid = Some(pid);
        self.state = ChildState::Running;
        self.starts += 1;
        if self.starts > 1
            && let Some(runtime) = Handle::current()
        {
            runtime.count(|counts| &counts.restarts);
        }
        self.since = clock::now();
        let failed = match started.recv() {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(reason)) => reason,
            Err(_) => ExitReason::Stopped,
        };
        self.ended(incarnation, &failed);
        Err(failed)
    }

    /// Closes the mailbox of a child that is not running and does not restart by itself. Its
    /// messages are dropped.
    pub(super) fn close_down(&mut self) {
        self.cancel_restart();
        self.has_listener = false;
        self.spec.handle.release();
    }

    pub(super) fn cancel_restart(&mut self) {
        if let Some(restart_timer) = self.restart_timer.take() {
            restart_timer.cancel();
        }
    }

    /// Records the exit of an incarnation.
    pub(super) fn ended(&mut self, incarnation: ActorId, reason: &ExitReason) {
        self.pid = None;
        self.state = ChildState::Stopped;
        *self.reasons.entry(reason.kind()).or_default() += 1;
        if reason.is_orderly() {
            return;
        }
        if self.crashes.len() == MAX_CRASHES {
            self.crashes.pop_front();
        }
        self.crashes.push_back(ChildCrash {
            incarnation,
            reason: reason.clone(),
            at: time_of_day::now(),
        });
    }

    /// Counts a failure, and returns the number of consecutive failures. An incarnation that ran
    /// for `reset_after` starts the count again.
    pub(super) fn failed(&mut self) -> u32 {
        let lived = clock::now().saturating_sub(self.since);
        let is_reset = self
            .spec
            .backoff
            .is_none_or(|backoff| u128::from(lived) >= backoff.reset_after.as_nanos());
        self.failures = if is_reset { 1 } else { self.failures + 1 };
        self.failures
    }

    /// Sends the running incarnation the exit signal of its spec.
    pub(super) fn request_exit(&self) -> Option<Monitor> {
        let pid = self.pid.as_ref()?;
        let monitor = pid.monitor();
        // It may have ended by itself.
        let _ = match self.spec.shutdown {
            Shutdown::BrutalKill => pid.kill(),
            Shutdown::Timeout(_) | Shutdown::Infinity => pid.shut_down(),
        };
        Some(monitor)
    }

    /// Waits for the requested exit, at most for the time in the spec, and then kills the child.
    pub(super) fn wait_for_exit(&mut self, mut monitor: Monitor, requested_at: u64) {
        let down = match self.spec.shutdown {
            Shutdown::BrutalKill | Shutdown::Infinity => None,
            Shutdown::Timeout(time) => {
                let gone = clock::now().saturating_sub(requested_at);
                let left = time.saturating_sub(std::time::Duration::from_nanos(gone));
                let down = monitor.wait_timeout(left);
                if down.is_none()
                    && let Some(pid) = &self.pid
                {
                    let _ = pid.kill();
                }
                down
            }
        };
        let down = down.unwrap_or_else(|| monitor.wait());
        self.ended(down.id, &down.reason);
    }

    pub(super) fn info(&self) -> ChildInfo {
        ChildInfo {
            id: self.spec.id.clone(),
            kind: self.spec.kind,
            restart: self.spec.restart,
            state: self.state,
            pid: self.pid.clone(),
            waiting: self.spec.handle.queue_len(),
            restarts: self.starts.saturating_sub(1),
            crashes: self.crashes.iter().cloned().collect(),
            reasons: self.reasons.clone(),
        }
    }
}
