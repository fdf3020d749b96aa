//! What waits for the reader: segments in the order in which their writers began them, and the gaps between them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;

use thalweg_queue::clock;
use thalweg_runtime::TimerKey;

use crate::code::{Code, Failure};
use crate::stream::callback::CallbackState;
use crate::stream::conflate::ConflatedRecords;
use crate::stream::counts::{Counts, Gap, Reason};
use crate::stream::receiving::OpenBatch;
use crate::stream::segment::{Segment, SegmentWriter};
use crate::stream::stats::{Stats, age_class};

/// One segment, and how far it was read.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) segment: Arc<Segment>,
    /// Who writes or wrote it.
    pub(super) writer: u64,
    /// Records that were delivered.
    pub(super) read: u32,
    /// What was lost right before the next record of it.
    pub(super) gap: Gap,
    /// When it was begun.
    since: u64,
}

impl Entry {
    fn unread(&self) -> u32 {
        self.segment.mark().0 - self.read
    }
}

/// The reader's side of a stream, under one lock. A writer takes it once a segment.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// Size of a usual segment.
    slots: u32,
    tails: u32,
    /// Credit: segments.
    max_segments: usize,
    /// Of a further reader, who gives no segment back to a writer.
    is_tee: bool,
    /// Others read the segments, too.
    pub(super) shared: bool,
    /// The reader is gone, and others are not: nothing comes any more.
    is_detached: bool,
    pub(super) entries: VecDeque<Entry>,
    pub(super) spare: Vec<Arc<Segment>>,
    /// Writers that wait for credit.
    pub(super) waiters: Vec<Waker>,
    /// Losses behind the last segment.
    pub(super) last_gap: Gap,
    pub(super) counts: Counts,
    /// Number of the next record.
    pub(super) sequence: u64,
    pub(super) open: Option<OpenBatch>,
    /// It is being copied for a reader of another version.
    pub(super) converting: bool,
    /// Records of the last batch that the reader, who is gone, never looked at.
    pub(super) unseen: u64,
    /// Something was given since the reader last found nothing.
    pub(super) delivered_since_empty: bool,
    /// How long the reader lingers: see [`waking`](super::waking).
    pub(super) linger: u64,
    /// Woken before its lingering is over, where the stream fills or ends.
    pub(super) lingering_reader: Option<Waker>,
    /// Writers have waited for credit: a reader that finds nothing looks again before it sleeps.
    pub(super) should_spin: bool,
    /// Records delivered when the reader was last armed.
    pub(super) armed_at: u64,
    /// Counts requests to be woken; an older one's timer finds another number here.
    pub(super) wake_request: u64,
    pub(super) linger_timer: Option<TimerKey>,
    pub(super) callback: CallbackState,
    /// What `counts` has not.
    pub(super) stats: Stats,
    /// Control records, each alone in a segment: read before all others.
    pub(super) control: VecDeque<Arc<Segment>>,
    /// Where records are conflated by key: all that wait.
    pub(super) conflated: ConflatedRecords,
    /// What was in no entry was taken: there is room for another.
    single_taken: bool,
    /// Credit came back since the writers that wait for it were woken.
    credit_returned: bool,
}

impl Queue {
    /// One whose segments usually have this size.
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

    /// Whether the writer has a segment here that was not given back.
    pub(super) fn has_segment_of(&self, writer: u64) -> bool {
        self.entries.iter().any(|entry| entry.writer == writer)
    }

    /// Whether a batch of this segment is open.
    fn is_open(&self, segment: &Arc<Segment>) -> bool {
        self.open
            .as_ref()
            .is_some_and(|open| Arc::ptr_eq(&open.segment, segment))
    }

    /// Credit that is in use: segments.
    pub(super) fn segments_in_use(&self) -> usize {
        self.entries.len()
    }

    /// A writer's new segment, with what was lost before it.
    pub(super) fn push(&mut self, segment: Arc<Segment>, writer: u64, gap: Gap) {
        let mut before = std::mem::take(&mut self.last_gap);
        before.add(gap);
        self.entries.push_back(Entry {
            segment,
            writer,
            read: 0,
            gap: before,
            since: clock::now(),
        });
        let places = self.entries.len() as u64 * u64::from(self.slots);
        self.stats.high_water = self.stats.high_water.max(places);
    }

