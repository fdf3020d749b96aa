//! Guests as clients in Rust.

use thalweg_port::{Client, Failure, ServiceClient};

use crate::slots;

/// Opens guests as the typed client of generated code. Every client that `thalweg gen` writes has this
/// trait.
pub trait OpenGuest: ServiceClient {
    /// Opens the guest with an address, `thread:PATH`. `PATH` is searched for as by `dlopen` if it has no
    /// slash. Each client has its own state in the guest, and clients of the same address share the
    /// library.
    ///
    /// The guest is closed when the client, its clones and their calls, streams and resources are
    /// dropped, and is unloaded after its last state. If it is opened again while it is unloaded, this
    /// waits for up to 10 s.
    ///
    /// # Errors
    /// `argument`: the address is none, or the library cannot be loaded, is no guest or describes itself
    /// wrongly. `version`: the guest has another version of the guest ABI, another package, or a version
    /// of the package that is not compatible with the client's; the message has the first difference.
    /// `overloaded`: 64 guests are open, or this one is still in use after 10 s. The guest's own
    /// failure, if it refuses to be opened.
    fn open(address: &str) -> Result<Self, Failure> {
        let opening = slots::open(address)?;
        let instance = opening.client()?;
        Client::of_opened(instance, Self::PACKAGE, opening).map(Self::from_client)
    }
}

impl<C: ServiceClient> OpenGuest for C {}
