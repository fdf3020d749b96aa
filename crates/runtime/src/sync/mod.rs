//! Synchronisation primitives that actors, threads and tasks share. An actor that waits here parks,
//! and its worker runs other actors. With the types of the same names in `std`, it would block its
//! worker.
//!
//! | type | a wait ends with | order | async |
//! | --- | --- | --- | --- |
//! | [`Mutex`] | exclusive access to the value | barging; no waiter is overtaken twice in a row | `lock_async` |
//! | [`RwLock`] | shared or exclusive access to the value | FIFO | `read_async`, `write_async` |
//! | [`Semaphore`] | permits | FIFO | `acquire_async` |
//! | [`Condvar`] | a notification about a mutex's value | FIFO | `wait_async` |
//! | [`Barrier`] | the arrival of a fixed number of callers | all at once | `wait_async` |
//! | [`Notify`] | a notification | FIFO | [`Notify::notified`] |
//! | [`watch`] | a newer value | all at once | `changed_async` |
//!
//! Each has blocking calls with and without a deadline, and futures; all but the condvar, the
//! barrier and [`Notify`] also have non-blocking calls. All but [`watch`] can be created in a
//! `const`. None of them allocates, not even to wait.
//!
//! Implementation: `wait_list` is the list of waiters, `wait_future` is one wait, `raw_mutex` is
//! the lock of [`Mutex`], and `raw_semaphore` counts the permits of [`Semaphore`] and [`RwLock`].

mod barrier;
mod condvar;
mod error;
mod mutex;
mod notify;
mod raw_mutex;
mod raw_semaphore;
mod rwlock;
mod semaphore;
mod wait_future;
mod wait_list;
pub mod watch;

pub use barrier::{Barrier, BarrierWaitResult};
pub use condvar::Condvar;
pub use error::{ClosableWaitError, Closed, TryAcquireError, WaitError};
pub use mutex::{Mutex, MutexGuard, OwnedMutexGuard};
pub use notify::{Notified, Notify};
pub use rwlock::{RwLock, RwLockReadGuard, RwLockWriteGuard};
pub use semaphore::{OwnedPermit, Permit, Semaphore};
