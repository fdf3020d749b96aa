//! Generates the Rust code of the package. The library is never unloaded, because its workers run
//! its code.

fn main() {
    thalweg_bindgen::build::from_wit("../wit");
    println!("cargo::rustc-link-arg-cdylib=-Wl,-z,nodelete");
    println!("cargo::rerun-if-changed=build.rs");
}
