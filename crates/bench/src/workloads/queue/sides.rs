//! The sides of every cell in which numbers go through channels, and the tables of their subjects.
//!
//! | parameter | meaning | default |
//! | --- | --- | --- |
//! | `capacity` | of each channel, or `unbounded` | |
//! | `producers`, or `topology` like `2x3` | threads on each side; they also select the kind of channel | one on each side |
//! | `threads`, `twin` | `1`, `verbatim`: one thread sends and then receives | `2` |
//! | `channels` | channels that are used at once; on one thread, one after the other | 1 |
//! | `batch`, `partial` | messages at a time, and whether a part of a batch may be moved | 1, `yes` |
//! | `items` | messages per burst | 1 |
//! | `calls` | `try`: both sides retry at once | `wait` |
//! | `messages`, or `bursts`, or `each` per channel | messages per run | |
//! | `placement` | `split`: senders on one processor, receivers on another | `free` |
//!
//! A subject like `thalweg@producers=4` has this value in every cell.

use thalweg_peers::c11_ring::{self, C11Ring};
use thalweg_peers::channel::{Batches, Channel, ManyReceivers, ManySenders, Partial, Waiting};
use thalweg_peers::channels::{AsyncChannel, Crossbeam, Flume, Kanal, Std, Tokio};
use thalweg_peers::disruptor::{Disruptor, DisruptorMany};
use thalweg_peers::ring::{Rtrb, Rtrb03};
use thalweg_peers::vyukov::Vyukov;

use crate::cell::{Cell, Sample};
use crate::interleave::Side;
use crate::problem::Problem;

use super::go_chan;
use super::numbers::{
    Ends, FAILED_RECEIVES, FAILED_SENDS, InBatches, Threads, Way, check_rule, hand_over,
    in_batches, one_thread,
};
use super::run::{Messages, Run, Sampler};
use super::subjects::{Mpmc, Mpsc, Spsc, unknown};

/// A subject of a table.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    /// Its public name.
    pub name: &'static str,
    /// How its sides wait.
    pub waiting: Waiting,
    make: fn(Shape) -> Result<Side<'static, Sample>, Problem>,
}

/// One sender and one receiver.
pub const ONE_TO_ONE: &[Subject] = &[
    one::<Spsc>(),
    one::<Rtrb>(),
    one::<Rtrb03>(),
    one::<Crossbeam>(),
    one::<Std>(),
    one::<Kanal>(),
    one::<Flume>(),
    one::<AsyncChannel>(),
    one::<Tokio>(),
    one::<Disruptor>(),
    one::<C11Ring>(),
];

/// The same in batches.
pub const IN_BATCHES: &[Subject] = &[
    batched::<Spsc>(),
    batched::<Rtrb>(),
    batched::<Rtrb03>(),
    batched::<Disruptor>(),
    batched::<C11Ring>(),
];

/// Many senders and one receiver.
pub const MANY_TO_ONE: &[Subject] = &[
    gathering::<Mpsc>(),
    gathering::<Crossbeam>(),
    gathering::<Std>(),
    gathering::<Flume>(),
    gathering::<Kanal>(),
    gathering::<Tokio>(),
    gathering::<DisruptorMany>(),
    gathering::<Vyukov>(),
    gathering::<AsyncChannel>(),
];

/// Many senders and many receivers.
pub const MANY_TO_MANY: &[Subject] = &[
    spreading::<Mpmc>(),
    spreading::<Crossbeam>(),
    spreading::<Kanal>(),
    spreading::<Flume>(),
    spreading::<AsyncChannel>(),
    spreading::<Vyukov>(),
];

/// The ring in C inlined into a loop in C, on one thread. The loop in Rust calls or inlines the
/// other rings.
pub const INLINED: &str = "c11_ring_inlined";

const fn one<C: Channel>() -> Subject {
    Subject {
        name: C::NAME,
        waiting: C::WAITING,
        make: |shape| {
            let capacity = shape.bound()?;
            shape.side::<C>(None, move || {
                let (sender, receiver) = C::bounded(capacity);
                Ok((vec![sender], vec![receiver]))
            })
        },
    }
}

