//! Hearing of one actor's end.

use std::fmt;
use std::future::Future;
use std::pin::Pin as Pinned;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use thalweg_queue::{RecvTimeoutError, oneshot};

use super::{Control, Down, ExitReason, Watch};
use crate::id::ActorId;

/// Hears of one actor's end, once: on an actor, on a thread, or as a future. Dropped, it hears of nothing.
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
#[must_use = "dropped, it hears of nothing"]
pub struct Monitor {
    control: Arc<Control>,
    /// Where it is in the list. `None`: it was never there.
    place: Option<usize>,
    downs: oneshot::Receiver<Down>,
}

impl Monitor {
    pub(super) fn new(control: &Arc<Control>) -> Self {
        let (sender, downs) = oneshot::channel();
        let place = control.watch_or_tell(Watch::Monitor(sender));
        Self {
            control: Arc::clone(control),
            place,
            downs,
        }
    }

    /// Whom it watches.
    pub fn id(&self) -> ActorId {
        self.control.id
    }

    fn stopped(&self) -> Down {
        Down {
            id: self.control.id,
            reason: ExitReason::Stopped,
        }
    }

    /// Waits for the end. [`ExitReason::Stopped`] also if the runtime of the actor that waits stops.
    pub fn wait(mut self) -> Down {
        let down = self.downs.recv_timeout(Duration::MAX);
        down.unwrap_or_else(|_| self.stopped())
    }

    /// The end, if it has come. Once.
    pub fn try_wait(&mut self) -> Option<Down> {
        self.downs.try_recv().ok()
    }

    /// Waits for the end, for at most `timeout`.
    pub fn wait_timeout(&mut self, timeout: Duration) -> Option<Down> {
        let down = self.downs.recv_timeout(timeout);
        self.in_time(down)
    }

    /// Waits for the end, until `deadline`.
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
        if let Some(place) = self.place {
            self.control.unwatch(place);
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

    struct Says(usize, Arc<Mutex<Vec<usize>>>);

    impl Wake for Says {
        fn wake(self: Arc<Self>) {
            self.1.lock().unwrap().push(self.0);
        }
    }

    #[test]
    fn monitors_hear_in_the_order_in_which_they_came() {
        run(|| {
            let sleeper = spawn(|| sleep(Duration::from_secs(600)));
            let told = Arc::new(Mutex::new(Vec::new()));
            let monitors: Vec<_> = (0..4)
                .map(|number| {
                    let mut monitor = sleeper.pid().monitor();
                    let waker = Waker::from(Arc::new(Says(number, Arc::clone(&told))));
                    let mut context = Context::from_waker(&waker);
                    assert!(Pin::new(&mut monitor).poll(&mut context).is_pending());
                    monitor
                })
                .collect();
            sleeper.pid().kill().unwrap();
            assert!(sleeper.join().is_err());
            assert_eq!(*told.lock().unwrap(), [0, 1, 2, 3]);
            drop(monitors);
        });
    }
}
