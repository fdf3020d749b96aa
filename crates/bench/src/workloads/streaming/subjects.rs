//! The subjects: events of any kind from producers to consumers, through channels, rings, a stream
//! of ours, and callbacks. All of them run on the one [`Driver`].
//!
//! Batches follow one rule on both sides (`partial=yes`): a part of a batch is written as soon as it
//! fits, and read as soon as it is there.

use std::ffi::c_void;
use std::hint::black_box;
use std::ops::ControlFlow::Continue;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use thalweg::StreamReader;
use thalweg::port::Event as Delivered;
use thalweg::queue::clock;
use thalweg::wire::Decode;
use thalweg_lab::LabService;
use thalweg_lab::events::{Pace, event, tails};
use thalweg_lab::gate::{NextGate, number};
use thalweg_lab::lab::LabClient;
use thalweg_peers::crates::{crossbeam_channel, disruptor, rtrb};
use thalweg_peers::patience::until;

use super::event::{Consumer, Event, Item, Look, Work};
use crate::problem::Problem;
use crate::workloads::queue::driver::Driver;

/// The default capacity of a stream. The other subjects have the same.
pub const CAPACITY: u32 = 8192;

/// The events to move.
#[derive(Clone, Copy, Debug)]
pub struct Feed {
    /// Number of events of all producers together, a multiple of their number. Each consumer gets
    /// each event.
    pub count: u64,
    /// Capacity of each bounded channel, ring and stream.
    pub capacity: u32,
    /// Events at a time, if the subject has batches.
    pub batch: u32,
    /// Threads that write.
    pub producers: u64,
    /// Threads that read.
    pub consumers: u64,
    /// Bytes of both tails.
    pub tails: u32,
    /// Events a second; 0 means as fast as possible.
    pub per_s: u64,
    /// The work of each consumer.
    pub work: Work,
}

/// The elapsed time, and the consumers.
pub type Moved = (Duration, Vec<Consumer>);

/// Makes the events of one producer.
struct Maker {
    tails: (String, Vec<u8>),
    pace: Option<Pace>,
}

impl Maker {
    #[inline]
    fn make<T: Item>(&mut self, n: u64) -> T {
        let at = match &mut self.pace {
            Some(pace) => pace.next(|due| {
                thread::sleep(due.saturating_duration_since(Instant::now()));
            }),
            None => n,
        };
        T::make(n, at, &self.tails)
    }
}

/// Runs the threads: each of `outs` writes its share, each of `ins` reads until it has all events.
/// An `out` gets the number of the next event and a maximum count. It returns the number of events
/// that it wrote; 0 if none fits.
fn moved(
    subject: &str,
    feed: Feed,
    outs: Vec<impl FnMut(u64, u64, &mut Maker) -> u64 + Send + 'static>,
    ins: Vec<impl FnMut(&mut Consumer) + Send + 'static>,
) -> Result<Moved, Problem> {
    let mut driver = Driver::new(subject, outs.len() + ins.len(), 0);
    for (own, mut out) in (0..).zip(outs) {
        driver.produce(None, move |mark| {
            let mut maker = Maker {
                tails: tails(feed.tails),
                pace: Pace::new(feed.per_s),
            };
            let mut next = number(mark, own, 0);
            let end = next + feed.count / feed.producers;
            while next < end {
                let most = u64::from(feed.batch).min(end - next);
                next += until(|| Some(out(next, most, &mut maker)).filter(|sent| *sent > 0));
            }
            None
        })?;
    }
    for mut read in ins {
        driver.consume(None, move |mark| {
            let mut consumer = Consumer::new(feed.work, feed.producers, mark);
            while consumer.taken() < feed.count {
                read(&mut consumer);
            }
            Some(consumer)
        })?;
    }
    let (ends, run) = driver.run()?;
    Ok((run.elapsed, ends.into_iter().flatten().collect()))
}

