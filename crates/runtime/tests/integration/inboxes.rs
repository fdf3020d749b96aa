//! Guarantees of an inbox: each message is received once, a selective receive takes the first
//! match, and the other messages keep their order.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use proptest::prelude::*;
use thalweg_queue::{Overflow, RecvError, RecvTimeoutError, SendError, TryRecvError};
use thalweg_runtime::inbox::{Address, inbox, inbox_with};
use thalweg_runtime::sync::Barrier;
use thalweg_runtime::{
    Config, ExitReason, JoinError, Mailbox, Priority, block_on, block_on_timeout, init, sleep,
    spawn, yield_now,
};

use crate::kit::on_both;

const SOON: Duration = Duration::from_millis(5);

fn bounded(capacity: u32, overflow: Overflow) -> Mailbox {
    Mailbox { capacity, overflow }
}

#[test]
fn matching_returns_the_first_match_and_keeps_the_others() {
    on_both(|| {
        let (address, mut inbox) = inbox();
        for n in 0..10 {
            address.send(n).unwrap();
        }
        assert_eq!(inbox.matching(|n| n % 4 == 3).recv(), Ok(3));
        assert_eq!(inbox.matching(|n| n % 4 == 3).recv(), Ok(7));
        assert_eq!(
            inbox.matching(|n| n % 4 == 3).try_recv(),
            Err(TryRecvError::Empty)
        );
        assert_eq!(
            inbox.matching(|n| n % 4 == 3).recv_timeout(SOON),
            Err(RecvTimeoutError::TimedOut)
        );
        assert_eq!(inbox.len(), 8);
        drop(address);
        assert_eq!(inbox.matching(|n| n % 4 == 3).recv(), Err(RecvError));
        let rest: Vec<_> = std::iter::from_fn(|| inbox.recv().ok()).collect();
        assert_eq!(rest, [0, 1, 2, 4, 5, 6, 8, 9]);
        assert_eq!(inbox.try_recv(), Err(TryRecvError::Closed));
    });
}

#[test]
fn matching_checks_each_message_once() {
    on_both(|| {
        let (address, mut inbox) = inbox();
        let sender = spawn(move || {
            for n in 0..50 {
                address.send(n).unwrap();
                yield_now();
            }
        });
        let shown = Cell::new(0);
        let wants = |n: &i32| {
            shown.set(shown.get() + 1);
            *n == 49
        };
        assert_eq!(inbox.matching(wants).recv(), Ok(49));
        assert_eq!(shown.get(), 50);
        sender.join().unwrap();
    });
}

#[test]
fn search_since_a_mark_skips_older_messages() {
    on_both(|| {
        let (before, calls) = if cfg!(miri) { (20, 5) } else { (50_000, 1_000) };
        let (address, mut inbox) = inbox_with(bounded(200_000, Overflow::Fail));
        for priority in [Priority::Low, Priority::Normal, Priority::High] {
            let address = address.with_priority(priority);
            (0..before).for_each(|_| address.send(0).unwrap());
        }
        for n in 1..=calls {
            let mark = inbox.mark();
            address.send(-n).unwrap();
            address.send(n).unwrap();
            let shown = Cell::new(0);
            let reply = inbox.matching(|got| {
                shown.set(shown.get() + 1);
                *got == n
            });
            assert_eq!(reply.since(mark).recv(), Ok(n));
            assert_eq!(shown.get(), 2);
        }
        assert_eq!(inbox.len(), (3 * before + calls) as usize);
    });
}

#[test]
fn skipped_messages_count_against_the_capacity() {
    on_both(|| {
        let (address, mut inbox) = inbox_with(bounded(3, Overflow::Fail));
        (0..3).for_each(|n| address.send(n).unwrap());
        assert_eq!(inbox.matching(|n| *n == 1).recv(), Ok(1));
        address.send(3).unwrap();
        assert!(matches!(address.send(4), Err(SendError::Full(4))));
        let high = address.with_priority(Priority::High);
        (5..8).for_each(|n| high.send(n).unwrap());
        assert!(matches!(high.send(8), Err(SendError::Full(8))));
        let got: Vec<_> = std::iter::from_fn(|| inbox.try_recv().ok()).collect();
        assert_eq!(got, [5, 6, 7, 0, 2, 3]);
    });
}

