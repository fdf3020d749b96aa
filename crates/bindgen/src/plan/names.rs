//! Names: WIT's kebab-case in the style of a language, without its reserved words, and unique in a
//! scope.
//!
//! A back end has one constant [`Style`] per kind of name, and one [`Scope`] per namespace of its
//! output. The order of the claims is part of the output.

use std::collections::BTreeSet;

/// How the words of a name are written. WIT names are unique without regard to case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// `search_error`
    Snake,
    /// `searchError`
    Camel,
    /// `SearchError`
    Pascal,
    /// `SEARCH_ERROR`
    Constant,
}

impl Case {
    /// The name in this case.
    ///
    /// ```
    /// use thalweg_bindgen::plan::names::Case;
    ///
    /// assert_eq!(Case::Camel.of("search-error"), "searchError");
    /// assert_eq!(Case::Pascal.of("HTTP-status"), "HttpStatus");
    /// ```
    pub fn of(self, name: &str) -> String {
        match self {
            Case::Snake => name.to_ascii_lowercase().replace('-', "_"),
            Case::Constant => name.to_ascii_uppercase().replace('-', "_"),
            Case::Camel | Case::Pascal => {
                let mut out = String::new();
                for (place, word) in name.split('-').enumerate() {
                    let mut letters = word.chars().map(|letter| letter.to_ascii_lowercase());
                    if place > 0 || self == Case::Pascal {
                        out.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
                    }
                    out.extend(letters);
                }
                out
            }
        }
    }
}

/// The style of one kind of name in a language.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// The case.
    pub case: Case,
    /// The words that a name must not be, as texts of words with spaces between them. Such a name
    /// gets a `_` at its end.
    pub reserved: &'static [&'static str],
}

impl Style {
    /// The name in this style.
    ///
    /// ```
    /// use thalweg_bindgen::plan::names::{Case, Style};
    ///
    /// const METHOD: Style = Style { case: Case::Snake, reserved: &["class def", "close open"] };
    /// assert_eq!(METHOD.of("path-bytes"), "path_bytes");
    /// assert_eq!(METHOD.of("Close"), "close_");
    /// ```
    pub fn of(&self, name: &str) -> String {
        let mut name = self.case.of(name);
        if contains(self.reserved, &name) {
            name.push('_');
        }
        name
    }
}

/// Whether one of the lists of words contains `word`.
pub fn contains(lists: &[&str], word: &str) -> bool {
    let mut words = lists.iter().flat_map(|list| list.split_ascii_whitespace());
    words.any(|reserved| reserved == word)
}

/// The names that are taken in one namespace.
#[derive(Clone, Debug, Default)]
pub struct Scope(BTreeSet<String>);

impl Scope {
    /// Takes `name`, with `_` appended until it is unique.
    ///
    /// ```
    /// let mut scope = thalweg_bindgen::plan::names::Scope::default();
    /// assert_eq!(scope.claim("count"), "count");
    /// assert_eq!(scope.claim("count"), "count_");
    /// ```
    pub fn claim(&mut self, name: impl Into<String>) -> String {
        let mut name = name.into();
        while !self.0.insert(name.clone()) {
            name.push('_');
        }
        name
    }
}
