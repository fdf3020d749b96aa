//! Unusual trees: links, loops, pipes, sockets, unreadable and vanishing files, huge and broken
//! lines.

use std::ffi::{CString, OsStr};
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use thalweg_search::walk::{Hit, LINE_LIMIT, TEXT_LIMIT};

use crate::threads::{Threads, everything, find, plan, run};
use crate::tree::Tree;

pub fn make_pipe(path: &Path) {
    let path = CString::new(path.as_os_str().as_bytes()).unwrap();
    // SAFETY: a NUL-terminated path that outlives the call.
    assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
}

#[test]
fn links_below_the_root_are_not_followed_and_loops_do_not_matter() {
    let tree = Tree::with(&[("real/file", b"needle\n")]);
    symlink("real/file", tree.path("link-to-file")).unwrap();
    symlink("real", tree.path("link-to-directory")).unwrap();
    symlink(".", tree.path("loop")).unwrap();
    symlink("..", tree.path("real/up")).unwrap();
    symlink("self", tree.path("self")).unwrap();
    symlink("nowhere", tree.path("dangling")).unwrap();
    let (found, outcome) = find("needle", tree.root());
    assert_eq!(found.len(), 1);
    assert_eq!((outcome.counts.files, outcome.counts.unreadable), (1, 0));
}

#[test]
fn the_root_may_be_a_link() {
    let tree = Tree::with(&[("real/file", b"needle\n")]);
    symlink("real", tree.path("link")).unwrap();
    let (found, _) = find("needle", &tree.path("link"));
    assert_eq!(found.len(), 1);
    assert!(found[0].path_text.ends_with("/link/file"));
}

#[test]
fn pipes_sockets_and_devices_are_passed_over() {
    let tree = Tree::with(&[("file", b"needle\n")]);
    make_pipe(&tree.path("pipe"));
    let _socket = UnixListener::bind(tree.path("socket")).unwrap();
    let (found, outcome) = find("needle", tree.root());
    assert_eq!(found.len(), 1);
    assert_eq!((outcome.counts.files, outcome.counts.unreadable), (1, 0));
}

#[test]
fn a_file_that_vanishes_is_counted_and_the_others_are_searched() {
    let tree = Tree::with(&[("a", b"needle\n"), ("b", b"needle\n"), ("c", b"needle\n")]);
    let root = tree.root().to_owned();
    let plan = plan("needle", tree.root(), &everything());
    // One worker: all three are listed when the first line comes.
    let outcome = run(&Threads::new(1), &plan, move || {
        let root = root.clone();
        let first = AtomicBool::new(true);
        move |hit: &Hit<'_>| {
            if first.swap(false, Ordering::Relaxed) {
                let other = if hit.path.ends_with("/b") { "c" } else { "b" };
                fs::remove_file(root.join(other)).unwrap();
            }
            Ok(())
        }
    });
    let counts = outcome.counts;
    assert!(!outcome.stopped);
    assert_eq!((counts.files, counts.matches, counts.unreadable), (2, 2, 1));
    let problem = plan.progress.problem().unwrap();
    assert!(problem.contains("No such file"), "{problem}");
}

#[test]
fn a_directory_that_vanishes_is_counted_and_the_others_are_searched() {
    let tree = Tree::with(&[("file", b"needle\n"), ("gone/file", b"needle\n")]);
    let gone = tree.path("gone");
    let plan = plan("needle", tree.root(), &everything());
    let outcome = run(&Threads::new(1), &plan, move || {
        let gone = gone.clone();
        move |_: &Hit<'_>| {
            let _ = fs::remove_dir_all(&gone);
            Ok(())
        }
    });
    assert_eq!((outcome.counts.matches, outcome.counts.unreadable), (1, 1));
}

#[test]
fn a_file_replaced_by_a_pipe_after_it_was_listed_does_not_block() {
    let tree = Tree::with(&[("a", b"needle\n"), ("b", b"needle\n")]);
    let root = tree.root().to_owned();
    let plan = plan("needle", tree.root(), &everything());
    let outcome = run(&Threads::new(1), &plan, move || {
        let root = root.clone();
        move |hit: &Hit<'_>| {
            let other = root.join(if hit.path.ends_with("/a") { "b" } else { "a" });
            fs::remove_file(&other).unwrap();
            make_pipe(&other);
            Ok(())
        }
    });
    assert_eq!((outcome.counts.matches, outcome.counts.unreadable), (1, 1));
}

