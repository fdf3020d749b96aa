//! The memory of a channel: it keeps nothing of the values that have passed through it.
//!
//! This is a separate binary because it replaces the global allocator.
#![cfg(all(not(loom), not(miri)))]

use std::alloc::{GlobalAlloc, Layout, System};
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicIsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::Duration;

use thalweg_queue::{Select, mpmc, mpsc, oneshot, spsc};

/// The system allocator with a count of the bytes in use.
struct Counting;

static IN_USE: AtomicIsize = AtomicIsize::new(0);

// SAFETY: every call is forwarded to the system allocator. Counting does not change it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        IN_USE.fetch_add(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: guaranteed by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: guaranteed by the caller.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// What the test harness may allocate meanwhile.
const NOISE: isize = 16 << 10;

/// Serialises the tests.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn in_use() -> isize {
    IN_USE.load(Ordering::Relaxed)
}

/// How many more bytes are in use after `work` than before.
fn left_by<R>(work: impl FnOnce() -> R) -> (isize, R) {
    let before = in_use();
    let result = work();
    (in_use() - before, result)
}

/// Sends and receives 1,000 strings of 100 KB: less than 1 % of their memory remains.
macro_rules! strings_leave_nothing_behind {
    ($sender:expr, $receiver:expr) => {{
        let (sender, receiver) = ($sender, $receiver);
        let text = "x".repeat(100_000);
        let (left, ()) = left_by(|| {
            for _ in 0..100 {
                (0..10).for_each(|_| sender.try_send(text.clone()).unwrap());
                assert_eq!(receiver.try_iter().filter(|got| *got == text).count(), 10);
            }
        });
        assert!(left < 1_000_000, "{left} bytes");
    }};
}

#[test]
fn received_values_do_not_stay_in_memory() {
    let _alone = alone();
    let (sender, receiver) = spsc::channel(1_024).unwrap();
    strings_leave_nothing_behind!(sender, receiver);
    let (sender, receiver) = mpsc::channel(1_024).unwrap();
    strings_leave_nothing_behind!(sender, receiver);
    let (sender, receiver) = mpsc::channel(3).unwrap();
    let text = "x".repeat(100_000);
    let (left, ()) = left_by(|| {
        for _ in 0..1_000 {
            sender.try_send(text.clone()).unwrap();
            drop(receiver.recv().unwrap());
        }
    });
    assert!(left < 1_000_000, "{left} bytes");
    let (sender, receiver) = mpsc::unbounded();
    strings_leave_nothing_behind!(sender, receiver);
    let (sender, receiver) = mpmc::channel(1_024).unwrap();
    strings_leave_nothing_behind!(sender, receiver);
}

#[test]
fn values_drained_in_place_do_not_stay_in_memory() {
    let _alone = alone();
    let (mut sender, mut receiver) = spsc::channel(64).unwrap();
    let (left, ()) = left_by(|| {
        for _ in 0..100 {
            let mut texts = (0..10).map(|_| "x".repeat(100_000));
            assert_eq!(sender.try_fill(10, || texts.next()), Ok(10));
            assert_eq!(
                receiver.try_drain(10, |text| assert_eq!(text.len(), 100_000)),
                10
            );
        }
    });
    assert!(left < 1_000_000, "{left} bytes");
}

#[test]
fn dropped_channel_frees_all_memory() {
    let _alone = alone();
    let (left, ()) = left_by(|| {
        for _ in 0..100 {
            let (sender, receiver) = spsc::channel::<u64>(1_000).unwrap();
            (0..500).for_each(|i| sender.try_send(i).unwrap());
            drop(receiver);
            drop(sender);
            let (sender, receiver) = mpsc::channel::<u64>(1_000).unwrap();
            let other = sender.clone();
            (0..400).for_each(|i| sender.try_send(i).and_then(|()| other.try_send(i)).unwrap());
            drop(receiver);
            drop((sender, other));
            let (sender, receiver) = mpsc::unbounded::<u64>();
            (0..10_000).for_each(|i| sender.try_send(i).unwrap());
            drop(sender);
            drop(receiver);
            let (sender, receiver) = mpmc::channel::<u64>(1_000).unwrap();
            (0..500).for_each(|i| sender.try_send(i).unwrap());
            drop((sender, receiver));
            let (sender, receiver) = oneshot::channel::<u64>();
            sender.send(1).unwrap();
            drop(receiver);
        }
    });
    assert!(left < NOISE, "{left} bytes");
}

#[test]
fn unbounded_channel_frees_memory_after_a_burst() {
    let _alone = alone();
    let (sender, receiver) = mpsc::unbounded::<[u64; 8]>();
    // A channel in use, with a lane.
    (0..1_000).for_each(|_| sender.try_send([1; 8]).unwrap());
    assert_eq!(receiver.try_iter().count(), 1_000);
    let (left, ()) = left_by(|| {
        for _ in 0..10 {
            (0..100_000).for_each(|_| sender.try_send([1; 8]).unwrap());
            assert_eq!(receiver.try_iter().count(), 100_000);
        }
    });
    // 64 MB passed through; one or two blocks of 224 values remain.
    assert!(left < 100_000, "{left} bytes");
}

