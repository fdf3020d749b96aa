//! The progress of a query, as a stream.

use std::time::Duration;

use thalweg_search::search::Progress;

use crate::tree::Tree;
use crate::{client, query};

fn tree() -> Tree {
    let tree = Tree::new();
    for number in 0..100 {
        tree.file(number.to_string(), b"needle\nhay\n");
    }
    tree
}

#[test]
fn the_state_comes_at_once_and_the_whole_of_it_at_the_end_of_a_search() {
    let (tree, client) = (tree(), client());
    let query = query(&client, "needle", tree.root());
    let mut states = query.progress().wait().unwrap();
    let nothing = Progress {
        files: 0,
        bytes: 0,
        matches: 0,
        unreadable: 0,
        problem: None,
    };
    assert_eq!(states.next().unwrap().unwrap(), nothing);
    assert_eq!(client.matches(&query).wait().unwrap().count(), 100);
    let mut last = nothing.clone();
    while last.files < 100 {
        let state = states.next().unwrap().unwrap();
        assert!(state.files >= last.files && state.bytes >= last.bytes);
        last = state;
    }
    assert_eq!(
        last,
        Progress {
            files: 100,
            bytes: 1_100,
            matches: 100,
            ..nothing
        }
    );
}

#[test]
fn a_slow_watcher_misses_what_was_overtaken_and_never_the_newest() {
    let (tree, client) = (tree(), client());
    let query = query(&client, "needle", tree.root());
    let mut states = query.progress().wait().unwrap();
    for _ in 0..10 {
        assert_eq!(client.matches(&query).wait().unwrap().count(), 100);
    }
    // The stream ends before the last searcher publishes no more; the newest state is there soon.
    let (mut seen, mut lost) = (0, 0);
    loop {
        let batch = states.next_batch(16, u64::MAX).unwrap().unwrap();
        seen += u64::from(batch.len());
        lost += batch.lost_before();
        assert_eq!(batch.first_sequence() + u64::from(batch.len()), seen + lost);
        if batch.iter().last().unwrap().files == 1_000 {
            break;
        }
    }
    assert!(lost > 0);
}

#[test]
fn dropping_the_query_ends_its_progress_regularly() {
    let (tree, client) = (tree(), client());
    let query = query(&client, "needle", tree.root());
    let states = query.progress().wait().unwrap();
    drop(query);
    assert_eq!(states.map(Result::unwrap).count(), 1);
}

#[test]
fn watchers_that_left_do_not_disturb_the_others() {
    let (tree, client) = (tree(), client());
    let query = query(&client, "needle", tree.root());
    for _ in 0..50 {
        drop(query.progress().wait().unwrap());
    }
    let mut states = query.progress().wait().unwrap();
    assert_eq!(client.matches(&query).wait().unwrap().count(), 100);
    while states.next().unwrap().unwrap().files < 100 {}
}

#[test]
fn what_could_not_be_read_is_counted_and_named() {
    let tree = Tree::with(&[("file", b"needle\n")]);
    let huge = std::fs::File::create(tree.path("zeros")).unwrap();
    huge.set_len(1 << 30).unwrap();
    let client = client().with_timeout(Duration::from_secs(60));
    let query = query(&client, "needle", tree.root());
    assert_eq!(client.matches(&query).wait().unwrap().count(), 1);
    let mut states = query.progress().wait().unwrap();
    let state = states.next().unwrap().unwrap();
    assert_eq!(state.unreadable, 1);
    let problem = state.problem.unwrap();
    assert!(problem.contains("/zeros: a line longer than"), "{problem}");
}
