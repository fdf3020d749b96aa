//! The service. Each client has its own `RecipesService`; clones share the settings and the pool.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use thalweg::patterns::{Pool, PoolBuilder};
use thalweg::port::{Call, StreamReader, Task};
use thalweg::runtime::sync::Mutex;

use crate::job::LongJob;
use crate::recipes::{JobError, Recipes, Setting};
use crate::settings::Settings;

/// The service. The WIT file describes its functions.
#[derive(Clone, Debug, Default)]
pub struct RecipesService {
    settings: Settings,
    digests: Arc<Mutex<Option<Pool<String, u64>>>>,
}

/// Starts two workers. At most 64 texts wait for them; a further caller waits.
fn start_workers() -> Pool<String, u64> {
    PoolBuilder::new("digests")
        .workers(2)
        .capacity(64)
        .start(|| {
            |text: String| {
                let mut hasher = DefaultHasher::new();
                text.hash(&mut hasher);
                hasher.finish()
            }
        })
        .expect("the pool's options are valid, and its workers start")
}

impl Recipes for RecipesService {
    type Job = LongJob;

    fn job(&mut self, _: &Call, steps: u32, step_ms: u32) -> Result<LongJob, JobError> {
        LongJob::new(steps, step_ms)
    }

    fn set(&mut self, _: &Call, setting: Setting) {
        self.settings.set(setting);
    }

    fn watch(&mut self, call: &Call) -> StreamReader<Setting> {
        self.settings.watch(call)
    }

    fn digest(&mut self, _: &Call, text: String) -> Task<u64> {
        let digests = Arc::clone(&self.digests);
        Task::new(move |_| {
            let pool = digests.lock().get_or_insert_with(start_workers).clone();
            pool.call(text).expect("a worker computes the digest")
        })
    }

    fn steps(
        &mut self,
        call: &Call,
        total: u32,
        failing: Option<u32>,
    ) -> Result<StreamReader<u32, JobError>, JobError> {
        if total == 0 {
            return Err(JobError::Empty);
        }
        let (writer, reader) = call.stream();
        call.spawn(move |_| {
            for step in 1..=total {
                if failing == Some(step) {
                    let _ = writer.fail(&JobError::FailedStep(step));
                    return;
                }
                if writer.send(&step).is_err() {
                    return; // the reader has closed the stream
                }
            }
            let _ = writer.finish();
        });
        Ok(reader)
    }
}
