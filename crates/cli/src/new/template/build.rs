//! A loaded library stays loaded until the process ends, because its threads run its code.

fn main() {
    println!("cargo::rustc-link-arg-cdylib=-Wl,-z,nodelete");
    println!("cargo::rerun-if-changed=build.rs");
}
