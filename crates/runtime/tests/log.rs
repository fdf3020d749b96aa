//! Log records of runtimes.
//!
//! A process of its own: the sink belongs to the process. The tests run one after the other.
#![cfg(not(any(miri, thalweg_threads)))]

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use thalweg_runtime::log::{self, Level, Limit};
use thalweg_runtime::supervisor::{ChildSpec, Strategy, Supervisor};
use thalweg_runtime::{Config, ExitReason, Runtime, exit, native, run, spawn};

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The records that a sink received, as `Error actor: text`.
#[derive(Clone, Default)]
struct Records(Arc<Mutex<Vec<String>>>);

impl Records {
    fn listen(max: Level) -> Self {
        let records = Self::default();
        let to = records.clone();
        log::set_sink(max, move |record| {
            assert!(record.at.elapsed().unwrap_or_default() < Duration::from_secs(60));
            to.push(format!(
                "{:?} {}: {}",
                record.level, record.target, record.message
            ));
        });
        records
    }

    fn push(&self, text: String) {
        self.0.lock().unwrap().push(text);
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// Reports its drop.
struct OnDrop(Arc<AtomicUsize>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn write(text: &str) {
    log::write(Level::Warning, "test", format_args!("{text}"));
}

#[test]
fn crash_of_an_actor_is_an_error_with_its_reason() {
    let _alone = alone();
    // No warnings: to print the backtrace of a panic can take so long that it is reported as a stall.
    let records = Records::listen(Level::Error);
    run(|| {
        assert!(spawn(|| panic!("no more paper")).join().is_err());
        assert!(spawn(|| exit(ExitReason::from("no ink"))).join().is_err());
        spawn(|| ()).join().unwrap();
    });
    assert!(log::take_sink());
    let all = records.all();
    let is = |text: &str| {
        all.iter()
            .any(|record| record.starts_with("Error actor: actor ") && record.contains(text))
    };
    assert!(is("no more paper") && is(": no ink"), "{all:?}");
    assert_eq!(all.len(), 2, "{all:?}");
}

#[test]
fn record_above_the_level_is_not_built() {
    let _alone = alone();
    struct Text<'a>(&'a Cell<bool>);
    impl std::fmt::Display for Text<'_> {
        fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            self.0.set(true);
            Ok(())
        }
    }
    let built = Cell::new(false);
    let write = |level| log::write(level, "test", format_args!("{}", Text(&built)));
    write(Level::Error);
    assert!(!built.get() && !log::is_enabled(Level::Error), "no sink");
    let records = Records::listen(Level::Warning);
    assert!(log::is_enabled(Level::Warning) && !log::is_enabled(Level::Info));
    write(Level::Info);
    assert!(!built.get(), "above the level");
    write(Level::Warning);
    assert!(built.get());
    assert!(log::take_sink());
    assert_eq!(records.all(), ["Warning test: "]);
}

fn fails() {
    panic!("on purpose")
}

#[test]
fn start_of_a_runtime_and_restarts_are_recorded() {
    let _alone = alone();
    let records = Records::listen(Level::Info);
    let runtime = Runtime::start(Config::with_workers(1)).unwrap();
    let root = runtime.handle().spawn(|| {
        let root = Supervisor::new(Strategy::OneForOne)
            .intensity(1, Duration::from_secs(60))
            .child(ChildSpec::job("printer", fails))
            .start()
            .unwrap();
        drop(root.pid().monitor().wait());
    });
    root.join().unwrap();
    drop(runtime);
    assert!(log::take_sink());
    let all = records.all();
    let count = |text: &str| all.iter().filter(|record| record.contains(text)).count();
    assert_eq!(
        count("Info runtime: a runtime of 1 workers starts"),
        1,
        "{all:?}"
    );
    assert_eq!(count(" restarts printer"), 1, "{all:?}");
    assert_eq!(count("Error supervisor: supervisor "), 1, "{all:?}");
    assert_eq!(count("on purpose"), 2, "{all:?}");
}

#[test]
fn limited_records_are_counted_in_the_next_one() {
    let _alone = alone();
    static LIMIT: Limit = Limit::new();
    let records = Records::listen(Level::Warning);
    for n in 0..5 {
        LIMIT.write(Level::Warning, "test", format_args!("{n}"));
    }
    std::thread::sleep(Duration::from_millis(1100));
    LIMIT.write(Level::Warning, "test", format_args!("5"));
    assert!(log::take_sink());
    let all = records.all();
    assert_eq!(all.len(), 2, "{all:?}");
    assert_eq!(all[1], "Warning test: 5 (4 more since the last record)");
}

#[test]
fn records_that_the_sink_causes_are_discarded() {
    let _alone = alone();
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    log::set_sink(Level::Warning, move |record| {
        counted.fetch_add(1, Ordering::SeqCst);
        assert!(!log::is_enabled(Level::Error));
        write(record.message);
    });
    write("once");
    write("twice");
    assert!(log::take_sink());
    assert_eq!(calls.load(Ordering::SeqCst), 2);
}

