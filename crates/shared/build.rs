//! The library must not be unloaded, because its threads run its code. With its name, a program that searches
//! for libthalweg.so also finds one that the process has loaded by its path.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-link-arg-cdylib=-Wl,-z,nodelete,-soname,libthalweg.so");
}
