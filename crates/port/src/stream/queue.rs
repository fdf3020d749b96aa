//! The queue of unread segments, in the order in which their writers began them, and the gaps
//! between them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;

use thalweg_queue::{AdaptiveSpin, WakerList, clock};
use thalweg_runtime::TimerKey;

use crate::code::{Code, Failure};
use crate::stream::callback::CallbackState;
use crate::stream::conflate::ConflatedRecords;
use crate::stream::counts::{Counts, Gap, Reason};
use crate::stream::receiving::OpenBatch;
use crate::stream::segment::{Segment, SegmentWriter};
use crate::stream::stats::{Stats, age_class};

/// A segment, and how far it was read.
#[derive(Debug)]
pub(super) struct QueueEntry {
    pub(super) segment: Arc<Segment>,
    /// The number of its writer.
    pub(super) writer: u64,
    /// Number of delivered records.
    pub(super) read: u32,
    /// The gap directly before its next record.
    pub(super) gap: Gap,
    /// When the segment was begun.
    since: u64,
}

impl QueueEntry {
    fn unread(&self) -> u32 {
        self.segment.mark().0 - self.read
    }
}

/// The reader's side of a stream, under one lock. A writer takes the lock once per segment.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// Size of a standard segment.
    slots: u32,
    tails: u32,
    /// Credit in segments.
    max_segments: usize,
    /// The queue of an additional reader, which does not return segments to writers.
    is_tee: bool,
    /// Other readers read the segments too.
    pub(super) shared: bool,
    /// This reader is gone and other readers remain. The queue receives no further records.
    is_detached: bool,
    pub(super) entries: VecDeque<QueueEntry>,
    /// Segments for reuse. Other readers and hosts may still have some of them.
    pub(super) spare: Vec<Arc<Segment>>,
    /// Writers that wait for credit.
    pub(super) waiters: WakerList,
    /// The gap after the last segment.
    pub(super) last_gap: Gap,
    pub(super) counts: Counts,
    /// Sequence number of the next record.
    pub(super) sequence: u64,
    pub(super) open: Option<OpenBatch>,
    /// The open batch is being converted to the reader's version.
    pub(super) converting: bool,
    /// Records of the last batch that the reader had not read when it was dropped.
    pub(super) unseen: u64,
    /// Records were delivered since the reader last found the queue empty.
    pub(super) delivered_since_empty: bool,
    /// When the reader last found the queue empty, and the number of delivered records then.
    last_empty: (u64, u64),
    /// How long the reader lingers: see [`waking`](super::waking).
    pub(super) linger: u64,
    /// The lingering reader. It is woken early if the stream becomes full or ends.
    pub(super) lingering_reader: Option<Waker>,
    /// Writers have waited for credit, so a reader that finds the queue empty yields its processor
    /// before it sleeps.
    pub(super) should_yield: bool,
    /// How the reader's previous spins went.
    pub(super) spin: AdaptiveSpin,
    /// Old records were dropped, and the writer has not reported it yet.
    pub(super) has_dropped: bool,
    /// Number of delivered records when the reader was last armed.
    pub(super) armed_at: u64,
    /// Number of the latest wake request. The timer of an older request finds a different number
    /// and does nothing.
    pub(super) wake_request: u64,
    pub(super) linger_timer: Option<TimerKey>,
    pub(super) callback: CallbackState,
    /// Statistics that `counts` does not contain.
    pub(super) stats: Stats,
    /// Control records, each in its own segment. They are read before all others.
    pub(super) control: VecDeque<Arc<Segment>>,
    /// The waiting records of a stream with conflation.
    pub(super) conflated: ConflatedRecords,
    /// A control record or a conflated record was taken, so there is capacity for another one.
    single_taken: bool,
    /// Credit was returned since waiting writers were last woken.
    credit_returned: bool,
}

impl Queue {
    /// A queue whose standard segments have this size.
    pub(super) fn new(slots: u32, tails: u32, max_segments: usize, is_tee: bool) -> Self {
        Self {
            slots,
            tails,
            max_segments,
            is_tee,
            shared: is_tee,
            ..Self::default()
        }
    }

    /// Whether the writer has a segment in the queue.
    pub(super) fn has_segment_of(&self, writer: u64) -> bool {
        self.entries.iter().any(|entry| entry.writer == writer)
    }

    /// Whether a batch of this segment is open.
    fn is_open(&self, segment: &Arc<Segment>) -> bool {
        self.open
            .as_ref()
            .is_some_and(|open| Arc::ptr_eq(&open.segment, segment))
    }