    /// Takes the segment away; what was lost before its next record is lost before what follows.
    fn remove(&mut self, index: usize, is_tee: Gap) {
        let Some(mut entry) = self.entries.remove(index) else {
            return;
        };
        entry.gap.add(is_tee);
        let next = self.entries.get_mut(index);
        let place = next.map_or(&mut self.last_gap, |next| &mut next.gap);
        let behind = std::mem::replace(place, entry.gap);
        place.add(behind);
        #[cfg(debug_assertions)]
        if let Some(sole) = Arc::get_mut(&mut entry.segment) {
            sole.poison_all();
        }
        if self.has_standard_size(&entry.segment) {
            self.spare.push(entry.segment);
        }
    }

    /// Whether it is to be used again here: it has the usual size, and is no other queue's.
    pub(super) fn has_standard_size(&self, segment: &Segment) -> bool {
        !self.is_tee && segment.has_standard_size(self.slots, self.tails)
    }

    /// Rule 2: segments that are through. Whoever waits for credit is to be woken once a quarter of it is there, or nothing is left to be read: woken for
    /// each segment, a writer that is faster than its reader would sleep again after each.
    #[must_use]
    pub(super) fn free_read_segments(&mut self) -> Vec<Waker> {
        let before = self.entries.len();
        let mut index = 0;
        while let Some(entry) = self.entries.get(index) {
            // Sealed is looked at first: nothing is committed after it.
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
            return Vec::new();
        }
        // Who comes to wait from now on has looked first.
        (self.credit_returned, self.single_taken) = (false, false);
        std::mem::take(&mut self.waiters)
    }

