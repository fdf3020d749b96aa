//! The options of a policy file: where each one is allowed, and which values it takes.

use crate::model::Function;
use toml_edit::Item;

/// The table of the policy file in which an option is found.
#[derive(Clone, Copy)]
pub enum Place<'a> {
    Interface,
    Resource,
    Function(&'a Function),
}

/// What an option applies to.
#[derive(Clone, Copy)]
enum Scope {
    Interface,
    Resource,
    Function,
    /// A `func` that is not async.
    Func,
    /// A function that returns a stream.
    Stream,
}

/// The type of an option's value.
enum ValueType {
    Bool,
    Text,
    Count,
    /// `"64MiB"`.
    Size,
    /// `"250ms"`.
    Duration,
    OneOf(&'static [&'static str]),
}

const OPTIONS: &[(&str, Scope, ValueType)] = &[
    ("max_queued_calls", Scope::Interface, ValueType::Count),
    ("max_queued_bytes", Scope::Interface, ValueType::Size),
    (
        "overflow",
        Scope::Interface,
        ValueType::OneOf(&["fail", "block"]),
    ),
    ("closed", Scope::Interface, ValueType::Text),
    ("constructor", Scope::Resource, ValueType::OneOf(&["async"])),
    ("destructor", Scope::Resource, ValueType::OneOf(&["async"])),
    ("timeout", Scope::Function, ValueType::Duration),
    ("notice_interval", Scope::Function, ValueType::Duration),
    ("idempotent", Scope::Function, ValueType::Bool),
    (
        "format",
        Scope::Function,
        ValueType::OneOf(&["flat", "cbor"]),
    ),
    ("inline", Scope::Func, ValueType::Bool),
    ("brief", Scope::Func, ValueType::Bool),
    (
        "overflow",
        Scope::Stream,
        ValueType::OneOf(&[
            "block",
            "latest",
            "conflate",
            "drop-newest",
            "drop-oldest",
            "fail",
        ]),
    ),
    ("capacity", Scope::Stream, ValueType::Count),
    ("conflation_key", Scope::Stream, ValueType::Text),
    ("linger", Scope::Stream, ValueType::Duration),
    ("max_record_size", Scope::Stream, ValueType::Size),
];

/// Checks that the option `name` is allowed at `place` and that its value has the right type.
/// Returns `None` if no option has this name.
pub fn check(name: &str, place: Place<'_>, item: &Item) -> Option<Result<(), String>> {
    let rows = || OPTIONS.iter().filter(|(known, ..)| *known == name);
    let scopes: Vec<_> = rows().map(|(_, scope, _)| scope.name()).collect();
    if scopes.is_empty() {
        return None;
    }
    let Some((_, _, value)) = rows().find(|(_, scope, _)| scope.allows(place)) else {
        return Some(Err(format!(
            "it is an option of {}",
            scopes.join(", or of ")
        )));
    };
    Some(value_error(value, item).map_or(Ok(()), Err))
}

/// The names of all options that a function can have, for an error message.
pub fn function_options() -> String {
    let of_functions = OPTIONS
        .iter()
        .filter(|(_, scope, _)| matches!(scope, Scope::Function | Scope::Func | Scope::Stream));
    let names: Vec<_> = of_functions.map(|(name, ..)| format!("`{name}`")).collect();
    names.join(", ")
}

impl Scope {
    fn allows(self, place: Place<'_>) -> bool {
        match (self, place) {
            (Scope::Interface, Place::Interface)
            | (Scope::Resource, Place::Resource)
            | (Scope::Function, Place::Function(_)) => true,
            (Scope::Func, Place::Function(function)) => !function.is_async,
            (Scope::Stream, Place::Function(function)) => function.stream.is_some(),
            _ => false,
        }
    }

    /// The scope as an error message names it.
    fn name(self) -> &'static str {
        match self {
            Scope::Interface => "the interface",
            Scope::Resource => "a resource",
            Scope::Function => "a function",
            Scope::Func => "a `func`, not of an `async func`",
            Scope::Stream => "a function that returns a stream",
        }
    }
}

/// The reason why `item` is not a value of the type `value`.
fn value_error(value: &ValueType, item: &Item) -> Option<String> {
    let text = item.as_str();
    let (is_valid, expected) = match value {
        ValueType::Bool => (item.as_bool().is_some(), "true or false".to_owned()),
        ValueType::Text => (text.is_some_and(|text| !text.is_empty()), "text".to_owned()),
        ValueType::Count => (
            item.as_integer().is_some_and(|count| count > 0),
            "a number of at least 1".to_owned(),
        ),
        ValueType::Size => (
            text.is_some_and(|text| has_unit(text, &["KiB", "MiB", "GiB"])),
            "a size like \"64MiB\"".to_owned(),
        ),
        ValueType::Duration => (
            text.is_some_and(|text| has_unit(text, &["us", "ms", "s", "min"])),
            "a duration like \"250ms\"".to_owned(),
        ),
        ValueType::OneOf(words) => (
            text.is_some_and(|text| words.contains(&text)),
            alternatives(words),
        ),
    };
    (!is_valid).then(|| format!("it must be {expected}"))
}

/// `"a", "b" or "c"`.
fn alternatives(words: &[&str]) -> String {
    let words: Vec<_> = words.iter().map(|word| format!("{word:?}")).collect();
    match words.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => words.concat(),
    }
}

/// Whether `text` is a whole number of at least 1, directly followed by one of `units`.
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
    fn every_option_has_a_row_in_the_policy_page() {
        let page = include_str!("../../../../docs/policy.md");
        let rows = page.lines().filter_map(|line| {
            let (name, _) = line.strip_prefix("| `")?.split_once('`')?;
            Some(name)
        });
        let known = OPTIONS.iter().map(|(name, ..)| *name);
        assert_eq!(rows.collect::<BTreeSet<_>>(), known.collect());
    }
}
