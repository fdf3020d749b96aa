//! `lanes`: only the structure of Thalweg's mpsc channel, with the ablation's rules instead of its
//! own.
//!
//! No thread waits in the channel: the consumer only tries, and sleeps at the [`Bell`]. The figure
//! includes the channel's check for its own waiters on each send, which reads one word.
//!
//! The edge belongs to a lane, as it belongs to a shard in the mutex shards. A lane has no word
//! that both sides write, so the edge needs an extra protocol. The consumer publishes how many
//! requests of each producer it has taken, and passes a fence before it checks again. The producer
//! passes a fence after it added a request, and reads that number. If all earlier requests were
//! taken, the lane was empty, and the producer rings. Otherwise the consumer has not published the
//! number yet: it will publish it, pass its fence, check again, and find the new request.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use thalweg_queue::mpsc::{Receiver, Sender, unbounded};

use super::bell::{Bell, Rule};
use super::path::{Found, Opened, Refused, Structure};
use super::request::{Request, Submitted};

/// Requests that the consumer takes at a time.
const BATCH: usize = 256;

/// See the module. Its state belongs to the ends of the channel.
#[derive(Debug)]
pub struct Lanes;

/// How many requests of one producer the consumer has taken; on its own cache lines.
#[repr(align(128))]
#[derive(Debug, Default)]
pub struct Taken(AtomicU64);

/// The state of a producer.
#[derive(Debug)]
pub struct LaneEntry {
    sender: Sender<Submitted>,
    sent: u64,
    taken: Arc<Taken>,
}

/// The state of the consumer.
#[derive(Debug)]
pub struct LaneExit {
    receiver: Receiver<Submitted>,
    batch: Vec<Submitted>,
    /// By producer: the number of taken requests, and the word that publishes it.
    taken: Vec<(u64, Arc<Taken>)>,
}

impl Structure for Lanes {
    type Entry = LaneEntry;
    type Exit = LaneExit;

    fn open(producers: usize) -> Opened<Self, LaneEntry, LaneExit> {
        let (sender, receiver) = unbounded();
        let taken: Vec<Arc<Taken>> = (0..producers).map(|_| Arc::default()).collect();
        let entry = |taken: &Arc<Taken>| LaneEntry {
            sender: sender.clone(),
            sent: 0,
            taken: Arc::clone(taken),
        };
        let entries = taken.iter().map(entry).collect();
        let exit = LaneExit {
            receiver,
            batch: Vec::with_capacity(BATCH),
            taken: taken.into_iter().map(|taken| (0, taken)).collect(),
        };
        Ok((Self, entries, exit))
    }

    #[inline]
    unsafe fn push<R: Rule>(
        &self,
        entry: &mut LaneEntry,
        request: Submitted,
        bell: &Bell,
    ) -> Result<bool, Refused> {
        entry.sender.send(request).map_err(|_| Refused)?;
        let mut was_empty = false;
        if R::EDGE {
            fence(Ordering::SeqCst);
            was_empty = entry.taken.0.load(Ordering::Relaxed) == entry.sent;
            entry.sent += 1;
        }
        Ok(R::published(bell, was_empty))
    }

    fn drain<R: Rule>(&self, exit: &mut LaneExit, run: &mut impl FnMut(&Request)) -> Found {
        let mut found = Found::Nothing;
        while exit.receiver.try_recv_batch(&mut exit.batch, BATCH).is_ok() {
            found = Found::Some;
            for Submitted(request) in exit.batch.drain(..) {
                // SAFETY: the request was submitted and is run only here, so it is alive until
                // `run` returns.
                let request = unsafe { request.as_ref() };
                if R::EDGE {
                    exit.taken[request.producer()].0 += 1;
                }
                run(request);
            }
        }
        if R::EDGE && found == Found::Some {
            for (count, taken) in &exit.taken {
                if taken.0.load(Ordering::Relaxed) != *count {
                    taken.0.store(*count, Ordering::Relaxed);
                }
            }
            fence(Ordering::SeqCst);
        }
        found
    }
}
