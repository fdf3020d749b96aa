//! Channels between threads, tasks and event loops, and the one protocol by which their handles sleep and are woken.
//!
//! | channel | senders, receivers | bound | order |
//! | --- | --- | --- | --- |
//! | [`spsc`] | one, one | exact | of the sends |
//! | [`mpsc`] | many, one | exact or none | of each sender's sends |
//! | [`mpmc`] | many, many | exact | of all sends |
//! | [`oneshot`] | one, one | one value | |
//!
//! The first three have the same two handles, [`Sender`] and [`Receiver`]: try, blocking, with a deadline, async, in batches; closing with
//! drain; [`Options`] for a full channel and for how to wait; [`Stats`]; [`Select`]; and [`Readiness`], a file descriptor to poll.
//!
//! Below them, for whoever builds a channel of another kind:
//! * [`ring`]: a bounded ring whose slots carry full and empty; any number of writers and readers.
//! * [`inbox`]: an unbounded stack that its reader takes whole.
//! * [`gate`]: how a reader goes to sleep without missing what was published meanwhile.
//! * [`park`]: a thread that sleeps until it is woken, a deadline passes, or a signal arrives.
//! * [`spin`]: how long it is worth to look again before sleeping.
//! * [`event_fd`]: a wake-up that an event loop can watch.
//! * [`quiet`]: where an actor must not be preempted.
//! * [`random`]: a choice among equals.
//! * [`clock`]: the one clock.

#[doc(hidden)]
pub mod ahead;
pub mod barrier;
mod channel;
pub mod clock;
mod error;
pub mod event_fd;
#[cfg(loom)]
#[doc(hidden)]
pub mod explore;
#[cfg(not(loom))]
mod futex;
pub mod gate;
pub mod inbox;
mod lane;
#[cfg(all(test, loom))]
mod models;
pub mod mpmc;
pub mod mpsc;
pub mod oneshot;
pub mod park;
pub mod quiet;
pub mod random;
pub mod ring;
mod sleeper;
pub mod spin;
pub mod spsc;
mod sync;
mod waiters;

pub use channel::{
    Iter, Operation, Options, Overflow, Readiness, Receiver, RecvFuture, RecvStream, Select,
    SendFuture, Sender, Stats, TryIter, Unsupported, Waiting,
};
pub use error::{
    BadCapacity, Closed, RecvError, RecvTimeoutError, SendError, SendTimeoutError, TryRecvError,
    TrySendError,
};
pub use event_fd::EventFd;
pub use gate::Gate;
pub use inbox::Inbox;
pub use park::{Parker, Wake};
pub use quiet::Quiet;
pub use ring::Ring;
pub use sleeper::{Host, host};
pub use spin::Spin;
