//! A snapshot of a supervision tree.
//!
//! 1. Each supervisor is asked by a system message, which a full mailbox does not delay, and
//!    replies between two other messages. All supervisors of one level are asked at the same time.
//! 2. The caller waits for all replies until one deadline. A supervisor that is starting or
//!    stopping a child replies afterwards, possibly too late. The view then contains
//!    [`SnapshotError::TimedOut`] in its place, and the rest of the tree.
//! 3. A request that is dropped unread also replies: its supervisor has ended.

use std::fmt;
use std::time::Duration;

use thalweg_queue::{clock, mpsc};

use super::actor::SupervisorActor;
use super::child::{ChildInfo, ChildState};
use super::reference::SupervisorRef;
use super::spec::Strategy;
use crate::behaviour::SystemRef;
use crate::id::ActorId;
use crate::inspect::{one_line, printable};
use crate::time_of_day;

/// The timeout of [`SupervisorRef::view`].
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(1);

/// A supervisor and its subtree. `Display` prints it as a tree for a terminal.
///
/// ```text
/// supervisor 3, one_for_one
/// ├─ search   running     actor 5, 2 waiting
/// ├─ indexer  restarting  4 restarts (panic 5), last 3 s ago: the actor panicked at src/indexer.rs:7:5: disk full
/// └─ workers  running     supervisor 6, simple_one_for_one
///    ├─ one   running     actor 8
///    └─ two   stopped
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SupervisorView {
    /// The incarnation that was asked.
    pub id: ActorId,
    /// Its strategy and its children, from left to right, or why they are unknown.
    pub snapshot: Result<SupervisorSnapshot, SnapshotError>,
}

/// The reply of one supervisor.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SupervisorSnapshot {
    /// Which children are restarted with a child that failed.
    pub strategy: Strategy,
    /// From left to right.
    pub children: Vec<ChildView>,
}

/// A child, with its subtree if it is a running supervisor.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ChildView {
    /// The child.
    pub info: ChildInfo,
    /// Its subtree.
    pub subtree: Option<SupervisorView>,
}

/// Why the children of a supervisor are unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SnapshotError {
    /// It did not reply in time: it is starting or stopping a child, or its worker is blocked.
    TimedOut,
    /// It has ended.
    Ended,
}

/// Asks a supervisor for its direct children.
pub(super) struct SnapshotRequest {
    /// The index of the node, for the reply.
    node: usize,
    replies: Option<mpsc::Sender<SnapshotReply>>,
}

struct SnapshotReply {
    node: usize,
    children: Option<DirectChildren>,
}

struct DirectChildren {
    strategy: Strategy,
    children: Vec<(ChildInfo, Option<SubtreeRef>)>,
}

/// A supervisor that is a child.
pub(super) type SubtreeRef = SystemRef<SupervisorActor>;

impl SnapshotRequest {
    pub(super) fn reply(
        mut self,
        strategy: Strategy,
        children: Vec<(ChildInfo, Option<SubtreeRef>)>,
    ) {
        self.send(Some(DirectChildren { strategy, children }));
    }

    fn send(&mut self, children: Option<DirectChildren>) {
        if let Some(replies) = self.replies.take() {
            let node = self.node;
            // The caller may have stopped waiting.
            let _ = replies.send(SnapshotReply { node, children });
        }
    }
}

/// Rule 3.
impl Drop for SnapshotRequest {
    fn drop(&mut self) {
        self.send(None);
    }
}

/// What is known so far about one supervisor.
struct ViewNode {
    id: ActorId,
    strategy: Result<Strategy, SnapshotError>,
    /// The children, each with the index of its node if it is a supervisor.
    children: Vec<(ChildInfo, Option<usize>)>,
}

impl SupervisorRef {
    /// A snapshot of the tree below this supervisor. Waits for at most a second.
    pub fn view(&self) -> SupervisorView {
        self.view_within(DEFAULT_TIMEOUT)
    }

    /// As [`view`](Self::view), with this timeout.
    pub fn view_within(&self, timeout: Duration) -> SupervisorView {
        let deadline = clock::deadline(timeout);
        let (replies, reply_receiver) = mpsc::unbounded();
        let mut nodes = Vec::new();
        let mut pending = 0;
        if self.actor.is_alive() {
            ask(
                &mut nodes,
                self.actor.id(),
                &SystemRef::to(&self.actor),
                &replies,
            );
            pending += 1;
        } else {
            nodes.push(ViewNode::of(self.actor.id(), SnapshotError::Ended));
        }
        while pending > 0 {
            let left = Duration::from_nanos(deadline.saturating_sub(clock::now()));
            let Ok(reply) = reply_receiver.recv_timeout(left) else {
                break;
            };
            pending -= 1;
            let Some(children) = reply.children else {
                nodes[reply.node].strategy = Err(SnapshotError::Ended);
                continue;
            };
            nodes[reply.node].strategy = Ok(children.strategy);
            for (info, subtree) in children.children {
                let running = info.pid.as_ref().map(|pid| pid.id());
                let node = running.zip(subtree).map(|(id, subtree)| {
                    pending += 1;
                    ask(&mut nodes, id, &subtree, &replies)
                });
                nodes[reply.node].children.push((info, node));
            }
        }
        assemble(&mut nodes, 0)
    }
}

