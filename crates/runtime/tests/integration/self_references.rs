//! References that an actor has to itself: those of `Context::actor()`.

use std::sync::mpsc;

use crate::kit::on_both;
use thalweg_runtime::{Actor, ActorRef, Context, Handler, Sender, channel, spawn, start};

/// Reports its events in order.
struct Recorder {
    events: Sender<&'static str>,
    kept: Option<ActorRef<Self>>,
}

impl Actor for Recorder {
    fn stopped(&mut self) {
        self.tell("stopped");
    }
}

impl Recorder {
    fn tell(&self, event: &'static str) {
        self.events.send(event).expect("the test reads the events");
    }
}

/// Waits until the other end is dropped, then acts on the actor's own reference.
struct WhenReleased(
    thalweg_runtime::Receiver<()>,
    fn(&mut Recorder, ActorRef<Recorder>),
);

/// Drops the reference that the actor keeps.
struct Release;

impl Handler<WhenReleased> for Recorder {
    type Reply = ();
    fn handle(&mut self, message: WhenReleased, context: &Context<'_, Self>) {
        self.tell("begun");
        assert!(message.0.recv().is_err());
        (message.1)(self, context.actor());
    }
}

impl Handler<Release> for Recorder {
    type Reply = ();
    fn handle(&mut self, _: Release, _: &Context<'_, Self>) {
        self.tell("released");
        self.kept = None;
    }
}

/// The events of an actor whose last outside reference is dropped while its handler runs. The
/// handler then calls `act` with a new reference.
fn events_of(act: fn(&mut Recorder, ActorRef<Recorder>)) -> Vec<&'static str> {
    let (events, told) = channel();
    let actor = start(Recorder { events, kept: None });
    let (release, released) = channel();
    actor
        .cast(WhenReleased(released, act))
        .expect("it is alive");
    assert_eq!(told.recv(), Ok("begun"));
    drop(actor);
    drop(release);
    // The sender is dropped when the actor ends.
    std::iter::from_fn(|| told.recv().ok()).collect()
}

#[test]
fn context_actor_after_the_last_outside_reference_can_send() {
    on_both(|| {
        let events = events_of(|recorder, me| {
            assert!(me.is_alive());
            recorder.tell("casts");
            me.cast(Release).expect("the handler of this actor runs");
        });
        assert_eq!(events, ["casts", "released", "stopped"]);
    });
}

#[test]
fn context_actor_that_the_state_keeps_keeps_the_actor_alive() {
    on_both(|| {
        let events = events_of(|recorder, me| {
            let weak = me.clone();
            recorder.kept = Some(me);
            // Another actor sends it, after this handler.
            spawn(move || weak.cast(Release).expect("the state keeps a reference"));
        });
        assert_eq!(events, ["released", "stopped"]);
    });
}

#[test]
fn context_actor_given_to_a_caller_answers_its_calls() {
    struct Give;
    struct Ask;
    struct Giver;
    impl Actor for Giver {}
    impl Handler<(Give, Sender<ActorRef<Giver>>, thalweg_runtime::Receiver<()>)> for Giver {
        type Reply = ();
        fn handle(
            &mut self,
            (_, to, released): (Give, Sender<ActorRef<Giver>>, thalweg_runtime::Receiver<()>),
            context: &Context<'_, Self>,
        ) {
            assert!(released.recv().is_err());
            to.send(context.actor()).expect("the test takes it");
        }
    }
    impl Handler<Ask> for Giver {
        type Reply = u32;
        fn handle(&mut self, _: Ask, _: &Context<'_, Self>) -> u32 {
            42
        }
    }
    on_both(|| {
        let giver = start(Giver);
        let (to, given) = channel();
        let (release, released) = channel();
        giver.cast((Give, to, released)).expect("it is alive");
        drop(giver);
        drop(release);
        let giver = given.recv().expect("it gives a reference");
        assert_eq!(giver.call(Ask), Ok(42));
    });
}

#[test]
fn context_actor_dropped_by_the_handler_ends_the_actor() {
    on_both(|| {
        let events = events_of(|_, me| drop(me));
        assert_eq!(events, ["stopped"]);
    });
}

#[test]
fn context_actor_in_started_outlives_a_reference_dropped_at_once() {
    struct Starter(mpsc::Sender<&'static str>);
    impl Actor for Starter {
        fn started(&mut self, context: &Context<'_, Self>) {
            context.actor().cast(Release).expect("it has just started");
        }
    }
    impl Handler<Release> for Starter {
        type Reply = ();
        fn handle(&mut self, _: Release, _: &Context<'_, Self>) {
            self.0.send("released").expect("the test reads the events");
        }
    }
    on_both(|| {
        let (events, told) = mpsc::channel();
        drop(start(Starter(events)));
        // The sender is dropped when the actor ends. No actor is needed for that, so a thread may
        // wait.
        let told = std::thread::spawn(move || told.iter().collect::<Vec<_>>());
        thalweg_runtime::io::blocking(|| assert_eq!(told.join().unwrap(), ["released"]));
    });
}
