//! The walk, called as a function without the service.

use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Instant;

use thalweg::runtime::{Handle, Runtime, wait};
use thalweg_search::walk::{self, Crew, Hit, Plan, Refused, Settings, Stop};

use crate::Failed;
use crate::found::Found;

/// The workers of the process's runtime, on which the service's actors run too.
#[derive(Clone, Debug)]
struct Workers(Handle);

impl Crew for Workers {
    fn spawn(&self, job: impl FnOnce(&Self) + Send + 'static) {
        let crew = self.clone();
        self.0.spawn(move || job(&crew));
    }

    fn check(&self) -> Result<(), Stop> {
        wait::check();
        Ok(())
    }

    fn workers(&self) -> usize {
        self.0.workers()
    }
}

/// The matches of one searcher. They are sent when the searcher ends, so counting needs no lock.
struct Tally {
    found: Found,
    tell: mpsc::Sender<Found>,
}

impl Tally {
    fn count(&mut self, hit: &Hit<'_>) {
        self.found.matches += 1;
        self.found.lines_sum = self.found.lines_sum.wrapping_add(hit.line);
        self.found.first.get_or_insert_with(Instant::now);
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        // The receiver is gone only if the search has failed already.
        let _ = self.tell.send(self.found);
    }
}

/// Searches and prints the duration.
pub fn measure(pattern: &str, dir: &str) -> Result<(), Failed> {
    let runtime = Runtime::global().map_err(|error| Failed::Search(error.to_string()))?;
    let settings = Settings {
        fixed: true,
        hidden: true,
        ..Settings::default()
    };
    let began = Instant::now();
    let plan = Plan::new(pattern, Path::new(dir), &settings).map_err(|refused| {
        let (Refused::Pattern(why) | Refused::Glob(why) | Refused::Directory(why)) = refused;
        Failed::Search(why)
    })?;
    let (tell, told) = mpsc::channel();
    let (end, ended) = mpsc::channel();
    let sink = move || {
        let mut tally = Tally {
            found: Found::default(),
            tell: tell.clone(),
        };
        move |hit: &Hit<'_>| {
            tally.count(hit);
            Ok(())
        }
    };
    walk::start(Arc::new(plan), &Workers(runtime), sink, move |outcome| {
        // The receiver waits below.
        let _ = end.send(outcome.stopped);
    });
    // The channel closes when the last sink and its factory are dropped.
    let found = told.iter().fold(Found::default(), Found::and);
    if ended.recv() != Ok(false) {
        return Err(Failed::Search(
            "the search did not come to its end".to_owned(),
        ));
    }
    println!("{}", found.line("direct", began, Instant::now()));
    Ok(())
}
