//! Workers that record their events, and supervision trees of them.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::sync::{Arc, Mutex};

use thalweg_runtime::supervisor::{
    ChildSpec, ChildState, Restart, Strategy, Supervisor, SupervisorRef,
};
use thalweg_runtime::{Actor, ActorRef, Context, ExitReason, Handler, exit};

pub use crate::kit::{LONG, on_both};

/// The events, in order.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub fn add(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

/// Records when it starts and stops.
pub struct Worker {
    pub name: &'static str,
    pub log: Log,
    pub handled: u32,
}

pub struct Panic;
pub struct Stop;
pub struct Ping;
pub struct ExitWith(pub ExitReason);

impl Actor for Worker {
    fn started(&mut self, _: &Context<'_, Self>) {
        self.log.add(format!("+{}", self.name));
    }

    fn stopped(&mut self) {
        self.log.add(format!("-{}", self.name));
    }
}

impl Handler<Panic> for Worker {
    type Reply = ();
    fn handle(&mut self, _: Panic, _: &Context<'_, Self>) {
        panic!("{} was told to", self.name);
    }
}

impl Handler<Stop> for Worker {
    type Reply = ();
    fn handle(&mut self, _: Stop, context: &Context<'_, Self>) {
        context.stop();
    }
}

impl Handler<ExitWith> for Worker {
    type Reply = ();
    fn handle(&mut self, ExitWith(reason): ExitWith, _: &Context<'_, Self>) {
        exit(reason);
    }
}

impl Handler<Ping> for Worker {
    type Reply = u32;
    fn handle(&mut self, _: Ping, _: &Context<'_, Self>) -> u32 {
        self.handled += 1;
        self.handled
    }
}

pub fn worker(name: &'static str, log: &Log) -> (ChildSpec, ActorRef<Worker>) {
    let log = log.clone();
    ChildSpec::actor(name, move || Worker {
        name,
        log: log.clone(),
        handled: 0,
    })
}

/// Three workers, a, b and c.
pub fn three(
    log: &Log,
    strategy: Strategy,
    restart: Restart,
) -> (SupervisorRef, [ActorRef<Worker>; 3]) {
    let mut supervisor = Supervisor::new(strategy).intensity(10, LONG);
    let all = ["a", "b", "c"].map(|name| {
        let (spec, actor) = worker(name, log);
        supervisor = supervisor.clone().child(spec.restart(restart));
        actor
    });
    (supervisor.start().expect("all start"), all)
}

pub fn states(supervisor: &SupervisorRef) -> Vec<(String, ChildState)> {
    let children = supervisor.which_children().expect("it lives");
    children
        .into_iter()
        .map(|child| (child.id, child.state))
        .collect()
}
