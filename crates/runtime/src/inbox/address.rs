//! How others reach an inbox, and the places that their messages take in it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use thalweg_queue::{Overflow, SendError, mpsc};

use crate::behaviour::{Mailbox, Priority};
use crate::id::ActorId;
use crate::sync::{ClosableWaitError, Semaphore};
use crate::wait;

/// Sends to an [`Inbox`](super::Inbox). A clone sends to the same.
pub struct Address<M> {
    sender: mpsc::Sender<Letter<M>>,
    places: Arc<Places>,
    priority: Priority,
}

pub(super) struct Letter<M> {
    pub(super) message: M,
    pub(super) priority: Priority,
}

/// Rule 3.
pub(super) struct Places {
    high: Semaphore,
    others: Semaphore,
    mailbox: Mailbox,
    pub(super) dropped: AtomicU64,
    /// The number of the actor that reads, 0: none does: who would wait for itself is told.
    reader: AtomicU64,
}

/// There was no place.
enum Refused {
    Closed,
    Full,
    TimedOut,
    Dropped,
}

impl Places {
    pub(super) fn new(mailbox: Mailbox) -> Self {
        mailbox.check();
        let semaphore = || Semaphore::new(mailbox.capacity as usize);
        Self {
            high: semaphore(),
            others: semaphore(),
            mailbox,
            dropped: AtomicU64::new(0),
            reader: AtomicU64::new(0),
        }
    }

    fn of(&self, priority: Priority) -> &Semaphore {
        match priority {
            Priority::High => &self.high,
            Priority::Normal | Priority::Low => &self.others,
        }
    }

    pub(super) fn read_by(&self, actor: Option<ActorId>) {
        let number = actor.map_or(0, ActorId::number);
        self.reader.store(number, Ordering::Relaxed);
    }

    pub(super) fn give_back(&self, priority: Priority) {
        self.of(priority).add_permits(1);
    }

    pub(super) fn close(&self) {
        self.high.close();
        self.others.close();
    }

    /// By the mailbox's policy, or for `timeout`.
    fn take(&self, priority: Priority, timeout: Option<Duration>) -> Result<(), Refused> {
        let places = self.of(priority);
        if let Ok(place) = places.try_acquire() {
            place.forget();
            return Ok(());
        }
        if places.is_closed() {
            return Err(Refused::Closed);
        }
        let is_reader = wait::current()
            .is_some_and(|actor| actor.number() == self.reader.load(Ordering::Relaxed));
        let place = match (timeout, self.mailbox.overflow) {
            (None, Overflow::DropNewest) => {
                self.dropped.fetch_add(1, Ordering::Relaxed);
                return Err(Refused::Dropped);
            }
            _ if is_reader => return Err(Refused::Full),
            (Some(timeout), _) | (None, Overflow::BlockFor(timeout)) => {
                places.acquire_timeout(1, timeout)
            }
            (None, Overflow::Block) => places.acquire(),
            (None, _) => return Err(Refused::Full),
        };
        match place {
            Ok(place) => {
                place.forget();
                Ok(())
            }
            Err(ClosableWaitError::Closed) => Err(Refused::Closed),
            Err(ClosableWaitError::TimedOut | ClosableWaitError::Stopping) => {
                Err(Refused::TimedOut)
            }
        }
    }
}

impl<M> Address<M> {
    pub(super) fn new(sender: mpsc::Sender<Letter<M>>, places: Arc<Places>) -> Self {
        Self {
            sender,
            places,
            priority: Priority::Normal,
        }
    }

    /// One more, whose messages have this priority.
    #[must_use]
    pub fn with_priority(&self, priority: Priority) -> Self {
        Self {
            priority,
            ..self.clone()
        }
    }

    /// Sends a message, by the inbox's policy where that is full.
    ///
    /// # Errors
    /// The message, if the inbox is gone, there is no room and the policy is not to wait, or the actor would wait for itself.
    pub fn send(&self, message: M) -> Result<(), SendError<M>> {
        self.send_within(message, None)
    }

    /// The same, but where it is full it waits for at most `timeout`, whatever the policy.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn send_timeout(&self, message: M, timeout: Duration) -> Result<(), SendError<M>> {
        self.send_within(message, Some(timeout))
    }

    fn send_within(&self, message: M, timeout: Option<Duration>) -> Result<(), SendError<M>> {
        match self.places.take(self.priority, timeout) {
            Ok(()) => {}
            Err(Refused::Dropped) => return Ok(()),
            Err(Refused::Closed) => return Err(SendError::Closed(message)),
            Err(Refused::Full) => return Err(SendError::Full(message)),
            Err(Refused::TimedOut) => return Err(SendError::TimedOut(message)),
        }
        let letter = Letter {
            message,
            priority: self.priority,
        };
        // It may have gone since.
        self.sender
            .send(letter)
            .map_err(|letter| SendError::Closed(letter.into_inner().message))
    }

    /// Whether the inbox is there. It may go at any time.
    pub fn is_alive(&self) -> bool {
        !self.places.others.is_closed()
    }
}

impl<M> Clone for Address<M> {
    fn clone(&self) -> Self {
        Self {
            sender: self.sender.clone(),
            places: Arc::clone(&self.places),
            priority: self.priority,
        }
    }
}

impl<M> fmt::Debug for Address<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Address")
            .field("alive", &self.is_alive())
            .field("priority", &self.priority)
            .finish_non_exhaustive()
    }
}
