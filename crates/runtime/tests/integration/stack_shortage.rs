//! Shortage of stacks: `max_stacks` is reached, or the system has no memory for another one. An
//! accepted message is handled, no running actor ends, and no supervision tree ends.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use thalweg_runtime::patterns::PipelineBuilder;
use thalweg_runtime::supervisor::{ChildSpec, Restart, Shutdown, Strategy, Supervisor};
use thalweg_runtime::{
    Actor, ActorRef, Builder, CallError, Config, Context, ExitReason, Handler, JoinError,
    JoinHandle, Receiver, Runtime, Sender, Signal, StackError, channel, init, spawn, spawn_under,
    start,
};

use crate::kit::{LONG, let_others, until};

/// Stacks that each worker has for the turns of actors, in addition to its share of `max_stacks`.
const TURN_RESERVE: usize = 16;

/// Adds up, and can keep its stack while it handles a message.
#[derive(Default)]
struct Counter {
    sum: u64,
    log: Arc<Mutex<Vec<u64>>>,
    entered: Arc<AtomicUsize>,
}

struct Add(u64);
/// Waits until the sender is dropped.
struct Hold(Receiver<()>);
struct Fail;

impl Actor for Counter {}

impl Handler<Add> for Counter {
    type Reply = u64;
    fn handle(&mut self, Add(number): Add, _: &Context<'_, Self>) -> u64 {
        self.sum += number;
        self.log.lock().unwrap().push(number);
        self.sum
    }
}

impl Handler<Hold> for Counter {
    type Reply = ();
    fn handle(&mut self, Hold(receiver): Hold, _: &Context<'_, Self>) {
        self.entered.fetch_add(1, Ordering::SeqCst);
        let _ = receiver.recv();
    }
}

impl Handler<Fail> for Counter {
    type Reply = ();
    fn handle(&mut self, _: Fail, _: &Context<'_, Self>) {
        panic!("on purpose");
    }
}

/// Actors that hold every stack that spawned actors may have.
struct Holders {
    senders: Vec<Sender<()>>,
    actors: Vec<JoinHandle<()>>,
}

impl Holders {
    fn new() -> Self {
        let mut holders = Self {
            senders: Vec::new(),
            actors: Vec::new(),
        };
        loop {
            let (sender, receiver) = channel();
            let begun = Arc::new(AtomicUsize::new(0));
            let begins = Arc::clone(&begun);
            let actor = spawn(move || {
                begins.fetch_add(1, Ordering::SeqCst);
                let _ = receiver.recv();
            });
            until(|| begun.load(Ordering::SeqCst) > 0 || actor.is_finished());
            if actor.is_finished() {
                assert!(matches!(actor.join(), Err(JoinError::NoStack(_))));
                return holders;
            }
            holders.senders.push(sender);
            holders.actors.push(actor);
        }
    }

    fn release(self) {
        drop(self.senders);
        for actor in self.actors {
            actor.join().unwrap();
        }
    }
}

fn on_one_worker(most: usize, test: impl FnOnce() + 'static) {
    init(Config::with_workers(1).max_stacks(most))
        .unwrap()
        .run(test);
}

#[test]
fn message_to_idle_actor_while_no_stack_is_free_is_handled_with_its_state() {
    on_one_worker(3, || {
        let actor = start(Counter::default());
        assert_eq!(actor.call(Add(1)), Ok(1));
        let holders = Holders::new();
        assert_eq!(actor.call(Add(1)), Ok(2));
        holders.release();
        assert_eq!(actor.call(Add(1)), Ok(3));
    });
}

