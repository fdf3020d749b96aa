//! A long call that reports its progress and stops when it is cancelled.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use thalweg::port::{Call, StreamReader, StreamWriter, Task};
use thalweg::runtime::sleep;

use crate::recipes::{Job, JobError, Progress};

/// A job and the streams that report its progress.
#[derive(Debug)]
pub struct LongJob {
    steps: u32,
    step: Duration,
    watchers: Mutex<Vec<StreamWriter<Progress>>>,
}

impl LongJob {
    pub(crate) fn new(steps: u32, step_ms: u32) -> Result<Self, JobError> {
        if steps == 0 {
            return Err(JobError::Empty);
        }
        let step = Duration::from_millis(step_ms.into());
        let watchers = Mutex::default();
        Ok(Self {
            steps,
            step,
            watchers,
        })
    }

    fn watchers(&self) -> MutexGuard<'_, Vec<StreamWriter<Progress>>> {
        self.watchers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends `done` to every reader, and forgets readers that have closed their stream.
    fn report(&self, done: u32) {
        let progress = Progress {
            done,
            total: self.steps,
        };
        self.watchers()
            .retain(|writer| writer.send(&progress).is_ok());
    }

    fn finish(&self) {
        for writer in self.watchers().drain(..) {
            let _ = writer.finish(); // fails only if the reader has closed the stream
        }
    }
}

/// Drops the writers of the progress when a run ends. Their readers get `guest_lost`, unless the
/// run has finished the streams.
struct Run<'a>(&'a LongJob);

impl Drop for Run<'_> {
    fn drop(&mut self) {
        self.0.watchers().clear();
    }
}

impl Job for LongJob {
    fn run(self: Arc<Self>, _: &Call) -> Task<Result<u32, JobError>> {
        Task::new(move |call| {
            let _run = Run(&self);
            for done in 1..=self.steps {
                sleep(self.step); // ends at once if the call is cancelled or its deadline passes
                if call.check().is_err() {
                    return Err(JobError::FailedStep(done)); // the call has ended: nobody receives this
                }
                self.report(done);
            }
            self.finish();
            Ok(self.steps)
        })
    }

    fn progress(&self, call: &Call) -> StreamReader<Progress> {
        let (writer, reader) = call.stream();
        self.watchers().push(writer);
        reader
    }
}
