//! The list of actors: the entry of each kind and state, queried from inside and outside the
//! runtime, with and without `Config::inspect`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use thalweg_runtime::inspect::{self, ActorKind, ActorList, ActorState};
use thalweg_runtime::supervisor::{Backoff, ChildSpec, Strategy, Supervisor};
use thalweg_runtime::{
    Builder, Config, Context, ExitReason, Handler, Mailbox, Runtime, channel, init, run, sleep,
    spawn, start, wait, yield_now,
};

use crate::kit::{Echo, LONG};

impl Handler<Duration> for Echo {
    type Reply = ();
    fn handle(&mut self, time: Duration, _: &Context<'_, Self>) {
        sleep(time);
    }
}

fn with_books(main: impl FnOnce() + 'static) {
    let config = Config::with_workers(1).inspect(true);
    init(config).expect("it is in range").run(main);
}

fn states(list: &ActorList, name: &str) -> Vec<ActorState> {
    list.named(name).map(|actor| actor.state).collect()
}

#[test]
fn list_shows_each_state_of_an_actor_with_a_stack() {
    run(|| {
        let me = wait::current().expect("this is an actor");
        let (gate, opened) = channel::<()>();
        let waiter = Builder::new()
            .name("waiter")
            .spawn(move || opened.recv().is_ok());
        let sleeper = Builder::new().name("sleeper").spawn(|| sleep(LONG));
        let looper = Builder::new().name("looper").spawn(|| {
            loop {
                yield_now();
            }
        });
        yield_now();
        let new = Builder::new().name("new").spawn(|| ());
        let list = inspect::actors();
        assert!(list.unresponsive.is_empty() && !list.includes_idle);
        assert_eq!(list.get(me).map(|me| me.state), Some(ActorState::Running));
        assert_eq!(
            states(&list, "waiter"),
            [ActorState::Waiting { timeout: None }]
        );
        assert!(matches!(
            states(&list, "sleeper")[..],
            [ActorState::Waiting { timeout: Some(left) }] if left > LONG / 2 && left <= LONG + Duration::from_millis(1)
        ));
        assert_eq!(states(&list, "looper"), [ActorState::Runnable]);
        assert_eq!(states(&list, "new"), [ActorState::New]);
        assert_eq!(list.actors.len(), 5, "{list}");
        for actor in list.children(me) {
            assert_eq!(actor.kind, ActorKind::Stack);
            let has_begun = actor.state != ActorState::New;
            assert_eq!(actor.worker.is_some(), has_begun);
            assert_eq!(actor.slices.is_some_and(|slices| slices > 0), has_begun);
            assert!(actor.worker_time.is_none() && actor.supervisor.is_none());
        }
        assert_eq!(list.children(me).count(), 4);
        drop(gate);
        assert!(!waiter.join().expect("it ends"));
        new.join().expect("it ends");
        let list = inspect::actors();
        assert_eq!(list.actors.len(), 3, "who has ended is not in it: {list}");
        drop((sleeper, looper));
    });
}

#[test]
fn behaviour_actor_is_listed_while_it_has_messages() {
    run(|| {
        let mailbox = Mailbox {
            capacity: 7,
            ..Mailbox::default()
        };
        let echo = Builder::new().name("echo").mailbox(mailbox).start(Echo);
        echo.call(1).expect("it answers");
        assert_eq!(states(&inspect::actors(), "echo"), [], "it rests");
        echo.cast(LONG).expect("it lives");
        assert_eq!(
            states(&inspect::actors(), "echo"),
            [ActorState::Runnable],
            "its turn is to come"
        );
        yield_now();
        echo.cast(2).expect("it lives");
        let list = inspect::actors();
        let found = list.get(echo.id()).expect("it handles a message");
        assert_eq!(found.kind, ActorKind::Behaviour);
        assert!(matches!(
            found.state,
            ActorState::Waiting { timeout: Some(_) }
        ));
        let mailbox = found.mailbox.expect("it has one");
        assert_eq!((mailbox.len, mailbox.capacity), (2, 7));
        assert_eq!(found.worker, Some(0));
        assert_eq!((found.slices, found.parent), (None, None));
    });
}

