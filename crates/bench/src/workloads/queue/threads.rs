//! A hand-off between threads: set up, started at one gate, timed, checked.
//!
//! The time is wall-clock time, from the first thread that passes the gate ([`super::crew`]) to the
//! last message of the last receiver. A message contains its sender's number and its index in that
//! sender's sequence. A single receiver checks that every sequence has no gap. Several receivers
//! check that each sequence is in order, and together that every message arrived once (by count and
//! sum).

use std::time::Instant;

use thalweg_peers::Channel;

use crate::placement::allowed;
use crate::problem::Problem;

use super::crew::Crew;
use super::run::{Run, WAKES};

/// Bits of a message that contain the index; the others contain the sender's number.
const SEQUENCE_BITS: u32 = 40;
const SEQUENCE: u64 = (1 << SEQUENCE_BITS) - 1;

/// The checks of every run, for the row.
pub const CHECKED_ONE: &str = "every message arrived once, each sender's in order without a gap";
/// The same with several receivers.
pub const CHECKED_MANY: &str = "every message arrived at one receiver, each sender's in order there; count and sum of each sender's";

/// The threads and their settings.
#[derive(Clone, Copy, Debug)]
pub struct Threads {
    /// Messages per operation, on both sides.
    pub batch: usize,
    /// Whether senders run on the first allowed processor and receivers on the second.
    pub split: bool,
}

/// Moves `messages` from `senders` to `receivers`, divided equally on each side, and checks all of
/// them.
///
/// # Errors
/// A check fails, or a thread panics or hangs.
pub fn hand_over<C: Channel>(
    senders: Vec<C::Sender>,
    receivers: Vec<C::Receiver>,
    messages: u64,
    threads: Threads,
) -> Result<Run, Problem> {
    let (sending, receiving) = (senders.len(), receivers.len());
    let cpus = if threads.split { allowed() } else { Vec::new() };
    let place = |index: usize| cpus.get(index).copied();
    let mut crew = Crew::new(C::NAME, sending + receiving);
    let each = messages / sending as u64;
    for (number, mut sender) in (0u64..).zip(senders) {
        crew.add(place(0), move |began| {
            send_all::<C>(&mut sender, number, each, threads.batch);
            End {
                began,
                ended: Instant::now(),
                tallies: Vec::new(),
                wakes: None,
            }
        })?;
    }
    let share = messages / receiving as u64;
    for mut receiver in receivers {
        crew.add(place(1), move |began| {
            let tallies = if receiving == 1 {
                receive_all::<C>(&mut receiver, sending, share, threads.batch)
            } else {
                receive_share::<C>(&mut receiver, sending, share)
            };
            End {
                began,
                ended: Instant::now(),
                tallies,
                wakes: C::wakes(&receiver),
            }
        })?;
    }
    let (ends, mut run) = crew.wait()?;
    verify(C::NAME, &ends, sending, each)?;

    let began = ends.iter().map(|end| end.began).min();
    let received = ends.iter().filter(|end| !end.tallies.is_empty());
    let ended = received.map(|end| end.ended).max();
    if let (Some(began), Some(ended)) = (began, ended) {
        run.elapsed = ended.duration_since(began);
    }
    // Every receiver reads the same counter of the channel.
    if let Some(wakes) = ends.iter().filter_map(|end| end.wakes).max() {
        run.counts.insert(WAKES, wakes as f64);
    }
    Ok(run)
}

/// The result of a thread that did not panic.
#[derive(Debug)]
struct End {
    began: Instant,
    ended: Instant,
    /// A receiver's tallies, one per sender; empty for a sender.
    tallies: Vec<Tally>,
    wakes: Option<u64>,
}

fn send_all<C: Channel>(sender: &mut C::Sender, number: u64, count: u64, batch: usize) {
    let first = number << SEQUENCE_BITS;
    if batch == 1 {
        for message in first..first + count {
            C::send(sender, message);
        }
    } else {
        for start in (first..first + count).step_by(batch) {
            C::send_batch(sender, start, batch);
        }
    }
}

/// The messages that one receiver got from one sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    /// The expected next index.
    next: u64,
    count: u64,
    sum: u64,
    /// The bits in which messages differ from the expected ones, or a mark for a sequence that went
    /// backwards.
    wrong: u64,
}

impl Tally {
    /// The tally of a sequence without a gap.
    fn gapless(count: u64, wrong: u64) -> Self {
        Self {
            next: count,
            count,
            sum: sum_below(count),
            wrong,
        }
    }
}

/// Receives everything as the only receiver: each sender's messages without a gap.
fn receive_all<C: Channel>(
    receiver: &mut C::Receiver,
    senders: usize,
    count: u64,
    batch: usize,
) -> Vec<Tally> {
    if senders == 1 {
        let mut wrong = 0;
        let mut due = 0;
        if batch == 1 {
            while due < count {
                wrong |= C::receive(receiver) ^ due;
                due += 1;
            }
        } else {
            while due < count {
                C::receive_batch(receiver, batch, |message| {
                    wrong |= message ^ due;
                    due += 1;
                });
            }
        }
        return vec![Tally::gapless(due, wrong)];
    }
    let mut due = vec![0u64; senders];
    let mut wrong = 0;
    for _ in 0..count {
        let message = C::receive(receiver);
        match due.get_mut((message >> SEQUENCE_BITS) as usize) {
            Some(due) => {
                wrong |= (message & SEQUENCE) ^ *due;
                *due += 1;
            }
            None => wrong = u64::MAX,
        }
    }
    due.into_iter()
        .map(|due| Tally::gapless(due, wrong))
        .collect()
}

