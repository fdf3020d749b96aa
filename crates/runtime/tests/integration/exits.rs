//! Links, monitors, trapped exits and kill: one test for each of OTP's rules.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use thalweg_runtime::{
    Actor, Config, Context, Down, Exit, ExitReason, Handler, JoinError, NoKill, NotAlive, Pid,
    Runtime, channel, exit, init, run, sleep, spawn, start, trap_exits, yield_now,
};

use crate::kit::{LONG, boom, reason_of};

/// Counts how often its clones are dropped.
#[derive(Clone, Default)]
struct Drops(Arc<AtomicU32>);

impl Drops {
    fn count(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }
}

struct Dropped(Drops);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn linked_actor_ends_with_the_reason_of_the_other() {
    run(|| {
        let (linked, is_linked) = channel();
        let other = spawn(move || {
            is_linked.recv().expect("it links");
            exit(boom());
        });
        let pid = other.pid();
        let linked = spawn(move || {
            pid.link();
            linked.send(()).expect("it waits");
            sleep(LONG);
        });
        assert_eq!(reason_of(linked.join()).to_string(), "boom");
    });
}

#[test]
fn normal_exit_does_not_end_linked_actors() {
    run(|| {
        let (linked, is_linked) = channel::<()>();
        let other = spawn(move || is_linked.recv().expect("it links"));
        let pid = other.pid();
        let linked = spawn(move || {
            pid.link();
            let monitor = pid.monitor();
            linked.send(()).expect("it waits");
            let end = monitor.wait();
            yield_now();
            end.reason.kind()
        });
        assert_eq!(linked.join().expect("it goes on"), "normal");
    });
}

#[test]
fn panic_is_passed_over_a_link_with_its_report() {
    run(|| {
        let exits = trap_exits();
        let child = spawn(|| panic!("no luck"));
        child.pid().link();
        let Exit { from, reason } = exits.recv().expect("it ends");
        assert_eq!(from, Some(child.id()));
        let ExitReason::Panic(panic) = reason else {
            panic!("{reason}");
        };
        assert_eq!(panic.message(), Some("no luck"));
    });
}

#[test]
fn trapping_actor_receives_normal_exits_too() {
    run(|| {
        let exits = trap_exits();
        let child = spawn(yield_now);
        child.pid().link();
        assert_eq!(exits.recv().expect("it ends").reason.kind(), "normal");
        // An explicit signal is delivered too.
        Pid::current()
            .expect("this is an actor")
            .exit(ExitReason::Normal)
            .expect("we live");
        assert_eq!(exits.recv().expect("it was sent").reason.kind(), "normal");
    });
}

#[test]
fn actor_that_stops_trapping_is_ended_by_signals() {
    run(|| {
        let trapper = spawn(|| {
            drop(trap_exits());
            sleep(LONG);
        });
        let pid = trapper.pid();
        yield_now();
        pid.exit(boom()).expect("it sleeps");
        assert_eq!(reason_of(trapper.join()).to_string(), "boom");
    });
}

#[test]
fn kill_is_not_trapped_and_others_see_killed() {
    run(|| {
        let exits = trap_exits();
        let victim = spawn(|| {
            let _exits = trap_exits();
            sleep(LONG);
        });
        victim.pid().link();
        yield_now();
        victim.pid().kill().expect("it sleeps");
        // The reason is `killed`, which this actor can trap like any other reason.
        assert_eq!(exits.recv().expect("it ends").reason.kind(), "killed");
        assert_eq!(reason_of(victim.join()).kind(), "killed");
    });
}

#[test]
fn exit_with_reason_killed_is_trapped() {
    run(|| {
        let exits = trap_exits();
        let me = Pid::current().expect("this is an actor");
        me.exit(ExitReason::Killed).expect("we live");
        assert_eq!(exits.recv().expect("it was sent").reason.kind(), "killed");
    });
}

#[test]
fn kill_replaces_a_reason_that_was_not_raised_yet() {
    run(|| {
        let victim = spawn(|| sleep(LONG));
        let pid = victim.pid();
        pid.exit(boom()).expect("it has not begun");
        pid.kill().expect("it has not begun");
        assert_eq!(reason_of(victim.join()).kind(), "killed");
        let victim = spawn(|| sleep(LONG));
        victim.pid().exit(boom()).expect("it has not begun");
        victim
            .pid()
            .exit(ExitReason::from("later"))
            .expect("it has not begun");
        assert_eq!(reason_of(victim.join()).to_string(), "boom");
    });
}

