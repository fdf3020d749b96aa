//! A service that asks its host.

use crate::asks::ClockHost;
use thalweg::{Call, CallError};

/// A time of day.
#[thalweg::value]
#[derive(Clone, Debug, PartialEq)]
pub struct Time {
    /// From 0 to 23.
    pub hour: u8,
    /// From 0 to 59.
    pub minute: u8,
}

/// Who has no clock.
#[thalweg::value]
#[derive(Clone, Debug, PartialEq)]
pub struct NoClock {
    /// Where that is.
    pub city: String,
}

/// Why nothing was said.
#[thalweg::value]
#[derive(Clone, Debug, PartialEq)]
pub enum Silent {
    /// They sleep.
    Night(Time),
    /// It is not known whether they sleep.
    Unknown(NoClock),
    /// The host did not answer.
    NoAnswer,
}

/// What the host knows.
#[thalweg::host]
pub trait Clock {
    /// What time it is there.
    fn now(&self, city: &str) -> Result<Time, NoClock>;

    /// Nothing will be asked any more.
    fn done(&self);
}

/// Greets by the time of day.
#[thalweg::service(package = "a:asks@0.1.0")]
pub trait Greeter {
    /// A greeting for that city.
    fn greet(&self, call: &Call, city: &str) -> Result<String, Silent>;

    /// Those that can be greeted; other calls are served meanwhile.
    async fn greet_all(&self, call: &Call, cities: Vec<String>) -> Vec<String>;
}

/// The service.
pub struct Polite;

impl Greeter for Polite {
    fn greet(&self, call: &Call, city: &str) -> Result<String, Silent> {
        let now = ClockHost::of(call).now(city).wait();
        let now: Time = now
            .map_err(|why| match why {
                CallError::Service(why) => Silent::Unknown(why.into()),
                CallError::Ended(_) => Silent::NoAnswer,
            })?
            .into();
        match now.hour {
            0..6 => Err(Silent::Night(now)),
            6..12 => Ok(format!("Good morning, {city}.")),
            _ => Ok(format!("Good day, {city}.")),
        }
    }

    async fn greet_all(&self, call: &Call, cities: Vec<String>) -> Vec<String> {
        let each = cities.iter().filter_map(|city| self.greet(call, city).ok());
        let said = each.collect();
        match ClockHost::of(call).done().await {
            Ok(()) => said,
            Err(_) => Vec::new(),
        }
    }
}
