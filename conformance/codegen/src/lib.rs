//! Generated Rust code, compiled: three code-first services, two versions of one package, and clients of
//! guests.
//!
//! `build.rs` generates the code, so nothing generated is committed. The tests are in
//! `tests/codegen` and `tests/guests`.

/// Code-first services, from which `build.rs` generates WIT and Rust code.
pub mod api {
    pub mod greeter;
    pub mod hall;
    pub mod press;
}

/// The generated code of the services, and the glue between it and [`api`].
pub mod services {
    include!(concat!(env!("OUT_DIR"), "/greeter.rs"));
    include!(concat!(env!("OUT_DIR"), "/hall.rs"));
    include!(concat!(env!("OUT_DIR"), "/press.rs"));
}

/// The generated code of the packages in `versions`.
pub mod versions {
    include!(concat!(env!("OUT_DIR"), "/older.rs"));
    include!(concat!(env!("OUT_DIR"), "/newer.rs"));
}

/// The generated code of the tests' guest, as it is and in the versions in `guests`.
pub mod guests {
    include!(concat!(env!("OUT_DIR"), "/probe.rs"));
    include!(concat!(env!("OUT_DIR"), "/grown.rs"));
    include!(concat!(env!("OUT_DIR"), "/changed.rs"));
    include!(concat!(env!("OUT_DIR"), "/major.rs"));
    include!(concat!(env!("OUT_DIR"), "/stranger.rs"));
}
