//! Compiles the C code: the ring, and structs that are copied with their tails.

fn main() {
    println!("cargo::rerun-if-changed=c");
    cc::Build::new()
        .files(["c/ring.c", "c/codec.c"])
        .std("c11")
        .opt_level(2)
        .warnings(true)
        .extra_warnings(true)
        .compile("thalweg_peers_c");
}
