//! Supervisors whose children fail, do not start or do not end, or that end themselves meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use thalweg_runtime::supervisor::{
    ChildError, ChildSpec, Restart, Shutdown, Strategy, Supervisor, SupervisorStartError,
};
use thalweg_runtime::{
    Actor, CallError, Config, Context, ExitReason, Handler, Mailbox, Runtime, channel, sleep,
    spawn, trap_exits, yield_now,
};

use crate::trees::*;

#[test]
fn exceeded_restart_intensity_ends_the_supervisor() {
    on_both(|| {
        let log = Log::default();
        let (a, _) = worker("a", &log);
        let (b, crashing) = worker("b", &log);
        let supervisor = Supervisor::new(Strategy::OneForOne)
            .intensity(3, LONG)
            .child(a)
            .child(b)
            .start()
            .expect("they start");
        let monitor = supervisor.pid().monitor();
        for _ in 0..3 {
            let _ = crashing.call(Panic);
            assert_eq!(crashing.call(Ping), Ok(1));
        }
        let _ = crashing.call(Panic);
        let ended = monitor.wait().reason;
        assert_eq!(ended.kind(), "shutdown", "{ended}");
        assert!(ended.to_string().contains("too often"), "{ended}");
        assert_eq!(log.take().last().map(String::as_str), Some("-a"));
        assert!(matches!(
            supervisor.count_children(),
            Err(ChildError::Ended)
        ));
        assert_eq!(crashing.call(Ping), Err(CallError::Ended));
    });
}

#[test]
fn incarnations_never_overlap() {
    static LIVE: AtomicU32 = AtomicU32::new(0);
    struct Alone;
    impl Alone {
        fn new() -> Self {
            assert_eq!(LIVE.fetch_add(1, Ordering::SeqCst), 0, "two live");
            Self
        }
    }
    impl Drop for Alone {
        fn drop(&mut self) {
            for _ in 0..10 {
                yield_now();
            }
            LIVE.fetch_sub(1, Ordering::SeqCst);
        }
    }
    impl Actor for Alone {}
    impl Handler<u32> for Alone {
        type Reply = ();
        fn handle(&mut self, n: u32, context: &Context<'_, Self>) {
            match n % 4 {
                0 => panic!("again"),
                1 => context.stop(),
                2 => sleep(Duration::from_micros(100)),
                _ => yield_now(),
            }
        }
    }
    on_both(|| {
        let (spec, actor) = ChildSpec::actor("alone", Alone::new);
        let supervisor = Supervisor::new(Strategy::OneForOne)
            .unlimited_restarts()
            .child(spec)
            .start()
            .expect("it starts");
        for n in 0..if cfg!(miri) { 8 } else { 200 } {
            let _ = actor.cast(n);
            if n % 16 == 0 {
                let _ = actor.pid().kill();
            }
        }
        let reasons = loop {
            let child = supervisor.which_children().unwrap().remove(0);
            if child.waiting == 0 {
                break child.reasons;
            }
            yield_now();
        };
        assert!(!reasons.contains_key("error"), "{reasons:?}");
        let monitor = supervisor.pid().monitor();
        drop(supervisor);
        monitor.wait();
        assert_eq!(LIVE.load(Ordering::SeqCst), 0);
    });
}

#[test]
fn failed_start_stops_the_earlier_children() {
    on_both(|| {
        let log = Log::default();
        let (a, _) = worker("a", &log);
        let (b, _) = ChildSpec::actor("b", || -> Worker { panic!("it cannot") });
        let (c, c_ref) = worker("c", &log);
        c_ref.cast(Ping).expect("it may start yet");
        let failed = Supervisor::new(Strategy::OneForAll)
            .child(a)
            .child(b)
            .child(c.clone())
            .start()
            .expect_err("b does not start");
        let SupervisorStartError::Child { id, reason } = failed else {
            panic!("{failed}");
        };
        assert_eq!((id.as_str(), reason.kind()), ("b", "panic"));
        assert_eq!(log.take(), ["+a", "-a"]);
        // No supervisor was left to start it.
        assert_eq!((c_ref.len(), c_ref.is_alive()), (0, false));
        let other = Supervisor::new(Strategy::OneForAll).child(c);
        let _other = other.start().expect("there is no b");
        assert_eq!(c_ref.call(Ping), Ok(1));
    });
}

#[test]
fn child_without_specs_refuses_messages() {
    on_both(|| {
        let (spec, actor) = worker("a", &Log::default());
        let clone = spec.clone();
        actor.cast(Ping).expect("it may start yet");
        drop(spec);
        assert!(actor.is_alive());
        drop(clone);
        assert_eq!(actor.call(Ping), Err(CallError::Ended));
        assert_eq!(actor.len(), 0);
    });
}

