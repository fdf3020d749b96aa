//! The interface of the service and its implementation. `thalweg gen` reads this file.

use std::error::Error;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The longest name, in bytes.
const LONGEST: u32 = 64;

/// A greeting, and its place in the order of greetings.
#[thalweg::value]
#[derive(Clone, Debug, PartialEq)]
pub struct Greeting {
    /// The first greeting has the number 1.
    pub number: u64,
    /// The text.
    pub text: String,
}

/// Why a call failed.
#[thalweg::value]
#[derive(Clone, Debug, PartialEq)]
pub enum MyServiceError {
    /// What a program sees if a later version of the service adds an error.
    Unknown,
    /// The name is empty.
    EmptyName,
    /// The name has more bytes than this limit.
    TooLong(u32),
}

impl fmt::Display for MyServiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MyServiceError::Unknown => f.write_str("unknown error"),
            MyServiceError::EmptyName => f.write_str("the name is empty"),
            MyServiceError::TooLong(limit) => write!(f, "the name has more than {limit} bytes"),
        }
    }
}

impl Error for MyServiceError {}

/// Greets people.
#[thalweg::service(package = "my-org:my-service@0.1.0")]
pub trait MyService {
    /// Greets one person.
    fn greet(&self, name: String) -> Result<Greeting, MyServiceError>;

    /// Greets several people. Other calls run at the same time.
    #[thalweg::method(overflow = "block", capacity = 64)]
    async fn greet_all(
        &self,
        names: Vec<String>,
    ) -> Result<Box<dyn Iterator<Item = Greeting> + Send>, MyServiceError>;
}

/// The state of one instance. Each client has its own instance.
#[derive(Debug, Default)]
pub struct MyServiceImpl {
    greetings: AtomicU64,
}

impl MyService for MyServiceImpl {
    fn greet(&self, name: String) -> Result<Greeting, MyServiceError> {
        if name.is_empty() {
            return Err(MyServiceError::EmptyName);
        }
        if name.len() > LONGEST as usize {
            return Err(MyServiceError::TooLong(LONGEST));
        }
        Ok(Greeting {
            number: self.greetings.fetch_add(1, Relaxed) + 1,
            text: format!("Hello, {name}!"),
        })
    }

    async fn greet_all(
        &self,
        names: Vec<String>,
    ) -> Result<Box<dyn Iterator<Item = Greeting> + Send>, MyServiceError> {
        let greetings: Result<Vec<_>, _> = names.into_iter().map(|name| self.greet(name)).collect();
        Ok(Box::new(greetings?.into_iter()))
    }
}
