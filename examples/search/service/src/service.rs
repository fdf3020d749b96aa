//! The service: the walk behind the interface of `search.wit`.
//!
//! It has no state of its own. A query is compiled on the service's actor, where its error belongs
//! to the call that makes it; everything that reads files runs in actors of the call, on all
//! workers.

mod crew;
mod finishing;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use thalweg::port::{Call, StreamReader, StreamWriter, Task};
use thalweg::runtime::wait;
use thalweg::wire::ListView;

use crate::search::{
    Match, MatchView, Options, Progress, ProgressView, Query, Search, SearchError,
};
use crate::walk::{self, CountOnly, Hit, Outcome, Plan, Refused, Settings, Sink, Stop};
use crew::{CallCrew, ReaderCrew};
use finishing::Finishing;

/// The service. The WIT file describes its functions.
#[derive(Clone, Copy, Debug, Default)]
pub struct SearchService;

/// A compiled query.
#[derive(Debug)]
pub struct CompiledQuery {
    plan: Arc<Plan>,
}

impl From<Refused> for SearchError {
    fn from(refused: Refused) -> SearchError {
        match refused {
            Refused::Pattern(reason) => SearchError::Pattern(reason),
            Refused::Glob(reason) => SearchError::Glob(reason),
            Refused::Directory(reason) => SearchError::Directory(reason),
        }
    }
}

impl Search for SearchService {
    type Query = CompiledQuery;

    fn query(
        &mut self,
        _: &Call,
        pattern: String,
        dir: String,
        options: Options,
    ) -> Result<CompiledQuery, SearchError> {
        let Options {
            fixed,
            ignore_case,
            hidden,
            ignore_files,
            globs,
        } = options;
        let settings = Settings {
            fixed,
            ignore_case,
            hidden,
            ignore_files,
            globs,
        };
        let plan = Plan::new(&pattern, Path::new(&dir), &settings)?;
        Ok(CompiledQuery {
            plan: Arc::new(plan),
        })
    }

    fn count(&mut self, _: &Call, pattern: String, dir: String) -> Task<Result<u64, SearchError>> {
        Task::new(move |call| {
            let settings = Settings {
                hidden: true,
                ..Settings::default()
            };
            let plan = Plan::new(&pattern, Path::new(&dir), &settings)?;
            Ok(count(call, Arc::new(plan)))
        })
    }

    fn matches(
        &mut self,
        _: &Call,
        query: Arc<CompiledQuery>,
    ) -> Task<Result<StreamReader<Match, SearchError>, SearchError>> {
        Task::new(move |call| {
            query.plan.check_root()?;
            let (lines, reader) = call.stream();
            let lines = Finishing::new(lines);
            let crew = ReaderCrew::new(call, &lines);
            walk::start(
                query.plan.clone(),
                &crew,
                // Only a failed send removes the writer, and this one sends nothing.
                move || Lines(lines.writer().expect("no send failed").clone()),
                |_| (),
            );
            Ok(reader)
        })
    }

    fn escape(&mut self, _: &Call, text: String) -> String {
        regex_syntax::escape(&text)
    }
}

impl Query for CompiledQuery {
    fn progress(&self, call: &Call) -> StreamReader<Progress> {
        let (writer, reader) = call.stream();
        let mut states = Finishing::new(writer);
        self.plan.progress.subscribe(move |counts, problem| {
            let walk::Counts {
                files,
                bytes,
                matches,
                unreadable,
            } = *counts;
            let state = ProgressView {
                files,
                bytes,
                matches,
                unreadable,
                problem,
            };
            states.send(&state)
        });
        reader
    }
}

/// Runs a search while this actor waits.
fn count(call: &Call, plan: Arc<Plan>) -> u64 {
    let outcome: Arc<Mutex<Option<Outcome>>> = Arc::default();
    let finish = {
        let (outcome, waker) = (outcome.clone(), wait::waker());
        move |ended| {
            *outcome.lock().unwrap_or_else(PoisonError::into_inner) = Some(ended);
            waker.wake();
        }
    };
    walk::start(plan, &CallCrew::new(call), || CountOnly, finish);
    loop {
        match outcome
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
        {
            Some(Outcome {
                counts,
                stopped: false,
            }) => return counts.matches,
            // The call has ended, or a panicking searcher is ending it. The result is then dropped,
            // so a partial count is never returned.
            Some(Outcome { stopped: true, .. }) => {
                while call.check().is_ok() {
                    wait::yield_now();
                }
                return 0;
            }
            None => {}
        }
        // The reason of the wake-up does not matter: the searchers check for cancellation, deadline
        // and shutdown, and end.
        wait::park(None);
    }
}

/// The sink of a stream. Each searcher has a writer, which keeps the order of its lines.
struct Lines(StreamWriter<Match, SearchError>);

impl Sink for Lines {
    fn hit(&mut self, hit: &Hit<'_>) -> Result<(), Stop> {
        let Hit {
            path,
            path_bytes,
            line,
            column,
            text,
            text_bytes,
            cut,
        } = *hit;
        let record = MatchView {
            path,
            line,
            column,
            text,
            path_bytes: path_bytes.map(ListView::from),
            text_bytes: text_bytes.map(ListView::from),
            cut,
        };
        // Waits for a slow reader. Where it fails the search stops, and this writer is dropped with
        // the reason.
        self.0.send(&record).map(drop).map_err(|_| Stop)
    }

    fn finish(self) {
        // The reader may be gone.
        let _ = self.0.finish();
    }
}
