//! Behaviour actors: actors with a state and a mailbox, and without a stack between two messages.
//! An idle one takes about 300 bytes besides its state.
//!
//! The actor implements a [`Handler`] for each type of message. A handler runs as any other actor
//! does: it may wait for a reply, a deadline or a channel, and has a stack for as long as it runs.
//! An actor handles one message at a time. Between two messages it belongs to no thread, so another
//! worker may handle the next one; while a handler runs, the actor stays on its worker.
//!
//! ```
//! use thalweg_runtime::{Actor, Context, Handler, run, start};
//!
//! struct Account { balance: u64 }
//! struct Deposit(u64);
//! struct Balance;
//!
//! impl Actor for Account {}
//!
//! impl Handler<Deposit> for Account {
//!     type Reply = ();
//!     fn handle(&mut self, deposit: Deposit, _: &Context<'_, Self>) {
//!         self.balance += deposit.0;
//!     }
//! }
//!
//! impl Handler<Balance> for Account {
//!     type Reply = u64;
//!     fn handle(&mut self, _: Balance, _: &Context<'_, Self>) -> u64 {
//!         self.balance
//!     }
//! }
//!
//! run(|| {
//!     let account = start(Account { balance: 5 });
//!     account.cast(Deposit(20)).expect("the actor runs");
//!     assert_eq!(account.call(Balance).expect("the actor replies"), 25);
//! });
//! ```

mod async_calls;
mod body;
mod cold_state;
mod envelope_queue;
mod incarnation;
pub(crate) mod mailbox_state;
mod monitor_ref;
mod priority_queues;
mod reference;
pub(crate) mod reply;
mod system_sender;
mod weak_ref;

use std::fmt;
use std::time::Duration;

use self::body::Body;
pub(crate) use self::incarnation::{ExitListener, Restartable, SystemRef, restartable};
pub use self::monitor_ref::MonitorRef;
pub use self::priority_queues::Priority;
pub use self::reference::{ActorRef, DelayedSend, start};
pub(crate) use self::system_sender::SystemSender;
pub(crate) use self::weak_ref::WeakActorRef;
use crate::control::{Down, Exit};
use crate::exit::Pid;
use crate::id::ActorId;

/// The state of a behaviour actor.
pub trait Actor: Send + Sized + 'static {
    /// Runs after the start and before the first message. A panic ends the actor.
    fn started(&mut self, _: &Context<'_, Self>) {}

    /// Runs after the last message. It does not run if the actor ends by a panic, or by an exit
    /// signal other than a shutdown.
    fn stopped(&mut self) {}

    /// Receives an exit signal while the actor [traps exits](Context::trap_exits). It runs before
    /// the waiting messages are handled.
    fn on_exit(&mut self, _: Exit, _: &Context<'_, Self>) {}

    /// Receives the exit of an actor that this one [monitors](Context::monitor). It runs before the
    /// waiting messages are handled.
    fn on_down(&mut self, _: Down, _: &Context<'_, Self>) {}
}

/// Handles messages of type `M`.
pub trait Handler<M: Send + 'static>: Actor {
    /// The reply to a call.
    type Reply: Send + 'static;

    /// Handles one message. It may wait. A panic ends the actor, and the caller receives
    /// [`CallError::Ended`].
    fn handle(&mut self, message: M, context: &Context<'_, Self>) -> Self::Reply;
}

/// A handler's access to its own actor.
pub struct Context<'a, A: Actor> {
    body: &'a std::sync::Arc<Body<A>>,
}

impl<A: Actor> Context<'_, A> {
    /// A reference to the actor itself. Like any other reference it keeps the actor alive, even if
    /// it is the only one. An actor that keeps one in its own state ends only by
    /// [`stop`](Self::stop), a signal, a panic or the end of its runtime.
    ///
    /// ```
    /// use thalweg_runtime::{Actor, ActorRef, Context, Handler, Sender, channel, run, start};
    ///
    /// struct Job { done: Sender<u32> }
    /// struct Begin;
    /// struct Finish(u32);
    ///
    /// impl Actor for Job {}
    /// impl Handler<Begin> for Job {
    ///     type Reply = ();
    ///     fn handle(&mut self, _: Begin, context: &Context<'_, Self>) {
    ///         // The caller's reference may be gone by now.
    ///         let me: ActorRef<Self> = context.actor();
    ///         thalweg_runtime::spawn(move || me.cast(Finish(42)).expect("the reference keeps it alive"));
    ///     }
    /// }
    /// impl Handler<Finish> for Job {
    ///     type Reply = ();
    ///     fn handle(&mut self, finish: Finish, _: &Context<'_, Self>) {
    ///         self.done.send(finish.0).expect("the receiver waits");
    ///     }
    /// }
    ///
    /// run(|| {
    ///     let (done, result) = channel();
    ///     start(Job { done }).cast(Begin).expect("it has just started");
    ///     assert_eq!(result.recv(), Ok(42));
    /// });
    /// ```
    pub fn actor(&self) -> ActorRef<A> {
        ActorRef::new(self.body)
    }

    /// The number of this incarnation.
    pub fn id(&self) -> ActorId {
        self.body.id()
    }

    /// The `Pid` of this incarnation, for signals and monitors.
    pub fn pid(&self) -> Pid {
        self.body.pid()
    }

    /// With `true`, exit signals to this actor other than [`Pid::kill`] are passed to
    /// [`Actor::on_exit`] and do not end it.
    pub fn trap_exits(&self, on: bool) {
        self.body.pid().control().trap_to_handler(on);
    }

    /// Monitors `other`: its exit is passed to [`Actor::on_down`], once. If it has already ended,
    /// the reason is [`ExitReason::NoActor`](crate::ExitReason::NoActor). Each call creates a
    /// monitor of its own.
    pub fn monitor(&self, other: &Pid) -> MonitorRef {
        MonitorRef::new(self.body, other)
    }

    /// Ends the actor after this message. Waiting messages are dropped.
    pub fn stop(&self) {
        self.body.stop();
    }
}

impl<A: Actor> fmt::Debug for Context<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("id", &self.id()).finish()
    }
}

/// The timeout of OTP's `gen_server:call`.
const CALL_TIMEOUT: Duration = Duration::from_secs(5);

/// Why a call has no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallError {
    /// The actor has ended, perhaps while it handled this call.
    Ended,
    /// The reply did not arrive in time. A later reply is dropped.
    TimedOut,
    /// The mailbox is full and its overflow policy does not wait.
    Full,
    /// The actor called itself. It cannot reply while it waits for its own reply.
    CallingSelf,
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ended => "the actor has ended",
            Self::TimedOut => "the reply did not arrive in time",
            Self::Full => "the actor's mailbox is full",
            Self::CallingSelf => "the actor called itself",
        })
    }
}

impl std::error::Error for CallError {}
