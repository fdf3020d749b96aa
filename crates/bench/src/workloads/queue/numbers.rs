//! Numbers on their way through channels: the loops of the threads and the check of every number.
//!
//! A message is the sum of the run's mark, its sender's number, shifted, and its index in that
//! sender's sequence ([`thalweg_lab::gate::number`]). A single receiver checks that every sequence
//! has no gap. Several receivers check that each sequence is in order, and together that every
//! message arrived once (by count and sum). A message without the mark fails both checks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use thalweg_lab::gate::{SEQUENCE_BITS, number};
use thalweg_peers::{Batches, Channel, Partial, patience};

use crate::placement::allowed;
use crate::problem::Problem;

use super::driver::Driver;
use super::run::{Run, WAKES};

const SEQUENCE: u64 = (1 << SEQUENCE_BITS) - 1;

/// The checks of every run, for the row.
pub const CHECKED_ONE: &str = "every message arrived once, each sender's in order without a gap";
/// The same with several receivers.
pub const CHECKED_MANY: &str = "every message arrived at one receiver, each sender's in order there; count and sum of each sender's";
/// The same on one thread.
pub const CHECKED_SAME_THREAD: &str =
    "same thread: every receive gave what was sent; no message crosses between processors";

/// The metric for sends that found the channel full.
pub const FAILED_SENDS: &str = "failed_sends";
/// The metric for receives that found it empty.
pub const FAILED_RECEIVES: &str = "failed_receives";

/// How senders and receivers use their channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// One message after the other, with the subject's own wait.
    OneByOne,
    /// One message after the other; both sides retry at once and count the failed tries.
    Trying,
    /// This many one by one; then the sender waits until the receiver confirms all of them.
    Bursts(u64),
    /// This many at once under a rule; both sides retry at once.
    Batches(usize, Partial),
}

/// The loops of a subject that has batches; `None` for one that has none.
pub type InBatches<C> = Option<(SendBatch<C>, ReceiveBatch<C>)>;
type SendBatch<C> = fn(&mut <C as Channel>::Sender, u64, u64, usize, Partial);
type ReceiveBatch<C> = fn(&mut <C as Channel>::Receiver, u64, u64, usize, Partial) -> u64;

/// The loops of a subject with batches.
#[must_use]
pub fn in_batches<C: Batches>() -> InBatches<C> {
    Some((send_batches::<C>, receive_batches::<C>))
}

fn send_batches<C: Batches>(
    sender: &mut C::Sender,
    first: u64,
    count: u64,
    most: usize,
    rule: Partial,
) {
    let (mut next, end) = (first, first + count);
    while next < end {
        let length = most.min((end - next) as usize);
        next += patience::until(|| {
            let sent = C::send_batch(sender, next, length, rule);
            (sent > 0).then_some(sent as u64)
        });
    }
}

/// Returns the bits in which messages differ from the expected ones.
fn receive_batches<C: Batches>(
    receiver: &mut C::Receiver,
    first: u64,
    count: u64,
    most: usize,
    rule: Partial,
) -> u64 {
    let (mut due, end, mut wrong) = (first, first + count, 0);
    while due < end {
        let length = most.min((end - due) as usize);
        patience::until(|| {
            let received = C::receive_batch(receiver, length, rule, |message| {
                wrong |= message ^ due;
                due += 1;
            });
            (received > 0).then_some(())
        });
    }
    wrong
}

