//! What actors, threads and tasks share and wait for. An actor that waits here leaves its worker to others; with the same types of `std` its worker
//! would wait with it.
//!
//! | type | waits for | order | tasks |
//! | --- | --- | --- | --- |
//! | [`Mutex`] | its value, alone | who runs first; nobody is passed over twice in a row | `lock_async` |
//! | [`RwLock`] | its value, to read or to write | of the calls | `read_async`, `write_async` |
//! | [`Semaphore`] | permits | of the calls | `acquire_async` |
//! | [`Condvar`] | a change of a mutex's value | of the calls | |
//! | [`Barrier`] | so many others | all at once | `wait_async` |
//! | [`Notify`] | a wake-up | of the calls | [`Notify::notified`] |
//! | [`watch`] | a newer value | all at once | `changed_async` |
//!
//! Each can be tried, waited for, waited for until a deadline, and awaited. All but the watch are made in a `const`, and none allocates, also where one waits.
//!
//! How it is built: `line` is the list of those who wait, `waiting` is one wait, `raw_lock` and `permits` are what the locks and the semaphore are made of.

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
