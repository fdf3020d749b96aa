//! Attributes for code-first services. `thalweg gen --from-code` reads them in the source.
//!
//! The annotated items are compiled unchanged, so a user's build neither reads WIT nor parses Rust.
//! `thalweg gen --check` detects a change.

use proc_macro::TokenStream;

/// Declares a trait as the service. `package = "namespace:name@1.0.0"` sets its name.
/// `max_queued_calls` and `max_queued_bytes` limit the calls that may wait for one client. With
/// `overflow = "block"`, callers wait when a limit is reached.
#[proc_macro_attribute]
pub fn service(_: TokenStream, item: TokenStream) -> TokenStream {
    // Its futures stay on the stack that creates them, so they need no `Send` bound.
    marked("#[allow(async_fn_in_trait)]", item)
}

/// Declares a trait as the host imports of the service. The service calls them through the generated
/// `NAMEHost::of(call)`.
#[proc_macro_attribute]
pub fn host(_: TokenStream, item: TokenStream) -> TokenStream {
    // The trait is only a declaration: a Rust host implements the generated trait of the same name.
    marked("#[allow(async_fn_in_trait, dead_code)]", item)
}

fn marked(attribute: &str, item: TokenStream) -> TokenStream {
    let mut all: TokenStream = attribute.parse().expect("it is an attribute");
    all.extend(item);
    all
}

/// Declares a struct or an enum as a type of the interface. With `flags`, a struct of `bool`s becomes
/// WIT's `flags`.
#[proc_macro_attribute]
pub fn value(_: TokenStream, item: TokenStream) -> TokenStream {
    item
}

/// Declares an inherent `impl` as a resource: the object stays in the service, and hosts call its
/// public functions through a handle. `new` is the constructor; `destroy(self: Arc<Self>)` is the
/// destructor.
#[proc_macro_attribute]
pub fn resource(_: TokenStream, item: TokenStream) -> TokenStream {
    item
}

/// Sets the policy of a function of a service or a resource: `idempotent`; `inline` (run on the
/// caller's thread); `brief` (short, and never waits); `format = "cbor"`; `notice_interval = "5s"`;
/// `timeout = "30s"`; and for its stream `overflow = "latest"`, `conflation_key`, `capacity = 64`,
/// `linger = "1us"` and `max_record_size = "1MiB"`.
#[proc_macro_attribute]
pub fn method(_: TokenStream, item: TokenStream) -> TokenStream {
    item
}
