//! What every channel can do, written once over what its flavour does without waiting.
//!
//! A flavour is a pair of handles that [`Push`] and [`Pop`]: [`spsc`](crate::spsc), [`mpsc`](crate::mpsc), [`mpmc`](crate::mpmc).
//! Waiting, deadlines, futures, closing, policies and counts are here.

mod core;
mod flavour;
mod future;
mod options;
mod readiness;
mod receiver;
mod select;
mod sender;
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
pub use self::stats::Stats;
