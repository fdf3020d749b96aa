//! Loom model: a stream's callback with concurrent writers and closes (`stream/callback.rs`). The
//! model uses numbers instead of records.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::sync::{Arc, Condvar, Mutex, MutexGuard};
use loom::thread::{self, JoinHandle};
use thalweg_queue::explore::model;

use crate::stream::callback_slot::{AfterCallback, CallbackSlot};

/// Data that a callback uses. Loom detects two concurrent uses, and a use that is not ordered
/// before the drop.
#[derive(Default)]
struct Calls {
    calls: UnsafeCell<Vec<u32>>,
    /// Not a loom type, so that it adds no states to the model.
    dropped: AtomicUsize,
}

// SAFETY: the models test the accesses to the cell: loom reports an access that is not ordered.
unsafe impl Sync for Calls {}
// SAFETY: as above.
unsafe impl Send for Calls {}

impl Calls {
    /// The recorded calls. The callback must have been dropped.
    fn calls(&self) -> Vec<u32> {
        assert_eq!(self.dropped.load(Relaxed), 1);
        self.calls.with_mut(|calls| {
            // SAFETY: as above.
            unsafe { (*calls).clone() }
        })
    }
}

/// The callback of a stream.
struct Callback {
    used: Arc<Calls>,
    /// Closes the stream when it is called with this record.
    closes_at: u32,
}

impl Drop for Callback {
    fn drop(&mut self) {
        self.used.calls.with_mut(|_| ());
        self.used.dropped.fetch_add(1, Relaxed);
    }
}

#[derive(Default)]
struct Queue {
    records: VecDeque<u32>,
    callback_slot: CallbackSlot<Callback>,
}

#[derive(Default)]
struct Stream {
    queue: Mutex<Queue>,
    closed: AtomicBool,
    over: Condvar,
}

impl Stream {
    fn with(closes_at: u32) -> (Arc<Self>, Arc<Calls>) {
        let stream = Arc::new(Self::default());
        let used = stream.subscribe(closes_at);
        (stream, used)
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap()
    }

    fn subscribe(&self, closes_at: u32) -> Arc<Calls> {
        let used = Arc::new(Calls::default());
        let callback = Callback {
            used: used.clone(),
            closes_at,
        };
        let mut queue = self.lock();
        let unused = if self.closed.load(Ordering::Acquire) {
            Some(callback)
        } else {
            queue.callback_slot.replace(callback)
        };
        drop(queue);
        drop(unused);
        used
    }

    /// Thread `me` writes a record and runs the callback if no other thread does.
    fn write(&self, me: u64, record: u32) {
        self.lock().records.push_back(record);
        self.deliver(me);
    }

    fn deliver(&self, me: u64) {
        let mut queue = self.lock();
        let Some(mut callback) = queue.callback_slot.take(|| me) else {
            return;
        };
        while !self.closed.load(Ordering::Acquire) {
            if let Some(next) = queue.callback_slot.take_replacement() {
                drop(queue);
                drop(std::mem::replace(&mut callback, next));
            } else if let Some(record) = queue.records.pop_front() {
                drop(queue);
                callback.used.calls.with_mut(|calls| {
                    // SAFETY: one thread runs the callback; loom reports a violation.
                    unsafe { (*calls).push(record) }
                });
                if record == callback.closes_at {
                    self.close(me);
                    assert!(!self.join(me), "a callback would wait for itself");
                }
            } else {
                return queue.callback_slot.put_back(callback);
            }
            queue = self.lock();
        }
        drop(queue);
        self.finish(me, callback);
    }

    fn finish(&self, me: u64, callback: Callback) {
        let mut over = callback;
        loop {
            drop(over);
            let mut queue = self.lock();
            match queue
                .callback_slot
                .finish(self.closed.load(Ordering::Acquire))
            {
                AfterCallback::Dropped => return self.over.notify_all(),
                AfterCallback::Replaced => {
                    drop(queue);
                    return self.deliver(me);
                }
                AfterCallback::Discard(callback) => over = callback,
            }
        }
    }

    fn close(&self, me: u64) {
        if !self.closed.swap(true, Ordering::AcqRel) {
            let callback = self.lock().callback_slot.take(|| me);
            if let Some(callback) = callback {
                self.finish(me, callback);
            }
        }
    }

    /// Waits until the callback is dropped. Returns `false` on the callback's own thread, without
    /// waiting.
    fn join(&self, me: u64) -> bool {
        let mut queue = self.lock();
        while queue.callback_slot.is_set() {
            if queue.callback_slot.is_running_on(me) {
                return false;
            }
            queue = self.over.wait(queue).unwrap();
        }
        true
    }
}

fn writes(stream: &Arc<Stream>, me: u64, record: u32) -> JoinHandle<()> {
    let stream = stream.clone();
    thread::spawn(move || stream.write(me, record))
}

const NEVER: u32 = 0;

/// Rule 1: with two writers, one thread at a time runs the callback, and no record is left over.
#[test]
fn writer_without_the_callback_leaves_its_record_to_the_runner() {
    model(|| {
        let (stream, used) = Stream::with(NEVER);
        let other = writes(&stream, 1, 1);
        stream.write(0, 2);
        other.join().unwrap();
        stream.close(0);
        assert!(stream.join(0));
        let mut calls = used.calls();
        calls.sort_unstable();
        assert_eq!(calls, [1, 2]);
    });
}

/// R5, on another thread: after a close and a join, the data of the callback is no longer used.
#[test]
fn close_on_another_thread_waits_for_the_running_call() {
    model(|| {
        let (stream, used) = Stream::with(NEVER);
        let others = [writes(&stream, 1, 1), writes(&stream, 2, 2)];
        stream.close(0);
        assert!(stream.join(0));
        let calls = used.calls();
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(used.calls(), calls, "no call after the close");
    });
}

/// R5, on the callback's own thread: a close inside the callback returns during the call, no
/// further call begins, and a join on another thread waits.
#[test]
fn callback_that_closes_its_stream_is_not_called_again() {
    model(|| {
        let (stream, used) = Stream::with(1);
        let others = [writes(&stream, 1, 1), writes(&stream, 2, 2)];
        stream.close(0);
        assert!(stream.join(0));
        let calls = used.calls();
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(used.calls(), calls);
        let after = calls.iter().skip_while(|record| **record != 1).skip(1);
        assert_eq!(after.count(), 0, "{calls:?}");
    });
}

/// A replaced callback is dropped once, after its call. A callback that is set during a close is
/// dropped once, by whichever thread finds it.
#[test]
fn replacing_callback_is_dropped_once() {
    model(|| {
        let (stream, former) = Stream::with(1);
        let other = writes(&stream, 1, 1);
        let used = stream.subscribe(1);
        stream.write(0, 2);
        stream.close(0);
        assert!(stream.join(0));
        other.join().unwrap();
        let mut calls = [former.calls(), used.calls()].concat();
        let all = calls.len();
        calls.sort_unstable();
        calls.dedup();
        assert_eq!(calls.len(), all, "no record is delivered twice");
    });
}
