//! What an ingress is: the way of a request from any of several producers to one consumer.
//!
//! Two traits, because the ablation takes them apart. An [`Ingress`] is the whole: what carries requests, and how its consumer
//! sleeps and is woken. [`Woken`] makes one of a [`Structure`], which only carries, and a [`Rule`]. All
//! of it is compiled for each pair alone.

use std::io;
use std::marker::PhantomData;
use std::sync::Arc;
use std::thread;

use super::bell::{Bell, Rule};
use super::request::{Request, Submitted};

/// A request was not taken.
#[derive(Debug)]
pub struct Refused;

/// A producer's end.
pub trait Submit: Send + 'static {
    /// Hands a request over.
    ///
    /// # Safety
    /// The request stays where and as it is until the consumer ran it, or until the consumer is gone.
    ///
    /// # Errors
    /// The ingress does not take it.
    unsafe fn submit(&mut self, request: Submitted) -> Result<(), Refused>;
}

/// The consumer's end.
pub trait Consume: Send + 'static {
    /// Runs what comes, until nothing more will come.
    fn consume(self, run: impl FnMut(&Request));
}

/// Tells the consumer, once, that nothing more will come.
pub type Stop = Box<dyn FnOnce() + Send>;

/// A way from producers to one consumer.
pub trait Ingress: 'static {
    /// A producer's end.
    type Submitter: Submit;
    /// The consumer's end.
    type Consumer: Consume;

    /// An empty one, with an end for each producer.
    ///
    /// # Errors
    /// The system's.
    fn open(producers: usize) -> io::Result<(Vec<Self::Submitter>, Self::Consumer, Stop)>;

    /// How often all these ends together woke the consumer.
    fn wakes<'a>(submitters: impl Iterator<Item = &'a Self::Submitter>) -> u64;
}

/// What a look into a structure found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Requests, which were run.
    Some,
    /// Nothing: who sleeps now is woken by the rule.
    Nothing,
    /// A producer is about to make its request visible: look again, and do not sleep.
    Unlinked,
}

/// What carries requests.
pub trait Structure: 'static {
    /// A producer's end.
    type Entry: Entry;
    /// The consumer's end.
    type Exit: Exit;

    /// An empty one, with an end for each producer.
    ///
    /// # Errors
    /// The system's.
    fn open(producers: usize) -> io::Result<(Vec<Self::Entry>, Self::Exit)>;
}

/// A producer's end of a structure.
pub trait Entry: Send + 'static {
    /// Puts a request in and then calls [`Rule::published`]; gives its answer.
    ///
    /// # Safety
    /// As [`Submit::submit`].
    ///
    /// # Errors
    /// The structure does not take it.
    unsafe fn push<R: Rule>(&mut self, request: Submitted, bell: &Bell) -> Result<bool, Refused>;
}

/// The consumer's end of a structure.
pub trait Exit: Send + 'static {
    /// Takes out what is there, each producer's requests in their order, and runs it.
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
        // SAFETY: the caller keeps the same promise.
        let woke = unsafe { self.entry.push::<R>(request, &self.bell) }?;
        self.wakes += u64::from(woke);
        Ok(())
    }
}

impl<E: Exit, R: Rule> Consume for SleepingExit<E, R> {
    fn consume(mut self, mut run: impl FnMut(&Request)) {
        loop {
            // Before the look: what was there when it was stopped is still run.
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
