//! Checks the rules against the dependencies that cargo resolves for this workspace.

use std::process::Command;

use thalweg_layering::{Graph, violations};

#[test]
fn every_crate_keeps_to_its_layer() {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version",
            "1",
            "--locked",
            "--filter-platform",
            "x86_64-unknown-linux-gnu",
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs this test, so it is there");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata = String::from_utf8(output.stdout).expect("cargo writes UTF-8");
    let graph = Graph::from_metadata(&metadata).expect("cargo's own format");

    // An empty graph would pass every rule.
    for (member, folder) in [
        ("thalweg-queue", "crates/queue"),
        ("thalweg", "crates/thalweg"),
    ] {
        assert_eq!(graph.folder(member), Some(folder));
    }
    let broken: Vec<String> = violations(&graph).iter().map(ToString::to_string).collect();
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}