const fn batched<C: Batches>() -> Subject {
    Subject {
        name: C::NAME,
        waiting: Waiting::Looks,
        make: |shape| {
            let capacity = shape.bound()?;
            if let Way::Batches(batch, rule) = shape.threads.way {
                if rule == Partial::No && !C::WHOLE {
                    let text = format!("{} cannot wait for whole batches", C::NAME);
                    return Err(Problem::Usage(text));
                }
                check_rule::<C>(capacity, batch, rule)?;
            }
            shape.side::<C>(in_batches::<C>(), move || {
                let (sender, receiver) = C::bounded(capacity);
                Ok((vec![sender], vec![receiver]))
            })
        },
    }
}

const fn gathering<C: ManySenders>() -> Subject {
    Subject {
        name: C::NAME,
        waiting: C::WAITING,
        make: |shape| {
            shape.side::<C>(None, move || {
                let pair = match shape.capacity {
                    Some(capacity) => Some(C::bounded(capacity)),
                    None => C::unbounded(),
                };
                let (sender, receiver) = pair.ok_or_else(|| {
                    Problem::Usage(format!("{} has no channel without bound", C::NAME))
                })?;
                Ok((vec![sender; shape.senders], vec![receiver]))
            })
        },
    }
}

const fn spreading<C: ManyReceivers>() -> Subject {
    Subject {
        name: C::NAME,
        waiting: C::WAITING,
        make: |shape| {
            let capacity = shape.bound()?;
            shape.side::<C>(None, move || {
                let (sender, receiver) = C::bounded(capacity);
                Ok((vec![sender; shape.senders], vec![receiver; shape.receivers]))
            })
        },
    }
}

/// The threads and the channels of a cell.
#[derive(Clone, Copy, Debug)]
struct Shape {
    /// `None` means unbounded.
    capacity: Option<usize>,
    senders: usize,
    receivers: usize,
    channels: usize,
    alone: bool,
    threads: Threads,
    burst: u64,
    messages: Messages,
    quick: bool,
}

impl Shape {
    fn of(cell: &Cell) -> Result<Self, Problem> {
        let has = |name: &str| cell.params.contains_key(name);
        let number = |name: &str, default: u64| match has(name) {
            true => cell.number(name),
            false => Ok(default),
        };
        let text = |name: &str, default| cell.params.get(name).map_or(default, String::as_str);
        let capacity = match cell.text("capacity")? {
            "unbounded" => None,
            _ => Some(cell.number("capacity")? as usize),
        };
        let (senders, receivers) = match has("topology") {
            true => topology(cell.text("topology")?)?,
            false => (number("producers", 1)? as usize, 1),
        };
        let (batch, items) = (number("batch", 1)?, number("items", 1)?);
        let rule = match text("partial", "yes") {
            "yes" => Partial::Yes,
            "no" => Partial::No,
            other => {
                return Err(Problem::Usage(format!(
                    "partial is yes or no, not `{other}`"
                )));
            }
        };
        let channels = number("channels", 1)?;
        let messages = if has("bursts") {
            Messages::Exactly(items * cell.number("bursts")?)
        } else if has("each") {
            Messages::Exactly(channels * cell.number("each")?)
        } else {
            Messages::parse(cell.text("messages")?)?
        };
        let way = if batch > 1 {
            Way::Batches(batch as usize, rule)
        } else if items > 1 {
            Way::Bursts(items)
        } else if text("calls", "wait") == "try" {
            Way::Trying
        } else {
            Way::OneByOne
        };
        let threads = number("threads", 2)?;
        if threads > 2 {
            let why = format!("threads are 1 or 2, not {threads}");
            return Err(Problem::Usage(why));
        }
        let alone = threads == 1 || text("twin", "") == "verbatim";
        let full = capacity.unwrap_or(usize::MAX) as u64;
        if items > full || (rule == Partial::No && batch > 1 && batch > full / 2) {
            return Err(Problem::Usage(format!(
                "{batch} or {items} at a time do not fit into {full}: a burst needs that capacity, and a whole batch twice as much"
            )));
        }
        Ok(Self {
            capacity,
            senders,
            receivers,
            channels: channels as usize,
            alone,
            threads: Threads {
                way,
                split: text("placement", "free") == "split",
            },
            burst: batch.max(items),
            messages,
            quick: cell.quick,
        })
    }

