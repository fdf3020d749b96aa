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
//! * [`atomic_waker`]: how a reader goes to sleep without missing what was published meanwhile.
//! * [`park`]: a thread that sleeps until it is woken, a deadline passes, or a signal arrives.
//! * [`spin`]: how long it is worth to look again before sleeping.
//! * [`event_fd`]: a wake-up that an event loop can watch.
//! * [`no_preempt`]: where an actor must not be preempted.
//! * [`random`]: a choice among equals.
//! * [`clock`]: the one clock.

pub mod atomic_waker;
pub mod barrier;
mod cache_padded;
mod channel;
pub mod clock;
mod error;
pub mod event_fd;
#[cfg(loom)]
#[doc(hidden)]
pub mod explore;
mod futex;
mod lane;
#[cfg(all(test, loom))]
mod models;
pub mod mpmc;
pub mod mpsc;
pub mod no_preempt;
pub mod oneshot;
pub mod park;
mod park_hooks;
#[doc(hidden)]
pub mod prefetch;
pub mod random;
pub mod ring;
pub mod spin;
pub mod spsc;
mod sync;
mod wait_list;

pub use atomic_waker::AtomicWaker;
pub use cache_padded::CachePadded;
pub use channel::{
    CreateError, Iter, Operation, Options, Overflow, Readiness, Receiver, RecvFuture, RecvStream,
    Select, SendFuture, Sender, Stats, TryIter, WaitStrategy,
};
pub use error::{
    CapacityError, Closed, RecvError, RecvTimeoutError, SendError, SendTimeoutError, TryRecvError,
    TrySendError,
};
pub use event_fd::EventFd;
pub use no_preempt::NoPreemptGuard;
pub use park::{ParkResult, Parker};
pub use park_hooks::{ParkHooks, set_park_hooks};
pub use ring::Ring;
pub use spin::AdaptiveSpin;
