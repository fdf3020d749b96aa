//! Checks with `cargo tree` that no package that a user builds depends on a peer of the lab.
//!
//! The rules read cargo's metadata, which unifies the features of the whole workspace. This test
//! resolves each package alone, as its user's build does.

use std::process::Command;

use serde::Deserialize;
use thalweg_layering::PEERS;

/// Runs cargo in this workspace.
fn cargo(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO"))
        .args(arguments)
        .args(["--locked", "--color", "never"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs this test, so it is there");
    assert!(
        output.status.success(),
        "cargo {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("cargo writes UTF-8")
}

/// The peers among the dependencies of `package`; the crate that wraps them counts as one.
fn peers_in(package: &str) -> Vec<String> {
    let target = "x86_64-unknown-linux-gnu";
    let tree = cargo(&[
        "tree", "-e", "normal", "--prefix", "none", "--target", target, "-p", package,
    ]);
    let names = tree
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    let is_peer = |name: &&str| PEERS.contains(name) || *name == "thalweg-peers";
    names.filter(is_peer).map(str::to_owned).collect()
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    manifest_path: String,
}

#[test]
fn no_peer_of_the_lab_is_in_what_a_user_builds() {
    let text = cargo(&["metadata", "--format-version", "1", "--no-deps"]);
    let metadata: Metadata = serde_json::from_str(&text).expect("cargo's own format");
    // The lab itself. The crate that it measures through (crates/bench/service) is built like a
    // user's service.
    let of_lab = ["thalweg-bench", "thalweg-hot-paths", "thalweg-peers"];
    let mut asked = Vec::new();
    for Package {
        name,
        manifest_path,
    } in &metadata.packages
    {
        if of_lab.contains(&name.as_str()) {
            continue;
        }
        assert_eq!(
            peers_in(name),
            Vec::<String>::new(),
            "{name} ({manifest_path})"
        );
        asked.push(name.as_str());
    }
    for known in [
        "thalweg",
        "thalweg-capi",
        "thalweg-cli",
        "thalweg-python",
        "thalweg-queue",
        "thalweg-search",
    ] {
        assert!(asked.contains(&known), "{known} was not asked: {asked:?}");
    }
}

#[test]
fn the_question_finds_a_peer_where_one_is() {
    let found = peers_in("thalweg-peers");
    for peer in ["thalweg-peers", "tokio", "rtrb", "crossbeam-channel"] {
        assert!(found.contains(&peer.to_owned()), "{peer} in {found:?}");
    }
}
