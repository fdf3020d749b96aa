//! The header `tracestate`: entries of the systems on the way, the latest one first.

use std::fmt;

/// The maximum number of members.
const MAX_MEMBERS: usize = 32;
/// The maximum length of a list that is passed on.
const MAX_LEN: usize = 512;
/// If a list is too long, members longer than this are removed first.
const LARGE_MEMBER: usize = 128;
/// The maximum length of a key, and of a value.
const MAX_PART: usize = 256;

/// A list of members, each with a key and a value. Empty by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceState {
    members: Vec<(String, String)>,
}

/// Why a text is not a valid `tracestate`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TraceStateError {
    /// It has more than 32 members.
    TooMany,
    /// The member at this index, counted from 0, is not `key=value` with valid characters.
    Member(usize),
    /// The member at this index has the key of an earlier one.
    Duplicate(usize),
}

impl TraceState {
    /// Reads a header. Join several headers with commas first. If the list is longer than 512
    /// characters, members longer than 128 are removed first, then members from the end.
    ///
    /// # Errors
    /// The header is not valid. Its `traceparent` can still be used.
    pub fn parse(text: impl AsRef<[u8]>) -> Result<Self, TraceStateError> {
        let mut state = Self::default();
        for (index, member) in text.as_ref().split(|byte| *byte == b',').enumerate() {
            let member = member.trim_ascii();
            if member.is_empty() {
                continue;
            }
            let bad = TraceStateError::Member(index);
            let member = str::from_utf8(member).map_err(|_| bad)?;
            let (key, value) = member.split_once('=').ok_or(bad)?;
            if !is_key(key) || !is_value(value) {
                return Err(bad);
            }
            if state.get(key).is_some() {
                return Err(TraceStateError::Duplicate(index));
            }
            if state.members.len() == MAX_MEMBERS {
                return Err(TraceStateError::TooMany);
            }
            state.members.push((key.to_owned(), value.to_owned()));
        }
        state.shorten();
        Ok(state)
    }

    /// Adds this member at the front and removes a member with the same key. The last members are
    /// removed if there are more than 32, or if the list is too long.
    ///
    /// ```
    /// use thalweg_runtime::trace::TraceState;
    ///
    /// let state = TraceState::parse("rojo=1,congo=2")?.with("congo", "3")?;
    /// assert_eq!(state.to_string(), "congo=3,rojo=1");
    /// # Ok::<(), thalweg_runtime::trace::TraceStateError>(())
    /// ```
    ///
    /// # Errors
    /// The key or the value contains an invalid character or is too long.
    pub fn with(mut self, key: &str, value: &str) -> Result<Self, TraceStateError> {
        if !is_key(key) || !is_value(value) {
            return Err(TraceStateError::Member(0));
        }
        self.members.retain(|(other, _)| other != key);
        self.members.truncate(MAX_MEMBERS - 1);
        self.members.insert(0, (key.to_owned(), value.to_owned()));
        self.shorten();
        Ok(self)
    }

    fn shorten(&mut self) {
        while self.len() > MAX_LEN {
            let large =
                |(key, value): &(String, String)| key.len() + 1 + value.len() > LARGE_MEMBER;
            let last = self.members.len() - 1;
            let index = self.members.iter().rposition(large).unwrap_or(last);
            self.members.remove(index);
        }
    }

    /// The length of the header.
    fn len(&self) -> usize {
        let members = self.members.iter();
        let all: usize = members
            .map(|(key, value)| key.len() + value.len() + 2)
            .sum();
        all.saturating_sub(1)
    }

    /// Whether it has no members. No header is sent then.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The value of this key.
    pub fn get(&self, key: &str) -> Option<&str> {
        let found = self.members.iter().find(|(other, _)| other == key);
        found.map(|(_, value)| value.as_str())
    }

    /// The keys and values, the latest first.
    pub fn members(&self) -> impl Iterator<Item = (&str, &str)> {
        self.members.iter().map(|(k, v)| (k.as_str(), v.as_str()))
    }
}

/// `key`, or `tenant@system`.
fn is_key(key: &str) -> bool {
    let rest = |text: &str| {
        let is_allowed =
            |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'*' | b'/');
        text.bytes().all(is_allowed)
    };
    let begins = |text: &str| text.starts_with(|c: char| c.is_ascii_lowercase());
    match key.split_once('@') {
        None => begins(key) && rest(key) && key.len() <= MAX_PART,
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

/// Printable ASCII without commas and equals signs, not ending with a space.
fn is_value(value: &str) -> bool {
    let is_allowed = |byte: u8| matches!(byte, b' '..=b'~') && byte != b',' && byte != b'=';
    (1..=MAX_PART).contains(&value.len()) && value.bytes().all(is_allowed) && !value.ends_with(' ')
}

/// Prints the header.
impl fmt::Display for TraceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, (key, value)) in self.members.iter().enumerate() {
            let comma = if nth > 0 { "," } else { "" };
            write!(f, "{comma}{key}={value}")?;
        }
        Ok(())
    }
}

impl fmt::Display for TraceStateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany => write!(f, "a tracestate has at most {MAX_MEMBERS} members"),
            Self::Member(index) => write!(f, "member {index} is not key=value"),
            Self::Duplicate(index) => write!(f, "member {index} has the key of an earlier one"),
        }
    }
}

impl std::error::Error for TraceStateError {}
