//! The C ABI of a service library.
//!
//! A library is a `cdylib` that calls [`export!`] once. It exports one symbol, `tw_library`, which
//! returns a table of functions. The reference for these functions is `thalweg.h`.

pub mod abi;
mod counters;
pub mod error;
mod export;
mod handles;
mod host_calls;
mod layouts;
mod library;
mod log_sink;
mod panics;
pub mod pointers;
mod ports;
mod stream_writers;
mod streams;
mod transcode;

pub use error::enter;
pub use export::Export;
pub use layouts::{ClientSetLayouts, set_layouts};
pub use library::{ClientOpen, Library, new_table};

/// The layout hash of a type, given its line of [`TwMethod::description`](abi::TwMethod). An empty
/// line means no type: 0.
pub fn layout_of(text: &str) -> u64 {
    match text {
        "" => 0,
        text => thalweg_wire::Shape::hash_of(text),
    }
}

/// Makes this `cdylib` a Thalweg library: exports `tw_library` for a service, given its type and an
/// expression that creates one. The expression is evaluated at a client's first call, and again
/// after a panic.
///
/// The library must not be unloaded, because its threads run its code. Its `build.rs` passes this
/// option to the linker: `println!("cargo::rustc-link-arg-cdylib=-Wl,-z,nodelete");`.
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

        /// Returns the library's table. The caller compares the ABI numbers.
        // SAFETY: the macro is called once per library, so that no other symbol has this name.
        #[unsafe(no_mangle)]
        pub extern "C" fn tw_library(_abi: u32) -> *const $crate::abi::TwTable {
            static LIBRARY: $crate::Library = $crate::Library::new::<ThalwegExport>();
            LIBRARY.table()
        }
    };
}
