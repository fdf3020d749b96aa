//! The snapshot of a supervision tree: its content, and that no supervisor below can block it.

use std::time::Duration;

use thalweg_runtime::supervisor::{
    Backoff, ChildSpec, ChildState, SnapshotError, Strategy, Supervisor, SupervisorRef,
    SupervisorView,
};
use thalweg_runtime::{Config, Receiver, Runtime, channel, run, sleep, spawn, yield_now};

use crate::kit::{Echo, LONG};

fn names(view: &SupervisorView) -> Vec<&str> {
    view.children().iter().map(|c| c.info.id.as_str()).collect()
}

/// A supervisor of two levels: `inner` is below, with `echo`.
fn two_levels() -> (SupervisorRef, thalweg_runtime::ActorRef<Echo>) {
    let (echo_spec, echo) = ChildSpec::actor("echo", || Echo);
    let (inner, _) = ChildSpec::supervisor("inner", move || {
        Supervisor::new(Strategy::RestForOne)
            .unlimited_restarts()
            .child(echo_spec.clone())
    });
    let root = Supervisor::new(Strategy::OneForOne)
        .unlimited_restarts()
        .child(ChildSpec::job("sleeper", || sleep(LONG)))
        .child(inner)
        .child(ChildSpec::job("other", || sleep(LONG)));
    (root.start().expect("it starts"), echo)
}

#[test]
fn view_contains_all_levels_with_restarts_and_crashes() {
    run(|| {
        let (root, echo) = two_levels();
        assert!(echo.call("nothing\nat all").is_err(), "it panics");
        assert_eq!(echo.call(1), Ok(1));
        let view = root.view();
        assert_eq!(view.id, root.pid().id());
        assert_eq!(names(&view), ["sleeper", "inner", "other"]);
        let seen = view.snapshot.as_ref().expect("it answers");
        assert_eq!(seen.strategy, Strategy::OneForOne);
        assert!(seen.children[0].subtree.is_none());
        let inner = seen.children[1]
            .subtree
            .as_ref()
            .expect("it is a supervisor");
        assert_eq!(names(inner), ["echo"]);
        let child = view.find("echo").expect("it is there");
        assert_eq!(child.info.state, ChildState::Running);
        assert_eq!((child.info.restarts, child.info.reasons["panic"]), (1, 1));
        assert_eq!(child.info.crashes.len(), 1);
        assert!(view.find("nobody").is_none());
    });
}

#[test]
fn view_displays_one_line_per_child() {
    run(|| {
        let (root, echo) = two_levels();
        assert!(echo.call("nothing\nat all").is_err(), "it panics");
        assert_eq!(echo.call(1), Ok(1));
        let view = root.view();
        let pid = |name| {
            view.find(name)
                .and_then(|c| c.info.pid.clone())
                .expect("it lives")
        };
        let text = view.to_string();
        let lines: Vec<_> = text.lines().collect();
        let expected = [
            format!("supervisor {}, one_for_one", root.pid()),
            format!("├─ sleeper  running     actor {}", pid("sleeper")),
            format!(
                "├─ inner    running     supervisor {}, rest_for_one",
                pid("inner")
            ),
            format!(
                "│  └─ echo  running     actor {}, 1 restart (panic 1), last ",
                pid("echo")
            ),
            format!("└─ other    running     actor {}", pid("other")),
        ];
        assert_eq!(lines.len(), expected.len(), "{text}");
        for (line, expected) in lines.iter().zip(expected) {
            assert!(line.starts_with(&expected), "{line}\n{expected}");
        }
        assert!(lines[3].ends_with("nothing\\nat all"), "{text}");
    });
}

