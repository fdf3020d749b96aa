//! `vyukov`: Dmitry Vyukov's bounded queue with a stamp in every slot and a shared tail.
//!
//! ```text
//! slot i, lap n:   stamp = n * capacity + i        free, for the sender whose ticket that is
//!                  stamp = n * capacity + i + 1    full, for the receiver with that ticket
//! ```
//!
//! A sender takes its ticket by a compare-and-swap on the tail after it has seen its slot free, so
//! a full queue refuses it. A receiver does the same at the head.

use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::channel::{Channel, ManyReceivers, ManySenders, Waiting};
use crate::patience;

/// `vyukov`.
#[derive(Debug)]
pub struct Vyukov;

/// Alone on its cache line, and on the line that is prefetched with it.
#[repr(align(128))]
#[derive(Debug)]
struct Alone(AtomicUsize);

#[derive(Debug)]
struct Slot {
    stamp: AtomicUsize,
    message: UnsafeCell<u64>,
}

#[derive(Debug)]
struct Queue {
    tail: Alone,
    head: Alone,
    mask: usize,
    slots: Box<[Slot]>,
}

// SAFETY: only the side whose ticket is in the slot's stamp touches a message, and the stamp passes
// it to the other side.
unsafe impl Sync for Queue {}

impl Queue {
    fn new(capacity: usize) -> Self {
        assert!(
            capacity.is_power_of_two(),
            "the queue's capacity is a power of two"
        );
        let slot = |stamp| Slot {
            stamp: AtomicUsize::new(stamp),
            message: UnsafeCell::new(0),
        };
        Self {
            tail: Alone(AtomicUsize::new(0)),
            head: Alone(AtomicUsize::new(0)),
            mask: capacity - 1,
            slots: (0..capacity).map(slot).collect(),
        }
    }

    /// The ticket of the next slot at `end` whose stamp is `ahead` of its ticket; `None` if that
    /// slot is not ready.
    #[inline]
    fn ticket(&self, end: &AtomicUsize, ahead: usize) -> Option<usize> {
        let mut ticket = end.load(Ordering::Relaxed);
        loop {
            let stamp = self.slots[ticket & self.mask].stamp.load(Ordering::Acquire);
            let distance = stamp.wrapping_sub(ticket.wrapping_add(ahead)) as isize;
            if distance < 0 {
                return None;
            }
            if distance == 0 {
                let next = ticket.wrapping_add(1);
                match end.compare_exchange_weak(ticket, next, Ordering::Relaxed, Ordering::Relaxed)
                {
                    Ok(_) => return Some(ticket),
                    Err(now) => ticket = now,
                }
            } else {
                ticket = end.load(Ordering::Relaxed);
            }
        }
    }

    #[inline]
    fn push(&self, message: u64) -> bool {
        let Some(ticket) = self.ticket(&self.tail.0, 0) else {
            return false;
        };
        let slot = &self.slots[ticket & self.mask];
        // SAFETY: the stamp showed the slot free for this ticket, which is ours alone.
        unsafe { *slot.message.get() = message };
        slot.stamp.store(ticket.wrapping_add(1), Ordering::Release);
        true
    }

    #[inline]
    fn pop(&self) -> Option<u64> {
        let ticket = self.ticket(&self.head.0, 1)?;
        let slot = &self.slots[ticket & self.mask];
        // SAFETY: the stamp showed the slot full for this ticket, which is ours alone.
        let message = unsafe { *slot.message.get() };
        let next_lap = ticket.wrapping_add(self.mask + 1);
        slot.stamp.store(next_lap, Ordering::Release);
        Some(message)
    }
}

/// A side that pushes.
#[derive(Clone, Debug)]
pub struct Sender(Arc<Queue>);

/// A side that pops.
#[derive(Clone, Debug)]
pub struct Receiver(Arc<Queue>);

impl Channel for Vyukov {
    const NAME: &'static str = "vyukov";
    const WAITING: Waiting = Waiting::Looks;
    type Sender = Sender;
    type Receiver = Receiver;

    fn bounded(capacity: usize) -> (Self::Sender, Self::Receiver) {
        let queue = Arc::new(Queue::new(capacity));
        (Sender(Arc::clone(&queue)), Receiver(queue))
    }

    #[inline]
    fn send(sender: &mut Self::Sender, message: u64) {
        patience::until(|| sender.0.push(message).then_some(()));
    }

    #[inline]
    fn receive(receiver: &mut Self::Receiver) -> u64 {
        patience::until(|| receiver.0.pop())
    }

    #[inline]
    fn try_send(sender: &mut Self::Sender, message: u64) -> bool {
        sender.0.push(message)
    }

    #[inline]
    fn try_receive(receiver: &mut Self::Receiver) -> Option<u64> {
        receiver.0.pop()
    }
}

impl ManySenders for Vyukov {}
impl ManyReceivers for Vyukov {}
