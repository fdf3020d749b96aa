//! How a sleeping consumer is woken, and the three rules of when.
//!
//! | rule | a producer writes the eventfd | what it asks for |
//! | --- | --- | --- |
//! | [`Edge`] | when it made the structure (or the shard, or the lane) busy that was empty | the structure must tell |
//! | [`Always`] | after each request | nothing |
//! | [`Flag`] | when the consumer has announced that it sleeps | a fence a request, two on the way to sleep |
//!
//! The consumer sleeps in a blocking read of the eventfd, which takes all that was written since the last one. So under
//! `Edge` and `Always` it needs no announcement: a write that came before the read makes the read return at once.
//!
//! Nobody spins before sleeping, under no rule: the cells of the ablation differ in structure and rule, and in nothing else.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering, fence};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{Errno, read, write};

/// An eventfd, and the words beside it.
#[derive(Debug)]
pub struct Bell {
    fd: OwnedFd,
    asleep: AtomicBool,
    stopped: AtomicBool,
}

impl Bell {
    /// One that has not been rung.
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
    /// The kernel refuses, which it does to nobody who rang fewer than 2^64 times.
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

    /// Sleeps until the bell was rung, if it was not since the last call.
    ///
    /// # Panics
    /// The kernel refuses, for which there is no reason.
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

    /// Tells the consumer that nothing more will come.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        self.ring();
    }

    /// Whether nothing more will come than what is there.
    #[must_use]
    pub fn stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }
}

/// When a producer rings.
pub trait Rule: Send + Sync + 'static {
    /// As `params` spells it.
    const NAME: &'static str;

    /// Whether `was_empty` is asked for: for lanes the answer costs a fence.
    const EDGE: bool = false;

    /// Whether the consumer announces that it sleeps.
    const ANNOUNCED: bool = false;

    /// After a request was published: rings if the rule says so, and whether it did.
    fn published(bell: &Bell, was_empty: bool) -> bool;

    /// The consumer is about to sleep; then it must look again.
    fn announce(_bell: &Bell) {}

    /// The consumer is awake.
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
        // Pairs with the fence in `announce`: either this sees the announcement or the consumer, looking again, the request.
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
