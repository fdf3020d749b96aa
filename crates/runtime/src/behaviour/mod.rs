//! Actors that hold a state and no stack: between two messages one of them is its state, its mailbox and some 300 bytes.
//!
//! What it does with a message is a [`Handler`], which runs as any other actor does: it may wait, for a reply, a deadline or a channel, and keeps its
//! stack for as long. One message is handled at a time. Where no message is handled it belongs to no thread, so the next one may be handled
//! by another worker; during one it stays.
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
//!     account.cast(Deposit(20)).expect("it lives");
//!     assert_eq!(account.call(Balance).expect("it answers"), 25);
//! });
//! ```

mod async_calls;
mod body;
mod envelope_queue;
mod incarnation;
pub(crate) mod mailbox_state;
mod monitor_ref;
mod priority_queues;
mod reference;
mod system_sender;
mod weak_ref;

use std::fmt;
use std::time::Duration;

use thalweg_queue::Overflow;

use self::body::Body;
pub(crate) use self::incarnation::{ExitListener, Restartable, SystemRef, restartable};
pub use self::monitor_ref::Monitored;
pub use self::priority_queues::Priority;
pub use self::reference::{ActorRef, Later, start};
pub(crate) use self::system_sender::SystemSender;
pub(crate) use self::weak_ref::WeakActorRef;
use crate::exit::{Down, Exit, Pid};
use crate::id::ActorId;

/// The state of an actor that handles messages.
pub trait Actor: Send + Sized + 'static {
    /// Soon after the start, and before the first message. A panic ends the actor.
    fn started(&mut self, _: &Context<'_, Self>) {}

    /// After the last message, unless the actor ends by a panic or by an exit signal other than a shutdown.
    fn stopped(&mut self) {}

    /// An exit signal, while the actor [traps exits](Context::trap_exits). It comes before all messages that wait.
    fn on_exit(&mut self, _: Exit, _: &Context<'_, Self>) {}

    /// The end of an actor that this one [monitors](Context::monitor). It comes before all messages that wait.
    fn on_down(&mut self, _: Down, _: &Context<'_, Self>) {}
}

/// What an actor does with an `M`.
pub trait Handler<M: Send + 'static>: Actor {
    /// What a call of it gets.
    type Reply: Send + 'static;

    /// Handles one message. It may wait. A panic ends the actor, and whoever called gets [`CallError::Ended`].
    fn handle(&mut self, message: M, context: &Context<'_, Self>) -> Self::Reply;
}

/// What a handler knows of its actor.
pub struct Context<'a, A: Actor> {
    body: &'a std::sync::Arc<Body<A>>,
}

impl<A: Actor> Context<'_, A> {
    /// A reference to the actor itself. It keeps the actor alive as any other does, even if no other is left: an actor that keeps one in its own state
    /// ends only by [`stop`](Self::stop), a signal, a panic or the end of its runtime.
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

    /// Its number.
    pub fn id(&self) -> ActorId {
        self.body.id()
    }

    /// Its name, for signals and monitors.
    pub fn pid(&self) -> Pid {
        self.body.pid()
    }

    /// Whether exit signals to it, but for [`Pid::kill`], are given to [`Actor::on_exit`] and do not end it.
    pub fn trap_exits(&self, on: bool) {
        self.body.pid().control().trap_letters(on);
    }

    /// From now on the end of `other` is given to [`Actor::on_down`], once; if it has ended already, with [`ExitReason::NoActor`](crate::ExitReason::NoActor).
    /// It may be called several times, and is heard as often.
    pub fn monitor(&self, other: &Pid) -> Monitored {
        Monitored::new(self.body, other)
    }

    /// Ends it after this message; those behind it are dropped.
    pub fn stop(&self) {
        self.body.stop();
    }
}

impl<A: Actor> fmt::Debug for Context<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("id", &self.id()).finish()
    }
}

/// How many messages may wait for an actor, and what becomes of one more.
#[derive(Clone, Copy, Debug)]
pub struct Mailbox {
    /// 1 to 2^31. Default: 1,024.
    pub capacity: u32,
    /// Default: [`Overflow::Block`]: the sender waits. What would take out older messages is not for mailboxes.
    pub overflow: Overflow,
}

impl Default for Mailbox {
    fn default() -> Self {
        Self {
            capacity: 1_024,
            overflow: Overflow::Block,
        }
    }
}

impl Mailbox {
    /// # Panics
    /// If it has no room, or more than 2^31, or its policy takes older messages out.
    pub(crate) fn check(&self) {
        let Self { capacity, overflow } = self;
        assert!(
            (1..=1 << 31).contains(capacity),
            "a mailbox has room for 1 to 2^31 messages, not {capacity}"
        );
        assert!(
            !matches!(overflow, Overflow::DropOldest | Overflow::Latest),
            "a mailbox does not take out older messages: {overflow:?}"
        );
    }
}

/// What OTP's `gen_server:call` waits.
const CALL_TIMEOUT: Duration = Duration::from_secs(5);

/// Why a call has no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallError {
    /// The actor has ended, perhaps while it handled this very call.
    Ended,
    /// The reply did not come in time; it is dropped when it comes.
    TimedOut,
    /// The mailbox was full, and its policy is not to wait, or the actor called itself.
    Full,
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ended => "the actor has ended",
            Self::TimedOut => "the reply did not come in time",
            Self::Full => "the actor's mailbox is full",
        })
    }
}

impl std::error::Error for CallError {}
