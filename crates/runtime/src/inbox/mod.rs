//! A mailbox for an actor with a stack, which takes the message that it wants and leaves the others: Erlang's selective receive.
//!
//! 1. Messages arrive through one channel. The receiver sorts all that have arrived by priority, each once, and numbers them; so a message is touched
//!    once for its arrival, and then only by who looks for one.
//! 2. A [`Mark`] is the number of the next that is to arrive. Who looks for one since then goes back from the newest to the mark: what was there before
//!    costs nothing, however much it is (Erlang's receive marker).
//! 3. A message takes a place when it is sent, and gives it back when it is received: those that were passed over count as waiting. The places of high
//!    priority are apart.

mod address;

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use thalweg_queue::{RecvError, RecvTimeoutError, TryRecvError, mpsc};

pub use self::address::Address;
use self::address::{Letter, Places};
use crate::behaviour::{Mailbox, Priority};
use crate::wait;

/// A mailbox with room for 1,024 messages, whose senders wait where it is full.
///
/// The one that reads it is the actor that has the [`Inbox`], or a thread. Messages are taken out by priority and age ([`Inbox::recv`]), or the first that is
/// wanted ([`Inbox::matching`]).
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

/// The same with room for another number of messages, or with another policy where it is full.
///
/// # Panics
/// If it has no room, or more than 2^31, or its policy takes older messages out.
pub fn inbox_with<M>(mailbox: Mailbox) -> (Address<M>, Inbox<M>) {
    let places = Arc::new(Places::new(mailbox));
    let (sender, arrivals) = mpsc::unbounded();
    let inbox = Inbox {
        arrivals,
        places: Arc::clone(&places),
        levels: Default::default(),
        next: 0,
        taken: 0,
    };
    (Address::new(sender, places), inbox)
}

/// Rule 1: the queues of an inbox, each by its priority's place here.
const LEVELS: [Priority; 3] = [Priority::Low, Priority::Normal, Priority::High];

/// How many messages are taken out by priority before one of each other priority comes first.
const IN_ORDER: u64 = 62;

/// The receiving end.
pub struct Inbox<M> {
    arrivals: mpsc::Receiver<Letter<M>>,
    places: Arc<Places>,
    /// What has arrived, as [`LEVELS`] says. The numbers of each grow.
    levels: [VecDeque<(u64, M)>; 3],
    next: u64,
    /// For the fairness between priorities.
    taken: u64,
}

/// A moment in an inbox's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark(u64);

/// The first message that is wanted, now or later.
#[must_use = "nothing is received yet"]
pub struct Matching<'a, M, F> {
    inbox: &'a mut Inbox<M>,
    /// Those before it were looked at, or are not to be.
    from: u64,
    wants: F,
}

impl<M> Inbox<M> {
    /// The next message: the oldest of the highest priority, but one in 64 is of each lower one, if any waits. Waits for it.
    ///
    /// # Errors
    /// There is none, and all addresses are gone, or the caller is an actor that cannot wait any more.
    pub fn recv(&mut self) -> Result<M, RecvError> {
        self.recv_until(None).map_err(|_| RecvError)
    }

    /// The same, for at most `timeout`.
    ///
    /// # Errors
    /// There was none; all addresses are gone.
    pub fn recv_timeout(&mut self, timeout: Duration) -> Result<M, RecvTimeoutError> {
        self.recv_until(Instant::now().checked_add(timeout))
    }

    /// The next message that has arrived.
    ///
    /// # Errors
    /// There is none; all addresses are gone.
    pub fn try_recv(&mut self) -> Result<M, TryRecvError> {
        let is_closed = self.fetch();
        match self.take_next() {
            Some(message) => Ok(message),
            None if is_closed => Err(TryRecvError::Closed),
            None => Err(TryRecvError::Empty),
        }
    }

    /// As [`recv`](Self::recv), for a task. Nothing is lost where it is dropped.
    ///
    /// # Errors
    /// There is none, and all addresses are gone.
    pub async fn recv_async(&mut self) -> Result<M, RecvError> {
        loop {
            self.fetch();
            if let Some(message) = self.take_next() {
                return Ok(message);
            }
            let letter = self.arrivals.recv_async().await?;
            self.sort_in(letter);
        }
    }

