//! Writing into a stream: segments, credit, and overflow.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;

use thalweg_queue::{WakerList, clock};
use thalweg_runtime::log::{Level, Limit};
use thalweg_runtime::{WakeReason, wait};
use thalweg_wire::{Encode, Encoder, NoRoom};

use crate::code::{Code, Failure, would_park};
use crate::nested::{self, DropCause};
use crate::package::Overflow;
use crate::stream::core::{StreamCore, lock};
use crate::stream::counts::{Gap, Reason};
use crate::stream::direct::Direct;
use crate::stream::pool;
use crate::stream::queue::Queue;
use crate::stream::segment::{
    DescribedRecord, MAX_BATCH, NextSlot, RecordSpace, Segment, SegmentWriter,
};
use crate::stream::tee::{Admission, SkippedReader};
use crate::stream::waking::{CALLBACK, MANY_READERS};

/// Maximum number of unread control records.
const MAX_CONTROL_RECORDS: usize = 64;

/// Alignment of the tails in an empty segment.
const ALIGNED: u32 = 8;

/// The result of sending a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The record is in the stream.
    Written,
    /// The stream was full and the record was dropped. The reader learns how many records are
    /// missing.
    Dropped,
}

/// The state of one writer.
#[derive(Debug)]
pub(super) struct WriterState {
    pub(super) number: u64,
    pub(super) open: SegmentWriter,
    /// The writer holds the lease of the callback, and the open segment is in no queue.
    pub(super) direct: Option<Direct>,
    /// Readers that do not receive the records of the open segment.
    pub(super) skipped: Vec<SkippedReader>,
    /// Records that were sent and are neither in the stream's counts yet nor in the open segment.
    pub(super) published: u64,
    /// The gap before the writer's next record.
    pub(super) gap: Gap,
    /// The writer called `finish`.
    pub(super) is_finished: bool,
    /// The failure of the writer's last failed send.
    refused: Option<Box<Failure>>,
    /// Why the stream ends if the writer is dropped without `finish`.
    pub(super) drop_reason: &'static str,
}

impl WriterState {
    /// Records why a send failed, for the reader, because the writer may be dropped after it.
    #[cold]
    pub(super) fn refuse(&mut self, why: Failure) -> Failure {
        self.refused = Some(Box::new(why.clone()));
        why
    }

    /// The outcome of a stream whose writer was dropped without `finish`.
    fn why_dropped(&self) -> Failure {
        Code::GuestLost.because(match &self.refused {
            Some(why) => format!("a writer was dropped after a send failed: {why}"),
            None => self.drop_reason.to_owned(),
        })
    }
}

/// The result of requesting a segment.
enum NextSegment {
    Ready(SegmentWriter),
    /// The writer must wait until it is woken.
    Wait,
    Dropped(Reason),
}

impl StreamCore {
    pub(super) fn new_writer_state(&self) -> WriterState {
        WriterState {
            number: self.next_writer.fetch_add(1, Ordering::Relaxed),
            open: SegmentWriter::default(),
            direct: None,
            skipped: Vec::new(),
            published: 0,
            gap: Gap::default(),
            is_finished: false,
            refused: None,
            drop_reason: "a writer was dropped without finish()",
        }
    }

    pub(super) fn add_writer(&self) {
        self.writers.fetch_add(1, Ordering::Relaxed);
    }

