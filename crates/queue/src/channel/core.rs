//! What all handles of a channel share, whatever its flavour.

use super::{Options, Stats};
use crate::cache_padded::CachePadded;
use crate::spin::SharedSpin;
use crate::sync::{AtomicUsize, Figure, Ordering};
use crate::waiters::Waiters;

/// See the module.
#[derive(Debug)]
pub struct Core {
    /// Receivers wait here; senders read it after each value.
    pub(crate) items: CachePadded<Waiters>,
    /// Senders wait here; receivers read it after each value.
    pub(crate) room: CachePadded<Waiters>,
    pub(crate) options: Options,
    pub(crate) sending: SharedSpin,
    pub(crate) receiving: SharedSpin,
    senders: AtomicUsize,
    receivers: AtomicUsize,
    high_water: Figure,
    pub(crate) dropped_newest: Figure,
    pub(crate) dropped_oldest: Figure,
    pub(crate) conflated: Figure,
}

impl Core {
    /// With one sender and one receiver.
    pub(crate) fn new(options: Options) -> Self {
        Self {
            items: CachePadded::new(Waiters::new()),
            room: CachePadded::new(Waiters::new()),
            options,
            sending: SharedSpin::new(),
            receiving: SharedSpin::new(),
            senders: AtomicUsize::new(1),
            receivers: AtomicUsize::new(1),
            high_water: Figure::new(0),
            dropped_newest: Figure::new(0),
            dropped_oldest: Figure::new(0),
            conflated: Figure::new(0),
        }
    }

    #[inline(always)]
    pub(crate) fn is_closed(&self) -> bool {
        self.items.is_closed()
    }

    /// Wakes everybody on both sides.
    pub(crate) fn close(&self) {
        self.items.close();
        self.room.close();
    }

    pub(crate) fn add_sender(&self) {
        self.senders.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn add_receiver(&self) {
        self.receivers.fetch_add(1, Ordering::Relaxed);
    }

    /// `true`: it was the last one.
    pub(crate) fn remove_sender(&self) -> bool {
        self.senders.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// `true`: it was the last one.
    pub(crate) fn remove_receiver(&self) -> bool {
        self.receivers.fetch_sub(1, Ordering::AcqRel) == 1
    }

    pub(crate) fn saw(&self, depth: usize) {
        let depth = depth as u64;
        if depth > self.high_water.load(Ordering::Relaxed) {
            self.high_water.fetch_max(depth, Ordering::Relaxed);
        }
    }

    pub(crate) fn stats(&self, depth: usize) -> Stats {
        self.saw(depth);
        let receivers = self.items.slept();
        let senders = self.room.slept();
        Stats {
            depth,
            high_water: self.high_water.load(Ordering::Relaxed) as usize,
            dropped_newest: self.dropped_newest.load(Ordering::Relaxed),
            dropped_oldest: self.dropped_oldest.load(Ordering::Relaxed),
            conflated: self.conflated.load(Ordering::Relaxed),
            receiver_wakes: receivers.wakes,
            receiver_parks: receivers.parks,
            receiver_parked_ns: receivers.parked_ns,
            sender_wakes: senders.wakes,
            sender_parks: senders.parks,
            sender_parked_ns: senders.parked_ns,
        }
    }
}
