//! Generated Rust code, compiled: three code-first services, and two versions of one package.
//!
//! `build.rs` generates the code, so nothing generated is committed. The tests are in
//! `tests/codegen`.

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