impl ViewNode {
    fn of(id: ActorId, error: SnapshotError) -> Self {
        Self {
            id,
            strategy: Err(error),
            children: Vec::new(),
        }
    }
}

/// Rule 1. Returns the index of the node.
fn ask(
    nodes: &mut Vec<ViewNode>,
    id: ActorId,
    supervisor: &SubtreeRef,
    replies: &mpsc::Sender<SnapshotReply>,
) -> usize {
    let node = nodes.len();
    nodes.push(ViewNode::of(id, SnapshotError::TimedOut));
    supervisor.send(SnapshotRequest {
        node,
        replies: Some(replies.clone()),
    });
    node
}

/// The children of a node are behind it, and each occurs once.
fn assemble(nodes: &mut [ViewNode], at: usize) -> SupervisorView {
    let children = std::mem::take(&mut nodes[at].children);
    let children = children.into_iter().map(|(info, node)| ChildView {
        info,
        subtree: node.map(|node| assemble(nodes, node)),
    });
    let children = children.collect();
    let ViewNode { id, strategy, .. } = nodes[at];
    SupervisorView {
        id,
        snapshot: strategy.map(|strategy| SupervisorSnapshot { strategy, children }),
    }
}

impl SupervisorView {
    /// The children from left to right. It is empty if they are unknown.
    pub fn children(&self) -> &[ChildView] {
        self.snapshot
            .as_ref()
            .map_or(&[], |snapshot| &snapshot.children)
    }

    /// The child of this name, at any depth.
    pub fn find(&self, name: &str) -> Option<&ChildView> {
        self.children().iter().find_map(|child| {
            if child.info.id == name {
                return Some(child);
            }
            child.subtree.as_ref()?.find(name)
        })
    }

    /// The text on the supervisor's own line.
    fn fmt_head(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "supervisor {}, ", self.id)?;
        match &self.snapshot {
            Ok(snapshot) => write!(f, "{}", snapshot.strategy),
            Err(error) => write!(f, "{error}"),
        }
    }

    /// The lines of the children, each after `prefix`.
    fn fmt_children(&self, f: &mut fmt::Formatter<'_>, prefix: &str) -> fmt::Result {
        let children = self.children();
        let names: Vec<_> = children.iter().map(|c| printable(&c.info.id)).collect();
        let widest = names.iter().map(|name| name.chars().count()).max();
        let width = widest.unwrap_or(0);
        for (nth, (child, name)) in children.iter().zip(&names).enumerate() {
            let is_last = nth + 1 == children.len();
            let branch = if is_last { "└─" } else { "├─" };
            let state = child.info.state.to_string();
            write!(f, "\n{prefix}{branch} {name:width$}  {state:10}  ")?;
            child.fmt_status(f)?;
            if let Some(subtree) = &child.subtree {
                subtree.fmt_children(
                    f,
                    &format!("{prefix}{}", if is_last { "   " } else { "│  " }),
                )?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for SupervisorView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fmt_head(f)?;
        self.fmt_children(f, "")
    }
}

impl ChildView {
    /// The actor, its waiting messages, restarts and last crash.
    fn fmt_status(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let info = &self.info;
        let mut comma = "";
        match (&self.subtree, &info.pid) {
            (Some(subtree), _) => subtree.fmt_head(f)?,
            (None, Some(pid)) => write!(f, "actor {pid}")?,
            (None, None) => {}
        }
        if self.subtree.is_some() || info.pid.is_some() {
            comma = ", ";
        }
        if info.waiting > 0 {
            write!(f, "{comma}{} waiting", info.waiting)?;
            comma = ", ";
        }
        if info.restarts > 0 {
            let s = if info.restarts == 1 { "" } else { "s" };
            write!(f, "{comma}{} restart{s}", info.restarts)?;
            comma = ", ";
        }
        if !info.reasons.is_empty() {
            let reasons = info.reasons.iter().map(|(kind, n)| format!("{kind} {n}"));
            let reasons: Vec<_> = reasons.collect();
            let space = if info.restarts > 0 { " " } else { comma };
            write!(f, "{space}({})", reasons.join(", "))?;
            comma = ", ";
        }
        if let Some(crash) = info.crashes.last() {
            let ago = time_of_day::now()
                .duration_since(crash.at)
                .unwrap_or_default();
            let reason = one_line(&crash.reason.to_string(), 120);
            write!(f, "{comma}last {} s ago: {reason}", ago.as_secs())?;
        }
        Ok(())
    }
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TimedOut => "did not answer in time",
            Self::Ended => "has ended",
        })
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OneForOne => "one_for_one",
            Self::OneForAll => "one_for_all",
            Self::RestForOne => "rest_for_one",
            Self::SimpleOneForOne => "simple_one_for_one",
        })
    }
}

impl fmt::Display for ChildState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Running => "running",
            Self::Restarting => "restarting",
            Self::Stopped => "stopped",
        })
    }
}
