//! Two hand-offs between two threads and nothing else: the baseline of a call. All hosts use this
//! one, through the C functions below.
//!
//! A side that waits does so exactly as a Thalweg caller or worker does, with its own
//! [`AdaptiveSpin`]: it spins for up to 50 us if it may use several processors, and yields once if
//! it may use only one. Then it sleeps in a read of an eventfd. The other side writes the eventfd
//! only if it sleeps.
//!
//! With the environment variable [`SLEEPS`], a side sleeps at once.

use std::env;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use std::thread::{self, JoinHandle};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{Errno, read, write};
use thalweg::queue::AdaptiveSpin;

/// Set: a side that waits sleeps at once, without spinning or yielding.
pub const SLEEPS: &str = "LAB_BARE_SLEEPS";

/// One direction.
#[derive(Debug)]
struct HandOff {
    sleeps_at_once: bool,
    /// What is handed over; 0 is nothing.
    word: AtomicU32,
    asleep: AtomicBool,
    event: OwnedFd,
}

impl HandOff {
    fn new() -> io::Result<Self> {
        Ok(Self {
            sleeps_at_once: env::var_os(SLEEPS).is_some(),
            word: AtomicU32::new(0),
            asleep: AtomicBool::new(false),
            event: eventfd(0, EventfdFlags::CLOEXEC)?,
        })
    }

    fn post(&self, word: u32) {
        self.word.store(word, Ordering::Release);
        // Pairs with the fence in `wait`: either this side sees that the other sleeps, or the other
        // sees the word when it checks again.
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) && self.asleep.swap(false, Ordering::Relaxed) {
            self.ring();
        }
    }

    fn ring(&self) {
        while write(&self.event, &1u64.to_ne_bytes()) == Err(Errno::INTR) {}
    }

    fn wait(&self, spin: &mut AdaptiveSpin) -> u32 {
        let found = || self.word.load(Ordering::Acquire) != 0;
        while !(if self.sleeps_at_once {
            found()
        } else {
            spin.until(found)
        }) {
            self.asleep.store(true, Ordering::Relaxed);
            fence(Ordering::SeqCst);
            if found() {
                // If the other side has already seen it asleep, the next read returns early.
                self.asleep.store(false, Ordering::Relaxed);
                break;
            }
            let mut counter = [0; 8];
            let mut sleep = || read(&self.event, &mut counter).ok();
            match self.sleeps_at_once {
                true => sleep(),
                false => spin.sleep(sleep),
            };
        }
        self.word.swap(0, Ordering::Acquire)
    }
}

/// A request whose reply is handed over.
const CALL: u32 = 1;
/// A request whose reply is a write of the eventfd, for a loop that watches it.
const POST: u32 = 2;
/// Ends the thread.
const END: u32 = 3;

/// The thread that answers, and the caller's side. One thread at a time calls.
#[derive(Debug)]
pub struct Bare {
    both: Arc<[HandOff; 2]>,
    spin: AdaptiveSpin,
    thread: JoinHandle<()>,
}

impl Bare {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system has no more descriptors or threads.
    pub fn start() -> io::Result<Self> {
        let both = Arc::new([HandOff::new()?, HandOff::new()?]);
        let of_thread = Arc::clone(&both);
        let thread = thread::Builder::new().name("bare".to_owned());
        let thread = thread.spawn(move || {
            let [request, reply] = &*of_thread;
            let mut spin = AdaptiveSpin::new();
            loop {
                match request.wait(&mut spin) {
                    CALL => reply.post(CALL),
                    POST => reply.ring(),
                    _ => return,
                }
            }
        })?;
        Ok(Self {
            both,
            spin: AdaptiveSpin::new(),
            thread,
        })
    }

    /// One request, one reply.
    pub fn call(&mut self) {
        self.both[0].post(CALL);
        self.both[1].wait(&mut self.spin);
    }

    /// One request, whose reply makes the eventfd readable.
    pub fn post(&self) {
        self.both[0].post(POST);
    }

    /// Ends the thread.
    ///
    /// # Panics
    /// The thread panicked.
    pub fn stop(self) {
        self.both[0].post(END);
        self.thread
            .join()
            .expect("the thread has nothing to panic at");
    }
}

/// [`Bare::start`]; null where that fails.
// SAFETY: no other symbol has this name; also below.
#[unsafe(no_mangle)]
pub extern "C" fn lab_bare_open() -> *mut Bare {
    Bare::start().map_or(std::ptr::null_mut(), |bare| Box::into_raw(Box::new(bare)))
}

/// [`Bare::call`].
///
/// # Safety
/// `bare` is from [`lab_bare_open`] and not closed, and no other thread uses it; also below.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lab_bare_call(bare: *mut Bare) {
    // SAFETY: the caller guarantees it; also below.
    unsafe { (*bare).call() };
}

/// [`Bare::post`].
///
/// # Safety
/// As for [`lab_bare_call`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lab_bare_post(bare: *const Bare) {
    // SAFETY: see `lab_bare_call`.
    unsafe { (*bare).post() };
}

/// The eventfd of the replies to [`lab_bare_post`].
///
/// # Safety
/// As for [`lab_bare_call`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lab_bare_fd(bare: *const Bare) -> i32 {
    // SAFETY: see `lab_bare_call`.
    unsafe { &*bare }.both[1].event.as_raw_fd()
}

/// [`Bare::stop`].
///
/// # Safety
/// As for [`lab_bare_call`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lab_bare_close(bare: *mut Bare) {
    // SAFETY: see `lab_bare_call`; it is closed once.
    unsafe { Box::from_raw(bare) }.stop();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_call_returns_whether_the_other_side_spins_or_sleeps() {
        let mut bare = Bare::start().unwrap();
        for round in 0..1_000 {
            if round % 100 == 0 {
                // Longer than any spin.
                thread::sleep(std::time::Duration::from_millis(1));
            }
            bare.call();
        }
        bare.post();
        let mut count = [0; 8];
        read(&bare.both[1].event, &mut count).unwrap();
        assert!(u64::from_ne_bytes(count) >= 1);
        bare.stop();
    }
}
