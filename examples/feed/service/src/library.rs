//! The library's one symbol, in an object file of its own: a Rust program that uses two services links neither's.

thalweg_capi::export!(
    crate::feed::FeedServer<crate::Market>,
    crate::feed::FeedServer::new(crate::Market)
);
