//! An ingress: the path of a request from any of several producers to one consumer.
//!
//! There are two traits, because the ablation separates them. An [`Ingress`] is the whole: the
//! structure that carries requests, and the way its consumer sleeps and is woken. [`Woken`] combines
//! a [`Structure`], which only carries requests, and a [`Rule`]. All of it is compiled for each pair
//! separately.

use std::io;
use std::marker::PhantomData;
use std::thread;

use super::bell::{Bell, Rule};
use super::request::{Request, Submitted};

/// The request was not accepted.
#[derive(Debug)]
pub struct Refused;

/// An ingress or a structure, a state for each producer, and the state of the consumer.
pub type Opened<I, Entry, Exit> = io::Result<(I, Vec<Entry>, Exit)>;

/// A path from producers to one consumer.
pub trait Ingress: Send + Sync + Sized + 'static {
    /// The state of one producer.
    type Entry: Send + 'static;
    /// The state of the consumer.
    type Exit: Send + 'static;

    /// An empty ingress.
    ///
    /// # Errors
    /// The operating system's error.
    fn open(producers: usize) -> Opened<Self, Self::Entry, Self::Exit>;

    /// Submits a request, and returns whether that woke the consumer, as far as this is known.
    ///
    /// # Safety
    /// The request must neither move nor change until the consumer has run it, or until the
    /// consumer is gone.
    ///
    /// # Errors
    /// The ingress does not accept it.
    unsafe fn submit(&self, entry: &mut Self::Entry, request: Submitted) -> Result<bool, Refused>;

    /// Runs arriving requests until no more follow.
    fn consume(&self, exit: Self::Exit, run: impl FnMut(&Request));

    /// Tells the consumer, once, that no more requests follow.
    fn stop(&self);

    /// How often the consumer was woken, if the ingress counts that itself.
    fn wakes(&self) -> Option<u64> {
        None
    }
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
pub trait Structure: Send + Sync + Sized + 'static {
    /// The state of one producer.
    type Entry: Send + 'static;
    /// The state of the consumer.
    type Exit: Send + 'static;

    /// An empty structure.
    ///
    /// # Errors
    /// The operating system's error.
    fn open(producers: usize) -> Opened<Self, Self::Entry, Self::Exit>;

    /// Adds a request, then calls [`Rule::published`] and returns its answer.
    ///
    /// # Safety
    /// As for [`Ingress::submit`].
    ///
    /// # Errors
    /// The structure does not accept it.
    unsafe fn push<R: Rule>(
        &self,
        entry: &mut Self::Entry,
        request: Submitted,
        bell: &Bell,
    ) -> Result<bool, Refused>;

    /// Removes all requests, each producer's in order, and runs them.
    fn drain<R: Rule>(&self, exit: &mut Self::Exit, run: &mut impl FnMut(&Request)) -> Found;
}

/// A structure whose consumer is woken by a rule.
#[derive(Debug)]
pub struct Woken<S, R> {
    structure: S,
    bell: Bell,
    rule: PhantomData<R>,
}

impl<S: Structure, R: Rule> Ingress for Woken<S, R> {
    type Entry = S::Entry;
    type Exit = S::Exit;

    fn open(producers: usize) -> Opened<Self, S::Entry, S::Exit> {
        let (structure, entries, exit) = S::open(producers)?;
        let woken = Self {
            structure,
            bell: Bell::new()?,
            rule: PhantomData,
        };
        Ok((woken, entries, exit))
    }

    #[inline]
    unsafe fn submit(&self, entry: &mut S::Entry, request: Submitted) -> Result<bool, Refused> {
        // SAFETY: the caller upholds the same contract.
        unsafe { self.structure.push::<R>(entry, request, &self.bell) }
    }

    fn consume(&self, mut exit: S::Exit, mut run: impl FnMut(&Request)) {
        let Self {
            structure, bell, ..
        } = self;
        loop {
            // Read before draining: requests that were submitted before the stop are still run.
            let stopped = bell.stopped();
            match structure.drain::<R>(&mut exit, &mut run) {
                Found::Some => continue,
                Found::Unlinked => {
                    thread::yield_now();
                    continue;
                }
                Found::Nothing if stopped => return,
                Found::Nothing => {}
            }
            if R::ANNOUNCED {
                R::announce(bell);
                if structure.drain::<R>(&mut exit, &mut run) != Found::Nothing {
                    R::withdraw(bell);
                    continue;
                }
            }
            bell.wait();
            R::withdraw(bell);
        }
    }

    fn stop(&self) {
        self.bell.stop();
    }
}