/// Channels, one per consumer. `receive` returns `None` only if it has to be called again.
fn channels<T: Item, S: Clone + Send + 'static, R: Send + 'static>(
    subject: &str,
    feed: Feed,
    make: impl Fn() -> (S, R),
    send: fn(&S, T),
    receive: fn(&R) -> Option<T>,
) -> Result<Moved, Problem> {
    let (senders, receivers): (Vec<S>, Vec<R>) = (0..feed.consumers).map(|_| make()).unzip();
    let outs = (0..feed.producers).map(|_| {
        let senders = senders.clone();
        move |n, _, maker: &mut Maker| {
            let item: T = maker.make(n);
            if let [others @ .., last] = senders.as_slice() {
                others.iter().for_each(|other| send(other, item.clone()));
                send(last, item);
            }
            1
        }
    });
    let outs = outs.collect();
    let ins = receivers.into_iter().map(|receiver| {
        move |consumer: &mut Consumer| {
            if let Some(item) = receive(&receiver) {
                consumer.take(item.look());
            }
        }
    });
    moved(subject, feed, outs, ins.collect())
}

/// How long the consumer of the original's unbounded channel waits for an event before it looks
/// again.
const PATIENCE: Duration = Duration::from_millis(100);

/// `rtrb`: one producer, and one ring per consumer; in chunks if there is one ring and `batch` is
/// more than 1.
fn ring<T: Item>(feed: Feed) -> Result<Moved, Problem> {
    let links = (0..feed.consumers).map(|_| rtrb::RingBuffer::<T>::new(feed.capacity as usize));
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
    let chunked = feed.batch > 1 && feed.consumers == 1;
    let out = move |n: u64, most: u64, maker: &mut Maker| {
        let [others @ .., last] = producers.as_mut_slice() else {
            return 0;
        };
        if !chunked {
            let item: T = maker.make(n);
            others
                .iter_mut()
                .for_each(|other| push(other, item.clone()));
            push(last, item);
            return 1;
        }
        let chunk = match last.write_chunk_uninit(most as usize) {
            Err(rtrb::chunks::ChunkError::TooFewSlots(free)) => last.write_chunk_uninit(free),
            chunk => chunk,
        };
        chunk.map_or(0, |chunk| {
            chunk.fill_from_iter((n..).map(|n| maker.make(n))) as u64
        })
    };
    let ins = consumers.into_iter().map(|mut consumer| {
        move |to: &mut Consumer| {
            if !chunked {
                to.take(until(|| consumer.pop().ok()).look());
                return;
            }
            let there = until(|| Some(consumer.slots()).filter(|slots| *slots > 0));
            if let Ok(chunk) = consumer.read_chunk(there.min(feed.batch as usize)) {
                let (front, back) = chunk.as_slices();
                front
                    .iter()
                    .chain(back)
                    .for_each(|item| to.take(item.look()));
                chunk.commit_all();
            }
        }
    });
    moved("rtrb", feed, vec![out], ins.collect())
}

/// `disruptor`, one producer and one consumer. One event at a time, the consumer polls all
/// available events, as the documentation recommends.
fn preallocated<T: Item>(feed: Feed) -> Result<Moved, Problem> {
    use disruptor::Producer;

    let first = || T::make(0, 0, &(String::new(), Vec::new()));
    let capacity = feed.capacity as usize;
    let (mut poller, builder) =
        disruptor::build_single_producer(capacity, first, disruptor::BusySpin).new_event_poller();
    let mut producer = builder.build();
    let out = move |n: u64, most: u64, maker: &mut Maker| {
        if most == 1 {
            let mut item = Some(maker.make(n));
            return until(|| {
                let published = producer.try_publish(|slot| {
                    if let Some(item) = item.take() {
                        *slot = item;
                    }
                });
                published.ok().map(|_| 1)
            });
        }
        let mut publish = |count: u64| {
            producer.try_batch_publish(count as usize, |slots| {
                for (slot, n) in slots.zip(n..) {
                    *slot = maker.make(n);
                }
            })
        };
        match publish(most) {
            Ok(_) => most,
            Err(disruptor::MissingFreeSlots(missing)) => match most.saturating_sub(missing) {
                0 => 0,
                free => publish(free).map_or(0, |_| free),
            },
        }
    };
    let most = match feed.batch {
        1 => u64::MAX >> 1,
        batch => u64::from(batch),
    };
    let read = move |consumer: &mut Consumer| {
        until(|| {
            let mut events = if most == u64::MAX >> 1 {
                poller.poll().ok()?
            } else {
                poller.take(most).ok()?
            };
            (&mut events).for_each(|event| consumer.take(event.look()));
            Some(())
        });
    };
    moved("disruptor", feed, vec![out], vec![read])
}

