//! Compiles the ring in C.

fn main() {
    println!("cargo::rerun-if-changed=c/ring.c");
    cc::Build::new()
        .file("c/ring.c")
        .std("c11")
        .opt_level(2)
        .warnings(true)
        .extra_warnings(true)
        .compile("thalweg_c11_ring");
}
