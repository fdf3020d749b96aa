//! The one symbol of the library. It is in an object file of its own: a Rust program that uses two
//! services does not link it.

thalweg_capi::export!(
    crate::my_service::MyServiceServer<crate::MyServiceImpl>,
    crate::my_service::MyServiceServer::new(crate::MyServiceImpl::default())
);