#[test]
fn view_shows_restarting_and_stopped_children() {
    run(|| {
        let backoff = Backoff {
            first: LONG,
            max: LONG,
            jitter: 0.0,
            ..Backoff::default()
        };
        let (restarting, later) = ChildSpec::actor("later", || Echo);
        let root = Supervisor::new(Strategy::OneForOne)
            .unlimited_restarts()
            .child(restarting.backoff(backoff))
            .child(ChildSpec::job("done", || sleep(LONG)))
            .start()
            .expect("it starts");
        assert!(later.call("not today").is_err(), "it panics");
        later.cast(7).expect("it is kept for the next one");
        root.terminate_child("done").expect("it lives");
        let text = root.view().to_string();
        let lines: Vec<_> = text.lines().collect();
        assert!(
            lines[1].starts_with("├─ later  restarting  1 waiting, (panic 1), last "),
            "{text}"
        );
        assert_eq!(lines[2], "└─ done   stopped     (shutdown 1)", "{text}");
    });
}

/// A supervisor whose start never finishes.
fn stuck(gate: Receiver<()>) -> ChildSpec {
    let gate = std::sync::Arc::new(std::sync::Mutex::new(Some(gate)));
    let (spec, _) = ChildSpec::actor("waits", move || {
        let gate = gate.lock().expect("nobody panics").take();
        if let Some(gate) = gate {
            let _ = gate.recv();
        }
        Echo
    });
    spec
}

#[test]
fn busy_supervisor_times_out_and_the_others_are_present() {
    run(|| {
        let (open, gate) = channel();
        let (quick, quick_ref) = ChildSpec::supervisor("quick", || {
            Supervisor::new(Strategy::OneForOne).child(ChildSpec::job("leaf", || sleep(LONG)))
        });
        let (slow, slow_ref) =
            ChildSpec::supervisor("slow", || Supervisor::new(Strategy::OneForAll));
        let root = Supervisor::new(Strategy::OneForOne)
            .child(slow)
            .child(quick)
            .start()
            .expect("it starts");
        let starter = {
            let slow = slow_ref.clone();
            let child = stuck(gate);
            spawn(move || slow.start_child(child).is_ok())
        };
        for _ in 0..5 {
            yield_now();
        }
        let view = root.view_within(Duration::from_millis(30));
        let slow = view
            .find("slow")
            .and_then(|c| c.subtree.as_ref())
            .expect("it is there");
        assert_eq!(slow.snapshot.as_ref().err(), Some(&SnapshotError::TimedOut));
        assert!(view.find("leaf").is_some(), "{view}");
        assert!(
            view.to_string().contains("did not answer in time"),
            "{view}"
        );
        drop(open);
        assert!(starter.join().expect("it ends"));
        assert!(root.view_within(LONG).find("waits").is_some());
        drop(quick_ref);
    });
}

#[test]
fn ended_supervisor_does_not_delay_the_view() {
    run(|| {
        let root = Supervisor::new(Strategy::OneForOne)
            .start()
            .expect("it starts");
        let pid = root.pid();
        root.stop();
        pid.monitor().wait();
        let view = root.view_within(LONG);
        assert_eq!(view.snapshot.as_ref().err(), Some(&SnapshotError::Ended));
        assert_eq!(
            view.to_string(),
            format!("supervisor {}, has ended", view.id)
        );

        // The snapshot request waits behind a start that never finishes, and is dropped with the
        // supervisor.
        let (open, gate) = channel();
        let root = Supervisor::new(Strategy::OneForOne)
            .start()
            .expect("it starts");
        let starter = {
            let (root, child) = (root.clone(), stuck(gate));
            spawn(move || root.start_child(child).is_err())
        };
        yield_now();
        let looker = {
            let root = root.clone();
            spawn(move || root.view_within(LONG))
        };
        for _ in 0..5 {
            yield_now();
        }
        root.pid().kill().expect("it lives");
        let view = looker.join().expect("it ends");
        assert_eq!(view.snapshot.as_ref().err(), Some(&SnapshotError::Ended));
        assert!(starter.join().expect("it ends"));
        drop(open);
    });
}

#[test]
fn thread_can_take_a_view() {
    let runtime = Runtime::start(Config::with_workers(2)).expect("it starts");
    let handle = runtime.handle();
    let root = Supervisor::new(Strategy::OneForOne)
        .child(ChildSpec::job_on(handle, "job", || sleep(LONG)))
        .start_on(handle)
        .expect("it starts");
    let view = root.view_within(LONG);
    assert_eq!(names(&view), ["job"]);
}
