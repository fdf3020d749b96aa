//! A thread that is stopped in the middle of an operation does not make other threads spin.
//!
//! A signal whose handler waits stops the thread at a random moment: between claiming a slot and
//! filling it, between filling it and publishing it, or under the lock of a wait list. In another
//! system, two threads once spun on such a slot for four hours. Here the other threads sleep:
//! threads with a deadline sleep until the deadline, unless the stopped thread holds a lock.
//!
//! The tests check how long a thread ran, not how long it took, because a busy machine changes that
//! little. This is a separate binary because it installs a signal handler.
#![cfg(all(not(loom), not(miri)))]

use std::os::unix::thread::JoinHandleExt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use thalweg_queue::{Options, Overflow, RecvTimeoutError, SendTimeoutError, mpmc, mpsc, spsc};

static HELD: AtomicBool = AtomicBool::new(false);
static STOPPED: AtomicUsize = AtomicUsize::new(0);

/// The timeout of waits that have a deadline.
const TIMEOUT: Duration = Duration::from_millis(100);
/// The stopped thread continues after this time. Threads that need what it holds wait until then.
const LONGEST_STOP: Duration = Duration::from_secs(3);
const ROUNDS: usize = 8;

extern "C" fn wait_while_held(_signal: libc::c_int) {
    STOPPED.fetch_add(1, Ordering::SeqCst);
    while HELD.load(Ordering::SeqCst) {
        let time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 50_000,
        };
        // SAFETY: nanosleep is async-signal-safe. The time is a local variable, and the remainder
        // is not used.
        unsafe { libc::nanosleep(&time, std::ptr::null_mut()) };
    }
    STOPPED.fetch_sub(1, Ordering::SeqCst);
}

/// Serialises the tests, because the signal handler belongs to the process.
fn handle_signals() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: a zeroed sigaction is valid and has no flags.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = wait_while_held as *const () as usize;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: the handler uses only atomics and nanosleep, which are async-signal-safe.
    let failed = unsafe { libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut()) };
    assert_eq!(failed, 0);
    alone
}

/// The processor time of the calling thread.
fn processor_time() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer refers to a local timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Stops the thread, wherever it is, while another thread runs `work`. Returns whether `work`
/// finished before the thread had to continue, and its result.
fn while_stopped<T, R: Send>(
    thread: &JoinHandle<T>,
    meanwhile: impl FnOnce() -> R + Send,
) -> (bool, R) {
    HELD.store(true, Ordering::SeqCst);
    // SAFETY: the thread has not been joined yet.
    let failed = unsafe { libc::pthread_kill(thread.as_pthread_t(), libc::SIGUSR1) };
    assert_eq!(failed, 0);
    wait_for(|| STOPPED.load(Ordering::SeqCst) == 1);
    thread::scope(|scope| {
        let meanwhile = scope.spawn(meanwhile);
        let since = Instant::now();
        while !meanwhile.is_finished() && since.elapsed() < LONGEST_STOP {
            thread::sleep(Duration::from_millis(1));
        }
        let in_time = meanwhile.is_finished();
        HELD.store(false, Ordering::SeqCst);
        wait_for(|| STOPPED.load(Ordering::SeqCst) == 0);
        (in_time, meanwhile.join().unwrap())
    })
}

fn wait_for(mut is_so: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < Duration::from_secs(100), "in vain");
        thread::yield_now();
    }
}

/// Calls `wait`, which may take any time, but must run for only a fraction of `TIMEOUT`.
fn sleeps<R>(wait: impl FnOnce() -> R) -> R {
    let before = processor_time();
    let result = wait();
    let ran = processor_time() - before;
    assert!(ran < TIMEOUT / 2, "it ran for {ran:?}");
    result
}

/// Large, so that the signal often arrives while the value is being written or read.
#[derive(Clone, Copy)]
struct Value([u64; 4_096]);

fn value(number: u64) -> Value {
    Value([number; 4_096])
}

/// Whether the value was sent in time; the channel is open.
fn is_sent<T>(result: Result<(), SendTimeoutError<T>>) -> bool {
    match result {
        Ok(()) => true,
        Err(SendTimeoutError::TimedOut(_)) => false,
        Err(SendTimeoutError::Closed(_)) => panic!("nobody closed it"),
    }
}

/// The value that another sender sends.
const OTHER: u64 = u64::MAX;

/// A sender is stopped. The receiver gets the earlier values in order, and then nothing until its
/// deadline.
macro_rules! a_sender_is_stopped {
    ($sender:expr, $receiver:expr, $meanwhile:expr) => {{
        let _alone = handle_signals();
        let (sender, mut receiver) = ($sender, $receiver);
        let ends = Arc::new(AtomicBool::new(false));
        let thread = thread::spawn({
            let ends = ends.clone();
            move || {
                let mut next = 0u64;
                while !ends.load(Ordering::Relaxed) {
                    next += u64::from(sender.try_send(value(next)).is_ok());
                }
            }
        });
        let mut next = 0;
        let mut received = |Value(numbers)| {
            assert_eq!(numbers[0], numbers[4_095]);
            if numbers[0] != OTHER {
                assert_eq!(numbers[0], next);
                next += 1;
            }
        };
        // The sender already has its lane, if it can have one: creating a lane takes a lock that
        // the receiver also takes.
        for _ in 0..70 {
            received(receiver.recv().unwrap());
        }
        let mut rounds = 0;
        for _ in 0..ROUNDS {
            // The sender runs for a while, on a full channel and on one with capacity.
            for _ in 0..200 {
                receiver.try_iter().take(1).for_each(&mut received);
            }
            let (in_time, back) = while_stopped(&thread, || {
                receiver.try_iter().for_each(&mut received);
                let nothing = sleeps(|| receiver.recv_timeout(TIMEOUT));
                $meanwhile;
                (receiver, nothing)
            });
            receiver = back.0;
            match back.1 {
                Err(error) => assert_eq!(error, RecvTimeoutError::TimedOut),
                Ok(value) => {
                    assert!(!in_time, "the only sender was stopped");
                    received(value);
                }
            }
            rounds += usize::from(in_time);
        }
        assert!(rounds > 0, "no receiver came to its deadline");
        ends.store(true, Ordering::Relaxed);
        receiver.try_iter().for_each(drop);
        thread.join().unwrap();
    }};
}

