//! The state that all handles of a channel share, in every flavour.

use super::{Options, Stats};
use crate::cache_padded::CachePadded;
use crate::spin::SharedSpin;
use crate::sync::{AtomicUsize, Ordering, StdAtomicU64};
use crate::wait_list::WaitList;

/// The shared state. See the module.
#[derive(Debug)]
pub struct Core {
    /// Receivers that wait for values. Senders read it after each value.
    pub(crate) recv_waiters: CachePadded<WaitList>,
    /// Senders that wait for capacity. Receivers read it after each value.
    pub(crate) send_waiters: CachePadded<WaitList>,
    pub(crate) options: Options,
    pub(crate) send_spin: SharedSpin,
    pub(crate) recv_spin: SharedSpin,
    /// How many [`SharedRef`](super::SharedRef)s refer to the state that contains this core.
    pub(super) references: AtomicUsize,
    sender_count: AtomicUsize,
    receiver_count: AtomicUsize,
    high_water: StdAtomicU64,
    pub(crate) dropped_newest: StdAtomicU64,
    pub(crate) dropped_oldest: StdAtomicU64,
    pub(crate) conflated: StdAtomicU64,
}

/// The two wait lists, and one more part of 128 bytes for everything else.
#[cfg(all(target_pointer_width = "64", not(loom)))]
const _: () = assert!(size_of::<Core>() == 384);

impl Core {
    /// Creates the state for one sender and one receiver.
    pub(crate) fn new(options: Options) -> Self {
        Self {
            recv_waiters: CachePadded::new(WaitList::new()),
            send_waiters: CachePadded::new(WaitList::new()),
            options,
            send_spin: SharedSpin::new(),
            recv_spin: SharedSpin::new(),
            references: AtomicUsize::new(1),
            sender_count: AtomicUsize::new(1),
            receiver_count: AtomicUsize::new(1),
            high_water: StdAtomicU64::new(0),
            dropped_newest: StdAtomicU64::new(0),
            dropped_oldest: StdAtomicU64::new(0),
            conflated: StdAtomicU64::new(0),
        }
    }

    #[inline(always)]
    pub(crate) fn is_closed(&self) -> bool {
        self.recv_waiters.is_closed()
    }

    /// Wakes every waiter on both sides.
    pub(crate) fn close(&self) {
        self.recv_waiters.close();
        self.send_waiters.close();
    }

    pub(crate) fn add_sender(&self) {
        self.sender_count.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn add_receiver(&self) {
        self.receiver_count.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns whether this was the last sender.
    pub(crate) fn remove_sender(&self) -> bool {
        self.sender_count.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Returns whether this was the last receiver.
    pub(crate) fn remove_receiver(&self) -> bool {
        self.receiver_count.fetch_sub(1, Ordering::AcqRel) == 1
    }

    pub(crate) fn record_depth(&self, depth: usize) {
        let depth = depth as u64;
        if depth > self.high_water.load(Ordering::Relaxed) {
            self.high_water.fetch_max(depth, Ordering::Relaxed);
        }
    }

    pub(crate) fn stats(&self, depth: usize) -> Stats {
        self.record_depth(depth);
        let receivers = self.recv_waiters.park_stats();
        let senders = self.send_waiters.park_stats();
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
