//! The distribution of jobs to workers.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// The function that returns the hash of a job's key.
type KeyOf<J> = Arc<dyn Fn(&J) -> u64 + Send + Sync>;

/// How a [`Pool`](super::Pool) distributes its jobs.
///
/// | | receives the job | order |
/// | --- | --- | --- |
/// | `Shared` | the first free worker | jobs begin in the order of acceptance |
/// | `RoundRobin` | one worker after the other | within each worker |
/// | `LeastLoaded` | the worker with the fewest jobs | within each worker |
/// | [`by_key`](Self::by_key) | always the same worker for the same key | within each key |
pub enum Routing<J> {
    /// One queue, from which each free worker takes the next job.
    Shared,
    /// Each worker has a queue, and they take turns.
    RoundRobin,
    /// Each worker has a queue. The worker with the fewest waiting and running jobs receives the
    /// job.
    LeastLoaded,
    /// Each worker has a queue. Create it by [`by_key`](Self::by_key).
    ByKey(KeyOf<J>),
}

impl<J> Routing<J> {
    /// Jobs with the same key are run by one worker, one after the other, in the order of
    /// acceptance. When the number of workers changes between `n` and `n + 1`, one key in `n + 1`
    /// moves to another worker (Lamping and Veach, "A Fast, Minimal Memory, Consistent Hash
    /// Algorithm", 2014). Waiting jobs move with their key; only a job that is running at that time
    /// may overlap with the next one of its key.
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

/// The worker of a key, out of this many: the jump hash of Lamping and Veach.
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
    fn keys_spread_evenly_and_few_move_on_resize() {
        for of in 1..if cfg!(miri) { 3 } else { 20 } {
            let mut each = vec![0; of];
            let mut moved = 0;
            for key in 0..10_000u64 {
                let key = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let (now, more) = (jump(key, of), jump(key, of + 1));
                each[now] += 1;
                // A key that moves goes to the new worker.
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
