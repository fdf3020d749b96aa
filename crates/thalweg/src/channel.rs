//! Channels between threads, tasks and event loops.
//!
//! | | senders, receivers | choose it for |
//! | --- | --- | --- |
//! | [`spsc`] | one, one | a stage of a pipeline: the fastest, and it can be filled and drained in place |
//! | [`mpsc`] | many, one | many threads that report to one, bounded or not |
//! | [`mpmc`] | many, many | a pool of workers; a queue that drops its oldest values |
//! | [`oneshot`] | one, one | the one answer to a question |
//!
//! A channel is made by its module's `channel(capacity)`, or by `with(capacity, options)` where the default is not what is wanted:
//!
//! ```
//! use thalweg::channel::{Options, Overflow, mpmc, mpsc};
//!
//! let (sender, receiver) = mpsc::channel(1_024)?;
//! let other = sender.clone();
//! std::thread::spawn(move || other.send("from a thread"));
//! std::thread::spawn(move || sender.send("from another"));
//! assert_eq!(receiver.iter().count(), 2); // ends when the last sender is gone and all was received
//!
//! let (prices, screen) = mpmc::with(2, Options::new().overflow(Overflow::DropOldest))?;
//! for price in [98, 99, 101, 103] {
//!     prices.send(price).expect("the screen is there");
//! }
//! assert_eq!(screen.try_iter().collect::<Vec<_>>(), [101, 103]);
//! assert_eq!(screen.stats().dropped_oldest, 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The same two handles serve all kinds of callers, each side for itself:
//!
//! * threads: `send`, `recv`, with a timeout or a deadline, in batches, as an iterator; they spin for a moment, then sleep;
//! * tasks of any executor: [`Sender::send_async`], [`Receiver::recv_async`], [`Receiver::stream`];
//! * event loops: [`Receiver::readiness`], a file descriptor for poll or epoll;
//! * whoever must not wait: `try_send`, `try_recv`, `try_iter`.
//!
//! [`Select`] waits for the first of several. Whichever side closes a channel, or drops its last handle, what was accepted before is
//! still received, unless nobody is left to receive it.
//!
//! # In an actor
//!
//! The blocking calls block a thread. An actor of [`runtime`](crate::runtime) that used them would hold up the other actors of its worker, so it
//! waits for the async ones, by the waker and the parking that it has anyway:
//!
//! ```
//! use std::{future::Future, pin::pin, task::{Context, Poll}};
//! use thalweg::{channel::mpsc, runtime::{Runtime, Woke, wait}};
//!
//! /// `None`: the runtime stops.
//! fn wait_for<F: Future>(future: F) -> Option<F::Output> {
//!     let (mut future, waker) = (pin!(future), wait::waker());
//!     loop {
//!         if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
//!             return Some(value);
//!         }
//!         if wait::park(None) == Woke::Stopping {
//!             return None;
//!         }
//!     }
//! }
//!
//! let (numbers, mut received) = mpsc::channel(4)?;
//! let (sum, sums) = mpsc::channel(1)?;
//! Runtime::global()?.spawn(move || {
//!     let mut total = 0;
//!     while let Some(Ok(number)) = wait_for(received.recv_async()) {
//!         total += number;
//!     }
//!     sum.try_send(total).expect("there is room for one");
//! });
//! (1..=100).for_each(|number| numbers.send(number).expect("the actor receives"));
//! drop(numbers);
//! assert_eq!(sums.recv(), Ok(5_050));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! They are `thalweg-queue`'s, whose documentation says how they work; `examples/channels` has a program for each of them.

pub use thalweg_queue::{mpmc, mpsc, oneshot, spsc};

pub use thalweg_queue::{
    BadCapacity, Closed, RecvError, RecvTimeoutError, SendError, SendTimeoutError, TryRecvError,
    TrySendError, Unsupported,
};
pub use thalweg_queue::{
    Iter, Operation, Options, Overflow, Readiness, Receiver, RecvFuture, RecvStream, Select,
    SendFuture, Sender, Stats, TryIter, Waiting,
};