#[test]
fn supervisor_and_idle_children_survive_while_no_stack_is_free() {
    on_one_worker(3, || {
        let (one, first) = ChildSpec::actor("first", Counter::default);
        let (two, second) = ChildSpec::actor("second", Counter::default);
        let supervisor = Supervisor::new(Strategy::OneForOne)
            .intensity(1, LONG)
            .child(one.restart(Restart::Permanent))
            .child(two.restart(Restart::Permanent))
            .start()
            .unwrap();
        assert_eq!(first.call(Add(1)), Ok(1));
        assert_eq!(second.call(Add(1)), Ok(1));
        let holders = Holders::new();
        // One child fails and is restarted; the other keeps its state.
        assert!(first.call(Fail).is_err());
        assert_eq!(first.call(Add(1)), Ok(1));
        assert_eq!(second.call(Add(1)), Ok(2));
        holders.release();
        assert!(supervisor.pid().is_alive());
        assert_eq!(second.call(Add(1)), Ok(3));
        let children = supervisor.which_children().unwrap();
        assert_eq!(
            children.iter().map(|child| child.restarts).sum::<u64>(),
            1,
            "{children:?}"
        );
    });
}

#[test]
fn turn_beyond_the_reserve_waits_until_a_stack_is_returned_and_order_is_kept() {
    on_one_worker(1, || {
        let entered = Arc::new(AtomicUsize::new(0));
        let hold = |actor: &ActorRef<Counter>| {
            let (sender, receiver) = channel();
            actor.cast(Hold(receiver)).unwrap();
            sender
        };
        let new = || {
            start(Counter {
                entered: Arc::clone(&entered),
                ..Counter::default()
            })
        };
        let actors: Vec<_> = (0..2 * TURN_RESERVE).map(|_| new()).collect();
        let mut senders: Vec<_> = actors[..TURN_RESERVE].iter().map(&hold).collect();
        until(|| entered.load(Ordering::SeqCst) == TURN_RESERVE);
        // No stack is left, so these messages wait.
        let log: Arc<Mutex<Vec<u64>>> = Arc::default();
        let last = start(Counter {
            log: Arc::clone(&log),
            ..Counter::default()
        });
        senders.extend(actors[TURN_RESERVE..].iter().map(&hold));
        (1..=3).for_each(|number| last.cast(Add(number)).unwrap());
        for _ in 0..100 {
            let_others();
        }
        assert_eq!(entered.load(Ordering::SeqCst), TURN_RESERVE);
        assert_eq!(*log.lock().unwrap(), [0; 0]);
        // One stack becomes free at a time.
        for (released, sender) in senders.into_iter().enumerate() {
            drop(sender);
            until(|| entered.load(Ordering::SeqCst) >= (TURN_RESERVE + released).min(actors.len()));
        }
        assert_eq!(last.call(Add(4)), Ok(10));
        assert_eq!(*log.lock().unwrap(), [1, 2, 3, 4]);
        for actor in &actors {
            assert_eq!(actor.call(Add(1)), Ok(1));
        }
    });
}

#[test]
fn supervised_job_while_no_stack_is_free_begins_when_one_is_returned() {
    on_one_worker(3, || {
        let holders = Holders::new();
        let begun = Arc::new(AtomicUsize::new(0));
        let begins = Arc::clone(&begun);
        let job = ChildSpec::job("job", move || {
            begins.fetch_add(1, Ordering::SeqCst);
            thalweg_runtime::sleep(LONG);
        });
        let supervisor = Supervisor::new(Strategy::OneForOne)
            .intensity(0, LONG)
            .child(job.restart(Restart::Permanent))
            .start()
            .unwrap();
        for _ in 0..100 {
            let_others();
        }
        assert_eq!(begun.load(Ordering::SeqCst), 0);
        assert!(supervisor.pid().is_alive());
        holders.release();
        until(|| begun.load(Ordering::SeqCst) == 1);
        assert_eq!(supervisor.count_children().unwrap().active, 1);
    });
}

#[test]
fn supervised_job_that_waits_for_a_stack_ends_with_its_supervisor() {
    on_one_worker(3, || {
        let holders = Holders::new();
        let supervisor = Supervisor::new(Strategy::OneForOne)
            .child(ChildSpec::job("job", || thalweg_runtime::sleep(LONG)))
            .start()
            .unwrap();
        let end = supervisor.pid().monitor();
        let _ = supervisor.pid().kill();
        assert!(matches!(end.wait().reason, ExitReason::Killed));
        holders.release();
    });
}

