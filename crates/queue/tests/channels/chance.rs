//! Pseudo-random numbers. The same seed gives the same numbers.

/// Marsaglia's xorshift.
#[derive(Clone)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        let mut random = Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        for _ in 0..8 {
            random.next();
        }
        random
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 8
    }

    /// Creates an independent generator.
    pub fn another(&mut self) -> Self {
        Self::new(self.next())
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

/// The value of `THALWEG_TEST_SEED`, to repeat a failed run.
pub fn seed() -> Option<u64> {
    let seed = std::env::var("THALWEG_TEST_SEED").ok()?;
    Some(seed.parse().expect("a number"))
}
