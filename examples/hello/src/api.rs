//! The service: its interface and its implementation. Nothing here depends on another language.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The tone of a greeting.
#[thalweg::value]
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tone {
    /// Uses the first name.
    Friendly,
    /// Uses the full name.
    Formal,
}

/// A person.
#[thalweg::value]
#[derive(Clone, Debug, PartialEq)]
pub struct Person {
    /// The name.
    pub name: String,
    /// The age in years, if it is known.
    pub age: Option<u8>,
}

/// Why there is no greeting.
#[thalweg::value]
#[derive(Clone, Debug, PartialEq)]
pub enum HelloError {
    /// The name is empty.
    NoName,
    /// The name is longer than this number of bytes.
    TooLong(u32),
}

impl fmt::Display for HelloError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HelloError::NoName => f.write_str("there is no name"),
            HelloError::TooLong(most) => write!(f, "the name has more than {most} bytes"),
        }
    }
}

impl std::error::Error for HelloError {}

/// The invited people.
pub struct Guests {
    people: Vec<Person>,
}

/// A guest list, which stays in the service.
#[thalweg::resource]
impl Guests {
    /// Makes a list. Each person must have a name.
    pub fn new(people: Vec<Person>) -> Result<Self, HelloError> {
        match people.iter().any(|person| person.name.is_empty()) {
            true => Err(HelloError::NoName),
            false => Ok(Self { people }),
        }
    }

    /// The number of guests.
    pub fn count(&self) -> u32 {
        self.people.len() as u32
    }

    /// The guests, one after the other.
    #[thalweg::method(overflow = "block", capacity = 64)]
    pub fn arrive(&self) -> Box<dyn Iterator<Item = Person> + Send> {
        Box::new(self.people.clone().into_iter())
    }
}

/// Greets people, and counts the greetings.
#[thalweg::service(package = "thalweg:hello@0.1.0", closed = "tone, hello-error")]
pub trait Hello {
    /// A greeting.
    fn greet(&self, person: Person, tone: Tone) -> Result<String, HelloError>;

    /// A greeting for each guest. The service serves other calls meanwhile.
    async fn greet_all(&self, guests: &Guests) -> Vec<String>;

    /// The number of greetings so far.
    fn greeted(&self) -> u64;
}

/// The implementation.
#[derive(Debug, Default)]
pub struct Greeter {
    greeted: AtomicU64,
}

impl Hello for Greeter {
    fn greet(&self, person: Person, tone: Tone) -> Result<String, HelloError> {
        let Person { name, .. } = person;
        match name.len() {
            0 => return Err(HelloError::NoName),
            65.. => return Err(HelloError::TooLong(64)),
            _ => {}
        }
        self.greeted.fetch_add(1, Relaxed);
        Ok(match tone {
            Tone::Friendly => format!("Hello, {name}!"),
            Tone::Formal => format!("Good day, {name}."),
        })
    }

    async fn greet_all(&self, guests: &Guests) -> Vec<String> {
        let each = guests.people.iter().cloned();
        each.filter_map(|person| self.greet(person, Tone::Friendly).ok())
            .collect()
    }

    fn greeted(&self) -> u64 {
        self.greeted.load(Relaxed)
    }
}
