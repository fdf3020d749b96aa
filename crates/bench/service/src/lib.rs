//! The service that the lab measures calls and streams with. Its interface is `crates/bench/wit/lab.wit`.

include!(concat!(env!("OUT_DIR"), "/lab.rs"));

pub mod bare;
pub mod events;
pub mod gate;
pub mod predicates;
pub mod ticks;

mod content;
mod library;
mod service;

pub use content::{Content, Contents, checksum};
pub use library::DEEP_CALLS;
pub use service::LabService;