/// Receives as one of several receivers: some of each sender's messages, in order.
fn receive_share<C: Channel>(receiver: &mut C::Receiver, senders: usize, count: u64) -> Vec<Tally> {
    let mut tallies = vec![Tally::default(); senders];
    let mut strangers = 0;
    for _ in 0..count {
        let message = C::receive(receiver);
        match tallies.get_mut((message >> SEQUENCE_BITS) as usize) {
            Some(tally) => {
                let sequence = message & SEQUENCE;
                tally.wrong |= u64::from(sequence < tally.next);
                tally.next = sequence + 1;
                tally.count += 1;
                tally.sum += sequence;
            }
            None => strangers = u64::MAX,
        }
    }
    tallies
        .iter_mut()
        .for_each(|tally| tally.wrong |= strangers);
    tallies
}

/// 0 + 1 + .. + (count - 1).
fn sum_below(count: u64) -> u64 {
    count * count.saturating_sub(1) / 2
}

fn verify(subject: &str, ends: &[End], senders: usize, each: u64) -> Result<(), Problem> {
    for sender in 0..senders {
        let mut all = Tally::default();
        for tally in ends.iter().filter_map(|end| end.tallies.get(sender)) {
            all.count += tally.count;
            all.sum = all.sum.wrapping_add(tally.sum);
            all.wrong |= tally.wrong;
        }
        if all.wrong != 0 || all.count != each || all.sum != sum_below(each) {
            return Err(Problem::Check(format!(
                "{subject}: of {each} messages of sender {sender} {} arrived, {}",
                all.count,
                if all.wrong == 0 {
                    "in order"
                } else {
                    "out of order or changed"
                }
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use thalweg_peers::channel::Waiting;
    use thalweg_peers::shared::Crossbeam;

    use super::*;
    use crate::workloads::queue::run::WALL_NS;

    const ONE: Threads = Threads {
        batch: 1,
        split: false,
    };

    fn crossbeam(
        senders: usize,
        receivers: usize,
        messages: u64,
        threads: Threads,
    ) -> Result<Run, Problem> {
        let (sender, receiver) = Crossbeam::bounded(16);
        hand_over::<Crossbeam>(
            vec![sender; senders],
            vec![receiver; receivers],
            messages,
            threads,
        )
    }

    #[test]
    fn every_topology_arrives_whole() {
        for (senders, receivers) in [(1, 1), (4, 1), (1, 4), (2, 2), (5, 3)] {
            let run = crossbeam(senders, receivers, 6_000, ONE).unwrap();
            assert!(run.elapsed > Duration::ZERO);
            assert!(run.counts[WALL_NS] >= run.elapsed.as_nanos() as f64);
        }
        let batches = Threads {
            batch: 16,
            split: true,
        };
        crossbeam(1, 1, 6_400, batches).unwrap();
    }

    /// A channel that alters messages in the way that the test selects, before crossbeam's channel
    /// sends them.
    struct Broken<const CHANGE: u8>;

    const SWAPS: u8 = 0;
    const CHANGES: u8 = 1;
    const REPEATS: u8 = 2;
    const PANICS: u8 = 3;

    impl<const CHANGE: u8> Channel for Broken<CHANGE> {
        const NAME: &'static str = "broken";
        const WAITING: Waiting = Waiting::Own;
        type Sender = <Crossbeam as Channel>::Sender;
        type Receiver = <Crossbeam as Channel>::Receiver;

        fn bounded(capacity: usize) -> (Self::Sender, Self::Receiver) {
            Crossbeam::bounded(capacity)
        }

        fn send(sender: &mut Self::Sender, message: u64) {
            let sequence = message & SEQUENCE;
            let broken = match (CHANGE, sequence) {
                (SWAPS, 500) => message + 1,
                (SWAPS, 501) => message - 1,
                (CHANGES, 500) => message | 1 << 39,
                (REPEATS, 500) => message - 1,
                (PANICS, 500) => panic!("as the test says"),
                _ => message,
            };
            Crossbeam::send(sender, broken);
        }

        fn receive(receiver: &mut Self::Receiver) -> u64 {
            Crossbeam::receive(receiver)
        }

        fn try_send(sender: &mut Self::Sender, message: u64) -> bool {
            Crossbeam::try_send(sender, message)
        }

        fn try_receive(receiver: &mut Self::Receiver) -> Option<u64> {
            Crossbeam::try_receive(receiver)
        }
    }

    fn caught<const CHANGE: u8>(senders: usize, receivers: usize) {
        let (sender, receiver) = Broken::<CHANGE>::bounded(64);
        let (senders, receivers) = (vec![sender; senders], vec![receiver; receivers]);
        let problem = hand_over::<Broken<CHANGE>>(senders, receivers, 4_000, ONE).unwrap_err();
        let text = problem.to_string();
        assert!(text.starts_with("check failed: broken: "), "{text}");
    }

    #[test]
    fn a_channel_that_loses_order_or_content_is_caught_in_every_topology() {
        for (senders, receivers) in [(1, 1), (2, 1), (2, 2)] {
            caught::<CHANGES>(senders, receivers);
            caught::<REPEATS>(senders, receivers);
        }
        caught::<SWAPS>(1, 1);
        caught::<SWAPS>(2, 1);
    }

    #[test]
    fn a_thread_that_panics_fails_the_cell_instead_of_hanging_it() {
        caught::<PANICS>(1, 1);
    }
}
