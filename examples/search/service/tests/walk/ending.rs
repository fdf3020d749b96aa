//! How a search ends: once, whatever happens, and with no more searchers than were allowed.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::time::Duration;

use thalweg_search::walk::{self, CHECK_BYTES, CountOnly, Crew, Hit, Sink, Stop};

use crate::threads::{Threads, everything, find, plan, run};
use crate::tree::Tree;

fn many_files(count: usize) -> Tree {
    let tree = Tree::new();
    for number in 0..count {
        tree.file(format!("{}/{number}", number % 10), b"needle\n");
    }
    tree
}

#[test]
fn an_empty_directory_ends_at_once_with_nothing() {
    let (found, outcome) = find("x", Tree::new().root());
    assert!(found.is_empty() && !outcome.stopped);
    assert_eq!(outcome.counts.files, 0);
}

#[test]
fn a_crew_that_says_stop_ends_the_search_between_files() {
    let tree = many_files(500);
    let left = Arc::new(AtomicUsize::new(100));
    let crew = Threads::checked(2, move || {
        left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            left.checked_sub(1)
        })
        .map(|_| ())
        .map_err(|_| Stop)
    });
    let outcome = run(&crew, &plan("needle", tree.root(), &everything()), || {
        CountOnly
    });
    assert!(outcome.stopped);
    assert!(outcome.counts.files <= 100, "{:?}", outcome.counts);
}

#[test]
fn a_crew_that_says_stop_ends_the_search_inside_a_large_file() {
    let tree = Tree::with(&[("large", &b"hay\n".repeat(4 << 20))]);
    let left = Arc::new(AtomicUsize::new(10));
    let crew = Threads::checked(1, move || {
        left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            left.checked_sub(1)
        })
        .map(|_| ())
        .map_err(|_| Stop)
    });
    let plan = plan("needle", tree.root(), &everything());
    let outcome = run(&crew, &plan, || CountOnly);
    assert!(outcome.stopped);
    assert!(
        outcome.counts.bytes <= 11 * CHECK_BYTES as u64,
        "{:?}",
        outcome.counts
    );
    // A stop is nobody's fault: it is not counted as a file that cannot be read.
    assert_eq!(
        (outcome.counts.unreadable, plan.progress.problem()),
        (0, None)
    );
}

#[test]
fn a_sink_that_says_stop_ends_the_search() {
    let tree = many_files(500);
    let seen = Arc::new(AtomicUsize::new(0));
    let outcome = run(
        &Threads::new(2),
        &plan("needle", tree.root(), &everything()),
        {
            let seen = seen.clone();
            move || {
                let seen = seen.clone();
                move |_: &Hit<'_>| match seen.fetch_add(1, Ordering::Relaxed) {
                    0..20 => Ok(()),
                    _ => Err(Stop),
                }
            }
        },
    );
    assert!(outcome.stopped);
    // Each searcher may have been told once.
    assert!(seen.load(Ordering::Relaxed) <= 22);
}

#[test]
fn a_sink_that_panics_ends_the_search_as_stopped() {
    let tree = many_files(100);
    let outcome = run(
        &Threads::new(2),
        &plan("needle", tree.root(), &everything()),
        || {
            |hit: &Hit<'_>| match hit.path.ends_with("/42") {
                true => panic!("a sink that panics, on purpose"),
                false => Ok(()),
            }
        },
    );
    assert!(outcome.stopped);
}

/// A crew that throws its second job away, as one that shuts down does.
#[derive(Clone)]
struct Losing(Arc<AtomicUsize>);

impl Crew for Losing {
    fn spawn(&self, job: impl FnOnce(&Self) + Send + 'static) {
        let crew = self.clone();
        if self.0.fetch_add(1, Ordering::Relaxed) == 0 {
            std::thread::spawn(move || job(&crew));
        }
    }

    fn check(&self) -> Result<(), Stop> {
        Ok(())
    }

    fn workers(&self) -> usize {
        2
    }
}

#[test]
fn a_job_that_is_thrown_away_leaves_its_work_to_the_others() {
    let tree = many_files(100);
    let plan = plan("needle", tree.root(), &everything());
    let (done, outcome) = mpsc::channel();
    let crew = Losing(Arc::new(AtomicUsize::new(0)));
    walk::start(
        plan,
        &crew,
        || CountOnly,
        move |outcome| done.send(outcome).unwrap(),
    );
    let outcome = outcome.recv_timeout(Duration::from_secs(20)).unwrap();
    assert!(!outcome.stopped);
    assert_eq!(outcome.counts.matches, 100);
}