    fn sampler(&self) -> Sampler {
        let threads = self.senders * self.receivers * self.channels;
        Sampler::new(self.messages, threads as u64 * self.burst, self.quick)
    }

    fn bound(&self) -> Result<usize, Problem> {
        self.capacity
            .ok_or_else(|| Problem::Usage("only mpsc has channels without bound".to_owned()))
    }

    /// A side whose every run sends its messages through channels that `make` creates.
    fn side<C: Channel>(
        self,
        batches: InBatches<C>,
        make: impl Fn() -> Result<Ends<C>, Problem> + 'static,
    ) -> Result<Side<'static, Sample>, Problem> {
        let channels = self.channels as u64;
        let mut sampler = self.sampler();
        let run: Box<dyn FnMut(u64) -> Result<Run, Problem>> = if self.alone {
            let all = (0..channels).map(|_| make().map(|(s, r)| s.into_iter().zip(r)));
            let all = all.collect::<Result<Vec<_>, _>>()?;
            let mut pairs: Vec<_> = all.into_iter().flatten().collect();
            let way = self.threads.way;
            Box::new(move |messages| {
                one_thread::<C>(&mut pairs, messages / channels, self.burst, way)
            })
        } else {
            Box::new(move |messages| {
                let all = (0..channels).map(|_| make()).collect::<Result<_, _>>()?;
                hand_over::<C>(all, messages / channels, self.threads, batches)
            })
        };
        let mut run = run;
        let counted = self.threads.way == Way::Trying;
        Ok(Side::new(move || {
            let sample = sampler.take(&mut run)?;
            Ok(if counted {
                with_share_of_failed(sample)
            } else {
                sample
            })
        }))
    }

    fn inlined(self) -> Result<Side<'static, Sample>, Problem> {
        let capacity = self.bound()?;
        let mut sampler = self.sampler();
        Ok(Side::new(move || {
            sampler.take(|messages| {
                let began = std::time::Instant::now();
                let right = c11_ring::same_thread(capacity, messages);
                let elapsed = began.elapsed();
                if right {
                    return Ok(Run {
                        elapsed,
                        ..Run::default()
                    });
                }
                let text = "a pop gave something else than was pushed";
                Err(Problem::Check(text.to_owned()))
            })
        }))
    }
}

/// Adds the share of tries that failed.
fn with_share_of_failed(sample: Sample) -> Sample {
    let count = |name| sample.metrics.get(name).copied().unwrap_or(0.0);
    let failed = count(FAILED_SENDS) + count(FAILED_RECEIVES);
    let tries = 2.0 * count("messages") + failed;
    sample.with("failed_percent", 100.0 * failed / tries)
}

/// Sets up all subjects of a cell. See the module.
///
/// # Errors
/// A parameter or a subject is invalid, or a subject breaks the rule for partial batches.
pub fn open(cell: &Cell) -> Result<Vec<Side<'static, Sample>>, Problem> {
    let side = |subject: &String| {
        let mut cell = cell.clone();
        let (name, own) = subject.split_once('@').unwrap_or((subject, ""));
        if let Some((param, value)) = own.split_once('=') {
            cell.params.insert(param.to_owned(), value.to_owned());
        }
        let shape = Shape::of(&cell)?;
        let has = |name: &str| cell.params.contains_key(name);
        let table = if has("topology") {
            MANY_TO_MANY
        } else if has("producers") {
            MANY_TO_ONE
        } else if matches!(shape.threads.way, Way::Batches(..)) {
            IN_BATCHES
        } else {
            ONE_TO_ONE
        };
        match name {
            // Go's channel has no unbounded variant and no batches; those cells do not include it.
            go_chan::NAME => {
                let capacity = shape.bound()?;
                go_chan::side(capacity, shape.senders, shape.receivers, shape.sampler())
            }
            INLINED if shape.alone => shape.inlined(),
            name => match table.iter().find(|one| one.name == name) {
                Some(subject) => (subject.make)(shape),
                None => unknown(name),
            },
        }
    };
    cell.subjects.iter().map(side).collect()
}

