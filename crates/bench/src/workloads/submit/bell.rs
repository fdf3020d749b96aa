//! Wakes a sleeping consumer, with three rules of when to do so.
//!
//! | rule | a producer writes the eventfd | requirement |
//! | --- | --- | --- |
//! | [`Edge`] | when its request made an empty structure (or shard, or lane) non-empty | the structure must report this |
//! | [`Always`] | after each request | none |
//! | [`Flag`] | when the consumer has announced that it sleeps | one fence per request, two on the way to sleep |
//!
//! The consumer sleeps in a blocking read of the eventfd, which takes everything that was written
//! since the last read. `Edge` and `Always` therefore need no announcement: a write before the read
//! makes the read return at once.
//!
//! No rule spins before sleeping: the cells of the ablation differ only in structure and rule.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering, fence};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{Errno, read, write};

/// An eventfd and the words next to it.
#[derive(Debug)]
pub struct Bell {
    fd: OwnedFd,
    asleep: AtomicBool,
    stopped: AtomicBool,
}

impl Bell {
    /// A bell that has not been rung.
    ///
    /// # Errors
    /// The system has no more file descriptors.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            fd: eventfd(0, EventfdFlags::CLOEXEC)?,
            asleep: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
        })
    }

    /// Writes the eventfd.
    ///
    /// # Panics
    /// The kernel refuses the write, which happens only after 2^64 rings.
    pub fn ring(&self) {
        loop {
            match write(&self.fd, &1u64.to_ne_bytes()) {
                Err(Errno::INTR) => {}
                written => {
                    written.expect("an eventfd takes another one");
                    return;
                }
            }
        }
    }

    /// Sleeps until the bell rings; returns at once if it has rung since the last call.
    ///
    /// # Panics
    /// The kernel refuses the read, which is not expected to happen.
    pub fn wait(&self) {
        let mut rung = [0; 8];
        loop {
            match read(&self.fd, &mut rung) {
                Err(Errno::INTR) => {}
                taken => {
                    taken.expect("an eventfd can be read");
                    return;
                }
            }
        }
    }

    /// Tells the consumer that no more requests follow.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        self.ring();
    }

    /// Whether no requests follow the ones already there.
    #[must_use]
    pub fn stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }
}

/// The rule of when a producer rings.
pub trait Rule: Send + Sync + 'static {
    /// The spelling in `params`.
    const NAME: &'static str;

    /// Whether the rule needs `was_empty`: for lanes the answer costs a fence.
    const EDGE: bool = false;

    /// Whether the consumer announces that it sleeps.
    const ANNOUNCED: bool = false;

    /// Called after a request was published. Rings if the rule requires it, and returns whether it
    /// did.
    fn published(bell: &Bell, was_empty: bool) -> bool;

    /// Called when the consumer is about to sleep; it must then check again.
    fn announce(_bell: &Bell) {}

    /// Called when the consumer is awake.
    fn withdraw(_bell: &Bell) {}
}

/// See the module.
#[derive(Debug)]
pub struct Edge;

/// See the module.
#[derive(Debug)]
pub struct Always;

/// See the module.
#[derive(Debug)]
pub struct Flag;

impl Rule for Edge {
    const NAME: &'static str = "edge";
    const EDGE: bool = true;

    #[inline]
    fn published(bell: &Bell, was_empty: bool) -> bool {
        if was_empty {
            bell.ring();
        }
        was_empty
    }
}

impl Rule for Always {
    const NAME: &'static str = "always";

    #[inline]
    fn published(bell: &Bell, _was_empty: bool) -> bool {
        bell.ring();
        true
    }
}

impl Rule for Flag {
    const NAME: &'static str = "flag";
    const ANNOUNCED: bool = true;

    #[inline]
    fn published(bell: &Bell, _was_empty: bool) -> bool {
        // Pairs with the fence in `announce`: either this side sees the announcement, or the
        // consumer sees the request when it checks again.
        fence(Ordering::SeqCst);
        let asleep =
            bell.asleep.load(Ordering::Relaxed) && bell.asleep.swap(false, Ordering::Relaxed);
        if asleep {
            bell.ring();
        }
        asleep
    }

    fn announce(bell: &Bell) {
        bell.asleep.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    fn withdraw(bell: &Bell) {
        bell.asleep.store(false, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bell_that_was_rung_before_wakes_once() {
        let bell = Bell::new().unwrap();
        bell.ring();
        bell.ring();
        bell.wait();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| bell.wait());
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert!(!waiting.is_finished(), "both rings were taken by one wait");
            bell.ring();
        });
    }

    #[test]
    fn each_rule_rings_when_it_says() {
        let bell = Bell::new().unwrap();
        assert!(Edge::published(&bell, true));
        assert!(!Edge::published(&bell, false));
        assert!(Always::published(&bell, false));
        assert!(!Flag::published(&bell, true), "nobody sleeps");
        Flag::announce(&bell);
        assert!(Flag::published(&bell, false));
        assert!(!Flag::published(&bell, false), "it was woken already");
        Flag::announce(&bell);
        Flag::withdraw(&bell);
        assert!(!Flag::published(&bell, false));
    }
}
