//! Reports of actors that block their worker. Each test's actors have their own names, because the
//! hook is process-wide. A stall lasts until it is reported, however long that takes; a test that
//! expects no report waits for another event first.
//!
//! A process of its own: it sets the stall hook of the process.
#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(any(miri, thalweg_threads))
))]

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::time::{Duration, Instant};

use thalweg_runtime::stall::{self, Stall};
use thalweg_runtime::{
    Actor, Builder, Config, Context, Handler, Runtime, check, native, runtime, yield_now,
};

const LIMIT: Duration = Duration::from_millis(20);
/// Exceeded only by a failure, not by a machine under load.
const FOR_EVER: Duration = Duration::from_secs(120);

static REPORTS: Mutex<Vec<Stall>> = Mutex::new(Vec::new());

fn reports() -> MutexGuard<'static, Vec<Stall>> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        stall::set_hook(|stall| {
            let mut reports = REPORTS.lock().unwrap_or_else(PoisonError::into_inner);
            reports.push(stall.clone());
        });
    });
    REPORTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs one test after the other: a stalled actor occupies a processor, and the process interrupts
/// one thread at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The reports of the actors with this name.
fn reports_of(name: &str) -> Vec<Stall> {
    let of_name = |stall: &&Stall| stall.name.as_deref() == Some(name);
    reports().iter().filter(of_name).cloned().collect()
}

fn config(workers: usize) -> Config {
    drop(reports());
    Config::with_workers(workers).stall(LIMIT)
}

/// Computes until `over` returns true, or `FOR_EVER` has passed.
fn compute_until(mut over: impl FnMut() -> bool) {
    let began = Instant::now();
    while !over() && began.elapsed() < FOR_EVER {
        for _ in 0..1_000 {
            black_box(());
        }
    }
}

#[inline(never)]
fn stuck_in_a_loop(name: &str) {
    compute_until(|| !reports_of(name).is_empty());
    black_box(());
}

#[inline(never)]
fn calls_what_is_stuck() {
    stuck_in_a_loop("computes");
    black_box(());
}

/// Whether one of the report's frames is in a function whose path ends with `function`.
fn is_in(stall: &Stall, function: &str) -> bool {
    let frames = stall.frames.as_ref().expect("it has frames");
    frames.iter().any(|frame| {
        let known = frame.function.as_deref();
        known.is_some_and(|known| known.ends_with(function))
    })
}

#[test]
fn an_actor_that_computes_is_reported_once_with_its_name_number_and_place() {
    let _alone = alone();
    let id = runtime::init(config(1)).unwrap().run(|| {
        let stuck = Builder::new().name("computes").spawn(|| {
            let me = thalweg_runtime::wait::current().unwrap();
            calls_what_is_stuck();
            // A second report would come at one of the next checks.
            let began = Instant::now();
            compute_until(|| began.elapsed() > 4 * LIMIT);
            me
        });
        stuck.join().unwrap()
    });
    let reported = reports_of("computes");
    assert_eq!(reported.len(), 1, "{reported:?}");
    let stall = &reported[0];
    assert_eq!(stall.actor, Some(id));
    assert_eq!(stall.worker, 0);
    assert!(stall.lasted >= LIMIT, "{stall:?}");
    assert!(is_in(stall, "stuck_in_a_loop"), "{stall}");
    // The caller's frame is in the report too.
    assert!(is_in(stall, "calls_what_is_stuck"), "{stall}");
    let said = stall.to_string();
    let begins = format!("actor {id} (computes) has kept worker 0 for ");
    assert!(said.starts_with(&begins), "{said}");
    assert!(said.contains("stalls.rs"), "{said}");
}

struct Slow;

impl Actor for Slow {}

struct Stuck;

impl Handler<Stuck> for Slow {
    type Reply = ();

    #[inline(never)]
    fn handle(&mut self, _: Stuck, _: &Context<'_, Self>) {
        stuck_in_a_loop("handles");
        black_box(());
    }
}

