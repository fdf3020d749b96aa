//! The styles of Python names.

use crate::plan::names::{self, Case, Style};
use std::collections::BTreeSet;

/// The keywords of Python up to 3.14, hard and soft, and the modules that annotations in a class
/// use.
const RESERVED: &str = "\
and as assert async await break builtins case class continue def del elif else except finally for
from global if import in is lambda match nonlocal not or pass raise return thalweg try type while
with yield";

/// A field. A record class has the same field names as its view class, which has the attributes of
/// `thalweg.View`.
pub(super) const FIELD: Style = Style {
    case: Case::Snake,
    reserved: &[RESERVED, "copy"],
};

/// A parameter. Methods have further parameters in addition to those of the function.
pub(super) const PARAMETER: Style = Style {
    case: Case::Snake,
    reserved: &[RESERVED, "cls on_notice self timeout"],
};

/// A method of a client or resource, which has the attributes of `thalweg.Client` and
/// `thalweg.Resource`.
pub(super) const METHOD: Style = Style {
    case: Case::Snake,
    reserved: &[RESERVED, "close closed library open"],
};

/// A class.
pub(super) const CLASS: Style = Style {
    case: Case::Pascal,
    reserved: &["False None True"],
};

/// A constant, or a member of an enum.
pub(super) const CONSTANT: Style = Style {
    case: Case::Constant,
    reserved: &[],
};

/// Builtins that annotations use.
const BUILTINS: &str = "bool bytearray bytes float int list memoryview object str tuple";

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
        if names::contains(&[BUILTINS], word) && own.contains(word) {
            text.push_str("builtins.");
        }
        text.push_str(word);
        rest = &rest[end..];
    }
    text.push_str(rest);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_keyword_gets_an_underscore_wherever_it_stands() {
        assert_eq!(FIELD.of("match"), "match_");
        assert_eq!(FIELD.of("async"), "async_");
        assert_eq!(FIELD.of("type"), "type_");
        assert_eq!(PARAMETER.of("lambda"), "lambda_");
        assert_eq!(METHOD.of("import"), "import_");
        assert_eq!(CLASS.of("none"), "None_");
    }

    #[test]
    fn a_name_that_generated_classes_need_gets_an_underscore() {
        assert_eq!(FIELD.of("copy"), "copy_");
        assert_eq!(METHOD.of("close"), "close_");
        assert_eq!(PARAMETER.of("self"), "self_");
        assert_eq!(PARAMETER.of("timeout"), "timeout_");
        assert_eq!(PARAMETER.of("on-notice"), "on_notice_");
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
        assert_eq!(FIELD.of("static"), "static");
        assert_eq!(FIELD.of("fn"), "fn");
        assert_eq!(PARAMETER.of("dir"), "dir");
        assert_eq!(PARAMETER.of("copy"), "copy");
    }

    #[test]
    fn a_word_of_capitals_is_a_word() {
        assert_eq!(CLASS.of("HTTP-status"), "HttpStatus");
        assert_eq!(FIELD.of("HTTP-status"), "http_status");
    }
}
