//! `live_actors`: many waiting actors: the memory of each, and the processor time of all, which
//! must be zero.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use thalweg_runtime::{Actor, ActorRef, Builder, Config, Context, Handler, Runtime, channel, wait};

use crate::cell::{Cell, Sample};
use crate::interleave::{Plan, Side};
use crate::judgement::Target;
use crate::lab::Lab;
use crate::problem::Problem;
use crate::processes;
use crate::report::Row;
use crate::workloads::idle::Switches;
use crate::workloads::queue::subjects::THALWEG;
use crate::workloads::{Knob, Workload};

use super::point::either;

/// See the module.
pub const WORKLOAD: Workload = Workload {
    name: "live_actors",
    group: "runtime",
    what: "Actors that exist and wait: their creation time, the bytes and mappings of each, and the processor time that they use in some seconds.",
    source: "a million live actors, and 10,000 parked ones that cost nothing: DESIGN's own bars",
    peers: &[],
    seconds: 300,
    run,
    knobs: &[ACTORS, KIND, SECONDS],
    cells: Some(open),
};

const ACTORS: Knob = Knob {
    name: "actors",
    default: "10000,1000000",
    what: "number of actors, as a list; a million, of which parked ones take 5 GB, is left out of a quick run and on a machine with less than 8 GB",
};
const KIND: Knob = Knob {
    name: "kind",
    default: "behaviour,parked",
    what: "behaviour: a state and a mailbox, which answers a call; parked: a closure with a stack that waits; as a list",
};
const SECONDS: Knob = Knob {
    name: "seconds",
    default: "5",
    what: "how long they are observed while they wait",
};

const MILLION: &str = "1000000";
/// The limit for an idle behaviour actor, in bytes.
const MOST_BYTES: f64 = 512.0;
/// The time in which the workers fall asleep.
const SETTLE: Duration = Duration::from_millis(200);
const QUICK_WATCH: Duration = Duration::from_millis(200);
const CHECKED: &str = "an operation is an actor: made, and answering a call, or parked; all answered, or all had begun; bytes are of resident memory and mappings of the process, each less what was there before";
const WORKERS: usize = 2;

fn run(lab: &mut Lab) -> Result<Vec<Row>, Problem> {
    let mut rows = Vec::new();
    let list = |knob: &Knob| -> Vec<String> {
        let text = lab.knob(knob);
        text.split(',').map(|word| word.trim().to_owned()).collect()
    };
    for kind in list(&KIND) {
        for actors in list(&ACTORS) {
            if lab.knob(&ACTORS) == ACTORS.default && actors == MILLION && !has_room(lab) {
                continue;
            }
            let seconds = lab.knob(&SECONDS);
            let params = [
                ("actors", actors.as_str()),
                ("kind", kind.as_str()),
                ("seconds", seconds.as_str()),
            ];
            let cell = Cell::new(WORKLOAD.name, &params, &[THALWEG]);
            // Each sample has its own process: memory that one sample leaves in the allocator would
            // not be requested again by the next.
            let plan = Plan {
                warm_up: 0,
                ..lab.plan(None)
            };
            let taken = processes::sample(lab, &cell, plan, plan.rounds)?;
            let times = processes::times(&taken[0]);
            let name = (WORKLOAD.name, WORKLOAD.group);
            let mut row = Row::new(name, &params, "ns", (THALWEG, times), None).checked(CHECKED);
            row.add_metrics("", processes::metrics(&taken[0]));
            let mut targets = vec![Target::Metric("context_switches", 0.0)];
            if kind == "behaviour" {
                targets.push(Target::Metric("bytes", MOST_BYTES));
            }
            // The figures are counts, not times, but a short observation proves little.
            rows.push(row.held_to(&Target::All(targets), lab.refusal()));
        }
    }
    Ok(rows)
}

/// Whether a million actors are measured unless somebody asks for them.
fn has_room(lab: &Lab) -> bool {
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let available = meminfo.lines().find_map(|line| {
        let kib = line
            .strip_prefix("MemAvailable:")?
            .trim()
            .strip_suffix(" kB")?;
        kib.parse::<u64>().ok()
    });
    !lab.quick() && available.is_some_and(|kib| kib >= 8_000_000)
}

fn open(cell: &Cell) -> Result<Vec<Side<'static, Sample>>, Problem> {
    let actors = cell.number("actors")?;
    let seconds = Duration::from_secs(cell.number("seconds")?);
    let watch = if cell.quick { QUICK_WATCH } else { seconds };
    let make = match either(cell, KIND.name, "behaviour", "parked")? {
        true => behaviour,
        false => parked,
    };
    let side = Side::new(move || {
        let runtime = Runtime::start(Config::with_workers(WORKERS))
            .map_err(|error| Problem::NotReady(error.to_string()))?;
        // One actor of the kind is created first, so that one-time allocations are not counted.
        let _first = make(&runtime, 1)?;
        let before = Memory::now()?;
        let began = Instant::now();
        let kept = make(&runtime, actors)?;
        let sample = Sample::of(began.elapsed(), actors);
        let memory = Memory::now()?;
        let watched = Watched::during(watch)?;
        drop(kept);
        Ok(sample
            .with("bytes", (memory.bytes - before.bytes) / actors as f64)
            .with("rss_mib", memory.bytes / f64::from(1 << 20))
            .with("mappings", memory.mappings - before.mappings)
            .with("cpu_percent", watched.cpu_percent)
            .with("context_switches", watched.switches))
    });
    Ok(vec![side])
}

