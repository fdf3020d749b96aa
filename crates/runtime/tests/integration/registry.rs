//! Names: each names one actor, disappears when the actor ends, and keeps no actor alive.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, mpsc};
use std::task::{self, Wake};

use thalweg_runtime::registry::{self, NameError, RegisterError, Registry, WrongType};
use thalweg_runtime::supervisor::{ChildSpec, Strategy, Supervisor};
use thalweg_runtime::{
    Actor, ActorRef, CallError, Config, Context, Handle, Handler, JoinHandle, Runtime, init, run,
    spawn, start, yield_now,
};

use crate::kit::{LONG, on_both};

#[derive(Default)]
struct Counter(u32);
struct Other;

struct Add(u32);
struct Panic;

impl Actor for Counter {}
impl Actor for Other {}

impl Handler<Add> for Counter {
    type Reply = u32;
    fn handle(&mut self, Add(more): Add, _: &Context<'_, Self>) -> u32 {
        self.0 += more;
        self.0
    }
}

impl Handler<Panic> for Counter {
    type Reply = ();
    fn handle(&mut self, _: Panic, _: &Context<'_, Self>) {
        panic!("it was told to");
    }
}

fn yielder() -> JoinHandle<()> {
    spawn(|| {
        loop {
            yield_now();
        }
    })
}

#[test]
fn whereis_returns_the_actor_and_its_pid() {
    on_both(|| {
        let counter = start(Counter(1));
        registry::register("counter", &counter).unwrap();
        let found = registry::whereis::<Counter>("counter").unwrap().unwrap();
        assert_eq!(found.call(Add(2)), Ok(3));
        assert_eq!(found.id(), counter.id());
        assert_eq!(registry::whereis_pid("counter"), Some(counter.pid()));
        assert!(registry::whereis::<Counter>("other").unwrap().is_none());
        assert!(registry::whereis_pid("other").is_none());
    });
}

#[test]
fn whereis_of_another_type_is_an_error() {
    run(|| {
        let other = start(Other);
        registry::register("other", &other).unwrap();
        let error = registry::whereis::<Counter>("other").unwrap_err();
        assert_eq!(
            error,
            WrongType {
                name: "other".into(),
                registered: std::any::type_name::<Other>(),
                asked: std::any::type_name::<Counter>(),
            }
        );
        registry::register_pid("bare", &other.pid()).unwrap();
        assert!(registry::whereis::<Other>("bare").is_err());
        assert_eq!(registry::whereis_pid("bare"), Some(other.pid()));
    });
}

#[test]
fn taken_name_is_an_error_with_its_owner() {
    run(|| {
        let (one, two) = (start(Counter(1)), start(Counter(2)));
        registry::register("name", &one).unwrap();
        let taken = Err(RegisterError::Taken {
            name: "name".into(),
            by: one.id(),
        });
        assert_eq!(registry::register("name", &two), taken);
        assert_eq!(registry::register("name", &one), taken);
        assert_eq!(registry::register_pid("name", &two.pid()), taken);
        registry::register("its second", &one).unwrap();
        let found = registry::whereis::<Counter>("name").unwrap().unwrap();
        assert_eq!(found.id(), one.id());
    });
}

#[test]
fn concurrent_registrations_have_one_winner() {
    init(Config::with_workers(2)).unwrap().run(|| {
        for _ in 0..if cfg!(miri) { 3 } else { 200 } {
            let counters: Vec<_> = (0..4).map(|_| start(Counter(0))).collect();
            let tries = counters.iter().cloned().map(|counter| {
                spawn(move || {
                    yield_now();
                    registry::register("the one", &counter)
                })
            });
            let tries: Vec<_> = tries.collect();
            let won = tries.into_iter().map(|attempt| attempt.join().unwrap());
            assert_eq!(won.filter(Result::is_ok).count(), 1);
            assert!(registry::unregister("the one"));
        }
    });
}

#[test]
fn name_is_removed_before_a_monitor_or_join_reports() {
    on_both(|| {
        for _ in 0..if cfg!(miri) { 3 } else { 200 } {
            let counter = start(Counter(0));
            let before = counter.pid().monitor();
            registry::register("by reference", &counter).unwrap();
            registry::register_pid("by pid", &counter.pid()).unwrap();
            let after = counter.pid().monitor();
            counter.stop();
            before.wait();
            assert!(registry::whereis_pid("by reference").is_none());
            assert!(registry::whereis_pid("by pid").is_none());
            assert!(registry::names().is_empty());
            after.wait();

            let job = yielder();
            let monitor = job.pid().monitor();
            registry::register_pid("job", &job.pid()).unwrap();
            job.pid().kill().unwrap();
            monitor.wait();
            assert!(registry::whereis_pid("job").is_none());

            let job = yielder();
            registry::register_pid("job", &job.pid()).unwrap();
            job.pid().kill().unwrap();
            assert!(job.join().is_err());
            assert!(registry::whereis_pid("job").is_none());
        }
    });
}

