//! One run of a cell, and the repetition of runs until a sample is complete.
//!
//! A sample takes 50 to 200 ms: long enough that the clock and the start gate do not matter, short
//! enough that the sides of a round run under the same conditions. The number of messages that this
//! takes differs between subjects by a factor of a hundred. Each subject therefore determines its
//! own number during warm-up, and figures are per message. A cell with a given number of messages
//! sends exactly that number per run, and repeats the run until the sample is complete.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::cell::Sample;
use crate::problem::Problem;

/// The intended duration of a sample.
const SAMPLE: Duration = Duration::from_millis(80);
/// The same in a quick run.
const QUICK_SAMPLE: Duration = Duration::from_millis(5);

/// A trial of fewer messages than this measures the gate more than the subject.
const FEWEST: u64 = 1 << 10;

/// The largest number of runs per sample: each run starts its threads, which is not timed but takes
/// time.
const MOST_RUNS: u64 = 200;

/// The result of one run of a subject.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// Time from the start gate to the last message.
    pub elapsed: Duration,
    /// Further counts, summed over several runs.
    pub counts: BTreeMap<&'static str, f64>,
}

/// The number of messages per run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Messages {
    /// As many as make a sample.
    Timed,
    /// This number, in as many runs as make a sample.
    Exactly(u64),
}

impl Messages {
    /// Parses the spelling in `params`: `timed`, or a number.
    ///
    /// # Errors
    /// The text is neither.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        match text {
            "timed" => Ok(Self::Timed),
            number => number.parse().map(Self::Exactly).map_err(|_| {
                Problem::Usage(format!("messages are `timed` or a number, not `{text}`"))
            }),
        }
    }
}

/// Takes samples of one subject. See the module.
#[derive(Debug)]
pub struct Sampler {
    messages: Messages,
    /// The number of messages in a run is a multiple of this, so that each thread gets the same
    /// share.
    unit: u64,
    sample: Duration,
    /// Messages per run and runs per sample, once they are determined.
    settled: Option<(u64, u64)>,
}

impl Sampler {
    /// A sampler whose runs send `messages`, rounded up to a multiple of `unit`.
    #[must_use]
    pub fn new(messages: Messages, unit: u64, quick: bool) -> Self {
        Self {
            messages,
            unit: unit.max(1),
            sample: if quick { QUICK_SAMPLE } else { SAMPLE },
            settled: None,
        }
    }

    /// A sampler whose samples consist of one run each and take this long.
    #[must_use]
    pub fn lasting(sample: Duration, unit: u64) -> Self {
        Self {
            sample,
            ..Self::new(Messages::Timed, unit, false)
        }
    }

    /// Takes the next sample. `run` sends the number of messages that it receives as argument.
    ///
    /// # Errors
    /// The error that `run` returns.
    pub fn take(
        &mut self,
        mut run: impl FnMut(u64) -> Result<Run, Problem>,
    ) -> Result<Sample, Problem> {
        let (messages, runs) = match self.settled {
            Some(settled) => settled,
            None => {
                let settled = self.settle(&mut run)?;
                self.settled = Some(settled);
                settled
            }
        };
        let mut sum = Run::default();
        for _ in 0..runs {
            let one = run(messages)?;
            sum.elapsed += one.elapsed;
            for (name, count) in one.counts {
                *sum.counts.entry(name).or_default() += count;
            }
        }
        Ok(sample_of(&sum, messages * runs).with("messages", (messages * runs) as f64))
    }

    fn settle(
        &self,
        run: &mut impl FnMut(u64) -> Result<Run, Problem>,
    ) -> Result<(u64, u64), Problem> {
        match self.messages {
            Messages::Exactly(messages) => {
                let messages = self.rounded(messages);
                let once = run(messages)?.elapsed;
                Ok((messages, times(self.sample, once).clamp(1, MOST_RUNS)))
            }
            Messages::Timed => {
                let mut messages = self.rounded(FEWEST);
                // A quarter of a sample is enough to estimate a whole one.
                loop {
                    let once = run(messages)?.elapsed;
                    if once * 4 >= self.sample {
                        let exact =
                            messages as f64 * self.sample.as_secs_f64() / once.as_secs_f64();
                        return Ok((self.rounded(exact as u64), 1));
                    }
                    messages *= times(self.sample, once * 2).clamp(2, 16);
                }
            }
        }
    }

