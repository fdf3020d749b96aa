//! Several readers of one stream.
//!
//! 1. A further reader is a [`StreamCore`] of its own, in the list of the stream that the writers know. That list, and what is pushed into
//!    the readers' queues, changes under the first queue's lock alone; a further reader's lock is taken inside of it, and never the other way.
//! 2. Writers enter a segment in the queue of each reader that has room. Where one has none, `block` waits and `fail` refuses, and nothing is entered anywhere; the
//!    other policies drop for that reader alone: the whole segment, where its own oldest are not dropped in its place.
//! 3. A reader that goes frees its queue. The last one's going is what the writers see as closed.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;

use crate::code::{Code, Failure};
use crate::stream::core::{StreamCore, lock};
use crate::stream::counts::{Gap, Reason};
use crate::stream::queue::Queue;
use crate::stream::segment::Segment;
use crate::stream::sending::Own;
use crate::stream::waking::MANY;

/// A reader for whom the writer's open segment is dropped; `None`: the first one.
pub(super) type Absent = (Option<Arc<StreamCore>>, Reason);

impl StreamCore {
    /// A further reader. It begins with what is written from now on.
    ///
    /// # Errors
    /// `stale`: this one is closed.
    pub fn tee(self: &Arc<Self>) -> Result<Arc<Self>, Failure> {
        if self.closed.load(Ordering::Acquire) {
            return Err(Code::Stale.because("the stream is closed"));
        }
        let of = match &self.of {
            None => Some(Arc::clone(self)),
            Some(of) => of.upgrade(),
        };
        // Writers are gone, and the first reader with them: this one has the ending.
        let first = of.unwrap_or_else(|| Arc::clone(self));
        let weak = Some(Arc::downgrade(&first));
        let tee = Self::build(&first.call, first.stride, first.options, weak);
        if let Some(conversion) = self.conversion.get() {
            let _ = tee.conversion.set(Arc::clone(conversion));
        }
        {
            let mut queue = lock(&first.queue);
            queue.shared = true;
            let tees = first.tees();
            let mut begun = lock(&tee.queue);
            begun.entries.extend(queue.begun());
            for other in tees.iter() {
                for entry in lock(&other.queue).begun() {
                    if !begun.has_segment(&entry.segment) {
                        begun.entries.push_back(entry);
                    }
                }
            }
            drop(begun);
            let all = tees.iter().cloned().chain([Arc::clone(&tee)]);
            first.set_tees(all.collect());
            first.telling.fetch_or(MANY, Ordering::Relaxed);
        }
        // From here on every writer sees the word.
        tee.gate.arm_heavily(Waker::noop().clone());
        tee.gate.disarm();
        if first.over.load(Ordering::Acquire)
            && let Some(ending) = first.ending.get()
        {
            tee.end_with(ending.clone());
        }
        Ok(tee)
    }

    /// Rule 3, of a reader that is closed.
    pub(super) fn leave_the_others(&self) {
        let Some(of) = &self.of else {
            let waiting = {
                let mut queue = lock(&self.queue);
                if self.tees().is_empty() {
                    None
                } else {
                    Some(queue.let_go_of_all())
                }
            };
            match waiting {
                Some(waiting) => waiting.into_iter().for_each(Waker::wake),
                None => self.over(),
            }
            return;
        };
        let mut is_last = false;
        let first = of.upgrade();
        if let Some(first) = &first {
            let _queue = lock(&first.queue);
            let tees = first.tees();
            let left = tees
                .iter()
                .filter(|tee| !std::ptr::eq(&raw const ***tee, self));
            let left: Arc<[_]> = left.cloned().collect();
            is_last = left.is_empty() && first.closed.load(Ordering::Acquire);
            first.set_tees(left);
        }
        // Who waits for this one looks again, and must not find it there.
        self.over();
        if let Some(first) = first
            && is_last
        {
            first.over();
        }
    }

