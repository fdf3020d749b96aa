//! References to behaviour actors.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Wake, Waker};
use std::time::Duration;

use thalweg_queue::no_preempt::lock;
use thalweg_queue::{Overflow, SendError, clock};

use super::body::{Body, MESSAGES_PER_TURN, PushError};
use super::envelope_queue::{BoxedEnvelope, Payload};
use super::priority_queues::Priority;
use super::reply::{ReplyTo, reply_cell};
use super::{Actor, CALL_TIMEOUT, CallError, Context, Handler};
use crate::exit::{Pid, Signal};
use crate::id::ActorId;
use crate::log::{Level, Limit};
use crate::mailbox::Mailbox;
use crate::runtime::{Builder, Handle};
use crate::shim::Ordering;
use crate::timers::TimerKey;
use crate::{channel, wait, worker};

/// Messages that a full mailbox dropped.
static DROPPED: Limit = Limit::new();

/// The number of messages that an actor handles in a row if one other task is ready. A sender lets
/// other actors run when a multiple of this number of messages waits, so that the messages are still
/// in a cache when they are handled.
const MESSAGES_IN_A_ROW: u64 = MESSAGES_PER_TURN * worker::TURNS_IN_A_ROW;

/// Timeouts from this one on need not be compared with the clock once more before the wait.
const LONG: Duration = Duration::from_millis(10);

/// A reference to an actor. When the last reference is dropped, the actor handles its remaining
/// messages and ends, unless a handler takes a new reference to the actor ([`Context::actor`]).
pub struct ActorRef<A: Actor> {
    pub(super) body: Arc<Body<A>>,
    pub(super) priority: Priority,
}

/// Starts an actor with this state on the caller's runtime.
///
/// # Panics
/// If the caller is not an actor. In a thread, use [`Handle::start`].
pub fn start<A: Actor>(state: A) -> ActorRef<A> {
    Builder::new().start(state)
}

impl Builder {
    /// The mailbox of the actor that is [`start`](Self::start)ed.
    #[must_use]
    pub fn mailbox(mut self, mailbox: Mailbox) -> Self {
        self.mailbox = mailbox;
        self
    }

    /// Sends a [`Signal`] to `supervisor` when the actor that is [`start`](Self::start)ed ends.
    #[must_use]
    pub fn supervisor(mut self, supervisor: channel::Sender<Signal>) -> Self {
        self.supervisor = Some(supervisor);
        self
    }

    /// Starts an actor with this state on the caller's runtime. This is a preemption
    /// [point](crate::check).
    ///
    /// # Panics
    /// If the caller is not an actor. In a thread, use [`Builder::start_on`].
    pub fn start<A: Actor>(self, state: A) -> ActorRef<A> {
        let runtime =
            Handle::current().expect("start requires an actor; in a thread, use Builder::start_on");
        self.start_on(&runtime, state)
    }

    /// Starts an actor with this state on `runtime`. Any thread may call it.
    ///
    /// # Panics
    /// If the mailbox's capacity is 0 or more than 2^31, or its policy removes older messages.
    pub fn start_on<A: Actor>(self, runtime: &Handle, state: A) -> ActorRef<A> {
        self.mailbox.check();
        let on_end = self.supervisor.map(|supervisor| {
            let supervisor = Mutex::new(supervisor);
            let notify = move |signal| {
                // The receiver may be gone.
                let _ = supervisor
                    .into_inner()
                    .unwrap_or_else(PoisonError::into_inner)
                    .send(signal);
            };
            Box::new(notify) as Box<dyn FnOnce(Signal) + Send>
        });
        let body = Body::new(Ok(state), self.name, self.mailbox, runtime.clone(), on_end);
        let actor = ActorRef::new(&body);
        body.schedule_first_turn();
        // An actor that starts many others lets them begin meanwhile.
        wait::check();
        actor
    }
}

impl Handle {
    /// Starts an actor with this state.
    pub fn start<A: Actor>(&self, state: A) -> ActorRef<A> {
        Builder::new().start_on(self, state)
    }
}

/// A message, and where the reply to it goes.
pub(super) struct Message<M, P> {
    pub(super) message: M,
    pub(super) reply_to: P,
}

impl<A: Handler<M>, M: Send + 'static, P: ReplyTo<A::Reply>> Payload<A> for Message<M, P> {
    #[inline(always)]
    fn deliver(self, actor: &mut A, context: &Context<'_, A>) {
        let value = actor.handle(self.message, context);
        self.reply_to.send(value);
    }
}

impl<A: Actor> ActorRef<A> {
    pub(super) fn new(body: &Arc<Body<A>>) -> Self {
        body.references.fetch_add(1, Ordering::Relaxed);
        Self {
            body: Arc::clone(body),
            priority: Priority::Normal,
        }
    }

