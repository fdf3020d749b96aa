//! A mailbox for an actor with a stack, with selective receive as in Erlang: the actor takes the
//! message that it wants and leaves the others.
//!
//! 1. Messages arrive through one channel. The receiver moves each of them once into the queue of
//!    its priority and numbers it. After that, only a search touches the message again.
//! 2. A [`Mark`] is the number of the next message to arrive. A search since a mark goes back from
//!    the newest message to the mark. Older messages cost nothing, however many there are (Erlang's
//!    receive marker).
//! 3. A message takes one unit of capacity when it is sent, and releases it when it is received. A
//!    message that a search skipped still counts. High-priority messages have a capacity of their
//!    own.

mod address;

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use thalweg_queue::{RecvError, RecvTimeoutError, TryRecvError, mpsc};

pub use self::address::Address;
use self::address::{InboxCapacity, QueuedMessage};
use crate::behaviour::Priority;
use crate::mailbox::Mailbox;
use crate::wait;

/// Creates an inbox with a capacity of 1,024 messages. Senders wait while it is full.
///
/// The owner of the [`Inbox`], an actor or a thread, reads it. It receives messages by priority and
/// age ([`Inbox::recv`]), or the first one that matches ([`Inbox::matching`]).
///
/// ```
/// use thalweg_runtime::{run, spawn};
/// use thalweg_runtime::inbox::{Address, inbox};
///
/// enum Message {
///     Tick(u32),
///     Square(u64, Address<Message>),
///     Squared(u64),
/// }
///
/// run(|| {
///     let (squares, mut asked) = inbox();
///     spawn(move || {
///         while let Ok(Message::Square(n, back)) = asked.recv() {
///             let _ = back.send(Message::Squared(n * n));
///         }
///     });
///
///     let (mine, mut inbox) = inbox();
///     for n in 0..100 {
///         mine.send(Message::Tick(n)).expect("there is room");
///     }
///     // The reply comes after this, so the ticks before are not looked at.
///     let mark = inbox.mark();
///     let _ = squares.send(Message::Square(12, mine.clone()));
///     let reply = inbox
///         .matching(|message| matches!(message, Message::Squared(_)))
///         .since(mark)
///         .recv();
///     assert!(matches!(reply, Ok(Message::Squared(144))));
///     assert!(matches!(inbox.recv(), Ok(Message::Tick(0))));
/// });
/// ```
pub fn inbox<M>() -> (Address<M>, Inbox<M>) {
    inbox_with(Mailbox::default())
}

/// As [`inbox`], with this capacity and overflow policy.
///
/// # Panics
/// If the capacity is 0 or more than 2^31, or the policy removes older messages.
pub fn inbox_with<M>(mailbox: Mailbox) -> (Address<M>, Inbox<M>) {
    let capacity = Arc::new(InboxCapacity::new(mailbox));
    let (sender, arrivals) = mpsc::unbounded();
    let inbox = Inbox {
        arrivals,
        capacity: Arc::clone(&capacity),
        levels: Default::default(),
        next: 0,
        taken: 0,
    };
    (Address::new(sender, capacity), inbox)
}

/// Rule 1: the priority of each queue, by index.
const LEVELS: [Priority; 3] = [Priority::Low, Priority::Normal, Priority::High];

/// Messages that are received by priority before one of each lower priority comes first.
const HIGHEST_FIRST: u64 = 62;

/// The receiving end.
pub struct Inbox<M> {
    arrivals: mpsc::Receiver<QueuedMessage<M>>,
    capacity: Arc<InboxCapacity>,
    /// The messages that have arrived, by index of [`LEVELS`]. The numbers in each queue ascend.
    levels: [VecDeque<(u64, M)>; 3],
    next: u64,
    /// The number of messages received, for fairness between priorities.
    taken: u64,
}

/// A position in the order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark(u64);

