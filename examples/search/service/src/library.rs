//! The exported symbol of the library. It is in a module of its own, and so in a separate object
//! file: a Rust program that uses two services links neither symbol, because two symbols of the
//! same name would not link.

thalweg_capi::export!(
    crate::search::SearchServer<crate::SearchService>,
    crate::search::SearchServer::new(crate::SearchService)
);
