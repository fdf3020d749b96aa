//! The library's one symbol, in an object file of its own: a Rust program that uses two services takes neither's in.

thalweg_capi::export!(
    crate::conformance::ConformanceServer<crate::Echo>,
    crate::conformance::ConformanceServer::new(crate::Echo::default())
);
