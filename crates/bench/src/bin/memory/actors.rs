//! Measures the heap and the resident memory of an idle actor.

use std::fs;

use thalweg_peers::actors::by_hand::ByHand;
use thalweg_peers::actors::kameo::Kameo;
use thalweg_peers::actors::ractor::Ractor;
use thalweg_peers::actors::{Counter, idle};
use thalweg_peers::tokio_runtime::Tokio;
use thalweg_runtime::runtime::init;
use thalweg_runtime::{Actor, ActorRef, Config, Context, Handler, start};

use crate::live;

/// The default of kameo. The mailboxes of ractor are unbounded.
const KAMEOS_ROOM: Option<usize> = Some(64);
/// The first actor is created before the measurement, so that one-time allocations are not counted.
const FIRST: u64 = 1;

#[derive(Clone, Copy)]
struct Memory {
    heap: i64,
    rss: i64,
}

impl Memory {
    fn now() -> Self {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .expect("the kernel reports VmRSS");
        let kib = line.trim().trim_end_matches(" kB").parse::<i64>();
        Self {
            heap: live(),
            rss: 1024 * kib.expect("in kB"),
        }
    }
}

/// Prints what each of `actors` actors of the subject takes.
///
/// # Errors
/// The subject does not exist, or `actors` is not a number in range.
pub fn one(subject: &str, actors: &str) -> Result<(), String> {
    let actors = actors
        .parse()
        .ok()
        .filter(|actors| (1..=1 << 20).contains(actors))
        .ok_or_else(|| format!("1 to a million actors, not `{actors}`"))?;
    let (before, after) = match subject {
        "thalweg" => ours(actors)?,
        "tokio_current_thread" => theirs::<ByHand>(actors, None)?,
        "ractor" => theirs::<Ractor>(actors, None)?,
        "kameo" => theirs::<Kameo>(actors, KAMEOS_ROOM)?,
        other => return Err(format!("{other} is not measured")),
    };
    let each = |before: i64, after: i64| (after - before) as f64 / actors as f64;
    let (heap, rss) = (each(before.heap, after.heap), each(before.rss, after.rss));
    println!(r#"{{"heap": {heap}, "rss": {rss}}}"#);
    Ok(())
}

/// Allocates space for the references, then measures the memory before and after the actors exist.
fn measured<T, R>(actors: u64, make: impl FnOnce(Vec<T>) -> R) -> (Memory, R) {
    let all = Vec::with_capacity(actors as usize);
    (Memory::now(), make(all))
}

struct Counting;
struct Next(u64);

impl Actor for Counting {}

impl Handler<Next> for Counting {
    type Reply = u64;
    fn handle(&mut self, Next(number): Next, _: &Context<'_, Self>) -> u64 {
        number + 1
    }
}

fn ours(actors: u64) -> Result<(Memory, Memory), String> {
    let make = |number| {
        let actor: ActorRef<Counting> = start(Counting);
        assert_eq!(actor.call(Next(number)), Ok(number + 1));
        actor
    };
    let ready = init(Config::with_workers(1)).map_err(|error| error.to_string())?;
    Ok(ready.run(move || {
        let _first: Vec<_> = (0..FIRST).map(make).collect();
        measured(actors, |mut all| {
            all.extend((0..actors).map(make));
            Memory::now()
        })
    }))
}

fn theirs<C: Counter>(actors: u64, room: Option<usize>) -> Result<(Memory, Memory), String> {
    let tokio = Tokio::start(1, false).map_err(|error| error.to_string())?;
    Ok(tokio.run(async move {
        let mut first = Vec::new();
        idle::<C>(&mut first, FIRST, room).await;
        let (before, all) = measured(actors, |mut all| async move {
            idle::<C>(&mut all, actors, room).await;
            (Memory::now(), all)
        });
        let (after, _all) = all.await;
        (before, after)
    }))
}
