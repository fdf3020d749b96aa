//! Supervision: OTP's rules, one by one, and the extensions to them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use thalweg_runtime::supervisor::{
    AutoShutdown, Backoff, ChildError, ChildSpec, ChildState, ChildTemplate, Restart, Strategy,
    Supervisor, SupervisorStartError,
};
use thalweg_runtime::{
    Actor, CallError, Config, Context, ExitReason, Handler, init, run, sleep, spawn, yield_now,
};

use crate::trees::*;

#[test]
fn children_start_from_left_to_right_and_stop_from_right_to_left() {
    on_both(|| {
        let log = Log::default();
        let (supervisor, _) = three(&log, Strategy::OneForOne, Restart::Permanent);
        assert_eq!(log.take(), ["+a", "+b", "+c"]);
        let monitor = supervisor.pid().monitor();
        supervisor.stop();
        assert_eq!(monitor.wait().reason.kind(), "normal");
        assert_eq!(log.take(), ["-c", "-b", "-a"]);
    });
}

#[test]
fn dropping_the_last_reference_ends_the_tree() {
    on_both(|| {
        let log = Log::default();
        let (supervisor, [a, ..]) = three(&log, Strategy::OneForOne, Restart::Permanent);
        let monitor = supervisor.pid().monitor();
        drop(supervisor);
        monitor.wait();
        assert_eq!(log.take(), ["+a", "+b", "+c", "-c", "-b", "-a"]);
        assert_eq!(a.call(Ping), Err(CallError::Ended));
    });
}

#[test]
fn one_for_one_restarts_only_the_failed_child() {
    on_both(|| {
        let log = Log::default();
        let (supervisor, [a, b, _c]) = three(&log, Strategy::OneForOne, Restart::Permanent);
        log.take();
        let (before, others) = (b.id(), a.id());
        assert_eq!(b.call(Panic), Err(CallError::Ended));
        assert_eq!(b.call(Ping), Ok(1), "a new state behind the same reference");
        assert_eq!(log.take(), ["+b"], "a panic does not stop in order");
        assert!(b.id() != before && a.id() == others);
        assert_eq!(supervisor.count_children().unwrap().active, 3);
    });
}

#[test]
fn one_for_all_restarts_all_children() {
    on_both(|| {
        let log = Log::default();
        let (_supervisor, [a, b, c]) = three(&log, Strategy::OneForAll, Restart::Permanent);
        log.take();
        let _ = b.call(Panic);
        // Calls the failed child first: until it is restarted, the others may still be running
        // unchanged.
        for actor in [&b, &a, &c] {
            assert_eq!(actor.call(Ping), Ok(1));
        }
        assert_eq!(log.take(), ["-c", "-a", "+a", "+b", "+c"]);
    });
}

#[test]
fn rest_for_one_restarts_the_later_children() {
    on_both(|| {
        let log = Log::default();
        let (_supervisor, [a, b, c]) = three(&log, Strategy::RestForOne, Restart::Permanent);
        log.take();
        assert_eq!(a.call(Ping), Ok(1));
        let _ = b.call(Panic);
        assert_eq!((b.call(Ping), c.call(Ping)), (Ok(1), Ok(1)));
        assert_eq!(a.call(Ping), Ok(2), "it was let alone");
        assert_eq!(log.take(), ["-c", "+b", "+c"]);
    });
}

#[test]
fn restart_types_match_otp() {
    let done = ExitReason::shutdown_with(std::io::Error::other("done"));
    // The exit reason, and whether a permanent, a transient and a temporary child is restarted.
    let table = [
        (ExitReason::Normal, [true, false, false]),
        (ExitReason::Shutdown, [true, false, false]),
        (done, [true, false, false]),
        (ExitReason::from("failed"), [true, true, false]),
        (ExitReason::Killed, [true, true, false]),
    ];
    for (reason, comes_back) in table {
        for (restart, comes_back) in [Restart::Permanent, Restart::Transient, Restart::Temporary]
            .into_iter()
            .zip(comes_back)
        {
            let reason = reason.clone();
            run(move || {
                let log = Log::default();
                let (supervisor, [_, b, _]) = three(&log, Strategy::OneForOne, restart);
                log.take();
                let monitor = b.pid().monitor();
                let _ = b.call(ExitWith(reason.clone()));
                assert_eq!(monitor.wait().reason.kind(), reason.kind());
                let states = states(&supervisor);
                let place = states.iter().find(|(id, _)| id == "b");
                match (comes_back, restart) {
                    (true, _) => {
                        assert_eq!(b.call(Ping), Ok(1), "{restart:?} {reason}");
                        assert_eq!(log.take(), ["+b"]);
                    }
                    (false, Restart::Temporary) => assert!(place.is_none()),
                    (false, _) => {
                        assert_eq!(place.expect("its spec stays").1, ChildState::Stopped);
                        assert_eq!(b.call(Ping), Err(CallError::Ended));
                        assert!(log.take().is_empty());
                    }
                }
            });
        }
    }
}

