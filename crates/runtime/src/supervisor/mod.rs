//! Supervisors: actors that start others in order, restart them when they fail, and end them in reverse order, as OTP's do.
//!
//! What OTP has is as it is there: strategies, restart types, intensity and period, significant children and automatic shutdown, start from left to
//! right, stop from right to left, shutdown with a deadline or at once, and the calls at run time. Beyond it:
//!
//! * [`ActorRef`](crate::ActorRef)s and mailboxes survive a restart: what was accepted and not yet handled is the next incarnation's. It exists
//!   before the first start, so children can be given each other's references.
//! * Incarnations never overlap: the next one is made after the last one's destructors have run.
//! * [`Backoff`]: the time to the next restart grows, with jitter.
//! * [`ChildInfo`] has the last crashes of a child and counts its reasons.
//!
//! Where it differs: a supervisor that is killed kills its children, also those that trap exits; it lives as long as its parent, or as one of its
//! references; and a restart that fails is tried again by its back-off, or after 1 ms.
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
//!     assert!(divider.call((1, 0)).is_err(), "it panics");
//!     assert_eq!(divider.call((6, 3)), Ok(2), "and the same reference reaches the next one");
//!     assert_eq!(STARTS.load(Ordering::Relaxed), 2);
//!     let child = &supervisor.which_children()?[0];
//!     assert_eq!((child.restarts, child.reasons["panic"]), (1, 1));
//!     # Ok::<(), Box<dyn std::error::Error>>(())
//! })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod backoff;
mod child;
mod error;
mod job;
mod reference;
mod restarts;
mod spec;
mod tree;
mod view;

pub use self::backoff::Backoff;
pub(crate) use self::backoff::Random;
pub use self::child::{ChildInfo, ChildState, Counts, Crash};
pub use self::error::{ChildError, StartError};
pub use self::job::Outcome;
pub use self::reference::SupervisorRef;
pub use self::spec::{AutoShutdown, ChildKind, ChildSpec, Restart, Shutdown, Strategy, Supervisor};
pub use self::view::{ChildView, NotSeen, Seen, SupervisorView};