#[test]
fn full_inbox_applies_its_overflow_policy() {
    on_both(|| {
        let (address, mut inbox) = inbox_with(bounded(1, Overflow::DropNewest));
        (0..3).for_each(|n| address.send(n).unwrap());
        assert_eq!((inbox.recv(), inbox.dropped()), (Ok(0), 2));

        let (address, inbox) = inbox_with(bounded(1, Overflow::BlockFor(SOON)));
        address.send(0).unwrap();
        assert!(matches!(address.send(1), Err(SendError::TimedOut(1))));
        drop(inbox);
        assert!(matches!(address.send(2), Err(SendError::Closed(2))));

        let (address, mut inbox) = inbox_with(bounded(1, Overflow::Block));
        address.send(0).unwrap();
        assert!(matches!(
            address.send_timeout(1, SOON),
            Err(SendError::TimedOut(1))
        ));
        let waiting = spawn({
            let address = address.clone();
            move || address.send(1)
        });
        yield_now();
        assert_eq!(inbox.recv(), Ok(0));
        assert_eq!(inbox.recv(), Ok(1));
        waiting.join().unwrap().unwrap();
        // When the inbox is full, its own reader gets an error instead of waiting for itself.
        address.send(2).unwrap();
        assert!(matches!(address.send(3), Err(SendError::Full(3))));
    });
}

#[test]
fn waiting_sender_gets_an_error_when_the_inbox_is_dropped() {
    on_both(|| {
        let (address, inbox) = inbox_with(bounded(1, Overflow::Block));
        address.send(0).unwrap();
        let waiting: Vec<_> = (1..4)
            .map(|n| {
                let address = address.clone();
                spawn(move || address.send(n))
            })
            .collect();
        sleep(SOON);
        drop(inbox);
        for (n, waiting) in (1..).zip(waiting) {
            let refused = waiting.join().unwrap().unwrap_err();
            assert!(matches!(refused, SendError::Closed(m) if m == n));
        }
        assert!(!address.is_alive());
    });
}

#[test]
fn flood_of_high_priority_does_not_starve_the_others() {
    on_both(|| {
        let (address, mut inbox) = inbox();
        let of = |priority| address.with_priority(priority);
        of(Priority::Low).send("low").unwrap();
        of(Priority::Normal).send("normal").unwrap();
        (0..200).for_each(|_| of(Priority::High).send("high").unwrap());
        let order: Vec<_> = std::iter::from_fn(|| inbox.try_recv().ok()).collect();
        assert_eq!(order.iter().position(|m| *m == "normal"), Some(62));
        assert_eq!(order.iter().position(|m| *m == "low"), Some(63));
        assert_eq!(order.len(), 202);
    });
}

#[test]
fn dropped_receive_future_loses_no_message() {
    const ALL: usize = if cfg!(miri) { 20 } else { 200 };
    on_both(|| {
        let (address, mut inbox) = inbox();
        let sender = spawn(move || {
            for n in 0..ALL {
                address.send(n).unwrap();
                if n % 3 == 0 {
                    yield_now();
                }
            }
        });
        let mut got = Vec::new();
        while got.len() < ALL / 2 {
            // The future is often dropped before a message is available.
            let odd = inbox.matching(|n| n % 2 == 1).recv_async();
            if let Ok(n) = block_on_timeout(Duration::from_nanos(1), odd) {
                got.push(n.unwrap());
            }
        }
        assert!(got.iter().copied().eq((0..ALL).filter(|n| n % 2 == 1)));
        let mut even = Vec::new();
        while let Ok(n) = block_on(inbox.recv_async()) {
            even.push(n);
        }
        assert!(even.iter().copied().eq((0..ALL).filter(|n| n % 2 == 0)));
        sender.join().unwrap();
    });
}

#[test]
fn killed_receiver_closes_the_inbox() {
    on_both(|| {
        let (address, mut inbox) = inbox::<u32>();
        address.send(1).unwrap();
        let waits = spawn(move || inbox.matching(|n| *n == 2).recv());
        sleep(SOON);
        waits.pid().kill().unwrap();
        let ended = waits.join().unwrap_err();
        assert!(matches!(ended, JoinError::Exit(ExitReason::Killed)));
        assert!(address.send(2).is_err());
    });
}

