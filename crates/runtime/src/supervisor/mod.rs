//! Supervisors: actors that start other actors in order, restart them when they fail, and stop them
//! in reverse order, as in OTP.
//!
//! The following works as in OTP: strategies, restart types, intensity and period, significant
//! children and automatic shutdown, start from left to right, stop from right to left, shutdown
//! with a timeout or at once, and the requests at run time. Beyond OTP:
//!
//! * [`ActorRef`](crate::ActorRef)s and mailboxes survive a restart: the next incarnation handles
//!   the messages that were accepted and not yet handled. A reference exists before the first
//!   start, so children can be given each other's references.
//! * Incarnations never overlap: the next one is created after the destructors of the previous one
//!   have run.
//! * [`Backoff`]: a growing delay before a restart, with jitter.
//! * [`ChildInfo`] contains the last crashes of a child and counts its exit reasons.
//!
//! While a parent restarts a supervisor, calls to the children of that supervisor return
//! [`CallError::Ended`](crate::CallError::Ended), because the old supervisor has ended and the new
//! one has not started them yet. [`ActorRef::wait_restarted`](crate::ActorRef::wait_restarted)
//! waits for the new incarnation.
//!
//! Differences from OTP: a supervisor that is killed kills its children, even those that trap
//! exits; it lives as long as its parent, or as one of its references; and a failed restart is
//! repeated after the child's back-off, or after 1 ms.
//!
//! ```
//! use std::sync::atomic::{AtomicU32, Ordering};
//! use thalweg_runtime::supervisor::{ChildSpec, Strategy, Supervisor};
//! use thalweg_runtime::{Actor, Context, Handler, run};
//!
//! static STARTS: AtomicU32 = AtomicU32::new(0);
//! struct Divider;
//! impl Actor for Divider {}
//! impl Handler<(u32, u32)> for Divider {
//!     type Reply = u32;
//!     fn handle(&mut self, (a, b): (u32, u32), _: &Context<'_, Self>) -> u32 {
//!         a / b
//!     }
//! }
//!
//! run(|| {
//!     let (spec, divider) = ChildSpec::actor("divider", || {
//!         STARTS.fetch_add(1, Ordering::Relaxed);
//!         Divider
//!     });
//!     let supervisor = Supervisor::new(Strategy::OneForOne).child(spec).start()?;
//!     assert!(divider.call((1, 0)).is_err(), "the child panics");
//!     assert_eq!(divider.call((6, 3)), Ok(2), "the reference reaches the next incarnation");
//!     assert_eq!(STARTS.load(Ordering::Relaxed), 2);
//!     let child = &supervisor.which_children()?[0];
//!     assert_eq!((child.restarts, child.reasons["panic"]), (1, 1));
//!     # Ok::<(), Box<dyn std::error::Error>>(())
//! })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod actor;
mod backoff;
mod child;
mod error;
mod job;
mod reference;
mod restart_intensity;
mod spec;
mod template;
mod view;

pub use self::backoff::Backoff;
#[cfg(test)]
pub(crate) use self::backoff::Random;
pub use self::child::{ChildCounts, ChildCrash, ChildInfo, ChildState};
pub use self::error::{ChildError, SupervisorStartError};
pub use self::job::JobResult;
pub use self::reference::SupervisorRef;
pub use self::spec::{AutoShutdown, ChildKind, ChildSpec, Restart, Shutdown, Strategy, Supervisor};
pub use self::template::ChildTemplate;
pub use self::view::{ChildView, SnapshotError, SupervisorSnapshot, SupervisorView};
