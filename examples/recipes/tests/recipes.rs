//! The recipes, used from Rust as on the page.

use std::thread;

use thalweg::{CallError, Code};
use thalweg_recipes::RecipesService;
use thalweg_recipes::recipes::{JobError, Progress, RecipesClient, Setting};

fn open() -> RecipesClient {
    RecipesClient::start(RecipesService::default).unwrap()
}

/// Clients that share one service's state.
fn open_many<const N: usize>() -> [RecipesClient; N] {
    let service = RecipesService::default();
    std::array::from_fn(|_| {
        let service = service.clone();
        RecipesClient::start(move || service.clone()).unwrap()
    })
}

fn setting(name: &str, value: &str) -> Setting {
    Setting {
        name: name.to_owned(),
        value: value.to_owned(),
    }
}

#[test]
fn progress_of_a_long_call_reaches_its_end() -> Result<(), Box<dyn std::error::Error>> {
    let client = open();
    let job = client.job(20, 1).wait()?;
    let progress = job.progress().wait()?;
    let running = job.run(); // submitted; `wait` is below
    let mut last = None;
    for record in progress {
        let Progress { done, total } = record?;
        println!("{done} of {total}");
        last = Some(done);
    }
    assert_eq!((last, running.wait()?), (Some(20), 20));
    Ok(())
}

#[test]
fn progress_of_a_slow_reader_skips_to_the_newest() {
    let client = open();
    let job = client.job(50, 0).wait().unwrap();
    let progress = job.progress().wait().unwrap();
    job.run().wait().unwrap();
    let seen: Vec<_> = progress.map(|record| record.unwrap().done).collect();
    assert_eq!(seen.last(), Some(&50));
    assert!(seen.len() < 50, "{seen:?}");
    assert!(seen.is_sorted());
}

#[test]
fn cancelled_call_stops_the_service() {
    let client = open();
    let job = client.job(1_000_000, 1).wait().unwrap();
    let mut progress = job.progress().wait().unwrap();
    let running = job.run();
    assert!(progress.next().unwrap().is_ok());
    running.cancel();
    let error = running.wait().unwrap_err();
    assert!(matches!(error, CallError::Ended(failure) if failure.code == Code::Cancelled));
    // The service has stopped: it drops the writer of the progress.
    let error = progress.find_map(Result::err).unwrap();
    assert_eq!(error.code, Code::GuestLost);
}

#[test]
fn error_of_the_constructor_is_typed() {
    let client = open();
    let error = client.job(0, 1).wait().unwrap_err();
    assert!(matches!(error, CallError::Service(JobError::Empty)));
}

#[test]
fn setting_reaches_every_watching_client() -> Result<(), Box<dyn std::error::Error>> {
    let [writer, one, two] = open_many();
    writer.set(&setting("color", "red")).wait()?;
    let watches = [one.watch().wait()?, two.watch().wait()?];
    writer.set(&setting("size", "large")).wait()?;
    for watch in watches {
        let seen: Result<Vec<_>, _> = watch.take(2).collect();
        assert_eq!(seen?, [setting("color", "red"), setting("size", "large")]);
    }
    Ok(())
}

#[test]
fn setting_that_nobody_read_is_replaced_by_the_newer_one() {
    let [writer, reader] = open_many();
    let mut watch = reader.watch().wait().unwrap();
    for value in ["1", "2", "3"] {
        writer.set(&setting("a", value)).wait().unwrap();
    }
    writer.set(&setting("b", "1")).wait().unwrap();
    let mut seen = Vec::new();
    while seen.last() != Some(&setting("b", "1")) {
        seen.push(watch.next().unwrap().unwrap());
    }
    assert_eq!(seen, [setting("a", "3"), setting("b", "1")]);
}

#[test]
fn pool_starts_once_for_many_callers_at_the_same_time() {
    let client = open();
    // All calls are submitted before the pool exists.
    let calls: Vec<_> = (0..50).map(|_| client.digest("text")).collect();
    let digests: Vec<_> = calls.into_iter().map(|call| call.wait().unwrap()).collect();
    assert!(digests.iter().all(|digest| *digest == digests[0]));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    assert_eq!(client.digest("text").wait().unwrap(), digests[0]);
                }
            });
        }
    });
}

#[test]
fn stream_ends_with_the_error_of_its_function() {
    let client = open();
    let mut steps = client.steps(5, None).wait().unwrap();
    assert_eq!(
        steps.by_ref().map(Result::unwrap).collect::<Vec<_>>(),
        [1, 2, 3, 4, 5]
    );
    let mut steps = client.steps(5, Some(3)).wait().unwrap();
    assert_eq!(steps.next().unwrap().unwrap(), 1);
    assert_eq!(steps.next().unwrap().unwrap(), 2);
    let error = steps.next().unwrap().unwrap_err();
    assert!(matches!(error, CallError::Service(JobError::FailedStep(3))));
    assert!(steps.next().is_none());
}

/// The lines of `text` without their indentation.
fn trimmed(text: &str) -> String {
    text.lines()
        .map(|line| format!("{}\n", line.trim()))
        .collect()
}

#[test]
fn pages_show_the_code_of_this_crate() {
    let code = trimmed(concat!(
        include_str!("../src/job.rs"),
        include_str!("../src/service.rs"),
        include_str!("../src/settings.rs"),
        include_str!("../wit/recipes.wit"),
        include_str!("../wit/recipes.thalweg.toml"),
        include_str!("recipes.rs"),
    ));
    let pages = concat!(
        include_str!("../../../docs/recipes.md"),
        include_str!("../../../docs/services.md"),
    );
    let mut shown = 0;
    for block in pages.split("```").skip(1).step_by(2) {
        let (language, block) = block.split_once('\n').unwrap();
        // A test of the Python package compares the Python blocks.
        if language != "python" {
            assert!(
                code.contains(&trimmed(block)),
                "not in the example:\n{block}"
            );
            shown += 1;
        }
    }
    assert!(shown >= 11);
}
