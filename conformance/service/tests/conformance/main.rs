//! The runner for Rust: does what `conformance/scenarios.json` says.

mod calls;
mod oracle;
mod values;

use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::{Duration, Instant};
use thalweg::port::{CallError, Pending, StreamReader};
use thalweg::wire::{Decode, Encode, message};
use thalweg_conformance::Echo;
use thalweg_conformance::conformance::{
    ConformanceClient, CounterClient, EvenClient, PACKAGE, ScaleClient,
};
use values::{Json, same, unhex};

/// One scenario under way.
struct Runner {
    client: ConformanceClient,
    counters: HashMap<String, CounterClient>,
    evens: HashMap<String, EvenClient>,
    scales: HashMap<String, ScaleClient>,
}

/// Nothing, or what is not as it should be.
type Verdict = Result<(), String>;

fn expect(what: &str, came: impl std::fmt::Debug, is_right: bool) -> Verdict {
    if is_right {
        Ok(())
    } else {
        Err(format!("{what}: {came:?}"))
    }
}

/// The encoded form of `value`, against the file's.
fn check_bytes<T: Encode + ?Sized>(step: &Value, key: &str, value: &T, layout: u64) -> Verdict {
    let Some(hex) = step[key].as_str() else {
        return Ok(());
    };
    let bytes = message::encode(value, layout, Vec::new()).map_err(|error| error.to_string())?;
    expect(key, &bytes, bytes == unhex(hex))
}

/// Waits for a call and compares how it ended. `ok` looks at what came.
fn finish<T, E: Json + Decode>(
    step: &Value,
    method: usize,
    pending: Pending<T, E>,
    ok: impl FnOnce(T) -> Verdict,
) -> Verdict {
    if let Some(ms) = step["cancel_after_ms"].as_u64() {
        std::thread::sleep(Duration::from_millis(ms));
        pending.cancel();
    }
    ended(step, method, pending.wait(), ok)
}

/// The same of one that has ended.
fn ended<T, E: Json + Encode>(
    step: &Value,
    method: usize,
    result: Result<T, CallError<E>>,
    ok: impl FnOnce(T) -> Verdict,
) -> Verdict {
    let ends = step["ends"].as_str().unwrap_or("ok");
    match result {
        Ok(value) => {
            expect("ended", "ok", ends == "ok")?;
            ok(value)
        }
        Err(CallError::Service(error)) => {
            expect("ended", "error", ends == "error")?;
            let right = step
                .get("error")
                .is_none_or(|expected| same(&error, expected));
            expect("error", error.show(), right)?;
            check_bytes(step, "reply", &error, PACKAGE.methods[method].error)
        }
        Err(CallError::Ended(failure)) => {
            expect("ended", &failure, ends == failure.code.name())?;
            let message = step["message"].as_str().unwrap_or_default();
            expect(
                "message",
                &failure.message,
                failure.message.contains(message),
            )
        }
    }
}

/// Reads a stream as the step says.
fn read<T: Json + Decode>(step: &Value, mut reader: StreamReader<T>) -> Verdict {
    let expected = &step["stream"];
    let mut take = expected["take"].as_u64().unwrap_or(u64::MAX) as u32;
    let (mut all, mut lost) = (Vec::new(), 0);
    let ending = loop {
        match reader.next_batch(take.min(100), u64::MAX) {
            Ok(Some(batch)) => {
                lost += batch.lost_before();
                all.extend(batch.iter().map(T::owned));
                take -= batch.len();
            }
            Ok(None) => break None,
            Err(failure) => break Some(failure),
        }
        if take == 0 {
            drop(reader);
            break None;
        }
    };
    let ends = ending.as_ref().map_or("ok", |failure| failure.code.name());
    expect(
        "stream ended",
        &ending,
        ends == expected["ends"].as_str().unwrap_or("ok"),
    )?;
    let message = ending.map(|failure| failure.message).unwrap_or_default();
    expect(
        "message",
        &message,
        message.contains(expected["message"].as_str().unwrap_or_default()),
    )?;
    let is = |key: &str, right: &dyn Fn(&Value) -> bool| {
        expect(
            key,
            format!("{} read, {lost} lost", all.len()),
            expected.get(key).is_none_or(right),
        )
    };
    is("elements", &|elements| same(&all, elements))?;
    is("first", &|first| {
        all.first().is_some_and(|element| same(element, first))
    })?;
    is("last", &|last| {
        all.last().is_some_and(|element| same(element, last))
    })?;
    is("count", &|count| count.as_u64() == Some(all.len() as u64))?;
    is("total", &|total| {
        total.as_u64() == Some(all.len() as u64 + lost)
    })
}

impl Runner {
    fn step(&mut self, step: &Value) -> Verdict {
        if let Some(name) = step["drop"].as_str() {
            self.counters.remove(name);
            return Ok(());
        }
        if step["close"] == true {
            self.client.close();
            return Ok(());
        }
        let until = Instant::now() + Duration::from_millis(step["within_ms"].as_u64().unwrap_or(0));
        loop {
            match self.call(step) {
                Err(_) if Instant::now() < until => std::thread::sleep(Duration::from_millis(2)),
                verdict => return verdict,
            }
        }
    }
}

#[test]
fn every_scenario_comes_out_as_written() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../scenarios.json");
    let file = std::fs::read_to_string(path).expect("the scenarios");
    let scenarios: Vec<Value> = serde_json::from_str(&file).expect("the scenarios are JSON");
    let (mut failed, mut report) = (Vec::new(), Vec::new());
    for scenario in &scenarios {
        let before = failed.len();
        let mut runner = Runner {
            client: ConformanceClient::start_with_host(Echo::default, || oracle::Book).unwrap(),
            counters: HashMap::new(),
            evens: HashMap::new(),
            scales: HashMap::new(),
        };
        for (number, step) in scenario["steps"]
            .as_array()
            .expect("steps")
            .iter()
            .enumerate()
        {
            if let Err(why) = runner.step(step) {
                failed.push(format!("{}, step {}: {why}", scenario["name"], number + 1));
                break;
            }
        }
        let verdict = ["failed", "ok"][usize::from(failed.len() == before)];
        report.push(json!({ "name": scenario["name"], "verdict": verdict }));
    }
    let folder = concat!(env!("CARGO_TARGET_TMPDIR"), "/../conformance");
    std::fs::create_dir_all(folder).expect("a folder for the report");
    let report = json!({ "language": "Rust", "version": env!("CARGO_PKG_RUST_VERSION"), "scenarios": report });
    std::fs::write(format!("{folder}/rust.json"), report.to_string()).expect("the report");
    assert!(
        failed.is_empty(),
        "{} of {}:\n{}",
        failed.len(),
        scenarios.len(),
        failed.join("\n")
    );
}
