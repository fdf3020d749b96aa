//! How others reach an actor.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Wake, Waker};
use std::time::Duration;

use thalweg_queue::no_preempt::lock;
use thalweg_queue::{Overflow, RecvTimeoutError, SendError, clock, oneshot};

use super::body::{Body, PushError};
use super::envelope_queue::{BoxedEnvelope, Payload};
use super::priority_queues::Priority;
use super::{Actor, CALL_TIMEOUT, CallError, Context, Handler, Mailbox};
use crate::exit::Signal;
use crate::exit::{self, Pid};
use crate::id::ActorId;
use crate::runtime::{Builder, Handle};
use crate::shim::Ordering;
use crate::timers::TimerKey;
use crate::{channel, wait, worker};

/// A reference to an actor. When the last reference is dropped, the actor handles its remaining messages
/// and ends, unless a handler takes a new reference to the actor ([`Context::actor`]).
pub struct ActorRef<A: Actor> {
    pub(super) body: Arc<Body<A>>,
    pub(super) priority: Priority,
}

/// A new actor with this state, on the caller's runtime.
///
/// # Panics
/// If the caller is no actor: a thread has [`Handle::start`].
pub fn start<A: Actor>(state: A) -> ActorRef<A> {
    Builder::new().start(state)
}

impl Builder {
    /// How many messages may wait for the actor that is [`start`](Self::start)ed.
    #[must_use]
    pub fn mailbox(mut self, mailbox: Mailbox) -> Self {
        self.mailbox = mailbox;
        self
    }

    /// Who hears of the end of the actor that is [`start`](Self::start)ed.
    #[must_use]
    pub fn supervisor(mut self, supervisor: channel::Sender<Signal>) -> Self {
        self.supervisor = Some(supervisor);
        self
    }

    /// A new actor with this state. It is a [point](crate::check) of preemption.
    ///
    /// # Panics
    /// If the caller is no actor: a thread has [`Builder::start_on`].
    pub fn start<A: Actor>(self, state: A) -> ActorRef<A> {
        let worker =
            worker::current().expect("start is for actors; a thread has Builder::start_on");
        self.start_on(&worker.handle(), state)
    }

