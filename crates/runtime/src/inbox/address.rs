//! Addresses of an inbox, and its capacity.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use thalweg_queue::{Overflow, SendError, mpsc};

use crate::behaviour::Priority;
use crate::id::ActorId;
use crate::mailbox::Mailbox;
use crate::sync::{ClosableWaitError, Semaphore};
use crate::wait;

/// Sends to an [`Inbox`](super::Inbox). Clones send to the same inbox.
pub struct Address<M> {
    sender: mpsc::Sender<QueuedMessage<M>>,
    capacity: Arc<InboxCapacity>,
    priority: Priority,
}

pub(super) struct QueuedMessage<M> {
    pub(super) message: M,
    pub(super) priority: Priority,
}

/// Rule 3.
pub(super) struct InboxCapacity {
    high: Semaphore,
    others: Semaphore,
    mailbox: Mailbox,
    pub(super) dropped: AtomicU64,
    /// The number of the reading actor, or 0, so that an actor never waits for itself.
    reader: AtomicU64,
}

/// Why no capacity was reserved.
enum ReserveError {
    Closed,
    Full,
    TimedOut,
    Dropped,
}

impl InboxCapacity {
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

    pub(super) fn set_reader(&self, actor: Option<ActorId>) {
        let number = actor.map_or(0, ActorId::number);
        self.reader.store(number, Ordering::Relaxed);
    }

    pub(super) fn release(&self, priority: Priority) {
        self.of(priority).add_permits(1);
    }

    pub(super) fn close(&self) {
        self.high.close();
        self.others.close();
    }

    /// Reserves capacity by the overflow policy, or within `timeout`.
    fn reserve(&self, priority: Priority, timeout: Option<Duration>) -> Result<(), ReserveError> {
        let capacity = self.of(priority);
        if let Ok(permit) = capacity.try_acquire() {
            permit.forget();
            return Ok(());
        }
        if capacity.is_closed() {
            return Err(ReserveError::Closed);
        }
        let is_reader = wait::current()
            .is_some_and(|actor| actor.number() == self.reader.load(Ordering::Relaxed));
        let permit = match (timeout, self.mailbox.overflow) {
            (None, Overflow::DropNewest) => {
                self.dropped.fetch_add(1, Ordering::Relaxed);
                return Err(ReserveError::Dropped);
            }
            _ if is_reader => return Err(ReserveError::Full),
            (Some(timeout), _) | (None, Overflow::BlockFor(timeout)) => {
                capacity.acquire_timeout(1, timeout)
            }
            (None, Overflow::Block) => capacity.acquire(),
            (None, _) => return Err(ReserveError::Full),
        };
        match permit {
            Ok(permit) => {
                permit.forget();
                Ok(())
            }
            Err(ClosableWaitError::Closed) => Err(ReserveError::Closed),
            Err(ClosableWaitError::TimedOut | ClosableWaitError::Stopping) => {
                Err(ReserveError::TimedOut)
            }
        }
    }
}

impl<M> Address<M> {
    pub(super) fn new(
        sender: mpsc::Sender<QueuedMessage<M>>,
        capacity: Arc<InboxCapacity>,
    ) -> Self {
        Self {
            sender,
            capacity,
            priority: Priority::Normal,
        }
    }

    /// A second address, whose messages have this priority.
    #[must_use]
    pub fn with_priority(&self, priority: Priority) -> Self {
        Self {
            priority,
            ..self.clone()
        }
    }

    /// Sends a message. If the inbox is full, its overflow policy applies.
    ///
    /// # Errors
    /// The message, if the inbox was dropped, if it is full and its policy does not wait, or if the
    /// actor would wait for itself.
    pub fn send(&self, message: M) -> Result<(), SendError<M>> {
        self.send_within(message, None)
    }

    /// As [`send`](Self::send), but waits for at most `timeout` if the inbox is full, whatever the
    /// policy.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn send_timeout(&self, message: M, timeout: Duration) -> Result<(), SendError<M>> {
        self.send_within(message, Some(timeout))
    }

    fn send_within(&self, message: M, timeout: Option<Duration>) -> Result<(), SendError<M>> {
        match self.capacity.reserve(self.priority, timeout) {
            Ok(()) => {}
            Err(ReserveError::Dropped) => return Ok(()),
            Err(ReserveError::Closed) => return Err(SendError::Closed(message)),
            Err(ReserveError::Full) => return Err(SendError::Full(message)),
            Err(ReserveError::TimedOut) => return Err(SendError::TimedOut(message)),
        }
        let queued = QueuedMessage {
            message,
            priority: self.priority,
        };
        // The inbox may have been dropped since.
        self.sender
            .send(queued)
            .map_err(|queued| SendError::Closed(queued.into_inner().message))
    }

    /// Whether the inbox exists. It may be dropped at any time.
    pub fn is_alive(&self) -> bool {
        !self.capacity.others.is_closed()
    }
}

impl<M> Clone for Address<M> {
    fn clone(&self) -> Self {
        Self {
            sender: self.sender.clone(),
            capacity: Arc::clone(&self.capacity),
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
