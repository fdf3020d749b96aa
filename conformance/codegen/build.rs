//! Generates the code of the services in `src/api`, of two versions of one package in `versions`, and of
//! the tests' guest, as it is and in the versions in `guests`.

use std::path::Path;
use thalweg_bindgen::{build, parse};

fn main() {
    for service in ["greeter", "hall", "press"] {
        build::from_rust(format!("src/api/{service}.rs"));
    }
    let folder = std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR for build scripts");
    for (wit, module) in [
        ("versions/older.wit", "older"),
        ("versions/newer.wit", "newer"),
        ("../../bindings/c/tests/guests/interface/probe.wit", "probe"),
        ("guests/grown.wit", "grown"),
        ("guests/changed.wit", "changed"),
        ("guests/major.wit", "major"),
        ("guests/stranger.wit", "stranger"),
    ] {
        println!("cargo::rerun-if-changed={wit}");
        let package = parse(Path::new(wit)).unwrap_or_else(|error| panic!("{error}"));
        let code = build::module(&package, module);
        let path = Path::new(&folder).join(format!("{module}.rs"));
        std::fs::write(path, code).expect("OUT_DIR is writable");
    }
}
