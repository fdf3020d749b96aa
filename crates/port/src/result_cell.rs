//! Where a waiting caller receives the completion of its call.

use std::sync::Mutex;

use thalweg_queue::AtomicWaker;
use thalweg_queue::no_preempt::lock;

use crate::completion::Completion;

/// Receives the completion of a call without a port.
#[derive(Debug, Default)]
pub(crate) struct ResultCell {
    state: Mutex<CellState>,
    pub(crate) gate: AtomicWaker,
}

#[derive(Debug, Default)]
enum CellState {
    #[default]
    Empty,
    Filled(Completion),
    /// The caller dropped the call, so no thread will read the completion.
    Abandoned,
}

impl ResultCell {
    /// Empties the cell for the next call.
    pub(crate) fn reset(&self) {
        *lock(&self.state) = CellState::Empty;
    }

    pub(crate) fn complete(&self, completion: Completion) {
        let unwanted = {
            let mut state = lock(&self.state);
            match *state {
                CellState::Abandoned => Some(completion),
                _ => {
                    *state = CellState::Filled(completion);
                    None
                }
            }
        };
        // Not under the lock: dropping it closes handles.
        drop(unwanted);
        self.gate.signal();
    }

    pub(crate) fn is_filled(&self) -> bool {
        matches!(*lock(&self.state), CellState::Filled(_))
    }

    pub(crate) fn take(&self) -> Option<Completion> {
        let mut state = lock(&self.state);
        match std::mem::take(&mut *state) {
            CellState::Filled(completion) => Some(completion),
            other => {
                *state = other;
                None
            }
        }
    }

    pub(crate) fn abandon(&self) {
        let unwanted = std::mem::replace(&mut *lock(&self.state), CellState::Abandoned);
        drop(unwanted);
    }
}