#[test]
fn actor_under_a_listener_while_no_stack_is_free_waits_and_its_end_is_told() {
    on_one_worker(3, || {
        let holders = Holders::new();
        let (supervisor, ends) = channel();
        let child = spawn_under(supervisor, || ());
        for _ in 0..100 {
            let_others();
        }
        assert!(!child.is_finished());
        holders.release();
        assert!(matches!(ends.recv(), Ok(Signal::Exit(id)) if id == child.id()));
    });
}

#[test]
fn queued_actor_while_no_stack_is_free_waits_for_one() {
    on_one_worker(3, || {
        let holders = Holders::new();
        let handle = thalweg_runtime::Handle::current().unwrap();
        let queued = handle.spawn_queued(|| 4);
        for _ in 0..100 {
            let_others();
        }
        assert!(!queued.is_finished());
        holders.release();
        assert_eq!(queued.join().unwrap(), 4);
    });
}

/// Otherwise no one would close the pipeline, and its reader waits for ever.
#[test]
fn feeder_of_a_pipeline_while_no_stack_is_free_feeds_it_later() {
    on_one_worker(3, || {
        let pipeline = PipelineBuilder::new()
            .stage("double", 1, 4, |n: u64| n * 2)
            .start()
            .unwrap();
        let holders = Holders::new();
        let feeder = pipeline.feed(0..3);
        for _ in 0..100 {
            let_others();
        }
        assert!(!feeder.is_finished());
        holders.release();
        assert_eq!(pipeline.iter().collect::<Vec<_>>(), [0, 2, 4]);
        assert_eq!(feeder.join().unwrap(), 3);
    });
}

#[test]
fn spawned_actor_while_no_stack_is_free_ends_with_a_failure_of_its_own() {
    on_one_worker(3, || {
        let holders = Holders::new();
        let spawned = Builder::new().name("no stack").spawn(|| ());
        let end = spawned.pid().monitor().wait();
        assert!(!end.reason.is_orderly());
        assert_eq!(end.reason.kind(), "no_stack");
        match spawned.join() {
            Err(JoinError::NoStack(error)) => {
                assert!(matches!(error, StackError::TooMany { max: 3 }), "{error}");
                assert!(error.is_retryable());
            }
            other => panic!("{other:?}"),
        }
        holders.release();
    });
}

/// A worker that is busy, or whose stacks are all held, leaves the turn to one that has a stack.
#[test]
fn turn_that_waits_for_a_stack_runs_on_another_worker() {
    let runtime = Runtime::start(Config::with_workers(3).max_stacks(3)).unwrap();
    let entered = Arc::new(AtomicUsize::new(0));
    let actors: Vec<_> = (0..3 * (TURN_RESERVE + 1))
        .map(|_| {
            runtime.handle().start(Counter {
                entered: Arc::clone(&entered),
                ..Counter::default()
            })
        })
        .collect();
    let senders: Vec<_> = actors
        .iter()
        .map(|actor| {
            let (sender, receiver) = channel();
            actor.cast(Hold(receiver)).unwrap();
            sender
        })
        .collect();
    // Each worker runs as many actors as it may have stacks.
    while entered.load(Ordering::SeqCst) < actors.len() {
        std::thread::yield_now();
    }
    drop(senders);
    for actor in &actors {
        assert_eq!(actor.call(Add(1)), Ok(1));
    }
}

#[test]
fn stop_while_turns_and_jobs_wait_for_a_stack_ends_them() {
    let runtime = Runtime::start(Config::with_workers(1).max_stacks(1)).unwrap();
    let entered = Arc::new(AtomicUsize::new(0));
    let mut senders = Vec::new();
    let mut actors = Vec::new();
    for _ in 0..TURN_RESERVE + 4 {
        let actor = runtime.handle().start(Counter {
            entered: Arc::clone(&entered),
            ..Counter::default()
        });
        let (sender, receiver) = channel();
        actor.cast(Hold(receiver)).unwrap();
        senders.push(sender);
        actors.push(actor);
    }
    while entered.load(Ordering::SeqCst) < TURN_RESERVE + 1 {
        std::thread::yield_now();
    }
    let queued = runtime.handle().spawn_queued(|| ());
    drop(runtime);
    assert!(matches!(queued.join(), Err(JoinError::Stopped)));
    // The actors that had a stack handled their message and are idle.
    let ended = actors.iter().filter(|actor| !actor.is_alive()).count();
    assert_eq!(ended, 3);
}

