//! Converts WIT names to Rust names, escapes keywords, and reports clashes.

use crate::SourceError;
use crate::model::{Function, FunctionKind, Package, Position, TypeDefKind};
use crate::plan::names::{Case, Style, contains};
use std::collections::HashMap;

/// The keywords of Rust, strict and reserved, of every edition (The Rust Reference, "Keywords").
const KEYWORDS: &str = "\
abstract as async await become box break const continue do dyn else enum extern false final fn for
gen if impl in let loop macro match mod move mut override priv pub ref return static struct trait
true try type typeof unsafe unsized use virtual where while yield";

/// Keywords that cannot be raw identifiers.
const NEVER_RAW: &str = "crate self super";

/// A type. Generated code uses these types without a path.
const TYPE: Style = Style {
    case: Case::Pascal,
    reserved: &[
        "Clone Copy Debug Err Eq Fn Hash None Ok Option PartialEq Result Self Send Sized Some \
                 String Sync Vec",
    ],
};

/// Names of variables in generated functions.
const LOCALS: &str = "call incoming make";

/// Functions of a generated client in addition to those of the interface; those of a resource
/// client follow.
const CLIENT_FUNCTIONS: &str = "batch close detached set_host start start_with_host with_timeout";
const RESOURCE_FUNCTIONS: &str = "detached with_timeout";

/// `search-error` becomes `search_error`. Keywords are escaped.
pub fn snake(name: &str) -> String {
    let name = Case::Snake.of(name);
    if contains(&[NEVER_RAW], &name) {
        format!("{name}_")
    } else if contains(&[KEYWORDS], &name) {
        format!("r#{name}")
    } else {
        name
    }
}

/// `name`, with a `_` if it is one of these words.
fn escaped(name: String, words: &str) -> String {
    match contains(&[words], &name) {
        true => name + "_",
        false => name,
    }
}

/// The name of a parameter.
pub fn param(name: &str) -> String {
    escaped(snake(name), LOCALS)
}

/// `search-error` becomes `SearchError`.
pub fn camel(name: &str) -> String {
    TYPE.of(name)
}

/// `search-error` becomes `SEARCH_ERROR`.
pub fn shouted(name: &str) -> String {
    Case::Constant.of(name)
}

/// The name of a function in the service's trait. The name of a static function includes that of
/// its resource.
pub fn in_service(package: &Package, function: &Function) -> String {
    match function.kind {
        FunctionKind::Static(id) => snake(&format!(
            "{}-{}",
            package.resources[id.0].name, function.name
        )),
        _ => snake(&function.name),
    }
}

/// The name of a function in a client.
pub fn in_client(package: &Package, function: &Function) -> String {
    match function.kind {
        FunctionKind::Method(_) => escaped(snake(&function.name), RESOURCE_FUNCTIONS),
        _ => escaped(in_service(package, function), CLIENT_FUNCTIONS),
    }
}

/// Reports two items of a package that would have the same name in Rust.
pub fn check(package: &Package) -> Result<(), SourceError> {
    let mut items = Taken::default();
    let first = &package.functions[0].position;
    let interface = camel(&package.interface);
    for (name, what) in [
        (interface.clone(), "interface"),
        (format!("{interface}Server"), "server of the interface"),
        (format!("{interface}Client"), "client of the interface"),
    ] {
        items.take(name, format!("{what} `{}`", package.interface), first)?;
    }
    if super::inline::is_there(package) {
        for (name, what) in [
            (format!("{interface}Inline"), "inline functions"),
            (format!("{interface}Inlined"), "inline functions' server"),
            ("Inline".to_owned(), "type for the inline functions"),
        ] {
            items.take(
                name,
                format!("{what} of interface `{}`", package.interface),
                first,
            )?;
        }
    }
    if let Some(host) = &package.host {
        let name = camel(&host.interface);
        let what = format!("interface `{}`", host.interface);
        for name in [name.clone(), format!("{name}Server"), format!("{name}Host")] {
            items.take(name, what.clone(), &host.functions[0].position)?;
        }
    }
    for resource in &package.resources {
        let what = format!("resource `{}`", resource.name);
        let name = camel(&resource.name);
        items.take(format!("{name}Client"), what.clone(), &resource.position)?;
        items.take(name, what, &resource.position)?;
    }
    for (id, def) in package.types.iter().enumerate() {
        let what = format!("type `{}`", def.name);
        items.take(camel(&def.name), what.clone(), &def.position)?;
        if super::has_view(package, id) {
            items.take(format!("{}View", camel(&def.name)), what, &def.position)?;
        }
        let mut inner = Taken::default();
        let names: Vec<(String, &str)> = match &def.kind {
            TypeDefKind::Record(fields) => fields
                .iter()
                .map(|f| (snake(&f.name), f.name.as_str()))
                .collect(),
            TypeDefKind::Variant { cases, .. } => cases
                .iter()
                .map(|c| (camel(&c.name), c.name.as_str()))
                .collect(),
            TypeDefKind::Enum(labels) => labels
                .iter()
                .map(|l| (camel(&l.name), l.name.as_str()))
                .collect(),
            TypeDefKind::Flags(labels) => labels
                .iter()
                .map(|l| (shouted(&l.name), l.name.as_str()))
                .collect(),
            TypeDefKind::Alias(_) => Vec::new(),
        };
        for (name, label) in names {
            inner.take(
                name,
                format!("`{label}` of type `{}`", def.name),
                &def.position,
            )?;
        }
    }
    let mut functions = Taken::default();
    for function in package
        .functions
        .iter()
        .filter(|f| !matches!(f.kind, FunctionKind::Method(_)))
    {
        let what = format!("function `{}`", function.full_name);
        functions.take(in_service(package, function), what, &function.position)?;
    }
    Ok(())
}

#[derive(Default)]
struct Taken(HashMap<String, String>);

impl Taken {
    fn take(&mut self, name: String, what: String, position: &Position) -> Result<(), SourceError> {
        match self.0.insert(name.clone(), what.clone()) {
            None => Ok(()),
            Some(other) => Err(SourceError {
                position: position.clone(),
                construct: what,
                reason: format!(
                    "in Rust its name would be `{name}`, which is that of {other}: rename one"
                ),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{camel, param, shouted, snake};

    #[test]
    fn kebab_case_becomes_each_of_rust_s_cases() {
        assert_eq!(snake("search-error"), "search_error");
        assert_eq!(camel("search-error"), "SearchError");
        assert_eq!(camel("HTTP-status"), "HttpStatus");
        assert_eq!(shouted("read-only"), "READ_ONLY");
    }

    #[test]
    fn keywords_are_raw_or_end_in_an_underscore() {
        assert_eq!(
            (snake("match"), snake("async")),
            ("r#match".into(), "r#async".into())
        );
        assert_eq!(
            (snake("self"), snake("crate")),
            ("self_".into(), "crate_".into())
        );
        assert_eq!(
            (camel("self"), camel("option")),
            ("Self_".into(), "Option_".into())
        );
        assert_eq!(param("incoming"), "incoming_");
    }
}
