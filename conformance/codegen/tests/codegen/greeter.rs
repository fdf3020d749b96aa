//! A service that calls host imports.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use thalweg::{Call, CallError};
use thalweg_codegen_tests::api::greeter::Polite;
use thalweg_codegen_tests::services::greeter::{Clock, GreetError, GreeterClient, NoClock, Time};
use thalweg_codegen_tests::services::greeter_from_code::GreeterFromCode;

/// A host with clocks for two cities, which counts the calls of `done`.
struct TwoClocks(Arc<AtomicU32>);

impl Clock for TwoClocks {
    fn now(&mut self, _: &Call, city: String) -> Result<Time, NoClock> {
        let hour = match city.as_str() {
            "Lima" => 4,
            "Oslo" => 11,
            _ => return Err(NoClock { city }),
        };
        Ok(Time { hour, minute: 30 })
    }

    fn done(&mut self, _: &Call) {
        self.0.fetch_add(1, Relaxed);
    }
}

fn greet_error(client: &GreeterClient, city: &str) -> GreetError {
    match client.greet(city).wait() {
        Err(CallError::Service(error)) => error,
        other => panic!("unexpected result: {other:?}"),
    }
}

#[test]
fn service_calls_its_host_from_a_call_and_from_a_task() {
    let done = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&done);
    let client = GreeterClient::start_with_host(
        || GreeterFromCode::new(Polite),
        move || TwoClocks(Arc::clone(&count)),
    )
    .unwrap();
    assert_eq!(client.greet("Oslo").wait().unwrap(), "Good morning, Oslo.");
    let at_night = Time {
        hour: 4,
        minute: 30,
    };
    assert_eq!(greet_error(&client, "Lima"), GreetError::Night(at_night));
    let unknown = NoClock {
        city: "Atlantis".into(),
    };
    assert_eq!(
        greet_error(&client, "Atlantis"),
        GreetError::Unknown(unknown)
    );
    let cities = ["Lima", "Oslo"].map(str::to_owned).to_vec();
    assert_eq!(
        client.greet_all(&cities).wait().unwrap(),
        ["Good morning, Oslo."]
    );
    assert_eq!(done.load(Relaxed), 1);
}

#[test]
fn call_without_a_host_gets_no_answer() {
    let client = GreeterClient::start(|| GreeterFromCode::new(Polite)).unwrap();
    assert_eq!(greet_error(&client, "Oslo"), GreetError::NoAnswer);
}
