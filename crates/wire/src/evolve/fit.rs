//! Compatibility of two versions of a type.

use std::fmt;

use super::{UNKNOWN, first_case};
use crate::describe::{Case, Field, Kind, Type};

/// The place where two types are incompatible, and the difference there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The path from the root: fields, cases and positions, separated by dots. Empty for the root.
    pub path: String,
    /// The difference.
    pub what: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" => write!(f, "it {}", self.what),
            path => write!(f, "`{path}` {}", self.what),
        }
    }
}

impl std::error::Error for Difference {}

/// Checks that a value written as `writer` can be read as `reader`.
///
/// # Errors
/// The first place where the types are incompatible.
pub fn fits(reader: &Type<'_>, writer: &Type<'_>) -> Result<(), Difference> {
    Fit { path: Vec::new() }.value(reader, writer)
}

struct Fit<'a> {
    path: Vec<&'a str>,
}

impl<'a> Fit<'a> {
    fn path_to(&self, name: &str) -> String {
        let mut names: Vec<_> = self.path.clone();
        names.push(name);
        names.retain(|name| !name.is_empty());
        names.join(".")
    }

    fn differ<T>(&self, name: &str, what: impl Into<String>) -> Result<T, Difference> {
        Err(Difference {
            path: self.path_to(name),
            what: what.into(),
        })
    }

    fn part(
        &mut self,
        name: &'a str,
        reader: &Type<'a>,
        writer: &Type<'a>,
    ) -> Result<(), Difference> {
        self.path.push(name);
        self.value(reader, writer)?;
        self.path.pop();
        Ok(())
    }

    fn value(&mut self, reader: &Type<'a>, writer: &Type<'a>) -> Result<(), Difference> {
        if reader.text() == writer.text() {
            return Ok(());
        }
        match (&reader.kind, &writer.kind) {
            (Kind::List(to), Kind::List(from)) => {
                // A list of elements without size takes no bytes, so its converted size would have
                // no bound.
                if (to.size == 0) != (from.size == 0) {
                    return self.differ("", "is a list of what has no bytes on one side only");
                }
                self.value(to, from)
            }
            (
                Kind::Array { item: to, count },
                Kind::Array {
                    item: from,
                    count: other,
                },
            ) if count == other => self.value(to, from),
            (Kind::Option { value: to, .. }, Kind::Option { value: from, .. }) => {
                self.value(to, from)
            }
            (Kind::Tuple(to), Kind::Tuple(from)) if to.len() == from.len() => {
                for (place, (to, from)) in to.iter().zip(from).enumerate() {
                    self.part(PLACES.get(place).unwrap_or(&"?"), &to.ty, &from.ty)?;
                }
                Ok(())
            }
            (Kind::Record { fields: to, .. }, Kind::Record { fields: from, .. }) => {
                self.record(to, from)
            }
            (Kind::Variant { cases: to, .. }, Kind::Variant { cases: from, .. })
                if reader.is_result() == writer.is_result() =>
            {
                self.variant(to, from)
            }
            (Kind::Enum(to), Kind::Enum(from)) => self.labels(to, from, to.contains(&UNKNOWN)),
            (Kind::Flags(to), Kind::Flags(from)) => self.labels(to, from, true),
            (Kind::Handle, Kind::Handle) => match elements(reader, writer) {
                Some((to, from)) => self.value(&to, &from),
                None => self.other(reader, writer),
            },
            _ => self.other(reader, writer),
        }
    }

    fn other(&self, reader: &Type<'a>, writer: &Type<'a>) -> Result<(), Difference> {
        let [to, from] = [reader, writer].map(|ty| short(ty.text()));
        self.differ("", format!("is {to} on one side, {from} on the other"))
    }

    fn record(&mut self, to: &[Field<'a>], from: &[Field<'a>]) -> Result<(), Difference> {
        for (to, from) in to.iter().zip(from) {
            if to.name != from.name {
                let other = self.path_to(to.name);
                return self.differ(from.name, format!("is `{other}` on the other side"));
            }
            self.part(to.name, &to.ty, &from.ty)?;
        }
        match to
            .get(from.len()..)
            .unwrap_or_default()
            .iter()
            .find(|field| !has_zero(&field.ty))
        {
            Some(field) => self.differ(
                field.name,
                "is on the reader's side only, and has a handle, which has no value to begin with",
            ),
            None => Ok(()),
        }
    }

    fn variant(&mut self, to: &[Case<'a>], from: &[Case<'a>]) -> Result<(), Difference> {
        let names = |cases: &[Case<'a>]| cases.iter().map(|case| case.name).collect::<Vec<_>>();
        let has_unknown = to
            .iter()
            .any(|case| case.name == UNKNOWN && case.payload.is_none());
        self.labels(&names(to), &names(from), has_unknown)?;
        for (to, from) in to.iter().zip(from) {
            match (&to.payload, &from.payload) {
                (Some(ours), Some(theirs)) => self.part(to.name, ours, theirs)?,
                (None, None) => {}
                _ => return self.differ(to.name, "has a payload on one side only"),
            }
        }
        Ok(())
    }

    /// One list of cases extends the other. The writer may have more only if `may_be_more` is true.
    fn labels(&self, to: &[&str], from: &[&str], may_be_more: bool) -> Result<(), Difference> {
        if let Some((to, from)) = to.iter().zip(from).find(|(to, from)| to != from) {
            let other = self.path_to(to);
            return self.differ(from, format!("is `{other}` on the other side"));
        }
        match from.get(to.len()) {
            Some(more) if !may_be_more => self.differ(
                more,
                "is not known to the reader, whose type has no case `unknown`",
            ),
            _ => Ok(()),
        }
    }
}

/// The elements of two streams, or of two futures.
pub(super) fn elements<'a>(one: &Type<'a>, other: &Type<'a>) -> Option<(Type<'a>, Type<'a>)> {
    let ((word, one), (other_word, other)) = (one.streamed()?, other.streamed()?);
    let same = word == other_word;
    same.then_some((Type::parse(one).ok()?, Type::parse(other).ok()?))
}

/// Whether the type has a zero value. A handle has none.
fn has_zero(ty: &Type<'_>) -> bool {
    match &ty.kind {
        _ if !ty.has_handle => true,
        Kind::Handle => false,
        Kind::Array { item, .. } => has_zero(item),
        Kind::Tuple(fields) | Kind::Record { fields, .. } => {
            fields.iter().all(|field| has_zero(&field.ty))
        }
        kind @ Kind::Variant { cases, .. } => cases[first_case(kind)]
            .payload
            .as_ref()
            .is_none_or(has_zero),
        _ => true,
    }
}

/// The positions of a tuple.
const PLACES: [&str; 16] = [
    "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15",
];

/// Shortens a long type for an error message.
fn short(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("`{}..`", &text[..end]),
        None => format!("`{text}`"),
    }
}
