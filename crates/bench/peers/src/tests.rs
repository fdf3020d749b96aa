//! Tests that every peer has the properties that the lab's checks rely on.

use std::thread;
use std::time::Duration;

use crate::actors::by_hand::ByHand;
use crate::actors::kameo::Kameo;
use crate::actors::ractor::Ractor;
use crate::actors::{self, Count, Counter};
use crate::broadcast::{Broadcast, DisruptorBroadcast, TokioBroadcast};
use crate::c11_ring::{self, C11Ring};
use crate::channel::{Batches, Channel, ManyReceivers, ManySenders, Partial};
use crate::channels::{AsyncChannel, Crossbeam, Flume, Kanal, Std, Tokio};
use crate::disruptor::{Disruptor, DisruptorMany};
use crate::patience;
use crate::ring::{Rtrb, Rtrb03};
use crate::tasks::{
    AsyncChannelTasks, FlumeTasks, KanalTasks, TaskChannel, TokioTasks, run_both, runtime,
};
use crate::tokio_runtime;
use crate::vyukov::Vyukov;

/// Two threads, one message at a time; checks order and payload.
fn hands_over<C: Channel>() {
    let (mut sender, mut receiver) = C::bounded(16);
    let sending = thread::spawn(move || {
        (0..11_000).for_each(|message| C::send(&mut sender, message));
    });
    let mut expected = 0;
    for count in [10_000, 3, 997] {
        C::receive_each(&mut receiver, count, |message| {
            assert_eq!(message, expected, "{}", C::NAME);
            expected += 1;
        });
    }
    assert_eq!(expected, 11_000);
    assert_eq!(C::try_receive(&mut receiver), None, "{}", C::NAME);
    sending.join().unwrap();
}

/// Two threads, in batches of odd sizes under each rule; checks order and payload.
fn hands_over_batches<C: Batches>() {
    for (rule, most) in [(Partial::Yes, 100), (Partial::No, 8)] {
        if rule == Partial::No && !C::WHOLE {
            continue;
        }
        let (mut sender, mut receiver) = C::bounded(16);
        let sending = thread::spawn(move || {
            let mut next = 0;
            while next < 8_000 {
                let count = most.min((8_000 - next) as usize);
                next += patience::until(|| {
                    let sent = C::send_batch(&mut sender, next, count, rule);
                    (sent > 0).then_some(sent)
                }) as u64;
            }
        });
        let mut expected = 0;
        while expected < 8_000 {
            let count = most.min((8_000 - expected) as usize);
            patience::until(|| {
                let received = C::receive_batch(&mut receiver, count, rule, |message| {
                    assert_eq!(message, expected, "{}", C::NAME);
                    expected += 1;
                });
                (received > 0).then_some(())
            });
        }
        assert_eq!(expected, 8_000);
        sending.join().unwrap();
    }
}

/// `capacity` messages fit, one more does not, and they come out in order.
fn is_bounded<C: Channel>() {
    let (mut sender, mut receiver) = C::bounded(8);
    assert_eq!(C::try_receive(&mut receiver), None, "{}", C::NAME);
    let taken = (0..100)
        .take_while(|message| C::try_send(&mut sender, *message))
        .count();
    assert_eq!(taken, 8, "{}", C::NAME);
    for expected in 0..8 {
        assert_eq!(C::try_receive(&mut receiver), Some(expected), "{}", C::NAME);
    }
    assert_eq!(C::try_receive(&mut receiver), None, "{}", C::NAME);
}

/// Four senders, one receiver: every message once, each sender's in order.
fn gathers<C: ManySenders>(pair: (C::Sender, C::Receiver)) {
    let (sender, mut receiver) = pair;
    let threads: Vec<_> = (0..4u64)
        .map(|number| {
            let mut sender = sender.clone();
            thread::spawn(move || {
                (0..1_000).for_each(|message| C::send(&mut sender, number << 32 | message));
            })
        })
        .collect();
    let mut next = [0; 4];
    for _ in 0..4_000 {
        let message = C::receive(&mut receiver);
        let expected = &mut next[(message >> 32) as usize];
        assert_eq!(message & 0xffff_ffff, *expected, "{}", C::NAME);
        *expected += 1;
    }
    assert_eq!(C::try_receive(&mut receiver), None, "{}", C::NAME);
    threads.into_iter().for_each(|t| t.join().unwrap());
}

/// Two senders, two receivers: every message to exactly one.
fn spreads<C: ManyReceivers>() {
    let (sender, receiver) = C::bounded(16);
    let senders = (0..2u64).map(|number| {
        let mut sender = sender.clone();
        thread::spawn(move || {
            (number..2_000)
                .step_by(2)
                .for_each(|m| C::send(&mut sender, m));
        })
    });
    let senders: Vec<_> = senders.collect();
    let receivers = (0..2).map(|_| {
        let mut receiver = receiver.clone();
        thread::spawn(move || -> Vec<u64> {
            (0..1_000).map(|_| C::receive(&mut receiver)).collect()
        })
    });
    let receivers: Vec<_> = receivers.collect();
    senders.into_iter().for_each(|t| t.join().unwrap());
    let mut all: Vec<u64> = receivers
        .into_iter()
        .flat_map(|t| t.join().unwrap())
        .collect();
    all.sort_unstable();
    assert!(all.into_iter().eq(0..2_000), "{}", C::NAME);
}