    /// Used credit in segments.
    pub(super) fn segments_in_use(&self) -> usize {
        self.entries.len()
    }

    /// Pushes a writer's new segment, with the gap before it.
    pub(super) fn push(&mut self, segment: Arc<Segment>, writer: u64, gap: Gap) {
        let mut before = std::mem::take(&mut self.last_gap);
        before.add(gap);
        self.entries.push_back(QueueEntry {
            segment,
            writer,
            read: 0,
            gap: before,
            since: clock::now(),
        });
        let places = self.entries.len() as u64 * u64::from(self.slots);
        self.stats.high_water = self.stats.high_water.max(places);
    }

    /// Removes a segment. The gap before its next record moves to the next segment.
    fn remove(&mut self, index: usize, extra: Gap) {
        let Some(mut entry) = self.entries.remove(index) else {
            return;
        };
        entry.gap.add(extra);
        let next = self.entries.get_mut(index);
        let place = next.map_or(&mut self.last_gap, |next| &mut next.gap);
        let behind = std::mem::replace(place, entry.gap);
        place.add(behind);
        #[cfg(debug_assertions)]
        if let Some(sole) = Arc::get_mut(&mut entry.segment) {
            sole.poison_all();
        }
        if self.has_standard_size(&entry.segment) && self.spare.len() <= self.max_segments {
            self.spare.push(entry.segment);
        }
    }

    /// Whether this queue can reuse the segment: it has the standard size, and the queue is not
    /// that of an additional reader.
    pub(super) fn has_standard_size(&self, segment: &Segment) -> bool {
        !self.is_tee && segment.has_standard_size(self.slots, self.tails)
    }

    /// Rule 2: removes segments that were read completely. Returns the writers to wake, once a
    /// quarter of the credit is free or no record is unread. A writer that is faster than its
    /// reader would otherwise be woken for each segment and sleep again.
    #[must_use]
    pub(super) fn free_read_segments(&mut self) -> WakerList {
        let before = self.entries.len();
        let mut index = 0;
        while let Some(entry) = self.entries.get(index) {
            // `sealed` is read first: no record is committed after it.
            let through = entry.segment.is_sealed() && entry.unread() == 0;
            if through && !self.is_open(&self.entries[index].segment) {
                self.remove(index, Gap::default());
            } else {
                index += 1;
            }
        }
        self.credit_returned |= self.entries.len() < before;
        let nobody = self.waiters.is_empty();
        let quarter = self.max_segments / 4;
        let enough = || {
            self.credit_returned
                && (self.segments_in_use() + quarter <= self.max_segments || self.first().is_none())
        };
        if !nobody && !self.single_taken && !enough() {
            return WakerList::new();
        }
        // A writer that starts to wait from now on has already seen this credit.
        (self.credit_returned, self.single_taken) = (false, false);
        self.waiters.take()
    }

    /// Releases the first records of the open batch. Returns whether all are released.
    pub(super) fn release_records(&mut self, count: u32) -> bool {
        let Some(open) = &mut self.open else {
            return true;
        };
        let count = count.min(open.count);
        #[cfg(debug_assertions)]
        if !self.shared && !open.kept {
            // SAFETY: `take` made the batch from the segment's mark. There is no other reader. A
            // reader that has released records without keeping the batch no longer reads them.
            unsafe { open.segment.poison(open.from, count) };
        }
        open.count -= count;
        open.from += count;
        open.first_sequence += u64::from(count);
        open.lost_before = 0;
        open.reason = None;
        if open.count == 0 {
            self.open = None;
        }
        self.open.is_none()
    }

    /// Replaces the open batch, which was just taken, by a copy of its first records in `segment`.
    /// The remaining records are read again later.
    pub(super) fn replace_open(&mut self, copy: Segment, count: u32) -> Option<OpenBatch> {
        self.converting = false;
        let open = self.open.as_mut()?;
        let rest = open.count - count;
        let of = |entry: &&mut QueueEntry| Arc::ptr_eq(&entry.segment, &open.segment);
        if let Some(entry) = self.entries.iter_mut().find(of) {
            entry.read -= rest;
            self.sequence -= u64::from(rest);
            self.counts.delivered -= u64::from(rest);
        }
        (open.from, open.count, open.end) = (0, count, copy.mark().1);
        open.segment = Arc::new(copy);
        Some(open.clone())
    }