#[test]
fn accepted_messages_and_references_survive() {
    on_both(|| {
        struct Sum(Arc<AtomicU32>);
        impl Actor for Sum {}
        impl Handler<u32> for Sum {
            type Reply = ();
            fn handle(&mut self, n: u32, _: &Context<'_, Self>) {
                assert!(!n.is_multiple_of(10), "every tenth is one too many");
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
        impl Handler<Ping> for Sum {
            type Reply = ();
            fn handle(&mut self, _: Ping, _: &Context<'_, Self>) {}
        }
        let sum = Arc::new(AtomicU32::new(0));
        let handled = Arc::clone(&sum);
        let (spec, actor) = ChildSpec::actor("sum", move || Sum(Arc::clone(&handled)));
        // This message is accepted before the first start.
        actor.cast(1).expect("it is kept");
        let supervisor = Supervisor::new(Strategy::OneForOne)
            .unlimited_restarts()
            .child(spec)
            .start()
            .expect("it starts");
        // Under Miri, actors are threads.
        let each = if cfg!(miri) { 20 } else { 250 };
        let senders: Vec<_> = (0..4)
            .map(|_| {
                let actor = actor.clone();
                spawn(move || (1..=each).for_each(|n| actor.cast(n).expect("it is kept")))
            })
            .collect();
        for sender in senders {
            sender.join().expect("it sends all");
        }
        // This call is queued behind all other messages.
        actor.call(Ping).expect("it is kept");
        assert_eq!(sum.load(Ordering::Relaxed), 1 + 4 * (each - each / 10));
        let child = &supervisor.which_children().unwrap()[0];
        let panics = u64::from(4 * each / 10);
        assert_eq!((child.restarts, child.reasons["panic"]), (panics, panics));
        assert_eq!(child.crashes.len(), 8);
    });
}

#[test]
fn backoff_delays_the_restart_and_keeps_the_mailbox() {
    on_both(|| {
        let log = Log::default();
        let (soon, actor) = worker("soon", &log);
        let (late, late_ref) = worker("late", &log);
        let wait = |time| Backoff {
            first: time,
            max: time,
            jitter: 0.0,
            reset_after: LONG,
        };
        let supervisor = Supervisor::new(Strategy::OneForOne)
            .unlimited_restarts()
            .child(soon.backoff(wait(Duration::from_millis(5))))
            .child(late.backoff(wait(LONG)))
            .start()
            .expect("they start");
        let failed = std::time::Instant::now();
        let _ = actor.call(Panic);
        assert_eq!(
            actor.call(Ping),
            Ok(1),
            "it waited for the next incarnation"
        );
        assert!(failed.elapsed() >= Duration::from_millis(5));
        let monitor = late_ref.pid().monitor();
        let _ = late_ref.call(Panic);
        monitor.wait();
        let child = loop {
            let child = supervisor.which_children().unwrap().remove(1);
            if child.state != ChildState::Running {
                break child;
            }
        };
        assert_eq!((child.state, child.pid), (ChildState::Restarting, None));
        // A child that is terminated while it waits to be restarted is not restarted.
        supervisor.terminate_child("late").expect("it is there");
        assert_eq!(states(&supervisor)[1].1, ChildState::Stopped);
    });
}

#[test]
fn children_can_be_added_and_removed_at_run_time() {
    on_both(|| {
        let log = Log::default();
        let supervisor = Supervisor::new(Strategy::OneForOne).start().unwrap();
        let (spec, a) = worker("a", &log);
        let again = spec.clone();
        supervisor.start_child(spec).expect("it starts");
        assert!(matches!(
            supervisor.start_child(again.clone()),
            Err(ChildError::Start(SupervisorStartError::DuplicateId(_)))
        ));
        assert!(matches!(
            supervisor.delete_child("a"),
            Err(ChildError::Running(_))
        ));
        assert!(matches!(
            supervisor.restart_child("a"),
            Err(ChildError::Running(_))
        ));
        supervisor.terminate_child("a").expect("it runs");
        supervisor
            .terminate_child("a")
            .expect("that may be said twice");
        assert_eq!(a.call(Ping), Err(CallError::Ended));
        assert_eq!(supervisor.count_children().unwrap().specs, 1);
        supervisor.restart_child("a").expect("it was ended");
        assert_eq!(a.call(Ping), Ok(1));
        let _ = a.call(Panic);
        assert_eq!(a.call(Ping), Ok(1), "it is kept as before");
        supervisor.terminate_child("a").expect("it runs");
        supervisor.delete_child("a").expect("it was ended");
        assert!(matches!(
            supervisor.restart_child("a"),
            Err(ChildError::NotFound(_))
        ));
        // Another supervisor can have the child now.
        let other = Supervisor::new(Strategy::OneForOne).child(again.clone());
        let other = other.start().expect("nobody else has it");
        assert!(matches!(
            supervisor.start_child(again),
            Err(ChildError::Start(SupervisorStartError::Supervised(_)))
        ));
        assert_eq!(a.call(Ping), Ok(1));
        drop(other);
        assert_eq!(log.take(), ["+a", "-a", "+a", "+a", "-a", "+a"]);
    });
}

#[test]
fn significant_child_ends_the_supervisor() {
    for (auto, ended_first, ends) in [
        (AutoShutdown::AnySignificant, "a", true),
        (AutoShutdown::AllSignificant, "a", false),
    ] {
        init(Config::with_workers(1)).unwrap().run(move || {
            let log = Log::default();
            let mut spec = Supervisor::new(Strategy::OneForOne).auto_shutdown(auto);
            let actors = ["a", "b"].map(|name| {
                let (child, actor) = worker(name, &log);
                let child = child.restart(Restart::Transient).significant();
                spec = spec.clone().child(child);
                actor
            });
            let (plain, _) = worker("plain", &log);
            let supervisor = spec.child(plain).start().expect("all start");
            assert_eq!(ended_first, "a");
            let monitor = supervisor.pid().monitor();
            // A child that fails is restarted, and does not end the supervisor.
            let _ = actors[0].call(Panic);
            assert_eq!(actors[0].call(Ping), Ok(1));
            let _ = actors[0].call(Stop);
            if !ends {
                while states(&supervisor)[0].1 == ChildState::Running {
                    yield_now();
                }
                assert_eq!(actors[1].call(Ping), Ok(1));
                let _ = actors[1].call(Stop);
            }
            assert_eq!(monitor.wait().reason.kind(), "shutdown");
            assert_eq!(
                log.take().last().map(String::as_str),
                if ends { Some("-b") } else { Some("-plain") }
            );
        });
    }
    run(|| {
        let log = Log::default();
        let (spec, _) = worker("a", &log);
        let never = Supervisor::new(Strategy::OneForOne).child(spec.clone().significant());
        assert!(matches!(
            never.start(),
            Err(SupervisorStartError::Significant(_))
        ));
        let permanent = Supervisor::new(Strategy::OneForOne)
            .auto_shutdown(AutoShutdown::AnySignificant)
            .child(spec.significant());
        assert!(matches!(
            permanent.start(),
            Err(SupervisorStartError::Significant(_))
        ));
    });
}

#[test]
fn jobs_can_be_children() {
    on_both(|| {
        let runs = Arc::new(AtomicU32::new(0));
        let seen = Arc::clone(&runs);
        let spec = ChildSpec::job("job", move || match seen.fetch_add(1, Ordering::SeqCst) {
            0 => Err("not yet"),
            1 => panic!("neither now"),
            _ => {
                sleep(LONG);
                Ok(())
            }
        });
        let supervisor = Supervisor::new(Strategy::OneForOne)
            .intensity(5, LONG)
            .child(spec.restart(Restart::Transient))
            .start()
            .expect("it starts");
        // A job counts as started as soon as it is in a run queue.
        while runs.load(Ordering::SeqCst) < 3 {
            yield_now();
        }
        let child = supervisor.which_children().unwrap().remove(0);
        assert_eq!(child.restarts, 2);
        assert_eq!((child.reasons["error"], child.reasons["panic"]), (1, 1));
        assert_eq!(child.crashes[0].reason.to_string(), "not yet");
        supervisor.terminate_child("job").expect("it runs");
        assert_eq!(runs.load(Ordering::SeqCst), 3);
    });
}

#[test]
fn supervisor_restarts_a_child_supervisor() {
    on_both(|| {
        let log = Log::default();
        let (leaf, leaf_ref) = worker("leaf", &log);
        let (branch, branch_ref) = ChildSpec::supervisor("branch", move || {
            Supervisor::new(Strategy::OneForOne)
                .intensity(1, LONG)
                .child(leaf.clone())
        });
        let root = Supervisor::new(Strategy::OneForOne)
            .intensity(2, LONG)
            .child(branch)
            .start()
            .expect("all start");
        assert_eq!(root.count_children().unwrap().supervisors, 1);
        assert_eq!(branch_ref.count_children().unwrap().workers, 1);
        let before = branch_ref.pid();
        // Two crashes exceed the branch's restart intensity. The branch is restarted with the same
        // leaf.
        for _ in 0..2 {
            let _ = leaf_ref.call(Panic);
        }
        let mut calls = 0;
        while leaf_ref.call(Ping).is_err() {
            calls += 1;
            assert!(calls < 1_000_000, "it does not come back");
            yield_now();
        }
        assert_ne!(branch_ref.pid(), before);
        assert_eq!(root.which_children().unwrap()[0].restarts, 1);
        let monitor = root.pid().monitor();
        drop(root);
        monitor.wait();
        assert_eq!(log.take().last().map(String::as_str), Some("-leaf"));
        assert!(branch_ref.count_children().is_err());
    });
}

#[test]
fn wait_restarted_returns_the_incarnation_under_the_new_supervisor() {
    on_both(|| {
        let (leaf, leaf_ref) = worker("leaf", &Log::default());
        let (branch, _branch) = ChildSpec::supervisor("branch", move || {
            Supervisor::new(Strategy::OneForOne)
                .intensity(1, LONG)
                .child(leaf.clone())
        });
        let root = Supervisor::new(Strategy::OneForOne)
            .child(branch)
            .start()
            .expect("all start");
        let _ = leaf_ref.call(Panic);
        assert_eq!(leaf_ref.call(Ping), Ok(1), "the branch restarts it");
        let old = leaf_ref.pid();
        let _ = leaf_ref.call(Panic);
        let new = leaf_ref.wait_restarted(&old, LONG);
        assert!(new.is_some_and(|new| new != old));
        assert_eq!(leaf_ref.call(Ping), Ok(1), "the new branch has started it");
        assert_eq!(root.which_children().unwrap()[0].restarts, 1);
    });
}

#[test]
fn wait_restarted_ends_at_its_timeout_and_with_an_unsupervised_actor() {
    on_both(|| {
        let (spec, actor) = worker("a", &Log::default());
        let _supervisor = Supervisor::new(Strategy::OneForOne)
            .child(spec)
            .start()
            .expect("it starts");
        let pid = actor.pid();
        assert_eq!(actor.wait_restarted(&pid, Duration::from_millis(1)), None);
        let alone = thalweg_runtime::start(Worker {
            name: "alone",
            log: Log::default(),
            handled: 0,
        });
        let pid = alone.pid();
        alone.stop();
        assert_eq!(alone.wait_restarted(&pid, LONG), None);
    });
}

#[test]
fn template_starts_children_that_restart_with_their_arguments() {
    on_both(|| {
        struct Session(u32);
        impl Actor for Session {}
        impl Handler<u32> for Session {
            type Reply = u32;
            fn handle(&mut self, n: u32, _: &Context<'_, Self>) -> u32 {
                self.0 / n
            }
        }
        let supervisor = Supervisor::new(Strategy::SimpleOneForOne)
            .start()
            .expect("it starts");
        let template =
            ChildTemplate::new("session", |n: &u32| Session(*n)).restart(Restart::Permanent);
        let six = template.start(&supervisor, 6).expect("it starts");
        let nine = template.start(&supervisor, 9).expect("it starts");
        assert!(six.call(0).is_err());
        assert_eq!((six.call(2), nine.call(3)), (Ok(3), Ok(3)));
        let ids = states(&supervisor).into_iter().map(|(id, _)| id);
        assert_eq!(ids.collect::<Vec<_>>(), ["session-1", "session-2"]);

        let short = ChildTemplate::new("short", |n: &u32| Session(*n));
        let one = short.start(&supervisor, 1).expect("it starts");
        let monitor = one.pid().monitor();
        one.stop();
        monitor.wait();
        assert_eq!(
            supervisor.count_children().unwrap().specs,
            2,
            "it is temporary"
        );
    });
}

#[test]
fn try_actor_that_fails_names_the_child_and_the_error() {
    on_both(|| {
        let (spec, _actor) = ChildSpec::try_actor("a", || Err::<Worker, _>("disk full"));
        let failed = Supervisor::new(Strategy::OneForOne).child(spec).start();
        let Err(SupervisorStartError::Child { id, reason }) = failed else {
            panic!("it started");
        };
        assert_eq!(
            (id.as_str(), reason.to_string().as_str()),
            ("a", "disk full")
        );
    });
}

#[test]
fn simple_one_for_one_handles_many_children() {
    on_both(|| {
        let supervisor = Supervisor::new(Strategy::SimpleOneForOne)
            .intensity(10, LONG)
            .start()
            .unwrap();
        let live = Arc::new(AtomicU32::new(0));
        struct Counted(Arc<AtomicU32>);
        impl Drop for Counted {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::SeqCst);
            }
        }
        // Under Miri, actors are threads.
        let many = if cfg!(miri) { 20 } else { 1_000 };
        for n in 0..many {
            let live = Arc::clone(&live);
            let spec = ChildSpec::job(n.to_string(), move || {
                live.fetch_add(1, Ordering::SeqCst);
                let _counted = Counted(Arc::clone(&live));
                sleep(if n % 2 == 0 { LONG } else { Duration::ZERO });
            });
            let spec = spec.restart(Restart::Temporary);
            supervisor.start_child(spec).expect("it starts");
        }
        while supervisor.count_children().unwrap().specs > many / 2 {
            yield_now();
        }
        let monitor = supervisor.pid().monitor();
        drop(supervisor);
        monitor.wait();
        assert_eq!(live.load(Ordering::SeqCst), 0);
    });
}

#[test]
fn trapping_behaviour_actor_is_shut_down_by_its_supervisor() {
    struct Traps(Log);
    impl Actor for Traps {
        fn started(&mut self, context: &Context<'_, Self>) {
            context.trap_exits(true);
        }
        fn on_exit(&mut self, exit: thalweg_runtime::Exit, _: &Context<'_, Self>) {
            self.0.add(format!("trapped {}", exit.reason));
        }
        fn stopped(&mut self) {
            self.0.add("stopped");
        }
    }
    impl Handler<Ping> for Traps {
        type Reply = ();
        fn handle(&mut self, _: Ping, _: &Context<'_, Self>) {}
    }
    on_both(|| {
        let log = Log::default();
        let seen = log.clone();
        let (spec, traps) = ChildSpec::actor("traps", move || Traps(seen.clone()));
        let supervisor = Supervisor::new(Strategy::OneForOne).child(spec);
        let supervisor = supervisor.start().expect("it starts");
        traps.pid().exit(ExitReason::Shutdown).expect("it lives");
        traps.call(Ping).expect("a stranger does not end it");
        supervisor.terminate_child("traps").expect("it runs");
        assert_eq!(log.take(), ["trapped shutdown", "stopped"]);
        let child = supervisor.which_children().unwrap().remove(0);
        assert_eq!(child.reasons["shutdown"], 1);
    });
}
