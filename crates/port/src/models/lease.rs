//! Loom models: a writer that holds the lease of its stream's callback, while other threads revoke
//! it (`stream/lease.rs`, `stream/direct.rs`). The models use numbers instead of records.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::sync::{Arc, Mutex, MutexGuard};
use loom::thread;
use thalweg_queue::barrier::model::{use_both, use_both_refused};
use thalweg_queue::explore::model;

use crate::stream::callback_slot::{AfterCallback, CallbackSlot};
use crate::stream::lease::Lease;

/// The records of a callback. Loom detects two concurrent uses, and a use that is not ordered
/// before the drop.
#[derive(Default)]
struct Received {
    records: UnsafeCell<Vec<u64>>,
    /// Not a loom type, so that it adds no states to the model.
    dropped: AtomicUsize,
}

// SAFETY: the models test the accesses to the cell: loom reports an access that is not ordered.
unsafe impl Sync for Received {}
// SAFETY: as above.
unsafe impl Send for Received {}

struct Callback(Arc<Received>);

impl Callback {
    fn call(&mut self, record: u64) {
        self.0.records.with_mut(|records| {
            // SAFETY: one thread calls; loom reports a violation.
            unsafe { (*records).push(record) }
        });
    }
}

impl Drop for Callback {
    fn drop(&mut self) {
        self.0.records.with_mut(|_| ());
        self.0.dropped.fetch_add(1, Relaxed);
    }
}

#[derive(Default)]
struct Queue {
    records: VecDeque<u64>,
    slot: CallbackSlot<Callback>,
    settled: u64,
    delivered: u64,
}

#[derive(Default)]
struct Stream {
    queue: Mutex<Queue>,
    lease: Lease<Callback>,
    /// The slot that the holder of the lease fills in place, before it enters the lease.
    slot: UnsafeCell<u64>,
    closed: AtomicBool,
}

// SAFETY: loom reports an access to the slot that is not ordered.
unsafe impl Sync for Stream {}
// SAFETY: as above.
unsafe impl Send for Stream {}

impl Stream {
    /// A stream with an idle callback that thread 1 holds the lease of.
    fn lent() -> (Arc<Self>, Arc<Received>) {
        let (stream, received) = (Arc::new(Self::default()), Arc::new(Received::default()));
        {
            let mut queue = stream.lock();
            assert!(queue.slot.replace(Callback(received.clone())).is_none());
            assert!(queue.slot.lend(&stream.lease, 0));
        }
        (stream, received)
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap()
    }

    fn settle(&self, queue: &mut Queue) {
        let delivered = self.lease.sequence();
        queue.delivered += delivered - std::mem::replace(&mut queue.settled, delivered);
    }

    /// As `reserve` and `send_direct`: returns whether the writer still holds the lease. Without it,
    /// the writer does not use the slot again.
    fn send(&self, me: u64, record: u64) -> bool {
        self.slot.with_mut(|slot| {
            // SAFETY: only the holder writes the slot, and loom reports a concurrent reader.
            unsafe { *slot = record }
        });
        if !self.lease.enter(me) {
            let mut queue = self.lock();
            queue.slot.take_back(&self.lease);
            self.settle(&mut queue);
            queue.records.push_back(record);
            drop(queue);
            self.deliver(me);
            return false;
        }
        self.lease.count();
        // SAFETY: between `enter` and `leave`.
        unsafe { self.lease.with(|callback| callback.call(self.read_slot())) };
        let held = self.lease.leave();
        if !held {
            self.end_lease(me);
        }
        held
    }

    fn read_slot(&self) -> u64 {
        self.slot.with(|slot| {
            // SAFETY: loom reports a concurrent writer.
            unsafe { *slot }
        })
    }

    /// As `keep`: if a call runs, its record, which is read after the lock is released.
    fn keep(&self) -> Option<u64> {
        let is_returning = {
            let mut queue = self.lock();
            queue.slot.revoke(&self.lease);
            queue.slot.is_returning()
        };
        is_returning.then(|| self.read_slot())
    }

    fn end_lease(&self, me: u64) {
        let mut queue = self.lock();
        queue.slot.take_back(&self.lease);
        self.settle(&mut queue);
        drop(queue);
        self.deliver(me);
    }

    /// A writer without a lease.
    fn write(&self, me: u64, record: u64) {
        self.lock().records.push_back(record);
        self.deliver(me);
    }

    fn deliver(&self, me: u64) {
        let mut queue = self.lock();
        queue.slot.revoke(&self.lease);
        let Some(mut callback) = queue.slot.take(|| me) else {
            return;
        };
        while !self.closed.load(Ordering::Acquire) {
            let Some(record) = queue.records.pop_front() else {
                return queue.slot.put_back(callback);
            };
            queue.delivered += 1;
            drop(queue);
            callback.call(record);
            queue = self.lock();
        }
        drop(queue);
        self.finish(callback);
    }