    /// Removes a writer. The stream ends regularly when the last writer is removed and all of them
    /// have finished. A writer that is dropped without `finish` ends the stream here. A writer that
    /// a panic drops has never finished: the stream ends where the panic is caught, with its
    /// message, and no other writer may end it before. If the panic was in another call's code, the
    /// code that catches it does not know this stream, so the stream ends here.
    pub(super) fn remove_writer(self: &Arc<Self>, writer: &mut WriterState) {
        self.flush_and_wake(writer, |queue, writer| {
            let gap = std::mem::take(&mut writer.gap);
            queue.last_gap.add(gap);
            for tee in self.tees().iter() {
                lock(&tee.queue).last_gap.add(gap);
            }
        });
        match DropCause::now(self.owner.handle()) {
            DropCause::OwnPanic => {
                nested::end_on_scope_exit(self.owner.handle(), Arc::clone(self) as _)
            }
            DropCause::OtherPanic(why) => self.end(why),
            DropCause::Intended if !writer.is_finished => {
                let why = writer.why_dropped();
                if self.check_open().is_ok() {
                    static INCOMPLETE: Limit = Limit::new();
                    self.log(
                        &INCOMPLETE,
                        format_args!("ends incomplete: {}", why.message),
                    );
                }
                self.end(why);
            }
            DropCause::Intended => {
                if self.writers.fetch_sub(1, Ordering::AcqRel) == 1 {
                    self.end(Code::Closed.because("the stream has ended"));
                }
            }
        }
    }

    /// Flushes the writer if it does not begin another segment.
    fn flush_and_wake(
        &self,
        writer: &mut WriterState,
        and: impl FnOnce(&mut Queue, &mut WriterState),
    ) {
        self.end_lease(writer);
        let waiters = {
            let mut queue = lock(&self.queue);
            self.flush_segment(&mut queue, writer);
            and(&mut queue, writer);
            let mut waiters = queue.free_read_segments();
            for tee in self.tees().iter() {
                waiters.extend(lock(&tee.queue).free_read_segments());
            }
            waiters
        };
        waiters.wake();
        self.wake_readers();
    }

    /// Seals the writer's open segment and adds its records to the counts.
    pub(super) fn flush_segment(&self, queue: &mut Queue, writer: &mut WriterState) {
        if writer.open.is_open() {
            let records = std::mem::take(&mut writer.open).seal();
            writer.published += records;
            if !writer.skipped.is_empty() {
                self.lose_for(queue, std::mem::take(&mut writer.skipped), records);
            }
        }
        queue.publish(std::mem::take(&mut writer.published));
    }

    /// Writes one record. It becomes visible once `batch` written records, from 1 to
    /// [`MAX_BATCH`](super::segment::MAX_BATCH), are invisible.
    ///
    /// The record is measured first, then a segment is acquired if needed, and then the record is
    /// written, at this one place. The record is passed only to inlined functions. The compiler
    /// therefore constructs it directly in the segment, instead of copying it from memory or
    /// registers. The functions that are not inlined take the address of the `Arc`, so that the
    /// address of the stream is not kept meanwhile.
    #[inline(always)]
    pub(super) fn send<T: Encode + ?Sized>(
        self: &Arc<Self>,
        writer: &mut WriterState,
        value: &T,
        batch: u32,
        deadline: u64,
    ) -> Result<Sent, Failure> {
        self.check_open()?;
        if !writer.open.fits(value)
            && !self.acquire_segment(writer, Encoder::measure(value, ALIGNED), deadline)?
        {
            return Ok(Sent::Dropped);
        }
        let mut slot = writer.open.next_slot();
        // SAFETY: `fits` has checked that a slot is free, and a segment that was just acquired has
        // one. Rule 13: the slot holds a record of this type.
        unsafe { slot.fill(0, value) }.map_err(misreported_size)?;
        let sent = self.add_record(writer, slot.end, batch, deadline);
        #[cfg(debug_assertions)]
        if writer.direct.is_some() {
            // A view of the record that the callback has kept must not be used any more.
            writer.open.poison_next();
        }
        sent
    }

    /// Writes one record of foreign code. It becomes visible as in [`send`](Self::send).
    pub(super) fn send_described(
        self: &Arc<Self>,
        writer: &mut WriterState,
        record: &DescribedRecord<'_>,
        batch: u32,
        deadline: u64,
    ) -> Result<Sent, Failure> {
        self.check_open()?;
        let (tails, needed) = match record.ty.has_tails() {
            false => (Ok(0), 0),
            true => {
                let tails = record.ty.measure(record.from, record.at, ALIGNED);
                // The first tail may have to be aligned.
                (
                    tails,
                    tails.map_or(0, |tails| tails.saturating_add(ALIGNED)),
                )
            }
        };
        if !writer.open.has_space(needed) && !self.acquire_segment(writer, tails, deadline)? {
            return Ok(Sent::Dropped);
        }
        let mut slot = writer.open.next_slot();
        // SAFETY: a slot is free, as in `send`. The guest's stream was made for this type.
        unsafe { slot.copy(record) }.map_err(misreported_size)?;
        self.add_record(writer, slot.end, batch, deadline)
    }

