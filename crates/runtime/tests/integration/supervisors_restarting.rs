//! Events between the end of one incarnation and the start of the next.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use thalweg_runtime::supervisor::{
    Backoff, ChildError, ChildSpec, Restart, Strategy, Supervisor, SupervisorStartError,
};
use thalweg_runtime::{
    Actor, CallError, Context, Down, Exit, Handler, NoKill, Pid, Receiver, Sender, channel, sleep,
    spawn,
};

use crate::trees::*;

#[test]
fn backoff_grows_with_consecutive_failures() {
    on_both(|| {
        let log = Log::default();
        let (spec, actor) = worker("a", &log);
        let _supervisor = Supervisor::new(Strategy::OneForOne)
            .unlimited_restarts()
            .child(spec.backoff(Backoff {
                first: Duration::from_millis(4),
                max: Duration::from_millis(16),
                jitter: 0.0,
                reset_after: LONG,
            }))
            .start()
            .expect("it starts");
        let begun = Instant::now();
        for _ in 0..4 {
            let _ = actor.call(Panic);
            assert_eq!(actor.call(Ping), Ok(1));
        }
        assert!(begun.elapsed() >= Duration::from_millis(4 + 8 + 16 + 16));
    });
}

#[test]
fn temporary_child_is_not_restarted_with_the_others() {
    for strategy in [Strategy::OneForAll, Strategy::RestForOne] {
        let test = move || {
            let log = Log::default();
            let (spec, permanent) = worker("permanent", &log);
            let (short, temporary) = worker("temporary", &log);
            let supervisor = Supervisor::new(strategy)
                .child(spec)
                .child(short.restart(Restart::Temporary))
                .start()
                .expect("both start");
            log.take();
            let _ = permanent.call(Panic);
            assert_eq!(permanent.call(Ping), Ok(1));
            assert_eq!(supervisor.count_children().unwrap().specs, 1);
            assert_eq!(temporary.call(Ping), Err(CallError::Ended));
            assert_eq!(log.take(), ["-temporary", "+permanent"]);
        };
        thalweg_runtime::run(test);
    }
}

#[test]
fn failed_start_child_frees_the_name() {
    on_both(|| {
        let supervisor = Supervisor::new(Strategy::OneForOne).start().unwrap();
        let (spec, _) = ChildSpec::actor("a", || -> Worker { panic!("it cannot") });
        assert!(matches!(
            supervisor.start_child(spec),
            Err(ChildError::Start(SupervisorStartError::Child { .. }))
        ));
        assert_eq!(supervisor.count_children().unwrap().specs, 0);
        let (spec, actor) = worker("a", &Log::default());
        supervisor.start_child(spec).expect("the name is free");
        assert_eq!(actor.call(Ping), Ok(1));
    });
}

/// The supervisor retries the restart until it succeeds. Meanwhile it replies to calls and can be
/// stopped.
#[test]
fn supervisor_with_a_failing_restart_still_replies() {
    on_both(|| {
        let broken = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&broken);
        let (spec, actor) = ChildSpec::actor("flaky", move || {
            assert!(!seen.load(Ordering::SeqCst), "not yet");
            Worker {
                name: "flaky",
                log: Log::default(),
                handled: 0,
            }
        });
        let supervisor = Supervisor::new(Strategy::OneForOne)
            .unlimited_restarts()
            .child(spec)
            .start()
            .expect("it starts");
        broken.store(true, Ordering::SeqCst);
        let _ = actor.call(Panic);
        assert_eq!(supervisor.count_children().unwrap().active, 0);
        broken.store(false, Ordering::SeqCst);
        assert_eq!(actor.call(Ping), Ok(1));
        broken.store(true, Ordering::SeqCst);
        let _ = actor.call(Panic);
        let monitor = supervisor.pid().monitor();
        supervisor.stop();
        assert_eq!(monitor.wait().reason.kind(), "normal");
    });
}

