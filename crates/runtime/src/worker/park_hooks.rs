//! How an actor parks in a blocking call of [`thalweg_queue`].

use thalweg_queue::{ParkHooks, ParkResult};

use super::{current, raise_if_due};
use crate::wake_reason::WakeReason;

pub(super) static PARK_HOOKS: ParkHooks = ParkHooks {
    waker: || {
        let worker = current()?;
        let task = worker.running()?;
        worker.before_wait(task);
        Some(task.waker())
    },
    park: |deadline| {
        let Some(worker) = current() else {
            unreachable!("only an actor, which has a waker, parks here");
        };
        match worker.park(deadline.filter(|ns| *ns != u64::MAX)) {
            WakeReason::Woken => ParkResult::Woken,
            WakeReason::TimedOut | WakeReason::Stopping => ParkResult::TimedOut,
            WakeReason::Interrupted => ParkResult::Interrupted,
        }
    },
    timed_out: raise_if_due,
};
