//! Reading a stream: batches, and giving them back.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use thalweg_queue::{Parker, Wake as Parked, clock};
use thalweg_runtime::{Woke, wait};

use crate::code::{Code, Failure};
use crate::service::Policy;
use crate::stream::core::{LANES, Reading, StreamCore, TAIL_BYTES, lock};
use crate::stream::segment::Segment;

/// A batch that was acquired and not yet released.
#[derive(Clone, Debug)]
pub struct OpenBatch {
    pub(crate) segment: Arc<Segment>,
    lane: usize,
    pub(crate) from: u32,
    /// Records in it.
    pub count: u32,
    /// Number of its first record.
    pub first_sequence: u64,
    /// Records lost right before it.
    pub lost_before: u64,
}

impl OpenBatch {
    /// The first byte of the memory; offsets count from here. Valid until the batch is released.
    pub fn base(&self) -> *const u8 {
        self.segment.base()
    }

    /// Offset of the first record.
    pub fn first(&self) -> u32 {
        self.from * self.segment.stride()
    }

    /// Bytes from one record to the next.
    pub fn stride(&self) -> u32 {
        self.segment.stride()
    }

    /// Bytes from the base that may be read.
    pub fn size(&self) -> u32 {
        self.segment.readable()
    }
}

impl StreamCore {
    /// Segments are used again if nobody else has them and they are of the usual size.
    pub(super) fn keep(&self, mut segment: Arc<Segment>) {
        if let Some(sole) = Arc::get_mut(&mut segment)
            && sole.is_usual(self.slots, self.slots * TAIL_BYTES)
        {
            sole.reset();
            lock(&self.credit).spare.push(segment);
        }
    }

    fn give_back(&self, lane: usize, segment: Arc<Segment>) {
        if let Some(lane) = self.lanes[lane].get() {
            lane.taken.fetch_sub(1, Ordering::Relaxed);
        }
        self.keep(segment);
        lock(&self.credit).taken -= 1;
        self.wake_writers();
    }

    /// What lane `number` holds: a run of its first segment that has something.
    pub(super) fn run_of(
        &self,
        reading: &mut Reading,
        number: usize,
    ) -> Option<(Arc<Segment>, u32, u32)> {
        let lane = self.lanes[number].get()?;
        loop {
            let first = lock(&lane.segments).front().cloned()?;
            // Sealed is read first: records committed after it was not, show up later.
            let sealed = first.is_sealed();
            let (read, records) = (reading.read[number], first.records());
            if records > read {
                return Some((first, read, records - read));
            }
            if !sealed {
                return None;
            }
            drop(lock(&lane.segments).pop_front());
            reading.read[number] = 0;
            self.give_back(number, first);
        }
    }

    fn take_run(&self, reading: &mut Reading, max: u32) -> Option<OpenBatch> {
        reading.read.resize(LANES, 0);
        let begin = reading.next_lane;
        for ahead in 0..LANES {
            let lane = (begin + ahead) % LANES;
            if let Some((segment, from, count)) = self.run_of(reading, lane) {
                // The same lane again next time, until its segment is through: records of one file stay together.
                reading.next_lane = if count > max {
                    lane
                } else {
                    (lane + 1) % LANES
                };
                let count = count.min(max);
                reading.read[lane] = from + count;
                return Some(OpenBatch {
                    segment,
                    lane,
                    from,
                    count,
                    first_sequence: reading.sequence,
                    lost_before: 0,
                });
            }
        }
        None
    }

    fn take_latest(&self, reading: &Reading) -> Option<OpenBatch> {
        let mut latest = lock(&self.latest);
        let segment = latest.newest.take()?;
        let lost = std::mem::take(&mut latest.conflated);
        Some(OpenBatch {
            segment,
            lane: 0,
            from: 0,
            count: 1,
            first_sequence: reading.sequence + lost,
            lost_before: lost,
        })
    }

    fn take(&self, reading: &mut Reading, max: u32) -> Option<OpenBatch> {
        let batch = match self.options.policy {
            Policy::Block => self.take_run(reading, max),
            Policy::Latest => self.take_latest(reading),
        }?;
        reading.sequence = batch.first_sequence + u64::from(batch.count);
        reading.last_given = clock::now();
        reading.open = Some(batch.clone());
        Some(batch)
    }

