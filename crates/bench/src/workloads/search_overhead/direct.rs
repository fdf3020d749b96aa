//! The walker called as a function on the runtime's workers, with a closure as its sink.

use std::path::Path;
use std::sync::{Arc, mpsc};

use thalweg_runtime::{Handle, Runtime, wait};
use thalweg_search::walk::{self, Crew, Hit, Plan, Settings, Stop};

use super::Found;
use crate::problem::Problem;

/// A compiled search.
#[derive(Debug)]
pub struct Direct {
    plan: Arc<Plan>,
    workers: Workers,
}

/// The runtime's workers, which also run the service's actors.
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

/// The count of one searcher. It is sent when the searcher ends, so counting needs no lock and no
/// atomic.
struct Counted {
    found: Found,
    tell: mpsc::Sender<Found>,
}

impl Counted {
    fn add(&mut self, hit: &Hit<'_>) {
        self.found.matches += 1;
        self.found.lines += hit.line;
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        // The receiver is gone only if the search has already failed.
        let _ = self.tell.send(self.found);
    }
}

impl Direct {
    /// Compiles `pattern` for the directory `dir`, including hidden files, with the service's
    /// defaults.
    ///
    /// # Errors
    /// The pattern or the directory is invalid, or the runtime does not start.
    pub fn new(pattern: &str, dir: &Path) -> Result<Self, Problem> {
        let settings = Settings {
            hidden: true,
            ..Settings::default()
        };
        let plan = Plan::new(pattern, dir, &settings)
            .map_err(|refused| Problem::NotReady(format!("{refused:?}")))?;
        let runtime = Runtime::global().map_err(|error| Problem::NotReady(error.to_string()))?;
        Ok(Self {
            plan: Arc::new(plan),
            workers: Workers(runtime),
        })
    }

    /// The number of workers that search at once.
    pub fn workers(&self) -> usize {
        self.workers.0.workers()
    }

    /// Runs one search to its end.
    ///
    /// # Errors
    /// The search was stopped.
    pub fn search(&self) -> Result<Found, Problem> {
        let (tell, told) = mpsc::channel();
        let (end, ended) = mpsc::channel();
        let sink = move || {
            let nothing = Found {
                matches: 0,
                lines: 0,
            };
            let mut counted = Counted {
                found: nothing,
                tell: tell.clone(),
            };
            move |hit: &Hit<'_>| {
                counted.add(hit);
                Ok(())
            }
        };
        walk::start(
            Arc::clone(&self.plan),
            &self.workers,
            sink,
            move |outcome| {
                // The receiver waits below.
                let _ = end.send(outcome.stopped);
            },
        );
        // Ends when the last sink and its factory are gone.
        let found = told.iter().fold(
            Found {
                matches: 0,
                lines: 0,
            },
            |sum, one| Found {
                matches: sum.matches + one.matches,
                lines: sum.lines + one.lines,
            },
        );
        match ended.recv() {
            Ok(false) => Ok(found),
            _ => Err(Problem::Check("the direct search was stopped".to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_counts_lines_and_sums_their_numbers() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("one"), "here\nnot\nhere and here\n").unwrap();
        std::fs::write(dir.path().join(".hidden"), "\n\n\nhere").unwrap();
        let direct = Direct::new("here", dir.path()).unwrap();
        assert_eq!(
            direct.search().unwrap(),
            Found {
                matches: 3,
                lines: 1 + 3 + 4
            }
        );
        assert_eq!(
            direct.search().unwrap(),
            Found {
                matches: 3,
                lines: 1 + 3 + 4
            }
        );
    }

    #[test]
    fn a_directory_that_is_not_there_is_a_problem() {
        assert!(Direct::new("x", Path::new("no/such/directory")).is_err());
    }
}