#[test]
fn messages_of_many_senders_are_all_received() {
    const EACH: usize = if cfg!(miri) { 5 } else { 500 };
    struct Counted(Arc<AtomicUsize>);
    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    for workers in [1, 2, 4] {
        let dropped = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&dropped);
        init(Config::with_workers(workers)).unwrap().run(move || {
            let (address, mut inbox) = inbox_with(bounded(16, Overflow::Block));
            let begin = Arc::new(Barrier::new(8));
            for n in 0..8 {
                let address: Address<(usize, usize, Counted)> =
                    address.with_priority([Priority::Low, Priority::Normal, Priority::High][n % 3]);
                let (begin, counted) = (Arc::clone(&begin), Arc::clone(&counted));
                spawn(move || {
                    begin.wait();
                    for m in 0..EACH {
                        let message = (n, m, Counted(Arc::clone(&counted)));
                        address
                            .send(message)
                            .unwrap_or_else(|_| panic!("it is there"));
                    }
                });
            }
            drop(address);
            // Takes each kind in turn while messages of it remain, and otherwise the next message
            // of any kind.
            let mut next = [0; 8];
            for turn in 0.. {
                let wanted = turn % 8;
                let message = match inbox.matching(|(n, ..)| *n == wanted).try_recv() {
                    Ok(message) => message,
                    Err(_) => match inbox.recv() {
                        Ok(message) => message,
                        Err(RecvError) => break,
                    },
                };
                assert_eq!(message.1, next[message.0]);
                next[message.0] += 1;
            }
            assert_eq!(next, [EACH; 8]);
        });
        assert_eq!(dropped.load(Ordering::Relaxed), 8 * EACH);
    }
}

/// An operation on an inbox.
#[derive(Clone, Debug)]
enum Step {
    Send(u8, Priority),
    Take,
    TakeMatching(u8),
    Mark,
    TakeSince(u8),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let priority = prop_oneof![
        Just(Priority::Low),
        Just(Priority::Normal),
        Just(Priority::High)
    ];
    let step = prop_oneof![
        3 => (0..6u8, priority).prop_map(|(value, priority)| Step::Send(value, priority)),
        1 => Just(Step::Take),
        1 => (0..6u8).prop_map(Step::TakeMatching),
        1 => Just(Step::Mark),
        1 => (0..6u8).prop_map(Step::TakeSince),
    ];
    prop::collection::vec(step, 0..50)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 8 } else { 256 }))]

    /// Compares the inbox with a list that is searched from its beginning. The test takes fewer
    /// than 62 messages, so the order is strictly by priority.
    #[test]
    fn inbox_behaves_like_a_list_model(steps in steps()) {
        let (address, mut inbox) = inbox();
        let mut list: VecDeque<(u64, u8, Priority)> = VecDeque::new();
        let (mut sent, mut mark, mut marked) = (0, None, 0);
        let expected = |list: &mut VecDeque<(u64, u8, Priority)>, wanted: Option<u8>, since: u64| {
            let found = [Priority::High, Priority::Normal, Priority::Low]
                .into_iter()
                .find_map(|level| {
                    list.iter().position(|(n, value, priority)| {
                        *priority == level && *n >= since && wanted.is_none_or(|it| it == *value)
                    })
                });
            found.and_then(|index| list.remove(index)).map(|(_, value, _)| value)
        };
        for step in steps {
            match step {
                Step::Send(value, priority) => {
                    address.with_priority(priority).send(value).unwrap();
                    list.push_back((sent, value, priority));
                    sent += 1;
                }
                Step::Take => {
                    prop_assert_eq!(inbox.try_recv().ok(), expected(&mut list, None, 0));
                }
                Step::TakeMatching(value) => {
                    let got = inbox.matching(|it| *it == value).try_recv().ok();
                    prop_assert_eq!(got, expected(&mut list, Some(value), 0));
                }
                Step::Mark => {
                    mark = Some(inbox.mark());
                    marked = sent;
                }
                Step::TakeSince(value) => if let Some(mark) = mark {
                    let got = inbox.matching(|it| *it == value).since(mark).try_recv().ok();
                    prop_assert_eq!(got, expected(&mut list, Some(value), marked));
                }
            }
            prop_assert_eq!(inbox.len(), list.len());
        }
    }
}
