//! Marks the library as not unloadable: its workers run its code until the process ends.

fn main() {
    println!("cargo::rustc-link-arg-cdylib=-Wl,-z,nodelete");
    println!("cargo::rerun-if-changed=build.rs");
}
