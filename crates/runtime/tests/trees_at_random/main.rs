//! Random trees with panics, kills, stops, slow starts, floods, and shortage of stacks and of
//! memory for them: no accepted message is lost, no two incarnations of a child live at once,
//! nothing stays behind, and nothing hangs. `THALWEG_TREES` sets how many trees there are (ten
//! thousand by default, a million in `make prove`), `THALWEG_TEST_SEED` the first seed; a failure
//! names its own.
//!
//! In half of the runtimes `max_stacks` is small, and other actors (`shortage`) take all stacks
//! from time to time, including those that are reserved for turns. There the system also refuses
//! most new stacks for a while.
//!
//! A process of its own: it replaces the panic hook, and makes the whole process short of stacks.

#[path = "../integration/kit.rs"]
mod kit;
mod shortage;

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use thalweg_runtime::supervisor::{
    Backoff, ChildSpec, Restart, Shutdown, Strategy, Supervisor, SupervisorRef,
};
use thalweg_runtime::{
    Actor, ActorRef, Config, Context, Handler, JoinError, Pid, init, sleep, spawn, yield_now,
};

use kit::{LONG, Random, one_seed, setting};
use shortage::Shortage;

/// The shared state and the counters of one tree.
#[derive(Default)]
struct World {
    live: AtomicUsize,
    overlaps: AtomicUsize,
    accepted: AtomicU64,
    /// Messages whose handling began, whatever its result.
    begun: AtomicU64,
    /// Messages dropped unread.
    dropped: AtomicU64,
    tired: AtomicBool,
    random: Mutex<Option<Random>>,
    /// Set when stacks are short.
    shortage: Option<Arc<Shortage>>,
}

impl World {
    fn below(&self, n: u64) -> u64 {
        let random = self.random.lock().unwrap();
        random.as_ref().expect("it was seeded").below(n)
    }

    /// Whether something bad happens now; never after the tree is `tired`.
    fn is_unlucky(&self, one_in: u64) -> bool {
        !self.tired.load(Ordering::Relaxed) && self.below(one_in) == 0
    }
}

/// A message that records whether it was handled or dropped unread.
struct Parcel {
    world: Arc<World>,
    begun: bool,
}

