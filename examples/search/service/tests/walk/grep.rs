//! The same lines as `LC_ALL=C grep -raF`.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use thalweg_search::walk::CountOnly;

use crate::threads::{Threads, everything, find, plan, run, search};
use crate::tree::Tree;

/// The output of grep with these options, whether or not a line matches.
fn output(options: &str, pattern: &str, root: &Path) -> Vec<u8> {
    let output = Command::new("grep")
        .env("LC_ALL", "C")
        .args([options, "-e", pattern, "--"])
        .arg(root)
        .output()
        .unwrap();
    assert!(
        output.status.code().unwrap() < 2,
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

/// Lines that match, by file; files without one left out.
fn counts_of_grep(pattern: &str, root: &Path) -> BTreeMap<Vec<u8>, u64> {
    let output = output("-raFcZ", pattern, root);
    let mut counts = BTreeMap::new();
    let mut rest = &output[..];
    while let Some(name_end) = rest.iter().position(|&byte| byte == 0) {
        let (name, after) = (&rest[..name_end], &rest[name_end + 1..]);
        let count_end = after.iter().position(|&byte| byte == b'\n').unwrap();
        let count = std::str::from_utf8(&after[..count_end])
            .unwrap()
            .parse()
            .unwrap();
        if count > 0 {
            counts.insert(name.to_owned(), count);
        }
        rest = &after[count_end + 1..];
    }
    counts
}

fn counts_of_walk(workers: usize, pattern: &str, root: &Path) -> BTreeMap<Vec<u8>, u64> {
    let (found, outcome) = search(&Threads::new(workers), &plan(pattern, root, &everything()));
    assert!(!outcome.stopped);
    assert_eq!(outcome.counts.unreadable, 0);
    assert_eq!(outcome.counts.matches, found.len() as u64);
    let mut counts = BTreeMap::new();
    for line in found {
        *counts.entry(line.path).or_default() += 1;
    }
    counts
}

fn agrees(pattern: &str, root: &Path) {
    let expected = counts_of_grep(pattern, root);
    for workers in [1, 2, 7] {
        assert_eq!(
            counts_of_walk(workers, pattern, root),
            expected,
            "{pattern:?}, {workers}"
        );
    }
    let plan = plan(pattern, root, &everything());
    let counted = run(&Threads::new(2), &plan, || CountOnly).counts.matches;
    assert_eq!(
        counted,
        expected.values().sum::<u64>(),
        "{pattern:?}, counted only"
    );
}

/// Every kind of line and file that the rules speak of.
fn mixed() -> Tree {
    let tree = Tree::with(&[
        ("plain.txt", b"needle\nhay\nneedle needle\n"),
        ("no-newline", b"hay\nneedle"),
        ("empty", b""),
        ("only-newline", b"\n"),
        ("only-newlines", b"\n\n\n"),
        ("crlf.txt", b"needle\r\nhay\r\n\r\nneedle\r\n"),
        ("bare-cr", b"needle\rneedle\rneedle"),
        ("binary", b"\x00\x01needle\x00\nneedle\x00needle\n\x00"),
        ("nul-lines", b"needle\x00needle\x00\n\x00"),
        ("latin1", b"caf\xe9 needle\n\xff\xfe\n"),
        ("utf16", b"\xff\xfen\x00e\x00e\x00d\x00l\x00e\x00\n\x00"),
        ("bom", b"\xef\xbb\xbfneedle\n"),
        ("utf8", "größe needle\nzażółć\n".as_bytes()),
        (".hidden", b"needle\n"),
        (".dir/inside", b"needle\n"),
        ("deep/er/and/deeper/file", b"needle\nneedle\n"),
        ("deep/.gitignore", b"er\nneedle\n"),
        (".ignore", b"plain.txt\nneedle\n"),
        (".git/config", b"needle\n"),
        ("name with space", b"needle\n"),
        ("name\nwith newline", b"needle\n"),
        ("name:12", b"needle\n"),
        ("-n", b"needle\n"),
    ]);
    tree.file(std::ffi::OsStr::from_bytes(b"bytes-\xff\xfe"), b"needle\n");
    tree.file("large", b"hay hay hay\nneedle\n".repeat(40_000));
    for number in 0..300 {
        tree.file(format!("many/{number}"), format!("needle {number}\n"));
    }
    tree
}

#[test]
fn every_kind_of_file_and_line_counts_as_grep_counts_it() {
    let tree = mixed();
    for pattern in [
        "needle", "hay", "absent", "é", "ż", "\r", "needle\r", "e n", "1", ".",
    ] {
        agrees(pattern, tree.root());
    }
}

#[test]
fn the_empty_pattern_matches_every_line() {
    agrees("", mixed().root());
}

#[test]
fn numbers_and_texts_of_the_lines_are_those_of_grep() {
    let tree = mixed();
    let printed = output("-raFnHZ", "needle", tree.root());
    // name NUL number ':' line '\n'
    let mut expected = Vec::new();
    let mut rest = &printed[..];
    let until = |bytes: &[u8], end| bytes.iter().position(|&byte| byte == end).unwrap();
    while !rest.is_empty() {
        let name = until(rest, 0);
        let number = name + 1 + until(&rest[name + 1..], b':');
        let text = number + 1 + until(&rest[number + 1..], b'\n');
        let line: u64 = std::str::from_utf8(&rest[name + 1..number])
            .unwrap()
            .parse()
            .unwrap();
        expected.push((
            rest[..name].to_owned(),
            line,
            rest[number + 1..text].to_owned(),
        ));
        rest = &rest[text + 1..];
    }
    expected.sort();
    let (found, _) = find("needle", tree.root());
    let found: Vec<_> = found
        .into_iter()
        .map(|line| (line.path, line.line, line.bytes))
        .collect();
    assert!(found.len() > 40_000);
    assert!(found == expected);
}

#[test]
fn columns_are_bytes_from_one() {
    let tree = Tree::with(&[("f", "żneedle needle\nneedle\n".as_bytes())]);
    let (found, _) = find("needle", tree.root());
    assert_eq!(
        found.iter().map(|line| line.column).collect::<Vec<_>>(),
        [3, 1]
    );
}

#[test]
fn a_line_across_the_readers_buffers_is_one_line() {
    let tree = Tree::new();
    for size in [65_530_usize, 65_535, 65_536, 65_537, 131_071, 300_000] {
        let mut bytes = vec![b'x'; size];
        bytes.extend(b"needle\nneedle\n");
        tree.file(size.to_string(), bytes);
    }
    agrees("needle", tree.root());
}

#[test]
fn random_trees_count_as_grep_counts_them() {
    // xorshift64: any fixed seed will do, the point is shapes nobody thought of.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let tree = Tree::new();
    for file in 0..200 {
        let length = next(3_000);
        let bytes: Vec<u8> = (0..length)
            .map(|_| b"ab\n\r\x00\xc3\xa9 "[next(8) as usize])
            .collect();
        let directory = ["", "a/", "a/b/", ".c/", "a/.d/"][next(5) as usize];
        tree.file(format!("{directory}{file}"), bytes);
    }
    for pattern in ["a", "ab", "aba", "é", "a b", "", " \r", "bbbb"] {
        agrees(pattern, tree.root());
    }
}

#[test]
fn a_directory_given_with_a_slash_or_dots_names_its_files_as_grep_does() {
    let tree = Tree::with(&[("sub/file", b"needle\n")]);
    for root in ["sub/", "sub/../sub", "./sub//"] {
        agrees("needle", &tree.path(root));
    }
}

#[test]
fn ten_thousand_files_in_one_directory_are_all_found() {
    let tree = Tree::new();
    for number in 0..10_000 {
        File::create(tree.path(number.to_string())).unwrap();
    }
    tree.file("last", b"needle\n");
    agrees("needle", tree.root());
    let (_, outcome) = find("needle", tree.root());
    assert_eq!(outcome.counts.files, 10_001);
    assert_eq!(outcome.counts.bytes, 7);
}
