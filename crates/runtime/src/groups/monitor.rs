//! Monitors of groups.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use thalweg_queue::mpsc;
use thalweg_queue::{RecvError, RecvTimeoutError, TryRecvError};

use super::inner::{Change, GroupInner, Member};
use super::outbox::Outbox;
use crate::behaviour::{Context, Handler, SystemSender};
use crate::control::{Control, DownListener};

/// Receives the changes of a group until it is dropped. Changes that are not received are kept in
/// memory.
///
/// ```
/// use thalweg_runtime::{groups, run, spawn, yield_now};
///
/// run(|| {
///     let jobs = groups::of_pids("jobs")?;
///     let monitor = jobs.monitor();
///     assert!(monitor.members().is_empty());
///     let job = spawn(|| loop { yield_now() });
///     jobs.join(&job.pid())?;
///     job.pid().kill()?;
///     let (joined, left) = (monitor.recv()?, monitor.recv()?);
///     assert!(joined.is_join() && left.is_leave());
///     assert_eq!(joined.member(), left.member());
///     # Ok::<(), Box<dyn std::error::Error>>(())
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "dropping it ends the monitor"]
pub struct GroupMonitor<M: Send + 'static> {
    group: Arc<GroupInner<M>>,
    number: u64,
    members: Vec<Member<M>>,
    changes: mpsc::Receiver<Change<M>>,
}

impl<M: Send + 'static> GroupMonitor<M> {
    pub(super) fn new(group: &Arc<GroupInner<M>>) -> Self {
        let (sender, changes) = mpsc::unbounded();
        let (number, members) = group.add_monitor(Outbox::new(move |change| {
            // The receiver may be gone.
            let _ = sender.send(change);
        }));
        Self {
            group: Arc::clone(group),
            number,
            members,
            changes,
        }
    }

    /// The members when the monitor was created. The changes begin there.
    pub fn members(&self) -> &[Member<M>] {
        &self.members
    }

    /// Waits for the next change.
    ///
    /// # Errors
    /// The runtime of the waiting actor stops.
    pub fn recv(&self) -> Result<Change<M>, RecvError> {
        self.changes.recv()
    }

    /// The next change, if there is one.
    ///
    /// # Errors
    /// There is none.
    pub fn try_recv(&self) -> Result<Change<M>, TryRecvError> {
        self.changes.try_recv()
    }

    /// Waits for the next change, for at most `timeout`.
    ///
    /// # Errors
    /// There was none in time; otherwise as [`recv`](Self::recv).
    pub fn recv_timeout(&self, timeout: Duration) -> Result<Change<M>, RecvTimeoutError> {
        self.changes.recv_timeout(timeout)
    }

    /// The changes as a channel of [`thalweg_queue`], for `select!` or `await`.
    pub fn changes(&mut self) -> &mut mpsc::Receiver<Change<M>> {
        &mut self.changes
    }
}

impl<M: Send + 'static> Drop for GroupMonitor<M> {
    fn drop(&mut self) {
        self.group.remove_monitor(self.number);
    }
}

impl<M: Send + 'static> fmt::Debug for GroupMonitor<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupMonitor")
            .field("group", &self.group.name())
            .field("waiting", &self.changes.len())
            .finish()
    }
}

/// A behaviour actor's monitor of a group. Dropping it does not end the monitor: it ends with the
/// incarnation or by [`demonitor`](Self::demonitor).
pub struct GroupMonitorRef<M: Send + 'static> {
    group: Arc<GroupInner<M>>,
    number: u64,
    members: Vec<Member<M>>,
    active: Arc<AtomicBool>,
    control: Arc<Control>,
    /// The index in the incarnation's list of exit listeners. `None`: the incarnation is ending.
    index: Option<usize>,
}

impl<M: Send + 'static> GroupMonitorRef<M> {
    pub(super) fn new<A>(group: &Arc<GroupInner<M>>, context: &Context<'_, A>) -> Self
    where
        A: Handler<Change<M>>,
    {
        let sender = SystemSender::to(context);
        let active = sender.active();
        let (number, members) = group.add_monitor(Outbox::new(move |change| sender.send(change)));
        let control = Arc::clone(context.pid().control());
        let added = control.add_listener({
            let group = Arc::clone(group);
            DownListener::Callback(Box::new(move |_| group.remove_monitor(number)))
        });
        let index = match added {
            Ok(index) => Some(index),
            Err(_) => {
                group.remove_monitor(number);
                None
            }
        };
        Self {
            group: Arc::clone(group),
            number,
            members,
            active,
            control,
            index,
        }
    }

    /// The members when the monitor was created. The changes begin there.
    pub fn members(&self) -> &[Member<M>] {
        &self.members
    }

    /// Ends the monitor: no further change is handled, even if it was already sent.
    pub fn demonitor(self) {
        self.active.store(false, Ordering::Relaxed);
        self.group.remove_monitor(self.number);
        if let Some(index) = self.index {
            self.control.remove_listener(index);
        }
    }
}

impl<M: Send + 'static> fmt::Debug for GroupMonitorRef<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupMonitorRef")
            .field("group", &self.group.name())
            .finish()
    }
}
