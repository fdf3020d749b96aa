//! Profiles: settings for kinds of workloads.

use std::time::Duration;

use super::Config;

/// A kind of workload. Use its settings as a starting point, and measure with your own load.
///
/// The values are the "recommended starting points" of smarm's `docs/BENCHMARKS_AND_TUNING.md`
/// (2026-05-25), whose time slices are in cycles at 3 GHz: 300,000 cycles are 100 us. They come
/// from a sweep of both settings over its twelve benchmarks on one processor. According to that
/// document, most of the benchmarks change by less than 5 % over the whole grid, so a profile has
/// little effect if a worker has few actors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Profile {
    /// Unknown: the default. 128 allocations, 100 us (300,000 cycles).
    #[default]
    Unknown,
    /// Many sleeping actors: 128 allocations, 50 us (150,000 cycles). Deadlines are checked at
    /// every preemption point, so a shorter slice detects them earlier. Timers improved by 3 to 4
    /// %.
    ManySleepers,
    /// Pipelines of channels: 128 allocations, 100 us (300,000 cycles), as in the default. Each
    /// send and receive is already a preemption point.
    Pipeline,
    /// Computation with few allocations: 32 allocations, 100 us (300,000 cycles). If allocations
    /// are rare, more of them must be preemption points. Loops that do not allocate at all must
    /// call [`check!`](crate::check).
    Compute,
    /// Fairness between many actors rather than throughput: 64 allocations, 50 us (150,000 cycles).
    Fair,
    /// Long batches of computation: 256 allocations, 200 us (600,000 cycles), for fewer switches.
    /// Other actors wait longer: a storm of spawns next to busy actors was 11 to 15 % slower.
    Batches,
}

impl Profile {
    /// All profiles.
    pub const ALL: [Self; 6] = [
        Self::Unknown,
        Self::ManySleepers,
        Self::Pipeline,
        Self::Compute,
        Self::Fair,
        Self::Batches,
    ];

    /// Returns the name that commands use, such as `many-sleepers`.
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
    /// Returns the default configuration with the settings of a profile.
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
    fn profiles_are_in_range_and_unknown_is_the_default() {
        for profile in Profile::ALL {
            assert!(Config::profile(profile).checked().is_ok(), "{profile:?}");
        }
        assert_eq!(Config::profile(Profile::Unknown), Config::default());
    }
}
