//! Settings for kinds of work.

use std::time::Duration;

use super::Config;

/// A kind of work, and a place to start tuning from: measure with your own load.
///
/// The values are the "recommended starting points" of smarm's `docs/BENCHMARKS_AND_TUNING.md` (2026-05-25), whose time slices are cycles at 3 GHz:
/// 300,000 are 100 us. They come from a sweep of both settings over its twelve benchmarks on one processor; its own finding is that most
/// of those move by less than 5 % over the whole grid, so expect little of a profile where a worker has few actors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Profile {
    /// Not known: the default. 128 allocations, 100 us (300,000 cycles).
    #[default]
    Unknown,
    /// Many actors that sleep: 128 allocations, 50 us (150,000 cycles). Deadlines are looked at at every point, so that a shorter slice finds
    /// them earlier: its timers gained 3 to 4 %.
    ManySleepers,
    /// Pipelines of channels: 128 allocations, 100 us (300,000 cycles), as the default. A send and a receive are points already.
    Pipeline,
    /// Computing, with few allocations: 32 allocations, 100 us (300,000 cycles). Where points are rare more of the allocations have to be; loops
    /// that do not allocate at all say [`check!`](crate::check).
    Compute,
    /// Fairness among many actors before throughput: 64 allocations, 50 us (150,000 cycles).
    Fair,
    /// Long batches of computing: 256 allocations, 200 us (600,000 cycles), for fewer switches. Others wait longer: its storm of spawns beside busy
    /// actors lost 11 to 15 %.
    Batches,
}

impl Profile {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Unknown,
        Self::ManySleepers,
        Self::Pipeline,
        Self::Compute,
        Self::Fair,
        Self::Batches,
    ];

    /// Its name in commands: `many-sleepers`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::ManySleepers => "many-sleepers",
            Self::Pipeline => "pipeline",
            Self::Compute => "compute",
            Self::Fair => "fair",
            Self::Batches => "batches",
        }
    }
}

impl Config {
    /// The default with the settings for a kind of work.
    ///
    /// ```
    /// use thalweg_runtime::{Config, Profile, runtime};
    ///
    /// let config = Config::profile(Profile::Fair).workers(2);
    /// assert_eq!(config.alloc_interval, 64);
    /// assert_eq!(runtime::init(config)?.run(|| 3), 3);
    /// # Ok::<(), thalweg_runtime::StartError>(())
    /// ```
    #[must_use]
    pub fn profile(profile: Profile) -> Self {
        let (alloc_interval, us) = match profile {
            Profile::Unknown | Profile::Pipeline => (128, 100),
            Profile::ManySleepers => (128, 50),
            Profile::Compute => (32, 100),
            Profile::Fair => (64, 50),
            Profile::Batches => (256, 200),
        };
        Self::default()
            .alloc_interval(alloc_interval)
            .timeslice(Duration::from_micros(us))
    }
}

#[cfg(test)]
mod tests {
    use super::{Config, Profile};

    #[test]
    fn every_profile_is_in_range_and_the_unknown_one_is_the_default() {
        for profile in Profile::ALL {
            assert!(Config::profile(profile).checked().is_ok(), "{profile:?}");
        }
        assert_eq!(Config::profile(Profile::Unknown), Config::default());
    }
}
