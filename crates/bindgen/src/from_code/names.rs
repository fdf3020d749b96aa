//! Converts Rust names to WIT names.

/// The keywords of WIT, which need a `%` when they are used as names.
const KEYWORDS: &[&str] = &[
    "as",
    "async",
    "bool",
    "borrow",
    "char",
    "constructor",
    "enum",
    "error-context",
    "export",
    "f32",
    "f64",
    "flags",
    "from",
    "func",
    "future",
    "import",
    "include",
    "interface",
    "list",
    "map",
    "option",
    "own",
    "package",
    "record",
    "resource",
    "result",
    "s16",
    "s32",
    "s64",
    "s8",
    "static",
    "stream",
    "string",
    "tuple",
    "type",
    "u16",
    "u32",
    "u64",
    "u8",
    "use",
    "variant",
    "with",
    "world",
];

/// Converts `SearchError` and `search_error` to `search-error`. `None`: the name is not valid in
/// WIT, where each word of a name begins with an ASCII letter.
pub fn kebab(ident: &str) -> Option<String> {
    let ident = ident.strip_prefix("r#").unwrap_or(ident);
    let letters: Vec<char> = ident.trim_matches('_').chars().collect();
    let mut out = String::new();
    for (at, &letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).map(|at| letters[at]);
        let begins = letter.is_ascii_uppercase()
            && before.is_some_and(|before| {
                let next_is_small = letters.get(at + 1).is_some_and(char::is_ascii_lowercase);
                before != '_' && (!before.is_ascii_uppercase() || next_is_small)
            });
        if begins {
            out.push('-');
        }
        out.push(if letter == '_' {
            '-'
        } else {
            letter.to_ascii_lowercase()
        });
    }
    let fits = |word: &str| {
        word.starts_with(|first: char| first.is_ascii_lowercase())
            && word
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
    };
    out.split('-').all(fits).then_some(out)
}

/// Converts a valid name to its form in a WIT file.
pub fn wit(ident: &str) -> String {
    wit_name(&kebab(ident).expect("names are checked when they are read"))
}

/// A name as a WIT file writes it: a keyword gets a `%`.
///
/// ```
/// use thalweg_bindgen::wit_name;
///
/// assert_eq!((wit_name("type"), wit_name("query")), ("%type".into(), "query".into()));
/// ```
pub fn wit_name(name: &str) -> String {
    if KEYWORDS.contains(&name) {
        format!("%{name}")
    } else {
        name.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::{kebab, wit};

    #[test]
    fn kebab_of_each_rust_case_is_kebab_case() {
        for (rust, wit) in [
            ("SearchError", "search-error"),
            ("search_error", "search-error"),
            ("HTTPStatus", "http-status"),
            ("r#match", "match"),
            ("Utf8Text", "utf8-text"),
        ] {
            assert_eq!(kebab(rust).as_deref(), Some(wit));
        }
        assert_eq!(kebab("field_2"), None);
        assert_eq!(kebab("größe"), None);
    }

    #[test]
    fn wit_keyword_gets_a_percent_sign() {
        assert_eq!(
            (wit("r#type"), wit("query")),
            ("%type".into(), "query".into())
        );
    }
}