    fn finish(&self, callback: Callback) {
        drop(callback);
        let mut queue = self.lock();
        assert!(matches!(queue.slot.finish(true), AfterCallback::Dropped));
    }

    fn close(&self, me: u64) {
        self.closed.store(true, Ordering::Release);
        let mut queue = self.lock();
        queue.slot.revoke(&self.lease);
        let callback = queue.slot.take(|| me);
        drop(queue);
        if let Some(callback) = callback {
            self.finish(callback);
        }
    }

    fn counts(&self) -> u64 {
        let mut queue = self.lock();
        self.settle(&mut queue);
        queue.delivered
    }
}

/// Thread 1: two records, and then the end of the writer.
fn writer(stream: &Arc<Stream>) -> thread::JoinHandle<()> {
    let stream = stream.clone();
    thread::spawn(move || {
        if stream.send(1, 1) {
            stream.send(1, 2);
        } else {
            stream.write(1, 2);
        }
        stream.end_lease(1);
    })
}

/// With both pairs of barriers: the asymmetric ones, and those of a system that refuses the heavy
/// one. Without `use_both`, both sides use fences.
fn with_each_barrier(check: fn()) {
    model(check);
    model(move || use_both(check));
    model(move || use_both_refused(check));
}

/// Rules 2 and 3: the callback is dropped once, after its last call, and the counts are exact.
#[test]
fn close_revokes_a_lease_during_or_between_calls() {
    with_each_barrier(|| {
        let (stream, received) = Stream::lent();
        let writer = writer(&stream);
        stream.close(2);
        writer.join().unwrap();
        assert_eq!(received.dropped.load(Relaxed), 1);
        let calls = received.records.with_mut(|records| {
            // SAFETY: the writer has ended.
            unsafe { (*records).clone() }
        });
        assert!([1, 2].starts_with(&calls), "{calls:?}");
        assert_eq!(stream.counts(), calls.len() as u64);
    });
}

/// Rule 3: the holder notices in `leave` that the lease was revoked during its call, even if it
/// writes nothing more.
#[test]
fn holder_of_a_revoked_lease_returns_it_after_its_call() {
    with_each_barrier(|| {
        let (stream, received) = Stream::lent();
        let writer = {
            let stream = stream.clone();
            thread::spawn(move || stream.send(1, 1))
        };
        stream.close(2);
        writer.join().unwrap();
        assert_eq!(received.dropped.load(Relaxed), 1);
    });
}

/// A record that was filled in place is complete for a thread that keeps it during its call, and is
/// not overwritten by the next one.
#[test]
fn kept_record_of_a_running_call_is_complete_and_stays() {
    with_each_barrier(|| {
        let (stream, _) = Stream::lent();
        let writer = writer(&stream);
        let kept = stream.keep();
        assert!(matches!(kept, None | Some(1 | 2)), "{kept:?}");
        writer.join().unwrap();
        assert_eq!(stream.counts(), 2);
    });
}

/// Another writer takes the callback. All records arrive, those of each writer in order.
#[test]
fn another_writer_revokes_the_lease_and_no_record_is_lost() {
    with_each_barrier(|| {
        let (stream, received) = Stream::lent();
        let writer = writer(&stream);
        stream.write(2, 10);
        let counted = stream.counts();
        writer.join().unwrap();
        let calls = received.records.with_mut(|records| {
            // SAFETY: the writer has ended.
            unsafe { (*records).clone() }
        });
        assert_eq!(calls.len(), 3, "{calls:?}");
        let own: Vec<u64> = calls
            .iter()
            .copied()
            .filter(|record| *record < 10)
            .collect();
        assert_eq!(own, [1, 2]);
        assert!(counted <= 3);
        assert_eq!(stream.counts(), 3);
        stream.close(2);
        assert_eq!(received.dropped.load(Relaxed), 1);
    });
}

/// The runner of a call whose lease is revoked is known, so that it does not wait for itself.
#[test]
fn revoked_call_has_its_runner() {
    model(|| {
        let (stream, _) = Stream::lent();
        assert!(stream.lease.enter(1));
        {
            let mut queue = stream.lock();
            assert!(queue.slot.revoke(&stream.lease) && queue.slot.is_returning());
            assert!(queue.slot.is_running_on(1) && !queue.slot.is_running_on(2));
        }
        assert!(!stream.lease.leave());
        stream.end_lease(1);
        assert!(!stream.lock().slot.is_running_on(1));
    });
}
