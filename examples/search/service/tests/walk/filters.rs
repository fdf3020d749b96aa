//! The selection of files: hidden files, ignore files, globs.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use thalweg_search::walk::Settings;

use crate::threads::{Threads, everything, plan, search};
use crate::tree::Tree;

/// Paths below the root of all files that are looked at (each has a line).
fn files(root: &Path, settings: &Settings) -> BTreeSet<String> {
    let (found, outcome) = search(&Threads::new(2), &plan("", root, settings));
    assert!(!outcome.stopped);
    let prefix = root.to_str().unwrap().len() + 1;
    found
        .into_iter()
        .map(|line| line.path_text[prefix..].to_owned())
        .collect()
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn tree(names: &[&str]) -> Tree {
    let tree = Tree::new();
    for name in names {
        tree.file(name, b"line\n");
    }
    tree
}

#[test]
fn hidden_files_and_all_below_hidden_directories_are_left_out_unless_asked_for() {
    let tree = tree(&["a", ".b", ".c/d", "e/.f", "e/g", "h/.i/j/k"]);
    let settings = Settings {
        fixed: true,
        ..Settings::default()
    };
    assert_eq!(files(tree.root(), &settings), set(&["a", "e/g"]));
    assert_eq!(files(tree.root(), &everything()).len(), 6);
}

#[test]
fn a_root_that_is_hidden_itself_is_searched() {
    let tree = tree(&[".root/a"]);
    let settings = Settings {
        fixed: true,
        ..Settings::default()
    };
    assert_eq!(files(&tree.path(".root"), &settings), set(&["a"]));
}

fn git(root: &Path, arguments: &[&str]) -> Vec<u8> {
    let output = Command::new("git")
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", root)
        .args(["-c", "core.quotepath=off", "-C"])
        .arg(root)
        .args(arguments)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

#[test]
fn gitignore_files_mean_what_git_says_they_mean() {
    let names = [
        "keep.rs",
        "drop.o",
        "target/x",
        "target/deep/y",
        "sub/target/z",
        "sub/keep.rs",
        "sub/drop.o",
        "sub/only/here.log",
        "other/only/here.log",
        "docs/a.txt",
        "docs/b.txt",
        "docs/sub/a.txt",
        "anchored/file",
        "deep/anchored/file",
        "build",
        "sub/build/out",
        "a/b/c/d.tmp",
        "a/d.tmp",
        "a/x/b",
        "a/x/y/b",
        "space name",
        "#hash",
        "!bang",
        "logs/keep.log",
        "logs/drop.log",
        "glob[1].txt",
        "glob1.txt",
        "vendored/.keep",
        "vendored/file",
        "foo.bar",
        "trailing ",
        "UPPER.O",
        "nested/deeper/important.o",
        "nested/other.o",
        "star/a.c",
        "star/sub/a.c",
        "back\\slash",
        "question1",
        "question22",
    ];
    let tree = tree(&names);
    tree.file(
        ".gitignore",
        "*.o\n/target/\nbuild/\n/anchored\ndocs/*.txt\n!docs/b.txt\na/**/b\n**/d.tmp\n\
         # a comment\n\\#hash\n\\!bang\n\n   \nlogs/*\n!logs/keep.log\nglob[1].txt\nvendored/**\n\
         !vendored/.keep\nfoo.*\ntrailing\\ \nstar/*.c\nquestion?\n",
    );
    tree.file("sub/.gitignore", "only\n!drop.o\n");
    tree.file("nested/.gitignore", "!important.o\r\n");
    tree.file("other/.gitignore", "\u{feff}only/here.log\n");
    git(tree.root(), &["init", "-q"]);
    let listed = git(
        tree.root(),
        &["ls-files", "-co", "--exclude-standard", "-z"],
    );
    let expected: BTreeSet<String> = listed
        .split(|&byte| byte == 0)
        .filter(|name| !name.is_empty())
        .map(|name| String::from_utf8(name.to_owned()).unwrap())
        .collect();
    assert!(expected.len() > 10 && expected.len() < names.len());

    let settings = Settings {
        ignore_files: true,
        ..everything()
    };
    let mut looked_at = files(tree.root(), &settings);
    // Git does not look into its own directory; a search for hidden files does.
    looked_at.retain(|name| !name.starts_with(".git/"));
    assert_eq!(looked_at, expected);
}

#[test]
fn ignore_files_work_without_a_repository_and_only_when_asked_for() {
    let tree = tree(&["a", "b", "sub/a"]);
    tree.file(".gitignore", "a\n");
    let settings = Settings {
        fixed: true,
        ignore_files: true,
        ..Settings::default()
    };
    assert_eq!(files(tree.root(), &settings), set(&["b"]));
    let settings = Settings {
        ignore_files: false,
        ..settings
    };
    assert_eq!(files(tree.root(), &settings), set(&["a", "b", "sub/a"]));
}

#[test]
fn a_dot_ignore_file_beats_a_gitignore_file_on_any_level() {
    let tree = tree(&["sub/a", "sub/b", "c"]);
    tree.file(".ignore", "!a\nc\n");
    tree.file("sub/.gitignore", "a\nb\n");
    let settings = Settings {
        fixed: true,
        ignore_files: true,
        ..Settings::default()
    };
    assert_eq!(files(tree.root(), &settings), set(&["sub/a"]));
}

#[test]
fn ignore_files_above_the_root_do_not_count() {
    let tree = tree(&["root/a"]);
    tree.file(".gitignore", "a\n");
    let settings = Settings {
        fixed: true,
        ignore_files: true,
        ..Settings::default()
    };
    assert_eq!(files(&tree.path("root"), &settings), set(&["a"]));
}

#[test]
fn an_ignore_file_that_is_a_pipe_or_a_link_or_too_large_is_counted_and_the_search_goes_on() {
    let tree = tree(&["sub/a", "linked/b", "large/c"]);
    crate::oddities::make_pipe(&tree.path("sub/.gitignore"));
    std::os::unix::fs::symlink("/dev/zero", tree.path("linked/.ignore")).unwrap();
    tree.file("large/.gitignore", vec![b'\n'; 2 << 20]);
    let settings = Settings {
        fixed: true,
        ignore_files: true,
        ..Settings::default()
    };
    let (found, outcome) = search(&Threads::new(2), &plan("line", tree.root(), &settings));
    assert_eq!((found.len(), outcome.counts.unreadable), (3, 3));
}

#[test]
fn globs_choose_and_exclude() {
    let names = [
        "a.rs",
        "b.c",
        "sub/c.rs",
        "sub/d.h",
        "sub/deep/e.rs",
        ".f.rs",
    ];
    let tree = tree(&names);
    let chosen = |globs: &[&str]| {
        let globs = globs.iter().map(|&glob| glob.to_owned()).collect();
        files(
            tree.root(),
            &Settings {
                globs,
                fixed: true,
                ..Settings::default()
            },
        )
    };
    assert_eq!(
        chosen(&["*.rs"]),
        set(&["a.rs", "sub/c.rs", "sub/deep/e.rs"])
    );
    assert_eq!(chosen(&["!*.rs"]), set(&["b.c", "sub/d.h"]));
    assert_eq!(
        chosen(&["*.rs", "!sub/deep/**"]),
        set(&["a.rs", "sub/c.rs"])
    );
    assert_eq!(
        chosen(&["!deep"]),
        set(&["a.rs", "b.c", "sub/c.rs", "sub/d.h"])
    );
    assert_eq!(chosen(&["/*.rs"]), set(&["a.rs"]));
    assert_eq!(chosen(&["sub/*.{rs,h}"]), set(&["sub/c.rs", "sub/d.h"]));
    assert_eq!(chosen(&["*.py"]), set(&[]));
}

#[test]
fn globs_do_not_bring_back_what_another_rule_excludes() {
    let tree = tree(&[".a.rs", "b.rs", "c.rs"]);
    tree.file(".gitignore", "b.rs\n");
    let globs = vec!["*.rs".to_owned()];
    let settings = Settings {
        globs,
        ignore_files: true,
        ..Settings::default()
    };
    assert_eq!(files(tree.root(), &settings), set(&["c.rs"]));
}

#[test]
fn upper_and_lower_case_are_the_same_when_asked_for() {
    let tree = Tree::with(&[("f", "Größe\nGRÖSSE\ngrößE\nx\n".as_bytes())]);
    let settings = Settings {
        ignore_case: true,
        ..everything()
    };
    let (found, _) = search(&Threads::new(1), &plan("GRÖß", tree.root(), &settings));
    assert_eq!(
        found.iter().map(|line| line.line).collect::<Vec<_>>(),
        [1, 3]
    );
}

#[test]
fn a_fixed_pattern_is_plain_text_and_another_is_a_regular_expression() {
    let tree = Tree::with(&[("f", b"a.c\nabc\n(\n")]);
    let lines = |pattern: &str, fixed| {
        let settings = Settings {
            fixed,
            ..everything()
        };
        let (found, _) = search(&Threads::new(1), &plan(pattern, tree.root(), &settings));
        found.iter().map(|line| line.line).collect::<Vec<_>>()
    };
    assert_eq!(lines("a.c", true), [1]);
    assert_eq!(lines("a.c", false), [1, 2]);
    assert_eq!(lines("^ab|^.$", false), [2, 3]);
    assert_eq!(lines("(", true), [3]);
    assert_eq!(lines(r"\Aa.c\z", false), [1, 2]);
}
