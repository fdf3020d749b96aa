//! Rings that are written and read in place, one event or a batch at a time: `rtrb`, `disruptor`.
//! Neither can block, so both sides poll.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use thalweg_peers::crates::{disruptor, rtrb};
use thalweg_peers::patience::until;

use super::event::{Event, Seen};
use crate::problem::Problem;

/// The capacity of a stream of ours.
const CAPACITY: usize = 8192;

/// Moves `count` events from another thread to this one. `send(n, room)` writes up to `room` events
/// from number `n` on and returns how many; `receive` reads the available events.
fn moved(
    count: u64,
    mut send: impl FnMut(u64, u64) -> u64 + Send,
    mut receive: impl FnMut(&mut Seen) -> u64,
) -> Result<(Duration, Seen), Problem> {
    let ready = Barrier::new(2);
    let mut seen = Seen::default();
    let elapsed = thread::scope(|scope| {
        let ready = &ready;
        scope.spawn(move || {
            ready.wait();
            let mut next = 0;
            while next < count {
                next += send(next, count - next);
            }
        });
        ready.wait();
        let began = Instant::now();
        let mut read = 0;
        while read < count {
            read += receive(&mut seen);
        }
        began.elapsed()
    });
    Ok((elapsed, seen))
}

/// `rtrb`, in chunks where `batch` is more than one.
///
/// # Errors
/// None.
pub fn ring(count: u64, batch: u32) -> Result<(Duration, Seen), Problem> {
    let (mut producer, mut consumer) = rtrb::RingBuffer::new(CAPACITY);
    if batch == 1 {
        return moved(
            count,
            move |n, _| {
                let mut event = Some(Event::new(n));
                until(|| match producer.push(event.take()?) {
                    Ok(()) => Some(1),
                    Err(rtrb::PushError::Full(back)) => {
                        event = Some(back);
                        None
                    }
                })
            },
            |seen| {
                seen.add_event(&until(|| consumer.pop().ok()));
                1
            },
        );
    }
    moved(
        count,
        move |n, left| {
            let length = left.min(u64::from(batch)) as usize;
            until(|| Some(producer.slots()).filter(|slots| *slots >= length));
            match producer.write_chunk_uninit(length) {
                Ok(chunk) => chunk.fill_from_iter((n..).map(Event::new)) as u64,
                Err(_) => 0,
            }
        },
        |seen| {
            let there = until(|| Some(consumer.slots()).filter(|slots| *slots > 0));
            let Ok(chunk) = consumer.read_chunk(there.min(batch as usize)) else {
                return 0;
            };
            let (first, second) = chunk.as_slices();
            first
                .iter()
                .chain(second)
                .for_each(|event| seen.add_event(event));
            let read = chunk.len() as u64;
            chunk.commit_all();
            read
        },
    )
}

/// `disruptor`, in batches where `batch` is more than one.
///
/// # Errors
/// None.
pub fn preallocated(count: u64, batch: u32) -> Result<(Duration, Seen), Problem> {
    use disruptor::Producer;

    let (mut poller, builder) =
        disruptor::build_single_producer(CAPACITY, || Event::new(0), disruptor::BusySpin)
            .new_event_poller();
    let mut producer = builder.build();
    moved(
        count,
        move |n, left| {
            if batch == 1 {
                return until(|| {
                    let published = producer.try_publish(|slot| *slot = Event::new(n));
                    published.is_ok().then_some(1)
                });
            }
            let length = left.min(u64::from(batch));
            until(|| {
                let published = producer.try_batch_publish(length as usize, |slots| {
                    for (slot, n) in slots.zip(n..) {
                        *slot = Event::new(n);
                    }
                });
                published.is_ok().then_some(length)
            })
        },
        |seen| {
            until(|| {
                let mut events = poller.take(u64::from(batch)).ok()?;
                let mut read = 0;
                for event in &mut events {
                    seen.add_event(event);
                    read += 1;
                }
                Some(read)
            })
        },
    )
}