#[test]
fn when_even_the_first_job_is_thrown_away_the_search_ends_as_stopped() {
    let tree = many_files(1);
    let plan = plan("needle", tree.root(), &everything());
    let (done, outcome) = mpsc::channel();
    let crew = Losing(Arc::new(AtomicUsize::new(1)));
    walk::start(
        plan,
        &crew,
        || CountOnly,
        move |outcome| done.send(outcome).unwrap(),
    );
    assert!(
        outcome
            .recv_timeout(Duration::from_secs(20))
            .unwrap()
            .stopped
    );
}

/// Counts itself while it exists, and while it is in use.
struct Counted {
    made: Arc<AtomicUsize>,
    busy: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

impl Sink for Counted {
    fn hit(&mut self, _: &Hit<'_>) -> Result<(), Stop> {
        let busy = self.busy.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(busy, Ordering::SeqCst);
        // One worker alone would never end.
        while self.most.load(Ordering::SeqCst) < 2 {
            std::thread::yield_now();
        }
        self.busy.fetch_sub(1, Ordering::SeqCst);
        Ok(())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.made.fetch_sub(1, Ordering::SeqCst);
    }
}

#[test]
fn there_are_never_more_searchers_or_sinks_than_workers_and_all_sinks_go_at_the_end() {
    let tree = many_files(300);
    let counter = || Arc::new(AtomicUsize::new(0));
    let (made, busy, most, ever) = (counter(), counter(), counter(), counter());
    let outcome = run(
        &Threads::new(3),
        &plan("needle", tree.root(), &everything()),
        {
            let (made, most, ever) = (made.clone(), most.clone(), ever.clone());
            move || {
                made.fetch_add(1, Ordering::SeqCst);
                ever.fetch_add(1, Ordering::SeqCst);
                Counted {
                    made: made.clone(),
                    busy: busy.clone(),
                    most: most.clone(),
                }
            }
        },
    );
    assert_eq!(outcome.counts.matches, 300);
    assert!(most.load(Ordering::SeqCst) <= 3);
    assert!(ever.load(Ordering::SeqCst) <= 3, "sinks are used again");
    // `finish` comes before the sinks go.
    while made.load(Ordering::SeqCst) > 0 {
        std::thread::yield_now();
    }
}

#[test]
fn files_of_one_directory_are_shared_among_the_workers() {
    let tree = Tree::with(&[("a", b"needle\n"), ("b", b"needle\n")]);
    // Each line waits until the other has come: one worker alone would never end.
    let gate = Arc::new((Mutex::new(0), Condvar::new()));
    let outcome = run(
        &Threads::new(2),
        &plan("needle", tree.root(), &everything()),
        move || {
            let gate = gate.clone();
            move |_: &Hit<'_>| {
                let (count, changed) = &*gate;
                let mut count = count.lock().unwrap();
                *count += 1;
                changed.notify_all();
                let wait = Duration::from_secs(20);
                let (count, _) = changed
                    .wait_timeout_while(count, wait, |count| *count < 2)
                    .unwrap();
                if *count == 2 { Ok(()) } else { Err(Stop) }
            }
        },
    );
    assert!(!outcome.stopped);
}

#[test]
fn a_slow_reader_stops_the_walk() {
    let tree = many_files(1_000);
    let plan = plan("needle", tree.root(), &everything());
    let (lines, reader) = mpsc::sync_channel(4);
    let (done, outcome) = mpsc::channel();
    walk::start(
        plan.clone(),
        &Threads::new(2),
        move || {
            let lines = lines.clone();
            move |_: &Hit<'_>| lines.send(()).map_err(|_| Stop)
        },
        move |outcome| done.send(outcome).unwrap(),
    );
    std::thread::sleep(Duration::from_millis(200));
    assert!(
        plan.progress.counts().files <= 8,
        "{:?}",
        plan.progress.counts()
    );
    assert_eq!(reader.iter().count(), 1_000);
    assert!(!outcome.recv().unwrap().stopped);
}

#[test]
fn a_reader_that_goes_away_ends_the_walk() {
    let tree = many_files(1_000);
    let (lines, reader) = mpsc::sync_channel(4);
    let (done, outcome) = mpsc::channel();
    walk::start(
        plan("needle", tree.root(), &everything()),
        &Threads::new(2),
        move || {
            let lines = lines.clone();
            move |_: &Hit<'_>| lines.send(()).map_err(|_| Stop)
        },
        move |outcome| done.send(outcome).unwrap(),
    );
    reader.recv().unwrap();
    drop(reader);
    let outcome = outcome.recv_timeout(Duration::from_secs(20)).unwrap();
    assert!(outcome.stopped && outcome.counts.files < 1_000);
}
