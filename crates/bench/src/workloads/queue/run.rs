//! One run of a cell, and as many of them as make a sample.
//!
//! A sample lasts 50 to 200 ms: long enough that neither the clock nor the way through the start gate shows, short enough
//! that the sides of a round share the machine's mood. How many messages that takes differs from subject to subject by a
//! factor of a hundred, so each subject finds its own number while it warms up, and figures are per message. A cell
//! that was asked for with a number of messages moves just that many a run, as many runs a sample as it takes.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::cell::Sample;
use crate::problem::Problem;

/// What a sample should last.
const SAMPLE: Duration = Duration::from_millis(80);
/// The same in a quick run.
const QUICK_SAMPLE: Duration = Duration::from_millis(5);

/// A trial of fewer messages than this says more about the gate than about the subject.
const FEWEST: u64 = 1 << 10;

/// Most runs a sample: each starts its threads anew, which is not timed but takes its time.
const MOST_RUNS: u64 = 200;

/// What one run of a subject found out.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// From the start gate to the last message.
    pub elapsed: Duration,
    /// Further sums; those of several runs are added up.
    pub counts: BTreeMap<&'static str, f64>,
}

/// How many messages a run moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Messages {
    /// As many as make a sample.
    Timed,
    /// This many, and as many runs as make a sample.
    Exactly(u64),
}

impl Messages {
    /// As `params` spells it: `timed`, or a number.
    ///
    /// # Errors
    /// It is neither.
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
    /// A run's messages are a multiple of this: each thread gets the same share.
    unit: u64,
    sample: Duration,
    /// Messages a run and runs a sample, once they are known.
    settled: Option<(u64, u64)>,
}

impl Sampler {
    /// One whose runs move `messages`, rounded up to a multiple of `unit`.
    #[must_use]
    pub fn new(messages: Messages, unit: u64, quick: bool) -> Self {
        Self {
            messages,
            unit: unit.max(1),
            sample: if quick { QUICK_SAMPLE } else { SAMPLE },
            settled: None,
        }
    }

    /// One whose samples are of one run each and last this long.
    #[must_use]
    pub fn lasting(sample: Duration, unit: u64) -> Self {
        Self {
            sample,
            ..Self::new(Messages::Timed, unit, false)
        }
    }

    /// Takes the next sample: `run` moves as many messages as it is told.
    ///
    /// # Errors
    /// What `run` says.
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
                // A quarter of a sample says well enough how long a whole one would take.
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

/// Processor time of the whole process, with its threads' start and end.
pub const CPU_NS: &str = "cpu_ns";
/// The wall clock's time to it.
pub const WALL_NS: &str = "wall_ns";
/// How often a sleeping receiver was woken.
pub const WAKES: &str = "wakes";

#[cfg(test)]
mod tests {
    use super::*;

    /// A subject that takes so many nanoseconds a message.
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
        // One to find out, then 80 of 1 ms.
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