    /// The first message that `wants` says `true` of, by priority and age; the others stay. Each is shown to it once.
    pub fn matching<F: FnMut(&M) -> bool>(&mut self, wants: F) -> Matching<'_, M, F> {
        Matching {
            inbox: self,
            from: 0,
            wants,
        }
    }

    /// Now: what arrives from here on is [`since`](Matching::since) this mark. What has arrived is sorted in; each message once.
    pub fn mark(&mut self) -> Mark {
        self.fetch();
        Mark(self.next)
    }

    /// Messages that have arrived and wait.
    pub fn len(&mut self) -> usize {
        self.fetch();
        self.levels.iter().map(VecDeque::len).sum()
    }

    /// Whether none has arrived.
    pub fn is_empty(&mut self) -> bool {
        self.len() == 0
    }

    /// Messages that were dropped since there was no room, by [`Overflow::DropNewest`](thalweg_queue::Overflow::DropNewest).
    pub fn dropped(&self) -> u64 {
        self.places.dropped.load(Ordering::Relaxed)
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

    /// Until one more has arrived.
    fn wait(&mut self, deadline: Option<Instant>) -> Result<(), RecvTimeoutError> {
        let letter = match deadline {
            Some(deadline) => self.arrivals.recv_deadline(deadline)?,
            None => match self.arrivals.recv() {
                Ok(letter) => letter,
                Err(RecvError) => return Err(RecvTimeoutError::Closed),
            },
        };
        self.sort_in(letter);
        Ok(())
    }

    /// Sorts in what has arrived. `true`: no more will.
    fn fetch(&mut self) -> bool {
        self.places.read_by(wait::current());
        loop {
            match self.arrivals.try_recv() {
                Ok(letter) => self.sort_in(letter),
                Err(error) => return error == TryRecvError::Closed,
            }
        }
    }

    fn sort_in(&mut self, letter: Letter<M>) {
        self.levels[letter.priority as usize].push_back((self.next, letter.message));
        self.next += 1;
    }

    fn take_next(&mut self) -> Option<M> {
        let levels = match self.taken % (IN_ORDER + 2) {
            IN_ORDER => [1, 0, 2],
            turn if turn > IN_ORDER => [0, 1, 2],
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
        self.places.give_back(LEVELS[level]);
        Some(message)
    }

    /// The first one from `from` on that is wanted.
    fn find(&mut self, from: u64, wants: &mut impl FnMut(&M) -> bool) -> Option<M> {
        for level in (0..self.levels.len()).rev() {
            let letters = &self.levels[level];
            // Rule 2.
            let newer = letters.iter().rev().take_while(|(n, _)| *n >= from);
            let first = letters.len() - newer.count();
            let found = (first..letters.len()).find(|index| wants(&letters[*index].1));
            if let Some(index) = found {
                return self.take(level, index);
            }
        }
        None
    }
}

impl<M, F: FnMut(&M) -> bool> Matching<'_, M, F> {
    /// Only what has arrived since. What came before costs nothing.
    pub fn since(mut self, mark: Mark) -> Self {
        self.from = mark.0;
        self
    }

    /// Waits for it.
    ///
    /// # Errors
    /// None of those that came is wanted, and all addresses are gone, or the caller is an actor that cannot wait any more.
    pub fn recv(self) -> Result<M, RecvError> {
        self.recv_until(None).map_err(|_| RecvError)
    }

    /// The same, for at most `timeout`.
    ///
    /// # Errors
    /// None came that is wanted; all addresses are gone.
    pub fn recv_timeout(self, timeout: Duration) -> Result<M, RecvTimeoutError> {
        self.recv_until(Instant::now().checked_add(timeout))
    }

    /// If it has arrived.
    ///
    /// # Errors
    /// It has not; all addresses are gone.
    pub fn try_recv(mut self) -> Result<M, TryRecvError> {
        let is_closed = self.inbox.fetch();
        match self.look() {
            Some(message) => Ok(message),
            None if is_closed => Err(TryRecvError::Closed),
            None => Err(TryRecvError::Empty),
        }
    }

    /// As [`recv`](Self::recv), for a task. Nothing is lost where it is dropped.
    ///
    /// # Errors
    /// None of those that came is wanted, and all addresses are gone.
    pub async fn recv_async(mut self) -> Result<M, RecvError> {
        loop {
            self.inbox.fetch();
            if let Some(message) = self.look() {
                return Ok(message);
            }
            let letter = self.inbox.arrivals.recv_async().await?;
            self.inbox.sort_in(letter);
        }
    }

    fn recv_until(mut self, deadline: Option<Instant>) -> Result<M, RecvTimeoutError> {
        loop {
            self.inbox.fetch();
            if let Some(message) = self.look() {
                return Ok(message);
            }
            self.inbox.wait(deadline)?;
        }
    }

    /// At those that it has not seen.
    fn look(&mut self) -> Option<M> {
        let found = self.inbox.find(self.from, &mut self.wants);
        self.from = self.from.max(self.inbox.next);
        found
    }
}

impl<M> Drop for Inbox<M> {
    fn drop(&mut self) {
        self.places.close();
    }
}

impl<M> fmt::Debug for Inbox<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox")
            .field("passed_over", &self.levels.each_ref().map(VecDeque::len))
            .finish_non_exhaustive()
    }
}