/// The first supervisor is killed while its child cannot be killed.
#[test]
fn new_supervisor_waits_for_the_incarnation_left_behind() {
    struct Alone(Arc<AtomicU32>);
    struct Hold(Sender<()>, Receiver<()>);
    impl Actor for Alone {}
    impl Drop for Alone {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }
    impl Handler<Hold> for Alone {
        type Reply = ();
        fn handle(&mut self, Hold(told, until): Hold, _: &Context<'_, Self>) {
            let _whole = NoKill::new();
            told.send(()).expect("the test waits");
            let _ = until.recv();
        }
    }
    impl Handler<Ping> for Alone {
        type Reply = ();
        fn handle(&mut self, _: Ping, _: &Context<'_, Self>) {}
    }
    on_both(|| {
        let (live, made) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let (lives, makes) = (Arc::clone(&live), Arc::clone(&made));
        let (spec, actor) = ChildSpec::actor("alone", move || {
            assert_eq!(lives.fetch_add(1, Ordering::SeqCst), 0, "two live");
            makes.fetch_add(1, Ordering::SeqCst);
            Alone(Arc::clone(&lives))
        });
        let again = Supervisor::new(Strategy::OneForOne).child(spec.clone());
        let first = Supervisor::new(Strategy::OneForOne).child(spec);
        let first = first.start().expect("it starts");
        let (told, holds) = channel();
        let (release, until) = channel();
        actor.cast(Hold(told, until)).expect("it lives");
        holds.recv().expect("it handles it");
        let monitor = first.pid().monitor();
        first.pid().kill().expect("it lives");
        monitor.wait();
        let second = spawn(move || again.start());
        sleep(Duration::from_millis(2));
        assert_eq!(made.load(Ordering::SeqCst), 1);
        release.send(()).expect("it waits");
        let _second = second.join().unwrap().expect("it starts");
        assert_eq!(made.load(Ordering::SeqCst), 2);
        actor.call(Ping).expect("the second one has it");
    });
}

/// The signal and the exit arrive while the first incarnation handles a message in which it fails.
#[test]
fn signals_of_one_incarnation_do_not_reach_the_next() {
    struct Hears(Log);
    struct Watch(Pid, Sender<()>, Receiver<()>);
    impl Actor for Hears {
        fn started(&mut self, context: &Context<'_, Self>) {
            context.trap_exits(true);
            self.0.add("started");
        }
        fn on_exit(&mut self, exit: Exit, _: &Context<'_, Self>) {
            self.0.add(format!("trapped {}", exit.reason));
        }
        fn on_down(&mut self, down: Down, _: &Context<'_, Self>) {
            self.0.add(format!("down {}", down.reason));
        }
    }
    impl Handler<Watch> for Hears {
        type Reply = ();
        fn handle(&mut self, Watch(whom, told, until): Watch, context: &Context<'_, Self>) {
            let _monitored = context.monitor(&whom);
            told.send(()).expect("the test waits");
            let _ = until.recv();
            panic!("before it has read them");
        }
    }
    impl Handler<Ping> for Hears {
        type Reply = ();
        fn handle(&mut self, _: Ping, _: &Context<'_, Self>) {}
    }
    on_both(|| {
        let log = Log::default();
        let seen = log.clone();
        let (spec, actor) = ChildSpec::actor("hears", move || Hears(seen.clone()));
        let _supervisor = Supervisor::new(Strategy::OneForOne)
            .child(spec)
            .start()
            .expect("it starts");
        let other = spawn(|| sleep(LONG));
        let (told, watches) = channel();
        let (release, until) = channel();
        actor
            .cast(Watch(other.pid(), told, until))
            .expect("it lives");
        watches.recv().expect("it handles it");
        actor.pid().exit("late".into()).expect("it lives");
        other.pid().kill().expect("it sleeps");
        assert!(other.join().is_err());
        release.send(()).expect("it waits");
        actor.call(Ping).expect("the next one has it");
        assert_eq!(log.take(), ["started", "started"]);
    });
}