/// References to the actors, if there are any.
type Kept = Vec<ActorRef<Counter>>;

struct Counter(u64);
struct Next;

impl Actor for Counter {}

impl Handler<Next> for Counter {
    type Reply = u64;
    fn handle(&mut self, _: Next, _: &Context<'_, Self>) -> u64 {
        self.0 += 1;
        self.0
    }
}

fn behaviour(runtime: &Runtime, count: u64) -> Result<Kept, Problem> {
    let (done, answered) = channel();
    let handle = runtime.handle().clone();
    drop(runtime.handle().spawn(move || {
        let actors: Vec<_> = (0..count)
            .map(|number| Builder::new().start_on(&handle, Counter(number)))
            .collect();
        let right = (0..)
            .zip(&actors)
            .all(|(number, actor)| actor.call(Next) == Ok(number + 1));
        let _ = done.send((actors, right));
    }));
    let (actors, right) = answered
        .recv()
        .map_err(|_| Problem::Check("the actor that makes the others ended early".to_owned()))?;
    if right {
        return Ok(actors);
    }
    Err(Problem::Check(
        "an actor did not answer with its own number".to_owned(),
    ))
}

fn parked(runtime: &Runtime, count: u64) -> Result<Kept, Problem> {
    let begun = Arc::new(AtomicU64::new(0));
    for _ in 0..count {
        let begun = Arc::clone(&begun);
        drop(runtime.handle().spawn(move || {
            begun.fetch_add(1, Ordering::Relaxed);
            while !wait::is_stopping() {
                let _ = wait::park(None);
            }
        }));
    }
    // Polls at intervals, because nothing wakes this thread.
    let patience = Instant::now() + Duration::from_secs(120);
    while begun.load(Ordering::Relaxed) < count {
        if Instant::now() > patience {
            let begun = begun.load(Ordering::Relaxed);
            return Err(Problem::Check(format!("{begun} of {count} actors began")));
        }
        thread::sleep(Duration::from_micros(200));
    }
    Ok(Vec::new())
}

/// The process's memory and mappings, as counted by the kernel.
struct Memory {
    bytes: f64,
    mappings: f64,
}

impl Memory {
    fn now() -> Result<Self, Problem> {
        let read = |file: &str| fs::read_to_string(file).map_err(Problem::io(file.to_owned()));
        let status = read("/proc/self/status")?;
        Ok(Self {
            bytes: resident(&status)
                .ok_or_else(|| Problem::Check("the kernel reports no VmRSS".to_owned()))?,
            mappings: read("/proc/self/maps")?.lines().count() as f64,
        })
    }
}

/// The bytes in `VmRSS:     1234 kB`.
fn resident(status: &str) -> Option<f64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: f64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kib * 1024.0)
}

/// The activity of the process while it is idle.
struct Watched {
    cpu_percent: f64,
    switches: f64,
}

impl Watched {
    fn during(span: Duration) -> Result<Self, Problem> {
        let count = || Switches::of(std::process::id(), "tw-");
        thread::sleep(SETTLE);
        let (switches, cpu, began) = (count()?, processor_time(), Instant::now());
        thread::sleep(span);
        let (took, cpu) = (began.elapsed(), processor_time() - cpu);
        let after = count()?;
        if switches.threads == 0 || switches.threads != after.threads {
            return Err(Problem::Check(format!(
                "{} threads named tw-* became {}",
                switches.threads, after.threads
            )));
        }
        Ok(Self {
            cpu_percent: 100.0 * cpu / took.as_secs_f64(),
            switches: (after.switches - switches.switches) as f64,
        })
    }
}

/// The processor time of the process so far, in s.
fn processor_time() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resident_memory_is_read_in_bytes() {
        assert_eq!(
            resident("Name:\tx\nVmRSS:\t    1234 kB\n"),
            Some(1_263_616.0)
        );
        assert_eq!(resident("Name:\tx\n"), None);
        assert!(Memory::now().unwrap().bytes > 0.0);
    }

    #[test]
    fn actors_of_both_kinds_are_made_and_counted() {
        let runtime = Runtime::start(Config::with_workers(WORKERS)).unwrap();
        for make in [behaviour, parked] {
            drop(make(&runtime, 10).unwrap());
        }
    }
}
