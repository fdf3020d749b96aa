//! A crew of plain threads, and what a search on it found.

use std::path::Path;
use std::sync::mpsc;
use std::sync::{Arc, Mutex};

use thalweg_search::walk::{self, Crew, Hit, Outcome, Plan, Settings, Stop};

type Check = dyn Fn() -> Result<(), Stop> + Send + Sync;

/// One thread a job.
#[derive(Clone)]
pub struct Threads {
    workers: usize,
    check: Arc<Check>,
}

impl Threads {
    pub fn new(workers: usize) -> Threads {
        Threads::checked(workers, || Ok(()))
    }

    pub fn checked(
        workers: usize,
        check: impl Fn() -> Result<(), Stop> + Send + Sync + 'static,
    ) -> Threads {
        Threads {
            workers,
            check: Arc::new(check),
        }
    }
}

impl Crew for Threads {
    fn spawn(&self, job: impl FnOnce(&Self) + Send + 'static) {
        let crew = self.clone();
        std::thread::spawn(move || job(&crew));
    }

    fn check(&self) -> Result<(), Stop> {
        (self.check)()
    }

    fn workers(&self) -> usize {
        self.workers
    }
}

/// A hit with owned fields.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Found {
    pub path: Vec<u8>,
    pub path_text: String,
    pub line: u64,
    pub column: u64,
    pub text: String,
    pub bytes: Vec<u8>,
    pub lossy: bool,
    pub cut: bool,
}

impl Found {
    pub fn of(hit: &Hit<'_>) -> Found {
        Found {
            path: hit.path_bytes.unwrap_or(hit.path.as_bytes()).to_owned(),
            path_text: hit.path.to_owned(),
            line: hit.line,
            column: hit.column,
            text: hit.text.to_owned(),
            bytes: hit.text_bytes.unwrap_or(hit.text.as_bytes()).to_owned(),
            lossy: hit.text_bytes.is_some(),
            cut: hit.cut,
        }
    }
}

/// What `grep -raF` looks at.
pub fn everything() -> Settings {
    Settings {
        fixed: true,
        hidden: true,
        ..Settings::default()
    }
}

pub fn plan(pattern: &str, root: &Path, settings: &Settings) -> Arc<Plan> {
    Arc::new(Plan::new(pattern, root, settings).unwrap())
}

/// All lines, sorted by path and line, and how the search ended.
pub fn search(crew: &Threads, plan: &Arc<Plan>) -> (Vec<Found>, Outcome) {
    let all = Arc::new(Mutex::new(Vec::new()));
    let outcome = run(crew, plan, {
        let all = all.clone();
        move || {
            let all = all.clone();
            move |hit: &Hit<'_>| {
                all.lock().unwrap().push(Found::of(hit));
                Ok(())
            }
        }
    });
    let mut all = std::mem::take(&mut *all.lock().unwrap());
    all.sort();
    (all, outcome)
}

/// Runs a search to its end with the given sinks.
pub fn run<S: walk::Sink>(
    crew: &Threads,
    plan: &Arc<Plan>,
    make: impl FnMut() -> S + Send + 'static,
) -> Outcome {
    let (done, outcome) = mpsc::channel();
    walk::start(plan.clone(), crew, make, move |outcome| {
        done.send(outcome).unwrap()
    });
    outcome
        .recv_timeout(std::time::Duration::from_secs(60))
        .expect("the search ends")
}

/// Finds with all that `grep -raF` finds, on two threads.
pub fn find(pattern: &str, root: &Path) -> (Vec<Found>, Outcome) {
    search(&Threads::new(2), &plan(pattern, root, &everything()))
}