    /// The open batch, for its release or for keeping it.
    ///
    /// # Errors
    /// `argument`: no batch is open, or the batch is still being converted.
    pub(super) fn open_batch(&mut self) -> Result<&mut OpenBatch, Failure> {
        if self.converting {
            return Err(Code::Argument.because("another thread is reading this stream"));
        }
        let none = || Code::Argument.because("no batch is open");
        self.open.as_mut().ok_or_else(none)
    }

    /// Registers a writer that waits for credit.
    pub(super) fn add_waiter(&mut self, waker: Waker) {
        self.waiters.insert(waker);
    }

    /// Drops the oldest complete segment without an open batch. Returns `false` if there is none.
    pub(super) fn drop_oldest(&mut self, reason: Reason) -> bool {
        let oldest = self
            .entries
            .iter()
            .position(|entry| entry.segment.is_sealed() && !self.is_open(&entry.segment));
        let Some(index) = oldest else {
            return false;
        };
        self.has_dropped |= reason == Reason::DroppedOldest;
        let lost = Gap::new(u64::from(self.entries[index].unread()), reason);
        self.counts.lose(lost);
        self.remove(index, lost);
        true
    }

    /// The first segment with unread records.
    fn first(&self) -> Option<usize> {
        self.entries.iter().position(|entry| entry.unread() > 0)
    }

    pub(super) fn has_records(&self) -> bool {
        !self.control.is_empty() || self.conflated.len() > 0 || self.first().is_some()
    }

    /// Called if the reader found no record. Nanoseconds between the records that came since it last
    /// found none; `u64::MAX` if there were none.
    pub(super) fn interval_when_empty(&mut self) -> u64 {
        let empty = (clock::now(), self.counts.delivered);
        let (since, delivered) = std::mem::replace(&mut self.last_empty, empty);
        let took = empty.0.saturating_sub(since);
        took.checked_div(empty.1 - delivered).unwrap_or(u64::MAX)
    }

    /// The reader does not linger now. The next time, it begins with a short linger time.
    pub(super) fn stop_linger(&mut self) {
        self.delivered_since_empty = false;
        self.linger = 0;
        self.lingering_reader = None;
    }

    /// A control record. Control records have their own sequence numbers.
    fn take_control(&mut self) -> Option<OpenBatch> {
        let segment = self.control.pop_front()?;
        self.single_taken = true;
        let batch = OpenBatch {
            from: 0,
            count: 1,
            end: segment.mark().1,
            first_sequence: self.stats.control,
            lost_before: 0,
            reason: None,
            control: true,
            segment,
            kept: false,
        };
        self.stats.control += 1;
        self.delivered_since_empty = true;
        self.open = Some(batch.clone());
        Some(batch)
    }

    /// The record whose key has waited longest.
    fn take_conflated(&mut self) -> Option<OpenBatch> {
        let waiters = self.conflated.pop()?;
        self.single_taken = true;
        let age = clock::now().saturating_sub(waiters.since);
        self.stats.age[age_class(age)] += 1;
        let batch = OpenBatch {
            from: 0,
            count: 1,
            end: waiters.segment.mark().1,
            first_sequence: self.sequence + waiters.gap.lost,
            lost_before: waiters.gap.lost,
            reason: waiters.gap.reason,
            control: false,
            segment: waiters.segment,
            kept: false,
        };
        self.sequence = batch.first_sequence + 1;
        self.counts.delivered += 1;
        self.delivered_since_empty = true;
        self.open = Some(batch.clone());
        Some(batch)
    }

    /// Rules 4 and 10: a control record, or a run of the first segment with unread records.
    pub(super) fn take(&mut self, max: u32) -> Option<OpenBatch> {
        if let Some(batch) = self.take_control().or_else(|| self.take_conflated()) {
            return Some(batch);
        }
        let index = self.first()?;
        let mut gap = Gap::default();
        // Older segments without unread records may have a gap. The next record follows that gap.
        for entry in self.entries.range_mut(..=index) {
            gap.add(std::mem::take(&mut entry.gap));
        }
        let entry = &mut self.entries[index];
        if entry.read == 0 {
            let age = clock::now().saturating_sub(entry.since);
            self.stats.age[age_class(age)] += 1;
        }
        let (records, end) = entry.segment.mark();
        let (from, count) = (entry.read, (records - entry.read).min(max));
        entry.read += count;
        let batch = OpenBatch {
            segment: Arc::clone(&entry.segment),
            from,
            count,
            end,
            first_sequence: self.sequence + gap.lost,
            lost_before: gap.lost,
            reason: gap.reason,
            control: false,
            kept: false,
        };
        self.sequence = batch.first_sequence + u64::from(count);
        self.counts.delivered += u64::from(count);
        self.delivered_since_empty = true;
        self.open = Some(batch.clone());
        Some(batch)
    }