/// A search for the first message that matches, among those that have arrived and those to come.
#[must_use = "a search receives nothing until `recv` is called"]
pub struct Matching<'a, M, F> {
    inbox: &'a mut Inbox<M>,
    /// Messages before this number were checked, or are skipped.
    from: u64,
    predicate: F,
}

impl<M> Inbox<M> {
    /// Waits for the next message: the oldest of the highest priority. One message in 64 is of each
    /// lower priority, if any waits.
    ///
    /// # Errors
    /// There is no message, and all addresses were dropped or the calling actor is about to end.
    pub fn recv(&mut self) -> Result<M, RecvError> {
        self.recv_until(None).map_err(|_| RecvError)
    }

    /// As [`recv`](Self::recv), for at most `timeout`.
    ///
    /// # Errors
    /// There was no message in time, or all addresses were dropped.
    pub fn recv_timeout(&mut self, timeout: Duration) -> Result<M, RecvTimeoutError> {
        self.recv_until(Instant::now().checked_add(timeout))
    }

    /// The next message that has arrived.
    ///
    /// # Errors
    /// There is no message, or all addresses were dropped.
    pub fn try_recv(&mut self) -> Result<M, TryRecvError> {
        let is_closed = self.fetch();
        match self.take_next() {
            Some(message) => Ok(message),
            None if is_closed => Err(TryRecvError::Closed),
            None => Err(TryRecvError::Empty),
        }
    }

    /// As [`recv`](Self::recv), for a task. Dropping the future loses no message.
    ///
    /// # Errors
    /// There is no message, and all addresses were dropped.
    pub async fn recv_async(&mut self) -> Result<M, RecvError> {
        loop {
            self.fetch();
            if let Some(message) = self.take_next() {
                return Ok(message);
            }
            let queued = self.arrivals.recv_async().await?;
            self.enqueue(queued);
        }
    }

    /// Selects the first message for which `predicate` returns `true`, by priority and age. The
    /// others remain. Each message is checked once.
    pub fn matching<F: FnMut(&M) -> bool>(&mut self, predicate: F) -> Matching<'_, M, F> {
        Matching {
            inbox: self,
            from: 0,
            predicate,
        }
    }

    /// A mark at this moment: [`since`](Matching::since) it, only later messages are considered. It
    /// moves the messages that have arrived into their queues, once each.
    pub fn mark(&mut self) -> Mark {
        self.fetch();
        Mark(self.next)
    }

    /// The number of messages that have arrived and wait.
    pub fn len(&mut self) -> usize {
        self.fetch();
        self.levels.iter().map(VecDeque::len).sum()
    }

    /// Whether no message has arrived.
    pub fn is_empty(&mut self) -> bool {
        self.len() == 0
    }

    /// The number of messages that were dropped because the inbox was full
    /// ([`Overflow::DropNewest`](thalweg_queue::Overflow::DropNewest)).
    pub fn dropped(&self) -> u64 {
        self.capacity.dropped.load(Ordering::Relaxed)
    }

    fn recv_until(&mut self, deadline: Option<Instant>) -> Result<M, RecvTimeoutError> {
        loop {
            self.fetch();
            if let Some(message) = self.take_next() {
                return Ok(message);
            }
            self.wait(deadline)?;
        }
    }

    /// Waits until a further message has arrived.
    fn wait(&mut self, deadline: Option<Instant>) -> Result<(), RecvTimeoutError> {
        let queued = match deadline {
            Some(deadline) => self.arrivals.recv_deadline(deadline)?,
            None => match self.arrivals.recv() {
                Ok(queued) => queued,
                Err(RecvError) => return Err(RecvTimeoutError::Closed),
            },
        };
        self.enqueue(queued);
        Ok(())
    }

    /// Moves the messages that have arrived into their queues. `true`: no more will arrive.
    fn fetch(&mut self) -> bool {
        self.capacity.set_reader(wait::current());
        loop {
            match self.arrivals.try_recv() {
                Ok(queued) => self.enqueue(queued),
                Err(error) => return error == TryRecvError::Closed,
            }
        }
    }

    fn enqueue(&mut self, queued: QueuedMessage<M>) {
        self.levels[queued.priority as usize].push_back((self.next, queued.message));
        self.next += 1;
    }

    fn take_next(&mut self) -> Option<M> {
        let levels = match self.taken % (HIGHEST_FIRST + 2) {
            HIGHEST_FIRST => [1, 0, 2],
            turn if turn > HIGHEST_FIRST => [0, 1, 2],
            _ => [2, 1, 0],
        };
        let level = levels
            .into_iter()
            .find(|level| !self.levels[*level].is_empty())?;
        self.taken += 1;
        self.take(level, 0)
    }

    fn take(&mut self, level: usize, index: usize) -> Option<M> {
        let (_, message) = self.levels[level].remove(index)?;
        self.capacity.release(LEVELS[level]);
        Some(message)
    }

    /// The first matching message whose number is at least `from`.
    fn find(&mut self, from: u64, predicate: &mut impl FnMut(&M) -> bool) -> Option<M> {
        for level in (0..self.levels.len()).rev() {
            let messages = &self.levels[level];
            // Rule 2.
            let newer = messages.iter().rev().take_while(|(n, _)| *n >= from);
            let first = messages.len() - newer.count();
            let found = (first..messages.len()).find(|index| predicate(&messages[*index].1));
            if let Some(index) = found {
                return self.take(level, index);
            }
        }
        None
    }
}

