//! Moves events of any kind from several producers to several consumers, through channels, rings
//! and a stream of ours.

use std::sync::{Barrier, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use thalweg::StreamReader;
use thalweg::wire::Decode;
use thalweg_lab::events::{Pace, tails};
use thalweg_peers::crates::{crossbeam_channel, disruptor, rtrb};
use thalweg_peers::patience::until;

use super::eater::{Appetite, Eater, Item, Look};
use crate::problem::Problem;

/// Capacity of each bounded channel, ring and stream.
pub const CAPACITY: usize = 8192;

/// The events to move.
#[derive(Clone, Copy, Debug)]
pub struct Feed {
    /// Number of events of all producers together. Each consumer gets each event.
    pub count: u64,
    /// Threads that write.
    pub producers: u64,
    /// Threads that read.
    pub consumers: u64,
    /// Bytes of both tails.
    pub tails: u32,
    /// Events a second; 0 means as fast as possible.
    pub per_s: u64,
    /// The work of each consumer.
    pub appetite: Appetite,
    /// Whether each consumer also reads the clock.
    pub timed: bool,
}

impl Feed {
    fn eater(&self) -> Eater {
        if self.timed {
            Eater::timing()
        } else {
            Eater::new(self.appetite, self.producers)
        }
    }
}

/// The elapsed time, and the consumers.
pub type Fed = (Duration, Vec<Eater>);

/// Runs the threads: each of `outs` writes its share, each of `ins` reads until it has all events.
fn moved<T: Item>(
    feed: &Feed,
    outs: Vec<impl FnMut(T) + Send>,
    ins: Vec<impl FnMut(&mut Eater) + Send>,
) -> Fed {
    let ready = &Barrier::new(outs.len() + ins.len() + 1);
    thread::scope(|scope| {
        for (own, mut out) in (0..).zip(outs) {
            scope.spawn(move || {
                let tails = tails(feed.tails);
                ready.wait();
                let mut pace = Pace::new(feed.per_s);
                for n in (own..feed.count).step_by(feed.producers as usize) {
                    let at = match &mut pace {
                        Some(pace) => pace.next(sleep_until),
                        None => n,
                    };
                    out(T::make(n, at, &tails));
                }
            });
        }
        let readers: Vec<_> = ins
            .into_iter()
            .map(|mut read| {
                scope.spawn(move || {
                    let mut eater = feed.eater();
                    ready.wait();
                    while eater.eaten() < feed.count {
                        read(&mut eater);
                    }
                    eater
                })
            })
            .collect();
        ready.wait();
        let began = Instant::now();
        let eaters = readers
            .into_iter()
            .map(|reader| reader.join().expect("a consumer does not panic"))
            .collect();
        (began.elapsed(), eaters)
    })
}

fn sleep_until(due: Instant) {
    thread::sleep(due.saturating_duration_since(Instant::now()));
}

/// The channels of the standard library, one per consumer.
pub fn std_mpsc<T: Item>(feed: &Feed) -> Fed {
    let links = (0..feed.consumers).map(|_| mpsc::channel::<T>());
    let (senders, receivers): (Vec<_>, Vec<_>) = links.unzip();
    let outs = (0..feed.producers).map(|_| {
        let senders = senders.clone();
        move |item: T| to_each(&senders, item, |sender, item| drop(sender.send(item)))
    });
    let ins = receivers.into_iter().map(|receiver| {
        move |eater: &mut Eater| {
            if let Ok(item) = receiver.recv() {
                eater.eat(item.look());
            }
        }
    });
    moved(feed, outs.collect(), ins.collect())
}

/// Crossbeam's bounded channels, one per consumer.
pub fn crossbeam<T: Item>(feed: &Feed) -> Fed {
    let links = (0..feed.consumers).map(|_| crossbeam_channel::bounded::<T>(CAPACITY));
    let (senders, receivers): (Vec<_>, Vec<_>) = links.unzip();
    let outs = (0..feed.producers).map(|_| {
        let senders = senders.clone();
        move |item: T| to_each(&senders, item, |sender, item| drop(sender.send(item)))
    });
    let ins = receivers.into_iter().map(|receiver| {
        move |eater: &mut Eater| {
            if let Ok(item) = receiver.recv() {
                eater.eat(item.look());
            }
        }
    });
    moved(feed, outs.collect(), ins.collect())
}

/// Sends clones to all but the last channel, and the item itself to the last.
#[inline]
fn to_each<S, T: Item>(senders: &[S], item: T, send: impl Fn(&S, T)) {
    if let [others @ .., last] = senders {
        others.iter().for_each(|other| send(other, item.clone()));
        send(last, item);
    }
}

/// `rtrb`: one producer, and one ring per consumer.
pub fn ring<T: Item>(feed: &Feed) -> Fed {
    let links = (0..feed.consumers).map(|_| rtrb::RingBuffer::<T>::new(CAPACITY));
    let (mut producers, consumers): (Vec<_>, Vec<_>) = links.unzip();
    let push = |producer: &mut rtrb::Producer<T>, item: T| {
        let mut item = Some(item);
        until(|| match producer.push(item.take()?) {
            Ok(()) => Some(()),
            Err(rtrb::PushError::Full(back)) => {
                item = Some(back);
                None
            }
        });
    };
    let out = move |item: T| {
        if let [others @ .., last] = producers.as_mut_slice() {
            others
                .iter_mut()
                .for_each(|other| push(other, item.clone()));
            push(last, item);
        }
    };
    let ins = consumers.into_iter().map(|mut consumer| {
        move |eater: &mut Eater| eater.eat(until(|| consumer.pop().ok()).look())
    });
    moved(feed, vec![out], ins.collect())
}

/// `disruptor`, one producer and one consumer.
pub fn preallocated<T: Item>(feed: &Feed) -> Fed {
    use disruptor::Producer;

    let first = || T::make(0, 0, &(String::new(), Vec::new()));
    let (mut poller, builder) =
        disruptor::build_single_producer(CAPACITY, first, disruptor::BusySpin).new_event_poller();
    let mut producer = builder.build();
    let out = move |item: T| {
        let mut item = Some(item);
        until(|| {
            let published = producer.try_publish(|slot| {
                if let Some(item) = item.take() {
                    *slot = item;
                }
            });
            published.ok().map(drop)
        });
    };
    let read = move |eater: &mut Eater| {
        until(|| {
            let mut events = poller.take(256).ok()?;
            for event in &mut events {
                eater.eat(event.look());
            }
            Some(())
        });
    };
    moved(feed, vec![out], vec![read])
}

/// A stream of ours whose producers `open` starts. Each consumer reads in place, up to `batch`
/// events at a time. Timed from the call.
///
/// # Errors
/// The stream could not be opened, or did not end normally.
pub fn stream<T: Decode + Send + 'static>(
    feed: &Feed,
    batch: u32,
    open: impl FnOnce() -> Result<StreamReader<T>, Problem>,
    look: impl Fn(T::View<'_>) -> Look + Send + Sync,
) -> Result<Fed, Problem> {
    let failed = |why: thalweg::Failure| Problem::Check(format!("a stream ended: {why}"));
    let began = Instant::now();
    let first = open()?;
    let others: Result<Vec<_>, _> = (1..feed.consumers).map(|_| first.tee()).collect();
    let mut readers = others.map_err(failed)?;
    readers.push(first);
    let look = &look;
    let eaters = thread::scope(|scope| {
        let threads: Vec<_> = readers
            .into_iter()
            .map(|mut reader| {
                scope.spawn(move || {
                    let mut eater = feed.eater();
                    while let Some(batch) = reader.next_batch(batch, u64::MAX).map_err(failed)? {
                        batch.iter().for_each(|event| eater.eat(look(event)));
                    }
                    Ok(eater)
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|reader| reader.join().expect("a consumer does not panic"))
            .collect::<Result<Vec<Eater>, Problem>>()
    })?;
    Ok((began.elapsed(), eaters))
}
