//! Writing into a stream: lanes, credit, and the one place of the policy `latest`.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use thalweg_runtime::{Woke, wait};
use thalweg_wire::{Encode, NoRoom};

use crate::code::{Code, Failure, would_park};
use crate::service::Policy;
use crate::stream::core::{LANES, Lane, StreamCore, TAIL_BYTES, lock};
use crate::stream::segment::Segment;

/// A record may be this large, and no larger.
const LARGEST_RECORD: u32 = 64 << 20;

impl StreamCore {
    pub(crate) fn add_writer(&self) {
        self.writers.fetch_add(1, Ordering::Relaxed);
    }

    /// The last writer's leaving is the regular end. A writer that a panic unwinds never counts as having left: the call's
    /// guard ends the stream, with the panic's message, and no other writer's leaving may come before it.
    pub(crate) fn remove_writer(&self, lane: Option<u8>) {
        if let Some(lane) = lane {
            lock(&self.credit).free_lanes.push(lane);
        }
        if std::thread::panicking() {
            return;
        }
        if self.writers.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.end(Code::Closed.because("the stream has ended"));
        }
    }

    /// A lane for a writer, and whether it has it for itself.
    pub(crate) fn take_lane(&self) -> (u8, bool) {
        let mut credit = lock(&self.credit);
        if let Some(lane) = credit.free_lanes.pop() {
            return (lane, true);
        }
        let lane = credit.lanes % LANES as u8;
        let own = (credit.lanes as usize) < LANES;
        if own {
            credit.lanes += 1;
        }
        (lane, own)
    }

    fn lane(&self, lane: u8) -> &Lane {
        self.lanes[lane as usize].get_or_init(|| Lane {
            open: Mutex::new(None),
            segments: Mutex::default(),
            taken: AtomicU32::new(0),
        })
    }

    /// Writes one record; waits for credit.
    pub(crate) fn send<T: Encode + ?Sized>(&self, lane: u8, value: &T) -> Result<(), Failure> {
        self.check_open()?;
        match self.options.policy {
            Policy::Block => self.send_in_lane(lane, value),
            Policy::Latest => self.send_latest(value),
        }
    }

    fn send_in_lane<T: Encode + ?Sized>(&self, number: u8, value: &T) -> Result<(), Failure> {
        let lane = self.lane(number);
        let mut tails = self.slots * TAIL_BYTES;
        loop {
            {
                let mut open = lock(&lane.open);
                if let Some(segment) = &*open {
                    match segment.write(value) {
                        Ok(()) => break,
                        Err(NoRoom { needed }) => {
                            let needed = needed.ok_or_else(too_large)?;
                            if needed > LARGEST_RECORD {
                                return Err(too_large());
                            }
                            tails = tails.max(needed + 8);
                            segment.seal();
                            *open = None;
                        }
                    }
                }
                if let Some(segment) = self.take_segment(lane, tails)? {
                    lock(&lane.segments).push_back(Arc::clone(&segment));
                    *open = Some(segment);
                    continue;
                }
            }
            // Without the lane's lock: who shares the lane must not be kept from its worker.
            if !wait::may_park() {
                return Err(would_park());
            }
            if wait::park(None) == Woke::Stopping {
                return Err(Code::ShutDown.because("the runtime stops"));
            }
            self.check_open()?;
        }
        // Rule 4.
        let bit = 1 << number;
        if self.ready.load(Ordering::Relaxed) & bit == 0 {
            self.ready.fetch_or(bit, Ordering::Relaxed);
        }
        self.gate.signal();
        Ok(())
    }

    /// Rule 3. `None`: no credit; the caller will be woken.
    fn take_segment(&self, lane: &Lane, tails: u32) -> Result<Option<Arc<Segment>>, Failure> {
        let mut credit = lock(&self.credit);
        self.check_open()?;
        let least = lane.taken.load(Ordering::Relaxed) < 2;
        if !least && credit.taken >= self.most {
            credit.waiting.push(wait::waker());
            return Ok(None);
        }
        let segment = if tails > self.slots * TAIL_BYTES {
            Segment::new(self.stride, 1, tails).map(Arc::new)
        } else {
            credit.spare.pop().or_else(|| self.new_segment())
        };
        let segment =
            segment.ok_or_else(|| Code::Overloaded.because("no memory for the stream"))?;
        credit.taken += 1;
        lane.taken.fetch_add(1, Ordering::Relaxed);
        Ok(Some(segment))
    }

    fn new_segment(&self) -> Option<Arc<Segment>> {
        Segment::new(self.stride, self.slots, self.slots * TAIL_BYTES).map(Arc::new)
    }

    /// Rule 6.
    fn send_latest<T: Encode + ?Sized>(&self, value: &T) -> Result<(), Failure> {
        let spare = lock(&self.credit).spare.pop();
        let mut segment = spare
            .or_else(|| self.new_segment())
            .ok_or_else(|| Code::Overloaded.because("no memory for the stream"))?;
        if let Err(NoRoom { needed }) = segment.write(value) {
            let needed = needed
                .filter(|n| *n <= LARGEST_RECORD)
                .ok_or_else(too_large)?;
            segment = Segment::new(self.stride, 1, needed + 8)
                .map(Arc::new)
                .ok_or_else(|| Code::Overloaded.because("no memory for the stream"))?;
            segment.write(value).map_err(|_| too_large())?;
        }
        let overtaken = {
            let mut latest = lock(&self.latest);
            let overtaken = latest.newest.replace(segment);
            latest.conflated += u64::from(overtaken.is_some());
            overtaken
        };
        if let Some(segment) = overtaken {
            self.keep(segment);
        }
        self.gate.signal();
        Ok(())
    }
}

fn too_large() -> Failure {
    Code::Argument.because(format!("a record is larger than {LARGEST_RECORD} bytes"))
}