    /// Adds the record in the next slot to the written ones, and makes them visible if there are
    /// `batch`. `end` is the end of its tails.
    #[inline(always)]
    pub(super) fn add_record(
        self: &Arc<Self>,
        writer: &mut WriterState,
        end: u32,
        batch: u32,
        deadline: u64,
    ) -> Result<Sent, Failure> {
        let open = &mut writer.open;
        if open.pending_with_next() < batch {
            open.add_record(end);
            return Ok(Sent::Written);
        }
        if !open.is_announced() {
            match &writer.direct {
                Some(_) if batch == 1 => self.send_direct(writer, end),
                Some(_) => self.queue_direct(writer, end, batch),
                None => return self.finish_in_new_segment(writer, end, batch, deadline),
            }
            return Ok(Sent::Written);
        }
        open.add_record(end);
        open.commit();
        if self.wake_reader() && batch == 1 {
            self.try_lease(writer);
        }
        Ok(Sent::Written)
    }

    /// Finds a slot for a record that will be filled in place, with `tails` bytes of tails. All
    /// bytes of the slot are 0. `None`: the record is dropped.
    #[inline(always)]
    pub(super) fn reserve(
        self: &Arc<Self>,
        writer: &mut WriterState,
        tails: u32,
        deadline: u64,
    ) -> Result<Option<NextSlot>, Failure> {
        self.check_open()?;
        if let Some(direct) = &mut writer.direct
            && direct.is_slot_clear
            && writer.open.has_space(tails)
        {
            direct.is_slot_clear = false;
            return Ok(Some(writer.open.next_slot()));
        }
        self.reserve_and_clear(writer, tails, deadline)
    }

    #[inline(never)]
    fn reserve_and_clear(
        self: &Arc<Self>,
        writer: &mut WriterState,
        tails: u32,
        deadline: u64,
    ) -> Result<Option<NextSlot>, Failure> {
        if !writer.open.has_space(tails) && !self.acquire_segment(writer, Ok(tails), deadline)? {
            return Ok(None);
        }
        let mut slot = writer.open.next_slot();
        // SAFETY: a slot is free, as in `send`.
        unsafe { slot.clear_all() };
        Ok(Some(slot))
    }

    /// Finds places for records that foreign code will write, with `tails` bytes of tails. `None`: a
    /// record is dropped.
    pub(super) fn reserve_space(
        self: &Arc<Self>,
        writer: &mut WriterState,
        tails: u32,
        deadline: u64,
    ) -> Result<Option<RecordSpace>, Failure> {
        self.check_open()?;
        if !writer.open.has_space(tails) && !self.acquire_segment(writer, Ok(tails), deadline)? {
            return Ok(None);
        }
        Ok(Some(self.space(writer)))
    }

    /// The places that the open segment has left.
    pub(super) fn space(&self, writer: &WriterState) -> RecordSpace {
        let mut space = writer.open.free_space();
        if writer.direct.is_some() {
            // Each record is in the same slot.
            space.count = space.count.min(1);
        }
        space
    }

    /// Adds `count` records that were written into the [`space`](Self::space). `end` is the end of their
    /// tails. All written records become visible, unless `has_more`.
    pub(super) fn add_records(
        self: &Arc<Self>,
        writer: &mut WriterState,
        count: u32,
        end: u32,
        has_more: bool,
        deadline: u64,
    ) -> Result<(), Failure> {
        if count > 0 {
            let is_alone = count == 1 && !has_more;
            let batch = if is_alone { 1 } else { MAX_BATCH };
            self.add_record(writer, end, batch, deadline)?;
        }
        if count > 1 {
            writer.open.add_records(count - 1, end);
        }
        if !has_more {
            self.commit(writer);
        }
        Ok(())
    }

