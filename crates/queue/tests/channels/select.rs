//! Select: waiting for the first of several channels, in both directions.

use std::panic::catch_unwind;
use std::thread;
use std::time::{Duration, Instant};

use thalweg_queue::{RecvError, Select, TryRecvError, mpmc, mpsc, spsc};

use crate::executor::Task;
use crate::threads::{Crew, scaled, until, watch};

const LONG: Duration = Duration::from_secs(100);

flavours! { each: spsc, mpsc, lane, mpmc;
    fn existing_value_is_ready(chan) {
        let (sender, receiver) = chan::channel::<u64>(1).unwrap();
        let mut receiving = Select::new();
        receiving.recv(&receiver);
        assert_eq!(receiving.try_ready(), None);
        assert_eq!(receiving.ready_timeout(Duration::ZERO), None);
        let mut sending = Select::new();
        let send = sending.send(&sender);
        assert_eq!(sending.try_ready(), Some(send));
        assert_eq!(sending.ready(), send);
        sender.try_send(5).unwrap();
        assert_eq!(sending.try_ready(), None);
        assert_eq!(sending.ready_deadline(Instant::now()), None);
        assert!(receiving.try_ready().is_some());
        assert!(receiving.ready_timeout(LONG).is_some());
        assert_eq!(receiver.try_recv(), Ok(5));
        assert_eq!(receiving.try_ready(), None);
    }

    fn ready_timeout_is_not_early(chan) {
        let (_sender, receiver) = chan::channel::<u64>(1).unwrap();
        let mut select = Select::new();
        select.recv(&receiver);
        for ms in [1, 20, 100] {
            let since = Instant::now();
            assert_eq!(select.ready_timeout(Duration::from_millis(ms)), None);
            assert!(since.elapsed() >= Duration::from_millis(ms));
        }
    }

    fn value_wakes_select(chan) {
        let crew = Crew::new();
        let (sender, receiver) = chan::channel::<u64>(1).unwrap();
        let (_other_sender, other) = chan::channel::<u64>(1).unwrap();
        let thread = crew.spawn(move || {
            let mut select = Select::new();
            let _never = select.recv(&other);
            let ready = select.recv(&receiver);
            assert_eq!(select.ready(), ready);
            receiver.try_recv()
        });
        crew.asleep(1);
        sender.send(8).unwrap();
        assert_eq!(thread.join().unwrap(), Ok(8));
    }

    fn capacity_wakes_select(chan) {
        let crew = Crew::new();
        let (sender, receiver) = chan::channel::<u64>(1).unwrap();
        let (_other_sender, other) = chan::channel::<u64>(1).unwrap();
        sender.send(1).unwrap();
        let thread = crew.spawn(move || {
            let mut select = Select::new();
            let _never = select.recv(&other);
            let room = select.send(&sender);
            assert_eq!(select.ready_timeout(LONG), Some(room));
            sender.try_send(2).unwrap();
        });
        crew.asleep(1);
        assert_eq!(receiver.recv(), Ok(1));
        thread.join().unwrap();
        assert_eq!(receiver.recv(), Ok(2));
    }

    fn close_wakes_select_and_stays_ready(chan) {
        for receiver_closes in [true, false] {
            let crew = Crew::new();
            let (full, behind) = chan::channel::<u64>(1).unwrap();
            full.send(1).unwrap();
            let (empty, ahead) = chan::channel::<u64>(1).unwrap();
            let receives = crew.spawn(move || {
                let mut select = Select::new();
                let recv = select.recv(&ahead);
                for _ in 0..3 {
                    assert_eq!(select.ready(), recv);
                }
                assert_eq!(ahead.try_recv(), Err(TryRecvError::Closed));
            });
            let sends = crew.spawn(move || {
                let mut select = Select::new();
                let send = select.send(&full);
                for _ in 0..3 {
                    assert_eq!(select.ready(), send);
                }
                drop(select);
                assert!(full.try_send(3).is_err());
                full
            });
            crew.asleep(2);
            if receiver_closes {
                behind.close();
                empty.close();
            } else {
                drop(empty);
                drop(behind);
            }
            receives.join().unwrap();
            sends.join().unwrap();
        }
    }

    fn always_ready_operations_do_not_starve_each_other(chan) {
        let channels: Vec<_> = (0..5).map(|_| chan::channel::<u64>(4).unwrap()).collect();
        for (sender, _) in &channels {
            while sender.try_send(1).is_ok() {}
        }
        let mut select = Select::new();
        let operations: Vec<_> = channels.iter().map(|(_, receiver)| select.recv(receiver)).collect();
        let mut served = [0; 5];
        for _ in 0..1_000 {
            let ready = select.ready();
            let place = operations.iter().position(|one| *one == ready).unwrap();
            served[place] += 1;
            let (sender, receiver) = &channels[place];
            receiver.try_recv().unwrap();
            sender.try_send(1).unwrap();
        }
        assert_eq!(served, [200; 5]);
    }

    fn new_select_per_round_chooses_uniformly(chan) {
        let turns = scaled(8_000, 200);
        // The last two of eight channels are ready.
        let channels: Vec<_> = (0..8).map(|_| chan::channel::<u64>(4).unwrap()).collect();
        for (sender, receiver) in &channels {
            sender.try_send(1).unwrap();
            if !std::ptr::eq(receiver, &channels[6].1) && !std::ptr::eq(receiver, &channels[7].1) {
                receiver.try_recv().unwrap();
            }
        }
        let mut served = [0; 8];
        for _ in 0..turns {
            let mut select = Select::new();
            let operations: Vec<_> = channels.iter().map(|(_, receiver)| select.recv(receiver)).collect();
            let ready = select.ready();
            served[operations.iter().position(|one| *one == ready).unwrap()] += 1;
        }
        assert_eq!(served[6] + served[7], turns);
        // Half of the turns is expected. A tenth less than half is 8.9 standard deviations away. Of
        // 200 turns, a quarter is 7.1 away.
        let least = if cfg!(miri) { turns / 4 } else { turns * 45 / 100 };
        assert!(served[6] > least && served[7] > least, "{served:?}");
    }

    /// Many threads send on many channels. One thread receives everything, in order.
    fn select_over_many_channels_receives_everything(chan) {
        let each = scaled(3_000, 20) as u64;
        let channels: Vec<_> = (0..4).map(|i| chan::channel::<u64>(i * 3 + 1).unwrap()).collect();
        let (senders, receivers): (Vec<_>, Vec<_>) = channels.into_iter().unzip();
        thread::scope(|scope| {
            for sender in senders {
                scope.spawn(move || (0..each).for_each(|i| sender.send(i).unwrap()));
            }
            let mut next = [0; 4];
            let mut open: Vec<usize> = (0..4).collect();
            while !open.is_empty() {
                let mut select = Select::new();
                let operations: Vec<_> = open.iter().map(|i| select.recv(&receivers[*i])).collect();
                let ready = select.ready_timeout(LONG).expect("somebody sends or ends");
                let place = operations.iter().position(|one| *one == ready).unwrap();
                let channel = open[place];
                match receivers[channel].try_recv() {
                    Ok(value) => {
                        assert_eq!(value, next[channel]);
                        next[channel] += 1;
                    }
                    Err(TryRecvError::Closed) => drop(open.remove(place)),
                    Err(TryRecvError::Empty) => panic!("nobody else receives"),
                }
            }
            assert_eq!(next, [each; 4]);
        });
    }

    /// Each of two threads sends on one channel and receives on the other, whichever is ready.
    /// Neither direction blocks the other.
    fn select_in_both_directions_does_not_deadlock(chan) {
        let count = scaled(3_000, 20) as u64;
        let (to_b, from_a) = chan::channel::<u64>(1).unwrap();
        let (to_a, from_b) = chan::channel::<u64>(2).unwrap();
        thread::scope(|scope| {
            for (sender, receiver) in [(to_b, from_b), (to_a, from_a)] {
                scope.spawn(move || {
                    let (mut sent, mut received) = (0, 0);
                    while sent < count || received < count {
                        let mut select = Select::new();
                        let send = (sent < count).then(|| select.send(&sender));
                        let recv = (received < count).then(|| select.recv(&receiver));
                        let ready = select.ready_timeout(LONG);
                        assert!(ready.is_some(), "after {sent} and {received}");
                        if ready == send {
                            sender.try_send(sent).unwrap();
                            sent += 1;
                        } else if ready == recv {
                            assert_eq!(receiver.try_recv(), Ok(received));
                            received += 1;
                        }
                    }
                });
            }
        });
    }
}

