//! The library's one symbol. In a module, and so in an object file, of its own: a Rust program that uses two services takes
//! neither's symbol in, where two of the same name would not link.

thalweg_capi::export!(
    crate::search::SearchServer<crate::SearchService>,
    crate::search::SearchServer::new(crate::SearchService)
);
