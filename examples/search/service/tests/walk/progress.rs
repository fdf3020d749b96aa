//! How far the searches of a plan have come, as a subscriber sees it.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use thalweg_search::walk::{CountOnly, Counts, Hit, INTERVAL};

use crate::threads::{Threads, everything, plan, run};
use crate::tree::Tree;

type Seen = Arc<Mutex<Vec<(Instant, Counts, Option<String>)>>>;

fn subscriber(seen: &Seen) -> impl FnMut(&Counts, Option<&str>) -> bool + Send + 'static {
    let seen = seen.clone();
    move |counts, problem| {
        let now = Instant::now();
        seen.lock()
            .unwrap()
            .push((now, *counts, problem.map(str::to_owned)));
        true
    }
}

fn tree() -> Tree {
    let tree = Tree::new();
    for number in 0..200 {
        tree.file(number.to_string(), b"needle\nhay\n");
    }
    tree
}

#[test]
fn a_subscriber_hears_at_once_how_things_are_and_at_the_end_how_they_went() {
    let tree = tree();
    let plan = plan("needle", tree.root(), &everything());
    let seen = Seen::default();
    plan.progress.subscribe(subscriber(&seen));
    assert_eq!(seen.lock().unwrap().len(), 1);
    assert_eq!(seen.lock().unwrap()[0].1, Counts::default());
    let outcome = run(&Threads::new(2), &plan, || CountOnly);
    let last = seen.lock().unwrap().last().unwrap().1;
    assert_eq!(
        last,
        Counts {
            files: 200,
            bytes: 2_200,
            matches: 200,
            unreadable: 0
        }
    );
    assert_eq!(last, outcome.counts);
}

#[test]
fn searches_of_one_plan_add_up_and_a_late_subscriber_hears_the_sum() {
    let tree = tree();
    let plan = plan("needle", tree.root(), &everything());
    let seen = Seen::default();
    for _ in 0..2 {
        let outcome = run(&Threads::new(2), &plan, || CountOnly);
        assert_eq!(outcome.counts.files, 200);
    }
    plan.progress.subscribe(subscriber(&seen));
    assert_eq!(seen.lock().unwrap()[0].1.files, 400);
}

#[test]
fn in_passing_there_is_at_most_one_publication_in_an_interval() {
    let tree = tree();
    let plan = plan("needle", tree.root(), &everything());
    let seen = Seen::default();
    plan.progress.subscribe(subscriber(&seen));
    let begun = Instant::now();
    run(&Threads::new(2), &plan, || {
        |_: &Hit<'_>| {
            std::thread::sleep(Duration::from_millis(2));
            Ok(())
        }
    });
    let intervals = begun.elapsed().as_nanos() / INTERVAL.as_nanos();
    let times = seen.lock().unwrap().len();
    // The first, the last, and one for each interval begun.
    assert!(
        times as u128 <= intervals + 3,
        "{times} in {intervals} intervals"
    );
    assert!(times >= 5, "{times} in {intervals} intervals");
    let seen = seen.lock().unwrap();
    assert!(
        seen.windows(2).all(|two| two[0].1.files <= two[1].1.files),
        "never backwards"
    );
}

#[test]
fn a_large_file_is_reported_while_it_is_read() {
    let tree = Tree::with(&[("large", &b"needle\n".repeat(2 << 20))]);
    let plan = plan("needle", tree.root(), &everything());
    let seen = Seen::default();
    plan.progress.subscribe(subscriber(&seen));
    let mut lines = 0;
    run(&Threads::new(1), &plan, move || {
        move |_: &Hit<'_>| {
            lines += 1;
            if lines % 200_000 == 0 {
                std::thread::sleep(INTERVAL * 2);
            }
            Ok(())
        }
    });
    let seen = seen.lock().unwrap();
    assert!(
        seen.iter()
            .any(|(_, counts, _)| counts.files == 0 && counts.bytes > 0)
    );
    assert_eq!(seen.last().unwrap().1.bytes, 14 << 20);
}

#[test]
fn a_subscriber_that_leaves_is_not_called_again_and_others_are() {
    let tree = tree();
    let plan = plan("needle", tree.root(), &everything());
    let (stays, leaves) = (Seen::default(), Arc::new(Mutex::new(0)));
    plan.progress.subscribe(subscriber(&stays));
    plan.progress.subscribe({
        let leaves = leaves.clone();
        move |_, _| {
            *leaves.lock().unwrap() += 1;
            false
        }
    });
    run(&Threads::new(2), &plan, || CountOnly);
    assert_eq!(*leaves.lock().unwrap(), 1);
    assert_eq!(stays.lock().unwrap().last().unwrap().1.files, 200);
}

#[test]
fn the_last_problem_is_told_with_its_reason() {
    let tree = Tree::with(&[("file", b"needle\n"), ("gone/file", b"needle\n")]);
    let plan = plan("needle", tree.root(), &everything());
    let seen = Seen::default();
    plan.progress.subscribe(subscriber(&seen));
    let gone = tree.path("gone");
    run(&Threads::new(1), &plan, move || {
        let gone = gone.clone();
        move |_: &Hit<'_>| {
            let _ = std::fs::remove_dir_all(&gone);
            Ok(())
        }
    });
    let seen = seen.lock().unwrap();
    let (_, counts, problem) = seen.last().unwrap();
    assert_eq!(counts.unreadable, 1);
    let problem = problem.as_deref().unwrap();
    assert!(
        problem.contains("/gone: ") && problem.contains("No such file"),
        "{problem}"
    );
}
