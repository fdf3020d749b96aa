//! Counters of published, delivered and missing records, and the reasons why records are missing.

/// Why records are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Reason {
    /// A newer record replaced it.
    Conflated = 1,
    /// The stream was full, and the new record was dropped.
    DroppedNewest = 2,
    /// The stream was full, and the oldest records were dropped.
    DroppedOldest = 3,
    /// The stream was full, and the oldest records were in the reader's open batch, so the new
    /// record was dropped.
    BatchOpen = 4,
    /// The writer never had them: [`StreamWriter::lost`](crate::StreamWriter::lost).
    Writer = 5,
}

impl Reason {
    /// All reasons.
    pub const ALL: [Self; 5] = [
        Self::Conflated,
        Self::DroppedNewest,
        Self::DroppedOldest,
        Self::BatchOpen,
        Self::Writer,
    ];
}

/// One more than the largest [`Reason`].
const REASONS: usize = 6;

/// Missing records at one position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Gap {
    pub(crate) lost: u64,
    /// The reason for the first of them; set if `lost` is not 0.
    pub(crate) reason: Option<Reason>,
}

impl Gap {
    pub(crate) fn new(lost: u64, reason: Reason) -> Self {
        Self {
            lost,
            reason: (lost > 0).then_some(reason),
        }
    }

    /// Adds a gap that directly follows this one.
    pub(crate) fn add(&mut self, following: Self) {
        self.lost += following.lost;
        self.reason = self.reason.or(following.reason);
    }
}

/// The counters of a stream. After its writers are gone, `published` is the sum of the others.
///
/// ```
/// let counts = thalweg_port::Counts::default();
/// let sum = counts.delivered + counts.dropped() + counts.conflated() + counts.undelivered;
/// assert_eq!(sum, counts.published);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Records that writers sent, including those that were dropped at once. A writer updates the
    /// count when it begins a segment and when it is dropped.
    pub published: u64,
    /// Records that were delivered in batches.
    pub delivered: u64,
    /// Records that are in the stream.
    pub undelivered: u64,
    pub(super) lost: [u64; REASONS],
}

impl Counts {
    /// Number of records that are missing for this reason.
    pub fn lost(&self, reason: Reason) -> u64 {
        self.lost[reason as usize]
    }

    /// Number of records that newer ones replaced.
    pub fn conflated(&self) -> u64 {
        self.lost(Reason::Conflated)
    }

    /// Number of records that are missing for other reasons.
    pub fn dropped(&self) -> u64 {
        self.lost.iter().sum::<u64>() - self.conflated()
    }

    /// Adds the counters of another stream.
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