/// Checks that a subject follows the rule for partial batches, on an idle channel: both sides of a
/// row would otherwise do different work.
///
/// # Errors
/// It moves a part under [`Partial::No`], or nothing or the wrong number under [`Partial::Yes`].
pub fn check_rule<C: Batches>(capacity: usize, batch: usize, rule: Partial) -> Result<(), Problem> {
    let (mut sender, mut receiver) = C::bounded(capacity);
    // The channel gets one message less than a batch, then exactly a batch, then is filled up to
    // less than a batch below its capacity.
    let batch = batch.min(capacity / 2).max(2);
    let part = batch - 1;
    let mut next = 0;
    let mut send = |sender: &mut C::Sender, count: usize| {
        (0..count).for_each(|_| {
            C::send(sender, next);
            next += 1;
        });
    };
    let receive = |receiver: &mut C::Receiver| C::receive_batch(receiver, batch, rule, |_| ());
    let whole = |moved: usize, possible: usize| match rule {
        Partial::Yes => moved == possible,
        Partial::No => moved == 0,
    };
    send(&mut sender, part);
    let received = receive(&mut receiver);
    let mut follows = whole(received, part);
    send(&mut sender, batch - (part - received));
    follows &= receive(&mut receiver) == batch;
    send(&mut sender, capacity - part);
    let sent = C::send_batch(&mut sender, 1 << 32, batch, rule);
    follows &= whole(sent, part);
    if follows {
        Ok(())
    } else {
        Err(Problem::Check(format!(
            "{}: batches of {batch} do not follow the rule for partial batches, {rule:?}",
            C::NAME
        )))
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

/// The result of one thread.
#[derive(Debug, Default)]
struct End {
    /// The channel, of several.
    channel: usize,
    /// A receiver's tallies, one per sender; empty for a sender.
    tallies: Vec<Tally>,
    wakes: Option<u64>,
    failed: u64,
}

/// The senders and the receivers of one channel.
pub type Ends<C> = (Vec<<C as Channel>::Sender>, Vec<<C as Channel>::Receiver>);

/// The threads and their settings.
#[derive(Clone, Copy, Debug)]
pub struct Threads {
    /// How they use their channel.
    pub way: Way,
    /// Whether senders run on the first allowed processor and receivers on the second.
    pub split: bool,
}

/// One message after the other, on any processor.
pub const ONE_BY_ONE: Threads = Threads {
    way: Way::OneByOne,
    split: false,
};

/// The receiver's progress, alone on its cache lines.
#[repr(align(128))]
#[derive(Default)]
struct Progress(AtomicU64);

/// Moves `messages` through each of `channels`, divided equally among its senders and among its
/// receivers, and checks all of them. `batches` are the subject's loops for [`Way::Batches`].
///
/// # Errors
/// A check fails, or a thread panics or hangs.
pub fn hand_over<C: Channel>(
    channels: Vec<Ends<C>>,
    messages: u64,
    threads: Threads,
    batches: InBatches<C>,
) -> Result<Run, Problem> {
    let cpus = if threads.split { allowed() } else { Vec::new() };
    let place = |index: usize| cpus.get(index).copied();
    let count = channels.iter().map(|(s, r)| s.len() + r.len()).sum();
    let mut driver = Driver::new(C::NAME, count, 0);
    let mut shares = Vec::new();
    for (channel, (senders, receivers)) in channels.into_iter().enumerate() {
        let (sending, receiving) = (senders.len(), receivers.len());
        let (each, share) = (messages / sending as u64, messages / receiving as u64);
        shares.push((sending, each));
        let through = Arc::new(Progress::default());
        for (own, mut sender) in (0u64..).zip(senders) {
            let confirmed = Arc::clone(&through);
            driver.produce(place(0), move |mark| {
                let (first, way) = (number(mark, own, 0), threads.way);
                End {
                    failed: send_all::<C>(&mut sender, first, each, way, batches, &confirmed),
                    ..End::default()
                }
            })?;
        }
        for mut receiver in receivers {
            let through = Arc::clone(&through);
            driver.consume(place(1), move |mark| {
                let mut end = if sending == 1 && receiving == 1 {
                    receive_all::<C>(&mut receiver, mark, share, threads.way, batches, &through)
                } else {
                    receive_share::<C>(&mut receiver, mark, (sending, receiving), share)
                };
                end.channel = channel;
                end.wakes = C::wakes(&receiver);
                end
            })?;
        }
    }
    let (ends, mut run) = driver.run()?;
    for (channel, (sending, each)) in shares.into_iter().enumerate() {
        let of_channel = ends.iter().filter(|end| end.channel == channel);
        verify(C::NAME, &of_channel.collect::<Vec<_>>(), sending, each)?;
    }
    if threads.way == Way::Trying {
        for end in &ends {
            let name = if end.tallies.is_empty() {
                FAILED_SENDS
            } else {
                FAILED_RECEIVES
            };
            *run.counts.entry(name).or_default() += end.failed as f64;
        }
    }
    // Every receiver reads the same counter of the channel.
    if let Some(wakes) = ends.iter().filter_map(|end| end.wakes).max() {
        run.counts.insert(WAKES, wakes as f64);
    }
    Ok(run)
}

/// Returns the number of failed tries.
fn send_all<C: Channel>(
    sender: &mut C::Sender,
    first: u64,
    count: u64,
    way: Way,
    batches: InBatches<C>,
    confirmed: &Progress,
) -> u64 {
    let all = first..first + count;
    let mut failed = 0;
    match (way, batches) {
        (Way::Batches(most, rule), Some((send, _))) => send(sender, first, count, most, rule),
        (Way::Trying, _) => all.for_each(|message| {
            patience::until(|| {
                let sent = C::try_send(sender, message);
                failed += u64::from(!sent);
                sent.then_some(())
            });
        }),
        (Way::Bursts(items), _) => {
            for start in all.clone().step_by(items as usize) {
                let end = all.end.min(start + items);
                (start..end).for_each(|message| C::send(sender, message));
                let sent = end - all.start;
                patience::until(|| (confirmed.0.load(Ordering::Acquire) == sent).then_some(()));
            }
        }
        (Way::OneByOne | Way::Batches(..), _) => all.for_each(|message| C::send(sender, message)),
    }
    failed
}

/// Receives everything as the only receiver of one sender.
fn receive_all<C: Channel>(
    receiver: &mut C::Receiver,
    first: u64,
    count: u64,
    way: Way,
    batches: InBatches<C>,
    through: &Progress,
) -> End {
    let (mut due, end) = (first, first + count);
    let (mut wrong, mut failed) = (0, 0);
    match (way, batches) {
        (Way::Batches(most, rule), Some((_, receive))) => {
            wrong = receive(receiver, first, count, most, rule);
        }
        (Way::Trying, _) => {
            for due in due..end {
                let message = patience::until(|| {
                    let message = C::try_receive(receiver);
                    failed += u64::from(message.is_none());
                    message
                });
                wrong |= message ^ due;
            }
        }
        (Way::Bursts(items), _) => {
            while due < end {
                C::receive_each(receiver, items.min(end - due), |message| {
                    wrong |= message ^ due;
                    due += 1;
                });
                through.0.store(due - first, Ordering::Release);
            }
        }
        (Way::OneByOne | Way::Batches(..), _) => C::receive_each(receiver, count, |message| {
            wrong |= message ^ due;
            due += 1;
        }),
    }
    End {
        tallies: vec![Tally::gapless(count, wrong)],
        failed,
        ..End::default()
    }
}

/// Receives some of each sender's messages, in order; without a gap if there is one receiver.
fn receive_share<C: Channel>(
    receiver: &mut C::Receiver,
    mark: u64,
    (senders, receivers): (usize, usize),
    count: u64,
) -> End {
    let mut tallies = vec![Tally::default(); senders];
    let mut strangers = 0;
    if receivers == 1 {
        let mut due: Vec<u64> = vec![0; senders];
        C::receive_each(receiver, count, |message| {
            let message = message.wrapping_sub(mark);
            match due.get_mut((message >> SEQUENCE_BITS) as usize) {
                Some(due) => {
                    strangers |= (message & SEQUENCE) ^ *due;
                    *due += 1;
                }
                None => strangers = u64::MAX,
            }
        });
        for (tally, count) in tallies.iter_mut().zip(due) {
            *tally = Tally::gapless(count, 0);
        }
    } else {
        C::receive_each(receiver, count, |message| {
            let message = message.wrapping_sub(mark);
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
        });
    }
    tallies
        .iter_mut()
        .for_each(|tally| tally.wrong |= strangers);
    End {
        tallies,
        ..End::default()
    }
}

/// 0 + 1 + .. + (count - 1).
fn sum_below(count: u64) -> u64 {
    count * count.saturating_sub(1) / 2
}

fn verify(subject: &str, ends: &[&End], senders: usize, each: u64) -> Result<(), Problem> {
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
                    "out of order, changed, or sent before the start"
                }
            )));
        }
    }
    Ok(())
}