#[test]
fn a_handler_that_computes_is_reported_with_its_actors_name_and_number() {
    let _alone = alone();
    let runtime = Runtime::start(config(2)).unwrap();
    let slow = Builder::new()
        .name("handles")
        .start_on(runtime.handle(), Slow);
    let id = slow.id();
    slow.call_timeout(Stuck, FOR_EVER).unwrap();
    let reported = reports_of("handles");
    assert_eq!(reported.len(), 1, "{reported:?}");
    assert_eq!(reported[0].actor, Some(id));
    assert!(is_in(&reported[0], "stuck_in_a_loop"), "{}", reported[0]);
    assert!(is_in(&reported[0], "handle"), "{}", reported[0]);
}

#[inline(never)]
fn goes_native(name: &str) {
    native(|| stuck_in_a_loop(name));
    black_box(());
}

/// Both stacks are reported: the worker's, which is running, and the actor's own, from which it
/// switched.
#[test]
fn native_code_that_computes_is_reported_as_its_actors() {
    let _alone = alone();
    let runtime = Runtime::start(config(1)).unwrap();
    let actor = Builder::new()
        .name("goes native")
        .spawn_on(runtime.handle(), || goes_native("goes native"));
    actor.join().unwrap();
    let reported = reports_of("goes native");
    assert_eq!(reported.len(), 1, "{reported:?}");
    assert!(is_in(&reported[0], "stuck_in_a_loop"), "{}", reported[0]);
    assert!(is_in(&reported[0], "goes_native"), "{}", reported[0]);
}

#[inline(never)]
fn waits_for_a_message(from: &std::sync::mpsc::Receiver<()>) -> bool {
    let came = from.recv_timeout(FOR_EVER).is_ok();
    black_box(came)
}

/// The actor blocks in the kernel and in foreign code.
#[test]
fn an_actor_that_blocks_its_thread_is_reported_and_goes_on() {
    let _alone = alone();
    let runtime = Runtime::start(config(1)).unwrap();
    let (to, from) = std::sync::mpsc::channel::<()>();
    let actor = Builder::new()
        .name("blocks")
        .spawn_on(runtime.handle(), move || waits_for_a_message(&from));
    compute_until(|| !reports_of("blocks").is_empty());
    to.send(()).unwrap();
    assert!(actor.join().unwrap(), "the signal ended its wait");
    let reported = reports_of("blocks");
    assert!(
        is_in(&reported[0], "waits_for_a_message"),
        "{}",
        reported[0]
    );
}

#[test]
fn one_that_allocates_all_the_time_is_reported_and_unharmed() {
    let _alone = alone();
    let runtime = Runtime::start(config(1)).unwrap();
    let actor = Builder::new()
        .name("allocates")
        .spawn_on(runtime.handle(), || {
            let mut kept = std::collections::VecDeque::new();
            compute_until(|| {
                kept.push_back(vec![7_u8; kept.len() % 4_096]);
                if kept.len() > 1_000 {
                    kept.pop_front();
                }
                !reports_of("allocates").is_empty()
            });
            kept.iter().flatten().all(|&byte| byte == 7)
        });
    assert!(actor.join().unwrap());
    assert_eq!(reports_of("allocates").len(), 1);
}

/// Each actor is alone on its worker, so no other actor takes its turn. The actors keep their
/// workers for as long as two stalls of another runtime take.
#[test]
fn actors_that_yield_or_check_are_not_reported() {
    let _alone = alone();
    // A virtual machine may be paused as a whole, which it cannot detect.
    let config = config(1).stall(25 * LIMIT);
    let over = Arc::new(AtomicBool::new(false));
    let offers: [(&str, fn()); 2] = [("yields", yield_now), ("checks", || check!())];
    let polite = offers.map(|(name, offer)| {
        let runtime = Runtime::start(config.clone()).unwrap();
        let over = Arc::clone(&over);
        let (begins, has_begun) = std::sync::mpsc::channel();
        let polite = move || {
            begins.send(()).unwrap();
            let began = Instant::now();
            while !over.load(Ordering::Relaxed) && began.elapsed() < FOR_EVER {
                offer();
            }
        };
        let actor = Builder::new().name(name).spawn_on(runtime.handle(), polite);
        has_begun.recv().unwrap();
        (runtime, actor)
    });
    let other = Runtime::start(config).unwrap();
    for name in ["beside polite ones", "beside polite ones again"] {
        let stuck = Builder::new().name(name);
        let stuck = stuck.spawn_on(other.handle(), || stuck_in_a_loop(name));
        stuck.join().unwrap();
    }
    over.store(true, Ordering::Relaxed);
    for (runtime, actor) in polite {
        actor.join().unwrap();
        drop(runtime);
    }
    for (name, _) in offers {
        let reported = reports_of(name);
        assert!(reported.is_empty(), "{}", reported[0]);
    }
}