/// Moves the events of `feed` through the peer with this name: `std`, `std_mpsc_unbounded`,
/// `crossbeam`, `crossbeam_bounded_1024` or another capacity, `rtrb`, `disruptor`.
///
/// # Errors
/// There is no such peer, or a thread fails.
pub fn by_peer<T: Item>(name: &str, mut feed: Feed) -> Result<Moved, Problem> {
    if let Some(own) = name.strip_prefix("crossbeam_bounded_") {
        let unknown = |_| Problem::Usage(format!("`{name}` is no subject here"));
        feed.capacity = own.parse().map_err(unknown)?;
    }
    let polled: fn(&mpsc::Receiver<T>) -> Option<T> = |from| from.recv_timeout(PATIENCE).ok();
    let blocking: fn(&mpsc::Receiver<T>) -> Option<T> = |from| from.recv().ok();
    let std = |receive| {
        let send = |to: &mpsc::Sender<T>, item| drop(to.send(item));
        channels(name, feed, mpsc::channel, send, receive)
    };
    match name {
        "std" => std(blocking),
        "std_mpsc_unbounded" => std(polled),
        "rtrb" => ring::<T>(feed),
        "disruptor" => preallocated::<T>(feed),
        name if name.starts_with("crossbeam") => channels(
            name,
            feed,
            || crossbeam_channel::bounded(feed.capacity as usize),
            |to: &crossbeam_channel::Sender<T>, item| drop(to.send(item)),
            |from: &crossbeam_channel::Receiver<T>| from.recv().ok(),
        ),
        other => crate::workloads::queue::subjects::unknown(other),
    }
}

/// No channel: the producer calls the consumer, which is a C function behind a `Box<dyn Fn>`.
///
/// # Errors
/// The thread fails.
pub fn direct_callback(feed: Feed) -> Result<Moved, Problem> {
    extern "C" fn consume(event: *const Event, context: *mut c_void) {
        // SAFETY: the caller below passes an event and the consumer, both alive and not otherwise
        // used during the call.
        let (event, consumer) = unsafe { (&*event, &mut *context.cast::<Consumer>()) };
        consumer.take(event.look());
    }

    let mut driver = Driver::new("direct_callback", 1, 0);
    driver.consume(None, move |mark| {
        let mut consumer = Consumer::new(feed.work, 1, mark);
        let context = (&raw mut consumer).cast::<c_void>();
        let sink: Box<dyn Fn(&Event)> = black_box(Box::new(move |event| consume(event, context)));
        let tails = tails(feed.tails);
        for n in mark..mark + feed.count {
            let event = Event::make(n, n, &tails);
            sink(&event);
        }
        drop(sink);
        consumer
    })?;
    let (consumers, run) = driver.run()?;
    Ok((run.elapsed, consumers))
}

fn failed(why: impl std::fmt::Display) -> Problem {
    Problem::Check(format!("a stream ended: {why}"))
}

/// The service that writes our streams, started once.
#[derive(Debug)]
pub struct Streams {
    /// Its client.
    pub lab: LabClient,
    next_gate: NextGate,
}

impl Streams {
    /// Starts it.
    ///
    /// # Errors
    /// The runtime could not be started.
    pub fn start() -> Result<Self, Problem> {
        let next_gate = NextGate::default();
        let its = next_gate.clone();
        let lab = LabClient::start(move || LabService::at(its.clone())).map_err(failed)?;
        Ok(Self { lab, next_gate })
    }

