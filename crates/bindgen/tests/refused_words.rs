//! Characters and keywords that WIT refuses, with their places.

use std::path::Path;
use thalweg_bindgen::parse_text;

/// The refusal of an interface with these lines in it; the first is line 3.
fn refusal(lines: &str) -> String {
    let text =
        format!("package a:b@0.1.0;\ninterface i {{\n{lines}\n}}\nworld w {{ export i; }}\n");
    match parse_text(Path::new("b.wit"), &text, "") {
        Ok(package) => panic!("not refused: {package:#?}"),
        Err(refused) => refused.to_string(),
    }
}

#[test]
fn character_that_wit_refuses_is_named_at_its_column() {
    for (character, construct, reason) in [
        ("ü", "ü", "invalid character in identifier 'ü'"),
        ("\u{1f980}", "\u{1f980}", "unexpected character '\u{1f980}'"),
        ("\u{85}", "\\u{85}", "Control code '\\u{85}'"),
        ("\u{1b}[2J", "\\u{1b}", "Control code '\\u{1b}'"),
        ("\u{202e}", "\\u{202e}", "WIT does not allow this character"),
        ("\u{149}", "\u{149}", "WIT does not allow this character"),
    ] {
        assert_eq!(
            refusal(&format!("  /* é */ f: {character} func();")),
            format!("b.wit:3:14: `{construct}`: {reason}"),
        );
    }
    let reason = "`größe`: invalid character in identifier 'ö'";
    for (lines, column) in [
        ("  größe: func();", 3),
        ("  f: func(größe: u32);", 11),
        ("  f: func() -> größe;", 16),
    ] {
        assert_eq!(refusal(lines), format!("b.wit:3:{column}: {reason}"));
    }
}

#[test]
fn keyword_as_a_name_suggests_its_escape() {
    for (lines, column, keyword) in [
        ("  import: func();", 3, "import"),
        ("  f: func(import: u32);", 11, "import"),
        ("  f: func() -> import;", 16, "import"),
        ("  record r { import: u32 }\n  f: func(r: r);", 14, "import"),
        ("  record import { a: u32 }\n  f: func();", 10, "import"),
        ("  enum e { import, b }\n  f: func(e: e);", 12, "import"),
        ("  resource r { list: func(); }", 16, "list"),
    ] {
        let refused = refusal(lines);
        assert!(
            refused.starts_with(&format!("b.wit:3:{column}: `{keyword}`: expected "))
                && refused.ends_with(&format!(
                    ", found keyword `{keyword}`; to use the keyword as a name, write `%{keyword}`"
                )),
            "{refused}"
        );
    }
}
