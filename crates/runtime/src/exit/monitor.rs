//! Monitors for actors with a stack, threads and tasks.

use std::fmt;
use std::future::Future;
use std::pin::Pin as Pinned;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use thalweg_queue::{RecvTimeoutError, oneshot};

use crate::control::{Control, Down, DownListener};
use crate::id::ActorId;
use crate::reason::ExitReason;

/// Reports the exit of one actor, once, to an actor, a thread or a task. Dropping it ends the
/// monitor.
///
/// ```
/// use thalweg_runtime::{ExitReason, block_on, run, spawn};
///
/// run(|| {
///     let pid = spawn(|| ()).pid();
///     let (one, other) = (pid.monitor(), pid.monitor());
///     assert!(matches!(one.wait().reason, ExitReason::Normal));
///     assert!(matches!(block_on(other).reason, ExitReason::Normal));
///     assert!(matches!(pid.monitor().wait().reason, ExitReason::NoActor));
/// });
/// ```
#[must_use = "dropping it ends the monitor"]
pub struct Monitor {
    control: Arc<Control>,
    /// The index in the list of listeners. `None`: the actor had ended, so the monitor was not
    /// added.
    index: Option<usize>,
    downs: oneshot::Receiver<Down>,
}

impl Monitor {
    pub(super) fn new(control: &Arc<Control>) -> Self {
        let (sender, downs) = oneshot::channel();
        let index = control.add_listener_or_notify(DownListener::Monitor(sender));
        Self {
            control: Arc::clone(control),
            index,
            downs,
        }
    }

    /// The number of the monitored actor.
    pub fn id(&self) -> ActorId {
        self.control.id
    }

    fn stopped(&self) -> Down {
        Down {
            id: self.control.id,
            reason: ExitReason::Stopped,
        }
    }

    /// Waits for the exit. Returns [`ExitReason::Stopped`] also if the runtime of the waiting actor
    /// stops.
    pub fn wait(mut self) -> Down {
        let down = self.downs.recv_timeout(Duration::MAX);
        down.unwrap_or_else(|_| self.stopped())
    }

    /// The exit, if there was one. Returns it once.
    pub fn try_wait(&mut self) -> Option<Down> {
        self.downs.try_recv().ok()
    }

    /// Waits for the exit, for at most `timeout`.
    pub fn wait_timeout(&mut self, timeout: Duration) -> Option<Down> {
        let down = self.downs.recv_timeout(timeout);
        self.in_time(down)
    }

    /// Waits for the exit until `deadline`.
    pub fn wait_deadline(&mut self, deadline: Instant) -> Option<Down> {
        let down = self.downs.recv_deadline(deadline);
        self.in_time(down)
    }

    fn in_time(&self, down: Result<Down, RecvTimeoutError>) -> Option<Down> {
        match down {
            Ok(down) => Some(down),
            Err(RecvTimeoutError::TimedOut) => None,
            Err(RecvTimeoutError::Closed) => Some(self.stopped()),
        }
    }
}

impl Future for Monitor {
    type Output = Down;

    fn poll(mut self: Pinned<&mut Self>, context: &mut Context<'_>) -> Poll<Down> {
        let down = Pinned::new(&mut self.downs).poll(context);
        down.map(|down| down.unwrap_or_else(|_| self.stopped()))
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        if let Some(index) = self.index {
            self.control.remove_listener(index);
        }
    }
}

impl fmt::Debug for Monitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Monitor").field("id", &self.id()).finish()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::future::Future;
    use std::pin::Pin;
    use std::sync::{Arc, Mutex};
    use std::task::{Context, Wake, Waker};
    use std::time::Duration;

    use crate::{run, sleep, spawn};

    struct PushOnWake(usize, Arc<Mutex<Vec<usize>>>);

    impl Wake for PushOnWake {
        fn wake(self: Arc<Self>) {
            self.1.lock().unwrap().push(self.0);
        }
    }

    #[test]
    fn monitors_are_notified_in_creation_order() {
        run(|| {
            let sleeper = spawn(|| sleep(Duration::from_secs(600)));
            let woken = Arc::new(Mutex::new(Vec::new()));
            let monitors: Vec<_> = (0..4)
                .map(|number| {
                    let mut monitor = sleeper.pid().monitor();
                    let waker = Waker::from(Arc::new(PushOnWake(number, Arc::clone(&woken))));
                    let mut context = Context::from_waker(&waker);
                    assert!(Pin::new(&mut monitor).poll(&mut context).is_pending());
                    monitor
                })
                .collect();
            sleeper.pid().kill().unwrap();
            assert!(sleeper.join().is_err());
            assert_eq!(*woken.lock().unwrap(), [0, 1, 2, 3]);
            drop(monitors);
        });
    }
}