/// The supervisor stops its jobs from right to left, and the last ones have no stack.
#[test]
fn supervisor_with_more_jobs_than_stacks_shuts_down() {
    on_one_worker(6, || {
        let begun = Arc::new(AtomicUsize::new(0));
        let mut supervisor = Supervisor::new(Strategy::OneForOne);
        for n in 0..10 {
            let begins = Arc::clone(&begun);
            let job = ChildSpec::job(n.to_string(), move || {
                begins.fetch_add(1, Ordering::SeqCst);
                thalweg_runtime::sleep(LONG);
            });
            supervisor = supervisor.child(job.shutdown(Shutdown::Infinity));
        }
        let supervisor = supervisor.start().unwrap();
        until(|| begun.load(Ordering::SeqCst) == 5);
        let children = supervisor.which_children().unwrap();
        let last = children[9].pid.clone().unwrap().monitor();
        let end = supervisor.pid().monitor();
        supervisor.stop();
        assert!(end.wait().reason.is_orderly());
        assert!(matches!(last.wait().reason, ExitReason::Shutdown));
    });
}

/// Runs in a child process, because the limit applies to the whole process.
#[test]
#[cfg(all(
    target_os = "linux",
    not(any(miri, thalweg_threads, feature = "sanitizer"))
))]
fn turns_under_an_address_space_limit_run_or_wait_until_it_is_raised() {
    const NAME: &str =
        "stack_shortage::turns_under_an_address_space_limit_run_or_wait_until_it_is_raised";
    const IN_CHILD: &str = "THALWEG_ADDRESS_SPACE_TEST";
    if std::env::var_os(IN_CHILD).is_some() {
        return run_under_a_limit();
    }
    let this = std::env::current_exe().unwrap();
    let child = std::process::Command::new(this)
        .args(["--exact", "--nocapture", NAME])
        .env(IN_CHILD, "1")
        .output()
        .unwrap();
    assert!(
        child.status.success(),
        "{}{}",
        String::from_utf8_lossy(&child.stdout),
        String::from_utf8_lossy(&child.stderr)
    );
}

#[cfg(all(
    target_os = "linux",
    not(any(miri, thalweg_threads, feature = "sanitizer"))
))]
fn run_under_a_limit() {
    /// Limits the process to `more` bytes above its current size.
    fn limit(more: u64) {
        let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
        let pages: u64 = pages.split(' ').next().unwrap().parse().unwrap();
        let limit = libc::rlimit {
            rlim_cur: (pages * 4096).saturating_add(more),
            rlim_max: libc::RLIM_INFINITY,
        };
        // SAFETY: a valid pointer to a local.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) }, 0);
    }
    // Larger than an arena that `malloc` maps at a time.
    const STACK: usize = 128 << 20;
    let config = Config::with_workers(1).stack_size(STACK).stall(None);
    init(config).unwrap().run(|| {
        let entered: Arc<AtomicUsize> = Arc::default();
        let new = || {
            start(Counter {
                entered: Arc::clone(&entered),
                ..Counter::default()
            })
        };
        let (one, other) = (new(), new());
        assert_eq!(one.call(Add(1)), Ok(1));
        limit(STACK as u64 / 2);
        let holders = Holders::new();
        // The worker has kept one stack for turns.
        assert_eq!(one.call(Add(1)), Ok(2));
        let (sender, receiver) = channel();
        other.cast(Hold(receiver)).unwrap();
        until(|| entered.load(Ordering::SeqCst) == 1);
        // No stack is left and none becomes free, so the message waits.
        let late = one.call_timeout(Add(1), Duration::from_millis(50));
        assert_eq!(late, Err(CallError::TimedOut));
        // The worker is not notified that memory is available again.
        limit(u64::MAX);
        assert_eq!(one.call(Add(1)), Ok(4));
        drop(sender);
        holders.release();
    });
}