    /// A batch of at most `max` records, if there is one.
    ///
    /// # Errors
    /// `would_park`; with `true`, how the stream ended: `closed` regularly. `argument`: a batch is open, another thread reads.
    pub fn try_acquire(&self, max: u32) -> Result<OpenBatch, (Failure, bool)> {
        let mut reading = lock(&self.reading);
        if reading.open.is_some() {
            let why = "the batch before is still open: release it first";
            return Err((Code::Argument.because(why), false));
        }
        if max == 0 {
            return Err((Code::Argument.because("a batch of 0 records"), false));
        }
        if self.closed.load(Ordering::Acquire) {
            return Err((Code::Stale.because("the stream is closed"), false));
        }
        // Before the look: what was committed before the ending is seen after it.
        let ending = self.ending.get();
        match self.take(&mut reading, max) {
            Some(batch) => Ok(batch),
            None => match ending {
                Some(why) => Err((why.clone(), true)),
                None => Err((Code::WouldPark.because("nothing there yet"), false)),
            },
        }
    }

    /// As [`try_acquire`](Self::try_acquire), and waits until `deadline` ([`clock`]; 0: not at all).
    ///
    /// # Errors
    /// As there, and `timed_out`, `interrupted`. `would_park` also where an actor must not wait, as in [`native`](thalweg_runtime::native).
    pub fn acquire(&self, max: u32, deadline: u64) -> Result<OpenBatch, (Failure, bool)> {
        if self.busy.swap(true, Ordering::Acquire) {
            let why = "another thread reads this stream";
            return Err((Code::Argument.because(why), false));
        }
        let result = self.acquire_alone(max, deadline);
        self.busy.store(false, Ordering::Release);
        result
    }

    fn acquire_alone(&self, max: u32, deadline: u64) -> Result<OpenBatch, (Failure, bool)> {
        let nothing = |result: &Result<_, (Failure, bool)>| matches!(result, Err((f, _)) if f.code == Code::WouldPark);
        loop {
            let result = self.try_acquire(max);
            if !nothing(&result) || deadline == 0 || !wait::may_park() {
                return result;
            }
            let lingers = if wait::in_actor() {
                None
            } else {
                self.lingers_until()
            };
            let woke = if let Some(until) = lingers {
                match Parker::current().park(Some(until.min(deadline))) {
                    Parked::Interrupted => Woke::Interrupted,
                    Parked::TimedOut if deadline <= until => Woke::TimedOut,
                    _ => continue,
                }
            } else {
                self.request_anew();
                self.gate.arm(wait::waker());
                let result = self.try_acquire(max);
                if !nothing(&result) {
                    self.gate.disarm();
                    return result;
                }
                wait::park(Some(deadline))
            };
            if woke != Woke::Woken {
                self.gate.disarm();
                let failure = match woke {
                    Woke::TimedOut => Code::TimedOut.because("nothing came until the deadline"),
                    Woke::Interrupted => Code::Interrupted.because("a signal arrived"),
                    Woke::Woken | Woke::Stopping => Code::ShutDown.because("the runtime stops"),
                };
                let last_look = self.try_acquire(max);
                return if nothing(&last_look) {
                    Err((failure, false))
                } else {
                    last_look
                };
            }
        }
    }

    /// Gives back the first `count` records of the open batch; with the last of them it is closed.
    ///
    /// # Errors
    /// `argument`: no batch is open, or it has fewer.
    pub fn release(&self, count: u32) -> Result<(), Failure> {
        let mut reading = lock(&self.reading);
        let Some(open) = &mut reading.open else {
            return Err(Code::Argument.because("no batch is open"));
        };
        if count > open.count {
            return Err(Code::Argument.because(format!(
                "the open batch has {} records, not {count}",
                open.count
            )));
        }
        open.count -= count;
        open.from += count;
        open.first_sequence += u64::from(count);
        open.lost_before = 0;
        if open.count > 0 {
            return Ok(());
        }
        let Some(OpenBatch { segment, lane, .. }) = reading.open.take() else {
            return Ok(());
        };
        match self.options.policy {
            Policy::Latest => self.keep(segment),
            Policy::Block => {
                drop(segment);
                // Rule 2: gives the segment back, if it was the last of it.
                self.run_of(&mut reading, lane);
            }
        }
        Ok(())
    }
}
