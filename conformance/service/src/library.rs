//! The exported symbol of the `cdylib`. It is in an object file of its own, so a Rust program that
//! uses two services does not link two symbols of the same name.

thalweg_capi::export!(
    crate::conformance::ConformanceServer<crate::Echo>,
    crate::conformance::ConformanceServer::new(crate::Echo::default())
);