#[test]
fn inspect_lists_idle_behaviour_actors_until_they_end() {
    with_books(|| {
        let me = wait::current().expect("this is an actor");
        let echo = Builder::new().name("echo").start(Echo);
        for n in 0..3 {
            echo.call(n).expect("it answers");
        }
        // The actor's last turn may not have ended yet.
        yield_now();
        let list = inspect::actors();
        assert!(list.includes_idle);
        let found = list.get(echo.id()).expect("it is there");
        assert_eq!(found.state, ActorState::Idle);
        assert_eq!(found.parent, Some(me));
        assert!(found.slices >= Some(3), "{:?}", found.slices);
        assert!(found.worker_time > Some(Duration::ZERO));
        assert_eq!(found.mailbox.map(|mailbox| mailbox.len), Some(0));
        let id = echo.id();
        drop(echo);
        yield_now();
        yield_now();
        assert!(inspect::actors().get(id).is_none());
    });
}

#[test]
fn inspect_counts_worker_time_without_suspended_time() {
    with_books(|| {
        let busy = spawn(|| {
            let began = std::time::Instant::now();
            while began.elapsed() < Duration::from_millis(20) {
                std::hint::spin_loop();
            }
            sleep(LONG);
        });
        let idle = spawn(|| sleep(LONG));
        yield_now();
        let list = inspect::actors();
        sleep(Duration::from_millis(30));
        let later = inspect::actors();
        let time = |id| list.get(id).and_then(|actor| actor.worker_time);
        assert!(time(busy.id()) >= Some(Duration::from_millis(20)), "{list}");
        assert!(time(idle.id()) > Some(Duration::ZERO), "{list}");
        for id in [busy.id(), idle.id()] {
            let now = later.get(id).and_then(|actor| actor.worker_time);
            assert_eq!(now, time(id), "it was aside");
        }
        assert!(time(wait::current().expect("an actor")) > Some(Duration::ZERO));
    });
}

#[test]
fn supervised_actor_lists_its_supervisor() {
    with_books(|| {
        let me = wait::current();
        let (spec, echo) = ChildSpec::actor("echo", || Echo);
        let backoff = Backoff {
            first: LONG,
            max: LONG,
            jitter: 0.0,
            ..Backoff::default()
        };
        let (between, later) = ChildSpec::actor("later", || Echo);
        let supervisor = Supervisor::new(Strategy::OneForOne)
            .unlimited_restarts()
            .child(spec)
            .child(ChildSpec::job("job", || sleep(LONG)))
            .child(between.backoff(backoff))
            .start()
            .expect("it starts");
        later.pid().kill().expect("it lives");
        for _ in 0..20 {
            yield_now();
        }
        let list = inspect::actors();
        let tree = list.get(supervisor.pid().id()).expect("it lives");
        assert_eq!((tree.parent, tree.supervisor), (me, None));
        for name in ["echo", "job", "later"] {
            let child = list.named(name).next().expect("it is there");
            assert_eq!(child.supervisor, Some(tree.id), "{name}\n{list}");
        }
        assert_eq!(states(&list, "later"), [ActorState::Stopped]);
        assert_eq!(
            list.get(echo.id()).map(|echo| echo.state),
            Some(ActorState::Idle)
        );
    });
}

#[test]
fn thread_lists_all_workers_and_the_actor_that_blocks_one() {
    let runtime = Runtime::start(Config::with_workers(2)).expect("it starts");
    let handle = runtime.handle();
    let free = Arc::new(AtomicBool::new(false));
    let (says, said) = std::sync::mpsc::channel();
    let kept = Arc::clone(&free);
    let keeper = handle.spawn(move || {
        let me = wait::current().expect("an actor");
        let sleepers: Vec<_> = (0..20).map(|_| spawn(|| sleep(LONG))).collect();
        says.send((me, sleepers.len())).expect("the test waits");
        while !kept.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
    });
    let (id, sleepers) = said.recv().expect("it runs");
    let list = handle.actors_within(Duration::from_millis(20));
    let kept: Vec<_> = list
        .unresponsive
        .iter()
        .map(|worker| worker.running_actor)
        .collect();
    assert!(kept.contains(&Some(id)), "{list}");
    assert!(list.to_string().contains(&format!("actor {id} blocks it")));
    free.store(true, Ordering::Relaxed);
    keeper.join().expect("it ends");
    let list = handle.actors_within(LONG);
    assert!(list.unresponsive.is_empty(), "{list}");
    assert_eq!(list.children(id).count(), sleepers, "{list}");
}

