//! A supervision tree as it is just now.
//!
//! 1. Each supervisor is asked by a message that no full mailbox delays, and answers between two of its own. All of one level are asked at once.
//! 2. Who asks waits for all of them together until one deadline. One that starts or ends a child meanwhile answers when that is done, perhaps too late: then the view
//!    says so at its place, and has the rest.
//! 3. A message that is dropped unread answers, too: its supervisor has ended.

use std::fmt;
use std::time::Duration;

use thalweg_queue::{clock, mpsc};

use super::child::{ChildInfo, ChildState};
use super::reference::SupervisorRef;
use super::spec::Strategy;
use super::tree::Tree;
use crate::behaviour::SystemRef;
use crate::id::ActorId;
use crate::inspect::{one_line, printable, time_of_day_now};

/// How long [`SupervisorRef::view`] waits.
const PATIENCE: Duration = Duration::from_secs(1);

/// A supervisor and what is below it. Its text is a tree for a terminal.
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
    /// Its strategy and its children, from left to right; or why they are not known.
    pub seen: Result<Seen, NotSeen>,
}

/// What a supervisor says of itself.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Seen {
    /// Who is restarted with a child that failed.
    pub strategy: Strategy,
    /// From left to right.
    pub children: Vec<ChildView>,
}

/// A child and, where it is a supervisor that lives, what is below it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ChildView {
    /// The child.
    pub info: ChildInfo,
    /// What is below it.
    pub below: Option<SupervisorView>,
}

/// Why a supervisor's children are not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotSeen {
    /// It did not answer in time: it starts or ends a child, or its worker is kept.
    Late,
    /// It has ended.
    Ended,
}

/// Asks a supervisor for what is directly below it.
pub(super) struct Look {
    /// Who asks knows it by this.
    node: usize,
    answers: Option<mpsc::Sender<Answer>>,
}

struct Answer {
    node: usize,
    said: Option<Said>,
}

struct Said {
    strategy: Strategy,
    children: Vec<(ChildInfo, Option<Below>)>,
}

/// A supervisor that is a child.
pub(super) type Below = SystemRef<Tree>;

impl Look {
    pub(super) fn answer(mut self, strategy: Strategy, children: Vec<(ChildInfo, Option<Below>)>) {
        self.send(Some(Said { strategy, children }));
    }

    fn send(&mut self, said: Option<Said>) {
        if let Some(answers) = self.answers.take() {
            let node = self.node;
            // Who asked may not wait any more.
            let _ = answers.send(Answer { node, said });
        }
    }
}

/// Rule 3.
impl Drop for Look {
    fn drop(&mut self) {
        self.send(None);
    }
}

/// What is known so far of one that was asked.
struct Node {
    id: ActorId,
    seen: Result<Strategy, NotSeen>,
    /// Each with its node, if it is a supervisor.
    children: Vec<(ChildInfo, Option<usize>)>,
}

impl SupervisorRef {
    /// The tree from here on. Waits for a second at most.
    pub fn view(&self) -> SupervisorView {
        self.view_within(PATIENCE)
    }

    /// The same, for at most `patience`.
    pub fn view_within(&self, patience: Duration) -> SupervisorView {
        let deadline = clock::deadline(patience);
        let (answers, answered) = mpsc::unbounded();
        let mut nodes = Vec::new();
        let mut open = 0;
        if self.tree.is_alive() {
            ask(
                &mut nodes,
                self.tree.id(),
                &SystemRef::to(&self.tree),
                &answers,
            );
            open += 1;
        } else {
            nodes.push(Node::of(self.tree.id(), NotSeen::Ended));
        }
        while open > 0 {
            let left = Duration::from_nanos(deadline.saturating_sub(clock::now()));
            let Ok(answer) = answered.recv_timeout(left) else {
                break;
            };
            open -= 1;
            let Some(said) = answer.said else {
                nodes[answer.node].seen = Err(NotSeen::Ended);
                continue;
            };
            nodes[answer.node].seen = Ok(said.strategy);
            for (info, below) in said.children {
                let living = info.pid.as_ref().map(|pid| pid.id());
                let node = living.zip(below).map(|(id, below)| {
                    open += 1;
                    ask(&mut nodes, id, &below, &answers)
                });
                nodes[answer.node].children.push((info, node));
            }
        }
        assemble(&mut nodes, 0)
    }
}

