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

/// A part that one of two versions of a type adds to the other: a field of a record, a case, a
/// flag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addition {
    /// The place, as in [`Difference::path`].
    pub path: String,
    /// The reader has it. Otherwise the writer has it.
    pub is_reader: bool,
}

/// How two types compare: see [`compare`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Every incompatible place, in the order of the types. If empty, the reader can read what the
    /// writer writes.
    pub differences: Vec<Difference>,
    /// The parts that one type adds to the other.
    pub additions: Vec<Addition>,
}

/// Checks that a value written as `writer` can be read as `reader`.
///
/// # Errors
/// The first place where the types are incompatible. [`compare`] finds all of them.
pub fn fits(reader: &Type<'_>, writer: &Type<'_>) -> Result<(), Difference> {
    let first = compare(reader, writer).differences.into_iter().next();
    first.map_or(Ok(()), Err)
}

/// Compares the type of a reader with the type of a writer.
///
/// ```
/// use thalweg_wire::{describe::Type, evolve::compare};
///
/// let older = Type::parse("record{id:u32,kind:u8}")?;
/// let newer = Type::parse("record{id:u64,kind:u16,name:string}")?;
/// let found = compare(&newer, &older);
/// let paths: Vec<_> = found.differences.iter().map(|it| it.path.as_str()).collect();
/// assert_eq!(paths, ["id", "kind"]);
/// assert_eq!(found.additions[0].path, "name");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn compare(reader: &Type<'_>, writer: &Type<'_>) -> Comparison {
    let mut walk = Walk::default();
    walk.value(reader, writer);
    walk.found
}

#[derive(Default)]
struct Walk<'a> {
    path: Vec<&'a str>,
    found: Comparison,
}

impl<'a> Walk<'a> {
    fn path_to(&self, name: &str) -> String {
        let mut names: Vec<_> = self.path.clone();
        names.push(name);
        names.retain(|name| !name.is_empty());
        names.join(".")
    }

    fn differ(&mut self, name: &str, what: impl Into<String>) {
        self.found.differences.push(Difference {
            path: self.path_to(name),
            what: what.into(),
        });
    }

    fn add(&mut self, name: &str, is_reader: bool) {
        self.found.additions.push(Addition {
            path: self.path_to(name),
            is_reader,
        });
    }

    fn part(&mut self, name: &'a str, reader: &Type<'a>, writer: &Type<'a>) {
        self.path.push(name);
        self.value(reader, writer);
        self.path.pop();
    }

    fn value(&mut self, reader: &Type<'a>, writer: &Type<'a>) {
        if reader.text() == writer.text() {
            return;
        }
        match (&reader.kind, &writer.kind) {
            (Kind::List(to), Kind::List(from)) => {
                // A list of elements without size takes no bytes, so its converted size would have
                // no bound.
                if (to.size == 0) != (from.size == 0) {
                    return self.differ("", "is a list of what has no bytes on one side only");
                }
                self.value(to, from);
            }
            (
                Kind::Array { item: to, count },
                Kind::Array {
                    item: from,
                    count: other,
                },
            ) if count == other => self.value(to, from),
            (Kind::Option { value: to, .. }, Kind::Option { value: from, .. }) => {
                self.value(to, from);
            }
            (Kind::Tuple(to), Kind::Tuple(from)) if to.len() == from.len() => {
                for (place, (to, from)) in to.iter().zip(from).enumerate() {
                    self.part(PLACES.get(place).unwrap_or(&"?"), &to.ty, &from.ty);
                }
            }
            (Kind::Record { fields: to, .. }, Kind::Record { fields: from, .. }) => {
                self.record(to, from);
            }
            (Kind::Variant { cases: to, .. }, Kind::Variant { cases: from, .. })
                if reader.is_result() == writer.is_result() =>
            {
                self.variant(to, from);
            }
            (Kind::Enum(to), Kind::Enum(from)) => self.labels(to, from, to.contains(&UNKNOWN)),
            (Kind::Flags(to), Kind::Flags(from)) => self.labels(to, from, true),
            (Kind::Handle, Kind::Handle) => match elements(reader, writer) {
                Some((to, from)) => self.elements(&to, &from),
                None => self.other(reader, writer),
            },
            _ => self.other(reader, writer),
        }
    }

    fn other(&mut self, reader: &Type<'a>, writer: &Type<'a>) {
        let [to, from] = [reader, writer].map(|ty| short(ty.text()));
        self.differ("", format!("is {to} on one side, {from} on the other"));
    }

    /// Compares element types. Their texts live only during this call, so only paths are kept.
    fn elements(&mut self, to: &Type<'_>, from: &Type<'_>) {
        let Comparison {
            differences,
            additions,
        } = compare(to, from);
        for Difference { path, what } in differences {
            self.differ(&path, what);
        }
        for Addition { path, is_reader } in additions {
            self.add(&path, is_reader);
        }
    }

    fn record(&mut self, to: &[Field<'a>], from: &[Field<'a>]) {
        let mut pairs = to.iter().zip(from);
        if let Some((moved, other)) = pairs.find(|(to, from)| to.name != from.name) {
            let there = self.path_to(moved.name);
            self.differ(other.name, format!("is `{there}` on the other side"));
            // Common fields are matched by name.
            for to in to {
                if let Some(from) = from.iter().find(|from| from.name == to.name) {
                    self.part(to.name, &to.ty, &from.ty);
                }
            }
            return;
        }
        for (to, from) in to.iter().zip(from) {
            self.part(to.name, &to.ty, &from.ty);
        }
        for field in to.get(from.len()..).unwrap_or_default() {
            if has_zero(&field.ty) {
                self.add(field.name, true);
            } else {
                self.differ(
                    field.name,
                    "is on the reader's side only, and has a handle, which has no value to begin with",
                );
            }
        }
        for field in from.get(to.len()..).unwrap_or_default() {
            self.add(field.name, false);
        }
    }

    fn variant(&mut self, to: &[Case<'a>], from: &[Case<'a>]) {
        let names = |cases: &[Case<'a>]| cases.iter().map(|case| case.name).collect::<Vec<_>>();
        let has_unknown = to
            .iter()
            .any(|case| case.name == UNKNOWN && case.payload.is_none());
        self.labels(&names(to), &names(from), has_unknown);
        for to in to {
            let Some(from) = from.iter().find(|from| from.name == to.name) else {
                continue;
            };
            match (&to.payload, &from.payload) {
                (Some(ours), Some(theirs)) => self.part(to.name, ours, theirs),
                (None, None) => {}
                _ => self.differ(to.name, "has a payload on one side only"),
            }
        }
    }

    /// One list of cases extends the other. The writer may have more only if `may_be_more` is true.
    fn labels(&mut self, to: &[&'a str], from: &[&'a str], may_be_more: bool) {
        if let Some((to, from)) = to.iter().zip(from).find(|(to, from)| to != from) {
            let other = self.path_to(to);
            return self.differ(from, format!("is `{other}` on the other side"));
        }
        for more in to.get(from.len()..).unwrap_or_default() {
            self.add(more, true);
        }
        for more in from.get(to.len()..).unwrap_or_default() {
            if may_be_more {
                self.add(more, false);
            } else {
                self.differ(
                    more,
                    "is not known to the reader, whose type has no case `unknown`",
                );
            }
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
