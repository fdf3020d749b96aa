//! Losing arms of `select!` lose nothing: no messages, permits, wake-ups, locks or exits.

use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use thalweg_queue::{mpmc, mpsc, oneshot, spsc};
use thalweg_runtime::cancel::Token;
use thalweg_runtime::sync::{Barrier, Mutex, Notify, RwLock, Semaphore, watch};
use thalweg_runtime::{
    Actor, ActorRef, Builder, Config, Context, Handler, JoinHandle, Mailbox, channel, init, select,
    sleep_async, spawn, start, yield_now,
};

use crate::kit::{LONG, on_both};

/// Joins all actors, and fails if one of them hangs.
fn join_all<T>(actors: Vec<JoinHandle<T>>) -> Vec<T> {
    let patience = Duration::from_secs(60);
    let join = |actor: JoinHandle<T>| match actor.join_timeout(patience) {
        Ok(joined) => joined.unwrap(),
        Err(_) => panic!("it hangs"),
    };
    actors.into_iter().map(join).collect()
}

#[test]
fn each_message_comes_once_though_a_timer_nearly_always_wins() {
    const EACH: u32 = 1_000;
    on_both(|| {
        let (one, ones) = mpsc::channel(4).unwrap();
        let (two, mut twos) = channel();
        let senders = vec![
            spawn(move || {
                for n in 0..EACH {
                    one.send(n).unwrap();
                    if n % 3 == 0 {
                        yield_now();
                    }
                }
            }),
            spawn(move || {
                for n in 0..EACH {
                    two.send(n).unwrap();
                    yield_now();
                }
            }),
        ];
        let (mut next, mut timers) = ([0; 2], 0);
        while next != [EACH; 2] {
            let came = if timers % 4 == 3 {
                select! {
                    n = ones.recv_async(), if next[0] < EACH => Some((0, n.unwrap())),
                    n = twos.recv_async(), if next[1] < EACH => Some((1, n.unwrap())),
                }
            } else {
                select! {
                    biased;
                    n = ones.recv_async(), if next[0] < EACH && timers % 2 == 0 => Some((0, n.unwrap())),
                    () = sleep_async(Duration::from_micros(timers % 3)) => None,
                    n = twos.recv_async(), if next[1] < EACH => Some((1, n.unwrap())),
                }
            };
            timers += 1;
            if let Some((which, n)) = came {
                assert_eq!(n, next[which], "it was lost, or came twice");
                next[which] += 1;
            }
        }
        join_all(senders);
    });
}

#[test]
fn two_that_select_on_one_channel_pass_each_other_the_wake_ups() {
    const ALL: u32 = 4_000;
    on_both(|| {
        let (sender, receiver) = mpmc::channel(2).unwrap();
        let receive = |receiver: mpmc::Receiver<u32>| {
            let notify = Notify::new();
            spawn(move || {
                let (mut sum, mut turns) = (0, 0);
                loop {
                    turns += 1;
                    if turns % 2 == 0 {
                        notify.notify_one();
                    }
                    // There is no timer: a lost wake-up would leave this actor waiting forever.
                    select! {
                        n = receiver.recv_async() => match n {
                            Ok(n) => sum += u64::from(n),
                            Err(_) => break sum,
                        },
                        () = notify.notified() => {}
                    }
                }
            })
        };
        let receivers = vec![receive(receiver.clone()), receive(receiver)];
        let sends = spawn(move || {
            let sender = sender;
            for n in 0..ALL {
                let mut left = Some(n);
                while let Some(n) = left.take() {
                    select! {
                        biased;
                        sent = sender.send_async(n) => sent.unwrap(),
                        // A losing send has sent nothing.
                        () = sleep_async(Duration::from_micros(50)) => left = Some(n),
                    }
                }
            }
        });
        join_all(vec![sends]);
        let sum: u64 = join_all(receivers).into_iter().sum();
        assert_eq!(sum, u64::from(ALL) * u64::from(ALL - 1) / 2);
    });
}

#[test]
fn what_was_given_to_an_arm_that_lost_goes_to_the_next() {
    struct Shared {
        permits: Semaphore,
        notify: Notify,
        mutex: Mutex<()>,
        lock: RwLock<()>,
        polled: AtomicU32,
    }
    // With one worker all of them are available before the `select!` is polled again, and its first
    // arm wins.
    init(Config::with_workers(1)).unwrap().run(|| {
        let shared = Arc::new(Shared {
            permits: Semaphore::new(0),
            notify: Notify::new(),
            mutex: Mutex::new(()),
            lock: RwLock::new(()),
            polled: AtomicU32::new(0),
        });
        let (go, mut goes) = channel();
        let (gift, mut gifts) = channel();
        let (reply, mut answer) = oneshot::channel();
        let theirs = Arc::clone(&shared);
        let holder = spawn(move || {
            let both = (theirs.mutex.lock(), theirs.lock.write());
            go.send(()).unwrap();
            while theirs.polled.load(Ordering::Relaxed) == 0 {
                yield_now();
            }
            go.send(()).unwrap();
            theirs.permits.add_permits(1);
            theirs.notify.notify_one();
            gift.send(7).unwrap();
            reply.send(8).unwrap();
            drop(both);
        });
        goes.recv().unwrap();
        select! {
            biased;
            go = goes.recv_async() => go.unwrap(),
            _ = shared.permits.acquire_async(1) => unreachable!(),
            () = shared.notify.notified() => unreachable!(),
            _ = shared.mutex.lock_async() => unreachable!(),
            _ = shared.lock.read_async() => unreachable!(),
            _ = gifts.recv_async() => unreachable!(),
            _ = &mut answer => unreachable!(),
            () = async {
                shared.polled.store(1, Ordering::Relaxed);
                std::future::pending().await
            } => {}
        }
        holder.join().unwrap();
        assert!(shared.permits.try_acquire().is_ok(), "the permit was lost");
        assert!(
            shared.notify.wait_timeout(Duration::ZERO).is_ok(),
            "the wake-up was lost"
        );
        assert!(shared.mutex.try_lock().is_some(), "the lock was lost");
        assert!(shared.lock.try_write().is_some(), "the lock was lost");
        assert_eq!(gifts.try_recv(), Ok(7));
        assert_eq!(answer.try_recv(), Ok(8));
    });
}