impl Drop for Parcel {
    fn drop(&mut self) {
        if !self.begun {
            self.world.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// One incarnation of a child.
struct Life {
    world: Arc<World>,
    mine: Arc<AtomicBool>,
    /// The end may take a while. Not for a job, because a kill could interrupt it there.
    may_yield: bool,
}

impl Life {
    fn begin(world: &Arc<World>, mine: &Arc<AtomicBool>, may_yield: bool) -> Self {
        if mine.swap(true, Ordering::SeqCst) {
            world.overlaps.fetch_add(1, Ordering::Relaxed);
        }
        world.live.fetch_add(1, Ordering::SeqCst);
        Self {
            world: Arc::clone(world),
            mine: Arc::clone(mine),
            may_yield,
        }
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        if self.may_yield && self.world.is_unlucky(4) {
            yield_now();
        }
        self.mine.store(false, Ordering::SeqCst);
        self.world.live.fetch_sub(1, Ordering::SeqCst);
    }
}

struct Leaf {
    life: Life,
}

impl Actor for Leaf {
    fn started(&mut self, _: &Context<'_, Self>) {
        if self.life.world.is_unlucky(8) {
            sleep(Duration::from_micros(10));
        }
    }

    fn stopped(&mut self) {
        assert!(!self.life.world.is_unlucky(16), "in its stop");
    }
}

impl Handler<Parcel> for Leaf {
    type Reply = ();

    fn handle(&mut self, mut parcel: Parcel, context: &Context<'_, Self>) {
        let world = Arc::clone(&self.life.world);
        parcel.begun = true;
        world.begun.fetch_add(1, Ordering::Relaxed);
        if !world.is_unlucky(6) {
            return;
        }
        match world.below(5) {
            0 => panic!("bad luck"),
            1 => context.stop(),
            2 => sleep(Duration::from_micros(5)),
            3 => yield_now(),
            _ => {
                // The actor kills itself.
                let _ = context.pid().kill();
                yield_now();
            }
        }
    }
}

/// A child with a stack of its own.
fn job(world: &Arc<World>, mine: &Arc<AtomicBool>) {
    let _life = Life::begin(world, mine, false);
    while !world.tired.load(Ordering::Relaxed) {
        sleep(Duration::from_micros(20));
        if world.is_unlucky(20) {
            assert!(world.below(2) == 0, "bad luck");
            return;
        }
    }
    sleep(LONG);
}

struct Tree {
    world: Arc<World>,
    leaves: Vec<ActorRef<Leaf>>,
    branches: Vec<SupervisorRef>,
}

impl Tree {
    fn grow(&mut self, random: &Random, depth: u64) -> Supervisor {
        let strategy = random.of(&[
            Strategy::OneForOne,
            Strategy::OneForAll,
            Strategy::RestForOne,
            Strategy::SimpleOneForOne,
        ]);
        let mut supervisor = Supervisor::new(strategy);
        supervisor = if random.one_in(3) {
            supervisor.intensity(random.below(4) as u32, Duration::from_secs(60))
        } else {
            supervisor.unlimited_restarts()
        };
        for n in 0..1 + random.below(3) {
            let id = format!("{depth}-{n}");
            let spec = if depth > 0 && random.one_in(3) {
                let below = self.grow(random, depth - 1);
                let (spec, branch) = ChildSpec::supervisor(id, move || below.clone());
                self.branches.push(branch);
                spec
            } else if random.one_in(6) {
                let (world, mine) = (Arc::clone(&self.world), Arc::default());
                ChildSpec::job(id, move || job(&world, &mine))
            } else {
                let (world, mine) = (Arc::clone(&self.world), Arc::default());
                let (spec, leaf) = ChildSpec::actor(id, move || {
                    assert!(!world.is_unlucky(12), "in its start");
                    Leaf {
                        life: Life::begin(&world, &mine, true),
                    }
                });
                self.leaves.push(leaf);
                spec
            };
            let restart = random.of(&[
                Restart::Permanent,
                Restart::Permanent,
                Restart::Transient,
                Restart::Temporary,
            ]);
            let shutdown = random.of(&[
                Shutdown::BrutalKill,
                Shutdown::Infinity,
                Shutdown::Timeout(Duration::from_micros(20)),
            ]);
            let mut spec = spec.restart(restart).shutdown(shutdown);
            if random.one_in(2) {
                spec = spec.backoff(Backoff {
                    first: Duration::from_micros(random.below(50)),
                    max: Duration::from_micros(200),
                    ..Backoff::default()
                });
            }
            supervisor = supervisor.child(spec);
        }
        supervisor
    }
}

/// Sends, kills and stops at random.
fn trouble(random: Random, world: &Arc<World>, leaves: &[ActorRef<Leaf>], pids: &[Pid]) {
    for _ in 0..random.below(60) {
        if let Some(shortage) = &world.shortage
            && random.one_in(30)
        {
            shortage.begin(&random);
        }
        let leaf = &leaves[random.below(leaves.len() as u64) as usize];
        match random.below(12) {
            0 => {
                let _ = leaf.pid().kill();
            }
            1 => leaf.stop(),
            2 => yield_now(),
            3 if random.one_in(4) && !pids.is_empty() => {
                let _ = pids[random.below(pids.len() as u64) as usize].kill();
            }
            _ => {
                let parcel = Parcel {
                    world: Arc::clone(world),
                    begun: false,
                };
                // Counted before the send, because the message may be handled before this actor
                // continues.
                world.accepted.fetch_add(1, Ordering::Relaxed);
                if let Err(refused) = leaf.cast(parcel) {
                    world.accepted.fetch_sub(1, Ordering::Relaxed);
                    let mut parcel = refused.into_inner();
                    parcel.begun = true;
                }
            }
        }
    }
}

fn one_tree(seed: u64, shortage: Option<&Arc<Shortage>>) {
    let random = Random::new(seed);
    let world = Arc::new(World {
        shortage: shortage.cloned(),
        ..World::default()
    });
    *world.random.lock().unwrap() = Some(Random::new(seed ^ 0x5555));
    let mut tree = Tree {
        world: Arc::clone(&world),
        leaves: Vec::new(),
        branches: Vec::new(),
    };
    let supervisor = tree.grow(&random, 2);
    if tree.leaves.is_empty() {
        return;
    }
    if let Some(shortage) = shortage
        && random.one_in(4)
    {
        shortage.begin(&random);
    }
    if let Ok(root) = supervisor.start() {
        let pids: Vec<_> = tree.branches.iter().map(SupervisorRef::pid).collect();
        let troubles: Vec<_> = (0..2)
            .map(|n| {
                let (world, pids) = (Arc::clone(&world), pids.clone());
                let leaves = tree.leaves.clone();
                let random = Random::new(seed.wrapping_mul(31) + n);
                spawn(move || trouble(random, &world, &leaves, &pids))
            })
            .collect();
        if random.one_in(5) {
            let _ = root.pid().kill();
        }
        for trouble in troubles {
            match trouble.join() {
                Ok(()) => {}
                // The troublemaker found no stack, so there is less trouble.
                Err(JoinError::NoStack(_)) if shortage.is_some() => {}
                Err(error) => panic!("it only sends: {error}"),
            }
        }
        world.tired.store(true, Ordering::Relaxed);
        let end = root.pid().monitor();
        drop(root);
        end.wait();
    }
    world.tired.store(true, Ordering::Relaxed);
    // A killed supervisor's children end by themselves soon after.
    while world.live.load(Ordering::SeqCst) > 0 {
        yield_now();
    }
    let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
    // The test still holds every reference here: a message dropped with the last reference does not
    // count as dropped in order. The last messages are handled or dropped in the last turns.
    while count(&world.begun) + count(&world.dropped) < count(&world.accepted) {
        yield_now();
    }
    assert_eq!(
        count(&world.begun) + count(&world.dropped),
        count(&world.accepted),
        "seed {seed}: something was lost, or came twice"
    );
    drop(tree);
    assert_eq!(
        world.overlaps.load(Ordering::Relaxed),
        0,
        "seed {seed}: two incarnations at once"
    );
}

#[test]
fn random_trees_lose_no_message_and_leave_no_actor() {
    // Where actors are threads, each tree takes longer.
    let default = if cfg!(miri) {
        4
    } else if cfg!(thalweg_threads) {
        500
    } else {
        10_000
    };
    let trees: u64 = setting("THALWEG_TREES", default);
    let seed: u64 = setting("THALWEG_TEST_SEED", 1);
    // The actors panic often, by design.
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let expected = |text: &&str| ["bad luck", "in its stop", "in its start"].contains(text);
        if !panic.payload_as_str().as_ref().is_some_and(expected) {
            report(panic);
        }
    }));
    let runtimes = (trees / TREES_IN_A_RUNTIME).clamp(4, MOST_RUNTIMES);
    for nth in 0..runtimes {
        let seeds = seed + trees * nth / runtimes..seed + trees * (nth + 1) / runtimes;
        let workers = 1 + nth as usize % 2;
        let config = Config::with_workers(workers).note_panics(false);
        if nth % 4 < 2 {
            init(config).unwrap().run(move || {
                seeds.for_each(|seed| one_seed(seed, |seed| one_tree(seed, None)));
            });
        } else {
            // Each of these runtimes uses its own stack size, so that it requests new stacks from
            // the system.
            let config = config
                .max_stacks(SPAWNED * workers)
                .stack_size((64 << 10) + (nth as usize / 4) * (4 << 10));
            init(config).unwrap().run(move || {
                let shortage = Shortage::new(workers);
                seeds.for_each(|seed| one_seed(seed, |seed| one_tree(seed, Some(&shortage))));
                if !cfg!(miri) {
                    shortage.check();
                }
            });
        }
    }
}

const TREES_IN_A_RUNTIME: u64 = 500;
/// Stacks of this many sizes stay in memory, a few pages for each stack.
const MOST_RUNTIMES: u64 = 1000;
/// Actors with a stack of their own on one worker when stacks are short: the test's own four and a
/// few jobs.
const SPAWNED: usize = 6;