impl<M, F: FnMut(&M) -> bool> Matching<'_, M, F> {
    /// Considers only messages that arrived since `mark`. Older ones cost nothing.
    pub fn since(mut self, mark: Mark) -> Self {
        self.from = mark.0;
        self
    }

    /// Waits for a matching message.
    ///
    /// # Errors
    /// No message matched, and all addresses were dropped or the calling actor is about to end.
    pub fn recv(self) -> Result<M, RecvError> {
        self.recv_until(None).map_err(|_| RecvError)
    }

    /// As [`recv`](Self::recv), for at most `timeout`.
    ///
    /// # Errors
    /// No message matched in time, or all addresses were dropped.
    pub fn recv_timeout(self, timeout: Duration) -> Result<M, RecvTimeoutError> {
        self.recv_until(Instant::now().checked_add(timeout))
    }

    /// The first matching message that has arrived.
    ///
    /// # Errors
    /// No message has matched, or all addresses were dropped.
    pub fn try_recv(mut self) -> Result<M, TryRecvError> {
        let is_closed = self.inbox.fetch();
        match self.scan() {
            Some(message) => Ok(message),
            None if is_closed => Err(TryRecvError::Closed),
            None => Err(TryRecvError::Empty),
        }
    }

    /// As [`recv`](Self::recv), for a task. Dropping the future loses no message.
    ///
    /// # Errors
    /// No message matched, and all addresses were dropped.
    pub async fn recv_async(mut self) -> Result<M, RecvError> {
        loop {
            self.inbox.fetch();
            if let Some(message) = self.scan() {
                return Ok(message);
            }
            let queued = self.inbox.arrivals.recv_async().await?;
            self.inbox.enqueue(queued);
        }
    }

    fn recv_until(mut self, deadline: Option<Instant>) -> Result<M, RecvTimeoutError> {
        loop {
            self.inbox.fetch();
            if let Some(message) = self.scan() {
                return Ok(message);
            }
            self.inbox.wait(deadline)?;
        }
    }

    /// Checks the messages that were not checked yet.
    fn scan(&mut self) -> Option<M> {
        let found = self.inbox.find(self.from, &mut self.predicate);
        self.from = self.from.max(self.inbox.next);
        found
    }
}

impl<M> Drop for Inbox<M> {
    fn drop(&mut self) {
        self.capacity.close();
    }
}

impl<M> fmt::Debug for Inbox<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox")
            .field("passed_over", &self.levels.each_ref().map(VecDeque::len))
            .finish_non_exhaustive()
    }
}