    /// Adds records to the counts that were delivered without the queue.
    pub(super) fn add_delivered(&mut self, records: u64) {
        self.publish(records);
        self.counts.delivered += records;
        self.sequence += records;
    }

    /// Whether records are missing before the next one.
    pub(super) fn has_gap(&self) -> bool {
        self.last_gap.lost > 0 || self.entries.iter().any(|entry| entry.gap.lost > 0)
    }

    /// Adds the records of a writer to the counts.
    pub(super) fn publish(&mut self, records: u64) {
        if !self.is_detached {
            self.counts.published += records;
        }
    }

    /// Counts missing records. The gap is reported at the writer's next record.
    pub(super) fn lose(&mut self, gap: Gap) {
        if !self.is_detached {
            self.counts.lose(gap);
        }
    }

    /// Counts records that are missing directly after the last segment.
    pub(super) fn lose_at_end(&mut self, gap: Gap) {
        self.lose(gap);
        self.last_gap.add(gap);
    }

    /// The initial entries of an additional reader: the unsealed segments, from the current mark
    /// on.
    pub(super) fn unsealed_entries(&self) -> impl Iterator<Item = QueueEntry> {
        let open = self.entries.iter().filter(|e| !e.segment.is_sealed());
        open.map(|entry| QueueEntry {
            segment: Arc::clone(&entry.segment),
            writer: entry.writer,
            read: entry.segment.mark().0,
            gap: Gap::default(),
            since: entry.since,
        })
    }

    pub(super) fn has_segment(&self, segment: &Arc<Segment>) -> bool {
        self.entries
            .iter()
            .any(|e| Arc::ptr_eq(&e.segment, segment))
    }

    /// Frees the records of a reader that is gone while other readers remain. The counts stay as
    /// they are.
    pub(super) fn detach(&mut self) -> WakerList {
        let counts = self.counts();
        (self.counts, self.unseen, self.is_detached) = (counts, 0, true);
        self.counts.published =
            counts.delivered + counts.undelivered + counts.conflated() + counts.dropped();
        self.entries.clear();
        self.control.clear();
        self.conflated.clear();
        self.waiters.take()
    }

    /// The newest spare segment without another owner. With several readers, the others remain until
    /// the other readers have released them. With one, a host has kept their memory, and returns it.
    pub(super) fn take_spare(&mut self) -> Option<(SegmentWriter, Arc<Segment>)> {
        if !self.shared {
            return std::iter::from_fn(|| self.spare.pop())
                .find_map(|segment| SegmentWriter::reuse(segment).ok());
        }
        let is_sole = |segment: &mut Arc<Segment>| Arc::get_mut(segment).is_some();
        let index = self.spare.iter_mut().rposition(is_sole)?;
        SegmentWriter::reuse(self.spare.swap_remove(index)).ok()
    }

    /// The segments of the standard size, for another stream.
    pub(super) fn take_standard(&mut self) -> impl Iterator<Item = Arc<Segment>> {
        self.open = None;
        let read = self.entries.drain(..).map(|entry| entry.segment);
        let all = self.spare.drain(..).chain(read);
        let (slots, tails, is_tee) = (self.slots, self.tails, self.is_tee);
        all.filter(move |segment| !is_tee && slots > 1 && segment.has_standard_size(slots, tails))
    }

    /// Counts of the records so far.
    pub(super) fn counts(&self) -> Counts {
        let unread: u64 = self.entries.iter().map(|e| u64::from(e.unread())).sum();
        let unread = unread + self.conflated.len() as u64;
        if self.is_detached {
            return self.counts;
        }
        let mut counts = Counts {
            delivered: self.counts.delivered - self.unseen,
            undelivered: unread + self.unseen,
            ..self.counts
        };
        if self.is_tee {
            // An additional reader may start in the middle of a segment, but writers count whole
            // segments, so the number is computed from its own counts.
            counts.published =
                counts.delivered + counts.undelivered + counts.conflated() + counts.dropped();
        }
        counts
    }

