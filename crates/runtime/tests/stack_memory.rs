//! The memory of unused stacks.
//!
//! Each test runs in a process of its own: the measured memory is that of the whole process. With
//! AddressSanitizer, its shadow memory of the stacks stays resident, so nothing can be measured.
#![cfg(all(
    target_os = "linux",
    not(any(miri, thalweg_threads, feature = "sanitizer"))
))]

use std::process::Command;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use thalweg_runtime::{Config, JoinHandle, Runtime, wait};

/// Below the limit on mappings of a process, when each guard takes two mappings.
const ACTORS: usize = 10_000;

/// Exceeded only by a failure, not by a machine under load.
const LONG: Duration = Duration::from_secs(120);

/// The resident memory of this process, in MiB.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = statm.split_whitespace().nth(1).unwrap().parse().unwrap();
    // SAFETY: `sysconf` takes no pointer.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    (pages * usize::try_from(page).unwrap()) >> 20
}

fn alone(name: &str, body: fn()) {
    const CHILD: &str = "THALWEG_STACK_MEMORY_TEST";
    if std::env::var(CHILD).as_deref() == Ok(name) {
        return body();
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture", name])
        .env(CHILD, name)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("1 passed"), "{text}");
}

/// A runtime whose actors all wait, each on a stack of its own.
fn parked() -> (Runtime, Vec<JoinHandle<()>>) {
    let config = Config::with_workers(1).stall(None).shutdown_timeout(LONG);
    let runtime = Runtime::start(config).unwrap();
    let (begun, has_begun) = mpsc::channel();
    let actors = (0..ACTORS)
        .map(|_| {
            let begun = begun.clone();
            runtime.handle().spawn(move || {
                // The stack depth of a small actor.
                std::hint::black_box(&mut [1_u8; 6 << 10]);
                begun.send(()).unwrap();
                while wait::park(None) != wait::WakeReason::Stopping {}
            })
        })
        .collect();
    (0..ACTORS).for_each(|_| has_begun.recv().unwrap());
    (runtime, actors)
}

/// Whether more than half of the memory was returned. The heap keeps its blocks of 10,000 actors.
fn is_given_back(before: usize, peak: usize) -> bool {
    resident().saturating_sub(before) < (peak - before) / 2
}

#[test]
fn stacks_of_a_runtime_that_ended_are_given_back() {
    alone("stacks_of_a_runtime_that_ended_are_given_back", || {
        let before = resident();
        let (runtime, actors) = parked();
        let peak = resident();
        assert!(peak > before + 50, "{before} to {peak} MiB");
        drop(runtime);
        drop(actors);
        let after = resident();
        assert!(
            is_given_back(before, peak),
            "{before} MiB before, {peak} MiB with {ACTORS} actors, {after} MiB after"
        );
        // The stacks are used again.
        let (runtime, _actors) = parked();
        assert!(resident() > before + 50);
        drop(runtime);
        assert!(is_given_back(before, peak));
    });
}

#[test]
fn stacks_of_a_burst_are_given_back_while_the_runtime_idles() {
    alone(
        "stacks_of_a_burst_are_given_back_while_the_runtime_idles",
        || {
            let before = resident();
            let (runtime, actors) = parked();
            let peak = resident();
            assert!(peak > before + 50, "{before} to {peak} MiB");
            for actor in &actors {
                actor.pid().kill().unwrap();
            }
            for actor in actors {
                let _ = actor.join();
            }
            let begun = Instant::now();
            while !is_given_back(before, peak) {
                let after = resident();
                assert!(
                    begun.elapsed() < LONG,
                    "{before} MiB before, {peak} MiB with {ACTORS} actors, {after} MiB after"
                );
                std::thread::yield_now();
            }
            drop(runtime);
        },
    );
}
