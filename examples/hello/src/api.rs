//! What the service offers, and how it does it. Other languages call it, and nothing here knows of them.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// How somebody is greeted.
#[thalweg::value]
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tone {
    /// With the first name.
    Friendly,
    /// With more than that.
    Formal,
}

/// Somebody.
#[thalweg::value]
#[derive(Clone, Debug, PartialEq)]
pub struct Person {
    /// What they are called.
    pub name: String,
    /// Years, where they are known.
    pub age: Option<u8>,
}

/// Why nobody was greeted.
#[thalweg::value]
#[derive(Clone, Debug, PartialEq)]
pub enum HelloError {
    /// The name is empty.
    NoName,
    /// Longer than that many bytes.
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

/// Those who were invited; it stays in the service.
pub struct Guests {
    people: Vec<Person>,
}

/// A list of guests.
#[thalweg::resource]
impl Guests {
    /// All of them have a name.
    pub fn new(people: Vec<Person>) -> Result<Self, HelloError> {
        match people.iter().any(|person| person.name.is_empty()) {
            true => Err(HelloError::NoName),
            false => Ok(Self { people }),
        }
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        self.people.len() as u32
    }

    /// One after the other.
    #[thalweg::method(overflow = "block", capacity = 64)]
    pub fn arrive(&self) -> Box<dyn Iterator<Item = Person> + Send> {
        Box::new(self.people.clone().into_iter())
    }
}

/// Greets people, and counts whom it greeted.
#[thalweg::service(package = "thalweg:hello@0.1.0", closed = "tone, hello-error")]
pub trait Hello {
    /// A greeting.
    fn greet(&self, person: Person, tone: Tone) -> Result<String, HelloError>;

    /// A greeting for all of them; other calls are served meanwhile.
    async fn greet_all(&self, guests: &Guests) -> Vec<String>;

    /// How often it greeted.
    fn greeted(&self) -> u64;
}

/// The service.
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