    fn rounded(&self, messages: u64) -> u64 {
        messages.max(1).next_multiple_of(self.unit)
    }
}

/// How often `part` fits into `whole`, rounded up.
fn times(whole: Duration, part: Duration) -> u64 {
    whole
        .as_nanos()
        .div_ceil(part.as_nanos().max(1))
        .try_into()
        .unwrap_or(u64::MAX)
}

fn sample_of(sum: &Run, messages: u64) -> Sample {
    let mut sample = Sample::of(sum.elapsed, messages);
    let count = |name| sum.counts.get(name).copied();
    if let (Some(cpu), Some(wall)) = (count(CPU_NS), count(WALL_NS)) {
        sample = sample.with("cpu_percent", 100.0 * cpu / wall);
    }
    if let Some(wakes) = count(WAKES).filter(|wakes| *wakes > 0.0) {
        sample = sample.with("items_per_wake", messages as f64 / wakes);
    }
    for (name, count) in &sum.counts {
        if ![CPU_NS, WALL_NS].contains(name) {
            sample = sample.with(name, *count);
        }
    }
    sample
}

/// Processor time of the whole process, including start and end of its threads.
pub const CPU_NS: &str = "cpu_ns";
/// The corresponding wall-clock time.
pub const WALL_NS: &str = "wall_ns";
/// The number of times that a sleeping receiver was woken.
pub const WAKES: &str = "wakes";

#[cfg(test)]
mod tests {
    use super::*;

    /// A subject that takes this many nanoseconds per message.
    fn subject(ns: u64) -> impl FnMut(u64) -> Result<Run, Problem> {
        move |messages| {
            Ok(Run {
                elapsed: Duration::from_nanos(ns * messages),
                counts: BTreeMap::from([(WAKES, 2.0), (CPU_NS, 30.0), (WALL_NS, 20.0)]),
            })
        }
    }

    #[test]
    fn a_timed_sample_lasts_as_long_for_a_fast_subject_as_for_a_slow_one() {
        for ns in [3, 120, 50_000, 5_000_000] {
            let mut sampler = Sampler::new(Messages::Timed, 1, false);
            let sample = sampler.take(subject(ns)).unwrap();
            assert_eq!(sample.ns, ns as f64);
            let lasted = Duration::from_nanos(ns * sample.metrics["messages"] as u64);
            if ns * FEWEST < 80_000_000 {
                assert!(
                    (50..=200).contains(&lasted.as_millis()),
                    "{ns} ns: {lasted:?}"
                );
            }
            assert_eq!(sample.metrics["cpu_percent"], 150.0);
        }
    }

    #[test]
    fn a_fixed_number_is_kept_and_repeated_until_the_sample_is_long_enough() {
        let mut runs = 0;
        let mut sampler = Sampler::new(Messages::Exactly(100_000), 1, false);
        let sample = sampler
            .take(|messages| {
                assert_eq!(messages, 100_000);
                runs += 1;
                subject(10)(messages)
            })
            .unwrap();
        // One run to determine the number, then 80 of 1 ms.
        assert_eq!(runs, 81);
        assert_eq!(sample.metrics["messages"], 8e6);
        assert_eq!(sample.metrics["items_per_wake"], 8e6 / 160.0);
        let mut long = Sampler::new(Messages::Exactly(10_000_000), 1, false);
        assert_eq!(long.take(subject(100)).unwrap().metrics["messages"], 1e7);
    }

    #[test]
    fn every_thread_gets_the_same_share() {
        let mut sampler = Sampler::new(Messages::Exactly(100), 15, false);
        sampler
            .take(|messages| {
                assert_eq!(messages, 105);
                subject(1)(messages)
            })
            .unwrap();
    }

    #[test]
    fn messages_are_timed_or_a_number() {
        assert_eq!(Messages::parse("timed").unwrap(), Messages::Timed);
        assert_eq!(Messages::parse("7").unwrap(), Messages::Exactly(7));
        assert!(Messages::parse("many").is_err());
    }
}