#[test]
fn child_moves_to_another_supervisor_after_its_mailbox_is_closed() {
    #[derive(Default)]
    struct Seen {
        starts: AtomicU32,
        drops_begun: AtomicU32,
        drops: AtomicU32,
    }
    /// An unread message whose drop takes a while: it waits for the next incarnation to start,
    /// which must not happen before the drop ends.
    struct Heavy(Arc<Seen>);
    impl Drop for Heavy {
        fn drop(&mut self) {
            self.0.drops_begun.fetch_add(1, Ordering::SeqCst);
            for _ in 0..20 {
                if self.0.starts.load(Ordering::SeqCst) == 1 {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            self.0.drops.fetch_add(1, Ordering::SeqCst);
        }
    }
    struct Child;
    impl Actor for Child {}
    impl Handler<Heavy> for Child {
        type Reply = ();
        fn handle(&mut self, _: Heavy, _: &Context<'_, Self>) {
            unreachable!("it is killed before");
        }
    }
    impl Handler<Ping> for Child {
        type Reply = ();
        fn handle(&mut self, _: Ping, _: &Context<'_, Self>) {
            sleep(LONG);
        }
    }
    let runtime = Runtime::start(Config::with_workers(2)).unwrap();
    let handle = runtime.handle().clone();
    let seen = Arc::new(Seen::default());
    let (spec, actor) = ChildSpec::actor_on(&handle, "a", Mailbox::default(), {
        let seen = Arc::clone(&seen);
        move || -> Result<_, ExitReason> {
            let drops = seen.drops.load(Ordering::SeqCst);
            assert_eq!(drops, seen.starts.fetch_add(1, Ordering::SeqCst));
            Ok(Child)
        }
    });
    let one = Supervisor::new(Strategy::OneForOne).child(spec.clone());
    let one = one.start_on(&handle).expect("it starts");
    actor.cast(Ping).expect("it lives");
    actor.cast(Heavy(Arc::clone(&seen))).expect("there is room");
    one.pid().kill().expect("it lives");
    while seen.drops_begun.load(Ordering::SeqCst) == 0 {
        std::thread::yield_now();
    }
    let two = Supervisor::new(Strategy::OneForOne).child(spec);
    let _two = two
        .start_on(&handle)
        .expect("the first one has let go of it");
    actor.cast(Ping).expect("it takes messages again");
    drop(runtime);
}

#[test]
fn failed_state_reports_its_reason() {
    let runtime = Runtime::start(Config::with_workers(1)).unwrap();
    let (spec, _) = ChildSpec::actor_on(runtime.handle(), "file", Mailbox::default(), || {
        Err::<NoPreemptGuard, _>(ExitReason::from("no such file"))
    });
    struct NoPreemptGuard;
    impl Actor for NoPreemptGuard {}
    let failed = Supervisor::new(Strategy::OneForOne)
        .child(spec)
        .start_on(runtime.handle())
        .expect_err("there is no such file");
    assert!(failed.to_string().contains("no such file"), "{failed}");
}

#[test]
fn failed_restart_is_repeated() {
    on_both(|| {
        let tries = Arc::new(AtomicU32::new(0));
        let seen = Arc::clone(&tries);
        let (spec, actor) = ChildSpec::actor("flaky", move || {
            let n = seen.fetch_add(1, Ordering::SeqCst);
            assert!(n == 0 || n > 3, "not yet");
            Worker {
                name: "flaky",
                log: Log::default(),
                handled: 0,
            }
        });
        let supervisor = Supervisor::new(Strategy::OneForOne)
            .intensity(4, LONG)
            .child(spec)
            .start()
            .expect("it starts");
        let _ = actor.call(Panic);
        assert_eq!(actor.call(Ping), Ok(1));
        assert_eq!(tries.load(Ordering::SeqCst), 5);
        // These were four restarts; the next one exceeds the restart intensity.
        let monitor = supervisor.pid().monitor();
        let _ = actor.call(Panic);
        assert_eq!(monitor.wait().reason.kind(), "shutdown");
    });
}

#[test]
fn child_is_killed_after_its_shutdown_timeout() {
    on_both(|| {
        for shutdown in [
            Shutdown::Timeout(Duration::from_millis(2)),
            Shutdown::BrutalKill,
        ] {
            // The child traps exits and ignores them.
            let (told, deaf) = channel();
            let spec = ChildSpec::job("deaf", move || {
                let _exits = trap_exits();
                told.send(()).expect("the test waits");
                sleep(LONG);
            });
            let supervisor = Supervisor::new(Strategy::OneForOne)
                .child(spec.shutdown(shutdown))
                .start()
                .expect("it starts");
            deaf.recv().expect("it runs");
            supervisor.terminate_child("deaf").expect("it runs");
            let child = supervisor.which_children().unwrap().remove(0);
            assert_eq!(child.reasons["killed"], 1, "{:?}", child.reasons);
        }
    });
}

#[test]
fn killed_supervisor_kills_its_children() {
    on_both(|| {
        let log = Log::default();
        let (supervisor, [a, ..]) = three(&log, Strategy::OneForOne, Restart::Permanent);
        let (told, is_deaf) = channel();
        let deaf = ChildSpec::job("deaf", move || {
            let _exits = trap_exits();
            told.send(()).expect("the test waits");
            sleep(LONG);
        });
        let deaf = supervisor.start_child(deaf).expect("it starts");
        is_deaf.recv().expect("it runs");
        let monitors = [
            a.pid().monitor(),
            deaf.monitor(),
            supervisor.pid().monitor(),
        ];
        supervisor.pid().kill().expect("it lives");
        for monitor in monitors {
            assert_eq!(monitor.wait().reason.kind(), "killed");
        }
        assert_eq!(a.call(Ping), Err(CallError::Ended));
    });
}

#[test]
fn supervisor_killed_during_a_restart_leaves_no_child() {
    on_both(|| {
        let first = Arc::new(AtomicU32::new(0));
        let (spec, actor) = ChildSpec::actor("slow", move || {
            if first.fetch_add(1, Ordering::SeqCst) > 0 {
                sleep(LONG);
            }
            Worker {
                name: "slow",
                log: Log::default(),
                handled: 0,
            }
        });
        let supervisor = Supervisor::new(Strategy::OneForOne)
            .child(spec)
            .start()
            .expect("it starts");
        let _ = actor.call(Panic);
        let waiting = spawn({
            let actor = actor.clone();
            move || actor.call_timeout(Ping, LONG)
        });
        // The second incarnation sleeps in its start by now, or is about to.
        sleep(Duration::from_millis(2));
        let monitor = supervisor.pid().monitor();
        supervisor.pid().kill().expect("it waits");
        assert_eq!(monitor.wait().reason.kind(), "killed");
        assert_eq!(waiting.join().unwrap(), Err(CallError::Ended));
        assert!(!actor.is_alive());
    });
}

#[test]
fn full_mailbox_does_not_delay_the_shutdown() {
    on_both(|| {
        struct Stuck;
        impl Actor for Stuck {}
        impl Handler<Ping> for Stuck {
            type Reply = ();
            fn handle(&mut self, _: Ping, _: &Context<'_, Self>) {
                sleep(Duration::from_millis(1));
            }
        }
        let mailbox = Mailbox {
            capacity: 2,
            ..Mailbox::default()
        };
        let runtime = thalweg_runtime::Handle::current().expect("this is an actor");
        let (spec, actor) =
            ChildSpec::actor_on(&runtime, "stuck", mailbox, || Ok::<_, ExitReason>(Stuck));
        let supervisor = Supervisor::new(Strategy::OneForOne).child(spec);
        let supervisor = supervisor.start().expect("it starts");
        let flood = spawn(move || while actor.cast(Ping).is_ok() {});
        sleep(Duration::from_millis(2));
        supervisor.terminate_child("stuck").expect("it runs");
        let child = supervisor.which_children().unwrap().remove(0);
        assert_eq!(child.reasons["shutdown"], 1, "{:?}", child.reasons);
        flood.join().expect("it is refused now");
    });
}

#[test]
fn panic_in_stopped_or_drop_affects_only_the_child() {
    struct Bad(&'static str);
    impl Actor for Bad {
        fn stopped(&mut self) {
            assert_ne!(self.0, "stop", "in its stop");
        }
    }
    impl Drop for Bad {
        fn drop(&mut self) {
            assert_ne!(self.0, "drop", "in its drop");
        }
    }
    on_both(|| {
        for at in ["stop", "drop"] {
            let log = Log::default();
            let (spec, bad) = ChildSpec::actor("bad", move || Bad(at));
            let (other, _) = worker("other", &log);
            let supervisor = Supervisor::new(Strategy::OneForOne)
                .child(other)
                .child(spec)
                .start()
                .expect("both start");
            let monitor = bad.pid().monitor();
            supervisor.terminate_child("bad").expect("it runs");
            assert_eq!(monitor.wait().reason.kind(), "panic", "{at}");
            assert_eq!(supervisor.count_children().unwrap().active, 1);
            drop(supervisor);
        }
    });
}

#[test]
fn end_of_the_runtime_ends_the_tree() {
    let log = Log::default();
    let seen = log.clone();
    let runtime = Runtime::start(Config::with_workers(2)).unwrap();
    let tree = runtime.handle().spawn(move || {
        let (supervisor, _) = three(&seen, Strategy::OneForOne, Restart::Permanent);
        supervisor
    });
    let supervisor = tree.join().unwrap();
    drop(runtime);
    assert!(supervisor.count_children().is_err());
}