#[test]
fn a_path_longer_than_the_system_takes_is_counted_and_the_rest_is_searched() {
    let tree = Tree::with(&[("file", b"needle\n")]);
    // Deeper than any path can name: made by renaming one deep tree into another.
    let name = "d".repeat(200);
    let mut inner = tree.path("inner");
    let mut outer = tree.path("outer");
    for _ in 0..15 {
        inner.push(&name);
        outer.push(&name);
    }
    fs::create_dir_all(&inner).unwrap();
    fs::write(inner.join("file"), b"needle\n").unwrap();
    fs::create_dir_all(&outer).unwrap();
    fs::rename(tree.path("inner"), outer.join("inner")).unwrap();
    let (found, outcome) = find("needle", tree.root());
    assert_eq!((found.len(), outcome.counts.unreadable), (1, 1));
    // The other way round again, so that the tree can be removed.
    fs::rename(outer.join("inner"), tree.path("inner")).unwrap();
}

#[test]
fn a_name_that_is_not_utf8_is_lossy_and_brings_its_bytes() {
    let tree = Tree::new();
    tree.file(OsStr::from_bytes(b"d\xff/f\xfe"), b"needle\n");
    let (found, _) = find("needle", tree.root());
    assert_eq!(found.len(), 1);
    assert!(found[0].path.ends_with(b"/d\xff/f\xfe"));
    assert!(found[0].path_text.ends_with("/d\u{fffd}/f\u{fffd}"));
}

#[test]
fn a_line_that_is_not_utf8_is_lossy_and_brings_its_bytes() {
    let tree = Tree::with(&[("f", b"\xff needle\nneedle\n")]);
    let (found, _) = find("needle", tree.root());
    assert!(found[0].lossy && !found[1].lossy);
    assert_eq!(found[0].text, "\u{fffd} needle");
    assert_eq!(found[0].bytes, b"\xff needle");
    assert_eq!(found[0].column, 3);
}

#[test]
fn a_long_line_is_cut_and_says_so() {
    let tree = Tree::new();
    let mut line = vec![b'x'; 100_000];
    line.extend(b"needle\nneedle\n");
    tree.file("f", line);
    let (found, _) = find("needle", tree.root());
    assert_eq!(
        (found[0].text.len(), found[0].cut, found[0].column),
        (TEXT_LIMIT, true, 100_001)
    );
    assert_eq!(
        (found[1].text.as_str(), found[1].cut, found[1].line),
        ("needle", false, 2)
    );
}

fn peak_memory_mib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    line.split_whitespace()
        .nth(1)
        .unwrap()
        .parse::<u64>()
        .unwrap()
        / 1024
}

#[test]
fn a_gigabyte_of_zeros_is_counted_as_unreadable_in_bounded_memory() {
    let tree = Tree::with(&[("before", b"needle\n"), ("z-after", b"needle\n")]);
    let mut file = File::create(tree.path("sparse")).unwrap();
    file.write_all(b"needle\nneedle\n").unwrap();
    file.set_len(1 << 30).unwrap();
    let (found, outcome) = find("needle", tree.root());
    // The lines before the long one are found.
    assert_eq!((found.len(), outcome.counts.unreadable), (4, 1));
    assert!(!outcome.stopped);
    assert!(peak_memory_mib() < 400, "{} MiB", peak_memory_mib());
}

#[test]
fn the_longest_line_there_may_be_is_searched_to_its_end() {
    let tree = Tree::new();
    // The buffer must have room for one more byte to see the file's end.
    let mut line = vec![b'x'; LINE_LIMIT - 8];
    line.extend(b"needle\n");
    tree.file("f", &line);
    let (found, outcome) = find("needle", tree.root());
    assert_eq!((found.len(), outcome.counts.unreadable), (1, 0));
    line.splice(0..0, [b'x'; 64]);
    tree.file("f", &line);
    let (found, outcome) = find("needle", tree.root());
    assert_eq!((found.len(), outcome.counts.unreadable), (0, 1));
}
