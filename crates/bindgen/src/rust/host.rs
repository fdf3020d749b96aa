//! Host imports: a client for the service, and a trait and a server for a host in Rust.

use super::names::camel;
use super::{client, constant, docs, line, server, service};
use crate::model::Package;

/// Everything for the host imports, if there are any.
pub fn emit(out: &mut String, package: &Package) {
    let Some(host) = package.host_package() else {
        return;
    };
    let name = camel(&host.interface);
    let service = camel(&package.interface);
    line(out, "\n/// The host imports.");
    let path = format!("{}/{}", package.name, host.interface);
    constant(out, &host, "HOST_PACKAGE", &path);
    line(out, "");
    docs(out, &host.docs);
    line(
        out,
        &format!(
            "///
            /// The host of a call, for an implementation of [`{service}`]. A host import has the
            /// deadline of the call, and is cancelled with it.
            #[derive(Clone, Debug)]
            pub struct {name}Host(port::Call);

            impl {name}Host {{
                /// The host of `call`.
                pub fn of(call: &port::Call) -> Self {{
                    Self(call.clone())
                }}
                "
        ),
    );
    for (number, function) in host.functions.iter().enumerate() {
        client::method(out, &host, number, function, ("self.0", "ask"));
    }
    line(out, "}");
    service::traits(out, &host);
    server::server(out, &host, "HOST_PACKAGE");
}