#[test]
fn link_to_an_ended_actor_is_an_exit_signal() {
    run(|| {
        let gone = spawn(|| ());
        let pid = gone.pid();
        gone.join().expect("it ends");
        let exits = trap_exits();
        pid.link();
        let exit = exits.recv().expect("there is nobody");
        assert_eq!(
            (exit.from, exit.reason.kind()),
            (Some(pid.id()), "no_actor")
        );
        let linker = spawn(move || {
            pid.link();
            yield_now();
        });
        assert_eq!(reason_of(linker.join()).kind(), "no_actor");
    });
}

#[test]
fn unlinked_actor_receives_no_exit() {
    run(|| {
        let other = spawn(|| sleep(LONG));
        let pid = other.pid();
        let linked = spawn(move || {
            pid.link();
            pid.link();
            pid.unlink();
            pid.kill().expect("it sleeps");
            pid.monitor().wait();
            yield_now();
        });
        linked.join().expect("it goes on");
    });
}

#[test]
fn monitors_are_independent_and_can_be_removed() {
    run(|| {
        let other = spawn(|| sleep(LONG));
        let pid = other.pid();
        let kept: Vec<_> = (0..3).map(|_| pid.monitor()).collect();
        let mut late = pid.monitor();
        assert!(late.try_wait().is_none());
        assert!(late.wait_timeout(Duration::from_millis(1)).is_none());
        drop(pid.monitor());
        pid.exit(boom()).expect("it sleeps");
        for monitor in kept {
            let Down { id, reason } = monitor.wait();
            assert_eq!((id, reason.to_string().as_str()), (pid.id(), "boom"));
        }
        assert!(late.wait_timeout(LONG).is_some());
        assert_eq!(pid.monitor().wait().reason.kind(), "no_actor");
    });
}

#[test]
fn thread_can_monitor_and_kill() {
    let runtime = Runtime::start(Config::with_workers(1)).unwrap();
    let victim = runtime.handle().spawn(|| sleep(LONG));
    let monitor = victim.pid().monitor();
    victim.pid().kill().unwrap();
    assert_eq!(monitor.wait().reason.kind(), "killed");
    assert_eq!(reason_of(victim.join()).kind(), "killed");
}

#[test]
fn signal_to_a_stale_pid_is_an_error() {
    run(|| {
        let gone = spawn(|| ());
        let (early, id) = (gone.pid(), gone.id());
        gone.join().expect("it ends");
        assert!(!early.is_alive());
        assert_eq!(early.kill(), Err(NotAlive(id)));
        assert_eq!(early.exit(boom()), Err(NotAlive(id)));
        // The same is true for a pid that was obtained after the end.
        let gone = spawn(|| ());
        while !gone.is_finished() {
            yield_now();
        }
        let late = gone.pid();
        assert!(!late.is_alive());
        assert!(late.kill().is_err());
        assert_ne!(early, late);
    });
}

#[test]
fn killed_actor_that_has_not_begun_never_begins() {
    let drops = Drops::default();
    let held = Dropped(drops.clone());
    let ran = run(move || {
        let fresh = spawn(move || {
            let _held = held;
            1
        });
        let monitor = fresh.pid().monitor();
        fresh.pid().kill().expect("it waits for its turn");
        assert_eq!(monitor.wait().reason.kind(), "killed");
        fresh.join()
    });
    assert_eq!(reason_of(ran).kind(), "killed");
    assert_eq!(drops.count(), 1);
}

#[test]
fn caught_unwinding_is_raised_again() {
    run(|| {
        let stubborn = spawn(|| {
            let mut caught = 0;
            while caught < 3 {
                caught += i32::from(std::panic::catch_unwind(yield_now).is_err());
            }
            caught
        });
        stubborn.pid().kill().expect("it has not begun");
        assert_eq!(reason_of(stubborn.join()).kind(), "killed");
        let stubborn = spawn(|| {
            let mut caught = 0;
            while caught < 3 {
                caught += i32::from(std::panic::catch_unwind(yield_now).is_err());
            }
            caught
        });
        yield_now();
        stubborn.pid().kill().expect("it yields");
        // The actor finished by itself after it was killed, and the kill determines its exit
        // reason.
        assert_eq!(reason_of(stubborn.join()).kind(), "killed");
    });
}

