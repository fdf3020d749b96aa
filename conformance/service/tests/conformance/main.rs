//! The runner for Rust, which executes `conformance/scenarios.json` with the service in Rust, or with the guest at the
//! address in `CONFORMANCE_SERVICE`.

mod calls;
mod elements;
mod endings;
mod feeds;
mod oracle;
mod streams;
mod upstreams;
mod values;

use endings::{Called, Verdict};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use streams::Kept;
use thalweg::guest::OpenGuest;
use thalweg_conformance::Echo;
use thalweg_conformance::conformance::{
    ConformanceClient, CounterClient, EvenClient, LeaseClient, ScaleClient,
};

/// A running scenario.
struct Runner {
    client: ConformanceClient,
    other: ConformanceClient,
    counters: HashMap<String, CounterClient>,
    evens: HashMap<String, EvenClient>,
    leases: HashMap<String, LeaseClient>,
    scales: HashMap<String, ScaleClient>,
    streams: HashMap<String, Kept>,
    started: HashMap<String, Vec<Called>>,
}

impl Runner {
    fn new() -> Self {
        Runner {
            client: open(),
            other: open(),
            counters: HashMap::new(),
            evens: HashMap::new(),
            leases: HashMap::new(),
            scales: HashMap::new(),
            streams: HashMap::new(),
            started: HashMap::new(),
        }
    }

    fn step(&mut self, step: &'static Value) -> Verdict {
        if let Some(name) = step["drop"].as_str() {
            self.counters.remove(name);
            self.leases.remove(name);
            self.streams.remove(name);
        } else if step["close"] == true {
            self.client.close();
        } else if step["open"] == true {
            self.client.close();
            self.client = open();
        } else if step["other"] == true {
            std::mem::swap(&mut self.client, &mut self.other);
        } else if let Some(steps) = step["steps"].as_array() {
            for _ in 0..step["repeat"].as_u64().expect("a number") {
                steps.iter().try_for_each(|step| self.step(step))?;
            }
        } else if let Some(name) = step["start"].as_str() {
            for _ in 0..step["times"].as_u64().unwrap_or(1) {
                let called = self.call(step)?;
                self.started
                    .entry(name.to_owned())
                    .or_default()
                    .push(called);
            }
        } else if let Some(name) = step["await"].as_str() {
            let started = self.started.remove(name).expect("calls of this name");
            started.into_iter().try_for_each(|called| called(self))?;
        } else if step["call"].is_string() {
            return self.again_and_again(step);
        } else {
            return self.stream(step);
        }
        Ok(())
    }

    /// Makes a call, and repeats it until its result is as expected or the time is over.
    fn again_and_again(&mut self, step: &'static Value) -> Verdict {
        let until = Instant::now() + Duration::from_millis(step["within_ms"].as_u64().unwrap_or(0));
        loop {
            match self.call(step).and_then(|called| called(self)) {
                Err(_) if Instant::now() < until => std::thread::sleep(Duration::from_millis(2)),
                verdict => return verdict,
            }
        }
    }
}

fn open() -> ConformanceClient {
    // The first client keeps the guest loaded, as it is in all other hosts.
    static KEPT: OnceLock<ConformanceClient> = OnceLock::new();
    match std::env::var("CONFORMANCE_SERVICE") {
        Ok(address) => {
            let open = || ConformanceClient::open(&address).expect("a guest");
            KEPT.get_or_init(open);
            let client = open();
            client.set_host(|| oracle::Book).expect("a host");
            client
        }
        Err(_) => {
            ConformanceClient::start_with_host(Echo::default, || oracle::Book).expect("a client")
        }
    }
}

#[test]
fn every_scenario_has_its_expected_outcome() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../scenarios.json");
    let file = std::fs::read_to_string(path).expect("the scenarios");
    let scenarios: Vec<Value> = serde_json::from_str(&file).expect("the scenarios are JSON");
    let scenarios: &'static [Value] = scenarios.leak();
    let (mut failed, mut report) = (Vec::new(), Vec::new());
    for scenario in scenarios {
        let before = failed.len();
        let mut runner = Runner::new();
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
    let folder = std::env::var("CONFORMANCE_REPORTS");
    let folder =
        folder.unwrap_or(concat!(env!("CARGO_TARGET_TMPDIR"), "/../conformance").to_owned());
    std::fs::create_dir_all(&folder).expect("a folder for the report");
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
