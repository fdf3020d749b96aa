//! The library stays loaded once it is: its workers run its code, and unloading would pull it from
//! under them.

fn main() {
    println!("cargo::rustc-link-arg-cdylib=-Wl,-z,nodelete");
    println!("cargo::rerun-if-changed=build.rs");
}