    /// Opens a stream whose writers wait at the driver's gate.
    fn at_gate<T: Decode, R: Send + 'static>(
        &self,
        driver: &Driver<R>,
        open: impl FnOnce(&LabClient) -> Result<StreamReader<T>, Problem>,
    ) -> Result<StreamReader<T>, Problem> {
        self.next_gate.set(Some(driver.gate()));
        let stream = open(&self.lab);
        self.next_gate.set(None);
        stream
    }

    /// Moves the events of `feed` through a stream of ours that `open` opens. Each consumer reads in
    /// place.
    ///
    /// # Errors
    /// The stream could not be opened, or did not end normally.
    pub fn read<T: Decode + Send + 'static>(
        &self,
        feed: Feed,
        open: impl FnOnce(&LabClient) -> Result<StreamReader<T>, Problem>,
        look: impl Fn(T::View<'_>) -> Look + Copy + Send + 'static,
    ) -> Result<Moved, Problem> {
        let threads = (feed.consumers as usize, feed.producers as usize);
        let mut driver = Driver::new("thalweg", threads.0, threads.1);
        let first = self.at_gate(&driver, open)?;
        let others: Result<Vec<_>, _> = (1..feed.consumers).map(|_| first.tee()).collect();
        let mut readers = others.map_err(failed)?;
        readers.push(first);
        for mut reader in readers {
            driver.consume(None, move |mark| {
                let mut consumer = Consumer::new(feed.work, feed.producers, mark);
                while let Some(batch) = reader.next_batch(feed.batch, u64::MAX).map_err(failed)? {
                    batch.iter().for_each(|event| consumer.take(look(event)));
                }
                Ok(consumer)
            })?;
        }
        let (ends, run) = driver.run()?;
        let consumers: Result<Vec<_>, Problem> = ends.into_iter().collect();
        Ok((run.elapsed, consumers?))
    }

    /// Has a callback take the events of `feed` on the thread that writes them. With `reserved`, the
    /// service writes each event field by field in the stream's memory. The clock ends when the
    /// callback has the last event.
    ///
    /// # Errors
    /// The stream did not end normally.
    pub fn subscribe(&self, feed: Feed, reserved: bool) -> Result<Moved, Problem> {
        let mut driver = Driver::new("thalweg", 1, 1);
        let gate = driver.gate();
        let stream = self.at_gate(&driver, |lab| match reserved {
            true => lab
                .events_reserved(feed.count)
                .wait()
                .map_err(|why| failed(format!("{why:?}"))),
            false => events(lab, feed, false),
        })?;
        let (told, ended) = mpsc::sync_channel(1);
        let mut consumer = None;
        let subscription = stream.subscribe(move |event| {
            match event {
                Delivered::Records(records) => {
                    // The gate is open, because there is an event.
                    let mark = || gate.begin().unwrap_or_default();
                    let to = consumer.get_or_insert_with(|| Consumer::new(feed.work, 1, mark()));
                    records.iter().for_each(|event| to.take((&event).into()));
                }
                Delivered::Ended { result, lost, .. } => {
                    let consumer = consumer.take().ok_or_else(|| failed("it had no event"));
                    let result = result.map_err(failed).and_then(|()| match lost {
                        0 => consumer,
                        _ => Err(failed(format!("{lost} events were lost"))),
                    });
                    // The receiver is alive: it waits below.
                    let _ = told.send((result, clock::now()));
                }
            }
            Continue(())
        });
        let subscription = subscription.map_err(failed)?;
        driver.consume_elsewhere(None, move |_| {
            let gone = |_| (Err(failed("the callback is gone")), clock::now());
            ended.recv().unwrap_or_else(gone)
        })?;
        let (ends, run) = driver.run()?;
        subscription.join(u64::MAX).map_err(failed)?;
        let consumers: Result<Vec<_>, Problem> = ends.into_iter().collect();
        Ok((run.elapsed, consumers?))
    }

    /// Compares every field of `count` events, which are written `batch` at a time.
    ///
    /// # Errors
    /// An event has wrong contents.
    pub fn verify(&self, count: u64, batch: u32) -> Result<(), Problem> {
        let mut next = 0;
        let opened = self.lab.events(count, batch).wait();
        let mut stream = opened.map_err(failed)?;
        while let Some(batch) = stream.next_batch(batch, u64::MAX).map_err(failed)? {
            for read in batch.iter() {
                if read != event(next, next, "", &[]) {
                    return Err(Problem::Check(format!("event {next} is {read:?}")));
                }
                next += 1;
            }
        }
        if next == count {
            Ok(())
        } else {
            Err(Problem::Check(format!("{next} of {count} events")))
        }
    }
}

/// Opens a stream of events of the capacity that `feed` names; `at_once` if its reader does not
/// linger.
///
/// # Errors
/// No stream has this capacity.
pub fn events(
    lab: &LabClient,
    feed: Feed,
    at_once: bool,
) -> Result<StreamReader<thalweg_lab::lab::Event>, Problem> {
    let Feed {
        count,
        batch,
        tails,
        per_s,
        ..
    } = feed;
    let writers = u32::try_from(feed.producers).map_err(failed)?;
    let opening = match feed.capacity {
        CAPACITY if at_once => lab.feed_at_once(count, batch, writers, tails, per_s),
        CAPACITY => lab.feed(count, batch, writers, tails, per_s),
        256 => lab.events_in256(count, batch),
        1024 => lab.events_in1024(count, batch),
        other => return Err(failed(format!("none has capacity {other}"))),
    };
    opening.wait().map_err(failed)
}