impl Node {
    fn of(id: ActorId, why: NotSeen) -> Self {
        Self {
            id,
            seen: Err(why),
            children: Vec::new(),
        }
    }
}

/// Rule 1. Its node.
fn ask(nodes: &mut Vec<Node>, id: ActorId, whom: &Below, answers: &mpsc::Sender<Answer>) -> usize {
    let node = nodes.len();
    nodes.push(Node::of(id, NotSeen::Late));
    whom.send(Look {
        node,
        answers: Some(answers.clone()),
    });
    node
}

/// A supervisor's are further back than itself, and in one place each.
fn assemble(nodes: &mut [Node], at: usize) -> SupervisorView {
    let children = std::mem::take(&mut nodes[at].children);
    let children = children.into_iter().map(|(info, node)| ChildView {
        info,
        below: node.map(|node| assemble(nodes, node)),
    });
    let children = children.collect();
    let Node { id, seen, .. } = nodes[at];
    SupervisorView {
        id,
        seen: seen.map(|strategy| Seen { strategy, children }),
    }
}

impl SupervisorView {
    /// Its children, from left to right; none, if they are not known.
    pub fn children(&self) -> &[ChildView] {
        self.seen.as_ref().map_or(&[], |seen| &seen.children)
    }

    /// The child of this name, in it or below.
    pub fn find(&self, name: &str) -> Option<&ChildView> {
        self.children().iter().find_map(|child| {
            if child.info.id == name {
                return Some(child);
            }
            child.below.as_ref()?.find(name)
        })
    }

    /// What stands on its own line.
    fn head(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "supervisor {}, ", self.id)?;
        match &self.seen {
            Ok(seen) => write!(f, "{}", seen.strategy),
            Err(why) => write!(f, "{why}"),
        }
    }

    /// The lines of its children. `before` is what stands before each.
    fn lines(&self, f: &mut fmt::Formatter<'_>, before: &str) -> fmt::Result {
        let children = self.children();
        let names: Vec<_> = children.iter().map(|c| printable(&c.info.id)).collect();
        let widest = names.iter().map(|name| name.chars().count()).max();
        let width = widest.unwrap_or(0);
        for (nth, (child, name)) in children.iter().zip(&names).enumerate() {
            let is_last = nth + 1 == children.len();
            let branch = if is_last { "└─" } else { "├─" };
            let state = child.info.state.to_string();
            write!(f, "\n{before}{branch} {name:width$}  {state:10}  ")?;
            child.what(f)?;
            if let Some(below) = &child.below {
                below.lines(
                    f,
                    &format!("{before}{}", if is_last { "   " } else { "│  " }),
                )?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for SupervisorView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.head(f)?;
        self.lines(f, "")
    }
}

impl ChildView {
    /// Who it is just now, and what befell it.
    fn what(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let info = &self.info;
        let mut comma = "";
        match (&self.below, &info.pid) {
            (Some(below), _) => below.head(f)?,
            (None, Some(pid)) => write!(f, "actor {pid}")?,
            (None, None) => {}
        }
        if self.below.is_some() || info.pid.is_some() {
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
            let ago = time_of_day_now()
                .duration_since(crash.at)
                .unwrap_or_default();
            let reason = one_line(&crash.reason.to_string(), 120);
            write!(f, "{comma}last {} s ago: {reason}", ago.as_secs())?;
        }
        Ok(())
    }
}

impl fmt::Display for NotSeen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Late => "did not answer in time",
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
