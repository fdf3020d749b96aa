//! Marks for `thalweg gen --from-code`, which reads them in the source. What they stand on is compiled as it stands, so that no
//! build of a user reads WIT or parses Rust; a change shows in `thalweg gen --check`.

use proc_macro::TokenStream;

/// On a trait: it is the service. `package = "namespace:name@1.0.0"` names it; `calls` and `bytes` bound what may wait for it, and `overload = "block"` has
/// those wait for whom there is no room.
#[proc_macro_attribute]
pub fn service(_: TokenStream, item: TokenStream) -> TokenStream {
    // Its futures stay on the stack that makes them, so nobody has to promise that they are `Send`.
    marked("#[allow(async_fn_in_trait)]", item)
}

/// On a trait: it is what the host has for the service, which asks by the generated `NAMEHost::of(call)`.
#[proc_macro_attribute]
pub fn host(_: TokenStream, item: TokenStream) -> TokenStream {
    // It says what there is; the generated trait of its name is what a host in Rust implements.
    marked("#[allow(async_fn_in_trait, dead_code)]", item)
}

fn marked(attribute: &str, item: TokenStream) -> TokenStream {
    let mut all: TokenStream = attribute.parse().expect("it is an attribute");
    all.extend(item);
    all
}

/// On a struct or an enum: its values cross the boundary. `flags`, of a struct of `bool`s: WIT's `flags`.
#[proc_macro_attribute]
pub fn value(_: TokenStream, item: TokenStream) -> TokenStream {
    item
}

/// On an inherent `impl`: the type stays in the service, and its public functions are called by handle. `new` makes one, `destroy(self: Arc<Self>)` ends it.
#[proc_macro_attribute]
pub fn resource(_: TokenStream, item: TokenStream) -> TokenStream {
    item
}

/// On a function of a service or a resource: `idempotent`; `inline`: it runs on the caller's thread; `notice = "5s"`; `deadline = "30s"`; of its stream, `policy = "latest"`, `key`, `capacity = 64` and `linger = "1us"`.
#[proc_macro_attribute]
pub fn method(_: TokenStream, item: TokenStream) -> TokenStream {
    item
}