#[test]
fn no_kill_section_runs_to_its_end() {
    run(|| {
        let (step, steps) = channel();
        let careful = spawn(move || {
            {
                let _whole = NoKill::new();
                drop(NoKill::new());
                sleep(Duration::from_millis(2));
                step.send("slept").expect("somebody reads");
                yield_now();
                step.send("whole").expect("somebody reads");
            }
            yield_now();
            step.send("never").expect("somebody reads");
        });
        yield_now();
        careful.pid().kill().expect("it sleeps");
        assert_eq!(steps.iter().collect::<Vec<_>>(), ["slept", "whole"]);
        assert_eq!(reason_of(careful.join()).kind(), "killed");
    });
}

#[test]
fn computing_actor_ends_at_a_preemption_point() {
    let mut config = Config::with_workers(2);
    config.timeslice = Duration::from_micros(50);
    init(config).unwrap().run(|| {
        let busy = spawn(|| {
            loop {
                thalweg_runtime::check!();
                std::hint::spin_loop();
            }
        });
        sleep(Duration::from_millis(1));
        busy.pid().kill().expect("it computes");
        assert_eq!(reason_of::<()>(busy.join()).kind(), "killed");
    });
}

struct Server {
    log: thalweg_runtime::Sender<String>,
    _drops: Option<Dropped>,
}

