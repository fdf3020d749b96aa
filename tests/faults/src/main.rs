//! The Rust program: see [`thalweg_faults::child`].

use std::process::ExitCode;

use thalweg_faults::allocator::Refusing;

#[global_allocator]
static ALLOCATOR: Refusing = Refusing;

fn main() -> ExitCode {
    thalweg_faults::child::main().into()
}
