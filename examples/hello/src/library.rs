//! The library's one symbol, in an object file of its own: a Rust program that uses two services links neither's.

thalweg_capi::export!(
    crate::hello::HelloServer<crate::hello_from_code::HelloFromCode<crate::api::Greeter>>,
    crate::hello::HelloServer::new(crate::hello_from_code::HelloFromCode::new(
        crate::api::Greeter::default()
    ))
);
