//! Identifiers: from WIT's kebab-case to C's, without keywords and without clashes.

use std::collections::BTreeSet;

/// What may not be the name of a member or of a parameter: keywords of C and C++ up to C23 and C++20, and
/// macros that the headers we include, or GNU's dialect, define in lower case.
const RESERVED: &[&str] = &[
    "alignas",
    "alignof",
    "and",
    "and_eq",
    "asm",
    "assert",
    "auto",
    "bitand",
    "bitor",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "char16_t",
    "char32_t",
    "char8_t",
    "class",
    "co_await",
    "co_return",
    "co_yield",
    "compl",
    "concept",
    "const",
    "const_cast",
    "consteval",
    "constexpr",
    "constinit",
    "continue",
    "decltype",
    "default",
    "delete",
    "do",
    "double",
    "dynamic_cast",
    "else",
    "enum",
    "errno",
    "explicit",
    "export",
    "extern",
    "false",
    "float",
    "for",
    "friend",
    "goto",
    "i386",
    "if",
    "inline",
    "int",
    "linux",
    "long",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "not_eq",
    "nullptr",
    "offsetof",
    "operator",
    "or",
    "or_eq",
    "private",
    "protected",
    "public",
    "register",
    "reinterpret_cast",
    "requires",
    "restrict",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "static_assert",
    "static_cast",
    "stderr",
    "stdin",
    "stdout",
    "struct",
    "switch",
    "template",
    "this",
    "thread_local",
    "throw",
    "true",
    "try",
    "typedef",
    "typeid",
    "typename",
    "typeof",
    "typeof_unqual",
    "union",
    "unix",
    "unsigned",
    "using",
    "va_arg",
    "va_copy",
    "va_end",
    "va_start",
    "virtual",
    "void",
    "volatile",
    "wchar_t",
    "while",
    "xor",
    "xor_eq",
];

/// What the body of a generated function calls its own: a parameter of that name gets a `_`.
const LOCALS: &[&str] = &[
    "asked",
    "base",
    "call",
    "client",
    "code",
    "completion",
    "deadline_ns",
    "error",
    "host",
    "reader",
    "result",
    "root",
    "state",
    "submission",
    "token",
    "writer",
];

/// `path-bytes` becomes `path_bytes`. WIT's names are unique without regard to case.
pub(super) fn snake(name: &str) -> String {
    name.to_ascii_lowercase().replace('-', "_")
}

/// The name of a struct's member.
pub(super) fn member(name: &str) -> String {
    let mut name = snake(name);
    if RESERVED.contains(&name.as_str()) {
        name.push('_');
    }
    name
}

/// The name of a function's parameter.
pub(super) fn parameter(name: &str) -> String {
    let mut name = member(name);
    if LOCALS.contains(&name.as_str()) {
        name.push('_');
    }
    name
}

/// The identifiers of one header, which share one scope whatever they name. Who comes second gets a `_`, so
/// the order of the claims is part of the output.
pub(super) struct Names {
    prefix: String,
    taken: BTreeSet<String>,
}

impl Names {
    /// All names begin with the package's.
    pub(super) fn new(package: &str) -> Self {
        let mut prefix = snake(package);
        if prefix == "tw" {
            prefix.push('_'); // `tw_` is Thalweg's own
        }
        Names {
            prefix,
            taken: BTreeSet::new(),
        }
    }

    /// `search`
    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// `search_match_view` of `match_view`.
    pub(super) fn claim(&mut self, wanted: &str) -> String {
        self.unique(format!("{}_{wanted}", self.prefix))
    }

    /// `SEARCH_ERROR_GLOB` of `error_glob`: a constant.
    pub(super) fn constant(&mut self, wanted: &str) -> String {
        self.unique(format!("{}_{wanted}", self.prefix).to_ascii_uppercase())
    }

    fn unique(&mut self, mut name: String) -> String {
        while !self.taken.insert(name.clone()) {
            name.push('_');
        }
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_keyword_of_either_language_is_escaped() {
        assert_eq!(member("template"), "template_");
        assert_eq!(member("Register"), "register_");
        assert_eq!(member("path-bytes"), "path_bytes");
    }

    #[test]
    fn a_parameter_does_not_hide_what_the_body_uses() {
        assert_eq!(parameter("deadline-ns"), "deadline_ns_");
        assert_eq!(member("deadline-ns"), "deadline_ns");
    }

    #[test]
    fn who_comes_second_gets_an_underscore() {
        let mut names = Names::new("my-search");
        assert_eq!(names.claim("count"), "my_search_count");
        assert_eq!(names.claim("count"), "my_search_count_");
        assert_eq!(names.constant("a_b"), "MY_SEARCH_A_B");
        assert_eq!(names.constant("a_b"), "MY_SEARCH_A_B_");
    }

    #[test]
    fn a_package_called_tw_stays_out_of_our_names() {
        assert_eq!(Names::new("tw").claim("open"), "tw__open");
    }
}