fn between_tasks<C: TaskChannel>() {
    for workers in [0, 2] {
        let (mut sender, mut receiver) = C::bounded(16);
        let sending = async move {
            for message in 0..5_000 {
                C::send(&mut sender, message).await;
            }
        };
        let receiving = async move {
            for expected in 0..5_000 {
                assert_eq!(C::receive(&mut receiver).await, expected, "{}", C::NAME);
            }
        };
        run_both(&runtime(workers).unwrap(), sending, receiving);
    }
}

macro_rules! every {
    ($($test:ident: $check:ident of $($subject:ident),+;)+) => {
        $(#[test]
        fn $test() {
            // The tests run in parallel, so there are always more threads than processors.
            patience::set_crowded(true);
            $($check::<$subject>();)+
        })+
    };
}

every! {
    one_sender_hands_over_to_one_receiver_in_order: hands_over of
        Rtrb, Rtrb03, Crossbeam, Kanal, Flume, AsyncChannel, Std, Tokio, Disruptor, C11Ring, Vyukov;
    batches_arrive_whole_and_in_order: hands_over_batches of Rtrb, Rtrb03, Disruptor, C11Ring;
    a_full_one_refuses_and_an_empty_one_has_nothing: is_bounded of
        Rtrb, Rtrb03, Crossbeam, Kanal, Flume, AsyncChannel, Std, Tokio, Disruptor, C11Ring, Vyukov;
    every_receiver_gets_a_share: spreads of Crossbeam, Kanal, Flume, AsyncChannel, Vyukov;
    two_tasks_hand_over_in_order: between_tasks of TokioTasks, AsyncChannelTasks, FlumeTasks, KanalTasks;
}

#[test]
fn many_senders_reach_one_receiver_each_in_order() {
    patience::set_crowded(true);
    gathers::<Crossbeam>(Crossbeam::bounded(16));
    gathers::<Kanal>(Kanal::bounded(16));
    gathers::<Flume>(Flume::bounded(16));
    gathers::<AsyncChannel>(AsyncChannel::bounded(16));
    gathers::<Std>(Std::bounded(16));
    gathers::<Tokio>(Tokio::bounded(16));
    gathers::<DisruptorMany>(DisruptorMany::bounded(64));
    gathers::<Vyukov>(Vyukov::bounded(16));
}

#[test]
fn those_that_come_unbounded_never_refuse() {
    fn grows<C: ManySenders>() {
        gathers::<C>(C::unbounded().unwrap());
        let (mut sender, _receiver) = C::unbounded().unwrap();
        assert!((0..100_000).all(|message| C::try_send(&mut sender, message)));
    }
    grows::<Crossbeam>();
    grows::<Kanal>();
    grows::<Flume>();
    grows::<AsyncChannel>();
    grows::<Std>();
    grows::<Tokio>();
    assert!(Vyukov::unbounded().is_none());
}

#[test]
fn the_loop_in_c_checks_what_it_moves() {
    assert!(c11_ring::same_thread(16, 10_000));
}

/// Casts arrive in order, calls are answered, and a stopped actor has ended.
fn counts<C: Counter>(rooms: &[Option<usize>]) {
    let casts = |room| async move {
        assert_eq!(
            actors::casts::<C>(1_000, room).await,
            (1_000, 0),
            "{room:?}"
        );
    };
    for workers in [1, 2] {
        let tokio = tokio_runtime::Tokio::start(workers, false).unwrap();
        for room in rooms {
            tokio.run(casts(*room));
        }
        for within in [None, Some(Duration::from_secs(60))] {
            assert_eq!(tokio.run(actors::calls::<C>(100, within)), 5_050);
        }
        assert_eq!(tokio.run(actors::started_and_ended::<C>(20)), 20);
        let idle = async {
            let mut all = Vec::new();
            actors::idle::<C>(&mut all, 20, None).await;
            all.len()
        };
        assert_eq!(tokio.run(idle), 20);
    }
}

#[test]
fn actors_of_every_library_count_what_is_cast_to_them() {
    counts::<Ractor>(&[None]);
    counts::<Kameo>(&[None, Some(16)]);
    counts::<ByHand>(&[None, Some(16)]);
}

#[test]
fn a_number_out_of_order_is_counted() {
    let mut count = Count::default();
    for number in [0, 2, 2] {
        count.add(number);
    }
    assert_eq!(count.both(), (3, 1));
}

/// Each of three threads gets every message in order.
fn broadcasts<C: Broadcast>(receivers: usize) {
    let (mut sender, all) = C::bounded(1_024, receivers);
    assert_eq!(all.len(), receivers);
    let threads = all.into_iter().map(|mut receiver| {
        thread::spawn(move || {
            let mut expected = 0;
            C::receive_each(&mut receiver, 1_000, |message| {
                assert_eq!(message, expected, "{}", C::NAME);
                expected += 1;
            });
            assert_eq!(expected, 1_000);
        })
    });
    let threads: Vec<_> = threads.collect();
    (0..1_000).for_each(|message| C::send(&mut sender, message));
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
}

#[test]
fn every_receiver_gets_every_message() {
    for receivers in [1, 2, 3] {
        broadcasts::<TokioBroadcast>(receivers);
        broadcasts::<DisruptorBroadcast>(receivers);
    }
}
