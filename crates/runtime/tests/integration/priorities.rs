//! The order in which an actor handles its messages.

use std::sync::{Arc, Mutex};

use thalweg_queue::{Overflow, SendError};
use thalweg_runtime::supervisor::{ChildSpec, Strategy, Supervisor};
use thalweg_runtime::{
    Actor, ActorRef, Builder, Config, Context, Down, Handler, Mailbox, Pid, Priority, Receiver,
    channel, init, spawn, start,
};

use crate::kit::on_both;

/// The handled messages, in order.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<String>>>);

impl Seen {
    fn add(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

#[test]
fn down_message_is_handled_after_the_last_message_of_a_turn() {
    /// The last of `left` messages monitors an actor that has ended. No message follows it.
    struct Asks {
        left: u32,
        of: Pid,
        seen: Seen,
    }
    struct Count;
    impl Actor for Asks {
        fn on_down(&mut self, _: Down, _: &Context<'_, Self>) {
            self.seen.add("down");
        }
    }
    impl Handler<Count> for Asks {
        type Reply = ();
        fn handle(&mut self, _: Count, context: &Context<'_, Self>) {
            self.left -= 1;
            if self.left == 0 {
                let _ = context.monitor(&self.of);
            }
        }
    }
    on_both(|| {
        let ended = spawn(|| {});
        let of = ended.pid();
        ended.join().unwrap();
        for left in [1, 63, 64, 65, 128] {
            let seen = Seen::default();
            let actor = start(Asks {
                left,
                of: of.clone(),
                seen: seen.clone(),
            });
            let end = actor.pid().monitor();
            for _ in 0..left {
                actor.cast(Count).unwrap();
            }
            drop(actor);
            end.wait();
            assert_eq!(seen.take(), ["down"], "{left}");
        }
    });
}

/// Records each message that it handles.
struct Says(Seen);
struct Line(String);
/// Its handler waits until the sender is dropped.
struct Hold(Receiver<()>);
struct Fail;

impl Actor for Says {}

impl Handler<Line> for Says {
    type Reply = ();
    fn handle(&mut self, line: Line, _: &Context<'_, Self>) {
        self.0.add(line.0);
    }
}

impl Handler<Hold> for Says {
    type Reply = ();
    fn handle(&mut self, hold: Hold, _: &Context<'_, Self>) {
        let _ = hold.0.recv();
    }
}

impl Handler<Fail> for Says {
    type Reply = ();
    fn handle(&mut self, _: Fail, _: &Context<'_, Self>) {
        panic!("as it was told");
    }
}

/// Returns an actor whose handler waits until the returned sender is dropped.
fn held(mailbox: Mailbox) -> (ActorRef<Says>, Seen, thalweg_runtime::Sender<()>) {
    let seen = Seen::default();
    let actor = Builder::new().mailbox(mailbox).start(Says(seen.clone()));
    let (release, hold) = channel();
    actor.cast(Hold(hold)).unwrap();
    (actor, seen, release)
}

fn say(actor: &ActorRef<Says>, priority: Priority, line: impl Into<String>) {
    let actor = actor.with_priority(priority);
    actor.cast(Line(line.into())).expect("there is room");
}

/// Waits until the actor has handled all queued messages and has ended.
fn end(actor: ActorRef<Says>) {
    let end = actor.pid().monitor();
    drop(actor);
    end.wait();
}

#[test]
fn messages_are_handled_by_priority_then_age() {
    on_both(|| {
        let (actor, seen, release) = held(Mailbox::default());
        for n in 0..3 {
            say(&actor, Priority::Low, format!("low {n}"));
            say(&actor, Priority::Normal, format!("normal {n}"));
            say(&actor, Priority::High, format!("high {n}"));
        }
        drop(release);
        end(actor);
        let by_priority: Vec<_> = ["high", "normal", "low"]
            .iter()
            .flat_map(|name| (0..3).map(move |n| format!("{name} {n}")))
            .collect();
        assert_eq!(seen.take(), by_priority);
    });
}

#[test]
fn full_mailbox_accepts_high_priority_messages() {
    on_both(|| {
        let (actor, seen, release) = held(Mailbox {
            capacity: 4,
            overflow: Overflow::Fail,
        });
        let mut casts = 0;
        while actor.cast(Line("normal".into())).is_ok() {
            casts += 1;
        }
        let low = actor.with_priority(Priority::Low);
        assert!(matches!(
            low.cast(Line("low".into())),
            Err(SendError::Full(_))
        ));
        let high = actor.with_priority(Priority::High);
        for _ in 0..4 {
            high.cast(Line("high".into()))
                .expect("there is as much room again");
        }
        assert!(matches!(
            high.cast(Line("high".into())),
            Err(SendError::Full(_))
        ));
        drop((release, low, high));
        end(actor);
        let seen = seen.take();
        assert_eq!(seen.len(), 4 + casts);
        assert!(seen[..4].iter().all(|line| line == "high"), "{seen:?}");
    });
}

#[test]
fn waiting_high_priority_sender_gets_capacity_in_time() {
    on_both(|| {
        let (actor, seen, release) = held(Mailbox {
            capacity: 1,
            overflow: Overflow::Block,
        });
        let senders: Vec<_> = [Priority::Low, Priority::Normal, Priority::High]
            .into_iter()
            .flat_map(|priority| {
                let actor = actor.clone();
                (0..100).map(move |_| {
                    let actor = actor.with_priority(priority);
                    spawn(move || actor.cast(Line(format!("{priority:?}"))).is_ok())
                })
            })
            .collect();
        drop(release);
        for sender in senders {
            assert!(sender.join().unwrap());
        }
        end(actor);
        assert_eq!(seen.take().len(), 300);
    });
}

#[test]
fn flood_does_not_starve_lower_priorities() {
    /// Sends itself more messages until all others have arrived or a limit is reached.
    struct Flooded {
        came: u32,
        handled: u32,
        seen: Seen,
    }
    struct Flood(Priority);
    struct Other(Priority);
    struct Last;
    const NO_HOPE: u32 = 1_000;
    impl Actor for Flooded {}
    impl Handler<Hold> for Flooded {
        type Reply = ();
        fn handle(&mut self, hold: Hold, _: &Context<'_, Self>) {
            let _ = hold.0.recv();
        }
    }
    impl Handler<Flood> for Flooded {
        type Reply = ();
        fn handle(&mut self, Flood(priority): Flood, context: &Context<'_, Self>) {
            self.handled += 1;
            if self.came < 2 && self.handled < NO_HOPE {
                let actor = context.actor().with_priority(priority);
                actor.cast(Flood(priority)).unwrap();
            }
        }
    }
    impl Handler<Other> for Flooded {
        type Reply = ();
        fn handle(&mut self, Other(priority): Other, _: &Context<'_, Self>) {
            self.came += 1;
            assert!(self.handled < NO_HOPE, "{priority:?}");
            self.seen.add(format!("{priority:?}"));
        }
    }
    impl Handler<Last> for Flooded {
        type Reply = ();
        fn handle(&mut self, _: Last, _: &Context<'_, Self>) {}
    }
    on_both(|| {
        for flood in [Priority::High, Priority::Normal] {
            let seen = Seen::default();
            let actor = start(Flooded {
                came: 0,
                handled: 0,
                seen: seen.clone(),
            });
            let first = actor.with_priority(flood);
            let (release, hold) = channel();
            first.cast(Hold(hold)).unwrap();
            for _ in 0..2 {
                first.cast(Flood(flood)).unwrap();
            }
            for other in [Priority::Normal, Priority::Low] {
                actor.with_priority(other).cast(Other(other)).unwrap();
            }
            drop(release);
            actor.with_priority(Priority::Low).call(Last).unwrap();
            assert_eq!(seen.take(), ["Normal", "Low"], "{flood:?}");
        }
    });
}

#[test]
fn waiting_messages_of_all_priorities_survive_a_restart() {
    on_both(|| {
        let seen = Seen::default();
        let (spec, actor) = ChildSpec::actor("says", {
            let seen = seen.clone();
            move || Says(seen.clone())
        });
        let supervisor = Supervisor::new(Strategy::OneForOne).child(spec);
        let supervisor = supervisor.start().unwrap();
        let (release, hold) = channel();
        actor.cast(Hold(hold)).unwrap();
        actor.with_priority(Priority::High).cast(Fail).unwrap();
        say(&actor, Priority::Low, "low");
        say(&actor, Priority::Normal, "normal");
        say(&actor, Priority::High, "high");
        drop(release);
        actor
            .with_priority(Priority::Low)
            .call(Line("last".into()))
            .unwrap();
        assert_eq!(seen.take(), ["high", "normal", "low", "last"]);
        drop(supervisor);
    });
}

#[test]
fn waiting_messages_of_all_priorities_are_dropped_with_the_actor() {
    let alive = Arc::new(());
    struct Heavy(#[expect(dead_code, reason = "its count is looked at")] Arc<()>);
    impl Handler<Heavy> for Says {
        type Reply = ();
        fn handle(&mut self, _: Heavy, _: &Context<'_, Self>) {
            unreachable!("it is stopped before");
        }
    }
    let heavy = Arc::clone(&alive);
    init(Config::with_workers(2)).unwrap().run(move || {
        let (actor, _, release) = held(Mailbox::default());
        actor.stop();
        for priority in [Priority::Low, Priority::Normal, Priority::High] {
            for _ in 0..3 {
                let actor = actor.with_priority(priority);
                let _ = actor.cast(Heavy(Arc::clone(&heavy)));
            }
        }
        drop(release);
        end(actor);
    });
    assert_eq!(Arc::strong_count(&alive), 1);
}
