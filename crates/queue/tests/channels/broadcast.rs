//! Channels whose receivers each get every message.

use std::cell::{Cell, OnceCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};

use thalweg_queue::broadcast::{self, Lagged};
use thalweg_queue::{
    Closed, Options, Overflow, RecvError, RecvTimeoutError, Select, SendError, TryRecvError,
    TrySendError, WaitStrategy,
};

use crate::executor::{Task, block_on, poll_once};
use crate::threads::{Crew, scaled, watch};

#[test]
fn every_receiver_gets_every_message() {
    let _watched = watch();
    let count = scaled(1_000, 20);
    let (sender, receiver) = broadcast::channel(count).unwrap();
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let receiver = receiver.clone();
            thread::spawn(move || receiver.iter().map(Result::unwrap).collect::<Vec<_>>())
        })
        .collect();
    (0..count).for_each(|i| sender.send(i).unwrap());
    drop(sender);
    for thread in threads {
        assert!(thread.join().unwrap().into_iter().eq(0..count));
    }
    assert!(receiver.iter().map(Result::unwrap).eq(0..count));
}

#[test]
fn slow_receiver_learns_how_much_it_missed_and_continues_with_the_oldest() {
    for capacity in 1..6u64 {
        let (sender, receiver) = broadcast::channel(capacity as usize).unwrap();
        let mut next = 0;
        for round in 0..20 {
            let sent = capacity + round;
            (next..next + sent).for_each(|i| sender.send(i).unwrap());
            if round > 0 {
                assert_eq!(receiver.recv(), Ok(Err(Lagged(round))));
            }
            next += sent;
            let retained = next - capacity..next;
            assert_eq!(receiver.len() as u64, capacity);
            assert!(receiver.try_iter().eq(retained.map(Ok)));
        }
        let missed = (0..20).sum::<u64>();
        assert_eq!(sender.stats().dropped_oldest, missed);
    }
}

#[test]
fn receiver_that_lags_again_after_it_learnt_it_learns_the_rest() {
    let (sender, receiver) = broadcast::channel(2).unwrap();
    (0..3).for_each(|i| sender.send(i).unwrap());
    assert_eq!(receiver.try_recv(), Ok(Err(Lagged(1))));
    (3..6).for_each(|i| sender.send(i).unwrap());
    assert_eq!(receiver.try_recv(), Ok(Err(Lagged(3))));
    assert_eq!(receiver.try_recv(), Ok(Ok(4)));
    sender.send(6).unwrap();
    assert_eq!(receiver.try_recv(), Ok(Ok(5)));
    assert_eq!(receiver.try_recv(), Ok(Ok(6)));
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
}

#[test]
fn clone_continues_and_resubscribe_starts_anew() {
    let (sender, receiver) = broadcast::channel(2).unwrap();
    (0..5).for_each(|i| sender.send(i).unwrap());
    let (clone, later) = (receiver.clone(), receiver.resubscribe());
    assert_eq!(sender.receiver_count(), 3);
    sender.send(5).unwrap();
    assert!(later.try_iter().eq([Ok(5)]));
    for lagging in [clone, receiver] {
        assert!(lagging.try_iter().eq([Err(Lagged(4)), Ok(4), Ok(5)]));
    }
    assert_eq!(sender.receiver_count(), 1);
}

#[test]
fn channel_without_receivers_stays_open_and_drops_messages() {
    let (sender, receiver) = broadcast::channel(4).unwrap();
    drop(receiver);
    let message = Arc::new(());
    sender.send(Arc::clone(&message)).unwrap();
    assert_eq!(Arc::strong_count(&message), 1);
    assert_eq!((sender.receiver_count(), sender.len()), (0, 0));
    let receiver = sender.subscribe();
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
    sender.send(message).unwrap();
    assert!(receiver.try_recv().unwrap().is_ok());
}