/// Creates and drops `count` clones that send 64 values each. The memory in use does not grow.
fn senders_that_come_and_go(count: usize) {
    for bounded in [true, false] {
        for idle in [0, 5, 300] {
            let (sender, receiver) = if bounded {
                mpsc::channel::<usize>(65_536).unwrap()
            } else {
                mpsc::unbounded()
            };
            let turn = |number: usize| {
                let sender = sender.clone();
                (0..64).for_each(|i| sender.try_send(i).unwrap());
                // The receiver may be idle while several senders come and go.
                if number.checked_rem(idle).unwrap_or(0) == 0 {
                    let values = receiver.try_iter().fold(0, |count, value| {
                        assert!(value < 64);
                        count + 1
                    });
                    assert_eq!(values % 64, 0);
                }
            };
            // As many senders as can exist at once, and what they leave behind.
            (0..2 * idle + 300).for_each(turn);
            receiver.try_iter().for_each(drop);
            let (left, ()) = left_by(|| {
                (0..count).for_each(turn);
                receiver.try_iter().for_each(drop);
            });
            assert!(
                left < NOISE,
                "{left} bytes after {count} senders, bounded: {bounded}"
            );
        }
    }
}

#[test]
fn thousands_of_short_lived_lanes_do_not_grow_memory() {
    let _alone = alone();
    senders_that_come_and_go(5_000);
}

#[test]
#[ignore = "a minute: for `make prove`"]
fn million_short_lived_lanes_do_not_grow_memory() {
    let _alone = alone();
    senders_that_come_and_go(1_000_000 / 6);
}

/// The same from threads that end.
#[test]
fn senders_of_ended_threads_do_not_grow_memory() {
    let _alone = alone();
    let (sender, receiver) = mpsc::channel::<usize>(1_024).unwrap();
    let turn = || {
        thread::scope(|scope| {
            for _ in 0..4 {
                let sender = sender.clone();
                scope.spawn(move || (0..200).for_each(|i| sender.send(i).unwrap()));
            }
            receiver.iter().take(800).for_each(drop);
        });
    };
    (0..20).for_each(|_| turn());
    let (left, ()) = left_by(|| (0..200).for_each(|_| turn()));
    assert!(left < NOISE, "{left} bytes");
}

struct Nothing;

impl Wake for Nothing {
    fn wake(self: Arc<Self>) {}
}

/// flume's list of waiters grew with each poll.
#[test]
fn repeated_polls_do_not_grow_memory() {
    let _alone = alone();
    // The list of waiters is allocated once.
    let (sender, receiver) = mpmc::channel::<u64>(1).unwrap();
    let poll = |future: &mut std::pin::Pin<&mut dyn Future<Output = ()>>| {
        // A new waker each time.
        let waker = Waker::from(Arc::new(Nothing));
        assert!(
            future
                .as_mut()
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
        );
    };
    let mut receive = pin!(async {
        let _ = receiver.recv_async().await;
    });
    let mut receive: std::pin::Pin<&mut dyn Future<Output = ()>> = receive.as_mut();
    poll(&mut receive);
    let (left, ()) = left_by(|| (0..100_000).for_each(|_| poll(&mut receive)));
    assert!(left < NOISE, "{left} bytes");
    sender.try_send(1).unwrap();
    let mut send = pin!(async {
        let _ = sender.send_async(2).await;
    });
    let mut send: std::pin::Pin<&mut dyn Future<Output = ()>> = send.as_mut();
    poll(&mut send);
    let (left, ()) = left_by(|| (0..100_000).for_each(|_| poll(&mut send)));
    assert!(left < NOISE, "{left} bytes");
}

#[test]
fn expired_waits_do_not_grow_memory() {
    let _alone = alone();
    let (sender, receiver) = mpmc::channel::<u64>(1).unwrap();
    sender.try_send(1).unwrap();
    let (other, empty) = spsc::channel::<u64>(1).unwrap();
    let short = Duration::from_nanos(1);
    let turn = || {
        let mut context = Context::from_waker(Waker::noop());
        assert!(pin!(sender.send_async(2)).poll(&mut context).is_pending());
        assert!(sender.send_timeout(2, short).is_err());
        assert!(empty.recv_timeout(short).is_err());
        let mut select = Select::new();
        select.recv(&empty);
        select.send(&sender);
        assert_eq!(select.ready_timeout(short), None);
        drop(select);
        assert_eq!(receiver.try_recv(), Ok(1));
        assert!(pin!(receiver.recv_async()).poll(&mut context).is_pending());
        sender.try_send(1).unwrap();
        let mut readiness = empty.readiness().unwrap();
        assert!(!readiness.arm());
        assert!(!readiness.arm());
    };
    (0..10).for_each(|_| turn());
    let (left, ()) = left_by(|| (0..3_000).for_each(|_| turn()));
    assert!(left < NOISE, "{left} bytes");
    drop(other);
}

#[test]
fn small_spsc_channel_takes_less_than_one_kilobyte() {
    const CHANNELS: usize = 1_000;
    let _alone = alone();
    let (bytes, _channels) = left_by(|| {
        let mut channels = Vec::with_capacity(CHANNELS);
        channels.extend((0..CHANNELS).map(|_| spsc::channel::<u64>(16).unwrap()));
        for (sender, receiver) in &channels {
            (0..1_000).for_each(|n| {
                sender.send(n).unwrap();
                receiver.recv().unwrap();
            });
        }
        channels
    });
    let handles = (CHANNELS * size_of::<(spsc::Sender<u64>, spsc::Receiver<u64>)>()) as isize;
    let each = (bytes - handles - NOISE) / CHANNELS as isize;
    assert!(each < 1_024, "{each} bytes");
}
