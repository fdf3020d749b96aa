//! Which worker a job goes to.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// Gives the number by which jobs are kept together.
type KeyOf<J> = Arc<dyn Fn(&J) -> u64 + Send + Sync>;

/// How a [`Pool`](super::Pool) spreads its jobs.
///
/// | | goes to | order |
/// | --- | --- | --- |
/// | `Shared` | the worker that is free first | in which they were accepted they begin |
/// | `RoundRobin` | one worker after the other | of each worker's |
/// | `LeastLoaded` | the one for which the fewest wait | of each worker's |
/// | [`by_key`](Self::by_key) | always the same worker for the same key | of each key's |
pub enum Routing<J> {
    /// One queue, of which whoever is free takes the next.
    Shared,
    /// Each worker has a queue, and they take turns.
    RoundRobin,
    /// Each worker has a queue; the shortest one, counting what is at hand, gets the job.
    LeastLoaded,
    /// Each worker has a queue; [`by_key`](Self::by_key) makes it.
    ByKey(KeyOf<J>),
}

impl<J> Routing<J> {
    /// Jobs of one key go to one worker, one after the other, in the order in which they were accepted. Of `n` workers that become `n + 1`, or that
    /// were `n + 1`, one key in `n + 1` goes to another worker than before (Lamping and Veach, "A Fast, Minimal Memory, Consistent Hash
    /// Algorithm", 2014); what waits goes along with its key. Only a job that was at hand then may overlap with the next one of its key.
    pub fn by_key<K: Hash>(key: impl Fn(&J) -> K + Send + Sync + 'static) -> Self {
        Self::ByKey(Arc::new(move |job| {
            let mut hasher = DefaultHasher::new();
            key(job).hash(&mut hasher);
            hasher.finish()
        }))
    }

    pub(super) fn key(&self, job: &J) -> u64 {
        match self {
            Self::ByKey(key) => key(job),
            Self::Shared | Self::RoundRobin | Self::LeastLoaded => 0,
        }
    }
}

impl<J> fmt::Debug for Routing<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Shared => "Shared",
            Self::RoundRobin => "RoundRobin",
            Self::LeastLoaded => "LeastLoaded",
            Self::ByKey(_) => "ByKey",
        })
    }
}

/// Which of so many a key belongs to: the jump hash of Lamping and Veach.
pub(super) fn jump(mut key: u64, of: usize) -> usize {
    let (mut at, mut next) = (0, 0);
    while next < of {
        at = next;
        key = key.wrapping_mul(2_862_933_555_777_941_757).wrapping_add(1);
        let part = (1u64 << 31) as f64 / ((key >> 33) + 1) as f64;
        next = ((at + 1) as f64 * part) as usize;
    }
    at
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::jump;

    #[test]
    fn keys_are_spread_and_few_move() {
        for of in 1..if cfg!(miri) { 3 } else { 20 } {
            let mut each = vec![0; of];
            let mut moved = 0;
            for key in 0..10_000u64 {
                let key = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let (now, more) = (jump(key, of), jump(key, of + 1));
                each[now] += 1;
                // Whoever moves goes to the new one.
                assert!(more == now || more == of);
                moved += usize::from(more != now);
            }
            let fair = 10_000 / of;
            assert!(
                each.iter().all(|n| *n > fair / 2 && *n < fair * 2),
                "{each:?}"
            );
            assert!(moved < 2 * 10_000 / (of + 1), "{moved} of {of}");
        }
    }
}
