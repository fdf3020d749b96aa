//! Why a search does not begin.

use std::path::Path;

use thalweg_search::walk::{Plan, Refused, Settings};

use crate::tree::Tree;

fn refused(pattern: &str, root: &Path, settings: &Settings) -> Refused {
    Plan::new(pattern, root, settings).unwrap_err()
}

#[test]
fn a_pattern_that_is_none_is_refused_with_the_reason() {
    let tree = Tree::new();
    let reason = |pattern: &str, fixed| match refused(
        pattern,
        tree.root(),
        &Settings {
            fixed,
            ..Settings::default()
        },
    ) {
        Refused::Pattern(reason) => reason,
        other => panic!("{other:?}"),
    };
    assert!(reason("(", false).contains("unclosed group"));
    assert!(reason("a{2,1}", false).contains("repetition"));
    assert!(reason("a\nb", false).contains("line's end"));
    assert!(reason("a\nb", true).contains("line's end"));
    assert!(!reason(r"a\nb", false).is_empty());
    assert!(!reason(r"(?P<n>a)(?P<n>b)", false).is_empty());
}

#[test]
fn a_pattern_too_big_to_compile_is_refused_in_bounded_time_and_memory() {
    let tree = Tree::new();
    for pattern in [
        r"\w{1000}{1000}".to_owned(),
        "(".repeat(5_000) + &")".repeat(5_000),
    ] {
        let refused = refused(&pattern, tree.root(), &Settings::default());
        assert!(matches!(refused, Refused::Pattern(_)), "{refused:?}");
    }
}

#[test]
fn a_glob_that_is_none_is_refused_and_named() {
    let tree = Tree::new();
    let globs = vec!["*.rs".to_owned(), "a[b".to_owned()];
    match refused(
        "x",
        tree.root(),
        &Settings {
            globs,
            ..Settings::default()
        },
    ) {
        Refused::Glob(reason) => assert!(reason.contains("a[b"), "{reason}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_directory_that_is_none_is_refused_with_its_name_and_the_reason() {
    let tree = Tree::with(&[("file", b"")]);
    let reason = |root: &Path| match refused("x", root, &Settings::default()) {
        Refused::Directory(reason) => reason,
        other => panic!("{other:?}"),
    };
    let missing = reason(&tree.path("missing"));
    assert!(missing.contains("missing: No such file"), "{missing}");
    let file = reason(&tree.path("file"));
    assert!(file.contains("file: not a directory"), "{file}");
    assert!(!reason(Path::new("")).is_empty());
    assert!(!reason(Path::new("a\0b")).is_empty());
}

#[test]
fn a_directory_that_went_away_after_the_plan_was_made_is_refused_at_the_next_search() {
    let tree = Tree::with(&[("sub/file", b"")]);
    let plan = Plan::new("x", &tree.path("sub"), &Settings::default()).unwrap();
    assert_eq!(plan.check_root(), Ok(()));
    std::fs::remove_dir_all(tree.path("sub")).unwrap();
    assert!(matches!(plan.check_root(), Err(Refused::Directory(_))));
}
