//! Writing into a stream: segments, credit, and what happens where it is full.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;

use thalweg_queue::clock;
use thalweg_runtime::{WakeReason, wait};
use thalweg_wire::{Encode, Encoder, NoRoom};

use crate::code::{Code, Failure, would_park};
use crate::nested::{self, LetGo};
use crate::service::Policy;
use crate::stream::core::{StreamCore, lock};
use crate::stream::counts::{Gap, Reason};
use crate::stream::pool;
use crate::stream::queue::Queue;
use crate::stream::segment::{Open, Segment};
use crate::stream::tee::{Absent, Room};
use crate::stream::waking::{DIRECT, MANY};

/// Control records that may wait for the reader.
const CONTROLS: usize = 64;

/// Where the tails of an empty segment begin, as far as their alignment goes.
const ALIGNED: u32 = 8;

/// What became of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// It is in the stream.
    Written,
    /// The stream is full and it was dropped; the reader is told how many were.
    Dropped,
}

/// What a writer has for itself.
#[derive(Debug)]
pub(super) struct Own {
    pub(super) number: u64,
    pub(super) open: Option<Open>,
    /// Readers that do not get what is written there.
    pub(super) absent: Vec<Absent>,
    /// Records that it gave and that are not in the stream's books yet.
    pub(super) published: u64,
    /// What is missing before its next record.
    pub(super) gap: Gap,
    /// The writer has said that nothing more comes.
    pub(super) is_finished: bool,
    /// Why a send of it failed, the last time that one did.
    refused: Option<Box<Failure>>,
    /// Why the stream ends where the writer is dropped without having finished.
    pub(super) unfinished: &'static str,
}

impl Own {
    /// Notes why a send failed, for the reader: the writer may be dropped for it.
    #[cold]
    pub(super) fn refuse(&mut self, why: Failure) -> Failure {
        self.refused = Some(Box::new(why.clone()));
        why
    }

    /// Why the stream ends: the writer was dropped without having finished.
    fn why_dropped(&self) -> Failure {
        Code::GuestLost.because(match &self.refused {
            Some(why) => format!("a writer was dropped after a send failed: {why}"),
            None => self.unfinished.to_owned(),
        })
    }
}

/// What a writer that needs a segment is told.
enum Place {
    Here(Open),
    /// It will be woken.
    Wait,
    Dropped(Reason),
}

impl StreamCore {
    pub(super) fn number(&self) -> Own {
        Own {
            number: self.numbers.fetch_add(1, Ordering::Relaxed),
            open: None,
            absent: Vec::new(),
            published: 0,
            gap: Gap::default(),
            is_finished: false,
            refused: None,
            unfinished: "a writer was dropped without finish()",
        }
    }

    pub(super) fn add_writer(&self) {
        self.writers.fetch_add(1, Ordering::Relaxed);
    }

    /// The stream ends regularly when the last writer leaves, if every one has finished; a writer that leaves without that ends it here.
    /// A writer that a panic takes along has never finished: the stream ends where the panic is caught, with its message, and no other
    /// writer's leaving may come before it. Where it was another call's code that panicked no guard knows of this stream, so it ends here.
    pub(super) fn remove_writer(self: &Arc<Self>, own: &mut Own) {
        self.settle_and_wake(own, |queue, own| {
            let gap = std::mem::take(&mut own.gap);
            queue.last_gap.add(gap);
            for tee in self.tees().iter() {
                lock(&tee.queue).last_gap.add(gap);
            }
        });
        match LetGo::now(self.call.handle()) {
            LetGo::Unwound => nested::end_when_left(self.call.handle(), Arc::clone(self) as _),
            LetGo::TakenAlong(why) => self.end(why),
            LetGo::Wanted if !own.is_finished => self.end(own.why_dropped()),
            LetGo::Wanted => {
                if self.writers.fetch_sub(1, Ordering::AcqRel) == 1 {
                    self.end(Code::Closed.because("the stream has ended"));
                }
            }
        }
    }