/// The waker of a future runs while the actor is ending. A name that was registered after the
/// future is not yet notified at that time.
#[test]
fn first_notified_waker_finds_the_name_free() {
    struct Waker {
        registry: Registry,
        heir: ActorRef<Counter>,
        found: Mutex<Option<bool>>,
    }
    impl Wake for Waker {
        fn wake(self: Arc<Self>) {
            let found = self.registry.whereis_pid("name").is_some();
            self.registry.register("name", &self.heir).unwrap();
            *self.found.lock().unwrap() = Some(found);
        }
    }
    on_both(|| {
        let job = yielder();
        let waker = Arc::new(Waker {
            registry: Handle::current().unwrap().registry().clone(),
            heir: start(Counter(3)),
            found: Mutex::new(None),
        });
        let mut monitor = pin!(job.pid().monitor());
        let polled = monitor
            .as_mut()
            .poll(&mut task::Context::from_waker(&waker.clone().into()));
        assert!(polled.is_pending());
        registry::register_pid("name", &job.pid()).unwrap();
        job.pid().kill().unwrap();
        assert!(job.join().is_err());
        assert_eq!(*waker.found.lock().unwrap(), Some(false));
        // The notification that the old actor had ended did not affect its heir.
        let found = registry::whereis::<Counter>("name").unwrap().unwrap();
        assert_eq!(found.id(), waker.heir.id());
    });
}

#[test]
fn actor_that_ended_during_a_call_has_no_name() {
    on_both(|| {
        let counter = start(Counter(0));
        registry::register("counter", &counter).unwrap();
        counter.stop();
        // Either the mailbox refuses the message, or the end of the actor drops it.
        assert_eq!(counter.call(Add(1)), Err(CallError::Ended));
        counter.pid().monitor().wait();
        registry::register("counter", &start(Counter(0))).unwrap_or_else(|error| panic!("{error}"));
    });
}

#[test]
fn supervised_actor_keeps_its_name_over_restarts() {
    on_both(|| {
        let (spec, counter) = ChildSpec::actor("counter", || Counter(10));
        registry::register("counter", &counter).unwrap();
        let supervisor = Supervisor::new(Strategy::OneForOne).child(spec);
        let supervisor = supervisor.intensity(10, LONG).start().unwrap();
        let first = registry::whereis_pid("counter").unwrap();
        for _ in 0..3 {
            counter.call(Panic).unwrap_err();
            let found = registry::whereis::<Counter>("counter").unwrap().unwrap();
            assert_eq!(found.call(Add(1)), Ok(11));
        }
        let last = registry::whereis_pid("counter").unwrap();
        assert!(last.is_alive() && last != first);

        supervisor.terminate_child("counter").unwrap();
        assert!(registry::whereis_pid("counter").is_none());
        assert!(registry::whereis::<Counter>("counter").unwrap().is_none());
        let refused = registry::register("counter", &counter);
        assert_eq!(refused, Err(RegisterError::NotAlive(counter.id())));

        supervisor.restart_child("counter").unwrap();
        assert!(registry::names().is_empty());
        registry::register("counter", &counter).unwrap();
        assert_eq!(
            registry::whereis_pid("counter"),
            Some(counter.pid()),
            "it is the new one"
        );
    });
}

#[test]
fn name_of_a_pid_ends_with_its_incarnation() {
    on_both(|| {
        let (spec, counter) = ChildSpec::actor("counter", || Counter(10));
        let supervisor = Supervisor::new(Strategy::OneForOne).child(spec);
        let _supervisor = supervisor.intensity(10, LONG).start().unwrap();
        registry::register_pid("this one", &counter.pid()).unwrap();
        counter.call(Panic).unwrap_err();
        assert_eq!(counter.call(Add(1)), Ok(11));
        assert!(registry::whereis_pid("this one").is_none());
    });
}

#[test]
fn name_of_an_unstarted_child_ends_with_its_references() {
    run(|| {
        let (spec, counter) = ChildSpec::actor("counter", || Counter(10));
        registry::register("counter", &counter).unwrap();
        assert_eq!(registry::names(), ["counter"]);
        drop((spec, counter));
        assert!(registry::names().is_empty());
        registry::register("counter", &start(Counter(0))).unwrap();
    });
}

