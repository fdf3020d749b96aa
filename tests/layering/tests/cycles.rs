//! Checks the limits of import cycles against the sources of this workspace, and the parser of
//! imports against sources with known ones.

use std::path::Path;

use thalweg_layering::{LARGEST_CYCLES, Modules};

fn parse(files: &[(&str, &str)]) -> Modules {
    let files: Vec<(String, String)> = files
        .iter()
        .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))
        .collect();
    Modules::parse(&files)
}

#[test]
fn no_crate_has_a_larger_cycle_than_its_limit() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut larger = Vec::new();
    for (folder, limit) in LARGEST_CYCLES {
        let modules = Modules::read(&root.join(folder).join("src")).expect("the crate exists");
        assert!(modules.count() > 4, "{folder}: {} modules", modules.count());
        let cycle = modules.largest_cycle();
        if cycle.len() > *limit {
            larger.push(format!("{folder}: {} > {limit}: {cycle:?}", cycle.len()));
        }
    }
    assert!(larger.is_empty(), "\n{}", larger.join("\n"));
}

#[test]
fn modules_without_a_cycle_have_none() {
    let modules = parse(&[
        ("lib.rs", "mod a; mod b; mod c; pub use a::A;"),
        ("a.rs", "use crate::b::B; use crate::c;"),
        ("b.rs", "fn f() { crate::c::g(); }"),
        ("c.rs", "pub fn g() {}"),
    ]);
    assert_eq!(modules.count(), 3);
    assert!(modules.largest_cycle().is_empty());
}

#[test]
fn every_kind_of_path_counts_as_an_import() {
    for import in [
        "use crate::a::A;",
        "use crate::{c, a::A};",
        "use crate::{c::{self, C}, a};",
        "pub(crate) use crate::a::{A as B};",
        "fn f() -> crate::a::A { todo!() }",
        "fn f() { let x: Vec<crate::a::A> = vec![]; }",
        // From the crate's root.
        "use crate::A;",
        "use super::a::A;",
        "use super::{c, A};",
        // After what the parser skips.
        "// a comment's quote\nfn f<'a>() -> char { '\"' }\nuse crate::a;",
        "const TEXT: &str = r#\"\"crate\"#; use crate::a;",
        "#[cfg(not(test))] use crate::a;",
        "#[cfg(test)] use std::fmt; use crate::a;",
        "#[cfg(test)] mod tests { fn f() {} } use crate::a;",
    ] {
        let modules = parse(&[
            ("lib.rs", "mod a; mod b; mod c; pub use a::A;"),
            ("a.rs", "use crate::b::B;"),
            ("b.rs", import),
            ("c.rs", ""),
        ]);
        assert_eq!(modules.largest_cycle(), ["a", "b"], "{import}");
    }
}

#[test]
fn paths_in_comments_strings_and_tests_do_not_count() {
    for text in [
        "// use crate::a;",
        "//! [`A`](crate::a::A)",
        "/* crate::a */",
        "const TEXT: &str = \"\\\"crate::a\";",
        "const TEXT: &str = r#\"crate::a \" crate::a\"#;",
        "#[cfg(test)] use crate::a;",
        "#[cfg(all(test, not(loom)))] mod tests { use crate::a; }",
        "#[cfg(test)] thread_local! { static A: crate::a::A = A; }",
        "pub(crate) struct a;",
    ] {
        let modules = parse(&[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "use crate::b::B;"),
            ("b.rs", text),
        ]);
        assert!(modules.largest_cycle().is_empty(), "{text}");
    }
}

#[test]
fn files_of_modules_for_tests_do_not_count() {
    for (declaration, is_for_tests) in [("#[cfg(test)] mod checks;", true), ("mod checks;", false)]
    {
        let modules = parse(&[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "use crate::b::B;"),
            ("b.rs", declaration),
            ("b/checks.rs", "use crate::a;"),
        ]);
        assert_eq!(
            modules.largest_cycle().is_empty(),
            is_for_tests,
            "{declaration}"
        );
    }
}

#[test]
fn files_of_a_folder_belong_to_its_module() {
    let modules = parse(&[
        ("lib.rs", "mod a; mod b; mod c;"),
        ("a.rs", "mod inner;"),
        ("a/inner.rs", "use super::Own; use crate::b;"),
        ("b/mod.rs", "mod inner;"),
        ("b/inner.rs", "use super::super::c;"),
        ("c.rs", "use crate::a::inner;"),
        ("main.rs", "use crate::a; use crate::b;"),
    ]);
    assert_eq!(modules.count(), 3);
    assert_eq!(modules.largest_cycle(), ["a", "b", "c"]);
}
