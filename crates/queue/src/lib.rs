//! Channels between threads, tasks and event loops, with one protocol for waiting and waking.
//!
//! | channel | senders, receivers | capacity | order |
//! | --- | --- | --- | --- |
//! | [`spsc`] | one, one | exact | FIFO |
//! | [`mpsc`] | many, one | exact, or unbounded | FIFO per sender |
//! | [`mpmc`] | many, many | exact | FIFO |
//! | [`rendezvous`] | many, many | none: a send waits for a receiver | FIFO |
//! | [`broadcast`] | many, many; each receiver gets every value | exact | FIFO |
//! | [`oneshot`] | one, one | one value | |
//!
//! All but the last share the handles [`Sender`] and [`Receiver`]. They support try, blocking,
//! deadline, async and batch operations, close with drain, [`Options`] (overflow policy and wait
//! strategy), [`Stats`], [`Select`], and [`Readiness`] (a file descriptor to poll).
//!
//! The building blocks are public, for crates that implement other channels:
//!
//! * [`ring`]: a bounded MPMC ring whose slots record whether they are full or empty.
//! * [`atomic_waker`]: lets one reader sleep without missing data that is published meanwhile.
//! * [`park`]: blocks a thread until it is unparked, a deadline passes, or a signal arrives.
//! * [`WakerList`]: the tasks and threads that wait for one condition.
//! * [`spin`]: decides how long to spin before parking.
//! * [`event_fd`]: a wake-up that an event loop can poll.
//! * [`no_preempt`]: sections in which an actor must not be preempted.
//! * [`barrier`]: the asymmetric memory barriers of the wake-up protocol.
//! * [`random`]: a random choice among alternatives.
//! * [`clock`]: the monotonic clock that all deadlines use.

pub mod atomic_waker;
pub mod barrier;
pub mod broadcast;
mod cache_padded;
mod channel;
pub mod clock;
mod error;
pub mod event_fd;
mod exchange;
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
pub mod rendezvous;
pub mod ring;
pub mod spin;
pub mod spsc;
mod sync;
mod this_thread;
mod wait_list;
mod waker_list;

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
pub use waker_list::WakerList;
