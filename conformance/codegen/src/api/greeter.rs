//! A service that calls host imports.

use crate::services::greeter::ClockHost;
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

/// The host has no clock for a city.
#[thalweg::value]
#[derive(Clone, Debug, PartialEq)]
pub struct NoClock {
    /// The city.
    pub city: String,
}

/// Why there is no greeting.
#[thalweg::value]
#[derive(Clone, Debug, PartialEq)]
pub enum GreetError {
    /// It is night in the city.
    Night(Time),
    /// The host has no clock for the city.
    Unknown(NoClock),
    /// The host did not answer.
    NoAnswer,
}

/// The host's clocks.
#[thalweg::host]
pub trait Clock {
    /// The time in a city.
    fn now(&self, city: &str) -> Result<Time, NoClock>;

    /// The service needs no further times.
    fn done(&self);
}

/// Greets by the time of day.
#[thalweg::service(package = "a:greeter@0.1.0")]
pub trait Greeter {
    /// A greeting for a city.
    fn greet(&self, call: &Call, city: &str) -> Result<String, GreetError>;

    /// The greetings for all cities that can be greeted.
    async fn greet_all(&self, call: &Call, cities: Vec<String>) -> Vec<String>;
}

/// The implementation.
pub struct Polite;

impl Greeter for Polite {
    fn greet(&self, call: &Call, city: &str) -> Result<String, GreetError> {
        let now = ClockHost::of(call).now(city).wait();
        let now: Time = now
            .map_err(|error| match error {
                CallError::Service(no_clock) => GreetError::Unknown(no_clock.into()),
                CallError::Ended(_) => GreetError::NoAnswer,
            })?
            .into();
        match now.hour {
            0..6 => Err(GreetError::Night(now)),
            6..12 => Ok(format!("Good morning, {city}.")),
            _ => Ok(format!("Good day, {city}.")),
        }
    }

    async fn greet_all(&self, call: &Call, cities: Vec<String>) -> Vec<String> {
        let each = cities.iter().filter_map(|city| self.greet(call, city).ok());
        let greetings = each.collect();
        match ClockHost::of(call).done().await {
            Ok(()) => greetings,
            Err(_) => Vec::new(),
        }
    }
}