    /// The reader is through with the first records of the open batch; whether it is with all.
    pub(super) fn release_records(&mut self, count: u32) -> bool {
        let Some(open) = &mut self.open else {
            return true;
        };
        let count = count.min(open.count);
        #[cfg(debug_assertions)]
        if !self.shared && !open.kept {
            // SAFETY: `take` made the batch from the segment's mark; nobody else reads it, and who gives records back and has not kept them
            // reads them no more.
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

    /// The open batch has been taken, and its reader gets the first records in `segment`, a copy of them; the others are to be read again.
    pub(super) fn replace_open(&mut self, copy: Segment, count: u32) -> Option<OpenBatch> {
        self.converting = false;
        let open = self.open.as_mut()?;
        let rest = open.count - count;
        let of = |entry: &&mut Entry| Arc::ptr_eq(&entry.segment, &open.segment);
        if let Some(entry) = self.entries.iter_mut().find(of) {
            entry.read -= rest;
            self.sequence -= u64::from(rest);
            self.counts.delivered -= u64::from(rest);
        }
        (open.from, open.count, open.end) = (0, count, copy.mark().1);
        open.segment = Arc::new(copy);
        Some(open.clone())
    }

    /// The batch that is open, for whoever gives it back or keeps it.
    ///
    /// # Errors
    /// `argument`: there is none, or it is not yet its reader's.
    pub(super) fn open_batch(&mut self) -> Result<&mut OpenBatch, Failure> {
        if self.converting {
            return Err(Code::Argument.because("another thread is reading this stream"));
        }
        let none = || Code::Argument.because("no batch is open");
        self.open.as_mut().ok_or_else(none)
    }

    /// Has a writer woken when there is credit.
    pub(super) fn add_waiter(&mut self, waker: Waker) {
        if !self.waiters.iter().any(|known| known.will_wake(&waker)) {
            self.waiters.push(waker);
        }
    }

    /// Drops the oldest segment that is complete and that nobody reads. `false`: there is none.
    pub(super) fn drop_oldest(&mut self, reason: Reason) -> bool {
        let oldest = self
            .entries
            .iter()
            .position(|entry| entry.segment.is_sealed() && !self.is_open(&entry.segment));
        let Some(index) = oldest else {
            return false;
        };
        let lost = Gap::new(u64::from(self.entries[index].unread()), reason);
        self.counts.lose(lost);
        self.remove(index, lost);
        true
    }

    /// The first record that is there and was not read.
    fn first(&self) -> Option<usize> {
        self.entries.iter().position(|entry| entry.unread() > 0)
    }

    pub(super) fn has_records(&self) -> bool {
        !self.control.is_empty() || self.conflated.len() > 0 || self.first().is_some()
    }

    /// A control record, whose numbers are none of the others'.
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

    /// The record whose key waits longest.
    fn take_keyed(&mut self) -> Option<OpenBatch> {
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

    /// Rules 4 and 10: a control record, or a run of the first segment that has something.
    pub(super) fn take(&mut self, max: u32) -> Option<OpenBatch> {
        if let Some(batch) = self.take_control().or_else(|| self.take_keyed()) {
            return Some(batch);
        }
        let index = self.first()?;
        let mut gap = Gap::default();
        // An older segment that has nothing yet may have had a gap before it: what comes next comes after it.
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

    /// A writer enters what it gave into the books.
    pub(super) fn publish(&mut self, records: u64) {
        if !self.is_detached {
            self.counts.published += records;
        }
    }

    /// Lost, and told of where the writer's next record comes.
    pub(super) fn lose(&mut self, gap: Gap) {
        if !self.is_detached {
            self.counts.lose(gap);
        }
    }

    /// Lost right behind what came last.
    pub(super) fn lose_at_end(&mut self, gap: Gap) {
        self.lose(gap);
        self.last_gap.add(gap);
    }

    /// What a further reader that comes now begins with: segments that are still written, from what is committed now on.
    pub(super) fn unsealed_entries(&self) -> impl Iterator<Item = Entry> {
        let open = self.entries.iter().filter(|e| !e.segment.is_sealed());
        open.map(|entry| Entry {
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

    /// The reader is gone, and others are not: what waits for it is freed. The books stay as they are.
    pub(super) fn detach(&mut self) -> Vec<Waker> {
        let counts = self.counts();
        (self.counts, self.unseen, self.is_detached) = (counts, 0, true);
        self.counts.published =
            counts.delivered + counts.undelivered + counts.conflated() + counts.dropped();
        self.entries.clear();
        self.control.clear();
        self.conflated.clear();
        std::mem::take(&mut self.waiters)
    }

    /// A segment that was used before, if nobody has it still.
    pub(super) fn take_spare(&mut self) -> Option<(SegmentWriter, Arc<Segment>)> {
        while let Some(segment) = self.spare.pop() {
            if let Ok(open) = SegmentWriter::reuse(segment) {
                return Some(open);
            }
        }
        None
    }

    /// The segments of the usual size, which another stream may use: what had them is gone.
    pub(super) fn take_standard(&mut self) -> impl Iterator<Item = Arc<Segment>> {
        self.open = None;
        let read = self.entries.drain(..).map(|entry| entry.segment);
        let all = self.spare.drain(..).chain(read);
        let (slots, tails, is_tee) = (self.slots, self.tails, self.is_tee);
        all.filter(move |segment| !is_tee && slots > 1 && segment.has_standard_size(slots, tails))
    }

    /// What became of the records so far.
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
            // What it was to be given: it came in the middle of segments, which writers enter as a whole.
            counts.published =
                counts.delivered + counts.undelivered + counts.conflated() + counts.dropped();
        }
        counts
    }

    /// What was lost behind the last record, once all others were delivered.
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

    /// Writes the numbers below `end` in segments of four, and seals the last.
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
    fn one_thread_writes_while_another_reads() {
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

    /// A segment of a writer, with so many records.
    fn push(queue: &mut Queue, writer: u64, records: u64) -> SegmentWriter {
        let (mut open, segment) = SegmentWriter::new(Segment::new(8, 4, 32).unwrap());
        queue.push(segment, writer, Gap::default());
        (0..records).for_each(|number| open.write(&number).unwrap());
        open
    }

    /// The reader takes a batch and gives it back; how many writers are then woken.
    fn read_one(queue: &mut Queue) -> usize {
        queue.take(u32::MAX).expect("there is one");
        queue.open = None;
        queue.free_read_segments().len()
    }

    #[test]
    fn who_waits_for_credit_is_woken_when_a_quarter_of_it_is_there() {
        let mut queue = Queue::new(4, 32, 8, false);
        for _ in 0..8 {
            push(&mut queue, 1, 4).seal();
        }
        queue.add_waiter(Waker::noop().clone());
        let woken: Vec<usize> = (0..4).map(|_| read_one(&mut queue)).collect();
        assert_eq!(woken, [0, 1, 0, 0], "once, and nobody waits after that");
        // Who comes to wait later has seen that there is credit, and waits for more of it.
        queue.add_waiter(Waker::noop().clone());
        assert_eq!(read_one(&mut queue), 1);
    }

    #[test]
    fn who_waits_for_credit_is_woken_when_nothing_is_left_to_be_read() {
        let mut queue = Queue::new(4, 32, 8, false);
        // Each of the others has a segment and nothing in it.
        let _others: Vec<SegmentWriter> =
            (2..10).map(|writer| push(&mut queue, writer, 0)).collect();
        push(&mut queue, 1, 4).seal();
        queue.add_waiter(Waker::noop().clone());
        assert_eq!(read_one(&mut queue), 1);
    }
}
