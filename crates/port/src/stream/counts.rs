//! What was written, what became of it, and why something is missing.

/// Why records are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Reason {
    /// A newer one took the place.
    Conflated = 1,
    /// The stream was full, and the new one was dropped.
    DroppedNewest = 2,
    /// The stream was full, and the oldest ones were dropped.
    DroppedOldest = 3,
    /// The stream was full, and the reader held what would have been dropped: so the new one was.
    Held = 4,
    /// The writer had them not: [`StreamWriter::lost`](crate::StreamWriter::lost).
    Writer = 5,
}

impl Reason {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Conflated,
        Self::DroppedNewest,
        Self::DroppedOldest,
        Self::Held,
        Self::Writer,
    ];
}

/// One more than the largest [`Reason`].
const REASONS: usize = 6;

/// Records that are missing at one place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Gap {
    pub(crate) lost: u64,
    /// Of the first of them; set where `lost` is not 0.
    pub(crate) reason: Option<Reason>,
}

impl Gap {
    pub(crate) fn new(lost: u64, reason: Reason) -> Self {
        Self {
            lost,
            reason: (lost > 0).then_some(reason),
        }
    }

    /// Behind it, these.
    pub(crate) fn add(&mut self, further: Self) {
        self.lost += further.lost;
        self.reason = self.reason.or(further.reason);
    }
}

/// A stream's books. Once its writers are gone, `published` is the sum of the others.
///
/// ```
/// let counts = thalweg_port::Counts::default();
/// let sum = counts.event + counts.dropped() + counts.conflated() + counts.undelivered;
/// assert_eq!(sum, counts.published);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Records that writers gave, also those that were dropped on the spot. A writer adds its own when it begins a segment, and when
    /// it is dropped.
    pub published: u64,
    /// Records that were in a batch.
    pub delivered: u64,
    /// Records that lie in the stream.
    pub undelivered: u64,
    pub(super) lost: [u64; REASONS],
}

impl Counts {
    /// Records that are missing for this reason.
    pub fn lost(&self, reason: Reason) -> u64 {
        self.lost[reason as usize]
    }

    /// Records that were replaced by newer ones.
    pub fn conflated(&self) -> u64 {
        self.lost(Reason::Conflated)
    }

    /// Records that are missing for any other reason.
    pub fn dropped(&self) -> u64 {
        self.lost.iter().sum::<u64>() - self.conflated()
    }

    /// And those of another stream.
    pub(super) fn add(&mut self, other: &Self) {
        self.published += other.published;
        self.delivered += other.delivered;
        self.undelivered += other.undelivered;
        for (sum, other) in self.lost.iter_mut().zip(other.lost) {
            *sum += other;
        }
    }

    pub(crate) fn lose(&mut self, gap: Gap) {
        if let Some(reason) = gap.reason {
            self.lost[reason as usize] += gap.lost;
        }
    }
}
