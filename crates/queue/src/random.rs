//! Random choices, for example among the ready operations of a select. Not for cryptography.
//!
//! Each thread has its own SplitMix64 generator: Steele, Lea, Flood, "Fast Splittable Pseudorandom
//! Number Generators", 2014.

#[cfg(not(loom))]
thread_local! {
    /// 0 if the generator has no seed yet.
    static STATE: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// A random number below `count`. The distribution is uniform up to one part in 2^32 / `count`. 0
/// if `count` is 0.
///
/// ```
/// let cell = thalweg_queue::random::below(8);
/// assert!(cell < 8);
/// ```
#[inline]
pub fn below(count: usize) -> usize {
    if count < 2 {
        return 0;
    }
    let above = bits() >> 32;
    ((above * count as u64) >> 32) as usize
}

#[cfg(not(loom))]
fn bits() -> u64 {
    STATE.with(|cell| {
        let mut state = cell.get();
        if state == 0 {
            // Threads that start at the same moment have different addresses, so their seeds
            // differ.
            state = crate::clock::now() ^ (&raw const *cell).addr() as u64;
        }
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        cell.set(state);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    })
}

/// A loom model must behave the same in each execution.
#[cfg(loom)]
fn bits() -> u64 {
    0
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::below;

    #[test]
    fn below_gives_each_number_about_as_often() {
        const TURNS: usize = if cfg!(miri) { 300 } else { 30_000 };
        assert_eq!((below(0), below(1)), (0, 0));
        let mut seen = [0; 3];
        (0..TURNS).for_each(|_| seen[below(3)] += 1);
        // A third is expected. In 30,000 draws, a tenth less is 12 standard deviations away. In 300
        // draws, half as many is 4 standard deviations away.
        let least = if cfg!(miri) {
            TURNS / 6
        } else {
            TURNS * 3 / 10
        };
        assert!(seen.iter().all(|count| *count > least), "{seen:?}");
    }
}