#[test]
fn select_accepts_all_flavours_and_types() {
    let _watched = watch();
    let (a, from_a) = spsc::channel::<u8>(1).unwrap();
    let (b, from_b) = mpsc::channel::<String>(1).unwrap();
    let (c, from_c) = mpmc::channel::<Vec<u8>>(1).unwrap();
    let (d, from_d) = mpsc::unbounded::<()>();
    let mut select = Select::new();
    let operations = [
        select.recv(&from_a),
        select.recv(&from_b),
        select.recv(&from_c),
        select.recv(&from_d),
    ];
    a.send(1).unwrap();
    assert_eq!(select.ready(), operations[0]);
    from_a.recv().unwrap();
    b.send("b".into()).unwrap();
    assert_eq!(select.ready(), operations[1]);
    from_b.recv().unwrap();
    c.send(vec![3]).unwrap();
    assert_eq!(select.ready(), operations[2]);
    from_c.recv().unwrap();
    d.send(()).unwrap();
    assert_eq!(select.ready(), operations[3]);
    from_d.recv().unwrap();
    assert_eq!(select.try_ready(), None);
    drop(c);
    assert_eq!(select.ready(), operations[2]);
}

#[test]
#[should_panic(expected = "a Select without operations cannot become ready")]
fn ready_without_operations_panics() {
    Select::new().ready();
}