#[test]
fn task_that_moves_between_workers_is_listed() {
    let runtime = Runtime::start(Config::with_workers(2)).expect("it starts");
    let handle = runtime.handle();
    for round in 0..if cfg!(miri) { 5 } else { 2_000 } {
        let (says, said) = std::sync::mpsc::channel();
        let parent = handle.spawn(move || {
            // The other worker steals some of them while they are listed.
            let sleepers: Vec<_> = (0..12).map(|_| spawn(|| sleep(LONG))).collect();
            let ids: Vec<_> = sleepers.iter().map(|sleeper| sleeper.id()).collect();
            says.send(ids).expect("the test waits");
            sleepers
        });
        let ids = said.recv().expect("it runs");
        let list = handle.actors_within(LONG);
        for id in ids {
            assert!(
                list.get(id).is_some(),
                "round {round}: {id} is not in\n{list}"
            );
        }
        for sleeper in parent.join().expect("it ends") {
            sleeper.pid().kill().expect("it sleeps");
        }
    }
}

#[test]
fn injected_tasks_are_listed_and_keep_their_order() {
    let runtime = Runtime::start(Config::with_workers(1)).expect("it starts");
    let handle = runtime.handle().clone();
    let (says, said) = std::sync::mpsc::channel();
    let (go, goes) = std::sync::mpsc::channel::<()>();
    let first = handle.spawn(move || goes.recv().is_ok());
    let rest: Vec<_> = (0..50)
        .map(|n| {
            let says = says.clone();
            handle.spawn(move || says.send(n).expect("the test waits"))
        })
        .collect();
    let list = handle.actors_within(Duration::from_millis(20));
    for actor in &rest {
        let found = list.get(actor.id()).expect("it waits");
        assert_eq!((found.state, found.worker), (ActorState::New, None));
    }
    go.send(()).expect("it waits");
    assert!(first.join().expect("it ends"));
    let order: Vec<_> = said.iter().take(50).collect();
    assert_eq!(order, (0..50).collect::<Vec<_>>());
}

#[test]
fn stealable_tasks_are_listed_and_keep_their_order() {
    // One of the two workers is kept busy, so that nobody steals from the other's ring.
    let runtime = Runtime::start(Config::with_workers(2)).expect("it starts");
    let free = Arc::new(AtomicBool::new(false));
    let (says, said) = std::sync::mpsc::channel();
    let keep = || {
        let (free, says) = (Arc::clone(&free), says.clone());
        move || {
            says.send(()).expect("the test waits");
            while !free.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        }
    };
    let keeper = runtime.handle().spawn(keep());
    said.recv().expect("it runs");
    let ring = runtime.handle().spawn(|| {
        let (tell, told) = channel();
        let all: Vec<_> = (0..100)
            .map(|n| {
                let tell = tell.clone();
                Builder::new()
                    .name("fresh")
                    .spawn(move || tell.send(n).expect("we wait"))
            })
            .collect();
        // The listing waits for the other worker until it times out, and the actors run meanwhile.
        let handle = thalweg_runtime::Handle::current().expect("an actor");
        let list = handle.actors_within(Duration::from_millis(1));
        drop(all);
        let order: Vec<u32> = told.iter().take(100).collect();
        (states(&list, "fresh"), order)
    });
    let (fresh, order) = ring.join().expect("it ends");
    free.store(true, Ordering::Relaxed);
    keeper.join().expect("it ends");
    assert_eq!(fresh, [ActorState::New; 100]);
    // Actor 0 stays in the worker's slot, and its position depends on when the worker checks the
    // slot.
    let rest: Vec<_> = order.into_iter().filter(|n| *n > 0).collect();
    assert_eq!(rest, (1..100).collect::<Vec<_>>());
}

#[test]
fn list_is_consistent_while_actors_start_and_end() {
    let runtime = Runtime::start(Config::with_workers(2).inspect(true)).expect("it starts");
    let handle = runtime.handle().clone();
    let over = Arc::new(AtomicBool::new(false));
    let ends = Arc::clone(&over);
    let churn = handle.spawn(move || {
        while !ends.load(Ordering::Relaxed) {
            let echo = start(Echo);
            let some: Vec<_> = (0..if cfg!(miri) { 3 } else { 50 })
                .map(|_| spawn(yield_now))
                .collect();
            let _ = echo.call(1);
            some.into_iter().for_each(|actor| drop(actor.join()));
        }
    });
    for _ in 0..if cfg!(miri) { 3 } else { 200 } {
        let list = handle.actors_within(LONG);
        assert!(list.unresponsive.is_empty());
        let in_order = list.actors.is_sorted_by(|one, other| one.id < other.id);
        assert!(in_order, "no number comes twice");
        assert!(list.get(churn.id()).is_some());
    }
    over.store(true, Ordering::Relaxed);
    churn.join().expect("it ends");
}