/// Another sender finds capacity. If the stopped thread blocks it, it sleeps until its deadline.
macro_rules! sends_or_sleeps {
    ($other:expr) => {{
        sleeps(|| is_sent($other.send_timeout(value(OTHER), TIMEOUT)));
    }};
}

#[test]
fn stopped_spsc_sender_lets_the_receiver_sleep() {
    let (sender, receiver) = spsc::channel(16).unwrap();
    a_sender_is_stopped!(sender, receiver, {});
}

#[test]
fn stopped_mpsc_sender_with_lanes_lets_the_receiver_sleep() {
    let (sender, receiver) = mpsc::channel(16).unwrap();
    let mut other = sender.clone();
    a_sender_is_stopped!(sender, receiver, sends_or_sleeps!(&mut other));
}

/// All senders share stamped slots.
#[test]
fn stopped_mpsc_sender_without_lanes_lets_the_receiver_sleep() {
    let (sender, receiver) = mpsc::channel(3).unwrap();
    let mut other = sender.clone();
    a_sender_is_stopped!(sender, receiver, sends_or_sleeps!(&mut other));
}

#[test]
fn stopped_mpmc_sender_lets_the_receiver_sleep() {
    let (sender, receiver) = mpmc::channel(4).unwrap();
    let other = sender.clone();
    a_sender_is_stopped!(sender, receiver, {
        (0..2).for_each(|_| sends_or_sleeps!(other));
    });
}

#[test]
fn stopped_receiver_lets_blocked_senders_sleep() {
    let _alone = handle_signals();
    let (sender, receiver) = mpmc::channel(2).unwrap();
    let thread = thread::spawn(move || {
        let mut last = None;
        for Value(numbers) in receiver.iter() {
            assert!(last < Some(numbers[0]), "out of order");
            last = Some(numbers[0]);
        }
    });
    let mut next = 0u64;
    let mut rounds = 0;
    for _ in 0..ROUNDS {
        for _ in 0..200 {
            next += u64::from(sender.try_send(value(next)).is_ok());
        }
        let (in_time, sent) = while_stopped(&thread, || {
            while sender.try_send(value(next)).is_ok() {
                next += 1;
            }
            sleeps(|| is_sent(sender.send_timeout(value(next), TIMEOUT)))
        });
        assert!(!(sent && in_time), "the only receiver was stopped");
        next += u64::from(sent);
        rounds += usize::from(in_time);
    }
    assert!(rounds > 0, "no sender came to its deadline");
    drop(sender);
    thread.join().unwrap();
}

/// So large that a receiver spends most of its time copying values.
struct Larger([u64; NUMBERS]);

/// ThreadSanitizer checks each word of a copy, and a sender that retries copies the whole value.
const NUMBERS: usize = if cfg!(thalweg_threads) { 2_048 } else { 32_768 };

/// Senders with a policy that drops continue. A sender that cannot, because the stopped receiver
/// has the slot that it needs, sleeps.
fn a_stopped_receiver_and_senders_that_drop(overflow: Overflow) {
    const HOLD: Duration = Duration::from_millis(200);
    let _alone = handle_signals();
    let (sender, receiver) = mpmc::with(2, Options::new().overflow(overflow)).unwrap();
    let large_stack = || thread::Builder::new().stack_size(64 << 20);
    let receives = large_stack().spawn(move || {
        let mut last = None;
        for Larger(numbers) in receiver.iter() {
            assert!(last < Some(numbers[0]), "out of order");
            last = Some(numbers[0]);
        }
    });
    let receives = receives.unwrap();
    let (sent, longest) = (AtomicU64::new(0), AtomicU64::new(0));
    let ends = AtomicBool::new(false);
    thread::scope(|scope| {
        let sends = || {
            let sender = sender;
            for number in 0.. {
                let before = processor_time();
                sender.send(Larger([number; NUMBERS])).unwrap();
                let ran = processor_time() - before;
                longest.fetch_max(ran.as_nanos() as u64, Ordering::Relaxed);
                sent.store(number, Ordering::Relaxed);
                if ends.load(Ordering::Relaxed) {
                    return;
                }
            }
        };
        large_stack().spawn_scoped(scope, sends).unwrap();
        for _ in 0..ROUNDS {
            thread::sleep(Duration::from_micros(500));
            while_stopped(&receives, || thread::sleep(HOLD));
            let before = sent.load(Ordering::Relaxed);
            wait_for(|| sent.load(Ordering::Relaxed) > before);
        }
        ends.store(true, Ordering::Relaxed);
    });
    receives.join().unwrap();
    let longest = Duration::from_nanos(longest.into_inner());
    assert!(longest < HOLD / 4, "one send ran for {longest:?}");
}

#[test]
fn stopped_receiver_lets_drop_oldest_senders_sleep() {
    a_stopped_receiver_and_senders_that_drop(Overflow::DropOldest);
}

#[test]
fn stopped_receiver_lets_latest_senders_sleep() {
    a_stopped_receiver_and_senders_that_drop(Overflow::Latest);
}