#[test]
fn messages_are_dropped_when_they_are_overwritten_and_with_the_last_receiver() {
    let messages: Vec<_> = (0..10).map(Arc::new).collect();
    let (sender, receiver) = broadcast::channel(3).unwrap();
    sender.send_batch(&mut messages[..7].to_vec()).unwrap();
    let held = || messages.iter().map(|m| Arc::strong_count(m) - 1);
    assert!(held().eq([0, 0, 0, 0, 1, 1, 1, 0, 0, 0]));
    messages[7..]
        .iter()
        .for_each(|m| sender.send(Arc::clone(m)).unwrap());
    assert!(held().eq([0, 0, 0, 0, 0, 0, 0, 1, 1, 1]));
    let clone = receiver.clone();
    drop(receiver);
    assert_eq!(held().sum::<usize>(), 3);
    drop(clone);
    assert_eq!(held().sum::<usize>(), 0);
    sender.send(Arc::clone(&messages[0])).unwrap();
    assert_eq!(held().sum::<usize>(), 0, "no receiver will get it");
    let again = sender.subscribe();
    sender.send(Arc::clone(&messages[0])).unwrap();
    assert_eq!(again.recv(), Ok(Ok(Arc::clone(&messages[0]))));
    drop((sender, again));
    assert_eq!(held().sum::<usize>(), 0);
}

#[test]
fn close_ends_after_the_last_message() {
    let (sender, receiver) = broadcast::channel(4).unwrap();
    let clone = receiver.clone();
    sender.send(1).unwrap();
    receiver.close();
    assert_eq!(sender.try_send(2), Err(TrySendError::Closed(2)));
    assert_eq!(sender.send(2), Err(SendError::Closed(2)));
    let mut batch = vec![2, 3];
    assert_eq!(sender.send_batch(&mut batch), Err(Closed));
    assert_eq!(batch, [2, 3]);
    for receiver in [receiver, clone] {
        assert_eq!(receiver.recv(), Ok(Ok(1)));
        assert_eq!(receiver.recv(), Err(RecvError));
    }
    assert_eq!(sender.subscribe().try_recv(), Err(TryRecvError::Closed));
}

#[test]
fn one_send_wakes_all_waiting_threads_and_close_ends_their_waits() {
    let _watched = watch();
    for options in [
        Options::new(),
        Options::new().wait_strategy(WaitStrategy::Park),
    ] {
        let (sender, receiver) = broadcast::with(4, options).unwrap();
        let crew = Crew::new();
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let receiver = receiver.clone();
                crew.spawn(move || receiver.iter().collect::<Vec<_>>())
            })
            .collect();
        drop(receiver);
        for i in 0..3 {
            crew.asleep(4);
            sender.send(i).unwrap();
        }
        crew.asleep(4);
        drop(sender);
        for thread in threads {
            assert_eq!(thread.join().unwrap(), [Ok(0), Ok(1), Ok(2)]);
        }
    }
}

#[test]
fn receive_returns_at_its_deadline() {
    let (sender, receiver) = broadcast::channel::<u8>(4).unwrap();
    let time = Duration::from_millis(5);
    let began = Instant::now();
    assert_eq!(receiver.recv_timeout(time), Err(RecvTimeoutError::TimedOut));
    let deadline = Instant::now() + time;
    assert_eq!(
        receiver.recv_deadline(deadline),
        Err(RecvTimeoutError::TimedOut)
    );
    assert!(began.elapsed() >= 2 * time);
    sender.send(1).unwrap();
    assert_eq!(receiver.recv_timeout(time), Ok(Ok(1)));
    drop(sender);
    assert_eq!(receiver.recv_timeout(time), Err(RecvTimeoutError::Closed));
}

#[test]
fn batch_stops_before_missed_messages() {
    let (sender, receiver) = broadcast::channel(4).unwrap();
    let mut batch = Vec::new();
    assert_eq!(sender.try_send_batch(&mut (0..6).collect()), Ok(6));
    assert_eq!(receiver.recv_batch(&mut batch, 8), Ok(1));
    assert_eq!(receiver.recv_batch(&mut batch, 3), Ok(3));
    assert_eq!(receiver.try_recv_batch(&mut batch, 8), Ok(1));
    assert_eq!(batch, [Err(Lagged(2)), Ok(2), Ok(3), Ok(4), Ok(5)]);
    assert_eq!(
        receiver.try_recv_batch(&mut batch, 8),
        Err(TryRecvError::Empty)
    );
}