/// Sends `messages` through each channel, one channel after the other, and receives them on the same
/// thread, `burst` at a time. The channels stay, so a sample of many runs does not create them.
///
/// # Errors
/// A message came back changed.
pub fn one_thread<C: Channel>(
    channels: &mut [(C::Sender, C::Receiver)],
    messages: u64,
    burst: u64,
    way: Way,
) -> Result<Run, Problem> {
    let (mut wrong, mut failed) = (0, [0u64; 2]);
    let began = Instant::now();
    for (sender, receiver) in channels {
        if way == Way::Trying {
            // A single thread cannot wait for itself, so a failed try ends the run with an error.
            for message in 0..messages {
                failed[0] += u64::from(!C::try_send(sender, message));
                match C::try_receive(receiver) {
                    Some(received) => wrong |= received ^ message,
                    None => failed[1] += 1,
                }
            }
        } else if burst == 1 {
            for message in 0..messages {
                C::send(sender, message);
                wrong |= C::receive(receiver) ^ message;
            }
        } else {
            for first in (0..messages).step_by(burst as usize) {
                let mut due = first;
                (first..first + burst).for_each(|message| C::send(sender, message));
                C::receive_each(receiver, burst, |message| {
                    wrong |= message ^ due;
                    due += 1;
                });
            }
        }
    }
    let mut run = Run {
        elapsed: began.elapsed(),
        ..Run::default()
    };
    if way == Way::Trying {
        run.counts.insert(FAILED_SENDS, failed[0] as f64);
        run.counts.insert(FAILED_RECEIVES, failed[1] as f64);
        wrong |= failed[0] | failed[1];
    }
    if wrong == 0 {
        Ok(run)
    } else {
        Err(Problem::Check(format!(
            "{}: a receive gave something else than was sent",
            C::NAME
        )))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use thalweg_peers::channel::Waiting;
    use thalweg_peers::channels::Crossbeam;
    use thalweg_peers::ring::Rtrb;

    use super::*;
    use crate::workloads::queue::run::WALL_NS;

    fn run<C: Channel<Sender: Clone, Receiver: Clone>>(
        (senders, receivers): (usize, usize),
        messages: u64,
    ) -> Result<Run, Problem> {
        let (sender, receiver) = C::bounded(64);
        let ends = (vec![sender; senders], vec![receiver; receivers]);
        hand_over::<C>(vec![ends], messages, ONE_BY_ONE, None)
    }

    #[test]
    fn messages_of_every_topology_arrive() {
        for topology in [(1, 1), (4, 1), (1, 4), (2, 2), (5, 3)] {
            let run = run::<Crossbeam>(topology, 6_000).unwrap();
            assert!(run.elapsed > Duration::ZERO);
            assert!(run.counts[WALL_NS] >= run.elapsed.as_nanos() as f64);
        }
    }

    #[test]
    fn every_way_delivers_through_several_channels() {
        let whole = Way::Batches(8, Partial::No);
        let ways = [
            Way::OneByOne,
            Way::Trying,
            Way::Bursts(16),
            Way::Batches(16, Partial::Yes),
            whole,
        ];
        for way in ways {
            let ends = || {
                let (sender, receiver) = Rtrb::bounded(16);
                (vec![sender], vec![receiver])
            };
            let threads = Threads { way, split: true };
            let channels = vec![ends(), ends(), ends()];
            hand_over::<Rtrb>(channels, 1_000, threads, in_batches::<Rtrb>()).unwrap();
            let mut channels = [Rtrb::bounded(16), Rtrb::bounded(16)];
            one_thread::<Rtrb>(&mut channels, 160, 16, way).unwrap();
        }
    }

    /// A channel that behaves in the way that the test selects, over crossbeam's channel.
    struct Broken<const HOW: u8>;

    const SWAPS: u8 = 0;
    const CHANGES: u8 = 1;
    const REPEATS: u8 = 2;
    const PANICS: u8 = 3;
    /// Takes [`DELAY`] per message.
    const SLOW: u8 = 4;
    /// Contains all messages before its threads start, so that its receiver never waits.
    const EARLY: u8 = 5;

    const DELAY: Duration = Duration::from_micros(50);

    impl<const HOW: u8> Channel for Broken<HOW> {
        const NAME: &'static str = "broken";
        const WAITING: Waiting = Waiting::Own;
        type Sender = (<Crossbeam as Channel>::Sender, u64);
        type Receiver = <Crossbeam as Channel>::Receiver;

        fn bounded(capacity: usize) -> (Self::Sender, Self::Receiver) {
            if HOW == EARLY {
                let (mut sender, receiver) = Crossbeam::bounded(4_000);
                (0..4_000).for_each(|message| Crossbeam::send(&mut sender, message));
                return ((sender, 0), receiver);
            }
            let (sender, receiver) = Crossbeam::bounded(capacity);
            ((sender, 0), receiver)
        }

        fn send((sender, sent): &mut Self::Sender, message: u64) {
            let broken = match (HOW, *sent) {
                (SWAPS, 500) => message + 1,
                (SWAPS, 501) => message - 1,
                (CHANGES, 500) => message ^ 1 << 39,
                (REPEATS, 500) => message - 1,
                (PANICS, 500) => panic!("as the test says"),
                _ => message,
            };
            *sent += 1;
            match HOW {
                EARLY => return,
                SLOW => {
                    let began = Instant::now();
                    while began.elapsed() < DELAY {
                        std::hint::spin_loop();
                    }
                }
                _ => {}
            }
            Crossbeam::send(sender, broken);
        }

        fn receive(receiver: &mut Self::Receiver) -> u64 {
            Crossbeam::receive(receiver)
        }

        fn try_send((sender, _): &mut Self::Sender, message: u64) -> bool {
            Crossbeam::try_send(sender, message)
        }

        fn try_receive(receiver: &mut Self::Receiver) -> Option<u64> {
            Crossbeam::try_receive(receiver)
        }
    }

    fn caught<const HOW: u8>(topology: (usize, usize)) {
        let problem = run::<Broken<HOW>>(topology, 4_000).unwrap_err();
        let text = problem.to_string();
        assert!(text.starts_with("check failed: broken: "), "{text}");
    }

    #[test]
    fn channel_that_loses_order_or_content_fails_the_check_in_every_topology() {
        for topology in [(1, 1), (2, 1), (2, 2)] {
            caught::<CHANGES>(topology);
            caught::<REPEATS>(topology);
        }
        caught::<SWAPS>((1, 1));
        caught::<SWAPS>((2, 1));
    }

    #[test]
    fn thread_that_panics_fails_the_run() {
        caught::<PANICS>((1, 1));
    }

    #[test]
    fn peer_whose_values_are_moved_before_the_start_fails_the_check() {
        caught::<EARLY>((1, 1));
    }

    #[test]
    fn slow_peer_takes_at_least_its_delay_for_every_value() {
        let run = run::<Broken<SLOW>>((1, 1), 400).unwrap();
        assert!(run.elapsed >= 400 * DELAY, "{:?}", run.elapsed);
        let run = self::run::<Broken<SLOW>>((2, 2), 400).unwrap();
        assert!(run.elapsed >= 200 * DELAY, "{:?}", run.elapsed);
    }

    /// A ring that follows only one rule for partial batches, whatever the cell asks for.
    struct Stubborn<const WHOLE: bool>;

    impl<const WHOLE: bool> Channel for Stubborn<WHOLE> {
        const NAME: &'static str = "stubborn";
        const WAITING: Waiting = Waiting::Looks;
        type Sender = <Rtrb as Channel>::Sender;
        type Receiver = <Rtrb as Channel>::Receiver;

        fn bounded(capacity: usize) -> (Self::Sender, Self::Receiver) {
            Rtrb::bounded(capacity)
        }

        fn send(sender: &mut Self::Sender, message: u64) {
            Rtrb::send(sender, message);
        }

        fn receive(receiver: &mut Self::Receiver) -> u64 {
            Rtrb::receive(receiver)
        }

        fn try_send(sender: &mut Self::Sender, message: u64) -> bool {
            Rtrb::try_send(sender, message)
        }

        fn try_receive(receiver: &mut Self::Receiver) -> Option<u64> {
            Rtrb::try_receive(receiver)
        }
    }

    impl<const WHOLE: bool> Stubborn<WHOLE> {
        const RULE: Partial = if WHOLE { Partial::No } else { Partial::Yes };
    }

    impl<const WHOLE: bool> Batches for Stubborn<WHOLE> {
        fn send_batch(sender: &mut Self::Sender, first: u64, count: usize, _: Partial) -> usize {
            Rtrb::send_batch(sender, first, count, Self::RULE)
        }

        fn receive_batch(
            receiver: &mut Self::Receiver,
            count: usize,
            _: Partial,
            each: impl FnMut(u64),
        ) -> usize {
            Rtrb::receive_batch(receiver, count, Self::RULE, each)
        }
    }

    #[test]
    fn subject_with_another_rule_for_partial_batches_fails_the_check() {
        check_rule::<Stubborn<false>>(64, 16, Partial::Yes).unwrap();
        check_rule::<Stubborn<true>>(64, 16, Partial::No).unwrap();
        for problem in [
            check_rule::<Stubborn<true>>(64, 16, Partial::Yes),
            check_rule::<Stubborn<false>>(64, 16, Partial::No),
        ] {
            let text = problem.unwrap_err().to_string();
            assert!(text.contains("do not follow the rule"), "{text}");
        }
    }
}