    /// Makes the written records visible.
    pub(super) fn commit(&self, writer: &mut WriterState) {
        let open = &mut writer.open;
        if open.is_announced() && open.pending() > 0 {
            open.commit();
            self.wake_reader();
        }
    }

    /// Encodes a record into a sealed segment of its own.
    fn encode_single<T: Encode + ?Sized>(&self, value: &T) -> Result<Arc<Segment>, Failure> {
        self.check_open()?;
        let tails = self.within_limit(Encoder::measure(value, ALIGNED))?;
        let (mut open, segment) = self.single_record_segment(tails.saturating_add(8))?;
        open.write(value).map_err(misreported_size)?;
        open.seal();
        Ok(segment)
    }

    /// Rule 10.
    pub(super) fn control<T: Encode + ?Sized>(
        &self,
        value: &T,
        deadline: u64,
    ) -> Result<(), Failure> {
        let segment = self.encode_single(value)?;
        loop {
            {
                let mut queue = lock(&self.queue);
                self.check_open()?;
                let waker = (deadline != 0).then(wait::waker);
                let fits = |queue: &mut Queue| queue.control.len() < MAX_CONTROL_RECORDS;
                if self.all_ready(&mut queue, waker.as_ref(), fits) {
                    let push = |queue: &mut Queue| queue.control.push_back(Arc::clone(&segment));
                    self.for_all(&mut queue, push);
                    break;
                }
            }
            self.wake_readers();
            self.wait_for_credit(deadline)?;
        }
        self.wake_readers();
        Ok(())
    }

    pub(super) fn lost(&self, writer: &mut WriterState, records: u64) {
        let gap = Gap::new(records, Reason::Writer);
        writer.published += records;
        self.flush_and_wake(writer, |queue, writer| {
            queue.lose(gap);
            for tee in self.tees().iter() {
                lock(&tee.queue).lose(gap);
            }
            writer.gap.add(gap);
        });
    }

    /// Acquires a segment for a record with these tail bytes, because the open segment has no
    /// capacity for it or does not exist. Returns `false` if the record is dropped.
    #[cold]
    #[inline(never)]
    fn acquire_segment(
        self: &Arc<Self>,
        writer: &mut WriterState,
        tails: Result<u32, NoRoom>,
        deadline: u64,
    ) -> Result<bool, Failure> {
        let made = self.try_acquire_segment(writer, tails, deadline);
        made.map_err(|why| writer.refuse(why))
    }

    fn try_acquire_segment(
        &self,
        writer: &mut WriterState,
        tails: Result<u32, NoRoom>,
        deadline: u64,
    ) -> Result<bool, Failure> {
        self.end_lease(writer);
        // Includes the bytes that align the next tail.
        let tail_bytes = self
            .tails()
            .max(self.within_limit(tails)?.saturating_add(8));
        if let Overflow::Conflate(_) = self.options.overflow {
            writer.open = self.single_record_segment(tail_bytes)?.0;
            return Ok(true);
        }
        if self.wake_mode.load(Ordering::Relaxed) & (CALLBACK | MANY_READERS) != 0 {
            // Readers of a full stream must have been notified of all its records.
            self.commit(writer);
        }
        loop {
            match self.next_segment(writer, tail_bytes, deadline)? {
                NextSegment::Ready(open) => {
                    writer.open = open;
                    return Ok(true);
                }
                NextSegment::Dropped(reason) => {
                    writer.published += 1;
                    writer.gap.add(Gap::new(1, reason));
                    return Ok(false);
                }
                NextSegment::Wait => {
                    // The reader may be waiting for the records that were just sealed.
                    self.wake_readers();
                    self.wait_for_credit(deadline)?;
                }
            }
        }
    }

