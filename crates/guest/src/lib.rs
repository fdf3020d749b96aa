//! Opens guests, which are services in other languages than Rust.
//!
//! ```text
//!   program                this crate                              guest library
//!   OpenGuest::open -----> dlopen, tw_guest ---------------------> serve(package, functions)
//!   a client <-----------  Instance::open_guest
//!   a call --------------> a turn of the instance ---------------> functions.call
//!   reload_table --------> dlopen beside it, Instance::reload_guest for each client
//!   its result <---------- the completion <----------------------- core.answer
//! ```
//!
//! A program in Rust opens a guest as the client of its generated code:
//!
//! ```no_run
//! # mod probe {
//! #     use thalweg_port::{Client, Package, QueueLimits, ServiceClient};
//! #     const PACKAGE: Package = Package { name: "thalweg:probe", version: "0.1.0", layout: 0, methods: &[],
//! #         imports: &[], limits: QueueLimits::DEFAULT };
//! #     pub struct ProbeClient(Client);
//! #     impl ServiceClient for ProbeClient {
//! #         const PACKAGE: &'static Package = &PACKAGE;
//! #         fn from_client(client: Client) -> Self { Self(client) }
//! #     }
//! # }
//! use probe::ProbeClient; // of the generated code
//! use thalweg_guest::OpenGuest;
//!
//! let probe = ProbeClient::open("thread:./libprobe.so")?;
//! # Ok::<(), thalweg_port::Failure>(())
//! ```
//!
//! Other programs open guests through `libthalweg.so`, which gives them a function table.
//! `thalweg_guest.h` is the reference of the guest's side.

mod abi;
mod client;
mod core_table;
mod files;
mod foreign;
mod input;
mod library;
mod opening;
mod port;
mod slots;

use thalweg_capi::abi::TwTable;
use thalweg_port::Failure;

pub use client::OpenGuest;

/// `tw_address_open` of `libthalweg.so`. The table is used like that of a service library, until
/// [`close_table`].
///
/// # Errors
/// Those of [`OpenGuest::open`], except for the package of the guest.
pub fn open_table(address: &str) -> Result<*const TwTable, Failure> {
    slots::open(address).map(slots::Opening::into_table)
}

/// `tw_address_reload` of `libthalweg.so`. The table is only compared.
///
/// # Errors
/// See `thalweg_guest.h`.
pub fn reload_table(
    table: *const TwTable,
    address: Option<&str>,
    drain_deadline: u64,
) -> Result<(), Failure> {
    slots::reload(table, address, drain_deadline)
}

/// `tw_address_close` of `libthalweg.so`.
///
/// # Errors
/// `stale`: no guest with this table is open. The table is only compared.
pub fn close_table(table: *const TwTable) -> Result<(), Failure> {
    slots::close(table)
}
