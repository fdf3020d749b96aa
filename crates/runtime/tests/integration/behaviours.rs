//! Guarantees of actors that handle messages.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use thalweg_queue::{Overflow, SendError};
use thalweg_runtime::{
    Actor, ActorRef, Builder, CallError, Config, Context, Handler, Mailbox, Receiver, Runtime,
    Sender, Signal, channel, run, runtime, sleep, spawn, start, yield_now,
};

/// Runs `test` on one worker and on several.
fn everywhere(test: fn()) {
    run(test);
    for workers in [2, 4] {
        runtime::init(Config::with_workers(workers))
            .unwrap()
            .run(test);
    }
}

#[derive(Default)]
struct Log {
    seen: Vec<u64>,
    dropped: Option<Arc<AtomicUsize>>,
}

impl Actor for Log {}

impl Drop for Log {
    fn drop(&mut self) {
        if let Some(dropped) = &self.dropped {
            dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

struct Add(u64);
struct Seen;
/// Its handler waits until the sender is dropped.
struct Hold(Receiver<()>);
struct Panics;
struct Stops;

impl Handler<Add> for Log {
    type Reply = usize;
    fn handle(&mut self, add: Add, _: &Context<'_, Self>) -> usize {
        self.seen.push(add.0);
        self.seen.len()
    }
}

impl Handler<Seen> for Log {
    type Reply = Vec<u64>;
    fn handle(&mut self, _: Seen, _: &Context<'_, Self>) -> Vec<u64> {
        self.seen.clone()
    }
}

impl Handler<Hold> for Log {
    type Reply = ();
    fn handle(&mut self, hold: Hold, _: &Context<'_, Self>) {
        assert!(hold.0.recv().is_err());
    }
}

impl Handler<Panics> for Log {
    type Reply = ();
    fn handle(&mut self, _: Panics, _: &Context<'_, Self>) {
        std::panic::resume_unwind(Box::new("on purpose"));
    }
}

impl Handler<Stops> for Log {
    type Reply = ();
    fn handle(&mut self, _: Stops, context: &Context<'_, Self>) {
        context.stop();
    }
}

/// Returns an actor that handles no further message until the sender is dropped.
fn held(capacity: u32, overflow: Overflow) -> (ActorRef<Log>, Sender<()>) {
    let log = Builder::new()
        .mailbox(Mailbox { capacity, overflow })
        .start(Log::default());
    let (release, held) = channel();
    log.cast(Hold(held)).unwrap();
    (log, release)
}

#[test]
fn messages_of_one_sender_arrive_in_order_and_calls_get_replies() {
    everywhere(|| {
        let log = start(Log::default());
        for n in 0..1_000 {
            log.cast(Add(n)).unwrap();
        }
        assert_eq!(log.call(Add(1_000)).unwrap(), 1_001);
        assert_eq!(log.call(Seen).unwrap(), (0..=1_000).collect::<Vec<_>>());
    });
}

#[test]
fn casts_of_many_senders_are_all_handled() {
    everywhere(|| {
        let log = start(Log::default());
        let senders: Vec<_> = (0..16u64)
            .map(|sender| {
                let log = log.clone();
                spawn(move || (0..500).for_each(|n| log.cast(Add(sender << 32 | n)).unwrap()))
            })
            .collect();
        for sender in senders {
            sender.join().unwrap();
        }
        let seen = log.call(Seen).unwrap();
        assert_eq!(seen.len(), 8_000);
        for sender in 0..16 {
            let its: Vec<_> = seen
                .iter()
                .filter(|n| **n >> 32 == sender)
                .map(|n| n & 0xffff_ffff)
                .collect();
            assert_eq!(its, (0..500).collect::<Vec<_>>());
        }
    });
}

#[test]
fn actor_handles_messages_while_its_sender_sends_many() {
    run(|| {
        let log = start(Log::default());
        for number in 0..10_000 {
            log.cast(Add(number)).unwrap();
            assert!(log.len() <= 512, "{} messages wait", log.len());
        }
        assert_eq!(log.call(Seen).unwrap(), (0..10_000).collect::<Vec<_>>());
    });
}

/// A receiver whose handlers take little time stays on the sender's worker.
#[test]
#[cfg_attr(
    any(miri, thalweg_threads),
    ignore = "identifies a worker by its thread"
)]
fn actor_whose_handlers_take_long_moves_to_an_idle_worker() {
    struct Works(Arc<AtomicBool>);
    impl Actor for Works {}
    impl Handler<ThreadId> for Works {
        type Reply = ();
        fn handle(&mut self, sender: ThreadId, _: &Context<'_, Self>) {
            let until = Instant::now() + Duration::from_micros(50);
            while Instant::now() < until {}
            if std::thread::current().id() != sender {
                self.0.store(true, Ordering::Relaxed);
            }
        }
    }
    runtime::init(Config::with_workers(2)).unwrap().run(|| {
        let moved = Arc::new(AtomicBool::new(false));
        let mailbox = Mailbox::default();
        let works = Builder::new().mailbox(mailbox).start(Works(moved.clone()));
        // A full mailbox makes the sender wait.
        for _ in 0..100_000 {
            if moved.load(Ordering::Relaxed) {
                return;
            }
            works.cast(std::thread::current().id()).unwrap();
        }
        panic!("every message was handled on the sender's worker");
    });
}

#[test]
fn late_reply_is_dropped_and_the_next_call_gets_its_own() {
    everywhere(|| {
        let log = start(Log::default());
        let soon = Duration::from_millis(2);
        let began = Instant::now();
        let (release, held) = channel();
        assert_eq!(log.call_timeout(Hold(held), soon), Err(CallError::TimedOut));
        assert!(began.elapsed() >= soon);
        drop(release);
        assert_eq!(log.call(Add(1)), Ok(1));
    });
}

#[test]
fn panic_ends_the_actor_and_its_callers_get_an_error() {
    everywhere(|| {
        let dropped = Arc::new(AtomicUsize::new(0));
        let (supervisor, ends) = channel();
        let state = Log {
            dropped: Some(Arc::clone(&dropped)),
            seen: Vec::new(),
        };
        let log = Builder::new().supervisor(supervisor).start(state);
        log.cast(Add(1)).unwrap();
        assert_eq!(log.call(Panics), Err(CallError::Ended));
        let Ok(Signal::Panic(id, panic)) = ends.recv() else {
            panic!("its end was told otherwise");
        };
        assert_eq!((id, panic.message()), (log.id(), Some("on purpose")));
        assert_eq!(dropped.load(Ordering::Relaxed), 1);
        assert!(matches!(log.cast(Add(2)), Err(SendError::Closed(Add(2)))));
        assert_eq!(log.call(Seen), Err(CallError::Ended));
        assert!(!log.is_alive());
    });
}

#[test]
fn calls_queued_behind_the_last_message_fail() {
    everywhere(|| {
        let (log, release) = held(100, Overflow::Fail);
        let callers: Vec<_> = (0..10)
            .map(|_| {
                let log = log.clone();
                spawn(move || log.call(Seen))
            })
            .collect();
        while log.len() < 11 {
            yield_now();
        }
        log.stop();
        drop(release);
        for caller in callers {
            assert_eq!(caller.join().unwrap(), Err(CallError::Ended));
        }
    });
}

#[test]
fn stop_is_not_delayed_by_a_full_mailbox() {
    everywhere(|| {
        let (supervisor, ends) = channel();
        let log = Builder::new().supervisor(supervisor).start(Log::default());
        for n in 0..1_000 {
            log.cast(Add(n)).unwrap();
        }
        log.stop();
        drop(log);
        assert!(matches!(ends.recv(), Ok(Signal::Exit(_))));
    });
}

#[test]
fn actor_that_stops_itself_handles_no_further_message() {
    everywhere(|| {
        let log = start(Log::default());
        assert_eq!(log.call(Stops), Ok(()));
        assert_eq!(log.call(Seen), Err(CallError::Ended));
    });
}

#[test]
fn actor_without_references_handles_its_messages_and_ends() {
    everywhere(|| {
        let dropped = Arc::new(AtomicUsize::new(0));
        let (supervisor, ends) = channel();
        let state = Log {
            dropped: Some(Arc::clone(&dropped)),
            seen: Vec::new(),
        };
        let log = Builder::new().supervisor(supervisor).start(state);
        for n in 0..100 {
            log.cast(Add(n)).unwrap();
        }
        drop(log.clone());
        assert_eq!(dropped.load(Ordering::Relaxed), 0);
        drop(log);
        assert!(matches!(ends.recv(), Ok(Signal::Exit(_))));
        assert_eq!(dropped.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn full_mailbox_applies_its_overflow_policy() {
    everywhere(|| {
        let (fails, release) = held(4, Overflow::Fail);
        let taken = (0..100).take_while(|n| fails.cast(Add(*n)).is_ok()).count();
        assert_eq!(taken, 3);
        assert!(matches!(fails.cast(Add(7)), Err(SendError::Full(Add(7)))));
        assert_eq!(fails.call(Seen), Err(CallError::Full));
        drop(release);

        let (drops, release) = held(4, Overflow::DropNewest);
        (0..100).for_each(|n| drops.cast(Add(n)).unwrap());
        assert_eq!(drops.call(Seen), Err(CallError::Full));
        drop(release);
        while !drops.is_empty() {
            yield_now();
        }
        assert_eq!(drops.call(Seen).unwrap(), [0, 1, 2]);
        assert_eq!(drops.dropped(), 97);

        let (waits, release) = held(4, Overflow::Block);
        let sender = waits.clone();
        let sending = spawn(move || (0..100).for_each(|n| sender.cast(Add(n)).unwrap()));
        while waits.len() < 4 {
            yield_now();
        }
        drop(release);
        sending.join().unwrap();
        assert_eq!(waits.call(Seen).unwrap(), (0..100).collect::<Vec<_>>());

        let (waits_a_little, _release) = held(1, Overflow::BlockFor(Duration::from_millis(1)));
        assert!(matches!(
            waits_a_little.cast(Add(5)),
            Err(SendError::TimedOut(Add(5)))
        ));
    });
}

#[test]
fn actor_that_calls_itself_gets_an_error() {
    struct Narcissus(Option<ActorRef<Narcissus>>);
    struct Look;
    struct Meet(ActorRef<Narcissus>);
    impl Actor for Narcissus {}
    impl Handler<Meet> for Narcissus {
        type Reply = ();
        fn handle(&mut self, meet: Meet, _: &Context<'_, Self>) {
            self.0 = Some(meet.0);
        }
    }
    impl Handler<Look> for Narcissus {
        type Reply = bool;
        fn handle(&mut self, _: Look, _: &Context<'_, Self>) -> bool {
            let me = self.0.take().expect("they met");
            let call = me.call(Look);
            let casts = (0..2_000).find_map(|_| me.cast(Look).err());
            call == Err(CallError::CallingSelf) && matches!(casts, Some(SendError::Full(Look)))
        }
    }
    everywhere(|| {
        let narcissus = start(Narcissus(None));
        narcissus.call(Meet(narcissus.clone())).unwrap();
        assert_eq!(narcissus.call(Look), Ok(true));
        narcissus.stop();
    });
}

#[test]
fn delayed_message_is_not_early_and_a_cancelled_one_is_not_sent() {
    everywhere(|| {
        loop {
            let log = start(Log::default());
            let (began, soon) = (Instant::now(), Duration::from_millis(5));
            let never = log.send_after(soon, Add(1));
            log.send_after(2 * soon, Add(2));
            never.cancel();
            let in_time = began.elapsed() < soon;
            while !log.call(Seen).unwrap().contains(&2) {
                sleep(Duration::from_millis(1));
            }
            assert!(began.elapsed() >= 2 * soon);
            // Otherwise the machine paused until the message had arrived.
            if in_time {
                return assert_eq!(log.call(Seen).unwrap(), [2]);
            }
        }
    });
}

#[test]
fn threads_can_cast_and_call() {
    let runtime = Runtime::start(Config::with_workers(2)).unwrap();
    let log = runtime.handle().start(Log::default());
    std::thread::scope(|scope| {
        for sender in 0..4u64 {
            let log = log.clone();
            scope.spawn(move || (0..1_000).for_each(|n| log.cast(Add(sender << 32 | n)).unwrap()));
        }
    });
    assert_eq!(log.call(Seen).unwrap().len(), 4_000);
    drop(runtime);
    // No actor is left to answer, and the caller receives an error.
    assert_eq!(log.call(Seen), Err(CallError::Ended));
}

#[test]
fn states_are_dropped_with_their_runtime() {
    let dropped = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&dropped);
    run(move || {
        let logs: Vec<_> = (0..100)
            .map(|_| {
                start(Log {
                    dropped: Some(Arc::clone(&counted)),
                    seen: Vec::new(),
                })
            })
            .collect();
        logs.iter().for_each(|log| log.cast(Add(1)).unwrap());
    });
    assert_eq!(dropped.load(Ordering::Relaxed), 100);
}

#[test]
fn ten_thousand_actors_all_reply() {
    everywhere(|| {
        let all: Vec<_> = (0..10_000).map(|_| start(Log::default())).collect();
        for (n, log) in all.iter().enumerate() {
            assert_eq!(log.call(Add(n as u64)), Ok(1));
        }
    });
}

#[test]
fn starting_many_actors_lets_them_begin_meanwhile() {
    const STARTED: usize = 100_000;
    struct Begins(Arc<AtomicUsize>);
    impl Actor for Begins {
        fn started(&mut self, _: &Context<'_, Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    runtime::init(Config::with_workers(1)).unwrap().run(|| {
        let begun = Arc::new(AtomicUsize::new(0));
        let mut actors = Vec::new();
        while begun.load(Ordering::Relaxed) == 0 {
            assert!(actors.len() < 1_000_000, "none has begun");
            actors.push(start(Begins(begun.clone())));
        }
    });

    // One of the two workers is kept busy. The started actors begin on the starter's own worker
    // while it is still starting them.
    let runtime = Runtime::start(Config::with_workers(2)).unwrap();
    let (kept, keeps) = mpsc::channel();
    let (over, until_over) = mpsc::channel::<()>();
    let keeper = runtime.handle().spawn(move || {
        kept.send(()).unwrap();
        let _ = until_over.recv();
    });
    keeps.recv().unwrap();
    let (told, tells) = mpsc::channel();
    let handle = runtime.handle().clone();
    let starter = runtime.handle().spawn(move || {
        let begun = Arc::new(AtomicUsize::new(0));
        let begins = || handle.start(Begins(begun.clone()));
        let actors: Vec<_> = (0..STARTED).map(|_| begins()).collect();
        told.send(begun.load(Ordering::Relaxed)).unwrap();
        actors
    });
    let begun = tells.recv().unwrap();
    drop(over);
    assert!(begun > STARTED / 4, "{begun} of {STARTED} have begun");
    keeper.join().unwrap();
    drop(starter.join());
}

#[test]
fn started_runs_before_the_first_message_and_stopped_after_the_last() {
    struct Told(mpsc::Sender<&'static str>);
    impl Actor for Told {
        fn started(&mut self, _: &Context<'_, Self>) {
            self.0.send("started").unwrap();
        }
        fn stopped(&mut self) {
            self.0.send("stopped").unwrap();
        }
    }
    impl Handler<&'static str> for Told {
        type Reply = ();
        fn handle(&mut self, what: &'static str, _: &Context<'_, Self>) {
            self.0.send(what).unwrap();
        }
    }
    everywhere(|| {
        let (tx, rx) = mpsc::channel();
        let (supervisor, ends) = channel();
        let told = Builder::new().supervisor(supervisor).start(Told(tx));
        told.cast("one").unwrap();
        told.call("two").unwrap();
        drop(told);
        ends.recv().unwrap();
        assert_eq!(
            rx.iter().collect::<Vec<_>>(),
            ["started", "one", "two", "stopped"]
        );
    });
}

#[test]
#[cfg_attr(
    any(miri, thalweg_threads),
    ignore = "an overflow of a thread is the standard library's"
)]
fn an_actor_whose_handler_overflows_its_stack_is_named() {
    use std::os::unix::process::ExitStatusExt;

    const CHILD: &str = "THALWEG_TEST_HANDLER_OVERFLOWS";
    struct Digger;
    impl Actor for Digger {}
    fn deep(n: u64) -> u64 {
        if n == u64::MAX {
            0
        } else {
            std::hint::black_box(deep(n + 1)) + 1
        }
    }
    impl Handler<u64> for Digger {
        type Reply = u64;
        fn handle(&mut self, n: u64, _: &Context<'_, Self>) -> u64 {
            deep(n)
        }
    }
    if std::env::var_os(CHILD).is_some() {
        run(|| {
            let digger = Builder::new().name("digger").start(Digger);
            digger.call(0)
        })
        .unwrap();
    }
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["an_actor_whose_handler_overflows", "--nocapture"])
        .env(CHILD, "yes")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stderr);
    assert_eq!(child.status.signal(), Some(6), "{said}");
    assert!(
        said.contains("thalweg: actor digger overflowed its stack of "),
        "{said}"
    );
}