    /// Finishes a send into a segment that the readers were not told of.
    #[cold]
    #[inline(never)]
    fn finish_in_new_segment(
        self: &Arc<Self>,
        writer: &mut WriterState,
        end: u32,
        batch: u32,
        deadline: u64,
    ) -> Result<Sent, Failure> {
        writer.open.add_record(end);
        match self.options.overflow {
            Overflow::Conflate(key) => {
                let sent = self.conflate(writer, key, deadline);
                return sent.map_err(|why| writer.refuse(why));
            }
            Overflow::Latest => {
                // Such a segment has exactly one record.
                self.flush_segment(&mut lock(&self.queue), writer);
            }
            _ => {
                let open = &mut writer.open;
                open.announce();
                if open.pending() >= batch {
                    open.commit();
                }
            }
        }
        // Also for the records of the previous segment.
        self.wake_readers();
        Ok(Sent::Written)
    }

    /// The tail bytes of a record, if its size is within the limit.
    fn within_limit(&self, tails: Result<u32, NoRoom>) -> Result<u32, Failure> {
        let limit = self.options.max_record_size;
        let tails = tails.map_err(|why| Code::Argument.because(format!("the record: {why}")))?;
        let size = u64::from(tails) + u64::from(self.stride);
        match size <= limit.into() {
            true => Ok(tails),
            false => Err(too_large("record", size, limit)),
        }
    }

    /// A segment for one record that is in no queue.
    fn single_record_segment(&self, tails: u32) -> Result<(SegmentWriter, Arc<Segment>), Failure> {
        Segment::new(self.stride, 1, tails)
            .map(SegmentWriter::new)
            .ok_or_else(no_memory)
    }

