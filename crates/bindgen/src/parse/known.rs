//! The options of a policy file: where each may stand, and what it may say. Nothing in a policy file is ignored.

use crate::model::Function;
use toml_edit::Item;

/// Where an option stands.
#[derive(Clone, Copy)]
pub enum Place<'a> {
    Interface,
    Resource,
    Function(&'a Function),
}

/// What an option is for.
enum Of {
    Interface,
    Resource,
    Function,
    /// A `func` that is not async.
    Func,
    /// A function that returns a stream.
    Stream,
}

enum Value {
    Switch,
    Text,
    Count,
    /// `"64MiB"`.
    Bytes,
    /// `"250ms"`.
    Duration,
    OneOf(&'static [&'static str]),
}

const OPTIONS: &[(&str, Of, Value)] = &[
    ("calls", Of::Interface, Value::Count),
    ("bytes", Of::Interface, Value::Bytes),
    (
        "overload",
        Of::Interface,
        Value::OneOf(&["refuse", "block"]),
    ),
    ("closed", Of::Interface, Value::Text),
    ("constructor", Of::Resource, Value::OneOf(&["async"])),
    ("destructor", Of::Resource, Value::OneOf(&["async"])),
    ("deadline", Of::Function, Value::Duration),
    ("notice", Of::Function, Value::Duration),
    ("idempotent", Of::Function, Value::Switch),
    ("format", Of::Function, Value::OneOf(&["flat", "cbor"])),
    ("inline", Of::Func, Value::Switch),
    ("key", Of::Stream, Value::Text),
    ("linger", Of::Stream, Value::Duration),
    ("largest_record", Of::Stream, Value::Bytes),
];

/// Whether the option `name` may say that there, or why not; `None` where there is none of that name.
pub fn check(name: &str, place: Place<'_>, item: &Item) -> Option<Result<(), String>> {
    let (_, of, value) = OPTIONS.iter().find(|(known, ..)| *known == name)?;
    let reason = misplaced(of, place)
        .map(str::to_owned)
        .or_else(|| misspelt(value, item));
    Some(reason.map_or(Ok(()), Err))
}

/// Of all options that a function can have.
pub fn names() -> String {
    let of_functions = OPTIONS
        .iter()
        .filter(|(_, of, _)| matches!(of, Of::Function | Of::Func | Of::Stream));
    let names = of_functions.map(|(name, ..)| format!("`{name}`"));
    let known: Vec<_> = names
        .chain(["`policy`".to_owned(), "`capacity`".to_owned()])
        .collect();
    known.join(", ")
}

fn misplaced(of: &Of, place: Place<'_>) -> Option<&'static str> {
    match (of, place) {
        (Of::Interface, Place::Interface)
        | (Of::Resource, Place::Resource)
        | (Of::Function, Place::Function(_)) => None,
        (Of::Func, Place::Function(function)) if !function.is_async => None,
        (Of::Stream, Place::Function(function)) if function.stream.is_some() => None,
        (Of::Interface, _) => Some("it is an option of the interface"),
        (Of::Resource, _) => Some("it is an option of a resource"),
        (Of::Function, _) => Some("it is an option of a function"),
        (Of::Func, _) => Some("it is an option of a `func`, not of an `async func`"),
        (Of::Stream, _) => Some("it is an option of a function that returns a stream"),
    }
}

fn misspelt(value: &Value, item: &Item) -> Option<String> {
    let text = item.as_str();
    let (is_one, wanted) = match value {
        Value::Switch => (item.as_bool().is_some(), "true or false"),
        Value::Text => (text.is_some_and(|text| !text.is_empty()), "text"),
        Value::Count => (
            item.as_integer().is_some_and(|count| count > 0),
            "a number from 1 on",
        ),
        Value::Bytes => (
            text.is_some_and(|text| has_unit(text, &["KiB", "MiB", "GiB"])),
            "a size like \"64MiB\"",
        ),
        Value::Duration => (
            text.is_some_and(|text| has_unit(text, &["us", "ms", "s", "min"])),
            "a duration like \"250ms\"",
        ),
        Value::OneOf(words) => {
            let is_one = text.is_some_and(|text| words.contains(&text));
            let words: Vec<_> = words.iter().map(|word| format!("{word:?}")).collect();
            return (!is_one).then(|| format!("it must be {}", words.join(" or ")));
        }
    };
    (!is_one).then(|| format!("it must be {wanted}"))
}

/// A whole number from 1 on, and right behind it one of `units`.
fn has_unit(text: &str, units: &[&str]) -> bool {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    units.contains(&unit) && number.parse().is_ok_and(|number: u32| number > 0)
}

#[cfg(test)]
mod tests {
    use super::OPTIONS;
    use std::collections::BTreeSet;

    #[test]
    fn each_option_has_its_row_for_users() {
        let page = include_str!("../../../../docs/policy.md");
        let rows = page.lines().filter_map(|line| {
            let (name, _) = line.strip_prefix("| `")?.split_once('`')?;
            Some(name)
        });
        // Those of streams that `policy.rs` reads.
        let known = OPTIONS.iter().map(|(name, ..)| *name);
        let known: BTreeSet<_> = known.chain(["policy", "capacity"]).collect();
        assert_eq!(rows.collect::<BTreeSet<_>>(), known);
    }
}
