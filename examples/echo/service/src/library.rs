//! The exported symbol of the `cdylib`. It is in an object file of its own, so a Rust program that
//! uses two services does not link two symbols of the same name.

thalweg_capi::export!(
    crate::echo::EchoServer<crate::EchoService>,
    crate::echo::EchoServer::new(crate::EchoService)
);
