//! Stackful actors: workers that run them, and waits that work in an actor and on a thread alike.
//!
//! An actor is a closure with a stack of its own. It gets the stack when it first runs, and returns
//! it when it ends. While the actor waits, it is suspended, and its worker runs another actor. A
//! started stack never changes thread. An object that runs repeatedly without a stack in between,
//! such as a service that receives messages, implements [`Run`].
//!
//! For async code: [`block_on`] awaits a future in an actor or on a thread. A [`JoinHandle`] is a
//! future, which a task of any executor can await. Such a task spawns actors through a [`Handle`]
//! and calls them with [`ActorRef::call_async`].
//!
//! ```
//! use thalweg_runtime::{Config, Runtime};
//!
//! let runtime = Runtime::start(Config { workers: 2, ..Config::default() })?;
//! let (tx, rx) = std::sync::mpsc::channel();
//! runtime.handle().spawn(move || tx.send(6 * 7).expect("the test waits"));
//! assert_eq!(rx.recv(), Ok(42));
//! # Ok::<(), thalweg_runtime::StartError>(())
//! ```

mod actor_info;
mod affinity;
mod behaviour;
mod block_on;
mod blocking_pool;
pub mod cancel;
mod channel;
mod config;
mod control;
mod counters;
mod epoch;
mod exit;
mod extension;
mod fiber;
mod fifo;
mod future_wait;
pub mod groups;
mod id;
mod idle;
pub mod inbox;
mod injector;
mod injector_slot;
mod inline_slab;
pub mod inspect;
mod interval;
pub mod io;
mod join;
mod join_all;
mod join_set;
pub mod log;
mod mailbox;
pub mod metrics;
#[cfg(all(test, loom))]
mod models;
mod name;
mod native;
pub mod net;
mod panics;
pub mod patterns;
mod poller;
pub mod preempt;
mod prefetch;
mod reason;
pub mod registry;
mod remote_queue;
mod ring;
pub mod runtime;
mod scheduler;
mod scope_node;
mod sections;
mod select;
mod shim;
mod shutdown;
mod sleep_future;
#[cfg(not(any(miri, loom, thalweg_threads)))]
mod stack;
#[cfg(any(miri, loom, thalweg_threads))]
#[path = "switch/stack.rs"]
mod stack;
pub mod stall;
mod supervised;
pub mod supervisor;
mod switch;
pub mod sync;
mod task;
mod threads;
mod time_of_day;
mod timers;
mod timeslice;
pub mod trace;
mod trace_context;
mod tsc;
pub mod wait;
mod waiters;
mod wake_reason;
mod wheel;
mod worker;

pub use behaviour::{
    Actor, ActorRef, CallError, Context, DelayedSend, Handler, MonitorRef, Priority, start,
};
pub use block_on::{Elapsed, block_on, block_on_deadline, block_on_timeout};
pub use channel::{Iter, Receiver, Sender, channel};
pub use config::{Config, Description, Machine, Profile, Setting, Source, StartError, Value};
pub use control::{Down, Exit};
pub use epoch::{epoch, watch_forks};
pub use exit::{Monitor, NoKill, NotAlive, Pid, Signal, exit, trap_exits};
pub use id::ActorId;
pub use interval::{Interval, MissedTickBehavior, interval, interval_at};
pub use join::{JoinHandle, TimedOut};
pub use join_all::JoinAll;
pub use join_set::{JoinSet, Joined};
pub use mailbox::Mailbox;
pub use native::native;
pub use panics::Panic;
pub use reason::{ExitReason, JoinError};
pub use runtime::{Builder, CheckedConfig, Handle, Runtime, init, run, spawn};
pub use shutdown::{Leaked, ShutdownError, Unfinished};
pub use sleep_future::{Sleep, sleep_async, sleep_until_async};
pub use stack::StackError;
pub use supervised::spawn_under;
pub use task::{Run, TurnSlot};
pub use timers::{TimerKey, Timers};
pub use wait::{sleep, sleep_until, yield_now};
pub use wake_reason::WakeReason;

/// The expansion of [`select!`].
#[doc(hidden)]
pub mod __select {
    pub use crate::select::{NoArms, Selected, WithArm, select, try_select};
}
