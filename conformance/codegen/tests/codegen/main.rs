//! Calls the code that `build.rs` generates.

mod evolution;
mod greeter;
mod hall;
mod press;
