//! Functions that return streams of other types than numbers and records, and a few others.

use crate::Runner;
use crate::calls::compare;
use crate::endings::{Called, Verdict, finish};
use crate::streams::read;
use crate::values::Json;
use serde_json::Value;
use thalweg::StreamReader;
use thalweg::port::{NoError, Pending};
use thalweg::wire::Decode;
use thalweg_conformance::conformance::ConformanceClient;

/// A call whose stream is read immediately.
fn all<T: Json + Decode + 'static>(
    step: &'static Value,
    method: usize,
    pending: Pending<StreamReader<T>, NoError>,
) -> Result<Called, String> {
    finish(step, method, pending, move |_, stream| -> Verdict {
        read(step, stream)
    })
}

impl Runner {
    /// Makes the call of a step, if it is one of these functions.
    pub(crate) fn call_for_elements(
        &mut self,
        c: &ConformanceClient,
        step: &'static Value,
        method: usize,
        name: &str,
    ) -> Result<Called, String> {
        let first = || u32::read(&step["params"][0]);
        match name {
            "bits" => all(step, method, c.bits(first())),
            "letters" => all(step, method, c.letters(first())),
            "maybes" => all(step, method, c.maybes(first())),
            "couples" => all(step, method, c.couples(first())),
            "rows" => all(step, method, c.rows(first())),
            "outcomes" => all(step, method, c.outcomes(first())),
            "by-name" => {
                let count = u64::read(&step["params"][1]);
                all(step, method, c.by_name(first(), count))
            }
            "held-up" => finish(step, method, c.held_up(), move |_, came| {
                compare(step, method, came)
            }),
            "limited" => finish(step, method, c.limited(), move |_, came| {
                compare(step, method, came)
            }),
            "let-go" => finish(step, method, c.let_go(), move |_, came| {
                compare(step, method, came)
            }),
            other => Self::call_with_feeds(c, step, method, other),
        }
    }
}
