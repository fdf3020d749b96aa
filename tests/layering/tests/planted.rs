//! Checks each rule against a graph that violates it, and against the nearest graph that does not.

use thalweg_layering::{Graph, Kind, Violation, violations};

/// A graph without violations.
fn sound() -> Graph {
    let mut graph = Graph::default();
    for name in [
        "queue", "runtime", "wire", "bindgen", "port", "capi", "cli", "bench",
    ] {
        graph.member(&format!("thalweg-{name}"), &format!("crates/{name}"));
    }
    graph.member("thalweg", "crates/thalweg");
    graph.member("a-service", "examples/a/service");
    for (from, to) in [
        ("thalweg-runtime", "thalweg-queue"),
        ("thalweg-port", "thalweg-queue"),
        ("thalweg-port", "thalweg-runtime"),
        ("thalweg-port", "thalweg-wire"),
        ("thalweg-bindgen", "thalweg-wire"),
        ("thalweg-bindgen", "wit-parser"),
        ("thalweg-capi", "thalweg-port"),
        ("thalweg", "thalweg-port"),
        ("thalweg-cli", "thalweg-bindgen"),
        ("thalweg-bench", "a-service"),
        ("thalweg-bench", "tokio"),
        ("thalweg-queue", "libc"),
        ("a-service", "thalweg"),
        ("a-service", "thalweg-capi"),
    ] {
        graph.edge(from, Kind::Normal, to);
    }
    graph
}

fn layer(member: &str, names: &str) -> Violation {
    Violation::Layer {
        member: member.to_owned(),
        names: names.to_owned(),
    }
}

#[test]
fn the_layers_as_designed_break_nothing() {
    assert_eq!(violations(&sound()), []);
}

#[test]
fn a_lower_crate_that_names_an_upper_one_is_found() {
    for (from, to) in [
        ("thalweg-queue", "thalweg-wire"),
        ("thalweg-wire", "thalweg-queue"),
        ("thalweg-runtime", "thalweg-port"),
        ("thalweg-port", "thalweg-capi"),
        ("thalweg", "thalweg-capi"),
        ("thalweg-capi", "thalweg"),
        ("thalweg-cli", "a-service"),
        ("a-service", "thalweg-port"),
    ] {
        let mut graph = sound();
        graph.edge(from, Kind::Normal, to);
        assert_eq!(violations(&graph), [layer(from, to)]);
    }
}

#[test]
fn a_crates_tests_keep_to_its_layer_too() {
    for kind in [Kind::Dev, Kind::Build] {
        let mut graph = sound();
        graph.edge("thalweg-queue", kind, "thalweg-runtime");
        assert_eq!(
            violations(&graph),
            [layer("thalweg-queue", "thalweg-runtime")]
        );
    }
}

#[test]
fn a_crate_that_no_row_knows_is_found() {
    let mut graph = sound();
    graph.member("thalweg-new", "crates/new");
    let folder = "crates/new".to_owned();
    assert_eq!(
        violations(&graph),
        [Violation::Unknown {
            member: "thalweg-new".to_owned(),
            folder
        }]
    );
}

#[test]
fn a_peer_that_another_package_brings_along_is_found_with_its_way() {
    let mut graph = sound();
    graph.edge("thalweg-runtime", Kind::Normal, "some-executor");
    graph.edge("some-executor", Kind::Normal, "tokio");
    let ways: Vec<String> = violations(&graph).iter().map(ToString::to_string).collect();
    assert!(
        ways.contains(
            &"thalweg-runtime -> some-executor -> tokio: a peer of the lab reaches no user"
                .to_owned()
        ),
        "{ways:?}"
    );
    // All crates above depend on it, too.
    assert!(
        ways.iter()
            .any(|way| way.starts_with("thalweg -> thalweg-port")),
        "{ways:?}"
    );
}

#[test]
fn the_crate_that_holds_the_peers_is_the_labs_alone() {
    let mut graph = sound();
    graph.member("thalweg-peers", "crates/bench/peers");
    graph.edge("thalweg-peers", Kind::Normal, "tokio");
    graph.edge("thalweg-bench", Kind::Normal, "thalweg-peers");
    assert_eq!(violations(&graph), []);
    graph.edge("a-service", Kind::Normal, "thalweg-peers");
    let found: Vec<String> = violations(&graph).iter().map(ToString::to_string).collect();
    for wanted in [
        "a-service -> thalweg-peers: only the lab has the peers",
        "a-service -> thalweg-peers -> tokio: a peer of the lab reaches no user",
    ] {
        assert!(found.contains(&wanted.to_owned()), "{found:?}");
    }
}

#[test]
fn a_peer_in_a_crates_own_tests_is_nobody_elses() {
    let mut graph = sound();
    graph.edge("thalweg-queue", Kind::Dev, "crossbeam-channel");
    assert_eq!(violations(&graph), []);
}

#[test]
fn the_facade_with_the_generators_would_bring_wit_parser_to_every_user() {
    let mut graph = sound();
    graph.edge("thalweg", Kind::Normal, "thalweg-bindgen");
    let found = violations(&graph);
    assert!(found.contains(&layer("thalweg", "thalweg-bindgen")));
    assert!(found.iter().any(|violation| {
        violation
            .to_string()
            .contains("thalweg-bindgen -> wit-parser: WIT is read")
    }));
}

#[test]
fn whatever_depends_on_the_lab_is_found() {
    let mut graph = sound();
    graph.edge("a-service", Kind::Normal, "thalweg-bench");
    let found: Vec<String> = violations(&graph).iter().map(ToString::to_string).collect();
    assert!(
        found.contains(&"a-service may not depend on thalweg-bench".to_owned()),
        "{found:?}"
    );
    assert!(
        found.contains(&"a-service -> thalweg-bench: nothing depends on the lab".to_owned()),
        "{found:?}"
    );
}

#[test]
fn a_foreign_language_in_the_core_is_found() {
    let mut graph = sound();
    graph.member("thalweg-python", "bindings/python");
    graph.edge("thalweg-python", Kind::Normal, "pyo3");
    assert_eq!(violations(&graph), []);
    graph.edge("thalweg-capi", Kind::Normal, "pyo3");
    assert!(!violations(&graph).is_empty());
}