    /// Settles where no segment follows.
    fn settle_and_wake(&self, own: &mut Own, and: impl FnOnce(&mut Queue, &mut Own)) {
        let waiting = {
            let mut queue = lock(&self.queue);
            self.settle(&mut queue, own);
            and(&mut queue, own);
            let mut waiting = queue.give_back();
            for tee in self.tees().iter() {
                waiting.extend(lock(&tee.queue).give_back());
            }
            waiting
        };
        waiting.into_iter().for_each(Waker::wake);
        self.tell_surely();
    }

    /// Seals what the writer has open, and enters what it gave into the books.
    fn settle(&self, queue: &mut Queue, own: &mut Own) {
        if let Some(open) = own.open.take() {
            let records = open.seal();
            if !own.absent.is_empty() {
                self.lose_for(queue, std::mem::take(&mut own.absent), records);
            }
        }
        queue.publish(std::mem::take(&mut own.published));
    }

    /// Writes one record. The reader sees it once there are `batch` that it has not seen.
    ///
    /// What it takes of tails is counted first, room is made for it, and then it is written, at this one place; nothing that is not inlined
    /// is given it. So the compiler makes it where it is written, not in memory or registers of its own to be copied from there.
    #[inline(always)]
    pub(super) fn send<T: Encode + ?Sized>(
        &self,
        own: &mut Own,
        value: &T,
        batch: u32,
        deadline: u64,
    ) -> Result<Sent, Failure> {
        self.check_open()?;
        let (has_room, tails) = match &own.open {
            Some(open) => {
                let tails = open.measure(value);
                (tails.is_ok_and(|tails| open.has_room(tails)), tails)
            }
            None => (false, Encoder::measure(value, ALIGNED)),
        };
        if !has_room && !self.make_room(own, tails, deadline)? {
            return Ok(Sent::Dropped);
        }
        let Some(open) = &mut own.open else {
            unreachable!("room was made");
        };
        open.write(value).map_err(never)?;
        if !has_room {
            return self.written_in_new_room(own, batch, deadline);
        }
        own.published += 1;
        if open.pending() >= batch {
            open.commit();
            self.tell();
        }
        Ok(Sent::Written)
    }

    /// What was written is seen.
    pub(super) fn commit(&self, own: &mut Own) {
        if let Some(open) = &mut own.open
            && open.pending() > 0
        {
            open.commit();
            self.tell();
        }
    }

    /// A record that has a segment alone, sealed.
    fn alone<T: Encode + ?Sized>(&self, value: &T) -> Result<Arc<Segment>, Failure> {
        self.check_open()?;
        let tails = self.within_limit(Encoder::measure(value, ALIGNED))?;
        let (mut open, segment) = self.lone(tails.saturating_add(8))?;
        open.write(value).map_err(never)?;
        open.seal();
        Ok(segment)
    }

    /// Rule 10.
    pub(super) fn control<T: Encode + ?Sized>(
        &self,
        value: &T,
        deadline: u64,
    ) -> Result<(), Failure> {
        let segment = self.alone(value)?;
        loop {
            {
                let mut queue = lock(&self.queue);
                self.check_open()?;
                let waker = (deadline != 0).then(wait::waker);
                let has_room = |queue: &mut Queue| queue.control.len() < CONTROLS;
                if self.have_all(&mut queue, waker.as_ref(), has_room) {
                    let push = |queue: &mut Queue| queue.control.push_back(Arc::clone(&segment));
                    self.for_all(&mut queue, push);
                    break;
                }
            }
            self.tell_surely();
            self.wait(deadline)?;
        }
        self.tell_surely();
        Ok(())
    }

    pub(super) fn lost(&self, own: &mut Own, records: u64) {
        let gap = Gap::new(records, Reason::Writer);
        own.published += records;
        self.settle_and_wake(own, |queue, own| {
            queue.lose(gap);
            for tee in self.tees().iter() {
                lock(&tee.queue).lose(gap);
            }
            own.gap.add(gap);
        });
    }