    /// A second reference, whose messages and calls have this priority. References have
    /// [`Priority::Normal`] by default.
    ///
    /// ```
    /// use thalweg_runtime::{Actor, Context, Handler, Priority, run, start};
    ///
    /// struct Log(Vec<&'static str>);
    /// struct Take;
    ///
    /// impl Actor for Log {}
    /// impl Handler<&'static str> for Log {
    ///     type Reply = ();
    ///     fn handle(&mut self, line: &'static str, _: &Context<'_, Self>) {
    ///         self.0.push(line);
    ///     }
    /// }
    /// impl Handler<Take> for Log {
    ///     type Reply = Vec<&'static str>;
    ///     fn handle(&mut self, _: Take, _: &Context<'_, Self>) -> Self::Reply {
    ///         std::mem::take(&mut self.0)
    ///     }
    /// }
    ///
    /// run(|| {
    ///     let log = start(Log(Vec::new()));
    ///     // There is one worker, so no message is handled before the call waits.
    ///     log.with_priority(Priority::Low).cast("later").unwrap();
    ///     log.cast("now").unwrap();
    ///     log.with_priority(Priority::High).cast("first").unwrap();
    ///     assert_eq!(log.call(Take).unwrap(), ["first", "now"]);
    ///     assert_eq!(log.with_priority(Priority::Low).call(Take).unwrap(), ["later"]);
    /// });
    /// ```
    #[must_use]
    pub fn with_priority(&self, priority: Priority) -> Self {
        let mut other = self.clone();
        other.priority = priority;
        other
    }

    /// Keeps the actor from ending when its last reference is dropped, because a supervisor decides
    /// that.
    pub(crate) fn keep_open(&self) {
        self.body.references.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of the current incarnation. A restart changes it.
    pub fn id(&self) -> ActorId {
        self.body.id()
    }

    /// The `Pid` of the current incarnation, for signals and monitors. It does not keep the actor
    /// alive.
    pub fn pid(&self) -> Pid {
        self.body.pid()
    }

    /// Whether the actor accepts messages. It may end at any time.
    pub fn is_alive(&self) -> bool {
        !self.body.is_closed()
    }

    /// Waits until an incarnation other than `old` runs and accepts messages, for at most
    /// `timeout`, and returns its `Pid`. Returns `None` if there is none in time, and at once if
    /// the actor has ended and has no supervisor.
    ///
    /// A supervised actor keeps its mailbox over a restart, so a call to it needs no wait. Wait for
    /// an actor below a supervisor that may itself be restarted: from the end of that supervisor
    /// until the new one has started its children, calls to them return [`CallError::Ended`].
    ///
    /// ```
    /// use std::time::Duration;
    /// use thalweg_runtime::supervisor::{ChildSpec, Strategy, Supervisor};
    /// use thalweg_runtime::{Actor, run};
    ///
    /// struct Cache;
    /// impl Actor for Cache {}
    ///
    /// run(|| {
    ///     let (spec, cache) = ChildSpec::actor("cache", || Cache);
    ///     let _supervisor = Supervisor::new(Strategy::OneForOne).child(spec).start()?;
    ///     let old = cache.pid();
    ///     old.kill()?;
    ///     let new = cache.wait_restarted(&old, Duration::from_secs(5)).expect("it is restarted");
    ///     assert_ne!(new, old);
    ///     # Ok::<(), Box<dyn std::error::Error>>(())
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn wait_restarted(&self, old: &Pid, timeout: Duration) -> Option<Pid> {
        let new = self.body.wait_restarted(old, clock::deadline(timeout));
        if new.is_none() {
            worker::raise_if_due();
        }
        new
    }

    pub(crate) fn runtime(&self) -> &Handle {
        &self.body.runtime
    }

    /// The number of waiting messages.
    pub fn len(&self) -> usize {
        self.body.len()
    }

    /// Whether no message waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of messages that were dropped because the mailbox was full
    /// ([`Overflow::DropNewest`]).
    pub fn dropped(&self) -> u64 {
        self.body.dropped.load(Ordering::Relaxed)
    }

    /// Ends the actor before it handles another message, and drops the waiting ones. Does not wait
    /// for the end.
    pub fn stop(&self) {
        self.body.stop();
    }

    /// Sends a message, and discards the handler's reply. If the mailbox is full, its overflow
    /// policy applies. Whenever a multiple of 256 messages waits, other actors may run before it
    /// returns, so that a fast sender does not fill the memory.
    ///
    /// # Errors
    /// The message, if the actor has ended, if the mailbox is full and its policy does not wait, or
    /// if the actor would wait for itself.
    pub fn cast<M: Send + 'static>(&self, message: M) -> Result<(), SendError<M>>
    where
        A: Handler<M>,
    {
        let deadline = match self.body.mailbox.overflow {
            Overflow::BlockFor(time) => Some(clock::deadline(time)),
            _ => None,
        };
        self.send(message, (), deadline)
            .map_err(|(refused, message)| match refused {
                CallError::Ended => SendError::Closed(message),
                CallError::TimedOut => SendError::TimedOut(message),
                CallError::Full | CallError::CallingSelf => SendError::Full(message),
            })
    }

    /// Sends a message and waits for the reply, for at most five seconds, as OTP's
    /// `gen_server:call` does. While an actor waits, its worker runs other actors.
    ///
    /// # Errors
    /// [`CallError`], if there is no reply.
    pub fn call<M: Send + 'static>(&self, message: M) -> Result<A::Reply, CallError>
    where
        A: Handler<M>,
    {
        self.call_timeout(message, CALL_TIMEOUT)
    }

    /// As [`call`](Self::call), with this timeout, which includes the wait for capacity.
    ///
    /// # Errors
    /// [`CallError`], if there is no reply.
    pub fn call_timeout<M: Send + 'static>(
        &self,
        message: M,
        timeout: Duration,
    ) -> Result<A::Reply, CallError>
    where
        A: Handler<M>,
    {
        if self.body.is_caller() {
            return Err(CallError::CallingSelf);
        }
        let deadline = clock::deadline(timeout);
        let (reply, answer) = reply_cell(wait::waker());
        self.send(message, reply, Some(deadline))
            .map_err(|(refused, _)| refused)?;
        answer.recv(deadline, timeout >= LONG)
    }