struct Trap;
struct Watch(Pid);
struct Sleep;
struct Say(&'static str);

impl Actor for Server {
    fn stopped(&mut self) {
        let _ = self.log.send("stopped".into());
    }

    fn on_exit(&mut self, exit: Exit, _: &Context<'_, Self>) {
        let _ = self.log.send(format!("exit {}", exit.reason));
    }

    fn on_down(&mut self, down: Down, _: &Context<'_, Self>) {
        let _ = self.log.send(format!("down {}", down.reason));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.log.send("dropped".into());
    }
}

impl Handler<Trap> for Server {
    type Reply = ();
    fn handle(&mut self, _: Trap, context: &Context<'_, Self>) {
        context.trap_exits(true);
    }
}

impl Handler<Watch> for Server {
    type Reply = ();
    fn handle(&mut self, Watch(pid): Watch, context: &Context<'_, Self>) {
        context.monitor(&pid);
    }
}

impl Handler<Sleep> for Server {
    type Reply = ();
    fn handle(&mut self, _: Sleep, _: &Context<'_, Self>) {
        let _ = self.log.send("sleeps".into());
        sleep(LONG);
    }
}

impl Handler<Say> for Server {
    type Reply = &'static str;
    fn handle(&mut self, Say(text): Say, _: &Context<'_, Self>) -> &'static str {
        let _ = self.log.send(text.into());
        text
    }
}

fn server() -> (Server, thalweg_runtime::Receiver<String>) {
    let (log, lines) = channel();
    (Server { log, _drops: None }, lines)
}

#[test]
fn idle_behaviour_actor_is_killed() {
    for workers in [1, 2] {
        init(Config::with_workers(workers)).unwrap().run(|| {
            let (state, log) = server();
            let server = start(state);
            server.call(Say("hello")).expect("it lives");
            let monitor = server.pid().monitor();
            server.pid().kill().expect("it rests");
            assert_eq!(monitor.wait().reason.kind(), "killed");
            assert!(server.call(Say("more")).is_err());
            assert!(server.pid().kill().is_err());
            drop(server);
            assert_eq!(log.iter().collect::<Vec<_>>(), ["hello", "dropped"]);
        });
    }
}

#[test]
fn waiting_handler_is_killed() {
    for workers in [1, 2] {
        init(Config::with_workers(workers)).unwrap().run(|| {
            let (state, log) = server();
            let server = start(state);
            server.cast(Sleep).expect("it lives");
            server.cast(Say("never")).expect("it lives");
            assert_eq!(log.recv().expect("it begins"), "sleeps");
            let monitor = server.pid().monitor();
            server.pid().kill().expect("it sleeps");
            assert_eq!(monitor.wait().reason.kind(), "killed");
            assert_eq!(log.iter().collect::<Vec<_>>(), ["dropped"]);
        });
    }
}

#[test]
fn shutdown_of_a_behaviour_actor_is_orderly() {
    run(|| {
        let (state, log) = server();
        let server = start(state);
        server.call(Say("first")).expect("it lives");
        for _ in 0..100 {
            server.cast(Say("late")).expect("it lives");
        }
        let monitor = server.pid().monitor();
        server.pid().exit(ExitReason::Shutdown).expect("it lives");
        assert_eq!(monitor.wait().reason.kind(), "shutdown");
        assert_eq!(
            log.iter().collect::<Vec<_>>(),
            ["first", "stopped", "dropped"]
        );
    });
}

#[test]
fn exits_and_downs_overtake_a_flood_of_messages() {
    run(|| {
        let (state, log) = server();
        let server = start(state);
        let other = spawn(|| sleep(LONG));
        server.call(Trap).expect("it lives");
        server.call(Watch(other.pid())).expect("it lives");
        // With more messages, the server would get turns meanwhile.
        for _ in 0..200 {
            server.cast(Say("flood")).expect("it lives");
        }
        other.pid().exit(boom()).expect("it sleeps");
        other.join().expect_err("it was ended");
        server
            .pid()
            .exit(ExitReason::from("why"))
            .expect("it lives");
        let first: Vec<_> = log.iter().take(3).collect();
        assert_eq!(first, ["down boom", "exit why", "flood"]);
        server.pid().kill().expect("it lives");
    });
}

#[test]
fn behaviour_actor_can_link() {
    struct Links(Pid);
    impl Actor for Links {
        fn started(&mut self, _: &Context<'_, Self>) {
            self.0.link();
        }
    }
    run(|| {
        let other = spawn(|| sleep(LONG));
        let linked = start(Links(other.pid()));
        let monitor = linked.pid().monitor();
        yield_now();
        linked.pid().exit(boom()).expect("it rests");
        assert_eq!(monitor.wait().reason.to_string(), "boom");
        assert_eq!(reason_of(other.join()).to_string(), "boom");
    });
}

#[test]
fn demonitor_of_a_behaviour_actor_stops_its_down_message() {
    struct Fickle(thalweg_runtime::Sender<&'static str>);
    impl Actor for Fickle {
        fn on_down(&mut self, _: Down, _: &Context<'_, Self>) {
            let _ = self.0.send("down");
        }
    }
    impl Handler<Watch> for Fickle {
        type Reply = ();
        fn handle(&mut self, Watch(pid): Watch, context: &Context<'_, Self>) {
            context.monitor(&pid).demonitor();
            let on_its_way = context.monitor(&pid);
            pid.kill().expect("it lives");
            pid.monitor().wait();
            on_its_way.demonitor();
        }
    }
    run(|| {
        let (tx, heard) = channel();
        let fickle = start(Fickle(tx));
        let other = spawn(|| sleep(LONG));
        fickle.call(Watch(other.pid())).expect("it lives");
        drop(fickle);
        assert!(heard.recv().is_err());
    });
}

#[test]
fn monitor_reports_the_end_of_the_runtime() {
    let runtime = Runtime::start(Config::with_workers(1)).unwrap();
    let (log, lines) = std::sync::mpsc::channel();
    let sleeper = runtime.handle().spawn(move || {
        log.send("begun").expect("the test waits");
        sleep(LONG);
    });
    let monitor = sleeper.pid().monitor();
    lines.recv().unwrap();
    drop(runtime);
    assert_eq!(monitor.wait().reason.kind(), "stopped");
    assert!(matches!(sleeper.join(), Err(JoinError::Stopped)));
}

#[test]
fn exit_reason_is_orderly_and_downcasts() {
    assert!(ExitReason::Normal.is_orderly() && ExitReason::Shutdown.is_orderly());
    assert!(!ExitReason::Killed.is_orderly() && !boom().is_orderly());
    let io = std::io::Error::other("disk");
    let boxed: Box<dyn std::error::Error + Send + Sync> = Box::new(io);
    let reason = ExitReason::from(boxed);
    assert_eq!(
        reason
            .downcast_ref::<std::io::Error>()
            .map(ToString::to_string),
        Some("disk".into())
    );
    assert!(boom().downcast_ref::<std::io::Error>().is_none());
}

#[test]
fn exit_reason_is_created_from_an_error_or_a_text() {
    let disk = || std::io::Error::other("disk full");
    for (reason, kind, text) in [
        (ExitReason::from("why"), "error", "why"),
        (ExitReason::error("why"), "error", "why"),
        (ExitReason::error(disk()), "error", "disk full"),
        (
            ExitReason::shutdown_with("why"),
            "shutdown",
            "shutdown: why",
        ),
        (
            ExitReason::shutdown_with(disk()),
            "shutdown",
            "shutdown: disk full",
        ),
    ] {
        assert_eq!((reason.kind(), reason.to_string().as_str()), (kind, text));
        let is_io = reason.downcast_ref::<std::io::Error>().is_some();
        assert_eq!(is_io, text.ends_with("disk full"), "{reason}");
    }
}
