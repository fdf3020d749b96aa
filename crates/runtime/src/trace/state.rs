//! The header `tracestate`: what each system on the way has to say of a trace, the last one first.

use std::fmt;

/// Members that a list may have.
const MOST: usize = 32;
/// Characters of a list that are passed on.
const LONGEST: usize = 512;
/// Members of more characters go first, where a list is longer than that.
const LARGE: usize = 128;
/// Characters of a key, and of a value.
const LONGEST_PART: usize = 256;

/// A list of members, each a key and a value. Empty by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceState {
    members: Vec<(String, String)>,
}

/// Why a text is no `tracestate`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StateError {
    /// It has more than 32 members.
    TooMany,
    /// The member in this place, counted from 0, is not `key=value` with characters that may be there.
    Member(usize),
    /// The member in this place has the key of an earlier one.
    Duplicate(usize),
}

impl TraceState {
    /// Reads a header; several are put together with commas before. Of a list that is longer than 512 characters members of more than 128 are left out, and then those
    /// at the end, until it is not.
    ///
    /// # Errors
    /// It is none. Its `traceparent` is good all the same.
    pub fn parse(text: impl AsRef<[u8]>) -> Result<Self, StateError> {
        let mut state = Self::default();
        for (place, member) in text.as_ref().split(|byte| *byte == b',').enumerate() {
            let member = member.trim_ascii();
            if member.is_empty() {
                continue;
            }
            let bad = StateError::Member(place);
            let member = str::from_utf8(member).map_err(|_| bad)?;
            let (key, value) = member.split_once('=').ok_or(bad)?;
            if !is_key(key) || !is_value(value) {
                return Err(bad);
            }
            if state.get(key).is_some() {
                return Err(StateError::Duplicate(place));
            }
            if state.members.len() == MOST {
                return Err(StateError::TooMany);
            }
            state.members.push((key.to_owned(), value.to_owned()));
        }
        state.shorten();
        Ok(state)
    }

    /// With this member first, in the place of one of the same key; the last one goes where there are 32, or the list becomes too long.
    ///
    /// ```
    /// use thalweg_runtime::trace::TraceState;
    ///
    /// let state = TraceState::parse("rojo=1,congo=2")?.with("congo", "3")?;
    /// assert_eq!(state.to_string(), "congo=3,rojo=1");
    /// # Ok::<(), thalweg_runtime::trace::StateError>(())
    /// ```
    ///
    /// # Errors
    /// Key or value have characters that may not be there, or too many.
    pub fn with(mut self, key: &str, value: &str) -> Result<Self, StateError> {
        if !is_key(key) || !is_value(value) {
            return Err(StateError::Member(0));
        }
        self.members.retain(|(other, _)| other != key);
        self.members.truncate(MOST - 1);
        self.members.insert(0, (key.to_owned(), value.to_owned()));
        self.shorten();
        Ok(self)
    }

    fn shorten(&mut self) {
        while self.len() > LONGEST {
            let large = |(key, value): &(String, String)| key.len() + 1 + value.len() > LARGE;
            let last = self.members.len() - 1;
            let place = self.members.iter().rposition(large).unwrap_or(last);
            self.members.remove(place);
        }
    }

    /// Characters of the header.
    fn len(&self) -> usize {
        let members = self.members.iter();
        let all: usize = members
            .map(|(key, value)| key.len() + value.len() + 2)
            .sum();
        all.saturating_sub(1)
    }

    /// Whether it has no members: then no header is sent.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The value of this key.
    pub fn get(&self, key: &str) -> Option<&str> {
        let found = self.members.iter().find(|(other, _)| other == key);
        found.map(|(_, value)| value.as_str())
    }

    /// Keys and values, the last system's first.
    pub fn members(&self) -> impl Iterator<Item = (&str, &str)> {
        self.members.iter().map(|(k, v)| (k.as_str(), v.as_str()))
    }
}

/// `simple`, or `tenant@system`.
fn is_key(key: &str) -> bool {
    let rest = |text: &str| {
        let known =
            |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'*' | b'/');
        text.bytes().all(known)
    };
    let begins = |text: &str| text.starts_with(|c: char| c.is_ascii_lowercase());
    match key.split_once('@') {
        None => begins(key) && rest(key) && key.len() <= LONGEST_PART,
        Some((tenant, system)) => {
            let first = tenant.bytes().next();
            first.is_some_and(|first| first.is_ascii_lowercase() || first.is_ascii_digit())
                && rest(tenant)
                && tenant.len() <= 241
                && begins(system)
                && rest(system)
                && system.len() <= 14
        }
    }
}

/// Printable, without commas and equals signs; a space is not the last.
fn is_value(value: &str) -> bool {
    let known = |byte: u8| matches!(byte, b' '..=b'~') && byte != b',' && byte != b'=';
    (1..=LONGEST_PART).contains(&value.len()) && value.bytes().all(known) && !value.ends_with(' ')
}

/// As the header.
impl fmt::Display for TraceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, (key, value)) in self.members.iter().enumerate() {
            let comma = if nth > 0 { "," } else { "" };
            write!(f, "{comma}{key}={value}")?;
        }
        Ok(())
    }
}

impl fmt::Display for StateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany => write!(f, "a tracestate has {MOST} members at most"),
            Self::Member(place) => write!(f, "member {place} is not key=value"),
            Self::Duplicate(place) => write!(f, "member {place} has the key of an earlier one"),
        }
    }
}

impl std::error::Error for StateError {}