#[test]
fn stopped_runtime_lists_no_actors_at_once() {
    let runtime = Runtime::start(Config::with_workers(2)).expect("it starts");
    let handle = runtime.handle().clone();
    handle.spawn(|| ()).join().expect("it ends");
    drop(runtime);
    let list = handle.actors_within(LONG);
    assert!(
        list.actors.is_empty() && list.unresponsive.is_empty(),
        "{list}"
    );
}

#[cfg(all(target_os = "linux", not(any(miri, thalweg_threads))))]
#[test]
#[cfg_attr(
    feature = "sanitizer",
    ignore = "AddressSanitizer has the variables that an address is taken of elsewhere"
)]
fn a_stack_shows_its_depth_and_its_high_water() {
    #[inline(never)]
    fn deep(bytes: usize) -> usize {
        let frame = std::hint::black_box([1_u8; 1 << 10]);
        if bytes <= frame.len() {
            return 1;
        }
        1 + deep(bytes - frame.len()) + usize::from(std::hint::black_box(&frame)[0] == 0)
    }
    run(|| {
        let deep = spawn(|| {
            std::hint::black_box(deep(256 << 10));
            sleep(LONG);
        });
        let shallow = spawn(|| sleep(LONG));
        yield_now();
        let list = inspect::actors();
        let stack = |id| list.get(id).and_then(|actor| actor.stack).expect("it runs");
        let (deep, shallow) = (stack(deep.id()), stack(shallow.id()));
        assert!(deep.high_water() >= Some(256 << 10), "{deep:?}");
        assert!(deep.depth < 64 << 10, "it came back: {deep:?}");
        assert!(shallow.high_water() < Some(256 << 10), "{shallow:?}");
        assert!(shallow.high_water() >= Some(shallow.depth));
        assert!(deep.size >= (1 << 20) - (32 << 10) && deep.size <= 1 << 20);
    });
}

#[test]
fn actor_name_is_printed_without_control_characters() {
    run(|| {
        let _child = Builder::new().name("a\u{1b}[2J\nb").spawn(|| ());
        let text = inspect::actors().to_string();
        assert!(text.contains("a\\u{1b}[2J\\nb"), "{text}");
        assert!(!text.contains('\u{1b}'));
    });
}

#[test]
fn table_has_a_line_per_actor_and_notes_omissions() {
    run(|| {
        let _child = Builder::new().name("child").spawn(|| ());
        let text = inspect::actors().to_string();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        assert!(
            lines[0].trim_start().starts_with("actor  name   kind"),
            "{text}"
        );
        assert!(lines[2].contains("child  stack  new"), "{text}");
        assert!(lines[3].contains("THALWEG_INSPECT=on"), "{text}");
    });
}

#[test]
fn crashes_are_kept_and_orderly_exits_are_not() {
    run(|| {
        spawn(|| ()).join().expect("it ends well");
        let panicked = Builder::new()
            .name("clumsy")
            .spawn(|| panic!("it fell over"));
        let panicked = (panicked.id(), panicked.join().is_err());
        let killed = spawn(|| sleep(LONG));
        yield_now();
        killed.pid().kill().expect("it sleeps");
        let killed = (killed.id(), killed.join().is_err());
        let echo = start(Echo);
        let echo_id = echo.id();
        echo.pid()
            .exit(ExitReason::from("enough"))
            .expect("it lives");
        echo.pid().monitor().wait();
        let crashes = inspect::crashes();
        let ids: Vec<_> = crashes.iter().map(|crash| crash.id).collect();
        assert_eq!(ids, [panicked.0, killed.0, echo_id]);
        assert_eq!(crashes[0].name.as_deref(), Some("clumsy"));
        let ExitReason::Panic(report) = &crashes[0].reason else {
            panic!("it panicked: {}", crashes[0]);
        };
        assert_eq!(report.message(), Some("it fell over"));
        assert!(
            report
                .location()
                .is_some_and(|at| at.contains("inspect.rs"))
        );
        assert_eq!(crashes[1].reason.kind(), "killed");
        assert!(
            crashes[2].to_string().ends_with(": enough"),
            "{}",
            crashes[2]
        );
    });
}

#[test]
fn last_64_crashes_are_kept() {
    run(|| {
        for n in 0..70 {
            let _ = spawn(move || thalweg_runtime::exit(ExitReason::from(n.to_string()))).join();
        }
        let crashes = inspect::crashes();
        let reasons: Vec<_> = crashes
            .iter()
            .map(|crash| crash.reason.to_string())
            .collect();
        let expected: Vec<_> = (6..70).map(|n: u32| n.to_string()).collect();
        assert_eq!(reasons, expected);
    });
}
