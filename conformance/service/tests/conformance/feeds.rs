//! Functions that return streams and futures inside values.

use crate::Runner;
use crate::endings::{Called, Verdict, expect, finish};
use crate::values::Json;
use serde_json::{Value, json};
use thalweg::port::{FutureReader, Owned, StreamReader};
use thalweg::wire::Decode;
use thalweg_conformance::conformance::{ConformanceClient, Feed};

/// All elements of a stream.
fn elements<T: Decode>(stream: Owned<StreamReader<T>>) -> Result<Vec<T>, String> {
    let mut reader = stream
        .into_reader()
        .map_err(|failure| failure.to_string())?;
    let elements = reader.by_ref().collect::<Result<_, _>>();
    elements.map_err(|failure| failure.to_string())
}

fn value<T: Decode>(stream: Owned<FutureReader<T>>) -> Result<T, String> {
    let come = stream.into_reader().and_then(FutureReader::wait);
    come.map_err(|failure| failure.to_string())
}

fn shown(feed: Feed) -> Result<Value, String> {
    let Feed {
        name,
        numbers,
        last,
    } = feed;
    let last = last.map(value).transpose()?;
    Ok(json!({ "name": name, "numbers": elements(numbers)?.show(), "last": last.show() }))
}

fn compare(step: &Value, came: impl FnOnce() -> Result<Value, String>) -> Verdict {
    let Some(expected) = step.get("ok") else {
        return Ok(());
    };
    let came = came()?;
    expect("ok", &came, came == *expected)
}

/// The streams of an error have a separate test.
impl Json for Feed {
    fn read(from: &Value) -> Self {
        panic!("what came has no form in JSON: {from}")
    }
    fn show(&self) -> Value {
        json!({ "name": self.name })
    }
}

impl Runner {
    /// Makes the call of a step, if it is one of these functions.
    pub(crate) fn call_with_feeds(
        c: &ConformanceClient,
        step: &'static Value,
        method: usize,
        name: &str,
    ) -> Result<Called, String> {
        let count = || u32::read(&step["params"][0]);
        match name {
            "feeds" => finish(step, method, c.feeds(count()), move |_, feeds| {
                compare(step, || feeds.into_iter().map(shown).collect())
            }),
            "endless-feed" => finish(step, method, c.endless_feed(), move |_, feed| {
                compare(step, || shown(feed))
            }),
            "mixed" => finish(step, method, c.mixed(count()), move |_, mixed| {
                let (beats, point) = mixed;
                compare(step, || {
                    Ok(json!([elements(beats)?.show(), value(point)?.show()]))
                })
            }),
            other => Err(format!("the runner does not know {other}")),
        }
    }
}
