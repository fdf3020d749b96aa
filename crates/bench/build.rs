//! Records the tools and settings of the lab's build for the `tools` and `knobs` of every result,
//! and configures linking.

use std::env;
use std::process::Command;

fn main() {
    let rustc = env::var("RUSTC").expect("cargo sets RUSTC for build scripts");
    let version = Command::new(rustc)
        .arg("--version")
        .output()
        .ok()
        .filter(|output| output.status.success())
        .map_or_else(
            || "unknown".to_owned(),
            |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
        );
    let profile = env::var("PROFILE").expect("cargo sets PROFILE for build scripts");
    println!("cargo::rustc-env=THALWEG_BENCH_RUSTC={version}");
    println!("cargo::rustc-env=THALWEG_BENCH_PROFILE={profile}");
    // Two services are linked into the lab, each with a `tw_library` that nothing here calls,
    // because the lab opens libraries as files.
    println!("cargo::rustc-link-arg=-Wl,-z,muldefs");
    println!("cargo::rerun-if-changed=build.rs");
}
