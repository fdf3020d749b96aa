//! The library's one symbol, in an object file of its own: a Rust program that uses two services links neither's.

thalweg_capi::export!(
    crate::echo::EchoServer<crate::EchoService>,
    crate::echo::EchoServer::new(crate::EchoService)
);