    /// The open segment has no room for a record that takes so much of tails, or there is none; the one that is open then has. False: the
    /// record is dropped.
    #[cold]
    #[inline(never)]
    fn make_room(
        &self,
        own: &mut Own,
        tails: Result<u32, NoRoom>,
        deadline: u64,
    ) -> Result<bool, Failure> {
        let made = self.try_make_room(own, tails, deadline);
        made.map_err(|why| own.refuse(why))
    }

    fn try_make_room(
        &self,
        own: &mut Own,
        tails: Result<u32, NoRoom>,
        deadline: u64,
    ) -> Result<bool, Failure> {
        // With what may be between the tails so that each is aligned.
        let room = self
            .tails()
            .max(self.within_limit(tails)?.saturating_add(8));
        if let Policy::Conflate(_) = self.options.policy {
            own.open = Some(self.lone(room)?.0);
            return Ok(true);
        }
        if self.telling.load(Ordering::Relaxed) & (DIRECT | MANY) != 0 {
            // What is full is so of what nobody was told of.
            self.commit(own);
        }
        loop {
            match self.next_segment(own, room, deadline)? {
                Place::Here(open) => {
                    own.open = Some(open);
                    return Ok(true);
                }
                Place::Dropped(reason) => {
                    own.published += 1;
                    own.gap.add(Gap::new(1, reason));
                    return Ok(false);
                }
                Place::Wait => {
                    // What was sealed may be what the reader waits for.
                    self.tell_surely();
                    self.wait(deadline)?;
                }
            }
        }
    }

    /// A record was written for which there was made room.
    #[cold]
    #[inline(never)]
    fn written_in_new_room(
        &self,
        own: &mut Own,
        batch: u32,
        deadline: u64,
    ) -> Result<Sent, Failure> {
        match self.options.policy {
            Policy::Conflate(key) => {
                let sent = self.conflate(own, key, deadline);
                return sent.map_err(|why| own.refuse(why));
            }
            Policy::Latest => {
                // One record is all that such a segment has.
                own.published += 1;
                self.settle(&mut lock(&self.queue), own);
            }
            _ => {
                own.published += 1;
                if let Some(open) = &mut own.open
                    && open.pending() >= batch
                {
                    open.commit();
                }
            }
        }
        // Also of what is in the segment before.
        self.tell_surely();
        Ok(Sent::Written)
    }

    /// What a record takes of tails, if it may be as large.
    fn within_limit(&self, tails: Result<u32, NoRoom>) -> Result<u32, Failure> {
        let limit = self.options.largest_record;
        let tails = tails.map_err(|why| Code::Argument.because(format!("the record: {why}")))?;
        let size = u64::from(tails) + u64::from(self.stride);
        match size <= limit.into() {
            true => Ok(tails),
            false => Err(too_large("record", size, limit)),
        }
    }

    /// A segment for one record, that is in no queue.
    fn lone(&self, tails: u32) -> Result<(Open, Arc<Segment>), Failure> {
        Segment::new(self.stride, 1, tails)
            .map(Open::new)
            .ok_or_else(no_memory)
    }

    /// Who comes back looks once more, also where nobody woke it: credit may be there for which it was not.
    pub(super) fn wait(&self, deadline: u64) -> Result<(), Failure> {
        let deadline = (deadline != u64::MAX).then_some(deadline);
        if deadline.is_some_and(|deadline| deadline <= clock::now()) {
            return Err(Code::TimedOut.because("the stream was full until the deadline"));
        }
        if !wait::can_park() {
            return Err(would_park());
        }
        if wait::park(deadline) == WakeReason::Stopping {
            return Err(Code::ShutDown.because("the runtime stops"));
        }
        self.check_open()
    }