#[test]
fn panic_of_the_sink_or_of_a_text_ends_only_that_record() {
    let _alone = alone();
    struct Bad;
    impl std::fmt::Display for Bad {
        fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            panic!("a text that panics, on purpose")
        }
    }
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    log::set_sink(Level::Warning, move |_| {
        assert!(
            counted.fetch_add(1, Ordering::SeqCst) > 0,
            "the first, on purpose"
        );
    });
    write("panics");
    log::write(Level::Warning, "test", format_args!("{Bad}"));
    write("well");
    assert!(log::take_sink());
    assert_eq!(calls.load(Ordering::SeqCst), 2);
}

#[test]
fn sink_is_dropped_once_after_its_last_call() {
    let _alone = alone();
    let drops = Arc::new(AtomicUsize::new(0));
    let sink = || {
        let dropped = OnDrop(Arc::clone(&drops));
        move |_: &log::Record<'_>| assert_eq!(dropped.0.load(Ordering::SeqCst), 0)
    };
    log::set_sink(Level::Error, sink());
    log::set_sink(Level::Error, |_| ());
    assert_eq!(drops.load(Ordering::SeqCst), 1, "replaced");
    assert!(log::take_sink());
    assert!(!log::take_sink());
    assert_eq!(drops.load(Ordering::SeqCst), 1);
}

#[test]
fn sink_that_removes_itself_is_dropped_after_the_call() {
    let _alone = alone();
    let drops = Arc::new(AtomicUsize::new(0));
    let dropped = OnDrop(Arc::clone(&drops));
    log::set_sink(Level::Warning, move |_| {
        assert!(log::take_sink());
        assert_eq!(dropped.0.load(Ordering::SeqCst), 0, "it is in use");
    });
    write("the last");
    assert_eq!(drops.load(Ordering::SeqCst), 1);
    write("to nobody");
    assert!(!log::take_sink());
}

#[test]
fn take_sink_waits_for_calls_on_other_threads() {
    let _alone = alone();
    for _ in 0..20 {
        let (entered, left) = (Arc::new(Barrier::new(2)), Arc::new(AtomicBool::new(false)));
        let (at, done) = (Arc::clone(&entered), Arc::clone(&left));
        log::set_sink(Level::Warning, move |_| {
            at.wait();
            std::thread::sleep(Duration::from_millis(5));
            done.store(true, Ordering::SeqCst);
        });
        let writer = std::thread::spawn(|| write("slow"));
        entered.wait();
        assert!(log::take_sink());
        assert!(
            left.load(Ordering::SeqCst),
            "a call runs after it was removed"
        );
        writer.join().unwrap();
    }
}

#[test]
fn two_threads_write_at_the_same_time() {
    let _alone = alone();
    let both = Arc::new(Barrier::new(2));
    log::set_sink(Level::Warning, move |_| {
        both.wait();
    });
    let other = std::thread::spawn(|| write("one"));
    write("two");
    other.join().unwrap();
    assert!(log::take_sink());
}

#[test]
fn sink_of_an_actor_runs_on_the_stack_of_its_worker_and_cannot_wait() {
    let _alone = alone();
    let records = Records::default();
    let to = records.clone();
    log::set_sink(Level::Error, move |_| {
        // Too large for an actor's stack.
        let frame = [1_u8; 2 << 20];
        to.push(format!("{} bytes", std::hint::black_box(&frame).len()));
        let waits = catch_unwind(AssertUnwindSafe(|| {
            thalweg_runtime::sleep(Duration::from_millis(1));
        }));
        to.push(format!("waits: {}", waits.is_ok()));
    });
    let runtime = Runtime::start(Config::with_workers(1)).unwrap();
    drop(runtime.handle().spawn(|| panic!("on purpose")).join());
    let in_native = runtime
        .handle()
        .spawn(|| native(|| log::write(Level::Error, "test", format_args!("x"))));
    in_native.join().unwrap();
    drop(runtime);
    assert!(log::take_sink());
    assert_eq!(
        records.all(),
        [
            "2097152 bytes",
            "waits: false",
            "2097152 bytes",
            "waits: false"
        ]
    );
}

#[test]
fn forked_child_begins_without_a_sink() {
    let _alone = alone();
    let records = Records::listen(Level::Warning);
    let began = SystemTime::now();
    // SAFETY: the child only writes records, and ends without the parent's exit handlers.
    let child = unsafe { libc::fork() };
    if child == 0 {
        write("to nobody");
        let is_new = !log::is_enabled(Level::Error) && !log::take_sink();
        let mine = Records::listen(Level::Warning);
        write("to me");
        let is_well = is_new && log::take_sink() && mine.0.lock().unwrap().len() == 1;
        // SAFETY: it ends the child at once.
        unsafe { libc::_exit(i32::from(!is_well)) };
    }
    let mut status = -1;
    // SAFETY: the child belongs to this process, and the status is a local variable.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0);
    write("to the parent");
    assert!(log::take_sink() && began.elapsed().is_ok());
    assert_eq!(records.all(), ["Warning test: to the parent"]);
}
