//! `actor_call`, `actor_cast`, `actor_spawn_stop`: actors that have state and no stack, against two
//! actor libraries on tokio, and against an actor written by hand with a task and a channel.
//!
//! The targets refer to the libraries. The caller is an actor on our side and a task on tokio's
//! side: an actor of the library would be no faster.
//!
//! | parameter | value | meaning |
//! | --- | --- | --- |
//! | `deadline` | `default` | each library's default timeout: ours is five seconds, as in OTP; the others wait without a limit |
//! | | `same` | five seconds for all of them |
//! | `mailbox` | `1024` | a capacity of 1,024 messages; a full mailbox blocks the sender. This is our default. `ractor` has no such mailbox |
//! | | `unbounded` | any number of messages: ours has a capacity of 2^31. `kameo`'s own default of 64 blocks its sender more often |

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use thalweg_peers::actors::by_hand::ByHand;
use thalweg_peers::actors::kameo::Kameo;
use thalweg_peers::actors::ractor::Ractor;
use thalweg_peers::actors::{self, Count};
use thalweg_runtime::{
    Actor, ActorRef, Builder, Context, Handler, Mailbox, Signal, channel, start,
};

use crate::cell::Cell;
use crate::problem::Problem;
use crate::workloads::Workload;

use super::driver::{open, run};
use super::pair::{ENDS, Found, Pair, same, sum_below};
use super::point::{either, knobs};

/// Both libraries.
pub const LIBRARIES: &[&str] = &["ractor", "kameo"];

/// Calls, one after another.
pub const CALL: Workload = Workload {
    name: "actor_call",
    group: "runtime",
    what: "One actor repeatedly calls another and waits for the reply.",
    source: "the `ask` of every library of actors, and OTP's gen_server:call",
    peers: &[
        "tokio_current_thread",
        "tokio_multi_thread",
        "ractor",
        "kameo",
    ],
    seconds: 90,
    run: run::<Calls>,
    knobs: knobs![
        ("rounds", "10000", "calls, one after another"),
        (
            "deadline",
            "default,same",
            "default: each library's own timeout; same: at most five seconds for all; as a list"
        )
    ],
    cells: Some(open::<Calls>),
};

/// Casts, as many as the mailbox accepts.
pub const CAST: Workload = Workload {
    name: "actor_cast",
    what: "One actor casts to another, until the last message is handled.",
    source: "the `tell` of every library of actors, and OTP's gen_server:cast",
    seconds: 90,
    run: run::<Casts>,
    knobs: knobs![
        ("messages", "100000", "casts"),
        (
            "mailbox",
            "1024,unbounded",
            "capacity of the mailbox, or unbounded, as a list; ractor has only the second"
        )
    ],
    cells: Some(open::<Casts>),
    ..CALL
};

/// Actors, started and stopped one after another.
pub const SPAWN_STOP: Workload = Workload {
    name: "actor_spawn_stop",
    what: "An actor is repeatedly started, stopped and awaited.",
    source: "the cost of an actor library when actors are many and short-lived",
    seconds: 45,
    run: run::<Lives>,
    knobs: knobs![("actors", "1000", "actors, one after another")],
    cells: Some(open::<Lives>),
    ..CALL
};

/// Our actor and its state.
#[derive(Debug, Default)]
pub struct Counting {
    count: Count,
    ended: Arc<AtomicU64>,
}

/// A cast.
#[derive(Debug)]
pub struct Add(u64);
/// A call; the reply is the next number.
#[derive(Debug)]
pub struct Next(pub u64);
/// A call; the reply is the count of received numbers, and the count of those that were out of
/// order.
#[derive(Debug)]
struct Both;

impl Actor for Counting {
    fn stopped(&mut self) {
        self.ended.fetch_add(1, Ordering::Release);
    }
}

impl Handler<Add> for Counting {
    type Reply = ();
    fn handle(&mut self, Add(number): Add, _: &Context<'_, Self>) {
        self.count.add(number);
    }
}

impl Handler<Next> for Counting {
    type Reply = u64;
    fn handle(&mut self, Next(number): Next, _: &Context<'_, Self>) -> u64 {
        number + 1
    }
}

impl Handler<Both> for Counting {
    type Reply = (u64, u64);
    fn handle(&mut self, _: Both, _: &Context<'_, Self>) -> (u64, u64) {
        self.count.both()
    }
}

/// The default timeout of calls in OTP and in Thalweg.
const FIVE_SECONDS: Duration = Duration::from_secs(5);
/// The largest capacity of our mailboxes.
const ANY: u32 = 1 << 31;

/// See [`CALL`].
#[derive(Clone, Copy, Debug)]
pub struct Calls {
    rounds: u64,
    /// The timeout of the other libraries; ours is always five seconds.
    within: Option<Duration>,
}

impl Pair for Calls {
    const WORKLOAD: &'static Workload = &CALL;
    const BARS: Option<(f64, f64)> = Some((0.5, 0.5));
    const CHECKED: &'static str = "an operation is a call and its reply; each reply is the number after the one that was sent, by their sum";
    type Found = u64;

