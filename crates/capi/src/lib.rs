//! The C ABI: what a service's shared library exports, and the only `extern "C"` of Thalweg.
//!
//! A library is a `cdylib` that calls [`export!`] once. The C side is `bindings/c/include/thalweg.h`; what each function promises
//! stands there.

pub mod abi;
mod codec;
mod error;
mod hosts;
mod library;
mod panics;
mod ports;
mod streams;
mod upstreams;
mod versions;

pub use library::{Export, Library};

/// The hash of a type that a description has this line for, as a [`TwMethod`](abi::TwMethod) says it; 0, no type, for an empty one.
pub fn layout_of(text: &str) -> u64 {
    match text {
        "" => 0,
        text => thalweg_wire::Shape::hash_of(text),
    }
}

/// Makes this `cdylib` a Thalweg library: exports `tw_library` for a service, given its type and an expression that
/// makes one (at a client's first call, and again after a panic).
///
/// The library must not be unloaded, because its threads run in it. Its `build.rs` says so to the linker:
/// `println!("cargo::rustc-link-arg-cdylib=-Wl,-z,nodelete");`.
///
/// ```ignore
/// thalweg_capi::export!(search::SearchServer<Ripgrep>, search::SearchServer::new(Ripgrep::default()));
/// ```
#[macro_export]
macro_rules! export {
    ($service:ty, $make:expr) => {
        struct ThalwegExport;

        impl $crate::Export for ThalwegExport {
            type Service = $service;

            fn make() -> $service {
                $make
            }
        }

        /// The library's one symbol: its table. The caller's ABI number is its own to compare.
        // SAFETY: no other symbol of this name is in a Thalweg library: the macro is called once.
        #[unsafe(no_mangle)]
        pub extern "C" fn tw_library(_abi: u32) -> *const $crate::abi::TwTable {
            static LIBRARY: $crate::Library = $crate::Library::new::<ThalwegExport>();
            LIBRARY.table()
        }
    };
}