#[test]
fn send_wakes_all_tasks_and_a_dropped_future_loses_nothing() {
    let (sender, receiver) = broadcast::channel(4).unwrap();
    let other = receiver.clone();
    let tasks = [Task::default(), Task::default()];
    let mut futures = [receiver.recv_async(), other.recv_async()];
    for (task, future) in tasks.iter().zip(&mut futures) {
        assert!(task.poll(future).is_pending());
    }
    sender.send(7).unwrap();
    assert!(tasks.iter().all(|task| task.wakes() == 1));
    let [first, mut second] = futures;
    drop(first);
    assert_eq!(tasks[1].poll(&mut second), Poll::Ready(Ok(Ok(7))));
    assert_eq!(block_on(receiver.recv_async()), Ok(Ok(7)));
    assert_eq!(poll_once(&mut sender.send_async(8)), Poll::Ready(Ok(())));
    sender.close();
    assert_eq!(block_on(receiver.recv_async()), Ok(Ok(8)));
    assert_eq!(block_on(receiver.recv_async()), Err(RecvError));
}

#[test]
fn select_finds_messages_and_lag() {
    let (sender, receiver) = broadcast::channel(1).unwrap();
    let (_idle, nothing) = broadcast::channel::<u8>(1).unwrap();
    let mut select = Select::new();
    let idle = select.recv(&nothing);
    let message = select.recv(&receiver);
    assert_eq!(select.ready_timeout(Duration::from_millis(1)), None);
    sender.send(1).unwrap();
    sender.send(2).unwrap();
    for expected in [Err(Lagged(1)), Ok(2)] {
        assert_eq!(select.ready(), message);
        assert_eq!(receiver.try_recv(), Ok(expected));
    }
    assert_ne!(select.try_ready(), Some(idle));
    sender.close();
    assert_eq!(select.ready(), message);
}

#[test]
fn overflow_policy_has_no_effect() {
    let options = Options::new().overflow(Overflow::Fail);
    let (sender, receiver) = broadcast::with(1, options).unwrap();
    (0..3).for_each(|i| sender.send(i).unwrap());
    assert!(!sender.is_full());
    assert!(receiver.try_iter().eq([Err(Lagged(2)), Ok(2)]));
}

/// A message whose clone waits for the test, if asked to.
#[derive(Debug)]
struct Slow {
    number: Box<u32>,
    meet: Option<Arc<[Barrier; 2]>>,
    is_cloned: AtomicBool,
}

impl Slow {
    fn new(number: u32, meet: Option<&Arc<[Barrier; 2]>>) -> Self {
        Self {
            number: Box::new(number),
            meet: meet.cloned(),
            is_cloned: AtomicBool::new(false),
        }
    }
}

impl Clone for Slow {
    fn clone(&self) -> Self {
        // Only the first clone waits.
        if let Some(meet) = &self.meet
            && !self.is_cloned.swap(true, Ordering::SeqCst)
        {
            meet[0].wait();
            meet[1].wait();
        }
        Self::new(*self.number, None)
    }
}

/// While one receiver clones a message, the sender overwrites it several times. Nobody waits, and
/// everybody reads intact messages.
#[test]
fn sender_does_not_wait_for_a_receiver_that_clones() {
    let _watched = watch();
    let meet = Arc::new([Barrier::new(2), Barrier::new(2)]);
    let (sender, receiver) = broadcast::channel(2).unwrap();
    let other = receiver.clone();
    sender.send(Slow::new(0, Some(&meet))).unwrap();
    let slow = thread::spawn(move || {
        let first = receiver.recv().unwrap().unwrap();
        let rest: Vec<_> = receiver.try_iter().collect();
        (first, rest)
    });
    meet[0].wait();
    let number = |got: Result<Slow, Lagged>| got.map(|message| *message.number);
    assert_eq!(other.try_recv().map(number), Ok(Ok(0)));
    for i in 1..8 {
        sender.send(Slow::new(i, None)).unwrap();
        if i == 3 {
            // Message 2 is spilled, and is overwritten later.
            assert_eq!(other.try_recv().map(number), Ok(Err(Lagged(1))));
            assert_eq!(other.try_recv().map(number), Ok(Ok(2)));
        }
    }
    let late = sender.subscribe();
    assert!(
        other
            .try_iter()
            .map(number)
            .eq([Err(Lagged(3)), Ok(6), Ok(7)])
    );
    meet[1].wait();
    let (first, rest) = slow.join().unwrap();
    assert_eq!(*first.number, 0);
    // It missed 1 to 5, and the messages 6 and 7 are spilled.
    assert!(
        rest.into_iter()
            .map(number)
            .eq([Err(Lagged(5)), Ok(6), Ok(7)])
    );
    // The slots are used again.
    (8..12).for_each(|i| sender.send(Slow::new(i, None)).unwrap());
    assert!(
        late.try_iter()
            .map(number)
            .eq([Err(Lagged(2)), Ok(10), Ok(11)])
    );
}

