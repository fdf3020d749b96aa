//! Converts WIT names to Python identifiers, avoiding keywords and clashes.

use std::collections::BTreeSet;

/// The keywords of Python up to 3.14, hard and soft, and the modules that annotations in a class
/// use.
const RESERVED: &[&str] = &[
    "and", "as", "assert", "async", "await", "break", "builtins", "case", "class", "continue",
    "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import",
    "in", "is", "lambda", "match", "nonlocal", "not", "or", "pass", "raise", "return", "thalweg",
    "try", "type", "while", "with", "yield",
];

/// Keywords that begin with a capital letter.
const RESERVED_CLASSES: &[&str] = &["False", "None", "True"];

/// The attributes of `thalweg.View`. A record class has the same field names as its view class.
const VIEW_ATTRIBUTES: &[&str] = &["copy"];

/// The attributes of `thalweg.Client` and `thalweg.Resource`.
const CLIENT_ATTRIBUTES: &[&str] = &["close", "closed", "library", "open"];

/// The parameters that methods have in addition to those of the function.
const METHOD_PARAMETERS: &[&str] = &["cls", "on_notice", "self", "timeout"];

/// `path-bytes` becomes `path_bytes`.
fn snake(name: &str) -> String {
    name.to_ascii_lowercase().replace('-', "_")
}

fn escaped(name: &str, also: &[&str]) -> String {
    let mut name = snake(name);
    if RESERVED.contains(&name.as_str()) || also.contains(&name.as_str()) {
        name.push('_');
    }
    name
}

/// The name of a field.
pub(super) fn field(name: &str) -> String {
    escaped(name, VIEW_ATTRIBUTES)
}

/// The name of a parameter.
pub(super) fn parameter(name: &str) -> String {
    escaped(name, METHOD_PARAMETERS)
}

/// The name of a method of a client or resource.
pub(super) fn method(name: &str) -> String {
    escaped(name, CLIENT_ATTRIBUTES)
}

/// `search-error` becomes `SearchError`.
pub(super) fn class(name: &str) -> String {
    let mut class = String::new();
    for part in name.split('-') {
        let mut letters = part.chars();
        class.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
        class.extend(letters.map(|letter| letter.to_ascii_lowercase()));
    }
    if RESERVED_CLASSES.contains(&class.as_str()) {
        class.push('_');
    }
    class
}

/// `search-error` becomes `SEARCH_ERROR`: a constant, or a member of an enum.
pub(super) fn constant(name: &str) -> String {
    snake(name).to_ascii_uppercase()
}

/// Builtins that annotations use.
const BUILTINS: &[&str] = &[
    "bool",
    "bytearray",
    "bytes",
    "float",
    "int",
    "list",
    "memoryview",
    "object",
    "str",
    "tuple",
];

/// `annotation` in a class with the names `own`. A name of the class hides a builtin of the same
/// name, so the annotation uses the `builtins` module.
pub(super) fn within(annotation: &str, own: &BTreeSet<String>) -> String {
    let mut text = String::new();
    let mut rest = annotation;
    while let Some(start) = rest.find(|letter: char| letter.is_alphabetic()) {
        let end = rest[start..]
            .find(|letter: char| !(letter.is_alphanumeric() || letter == '_' || letter == '.'))
            .map_or(rest.len(), |end| start + end);
        let word = &rest[start..end];
        text.push_str(&rest[..start]);
        if BUILTINS.contains(&word) && own.contains(word) {
            text.push_str("builtins.");
        }
        text.push_str(word);
        rest = &rest[end..];
    }
    text.push_str(rest);
    text
}

/// The names of one namespace.
#[derive(Default)]
pub(super) struct Names(BTreeSet<String>);

impl Names {
    /// `name`, with `_` appended until it is unique.
    pub(super) fn claim(&mut self, name: String) -> String {
        let mut name = name;
        while !self.0.insert(name.clone()) {
            name.push('_');
        }
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_keyword_gets_an_underscore_wherever_it_stands() {
        assert_eq!(field("match"), "match_");
        assert_eq!(field("async"), "async_");
        assert_eq!(field("type"), "type_");
        assert_eq!(parameter("lambda"), "lambda_");
        assert_eq!(method("import"), "import_");
        assert_eq!(class("none"), "None_");
    }

    #[test]
    fn a_name_that_generated_classes_need_gets_an_underscore() {
        assert_eq!(field("copy"), "copy_");
        assert_eq!(method("close"), "close_");
        assert_eq!(parameter("self"), "self_");
        assert_eq!(parameter("timeout"), "timeout_");
        assert_eq!(parameter("on-notice"), "on_notice_");
    }

    #[test]
    fn a_builtin_that_a_class_hides_is_reached_by_its_module() {
        let own = BTreeSet::from(["bytes".to_owned(), "list".to_owned()]);
        assert_eq!(
            within("tuple[list[bytes], Names] | None", &own),
            "tuple[builtins.list[builtins.bytes], Names] | None"
        );
        assert_eq!(within("thalweg.list | int", &own), "thalweg.list | int");
    }

    #[test]
    fn keyword_of_another_language_is_kept() {
        assert_eq!(field("static"), "static");
        assert_eq!(field("fn"), "fn");
        assert_eq!(parameter("dir"), "dir");
        assert_eq!(parameter("copy"), "copy");
    }

    #[test]
    fn a_word_of_capitals_is_a_word() {
        assert_eq!(class("HTTP-status"), "HttpStatus");
        assert_eq!(field("HTTP-status"), "http_status");
    }

    #[test]
    fn a_name_that_is_taken_gets_an_underscore() {
        let mut names = Names::default();
        assert_eq!(names.claim("A".into()), "A");
        assert_eq!(names.claim("A".into()), "A_");
        assert_eq!(names.claim("A".into()), "A__");
    }
}
