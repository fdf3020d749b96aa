//! The exported symbol of the `cdylib`. It is in an object file of its own, so a Rust program that
//! uses two services does not link two symbols of the same name.

thalweg_capi::export!(
    crate::hello::HelloServer<crate::hello_from_code::HelloFromCode<crate::api::Greeter>>,
    crate::hello::HelloServer::new(crate::hello_from_code::HelloFromCode::new(
        crate::api::Greeter::default()
    ))
);