    /// Rule 3.
    fn next_segment(&self, own: &mut Own, tails: u32, deadline: u64) -> Result<Place, Failure> {
        let (place, waiting, lingering) = {
            let mut queue = lock(&self.queue);
            self.check_open()?;
            self.settle(&mut queue, own);
            let mut waiting = queue.give_back();
            let fills = queue.taken() * 2 >= self.most;
            let lingering = fills.then(|| queue.lingering.take()).flatten();
            queue.stats.wakes += u64::from(lingering.is_some());
            let place = self.place(&mut queue, own, tails, deadline, &mut waiting);
            (place, waiting, lingering)
        };
        waiting.into_iter().chain(lingering).for_each(Waker::wake);
        place
    }

    fn place(
        &self,
        queue: &mut Queue,
        own: &mut Own,
        tails: u32,
        deadline: u64,
        wakes: &mut Vec<Waker>,
    ) -> Result<Place, Failure> {
        let many = self.telling.load(Ordering::Relaxed) & MANY != 0;
        let room = if many {
            let waker = (deadline != 0).then(wait::waker);
            self.room_for_all(queue, own, waker.as_ref(), wakes)
        } else {
            let room = self.room(queue, own.number);
            match room {
                Room::Full if deadline != 0 => queue.wait(wait::waker()),
                Room::Dropped(reason) => queue.lose(Gap::new(1, reason)),
                _ => {}
            }
            room
        };
        match room {
            Room::Here => {}
            Room::Dropped(reason) => return Ok(Place::Dropped(reason)),
            Room::Full if self.options.policy == Policy::Fail => {
                return Err(Code::Overloaded.because("the stream is full"));
            }
            Room::Full => return Ok(Place::Wait),
        }
        let usual = self.tails();
        let segment = if tails > usual {
            Segment::new(self.stride, 1, tails).map(Open::new)
        } else {
            queue
                .spare()
                .or_else(|| pool::take(self.stride, self.slots, usual))
                .or_else(|| Segment::new(self.stride, self.slots, usual).map(Open::new))
        };
        let (open, segment) = segment.ok_or_else(no_memory)?;
        if many {
            self.push_for_all(queue, own, &segment);
        } else {
            queue.push(segment, own.number, std::mem::take(&mut own.gap));
        }
        Ok(Place::Here(open))
    }

    /// Whether a reader has room for a segment of this writer.
    pub(super) fn room(&self, queue: &mut Queue, number: u64) -> Room {
        let policy = self.options.policy;
        let full = queue.taken() >= self.most;
        if !full || (policy != Policy::Latest && !queue.has_of(number)) {
            return Room::Here;
        }
        match policy {
            Policy::Block | Policy::Conflate(_) => {
                queue.stats.waits += 1;
                queue.looks = true;
                Room::Full
            }
            Policy::Fail => Room::Full,
            Policy::DropNewest => Room::Dropped(Reason::DroppedNewest),
            Policy::DropOldest if queue.drop_oldest(Reason::DroppedOldest) => Room::Here,
            Policy::DropOldest => Room::Dropped(Reason::Held),
            // What the reader holds is beside the one place.
            Policy::Latest => {
                queue.drop_oldest(Reason::Conflated);
                Room::Here
            }
        }
    }
}

fn no_memory() -> Failure {
    Code::Overloaded.because("no memory for the stream")
}

/// Refuses a record, or what a caller sends, for its size.
#[cold]
pub(super) fn too_large(what: &str, size: u64, limit: u32) -> Failure {
    let (size, limit) = (grouped(size), grouped(limit.into()));
    Code::Argument.because(format!("the {what} has {size} bytes, the limit is {limit}"))
}

/// A number with its digits in groups of three: `67,108,864`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A record took more than it said: its `Encode` is at fault.
#[cold]
fn never(_: NoRoom) -> Failure {
    Code::Argument.because("a record is larger than it was when it was measured")
}
