//! Process groups: OTP's `pg` rules, one by one, and the extensions to them.

use std::collections::HashMap;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{self, Poll, Wake};

use thalweg_queue::TryRecvError;
use thalweg_runtime::groups::{self, Change, Group, GroupMonitorRef, NotJoined};
use thalweg_runtime::registry::NameError;
use thalweg_runtime::supervisor::{ChildSpec, Strategy, Supervisor};
use thalweg_runtime::{
    Actor, ActorRef, Config, Context, Handler, NotAlive, Pid, Runtime, init, run, spawn, start,
    yield_now,
};

use crate::kit::{LONG, on_both};

struct Member;
struct Ping;
struct Panic;

impl Actor for Member {}

impl Handler<Ping> for Member {
    type Reply = ();
    fn handle(&mut self, _: Ping, _: &Context<'_, Self>) {}
}

impl Handler<Panic> for Member {
    type Reply = ();
    fn handle(&mut self, _: Panic, _: &Context<'_, Self>) {
        panic!("it was told to");
    }
}

fn ids(members: &[ActorRef<Member>]) -> Vec<thalweg_runtime::ActorId> {
    members.iter().map(ActorRef::id).collect()
}

fn end(actor: &ActorRef<Member>) {
    let monitor = actor.pid().monitor();
    actor.stop();
    monitor.wait();
}

#[test]
fn member_that_joins_twice_is_listed_twice_and_leaves_once_per_join() {
    on_both(|| {
        let group = groups::of_actors::<Member>("group").unwrap();
        let (a, b) = (start(Member), start(Member));
        for actor in [&a, &b, &a] {
            group.join(actor).unwrap();
        }
        assert_eq!(ids(&group.members()), [a.id(), b.id(), a.id()]);
        assert_eq!(group.pids(), [a.pid(), b.pid(), a.pid()]);
        group.leave(&a).unwrap();
        assert_eq!(ids(&group.members()), [b.id(), a.id()], "the oldest goes");
        group.leave(&a).unwrap();
        assert_eq!(group.leave(&a), Err(NotJoined));
        assert_eq!(ids(&group.members()), [b.id()]);
    });
}

#[test]
fn empty_group_is_not_listed() {
    run(|| {
        let group = groups::of_actors::<Member>("group").unwrap();
        let monitor = group.monitor();
        assert!(group.is_empty() && groups::list().is_empty());
        let actor = start(Member);
        group.join(&actor).unwrap();
        let list = groups::list();
        assert_eq!((list.len(), list[0].members), (1, 1));
        assert_eq!(list[0].name, "group");
        group.leave(&actor).unwrap();
        assert!(groups::list().is_empty());
        drop(monitor);
    });
}

#[test]
fn members_keep_a_group_without_handles() {
    on_both(|| {
        let actor = start(Member);
        groups::of_actors("group").unwrap().join(&actor).unwrap();
        let group = groups::of_actors::<Member>("group").unwrap();
        assert_eq!(ids(&group.members()), [actor.id()]);
        end(&actor);
        drop(group);
        assert!(groups::of_actors::<Member>("group").unwrap().is_empty());
    });
}

#[test]
fn ended_actor_leaves_completely() {
    on_both(|| {
        for _ in 0..if cfg!(miri) { 3 } else { 100 } {
            let actors = groups::of_actors::<Member>("group").unwrap();
            let pids = groups::of_pids("group").unwrap();
            let actor = start(Member);
            for _ in 0..3 {
                actors.join(&actor).unwrap();
                pids.join(&actor.pid()).unwrap();
            }
            let job = spawn(|| {
                loop {
                    yield_now();
                }
            });
            pids.join(&job.pid()).unwrap();
            job.pid().kill().unwrap();
            assert!(job.join().is_err());
            assert_eq!(pids.len(), 3);
            end(&actor);
            assert!(actors.members().is_empty() && pids.members().is_empty());
            assert_eq!(actors.leave(&actor), Err(NotJoined));
            assert!(groups::list().is_empty());
        }
    });
}

#[test]
fn join_of_an_ended_actor_is_an_error() {
    run(|| {
        let actor = start(Member);
        let pid = actor.pid();
        end(&actor);
        let actors = groups::of_actors::<Member>("group").unwrap();
        assert_eq!(actors.join(&actor), Err(NotAlive(pid.id())));
        let pids = groups::of_pids("group").unwrap();
        assert_eq!(pids.join(&pid), Err(NotAlive(pid.id())));
        assert!(groups::list().is_empty());
    });
}

#[test]
fn group_does_not_keep_members_alive() {
    on_both(|| {
        let group = groups::of_actors::<Member>("group").unwrap();
        let actor = start(Member);
        let end = actor.pid().monitor();
        group.join(&actor).unwrap();
        let monitor = group.monitor();
        drop(actor);
        assert!(group.members().is_empty(), "nobody reaches it");
        assert_eq!(end.wait().reason.kind(), "normal");
        let change = monitor.recv().unwrap();
        assert!(change.is_leave() && change.member().get().is_none());
    });
}

#[test]
fn supervised_member_survives_a_restart_and_its_pid_does_not() {
    on_both(|| {
        let (spec, actor) = ChildSpec::actor("member", || Member);
        let group = groups::of_actors::<Member>("group").unwrap();
        // The actor joins before its first start.
        group.join(&actor).unwrap();
        let supervisor = Supervisor::new(Strategy::OneForOne).child(spec);
        let supervisor = supervisor.intensity(10, LONG).start().unwrap();
        let pids = groups::of_pids("group").unwrap();
        pids.join(&actor.pid()).unwrap();
        let monitor = group.monitor();
        let first = group.pids();
        for _ in 0..3 {
            actor.call(Panic).unwrap_err();
            actor.call(Ping).unwrap();
        }
        assert!(pids.members().is_empty());
        assert_eq!(group.members().len(), 1);
        assert_ne!(group.pids(), first);
        assert!(matches!(monitor.try_recv(), Err(TryRecvError::Empty)));
        supervisor.terminate_child("member").unwrap();
        assert!(group.is_empty());
        let change = monitor.recv().unwrap();
        assert!(change.is_leave());
        assert_eq!(change.member(), &monitor.members()[0]);
    });
}

#[test]
fn groups_of_different_types_are_separate() {
    run(|| {
        let actors = groups::of_actors::<Member>("group").unwrap();
        let others = groups::of_actors::<Watcher>("group").unwrap();
        let pids = groups::of_pids("group").unwrap();
        let actor = start(Member);
        actors.join(&actor).unwrap();
        pids.join(&actor.pid()).unwrap();
        assert!(others.is_empty());
        let list = groups::list();
        assert_eq!(list.len(), 2);
        assert!(list.iter().all(|info| info.name == "group"));
        assert!(list.iter().any(|info| info.member_type.contains("Pid")));
    });
}

#[test]
fn monitor_returns_the_members_and_each_later_change() {
    on_both(|| {
        let group = groups::of_actors::<Member>("group").unwrap();
        let (a, b) = (start(Member), start(Member));
        group.join(&a).unwrap();
        let monitor = group.monitor();
        assert_eq!(monitor.members().len(), 1);
        group.join(&b).unwrap();
        group.join(&a).unwrap();
        group.leave(&b).unwrap();
        end(&a);
        let changes: Vec<_> = (0..5).map(|_| monitor.recv().unwrap()).collect();
        let joins: Vec<_> = changes.iter().map(Change::is_join).collect();
        assert_eq!(joins, [true, true, false, false, false]);
        let of_a: Vec<_> = changes
            .iter()
            .map(|change| change.member() == &monitor.members()[0])
            .collect();
        assert_eq!(of_a, [false, true, false, true, true]);
        assert!(changes.iter().all(|change| change.group() == "group"));
        assert!(matches!(monitor.try_recv(), Err(TryRecvError::Empty)));
    });
}

/// The members and changes that a monitor received add up to the group's members, and all monitors
/// receive the changes in the same order.
#[test]
fn members_and_changes_are_consistent_under_concurrent_joins() {
    init(Config::with_workers(2)).unwrap().run(|| {
        let group = groups::of_actors::<Member>("group").unwrap();
        let actors: Vec<_> = (0..4).map(|_| start(Member)).collect();
        let movers = actors.iter().cloned().map(|actor| {
            let group = group.clone();
            spawn(move || {
                for _ in 0..if cfg!(miri) { 5 } else { 200 } {
                    group.join(&actor).unwrap();
                    yield_now();
                    group.join(&actor).unwrap();
                    group.leave(&actor).unwrap();
                    yield_now();
                    group.leave(&actor).unwrap();
                }
                group.join(&actor).unwrap();
            })
        });
        let movers: Vec<_> = movers.collect();
        let mut monitors = Vec::new();
        for _ in 0..if cfg!(miri) { 4 } else { 20 } {
            yield_now();
            monitors.push(group.monitor());
        }
        movers.into_iter().for_each(|mover| mover.join().unwrap());
        // When the last change has arrived, all changes have arrived.
        let last = start(Member);
        group.join(&last).unwrap();
        let mut logs = Vec::new();
        for monitor in &monitors {
            let mut counts: HashMap<_, i32> = HashMap::new();
            for member in monitor.members() {
                *counts.entry(member.id()).or_default() += 1;
            }
            let mut log = Vec::new();
            loop {
                let change = monitor.recv().unwrap();
                let count = counts.entry(change.member().id()).or_default();
                *count += if change.is_join() { 1 } else { -1 };
                assert!((0..=2).contains(count), "{count}");
                let id = change.member().get().unwrap().id();
                log.push((change.is_join(), id));
                if id == last.id() {
                    break;
                }
            }
            assert!(counts.values().all(|count| *count == 1) && counts.len() == 5);
            logs.push(log);
        }
        for log in &logs[1..] {
            assert!(logs[0].ends_with(log), "one order for all");
        }
    });
}

/// A waker may run any code. This one makes the next change while the first change is being
/// delivered.
#[test]
fn change_during_a_delivery_is_delivered_afterwards() {
    struct Waker {
        group: Group<ActorRef<Member>>,
        next: ActorRef<Member>,
    }
    impl Wake for Waker {
        fn wake(self: Arc<Self>) {
            if self.group.len() == 1 {
                self.group.join(&self.next).unwrap();
            }
        }
    }
    run(|| {
        let group = groups::of_actors::<Member>("group").unwrap();
        let mut monitor = group.monitor();
        let (first, next) = (start(Member), start(Member));
        let waker = Arc::new(Waker {
            group: group.clone(),
            next: next.clone(),
        });
        {
            let mut change = pin!(monitor.changes().recv_async());
            let waker = waker.into();
            let mut context = task::Context::from_waker(&waker);
            assert!(change.as_mut().poll(&mut context).is_pending());
            group.join(&first).unwrap();
            let Poll::Ready(Ok(change)) = change.as_mut().poll(&mut context) else {
                panic!("it has come");
            };
            assert_eq!(change.member().get().unwrap().id(), first.id());
        }
        let change = monitor.try_recv().unwrap();
        assert_eq!(change.member().get().unwrap().id(), next.id());
    });
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// An actor that monitors the group of members.
struct Watcher {
    log: Log,
    monitored: Option<GroupMonitorRef<ActorRef<Member>>>,
}

struct Watch;
struct Unwatch;

impl Actor for Watcher {}

impl Handler<Watch> for Watcher {
    type Reply = usize;
    fn handle(&mut self, _: Watch, context: &Context<'_, Self>) -> usize {
        let monitored = groups::of_actors("group").unwrap().monitor_by(context);
        let members = monitored.members().len();
        self.monitored = Some(monitored);
        members
    }
}

impl Handler<Change<ActorRef<Member>>> for Watcher {
    type Reply = ();
    fn handle(&mut self, change: Change<ActorRef<Member>>, _: &Context<'_, Self>) {
        let what = if change.is_join() { "join" } else { "leave" };
        self.log.0.lock().unwrap().push(what.to_owned());
    }
}

impl Handler<Unwatch> for Watcher {
    type Reply = ();
    fn handle(&mut self, Unwatch: Unwatch, _: &Context<'_, Self>) {
        // One more change is on its way when the monitor is removed.
        let group = groups::of_actors("group").unwrap();
        let member = start(Member);
        group.join(&member).unwrap();
        self.monitored.take().unwrap().demonitor();
        group.join(&member).unwrap();
    }
}

impl Handler<Panic> for Watcher {
    type Reply = ();
    fn handle(&mut self, _: Panic, _: &Context<'_, Self>) {
        let member = start(Member);
        groups::of_actors("group").unwrap().join(&member).unwrap();
        panic!("it was told to");
    }
}

impl Handler<Ping> for Watcher {
    type Reply = ();
    fn handle(&mut self, _: Ping, _: &Context<'_, Self>) {}
}

#[test]
fn behaviour_actor_receives_changes_before_other_messages() {
    on_both(|| {
        let log = Log::default();
        let watcher = start(Watcher {
            log: log.clone(),
            monitored: None,
        });
        let group = groups::of_actors::<Member>("group").unwrap();
        let (a, b) = (start(Member), start(Member));
        group.join(&a).unwrap();
        assert_eq!(watcher.call(Watch), Ok(1));
        group.join(&b).unwrap();
        end(&a);
        watcher.call(Ping).unwrap();
        assert_eq!(log.take(), ["join", "leave"]);
        watcher.call(Unwatch).unwrap();
        group.leave(&b).unwrap();
        watcher.call(Ping).unwrap();
        assert!(log.take().is_empty(), "not even what was on its way");
    });
}

#[test]
fn changes_are_delivered_only_to_the_monitoring_incarnation() {
    on_both(|| {
        let log = Log::default();
        let (spec, watcher) = ChildSpec::actor("watcher", {
            let log = log.clone();
            move || Watcher {
                log: log.clone(),
                monitored: None,
            }
        });
        let supervisor = Supervisor::new(Strategy::OneForOne).child(spec);
        let _supervisor = supervisor.intensity(10, LONG).start().unwrap();
        watcher.call(Watch).unwrap();
        watcher.call(Panic).unwrap_err();
        let group = groups::of_actors::<Member>("group").unwrap();
        // The member that the panicked incarnation started may not have ended yet.
        let monitor = group.monitor();
        for _ in monitor.members() {
            assert!(monitor.recv().unwrap().is_leave());
        }
        let member = start(Member);
        group.join(&member).unwrap();
        watcher.call(Ping).unwrap();
        assert!(log.take().is_empty());
        watcher.call(Watch).unwrap();
        group.leave(&member).unwrap();
        watcher.call(Ping).unwrap();
        assert_eq!(log.take(), ["leave"]);
    });
}

#[test]
fn group_names_have_1_to_255_bytes() {
    run(|| {
        assert_eq!(groups::of_pids("").err(), Some(NameError::Empty));
        let long = "n".repeat(256);
        let error = groups::of_actors::<Member>(&long).err();
        assert_eq!(error, Some(NameError::TooLong(256)));
        assert!(groups::of_pids(&long[1..]).is_ok());
    });
}

#[test]
fn thread_can_use_groups_by_a_handle() {
    let runtime = Runtime::start(Config::with_workers(1)).unwrap();
    let group = runtime.handle().groups().of_pids("jobs").unwrap();
    let monitor = group.monitor();
    let job = runtime.handle().spawn(|| {
        let me = Pid::current().unwrap();
        groups::of_pids("jobs").unwrap().join(&me).unwrap();
    });
    let joined = monitor.recv().unwrap();
    assert!(joined.is_join());
    assert!(monitor.recv().unwrap().is_leave());
    job.join().unwrap();
    drop(runtime);
    assert!(group.is_empty());
    let thrown = std::panic::catch_unwind(|| groups::list().len()).unwrap_err();
    let text = thrown.downcast_ref::<String>().cloned();
    let text = text.or_else(|| thrown.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    assert!(text.unwrap().contains("Handle::groups"));
}