    /// The caller tries again after each return, also without a wake-up: there may be credit for
    /// which it was not woken.
    pub(super) fn wait_for_credit(&self, deadline: u64) -> Result<(), Failure> {
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
    fn next_segment(
        &self,
        writer: &mut WriterState,
        tails: u32,
        deadline: u64,
    ) -> Result<NextSegment, Failure> {
        let (next, waiters, lingering_reader, has_dropped) = {
            let mut queue = lock(&self.queue);
            self.check_open()?;
            self.flush_segment(&mut queue, writer);
            let mut waiters = queue.free_read_segments();
            let fills = queue.segments_in_use() * 2 >= self.max_segments;
            let lingering_reader = fills.then(|| queue.lingering_reader.take()).flatten();
            queue.stats.wakes += u64::from(lingering_reader.is_some());
            let next = self.try_next_segment(&mut queue, writer, tails, deadline, &mut waiters);
            let has_dropped = std::mem::take(&mut queue.has_dropped)
                || matches!(next, Ok(NextSegment::Dropped(_)));
            (next, waiters, lingering_reader, has_dropped)
        };
        waiters
            .into_iter()
            .chain(lingering_reader)
            .for_each(Waker::wake);
        if has_dropped {
            static FULL: Limit = Limit::new();
            self.log(&FULL, format_args!("is full and drops records"));
        }
        next
    }

    /// Reports an event of this stream.
    #[cold]
    fn log(&self, limit: &Limit, event: fmt::Arguments<'_>) {
        let method = self.owner.method_name();
        limit.write(
            Level::Warning,
            "stream",
            format_args!("a stream of {method} {event}"),
        );
    }

    fn try_next_segment(
        &self,
        queue: &mut Queue,
        writer: &mut WriterState,
        tails: u32,
        deadline: u64,
        wakes: &mut WakerList,
    ) -> Result<NextSegment, Failure> {
        let has_tees = self.has_tees();
        let waker = (deadline != 0).then_some(wait::waker as fn() -> Waker);
        match self.admit_writer(queue, writer, waker, wakes) {
            Admission::Ready => {}
            Admission::Dropped(reason) => return Ok(NextSegment::Dropped(reason)),
            Admission::Full if self.options.overflow == Overflow::Fail => {
                return Err(Code::Overloaded.because("the stream is full"));
            }
            Admission::Full => return Ok(NextSegment::Wait),
        }
        let standard = self.tails();
        let segment = if tails > standard {
            Segment::new(self.stride, 1, tails).map(SegmentWriter::new)
        } else {
            queue
                .take_spare()
                .or_else(|| pool::take(self.stride, self.slots, standard))
                .or_else(|| Segment::new(self.stride, self.slots, standard).map(SegmentWriter::new))
        };
        let (open, segment) = segment.ok_or_else(no_memory)?;
        if has_tees {
            self.push_for_all(queue, writer, &segment);
        } else {
            queue.push(segment, writer.number, std::mem::take(&mut writer.gap));
        }
        Ok(NextSegment::Ready(open))
    }

    fn has_tees(&self) -> bool {
        self.wake_mode.load(Ordering::Relaxed) & MANY_READERS != 0
    }

    /// Whether the readers have capacity for a segment of this writer. If they have none, `waker` is
    /// woken later.
    fn admit_writer(
        &self,
        queue: &mut Queue,
        writer: &mut WriterState,
        waker: Option<impl Fn() -> Waker>,
        wakes: &mut WakerList,
    ) -> Admission {
        if self.has_tees() {
            return self.admit_for_all(queue, writer, waker.map(|waker| waker()).as_ref(), wakes);
        }
        let admission = self.admit(queue, writer.number);
        match (&admission, waker) {
            (Admission::Full, Some(waker)) => queue.add_waiter(waker()),
            (Admission::Dropped(reason), _) => queue.lose(Gap::new(1, *reason)),
            _ => {}
        }
        admission
    }

    /// Wakes `waker` when this writer may find capacity, or the stream has ended. Returns `true`, and arms
    /// nothing, if that is so now.
    pub(super) fn arm_room(&self, writer: &mut WriterState, waker: &Waker) -> bool {
        if self.options.overflow != Overflow::Block {
            return true;
        }
        let mut wakes;
        let admission = {
            let mut queue = lock(&self.queue);
            if self.check_open().is_err() {
                return true;
            }
            wakes = queue.free_read_segments();
            self.admit_writer(&mut queue, writer, Some(|| waker.clone()), &mut wakes)
        };
        wakes.into_iter().for_each(Waker::wake);
        !matches!(admission, Admission::Full)
    }

    /// Whether a reader has capacity for a segment of this writer.
    pub(super) fn admit(&self, queue: &mut Queue, number: u64) -> Admission {
        let policy = self.options.overflow;
        let full = queue.segments_in_use() >= self.max_segments;
        if !full || (policy != Overflow::Latest && !queue.has_segment_of(number)) {
            return Admission::Ready;
        }
        match policy {
            Overflow::Block | Overflow::Conflate(_) => {
                queue.stats.waits += 1;
                queue.should_yield = true;
                Admission::Full
            }
            Overflow::Fail => Admission::Full,
            Overflow::DropNewest => Admission::Dropped(Reason::DroppedNewest),
            Overflow::DropOldest if queue.drop_oldest(Reason::DroppedOldest) => Admission::Ready,
            Overflow::DropOldest => Admission::Dropped(Reason::BatchOpen),
            // The reader's open batch does not use the single unit of credit.
            Overflow::Latest => {
                queue.drop_oldest(Reason::Conflated);
                Admission::Ready
            }
        }
    }
}

fn no_memory() -> Failure {
    Code::Overloaded.because("there is no memory for the stream")
}

/// Refuses a record or an element because of its size.
#[cold]
pub(super) fn too_large(what: &str, size: u64, limit: u32) -> Failure {
    let (size, limit) = (grouped(size), grouped(limit.into()));
    Code::Argument.because(format!("the {what} has {size} bytes, the limit is {limit}"))
}

/// Formats a number with groups of three digits: `67,108,864`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (next, digit) in digits.chars().enumerate() {
        if next > 0 && (digits.len() - next).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A record was larger than measured, or did not fill its slot: its `Encode` implementation is
/// incorrect.
#[cold]
pub(super) fn misreported_size(_: NoRoom) -> Failure {
    Code::Argument.because("a record is larger than it was when it was measured, or incomplete")
}