    /// A new actor with this state, from anywhere.
    ///
    /// # Panics
    /// If the mailbox has no room, or more than 2^31, or its policy takes older messages out.
    pub fn start_on<A: Actor>(self, runtime: &Handle, state: A) -> ActorRef<A> {
        self.mailbox.check();
        let on_end = self.supervisor.map(|supervisor| {
            let supervisor = Mutex::new(supervisor);
            let notify = move |signal| {
                // A supervisor that has gone hears nothing.
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
        // Each has a turn to come: who starts many lets them begin.
        wait::check();
        actor
    }
}

impl Handle {
    /// A new actor with this state.
    pub fn start<A: Actor>(&self, state: A) -> ActorRef<A> {
        Builder::new().start_on(self, state)
    }
}

/// A message, and who waits for the reply.
pub(super) struct Message<M, R> {
    pub(super) message: M,
    pub(super) reply: Option<oneshot::Sender<R>>,
}

impl<A: Handler<M>, M: Send + 'static> Payload<A> for Message<M, A::Reply> {
    #[inline(always)]
    fn deliver(self, actor: &mut A, context: &Context<'_, A>) {
        let value = actor.handle(self.message, context);
        if let Some(reply) = self.reply {
            // Who waited no longer gets it no more.
            let _ = reply.send(value);
        }
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

    /// One more, by which messages and calls have this priority. One by which nothing is said of that has [`Priority::Normal`].
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
    ///     // None is handled before the call waits: there is one worker.
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

    /// From now on it does not end for want of references: it has a supervisor.
    pub(crate) fn keep_open(&self) {
        self.body.references.fetch_add(1, Ordering::Relaxed);
    }

    /// Its number. That of a supervised actor is another one after a restart.
    pub fn id(&self) -> ActorId {
        self.body.id()
    }

    /// Its incarnation's name, for signals and monitors, which keeps nothing of it alive.
    pub fn pid(&self) -> Pid {
        self.body.pid()
    }

    /// Whether it takes messages. It may end at any time.
    pub fn is_alive(&self) -> bool {
        !self.body.is_closed()
    }

    /// Messages that wait for it.
    pub fn len(&self) -> usize {
        self.body.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Messages that were dropped since there was no room, by [`Overflow::DropNewest`].
    pub fn dropped(&self) -> u64 {
        self.body.dropped.load(Ordering::Relaxed)
    }

    /// Ends it before it handles another message, however many wait: those are dropped. Does not wait for it.
    pub fn stop(&self) {
        self.body.stop();
    }

    /// Sends a message, by the mailbox's policy where that is full. Whatever the handler replies is dropped.
    ///
    /// # Errors
    /// The message, if the actor has ended, there is no room and the policy is not to wait, or the actor would wait for itself.
    pub fn cast<M: Send + 'static>(&self, message: M) -> Result<(), SendError<M>>
    where
        A: Handler<M>,
    {
        let deadline = match self.body.mailbox.overflow {
            Overflow::BlockFor(time) => Some(clock::deadline(time)),
            _ => None,
        };
        self.send(message, None, deadline)
            .map_err(|(refused, message)| match refused {
                CallError::Ended => SendError::Closed(message),
                CallError::TimedOut => SendError::TimedOut(message),
                CallError::Full => SendError::Full(message),
            })
    }

    /// Sends a message and waits for the reply, for five seconds at most, as OTP's `gen_server:call` does. An actor that calls leaves its worker
    /// to others meanwhile.
    ///
    /// # Errors
    /// There is none.
    pub fn call<M: Send + 'static>(&self, message: M) -> Result<A::Reply, CallError>
    where
        A: Handler<M>,
    {
        self.call_timeout(message, CALL_TIMEOUT)
    }

    /// As [`call`](Self::call), for at most `timeout`, which the wait for room is part of.
    ///
    /// # Errors
    /// There is none.
    pub fn call_timeout<M: Send + 'static>(
        &self,
        message: M,
        timeout: Duration,
    ) -> Result<A::Reply, CallError>
    where
        A: Handler<M>,
    {
        if self.body.is_caller() {
            return Err(CallError::Full);
        }
        let deadline = clock::deadline(timeout);
        let (reply, mut answer) = oneshot::channel();
        self.send(message, Some(reply), Some(deadline))
            .map_err(|(refused, _)| refused)?;
        let left = Duration::from_nanos(deadline.saturating_sub(clock::now()));
        answer.recv_timeout(left).map_err(|error| match error {
            RecvTimeoutError::TimedOut => CallError::TimedOut,
            RecvTimeoutError::Closed => CallError::Ended,
        })
    }

    /// Sends `message` after `delay`, before those that wait, and also where the mailbox is full.
    pub fn send_after<M: Send + 'static>(&self, delay: Duration, message: M) -> Later
    where
        A: Handler<M>,
    {
        self.body.send_after(delay, message)
    }

    fn send<M: Send + 'static>(
        &self,
        message: M,
        reply: Option<oneshot::Sender<A::Reply>>,
        deadline: Option<u64>,
    ) -> Result<(), (CallError, M)>
    where
        A: Handler<M>,
    {
        let mut contents = Some(Message { message, reply });
        loop {
            let pushed = self.body.push(self.priority, || {
                BoxedEnvelope::traced(contents.take().expect("it is pushed once"))
            });
            let Err(refused) = pushed else {
                return Ok(());
            };
            let waits = matches!(
                self.body.mailbox.overflow,
                Overflow::Block | Overflow::BlockFor(_)
            );
            // Nobody may wait for the reply to a message that is dropped.
            let drops = self.body.mailbox.overflow == Overflow::DropNewest
                && contents
                    .as_ref()
                    .is_some_and(|contents| contents.reply.is_none());
            let error = match refused {
                PushError::Closed => CallError::Ended,
                PushError::Full if drops => {
                    self.body.dropped.fetch_add(1, Ordering::Relaxed);
                    self.body.runtime.count(|counts| &counts.dropped_messages);
                    return Ok(());
                }
                PushError::Full if !waits || self.body.is_caller() => CallError::Full,
                PushError::Full if self.body.wait_for_capacity(self.priority, deadline) => continue,
                PushError::Full => {
                    exit::raise_if_due();
                    CallError::TimedOut
                }
            };
            let contents = contents.expect("it was not pushed");
            return Err((error, contents.message));
        }
    }
}

impl<A: Actor> Body<A> {
    pub(super) fn send_after<M: Send + 'static>(
        self: &Arc<Self>,
        delay: Duration,
        message: M,
    ) -> Later
    where
        A: Handler<M>,
    {
        let deadline = clock::deadline(delay);
        let envelope = BoxedEnvelope::traced(Message {
            message,
            reply: None,
        });
        let delayed = Arc::new(DelayedMessage {
            body: Arc::clone(self),
            envelope: Mutex::new(Some(envelope)),
        });
        let key = self.runtime.timers().at(deadline, Waker::from(delayed));
        Later {
            runtime: self.runtime.clone(),
            key,
        }
    }
}

/// What [`ActorRef::send_after`] will send.
#[derive(Debug)]
pub struct Later {
    runtime: Handle,
    key: TimerKey,
}

impl Later {
    /// Does not send it, unless it was sent already.
    pub fn cancel(self) {
        self.runtime.timers().cancel(self.key);
    }
}

/// It does not keep the actor from ending when nobody else reaches it.
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
