//! The trait that connects a library with its service.

use thalweg_port::Service;

/// A library's service. [`export!`](crate::export) implements it.
pub trait Export: 'static {
    /// The service.
    type Service: Service;

    /// Creates the service.
    fn make() -> Self::Service;
}
