//! Channels between threads, tasks, actors and event loops.
//!
//! | | senders, receivers | choose it for |
//! | --- | --- | --- |
//! | [`spsc`] | one, one | a stage of a pipeline: the fastest, and you can fill and drain it in place |
//! | [`mpsc`] | many, one | many threads that send to one receiver, bounded or unbounded |
//! | [`mpmc`] | many, many | a pool of workers; a queue that drops its oldest values |
//! | [`rendezvous`] | many, many | a hand-over: a send ends when a receiver has the value, like Go's unbuffered channel |
//! | [`broadcast`] | many, many | events: each receiver gets every message; slow ones learn how many they missed |
//! | [`oneshot`] | one, one | the single answer to a request |
//!
//! Make a channel with `channel(capacity)` of its module, or with `with(capacity, options)` if the
//! defaults do not fit:
//!
//! ```
//! use thalweg::channel::{Options, Overflow, mpmc, mpsc};
//!
//! let (sender, receiver) = mpsc::channel(1_024)?;
//! let other = sender.clone();
//! std::thread::spawn(move || other.send("from a thread"));
//! std::thread::spawn(move || sender.send("from another"));
//! // The iterator ends when all senders are gone and everything is received.
//! assert_eq!(receiver.iter().count(), 2);
//!
//! let (prices, screen) = mpmc::with(2, Options::new().overflow(Overflow::DropOldest))?;
//! for price in [98, 99, 101, 103] {
//!     prices.send(price).expect("the receiver exists");
//! }
//! assert_eq!(screen.try_iter().collect::<Vec<_>>(), [101, 103]);
//! assert_eq!(screen.stats().dropped_oldest, 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Each side of a channel can be used in any of these ways, independently of the other side:
//!
//! * threads and actors: `send`, `recv`, with a timeout or a deadline, in batches, as an iterator.
//!   A thread spins for a moment and then sleeps;
//! * tasks of any executor: [`Sender::send_async`], [`Receiver::recv_async`], [`Receiver::stream`].
//!   In a task that can move between threads, use [`send_async_mut`](Sender::send_async_mut) and
//!   [`recv_async_mut`](Receiver::recv_async_mut), whose futures are `Send`;
//! * event loops: [`Receiver::readiness`], a file descriptor for poll or epoll;
//! * code that must not wait: `try_send`, `try_recv`, `try_iter`.
//!
//! [`Select`] waits for the first of several operations. A channel closes when one side closes it
//! or drops its last handle. Values that were accepted before are still received, unless no
//! receiver is left.
//!
//! # In an actor
//!
//! In an actor of [`runtime`](crate::runtime), the blocking calls park the actor. Its worker runs
//! other actors until the call can continue:
//!
//! ```
//! use thalweg::{channel::mpsc, runtime::{run, spawn}};
//!
//! let (numbers, received) = mpsc::channel(4)?;
//! let total = run(move || {
//!     // Both actors run on one worker: a blocked sender lets the receiver run.
//!     let sum = spawn(move || received.iter().sum::<u32>());
//!     (1..=100).for_each(|number| numbers.send(number).expect("the actor receives"));
//!     drop(numbers);
//!     sum.join()
//! })?;
//! assert_eq!(total, 5_050);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `examples/channels` has a program for each kind of channel, and the crate `thalweg-queue`
//! documents the implementation.

pub use thalweg_queue::{broadcast, mpmc, mpsc, oneshot, rendezvous, spsc};

pub use thalweg_queue::{
    CapacityError, Closed, CreateError, RecvError, RecvTimeoutError, SendError, SendTimeoutError,
    TryRecvError, TrySendError,
};
pub use thalweg_queue::{
    Iter, Operation, Options, Overflow, Readiness, Receiver, RecvFuture, RecvStream, Select,
    SendFuture, Sender, Stats, TryIter, WaitStrategy,
};
