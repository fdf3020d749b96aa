//! The same program without Rust's own `main`, as in a process of another language: the standard
//! library has installed no handlers and gives threads no signal stacks. See
//! [`thalweg_faults::child`].

#![no_main]

use std::ffi::{c_char, c_int};

use thalweg_faults::allocator::Refusing;

#[global_allocator]
static ALLOCATOR: Refusing = Refusing;

// SAFETY: the C runtime expects this name, and the program defines it once.
#[unsafe(no_mangle)]
extern "C" fn main(_: c_int, _: *const *const c_char) -> c_int {
    thalweg_faults::child::main().into()
}