struct PanicsOnClone(bool);

impl Clone for PanicsOnClone {
    fn clone(&self) -> Self {
        assert!(!self.0, "this clone fails");
        Self(false)
    }
}

#[test]
fn receiver_skips_a_message_whose_clone_panics() {
    let (sender, receiver) = broadcast::channel(2).unwrap();
    for round in 0..10 {
        sender.send(PanicsOnClone(true)).unwrap();
        sender.send(PanicsOnClone(false)).unwrap();
        let failed = catch_unwind(AssertUnwindSafe(|| match round % 2 {
            0 => receiver.recv().is_ok(),
            _ => receiver.recv_batch(&mut Vec::new(), 2).is_ok(),
        }));
        assert!(failed.is_err());
        assert_eq!(receiver.len(), 1);
        assert!(receiver.try_recv().unwrap().is_ok());
        assert!(matches!(receiver.try_recv(), Err(TryRecvError::Empty)));
    }
}

#[derive(Clone)]
struct PanicsOnDrop(Rc<Cell<bool>>);

impl Drop for PanicsOnDrop {
    fn drop(&mut self) {
        assert!(!self.0.replace(false), "this drop fails");
    }
}

#[test]
fn message_is_sent_although_the_drop_of_the_oldest_panics() {
    let (sender, receiver) = broadcast::channel(2).unwrap();
    let panics = Rc::new(Cell::new(false));
    let message = || PanicsOnDrop(Rc::clone(&panics));
    sender.send_batch(&mut vec![message(), message()]).unwrap();
    let task = Task::default();
    let watcher = sender.subscribe();
    let mut waits = watcher.recv_async();
    assert!(task.poll(&mut waits).is_pending());
    panics.set(true);
    let failed = catch_unwind(AssertUnwindSafe(|| sender.send(message())));
    assert!(failed.is_err());
    assert!(task.take_wake(), "the message was published before");
    assert!(task.poll(&mut waits).is_ready());
    sender.send(message()).unwrap();
    let got: Vec<_> = receiver.try_iter().map(|got| got.map(drop)).collect();
    assert_eq!(got, [Err(Lagged(2)), Ok(()), Ok(())]);
}

/// A retained message may hold its own channel. It does not keep the channel open for ever.
#[test]
fn message_that_holds_its_sender_is_dropped_with_the_last_receiver() {
    #[derive(Clone)]
    struct Holds(#[expect(dead_code, reason = "it is only held")] broadcast::Sender<Holds>);
    let (sender, receiver) = broadcast::channel(4).unwrap();
    sender.send(Holds(sender.clone())).unwrap();
    let message = receiver.recv().unwrap();
    drop(receiver);
    let later = sender.subscribe();
    drop((sender, message));
    assert!(matches!(later.try_recv(), Err(TryRecvError::Closed)));
}

thread_local! {
    static RECEIVER: OnceCell<broadcast::Receiver<Recursive>> = const { OnceCell::new() };
}

/// A message whose clone sends more than the capacity, and receives from the same receiver.
struct Recursive(u32, Option<broadcast::Sender<Recursive>>);

impl Clone for Recursive {
    fn clone(&self) -> Self {
        if let Some(sender) = &self.1 {
            for i in 1..6 {
                sender.send(Self(self.0 + i, None)).unwrap();
            }
            let inner = RECEIVER.with(|cell| {
                let receiver = cell.get().unwrap();
                receiver
                    .try_iter()
                    .map(|got| got.map(|one| one.0))
                    .collect::<Vec<_>>()
            });
            assert_eq!(inner, [Err(Lagged(3)), Ok(self.0 + 4), Ok(self.0 + 5)]);
        }
        Self(self.0, None)
    }
}

#[test]
fn clone_can_use_its_own_channel() {
    let (sender, receiver) = broadcast::channel(2).unwrap();
    RECEIVER.with(|cell| cell.set(receiver).unwrap_or_else(|_| panic!("set once")));
    for round in 0..3 {
        let first = round * 10;
        sender.send(Recursive(first, Some(sender.clone()))).unwrap();
        RECEIVER.with(|cell| {
            let receiver = cell.get().unwrap();
            assert_eq!(receiver.try_recv().unwrap().unwrap().0, first);
            assert!(receiver.is_empty());
        });
    }
}