#[test]
fn permits_and_locks_that_many_select_for_come_back() {
    const TIMES: u32 = 200;
    on_both(|| {
        let permits = Arc::new(Semaphore::new(2));
        let sum = Arc::new(Mutex::new(0));
        let actors = (0..4)
            .map(|_| {
                let (permits, sum) = (Arc::clone(&permits), Arc::clone(&sum));
                spawn(move || {
                    let mut done = 0;
                    while done < TIMES {
                        let permit = select! {
                            permit = permits.acquire_async(1) => Some(permit.unwrap()),
                            () = sleep_async(Duration::from_micros(30)) => None,
                        };
                        let Some(_permit) = permit else { continue };
                        select! {
                            mut sum = sum.lock_async() => {
                                *sum += 1;
                                done += 1;
                                yield_now();
                            }
                            () = sleep_async(Duration::from_micros(30)) => {}
                        }
                    }
                })
            })
            .collect();
        join_all(actors);
        assert_eq!((permits.available(), *sum.lock()), (2, 4 * TIMES));
    });
}

#[test]
fn all_that_can_be_waited_for_can_win_and_lose() {
    on_both(|| {
        // Polls an operation that is not ready, so that it loses. When it is ready, it wins.
        macro_rules! loses {
            ($operation:expr) => {
                select! { biased; _ = $operation => panic!("it is not ready"), () = ready(()) => {} }
            };
        }
        macro_rules! wins {
            ($operation:expr) => {
                select! { value = $operation => value, () = sleep_async(LONG) => unreachable!() }
            };
        }
        let (sender, receiver) = spsc::channel(1).unwrap();
        loses!(receiver.recv_async());
        wins!(sender.send_async(1)).unwrap();
        loses!(sender.send_async(2));
        assert_eq!(wins!(receiver.recv_async()), Ok(1));
        loses!(receiver.recv_async());

        let (sender, mut changes) = watch::channel(1);
        loses!(changes.changed_async());
        loses!(sender.closed_async());
        sender.send(2).unwrap();
        wins!(changes.changed_async()).unwrap();
        loses!(changes.changed_async());
        drop(changes);
        wins!(sender.closed_async());

        let barrier = Arc::new(Barrier::new(2));
        loses!(barrier.wait_async());
        let other = Arc::clone(&barrier);
        let waits = spawn(move || other.wait().is_leader());
        wins!(barrier.wait_async());
        join_all(vec![waits]);

        let token = Token::new();
        let timed = token.child_with_timeout(Duration::from_millis(1));
        loses!(token.cancelled_async());
        assert_eq!(
            wins!(timed.cancelled_async()).to_string(),
            "the deadline passed"
        );
        let other = token.clone();
        spawn(move || other.cancel("enough"));
        assert_eq!(wins!(token.cancelled_async()).to_string(), "enough");

        let (go, goes) = channel::<()>();
        let mut child = spawn(move || goes.recv().is_err());
        let mut monitor = child.pid().monitor();
        loses!(&mut child);
        loses!(&mut monitor);
        drop(go);
        assert_eq!(wins!(&mut monitor).reason.kind(), "normal");
        assert!(wins!(child).unwrap());

        let (go, goes) = channel::<u32>();
        let mut shared = goes.clone();
        loses!(shared.recv_async());
        go.send(5).unwrap();
        assert_eq!(goes.recv(), Ok(5), "its turn was given back");
        go.send(6).unwrap();
        assert_eq!(wins!(shared.recv_async()), Ok(6));
    });
}

struct Slow;
impl Actor for Slow {}
impl Handler<Arc<Semaphore>> for Slow {
    type Reply = u32;
    fn handle(&mut self, gate: Arc<Semaphore>, _: &Context<'_, Self>) -> u32 {
        gate.acquire().unwrap().forget();
        7
    }
}

#[test]
fn a_call_and_a_cast_are_selected_too() {
    on_both(|| {
        let gate = Arc::new(Semaphore::new(0));
        let slow: ActorRef<Slow> = Builder::new()
            .mailbox(Mailbox {
                capacity: 1,
                ..Mailbox::default()
            })
            .start(Slow);
        slow.cast(Arc::clone(&gate)).unwrap();
        // The first message may be in progress already: then the mailbox has room for one more.
        while slow.is_empty() {
            slow.cast(Arc::clone(&gate)).unwrap();
        }
        for _ in 0..10 {
            select! {
                biased;
                sent = slow.cast_async(Arc::clone(&gate)) => sent.unwrap(),
                () = sleep_async(Duration::from_micros(100)) => {}
            }
        }
        let waiting = slow.len();
        assert!(waiting <= 1, "those that lost were not sent");
        gate.add_permits(100);
        let answer = select! {
            answer = slow.call_async(Arc::clone(&gate)) => answer,
            () = sleep_async(LONG) => unreachable!(),
        };
        assert_eq!(answer, Ok(7));
        let other = start(Slow);
        let answer = select! {
            biased;
            answer = other.call_async(Arc::new(Semaphore::new(0))) => Some(answer),
            () = ready(()) => None,
        };
        assert_eq!(answer, None);
        other.pid().kill().unwrap();
    });
}