    fn of(cell: &Cell) -> Result<Self, Problem> {
        let within = either(cell, "deadline", "same", "default")?.then_some(FIVE_SECONDS);
        Ok(Self {
            rounds: cell.number("rounds")?,
            within,
        })
    }

    fn libraries(self) -> &'static [&'static str] {
        LIBRARIES
    }

    fn operations(self) -> u64 {
        self.rounds
    }

    fn ours(self) -> u64 {
        let counter = start(Counting::default());
        let mut sum = 0;
        for number in 0..self.rounds {
            sum += counter.call(Next(number)).expect(ENDS);
        }
        counter.stop();
        sum
    }

    fn tokio(self) -> impl Future<Output = u64> + Send + 'static {
        actors::calls::<ByHand>(self.rounds, self.within)
    }

    fn library(self, name: &str) -> Found<u64> {
        match name {
            "ractor" => Box::pin(actors::calls::<Ractor>(self.rounds, self.within)),
            _ => Box::pin(actors::calls::<Kameo>(self.rounds, self.within)),
        }
    }

    fn check(self, sum: &u64) -> Result<(), String> {
        same("sum of the replies", *sum, sum_below(self.rounds + 1))
    }
}

/// See [`CAST`].
#[derive(Clone, Copy, Debug)]
pub struct Casts {
    messages: u64,
    room: Option<u32>,
}

impl Pair for Casts {
    const WORKLOAD: &'static Workload = &CAST;
    const BARS: Option<(f64, f64)> = Some((0.4, 0.4));
    const CHECKED: &'static str =
        "an operation is a cast that was handled; all arrived, and in order";
    /// The number of received casts, and of those out of order.
    type Found = (u64, u64);

    fn of(cell: &Cell) -> Result<Self, Problem> {
        let room = match cell.text("mailbox")? {
            "unbounded" => None,
            _ => Some(
                u32::try_from(cell.number("mailbox")?)
                    .ok()
                    .filter(|room| (1..=ANY).contains(room))
                    .ok_or_else(|| {
                        Problem::Usage("a mailbox has room for 1 to 2^31 messages".to_owned())
                    })?,
            ),
        };
        Ok(Self {
            messages: cell.number("messages")?,
            room,
        })
    }

    fn libraries(self) -> &'static [&'static str] {
        match self.room {
            Some(_) => &["kameo"],
            None => LIBRARIES,
        }
    }

    fn operations(self) -> u64 {
        self.messages
    }

    fn ours(self) -> Self::Found {
        let mailbox = Mailbox {
            capacity: self.room.unwrap_or(ANY),
            ..Mailbox::default()
        };
        let counter = Builder::new().mailbox(mailbox).start(Counting::default());
        for number in 0..self.messages {
            counter.cast(Add(number)).expect(ENDS);
        }
        let both = counter.call(Both).expect(ENDS);
        counter.stop();
        both
    }

    fn tokio(self) -> impl Future<Output = Self::Found> + Send + 'static {
        actors::casts::<ByHand>(self.messages, self.bound())
    }

    fn library(self, name: &str) -> Found<Self::Found> {
        match name {
            "ractor" => Box::pin(actors::casts::<Ractor>(self.messages, self.bound())),
            _ => Box::pin(actors::casts::<Kameo>(self.messages, self.bound())),
        }
    }

    fn check(self, found: &Self::Found) -> Result<(), String> {
        same("casts, and those out of order", *found, (self.messages, 0))
    }
}

impl Casts {
    fn bound(self) -> Option<usize> {
        self.room.map(|room| room as usize)
    }
}

/// See [`SPAWN_STOP`].
#[derive(Clone, Copy, Debug)]
pub struct Lives {
    actors: u64,
}

impl Pair for Lives {
    const WORKLOAD: &'static Workload = &SPAWN_STOP;
    const CHECKED: &'static str =
        "an operation is an actor, started, stopped and ended; as many ended as were started";
    type Found = u64;

    fn of(cell: &Cell) -> Result<Self, Problem> {
        Ok(Self {
            actors: cell.number("actors")?,
        })
    }

    fn libraries(self) -> &'static [&'static str] {
        LIBRARIES
    }

    fn operations(self) -> u64 {
        self.actors
    }

    fn ours(self) -> u64 {
        let ended = Arc::default();
        let (supervisor, ends) = channel();
        for _ in 0..self.actors {
            let actor: ActorRef<Counting> =
                Builder::new()
                    .supervisor(supervisor.clone())
                    .start(Counting {
                        count: Count::default(),
                        ended: Arc::clone(&ended),
                    });
            actor.stop();
            let end = ends.recv().expect(ENDS);
            assert!(matches!(end, Signal::Exit(id) if id == actor.id()));
        }
        ended.load(Ordering::Acquire)
    }

    fn tokio(self) -> impl Future<Output = u64> + Send + 'static {
        actors::started_and_ended::<ByHand>(self.actors)
    }

    fn library(self, name: &str) -> Found<u64> {
        match name {
            "ractor" => Box::pin(actors::started_and_ended::<Ractor>(self.actors)),
            _ => Box::pin(actors::started_and_ended::<Kameo>(self.actors)),
        }
    }

    fn check(self, ended: &u64) -> Result<(), String> {
        same("actors that ended", *ended, self.actors)
    }
}