#[test]
fn five_are_reported_in_a_minute_and_the_sixth_is_not() {
    let _alone = alone();
    let runtime = Runtime::start(config(1)).unwrap();
    for nth in 0..5 {
        let name = format!("one of many, {nth}");
        let actor = Builder::new().name(name.clone());
        let stuck = actor.spawn_on(runtime.handle(), move || stuck_in_a_loop(&name));
        stuck.join().unwrap();
    }
    let sixth = Builder::new().name("one too many");
    let stuck = sixth.spawn_on(runtime.handle(), || {
        let began = Instant::now();
        compute_until(|| began.elapsed() > 10 * LIMIT);
    });
    stuck.join().unwrap();
    for nth in 0..5 {
        assert_eq!(reports_of(&format!("one of many, {nth}")).len(), 1);
    }
    assert!(reports_of("one too many").is_empty());
}

/// The signal frame alone would be larger than the rest of the stack.
#[test]
#[cfg_attr(
    feature = "sanitizer",
    ignore = "what is left is less than AddressSanitizer's own frames"
)]
fn one_with_a_full_stack_is_reported_and_does_not_overflow() {
    let _alone = alone();
    const STACK: usize = 64 << 10;
    const GUARD: usize = 16 << 10;
    const LEFT: usize = 1 << 10;
    static REPORTED: AtomicBool = AtomicBool::new(false);

    #[inline(never)]
    fn dig(end: usize) {
        let frame = black_box([0_u8; 128]);
        if (&raw const frame).addr() > end {
            dig(end);
        } else {
            stuck_at_the_bottom();
        }
        black_box(frame);
    }
    #[inline(never)]
    fn stuck_at_the_bottom() {
        // Another thread checks for the report: there is no stack left for that here.
        while !REPORTED.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
    }
    let runtime = Runtime::start(config(1).stack_size(STACK)).unwrap();
    let actor = Builder::new().name("full").spawn_on(runtime.handle(), || {
        let here = black_box(0_u8);
        // The first frames of the actor are in the last page of its stack.
        let top = (&raw const here).addr().next_multiple_of(4_096);
        dig(top - STACK + GUARD + LEFT);
    });
    compute_until(|| !reports_of("full").is_empty());
    REPORTED.store(true, Ordering::Relaxed);
    actor.join().unwrap();
    assert!(is_in(&reports_of("full")[0], "stuck_at_the_bottom"));
}

#[test]
fn a_supervisors_child_is_reported_with_its_name_there() {
    let _alone = alone();
    use thalweg_runtime::supervisor::{ChildSpec, Strategy, Supervisor};
    let runtime = Runtime::start(config(1)).unwrap();
    let make = || {
        // The actor is created in its first turn.
        stuck_in_a_loop("a child");
        Ok::<_, thalweg_runtime::ExitReason>(Slow)
    };
    let (child, actor) = ChildSpec::actor_on(
        runtime.handle(),
        "a child",
        thalweg_runtime::Mailbox::default(),
        make,
    );
    let supervisor = Supervisor::new(Strategy::OneForOne);
    let supervisor = supervisor.child(child).start_on(runtime.handle()).unwrap();
    let reported = reports_of("a child");
    assert_eq!(reported.len(), 1, "{reported:?}");
    assert_eq!(reported[0].actor, Some(actor.id()));
    drop(supervisor);
}
