//! What the methods answer.

use thalweg::{CallError, Code};
use thalweg_search::search::{Match, Options, SearchError};

use crate::tree::Tree;
use crate::{client, code, everything, query};

fn tree() -> Tree {
    Tree::with(&[
        ("a.txt", b"needle\nhay needle\n"),
        (".hidden", b"needle\n"),
        ("sub/c++", b"a+b (needle)\n"),
        ("sub/latin1", b"caf\xe9 needle\n"),
    ])
}

#[test]
fn the_lines_come_with_all_their_fields() {
    let (tree, client) = (tree(), client());
    let query = query(&client, "needle", tree.root());
    let matches = client.matches(&query).wait().unwrap();
    let mut found: Vec<Match> = matches.map(Result::unwrap).collect();
    found.sort_by(|a, b| (&a.path, a.line).cmp(&(&b.path, b.line)));
    let line = |name: &str, line, column, text: &str, bytes: Option<&[u8]>| Match {
        path: tree.path(name).to_str().unwrap().to_owned(),
        line,
        column,
        text: text.to_owned(),
        path_bytes: None,
        text_bytes: bytes.map(<[u8]>::to_vec),
        cut: false,
    };
    let expected = [
        line(".hidden", 1, 1, "needle", None),
        line("a.txt", 1, 1, "needle", None),
        line("a.txt", 2, 5, "hay needle", None),
        line("sub/c++", 1, 6, "a+b (needle)", None),
        line(
            "sub/latin1",
            1,
            6,
            "caf\u{fffd} needle",
            Some(b"caf\xe9 needle"),
        ),
    ];
    assert_eq!(found, expected);
}

#[test]
fn lines_of_one_file_come_in_order() {
    let tree = Tree::new();
    for number in 0..20 {
        tree.file(number.to_string(), "needle\n".repeat(3_000));
    }
    let client = client();
    let query = query(&client, "needle", tree.root());
    let mut last = std::collections::HashMap::new();
    let mut count = 0;
    for found in client.matches(&query).wait().unwrap() {
        let found = found.unwrap();
        let before = last.insert(found.path, found.line).unwrap_or(0);
        assert_eq!(found.line, before + 1);
        count += 1;
    }
    assert_eq!(count, 60_000);
}

#[test]
fn count_takes_a_regular_expression_and_hidden_files_in() {
    let (tree, client) = (tree(), client());
    let root = tree.root().to_str().unwrap();
    assert_eq!(client.count("needle$", root).wait(), Ok(4));
    assert_eq!(client.count("^needle$", root).wait(), Ok(2));
    assert_eq!(client.count("absent", root).wait(), Ok(0));
    assert_eq!(client.count("", root).wait(), Ok(5));
}

#[test]
fn escape_makes_an_expression_that_matches_just_the_text() {
    let (tree, client) = (tree(), client());
    let root = tree.root().to_str().unwrap();
    let escaped = client.escape("a+b (").wait().unwrap();
    assert_eq!(client.count(&escaped, root).wait(), Ok(1));
    assert!(matches!(
        client.count("a+b (", root).wait(),
        Err(CallError::Service(_))
    ));
}

#[test]
fn one_query_is_used_often_and_by_several_at_a_time() {
    let (tree, client) = (tree(), client());
    let query = query(&client, "needle", tree.root());
    let streams: Vec<_> = (0..8).map(|_| client.matches(&query)).collect();
    for stream in streams {
        assert_eq!(stream.wait().unwrap().count(), 5);
    }
}

#[test]
fn a_wrong_pattern_glob_or_directory_is_the_services_own_error() {
    let (tree, client) = (tree(), client());
    let root = tree.root().to_str().unwrap();
    let refused = |pattern: &str, dir: &str, globs: &[&str]| {
        let globs = globs.iter().map(|&glob| glob.to_owned()).collect();
        let options = Options {
            fixed: false,
            globs,
            ..everything()
        };
        match client.query(pattern, dir, &options).wait() {
            Err(CallError::Service(error)) => error,
            other => panic!("{other:?}"),
        }
    };
    let pattern = refused("a(", root, &[]);
    assert!(
        matches!(&pattern, SearchError::Pattern(why) if why.contains("unclosed")),
        "{pattern}"
    );
    let glob = refused("a", root, &["["]);
    assert!(
        matches!(&glob, SearchError::Glob(why) if why.contains('[')),
        "{glob}"
    );
    let directory = refused("a", "/no/such", &[]);
    assert!(
        matches!(&directory, SearchError::Directory(why) if why.contains("/no/such")),
        "{directory}"
    );
    let counted = client.count("a(", root).wait();
    assert!(
        matches!(counted, Err(CallError::Service(SearchError::Pattern(_)))),
        "{counted:?}"
    );
}

#[test]
fn a_directory_that_went_away_is_an_error_of_the_next_search() {
    let (tree, client) = (tree(), client());
    let query = query(&client, "needle", &tree.path("sub"));
    std::fs::remove_dir_all(tree.path("sub")).unwrap();
    let result = client.matches(&query).wait().map(|_| ());
    assert!(
        matches!(result, Err(CallError::Service(SearchError::Directory(_)))),
        "{result:?}"
    );
}

#[test]
fn a_pattern_nested_to_the_limit_is_compiled_on_an_actors_stack() {
    let (tree, client) = (tree(), client());
    let pattern = format!("{}needle{}", "(?:(".repeat(100), "))".repeat(100));
    let root = tree.root().to_str().unwrap();
    let options = Options {
        fixed: false,
        ..everything()
    };
    assert!(client.query(&pattern, root, &options).wait().is_ok());
    assert_eq!(client.count(&pattern, root).wait(), Ok(5));
    // Beyond the limit it is an error, not a crash.
    let deep = format!("{}x{}", "(".repeat(10_000), ")".repeat(10_000));
    assert!(matches!(
        client.count(&deep, root).wait(),
        Err(CallError::Service(_))
    ));
}

#[test]
fn a_query_of_another_client_is_refused() {
    let tree = tree();
    let (one, other) = (client(), client());
    let query = query(&one, "needle", tree.root());
    assert_eq!(
        code(other.matches(&query).wait().map(|_| ())),
        Code::Argument
    );
}
