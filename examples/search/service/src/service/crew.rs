//! The workers of the runtime, as the actors of a call.

use thalweg::port::Call;

use super::finishing::Finishing;
use crate::search::{Match, SearchError};
use crate::walk::{Crew, Stop};

/// The crew of a search that the call waits for.
#[derive(Clone)]
pub(super) struct CallCrew {
    call: Call,
}

impl CallCrew {
    pub(super) fn new(call: &Call) -> CallCrew {
        CallCrew { call: call.clone() }
    }
}

impl Crew for CallCrew {
    fn spawn(&self, job: impl FnOnce(&Self) + Send + 'static) {
        let crew = self.clone();
        self.call.spawn(move |_| job(&crew));
    }

    fn check(&self) -> Result<(), Stop> {
        self.call.check().map_err(|_| Stop)
    }

    fn workers(&self) -> usize {
        self.call.workers()
    }
}

/// The crew of a search whose lines go to a stream. The call ends when it returns the stream, so
/// this also checks whether the reader is open, even if there are no lines to send.
#[derive(Clone)]
pub(super) struct ReaderCrew {
    call: Call,
    lines: Finishing<Match, SearchError>,
}

impl ReaderCrew {
    pub(super) fn new(call: &Call, lines: &Finishing<Match, SearchError>) -> ReaderCrew {
        ReaderCrew {
            call: call.clone(),
            lines: lines.clone(),
        }
    }
}

impl Crew for ReaderCrew {
    fn spawn(&self, job: impl FnOnce(&Self) + Send + 'static) {
        let crew = self.clone();
        self.call.spawn(move |_| job(&crew));
    }

    fn check(&self) -> Result<(), Stop> {
        self.call.check().map_err(|_| Stop)?;
        self.lines.check().map_err(|_| Stop)
    }

    fn workers(&self) -> usize {
        self.call.workers()
    }
}
