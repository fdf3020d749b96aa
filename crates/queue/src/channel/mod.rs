//! The operations that all channels share, written once for all flavours.
//!
//! A flavour is a pair of handles that implement [`Push`] and [`Pop`]: [`spsc`](crate::spsc),
//! [`mpsc`](crate::mpsc), [`mpmc`](crate::mpmc). This module adds waiting, deadlines, futures,
//! closing, overflow policies and counts.

mod core;
mod flavour;
mod future;
mod hand_over;
mod options;
mod readiness;
mod receiver;
mod select;
mod sender;
mod shared_ref;
mod stats;
mod wait;

pub(crate) use self::core::Core;
pub use self::flavour::{Pop, Push};
pub use self::future::{RecvFuture, RecvStream, SendFuture};
pub use self::options::{CreateError, Options, Overflow, WaitStrategy};
pub use self::readiness::Readiness;
pub use self::receiver::{Iter, Receiver, TryIter};
pub use self::select::{Operation, Select};
pub use self::sender::Sender;
pub(crate) use self::shared_ref::{HasCore, SharedRef};
pub use self::stats::Stats;