#[test]
fn name_does_not_keep_its_actor_alive() {
    on_both(|| {
        let counter = start(Counter(0));
        registry::register("counter", &counter).unwrap();
        let monitor = counter.pid().monitor();
        drop(counter);
        assert!(
            registry::whereis::<Counter>("counter").unwrap().is_none(),
            "nobody reaches it"
        );
        assert_eq!(monitor.wait().reason.kind(), "normal");
        assert!(registry::names().is_empty());
    });
}

#[test]
fn exit_of_a_former_owner_keeps_the_new_entry() {
    on_both(|| {
        let (one, two) = (start(Counter(1)), start(Counter(2)));
        registry::register("name", &one).unwrap();
        assert!(registry::unregister("name"));
        assert!(!registry::unregister("name"), "it is nobody's");
        registry::register("name", &two).unwrap();
        let monitor = one.pid().monitor();
        one.stop();
        monitor.wait();
        let found = registry::whereis::<Counter>("name").unwrap().unwrap();
        assert_eq!(found.call(Add(0)), Ok(2));
    });
}

#[test]
fn register_of_an_ended_actor_is_an_error() {
    run(|| {
        let counter = start(Counter(0));
        let pid = counter.pid();
        let monitor = pid.monitor();
        counter.stop();
        monitor.wait();
        let dead = Err(RegisterError::NotAlive(pid.id()));
        assert_eq!(registry::register("counter", &counter), dead);
        assert_eq!(registry::register_pid("counter", &pid), dead);
        assert!(registry::names().is_empty());
    });
}

#[test]
fn registered_names_have_1_to_255_bytes() {
    run(|| {
        let counter = start(Counter(0));
        let refused = |name: &str| registry::register(name, &counter);
        assert_eq!(refused(""), Err(RegisterError::Name(NameError::Empty)));
        let long = "n".repeat(256);
        let error = RegisterError::Name(NameError::TooLong(256));
        assert_eq!(refused(&long), Err(error.clone()));
        assert_eq!(
            registry::register_pid(&long, &counter.pid()),
            Err(error.clone())
        );
        assert_eq!(error.to_string(), "a name has 255 bytes at most, not 256");
        assert_eq!(refused(&long[1..]), Ok(()));
        assert_eq!(refused("\u{1F980}\0 any other bytes"), Ok(()));
        // No actor can have such a name.
        assert!(registry::whereis_pid("").is_none());
        assert!(!registry::unregister(&long));
    });
}

#[test]
fn names_returns_all_names_sorted() {
    on_both(|| {
        let counters: Vec<_> = (0..50).map(Counter).map(start).collect();
        for (number, counter) in counters.iter().enumerate().rev() {
            registry::register(&format!("counter {number:02}"), counter).unwrap();
        }
        let names: Vec<_> = (0..50)
            .map(|number| format!("counter {number:02}"))
            .collect();
        assert_eq!(registry::names(), names);
    });
}

#[test]
fn thread_uses_a_handle_and_each_runtime_has_its_own_names() {
    let one = Runtime::start(Config::with_workers(1)).unwrap();
    let two = Runtime::start(Config::with_workers(1)).unwrap();
    let counter = one.handle().start(Counter(5));
    one.handle()
        .registry()
        .register("counter", &counter)
        .unwrap();
    let names_of = |handle: &Handle| handle.registry().names();
    assert_eq!(names_of(one.handle()), ["counter"]);
    assert!(names_of(two.handle()).is_empty());
    // Actors see the registrations that the thread made.
    let (tx, rx) = mpsc::channel();
    one.handle().spawn(move || {
        let found = registry::whereis::<Counter>("counter").unwrap().unwrap();
        tx.send(found.call(Add(1))).unwrap();
    });
    assert_eq!(rx.recv().unwrap(), Ok(6));
    // The other runtime can register the actor too.
    two.handle().registry().register("far", &counter).unwrap();
    drop(one);
    assert_eq!(names_of(two.handle()), ["far"], "somebody still reaches it");
    drop(counter);
    assert!(names_of(two.handle()).is_empty());
}

#[test]
fn functions_for_actors_panic_on_a_thread() {
    let thrown = std::panic::catch_unwind(registry::names).unwrap_err();
    let text = thrown.downcast_ref::<String>().cloned();
    let text = text.or_else(|| thrown.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    assert!(text.unwrap().contains("Handle::registry"));
}
