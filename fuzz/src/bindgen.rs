//! Parses any text as WIT, and any text as a policy file. Either the error points to a place in the
//! text, or the code of every language is generated.

use std::path::Path;
use thalweg_bindgen::{
    LANGUAGES, SourceError, check_compatibility, parse_text, types_without_unknown,
};

/// Everything that a policy file can configure: streams, a resource, an error, an enum.
const WIT: &str = "package a:b@0.1.0;
interface i {
  enum e { a, b }
  record r { k: u64, n: string }
  s: func() -> stream<r>;
  f: func(e: e) -> result<u8, string>;
  resource t { constructor(); m: func() -> stream<u8>; n: static func(); }
  a: async func();
}
world w { export i; }
";

/// Parses any bytes as WIT.
pub fn wit(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        check("b.wit", text, text, "");
    }
}

/// Parses any bytes as the policy file of [`WIT`].
pub fn policy(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        check("b.thalweg.toml", text, WIT, text);
    }
}

/// `text` is the content of the file `name`.
fn check(name: &str, text: &str, wit: &str, policy: &str) {
    let package = match parse_text(Path::new("b.wit"), wit, policy) {
        Ok(package) => package,
        Err(refused) => return check_place(&refused, name, text),
    };
    let found = check_compatibility(&package, &package);
    assert!(found.differences.is_empty() && found.additions.is_empty());
    assert!(types_without_unknown(&package).len() <= package.types.len());
    for language in LANGUAGES {
        match (language.emit)(&package) {
            Ok(files) => assert!(files.iter().all(|file| file.contents.ends_with('\n'))),
            Err(refused) => assert!(!refused.to_string().is_empty()),
        }
    }
}

fn check_place(refused: &SourceError, name: &str, text: &str) {
    let shown = refused.to_string();
    assert!(!shown.contains(|c: char| c.is_control()), "{shown:?}");
    if refused.position.file != Path::new(name) {
        return;
    }
    let lines: Vec<_> = text.split('\n').collect();
    let line = lines.get(refused.position.line as usize - 1);
    let line = line.unwrap_or_else(|| panic!("{shown:?}: there is no such line"));
    let end = line.chars().count() as u32 + 1;
    assert!(
        refused.position.column <= end,
        "{shown:?}: the line ends at {end}"
    );
}