    /// Sends `message` after `delay`. It is handled before the waiting messages, and is accepted
    /// even if the mailbox is full.
    pub fn send_after<M: Send + 'static>(&self, delay: Duration, message: M) -> DelayedSend
    where
        A: Handler<M>,
    {
        self.body.send_after(delay, message)
    }

    fn send<M: Send + 'static, P: ReplyTo<A::Reply>>(
        &self,
        message: M,
        reply_to: P,
        deadline: Option<u64>,
    ) -> Result<(), (CallError, M)>
    where
        A: Handler<M>,
    {
        let mut contents = Some(Message { message, reply_to });
        loop {
            let pushed = self.body.push(self.priority, || {
                BoxedEnvelope::traced(contents.take().expect("the message is pushed once"))
            });
            let refused = match pushed {
                Ok(waiting) => {
                    if !P::IS_AWAITED && waiting.is_multiple_of(MESSAGES_IN_A_ROW) {
                        worker::yield_if_allowed();
                    }
                    return Ok(());
                }
                Err(refused) => refused,
            };
            let waits = matches!(
                self.body.mailbox.overflow,
                Overflow::Block | Overflow::BlockFor(_)
            );
            // The message of a call is never dropped silently, since its caller waits for the
            // reply.
            let drops = self.body.mailbox.overflow == Overflow::DropNewest && !P::IS_AWAITED;
            let error = match refused {
                PushError::Closed => CallError::Ended,
                PushError::Full if drops => {
                    self.body.dropped.fetch_add(1, Ordering::Relaxed);
                    self.body.runtime.count(|counts| &counts.dropped_messages);
                    DROPPED.write(
                        Level::Warning,
                        "actor",
                        format_args!("actor {} drops messages: its mailbox is full", self.id()),
                    );
                    return Ok(());
                }
                PushError::Full if !waits || self.body.is_caller() => CallError::Full,
                PushError::Full if self.body.wait_for_capacity(self.priority, deadline) => continue,
                PushError::Full => {
                    worker::raise_if_due();
                    CallError::TimedOut
                }
            };
            let contents = contents.expect("the message was not pushed");
            return Err((error, contents.message));
        }
    }
}

impl<A: Actor> Body<A> {
    pub(super) fn send_after<M: Send + 'static>(
        self: &Arc<Self>,
        delay: Duration,
        message: M,
    ) -> DelayedSend
    where
        A: Handler<M>,
    {
        let deadline = clock::deadline(delay);
        let envelope = BoxedEnvelope::traced(Message {
            message,
            reply_to: (),
        });
        let delayed = Arc::new(DelayedMessage {
            body: Arc::clone(self),
            envelope: Mutex::new(Some(envelope)),
        });
        let key = self.runtime.timers().at(deadline, Waker::from(delayed));
        DelayedSend {
            runtime: self.runtime.clone(),
            key,
        }
    }
}

/// A message that [`ActorRef::send_after`] will send.
#[derive(Debug)]
pub struct DelayedSend {
    runtime: Handle,
    key: TimerKey,
}

impl DelayedSend {
    /// Cancels the message, unless it was sent already.
    pub fn cancel(self) {
        self.runtime.timers().cancel(self.key);
    }
}

/// It does not count as a reference, so it does not keep the actor from ending.
struct DelayedMessage<A: Actor> {
    body: Arc<Body<A>>,
    envelope: Mutex<Option<BoxedEnvelope<A>>>,
}

impl<A: Actor> Wake for DelayedMessage<A> {
    fn wake(self: Arc<Self>) {
        let envelope = lock(&self.envelope).take();
        if let Some(envelope) = envelope {
            self.body.push_system(envelope);
        }
    }
}

impl<A: Actor> Clone for ActorRef<A> {
    fn clone(&self) -> Self {
        let mut clone = Self::new(&self.body);
        clone.priority = self.priority;
        clone
    }
}

impl<A: Actor> Drop for ActorRef<A> {
    fn drop(&mut self) {
        if self.body.references.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.body.close();
        }
    }
}

impl<A: Actor> fmt::Debug for ActorRef<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActorRef")
            .field("id", &self.id())
            .field("alive", &self.is_alive())
            .field("len", &self.len())
            .finish()
    }
}
