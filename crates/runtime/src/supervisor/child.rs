//! One child of a supervisor, and what others see of it.

use std::collections::{BTreeMap, VecDeque};
use std::time::SystemTime;

use thalweg_queue::clock;

use super::spec::{ChildKind, ChildSpec, Restart, Shutdown};
use crate::behaviour::Later;
use crate::exit::{ExitReason, Monitor, Pid};
use crate::id::ActorId;
use crate::inspect::time_of_day_now;
use crate::runtime::Handle;

/// Crashes that are kept of each child.
const CRASHES: usize = 8;

/// How a child is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildState {
    /// It lives.
    Running,
    /// It is about to be started again.
    Restarting,
    /// It ended, or was ended, and can be started again.
    Stopped,
}

/// One end of a child that was not in order.
#[derive(Clone, Debug)]
pub struct Crash {
    /// Which incarnation.
    pub incarnation: ActorId,
    /// Why.
    pub reason: ExitReason,
    /// When it was seen.
    pub at: SystemTime,
}

/// What a supervisor knows of a child.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ChildInfo {
    /// Its name.
    pub id: String,
    /// What it is.
    pub kind: ChildKind,
    /// When it is restarted.
    pub restart: Restart,
    /// How it is.
    pub state: ChildState,
    /// The incarnation that lives.
    pub pid: Option<Pid>,
    /// Messages that wait for it.
    pub waiting: usize,
    /// Starts after the first.
    pub restarts: u64,
    /// The last eight ends that were not in order, oldest first.
    pub crashes: Vec<Crash>,
    /// How often it ended for which [kind](ExitReason::kind) of reason.
    pub reasons: BTreeMap<&'static str, u64>,
}

/// How many children there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All, whether they live or not.
    pub specs: usize,
    /// Those that live.
    pub active: usize,
    /// Supervisors, whether they live or not.
    pub supervisors: usize,
    /// All others, whether they live or not.
    pub workers: usize,
}

pub(super) struct Child {
    pub(super) spec: ChildSpec,
    /// While it is [`Running`](ChildState::Running).
    pub(super) pid: Option<Pid>,
    pub(super) state: ChildState,
    pub(super) starts: u64,
    /// In a row.
    pub(super) failures: u32,
    since: u64,
    /// The restart that is to come.
    pub(super) later: Option<Later>,
    /// We hear of its ends.
    pub(super) has_listener: bool,
    crashes: VecDeque<Crash>,
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
            later: None,
            has_listener: false,
            crashes: VecDeque::new(),
            reasons: BTreeMap::new(),
        }
    }

    pub(super) fn is(&self, incarnation: ActorId) -> bool {
        self.pid.as_ref().is_some_and(|pid| pid.id() == incarnation)
    }

    /// Begins an incarnation of a child that is kept, and waits until it has made its state.
    pub(super) fn start(&mut self) -> Result<(), ExitReason> {
        self.forget_restart();
        let (pid, started) = self.spec.place.restartable().start();
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

    /// It does not come back by itself: what waits for it is dropped. It does not live.
    pub(super) fn close_down(&mut self) {
        self.forget_restart();
        self.has_listener = false;
        self.spec.place.release();
    }

    pub(super) fn forget_restart(&mut self) {
        if let Some(later) = self.later.take() {
            later.cancel();
        }
    }

    /// An incarnation has ended.
    pub(super) fn ended(&mut self, incarnation: ActorId, reason: &ExitReason) {
        self.pid = None;
        self.state = ChildState::Stopped;
        *self.reasons.entry(reason.kind()).or_default() += 1;
        if reason.is_orderly() {
            return;
        }
        if self.crashes.len() == CRASHES {
            self.crashes.pop_front();
        }
        self.crashes.push_back(Crash {
            incarnation,
            reason: reason.clone(),
            at: time_of_day_now(),
        });
    }

    /// One more in a row, unless it lived long enough since.
    pub(super) fn failed(&mut self) -> u32 {
        let lived = clock::now().saturating_sub(self.since);
        let makes_good = self
            .spec
            .backoff
            .is_none_or(|backoff| u128::from(lived) >= backoff.reset_after.as_nanos());
        self.failures = if makes_good { 1 } else { self.failures + 1 };
        self.failures
    }

    /// Asks the incarnation that lives to end, as the spec says.
    pub(super) fn ask_to_end(&self) -> Option<Monitor> {
        let pid = self.pid.as_ref()?;
        let monitor = pid.monitor();
        // It may have ended by itself.
        let _ = match self.spec.shutdown {
            Shutdown::Brutal => pid.kill(),
            Shutdown::Within(_) | Shutdown::Forever => pid.shut_down(),
        };
        Some(monitor)
    }

    /// Waits for the end that was asked for, as long as the spec says, and kills then.
    pub(super) fn wait_for_end(&mut self, mut monitor: Monitor, asked: u64) {
        let down = match self.spec.shutdown {
            Shutdown::Brutal | Shutdown::Forever => None,
            Shutdown::Within(time) => {
                let gone = clock::now().saturating_sub(asked);
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
            waiting: self.spec.place.queue_len(),
            restarts: self.starts.saturating_sub(1),
            crashes: self.crashes.iter().cloned().collect(),
            reasons: self.reasons.clone(),
        }
    }
}