    /// Rule 2, of the readers together: `Here` where one of them has room, and those that have none are noted.
    pub(super) fn room_for_all(
        &self,
        queue: &mut Queue,
        own: &mut Own,
        waker: Option<&Waker>,
        wakes: &mut Vec<Waker>,
    ) -> Room {
        let (mut absent, mut full, mut present) = (Vec::new(), false, false);
        let mut look = |queue: &mut Queue, who| match self.room(queue, own.number) {
            Room::Here => present = true,
            Room::Dropped(reason) => absent.push((who, reason)),
            Room::Full => {
                full = true;
                if let Some(waker) = waker {
                    queue.wait(waker.clone());
                }
            }
        };
        if !self.closed.load(Ordering::Acquire) {
            look(queue, None);
        }
        for tee in self.tees().iter() {
            let mut queue = lock(&tee.queue);
            wakes.extend(queue.give_back());
            if queue.taken() * 2 >= self.most {
                wakes.extend(queue.lingering.take());
            }
            look(&mut queue, Some(Arc::clone(tee)));
        }
        match absent.first() {
            _ if full => Room::Full,
            Some((_, reason)) if !present => {
                let reason = *reason;
                for (who, reason) in absent {
                    let gap = Gap::new(1, reason);
                    on(queue, who.as_ref(), |queue| queue.lose(gap));
                }
                Room::Dropped(reason)
            }
            _ => {
                own.absent = absent;
                Room::Here
            }
        }
    }

    /// The writer's new segment, for all readers but those that are absent.
    pub(super) fn push_for_all(&self, queue: &mut Queue, own: &mut Own, segment: &Arc<Segment>) {
        let gap = std::mem::take(&mut own.gap);
        for (who, _) in &own.absent {
            on(queue, who.as_ref(), |queue| queue.last_gap.add(gap));
        }
        let is_absent = |reader: Option<&Arc<Self>>| {
            let mut absent = own.absent.iter();
            absent.any(|(who, _)| who.as_ref().map(Arc::as_ptr) == reader.map(Arc::as_ptr))
        };
        if !is_absent(None) && !self.closed.load(Ordering::Acquire) {
            queue.push(Arc::clone(segment), own.number, gap);
        }
        for tee in self.tees().iter() {
            if !is_absent(Some(tee)) {
                lock(&tee.queue).push(Arc::clone(segment), own.number, gap);
            }
        }
    }

    /// Whether all readers have room; those that have none will wake `waker`.
    pub(super) fn have_all(
        &self,
        queue: &mut Queue,
        waker: Option<&Waker>,
        room: impl Fn(&mut Queue) -> bool,
    ) -> bool {
        let mut have = true;
        self.for_all(queue, |queue| {
            if !room(queue) {
                have = false;
                if let Some(waker) = waker {
                    queue.stats.waits += 1;
                    queue.wait(waker.clone());
                }
            }
        });
        have
    }

    /// Does something with the queues of all readers that are there; the caller holds the lock of the first one's.
    pub(super) fn for_all(&self, queue: &mut Queue, mut what: impl FnMut(&mut Queue)) {
        if !self.closed.load(Ordering::Acquire) {
            what(queue);
        }
        for tee in self.tees().iter() {
            what(&mut lock(&tee.queue));
        }
    }

    /// These readers lose the records of a segment that was sealed.
    pub(super) fn lose_for(&self, queue: &mut Queue, absent: Vec<Absent>, records: u64) {
        for (who, reason) in absent {
            on(queue, who.as_ref(), |queue| {
                queue.lose_here(Gap::new(records, reason))
            });
        }
    }
}

/// Does something with the queue of a reader; `None`: the first one's, whose lock the caller holds.
fn on(first: &mut Queue, who: Option<&Arc<StreamCore>>, what: impl FnOnce(&mut Queue)) {
    match who {
        None => what(first),
        Some(tee) => what(&mut lock(&tee.queue)),
    }
}

/// What a reader has for a writer that begins a segment.
pub(super) enum Room {
    Here,
    /// Not now.
    Full,
    /// Not for this one.
    Dropped(Reason),
}