#[test]
fn ready_timeout_without_operations_panics_at_once() {
    let begun = Instant::now();
    let timed = catch_unwind(|| Select::new().ready_timeout(LONG));
    let until = catch_unwind(|| Select::new().ready_deadline(Instant::now() + LONG));
    assert!(timed.is_err() && until.is_err());
    assert!(begun.elapsed() < LONG, "it does not wait for the timeout");
}

#[test]
fn try_ready_without_operations_returns_none() {
    assert_eq!(Select::new().try_ready(), None);
}

/// Several threads select over the same channels and compete for the values. Each value is received
/// once.
#[test]
fn many_selects_over_the_same_channels_lose_nothing() {
    let _watched = watch();
    let each = scaled(3_000, 20);
    let channels: Vec<_> = (0..3).map(|_| mpmc::channel::<usize>(2).unwrap()).collect();
    let (senders, receivers): (Vec<_>, Vec<_>) = channels.into_iter().unzip();
    let sum: usize = thread::scope(|scope| {
        for sender in senders {
            scope.spawn(move || (1..=each).for_each(|i| sender.send(i).unwrap()));
        }
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let mut open = receivers.clone();
                scope.spawn(move || {
                    let mut sum = 0;
                    while !open.is_empty() {
                        let mut select = Select::new();
                        let all: Vec<_> = open.iter().map(|one| select.recv(one)).collect();
                        let ready = select.ready_timeout(LONG).expect("somebody sends or ends");
                        let place = all.iter().position(|one| *one == ready).unwrap();
                        drop(select);
                        match open[place].try_recv() {
                            Ok(value) => sum += value,
                            Err(TryRecvError::Empty) => {}
                            Err(TryRecvError::Closed) => drop(open.remove(place)),
                        }
                    }
                    sum
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    assert_eq!(sum, 3 * each * (each + 1) / 2);
}

/// A wake-up for a value that another thread took ends there. Waiters do not pass it around.
#[test]
fn selects_without_a_value_do_not_wake_each_other() {
    let _watched = watch();
    let crew = Crew::new();
    let (sender, receiver) = mpmc::channel::<u64>(4).unwrap();
    let threads: Vec<_> = (0..3)
        .map(|_| {
            let receiver = receiver.clone();
            crew.spawn(move || {
                let mut select = Select::new();
                select.recv(&receiver);
                let mut values = 0;
                loop {
                    select.ready();
                    match receiver.try_recv() {
                        Ok(_) => values += 1,
                        Err(TryRecvError::Empty) => {}
                        Err(TryRecvError::Closed) => return values,
                    }
                }
            })
        })
        .collect();
    let rounds = scaled(300, 10);
    let mut stolen = 0;
    for _ in 0..rounds {
        crew.asleep(3);
        sender.send(1).unwrap();
        stolen += usize::from(receiver.try_recv().is_ok());
    }
    crew.asleep(3);
    let wakes = receiver.stats().receiver_wakes;
    assert!(
        wakes <= rounds as u64 * 2,
        "{wakes} wake-ups for {rounds} values"
    );
    if !cfg!(miri) {
        let before = crew.switches();
        thread::sleep(Duration::from_millis(200));
        assert_eq!(crew.switches(), before);
    }
    drop(sender);
    let received: usize = threads
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .sum();
    assert_eq!(received + stolen, rounds);
}

/// Two values arrive. The select is woken for one and takes one. The task behind it is woken for
/// the other.
#[test]
fn task_behind_a_select_gets_the_remaining_value() {
    let _watched = watch();
    for _ in 0..scaled(30, 2) {
        let crew = Crew::new();
        let (sender, receiver) = mpmc::channel::<u64>(4).unwrap();
        let blocked = crew.spawn({
            let receiver = receiver.clone();
            move || receiver.recv()
        });
        crew.asleep(1);
        let selects = crew.spawn({
            let receiver = receiver.clone();
            move || {
                let mut select = Select::new();
                select.recv(&receiver);
                select.ready();
                receiver.recv()
            }
        });
        crew.asleep(2);
        let task = Task::default();
        let mine = receiver.clone();
        let mut future = mine.recv_async();
        assert!(task.poll(&mut future).is_pending());
        (0..3).for_each(|i| sender.try_send(i).unwrap());
        blocked.join().unwrap().unwrap();
        selects.join().unwrap().unwrap();
        until("a task that is woken", || task.take_wake());
        assert!(task.poll(&mut future).is_ready());
    }
}

/// A select that takes the value of one channel passes the wake-up of the other channel on.
#[test]
fn unused_wake_up_of_a_select_goes_to_another() {
    let _watched = watch();
    for round in 0..scaled(200, 5) {
        let crew = Crew::new();
        let (a, from_a) = mpmc::channel::<u64>(1).unwrap();
        let (b, from_b) = mpmc::channel::<u64>(1).unwrap();
        let selects = crew.spawn({
            let (from_a, from_b) = (from_a.clone(), from_b.clone());
            move || {
                let mut select = Select::new();
                let one = select.recv(&from_a);
                select.recv(&from_b);
                // Takes one value from either channel and is dropped.
                if select.ready() == one {
                    from_a.recv()
                } else {
                    from_b.recv()
                }
            }
        });
        crew.asleep(1);
        let behind = [from_a, from_b].map(|receiver| crew.spawn(move || receiver.recv()));
        crew.asleep(3);
        if round % 2 == 0 {
            a.send(1).unwrap();
            b.send(1).unwrap();
        } else {
            b.send(1).unwrap();
            a.send(1).unwrap();
        }
        assert_eq!(selects.join().unwrap(), Ok(1));
        // One of the two gets the other value. The other one finds none.
        until("the second value is received", || {
            a.is_empty() && b.is_empty()
        });
        drop((a, b));
        let got = behind.map(|thread| thread.join().unwrap());
        assert!(got == [Ok(1), Err(RecvError)] || got == [Err(RecvError), Ok(1)]);
    }
}
