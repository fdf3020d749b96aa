//! An ingress: the path of a request from any of several producers to one consumer.
//!
//! There are two layers of traits, because the ablation separates them. An [`Ingress`] is the
//! whole: the structure that carries requests, and the way its consumer sleeps and is woken.
//! [`Woken`] combines a [`Structure`], which only carries requests, and a [`Rule`]. All of it is
//! compiled for each pair separately.

use std::io;
use std::marker::PhantomData;
use std::sync::Arc;
use std::thread;

use super::bell::{Bell, Rule};
use super::request::{Request, Submitted};

/// The request was not accepted.
#[derive(Debug)]
pub struct Refused;

/// A producer's end.
pub trait Submit: Send + 'static {
    /// Submits a request.
    ///
    /// # Safety
    /// The request must neither move nor change until the consumer has run it, or until the
    /// consumer is gone.
    ///
    /// # Errors
    /// The ingress does not accept it.
    /// The ingress does not take it.
    unsafe fn submit(&mut self, request: Submitted) -> Result<(), Refused>;
}

/// The consumer's end.
pub trait Consume: Send + 'static {
    /// Runs arriving requests until no more follow.
    fn consume(self, run: impl FnMut(&Request));
}

/// Tells the consumer, once, that no more requests follow.
pub type Stop = Box<dyn FnOnce() + Send>;

/// A path from producers to one consumer.
pub trait Ingress: 'static {
    /// A producer's end.
    type Submitter: Submit;
    /// The consumer's end.
    type Consumer: Consume;

    /// An empty ingress, with an end for each producer.
    ///
    /// # Errors
    /// The operating system's error.
    /// The system's.
    fn open(producers: usize) -> io::Result<(Vec<Self::Submitter>, Self::Consumer, Stop)>;

    /// How often all these ends together woke the consumer.
    fn wakes<'a>(submitters: impl Iterator<Item = &'a Self::Submitter>) -> u64;
}

/// The result of draining a structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// There were requests, and they were run.
    Some,
    /// There were none. A consumer that sleeps now is woken by the rule.
    Nothing,
    /// A producer is about to make its request visible: the consumer must check again and not
    /// sleep.
    Unlinked,
}

/// A structure that carries requests.
pub trait Structure: 'static {
    /// A producer's end.
    type Entry: Entry;
    /// The consumer's end.
    type Exit: Exit;

    /// An empty structure, with an end for each producer.
    ///
    /// # Errors
    /// The operating system's error.
    /// The system's.
    fn open(producers: usize) -> io::Result<(Vec<Self::Entry>, Self::Exit)>;
}

/// A producer's end of a structure.
pub trait Entry: Send + 'static {
    /// Adds a request, then calls [`Rule::published`] and returns its answer.
    ///
    /// # Safety
    /// As for [`Submit::submit`].
    ///
    /// # Errors
    /// The structure does not accept it.
    unsafe fn push<R: Rule>(&mut self, request: Submitted, bell: &Bell) -> Result<bool, Refused>;
}

/// The consumer's end of a structure.
pub trait Exit: Send + 'static {
    /// Removes all requests, each producer's in order, and runs them.
    fn drain<R: Rule>(&mut self, run: &mut impl FnMut(&Request)) -> Found;
}

/// A structure whose consumer is woken by a rule.
#[derive(Debug)]
pub struct Woken<S, R>(PhantomData<(S, R)>);

/// Its producer's end.
#[derive(Debug)]
pub struct WakingEntry<E, R> {
    entry: E,
    bell: Arc<Bell>,
    wakes: u64,
    rule: PhantomData<R>,
}

/// Its consumer's end.
#[derive(Debug)]
pub struct SleepingExit<E, R> {
    exit: E,
    bell: Arc<Bell>,
    rule: PhantomData<R>,
}

impl<S: Structure, R: Rule> Ingress for Woken<S, R> {
    type Submitter = WakingEntry<S::Entry, R>;
    type Consumer = SleepingExit<S::Exit, R>;

    fn open(producers: usize) -> io::Result<(Vec<Self::Submitter>, Self::Consumer, Stop)> {
        let bell = Arc::new(Bell::new()?);
        let (entries, exit) = S::open(producers)?;
        let entries = entries
            .into_iter()
            .map(|entry| WakingEntry {
                entry,
                bell: Arc::clone(&bell),
                wakes: 0,
                rule: PhantomData,
            })
            .collect();
        let consumer = SleepingExit {
            exit,
            bell: Arc::clone(&bell),
            rule: PhantomData,
        };
        Ok((entries, consumer, Box::new(move || bell.stop())))
    }

    fn wakes<'a>(submitters: impl Iterator<Item = &'a Self::Submitter>) -> u64 {
        submitters.map(|entry| entry.wakes).sum()
    }
}

impl<E: Entry, R: Rule> Submit for WakingEntry<E, R> {
    #[inline]
    unsafe fn submit(&mut self, request: Submitted) -> Result<(), Refused> {
        // SAFETY: the caller upholds the same contract.
        let woke = unsafe { self.entry.push::<R>(request, &self.bell) }?;
        self.wakes += u64::from(woke);
        Ok(())
    }
}

impl<E: Exit, R: Rule> Consume for SleepingExit<E, R> {
    fn consume(mut self, mut run: impl FnMut(&Request)) {
        loop {
            // Read before draining: requests that were submitted before the stop are still run.
            let stopped = self.bell.stopped();
            match self.exit.drain::<R>(&mut run) {
                Found::Some => continue,
                Found::Unlinked => {
                    thread::yield_now();
                    continue;
                }
                Found::Nothing if stopped => return,
                Found::Nothing => {}
            }
            if R::ANNOUNCED {
                R::announce(&self.bell);
                if self.exit.drain::<R>(&mut run) != Found::Nothing {
                    R::withdraw(&self.bell);
                    continue;
                }
            }
            self.bell.wait();
            R::withdraw(&self.bell);
        }
    }
}
