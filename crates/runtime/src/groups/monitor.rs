//! Who hears of a group's members.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use thalweg_queue::mpsc;
use thalweg_queue::{RecvError, RecvTimeoutError, TryRecvError};

use super::outbox::Outbox;
use super::room::{Change, Member, Room};
use crate::behaviour::{Context, Handler, SystemSender};
use crate::exit::{Control, Watch};

/// Hears who joins and leaves a group, until it is dropped. What is not received stays in memory.
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
#[must_use = "dropped, it hears of nothing"]
pub struct GroupMonitor<M: Send + 'static> {
    room: Arc<Room<M>>,
    number: u64,
    members: Vec<Member<M>>,
    changes: mpsc::Receiver<Change<M>>,
}

impl<M: Send + 'static> GroupMonitor<M> {
    pub(super) fn new(room: &Arc<Room<M>>) -> Self {
        let (sender, changes) = mpsc::unbounded();
        let (number, members) = room.add_monitor(Outbox::new(move |change| {
            // It may have gone meanwhile.
            let _ = sender.send(change);
        }));
        Self {
            room: Arc::clone(room),
            number,
            members,
            changes,
        }
    }

    /// Who was in it when the monitor was made: the changes begin there.
    pub fn members(&self) -> &[Member<M>] {
        &self.members
    }

    /// Waits for the next change.
    ///
    /// # Errors
    /// The runtime of the actor that waits stops.
    pub fn recv(&self) -> Result<Change<M>, RecvError> {
        self.changes.recv()
    }

    /// The next change, if there was one.
    ///
    /// # Errors
    /// There was none.
    pub fn try_recv(&self) -> Result<Change<M>, TryRecvError> {
        self.changes.try_recv()
    }

    /// Waits for the next change, for at most `timeout`.
    ///
    /// # Errors
    /// There is none; or as [`recv`](Self::recv).
    pub fn recv_timeout(&self, timeout: Duration) -> Result<Change<M>, RecvTimeoutError> {
        self.changes.recv_timeout(timeout)
    }

    /// The changes as a channel of [`thalweg_queue`], to select on or to await.
    pub fn changes(&mut self) -> &mut mpsc::Receiver<Change<M>> {
        &mut self.changes
    }
}

impl<M: Send + 'static> Drop for GroupMonitor<M> {
    fn drop(&mut self) {
        self.room.remove_monitor(self.number);
    }
}

impl<M: Send + 'static> fmt::Debug for GroupMonitor<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupMonitor")
            .field("group", &self.room.name())
            .field("waiting", &self.changes.len())
            .finish()
    }
}

/// A behaviour actor's monitor of a group. Dropped it goes on, until the incarnation ends; see [`demonitor`](Self::demonitor).
pub struct GroupMonitored<M: Send + 'static> {
    room: Arc<Room<M>>,
    number: u64,
    members: Vec<Member<M>>,
    active: Arc<AtomicBool>,
    control: Arc<Control>,
    /// In the list of those that hear of the incarnation's end. `None`: it ends.
    place: Option<usize>,
}

impl<M: Send + 'static> GroupMonitored<M> {
    pub(super) fn new<A>(room: &Arc<Room<M>>, context: &Context<'_, A>) -> Self
    where
        A: Handler<Change<M>>,
    {
        let sender = SystemSender::to(context);
        let active = sender.active();
        let (number, members) = room.add_monitor(Outbox::new(move |change| sender.send(change)));
        let control = Arc::clone(context.pid().control());
        let watched = control.watch({
            let room = Arc::clone(room);
            Watch::Tell(Box::new(move |_| room.remove_monitor(number)))
        });
        let place = match watched {
            Ok(place) => Some(place),
            Err(_) => {
                room.remove_monitor(number);
                None
            }
        };
        Self {
            room: Arc::clone(room),
            number,
            members,
            active,
            control,
            place,
        }
    }

    /// Who was in it when the monitor was made: the changes begin there.
    pub fn members(&self) -> &[Member<M>] {
        &self.members
    }

    /// Takes it back: no change is handled any more, not even one that is on its way.
    pub fn demonitor(self) {
        self.active.store(false, Ordering::Relaxed);
        self.room.remove_monitor(self.number);
        if let Some(place) = self.place {
            self.control.unwatch(place);
        }
    }
}

impl<M: Send + 'static> fmt::Debug for GroupMonitored<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupMonitored")
            .field("group", &self.room.name())
            .finish()
    }
}
