//! Generates the code of the services in `src/api`, and of two versions of one package in
//! `versions`.

use std::path::Path;
use thalweg_bindgen::{build, parse};

fn main() {
    for service in ["greeter", "hall", "press"] {
        build::from_rust(format!("src/api/{service}.rs"));
    }
    let folder = std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR for build scripts");
    for version in ["older", "newer"] {
        let wit = Path::new("versions").join(version).with_extension("wit");
        println!("cargo::rerun-if-changed={}", wit.display());
        let package = parse(&wit).unwrap_or_else(|error| panic!("{error}"));
        let module = build::module(&package, version);
        let path = Path::new(&folder).join(format!("{version}.rs"));
        std::fs::write(path, module).expect("OUT_DIR is writable");
    }
}
