//! A service that asks its host, as the page shows it.

#[path = "../../../crates/bindgen/tests/from_code/asks.rs"]
mod api;
#[path = "../../../crates/bindgen/tests/from_code/generated/asks.rs"]
mod asks;
#[path = "../../../crates/bindgen/tests/from_code/generated/asks_from_code.rs"]
mod asks_from_code;

use asks::{Clock, GreeterClient, NoClock, Silent, Time};
use asks_from_code::GreeterFromCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use thalweg::{Call, CallError};

/// Knows two cities, and counts how often it was told that nothing will be asked.
struct Wall(Arc<AtomicU32>);

impl Clock for Wall {
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

fn refusal(client: &GreeterClient, city: &str) -> Silent {
    match client.greet(city).wait() {
        Err(CallError::Service(why)) => why,
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn a_service_asks_its_host_in_a_call_and_in_a_task() {
    let done = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&done);
    let client = GreeterClient::start_with_host(
        || GreeterFromCode::new(api::Polite),
        move || Wall(Arc::clone(&count)),
    )
    .unwrap();
    assert_eq!(client.greet("Oslo").wait().unwrap(), "Good morning, Oslo.");
    let at_night = Time {
        hour: 4,
        minute: 30,
    };
    assert_eq!(refusal(&client, "Lima"), Silent::Night(at_night));
    let unknown = NoClock {
        city: "Atlantis".into(),
    };
    assert_eq!(refusal(&client, "Atlantis"), Silent::Unknown(unknown));
    let cities = ["Lima", "Oslo"].map(str::to_owned).to_vec();
    assert_eq!(
        client.greet_all(&cities).wait().unwrap(),
        ["Good morning, Oslo."]
    );
    assert_eq!(done.load(Relaxed), 1);
}

#[test]
fn without_a_host_nothing_is_answered() {
    let client = GreeterClient::start(|| GreeterFromCode::new(api::Polite)).unwrap();
    assert_eq!(refusal(&client, "Oslo"), Silent::NoAnswer);
}