/// The number of senders and receivers in a text like `2x3`.
///
/// # Errors
/// The text has another form.
pub fn topology(text: &str) -> Result<(usize, usize), Problem> {
    let sides = text.split_once('x').and_then(|(senders, receivers)| {
        let sides: (usize, usize) = (senders.parse().ok()?, receivers.parse().ok()?);
        let threads = 1..=1024;
        (threads.contains(&sides.0) && threads.contains(&sides.1)).then_some(sides)
    });
    sides.ok_or_else(|| {
        Problem::Usage(format!(
            "a topology is like 2x3, with at most 1024 threads on each side, not `{text}`"
        ))
    })
}

/// The names of a table, without ours.
#[must_use]
pub fn peers(table: &[Subject]) -> Vec<&'static str> {
    table[1..].iter().map(|subject| subject.name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sides(
        params: &[(&str, &str)],
        subjects: &[&str],
    ) -> Result<Vec<Side<'static, Sample>>, Problem> {
        let mut all = vec![("capacity", "64"), ("messages", "2000")];
        all.extend(params);
        let mut cell = Cell::new("spsc_threads", &all, subjects);
        cell.quick = true;
        open(&cell)
    }

    fn all(params: &[(&str, &str)], table: &[Subject]) -> Vec<Sample> {
        let names: Vec<&str> = table.iter().map(|subject| subject.name).collect();
        let taken = sides(params, &names).unwrap().into_iter();
        let taken = taken.map(|mut side| side.take().unwrap());
        taken.inspect(|sample| assert!(sample.ns > 0.0)).collect()
    }

    #[test]
    fn every_subject_of_every_table_takes_a_checked_sample() {
        all(&[("placement", "split")], ONE_TO_ONE);
        all(&[("batch", "16")], IN_BATCHES);
        let whole = &[("batch", "16"), ("partial", "no")];
        let can_wait: Vec<Subject> = IN_BATCHES.to_vec();
        let can_wait = can_wait.iter().filter(|one| one.name != "disruptor");
        all(whole, &can_wait.copied().collect::<Vec<_>>());
        all(&[("producers", "4")], MANY_TO_ONE);
        all(&[("topology", "5x3")], MANY_TO_MANY);
    }

    #[test]
    fn one_thread_and_ten_channels_take_samples() {
        for threads in ["1", "2"] {
            all(&[("threads", threads)], ONE_TO_ONE);
            all(
                &[("threads", threads), ("items", "64"), ("bursts", "50")],
                ONE_TO_ONE,
            );
            let pairs = [("threads", threads), ("channels", "10"), ("each", "500")];
            all(&pairs, &ONE_TO_ONE[..3]);
        }
        let mut inlined = sides(&[("threads", "1")], &[INLINED]).unwrap();
        assert!(inlined[0].take().unwrap().ns > 0.0);
    }

    #[test]
    fn tries_that_fail_are_counted_and_on_one_thread_there_are_none() {
        // With two slots the threads must take turns, so tries fail on both sides.
        let two = [("calls", "try"), ("capacity", "2"), ("messages", "20000")];
        for sample in all(&two, &ONE_TO_ONE[..4]) {
            let percent = sample.metrics["failed_percent"];
            assert!(percent > 0.0 && percent < 100.0, "{percent}");
        }
        for sample in all(&[("calls", "try"), ("threads", "1")], &ONE_TO_ONE[..4]) {
            assert_eq!(sample.metrics["failed_percent"], 0.0);
        }
    }

    #[test]
    fn subject_with_a_value_of_its_own_has_it() {
        let two = ["thalweg@producers=2", "thalweg"];
        assert_eq!(sides(&[("producers", "4")], &two).unwrap().len(), 2);
        assert!(sides(&[], &["rtrb@capacity=x"]).is_err());
    }

    #[test]
    fn invalid_subject_or_parameter_is_refused() {
        for (params, subject) in [
            (&[][..], "vyukov"),
            (&[("producers", "4")], "rtrb"),
            (&[("topology", "2x0")], "thalweg"),
            (&[("items", "65"), ("bursts", "1")], "rtrb"),
            (&[("batch", "33"), ("partial", "no")], "rtrb"),
            (&[("batch", "16"), ("partial", "no")], "disruptor"),
            (&[("batch", "16"), ("partial", "maybe")], "rtrb"),
            (&[("batch", "16")], "crossbeam"),
        ] {
            assert!(sides(params, &[subject]).is_err(), "{params:?} {subject}");
        }
        assert_eq!(topology("5x3").unwrap(), (5, 3));
    }
}