    /// The gap after the last record. Known once all records were delivered.
    pub(super) fn gap_at_end(&self) -> Gap {
        if self.conflated.len() > 0 || self.first().is_some() {
            return Gap::default();
        }
        let mut gap = Gap::default();
        for entry in &self.entries {
            gap.add(entry.gap);
        }
        gap.add(self.last_gap);
        gap
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::task::Waker;

    use super::Queue;
    use crate::stream::counts::Gap;
    use crate::stream::segment::{Segment, SegmentWriter};

    /// Writes the numbers below `end` in segments of four, and seals the last one.
    fn write(queue: &Mutex<Queue>, end: u64) {
        let mut own: Option<SegmentWriter> = None;
        for number in 0..end {
            if own.as_mut().is_none_or(|open| open.write(&number).is_err()) {
                let mut queue = queue.lock().unwrap();
                if let Some(open) = own.take() {
                    open.seal();
                }
                drop(queue.free_read_segments());
                let spare = queue.take_spare();
                let (mut open, segment) =
                    spare.unwrap_or_else(|| SegmentWriter::new(Segment::new(8, 4, 32).unwrap()));
                queue.push(segment, 1, Gap::default());
                open.write(&number).unwrap();
                own = Some(open);
            }
            own.as_mut().unwrap().commit();
        }
        let _queue = queue.lock().unwrap();
        own.unwrap().seal();
    }

    #[test]
    fn concurrent_writer_and_reader_keep_the_order() {
        const END: u64 = if cfg!(miri) { 60 } else { 50_000 };
        let queue = Mutex::new(Queue::new(4, 32, 8, false));
        let mut next = 0;
        std::thread::scope(|scope| {
            scope.spawn(|| write(&queue, END));
            while next < END {
                let batch = queue.lock().unwrap().take(3);
                let Some(batch) = batch else {
                    std::thread::yield_now();
                    continue;
                };
                assert_eq!(batch.first_sequence, next);
                for number in batch.read::<u64>(0, batch.count) {
                    assert_eq!(number, next);
                    next += 1;
                }
                drop(batch);
                let mut queue = queue.lock().unwrap();
                queue.open = None;
                drop(queue.free_read_segments());
            }
        });
        let mut queue = queue.into_inner().unwrap();
        drop(queue.free_read_segments());
        assert!(queue.entries.is_empty());
        assert_eq!(queue.counts().delivered, END);
    }

    /// Adds a segment of a writer with `records` records.
    fn push(queue: &mut Queue, writer: u64, records: u64) -> SegmentWriter {
        let (mut open, segment) = SegmentWriter::new(Segment::new(8, 4, 32).unwrap());
        queue.push(segment, writer, Gap::default());
        (0..records).for_each(|number| open.write(&number).unwrap());
        open
    }

    /// Takes a batch and releases it. Returns how many writers are woken.
    fn read_one(queue: &mut Queue) -> usize {
        queue.take(u32::MAX).expect("there is one");
        queue.open = None;
        queue.free_read_segments().into_iter().count()
    }

    #[test]
    fn interval_is_the_time_since_the_queue_was_empty_by_the_records_that_came() {
        let mut queue = Queue::new(4, 32, 8, false);
        assert_eq!(queue.interval_when_empty(), u64::MAX, "no record came");
        std::thread::sleep(std::time::Duration::from_millis(8));
        push(&mut queue, 1, 4).seal();
        read_one(&mut queue);
        let interval = queue.interval_when_empty();
        assert!(
            (2_000_000..u64::MAX).contains(&interval),
            "a quarter of 8 ms"
        );
        assert_eq!(
            queue.interval_when_empty(),
            u64::MAX,
            "no record came since"
        );
    }

    #[test]
    fn waiting_writer_is_woken_at_a_quarter_of_the_credit() {
        let mut queue = Queue::new(4, 32, 8, false);
        for _ in 0..8 {
            push(&mut queue, 1, 4).seal();
        }
        queue.add_waiter(Waker::noop().clone());
        let woken: Vec<usize> = (0..4).map(|_| read_one(&mut queue)).collect();
        assert_eq!(woken, [0, 1, 0, 0], "once, and nobody waits after that");
        // A writer that waits from now on has seen this credit, and waits for more.
        queue.add_waiter(Waker::noop().clone());
        assert_eq!(read_one(&mut queue), 1);
    }

    #[test]
    fn waiting_writer_is_woken_when_no_record_is_unread() {
        let mut queue = Queue::new(4, 32, 8, false);
        // Each of the other writers has an empty segment.
        let _others: Vec<SegmentWriter> =
            (2..10).map(|writer| push(&mut queue, writer, 0)).collect();
        push(&mut queue, 1, 4).seal();
        queue.add_waiter(Waker::noop().clone());
        assert_eq!(read_one(&mut queue), 1);
    }
}
