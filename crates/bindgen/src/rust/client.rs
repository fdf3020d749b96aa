//! The typed client of the service, and one per resource.

use super::names::{camel, in_client, param};
use super::types::{self, owned};
use super::{docs, host, line, params};
use crate::model::{Function, FunctionKind, Package, ResourceId, Type, TypeKind, is_destructor};

/// All clients.
pub fn clients(out: &mut String, package: &Package) {
    let name = camel(&package.interface);
    let with_host = host::start(package);
    line(
        out,
        &format!(
            "
            /// A client of an instance of the service. Clones share the instance. Dropping the last
            /// clone closes it.
            #[derive(Clone, Debug)]
            pub struct {name}Client {{
                client: port::Client,
            }}

            impl {name}Client {{
                /// Starts an instance of the service that `make` returns, in this process. After a
                /// panic, `make` is called again.
                ///
                /// # Errors
                /// The runtime cannot be started.
                pub fn start<S: {name}>(make: impl Fn() -> S + Send + 'static) -> Result<Self, port::Failure> {{
                    let client = port::Client::start(move || {name}Server::new(make()))?;
                    Ok(Self {{ client }})
                }}

                {with_host}/// Closes the instance for all clones. Calls and streams end as cancelled, and resources become stale.
                pub fn close(&self) {{
                    self.client.close();
                }}

                /// A client of the same instance whose calls have this timeout.
                #[must_use]
                pub fn with_timeout(&self, timeout: std::time::Duration) -> Self {{
                    Self {{ client: self.client.with_timeout(timeout) }}
                }}

                /// A client of the same instance whose calls are not nested. Calls that a service
                /// makes with other clients while it serves a call have the deadline of that call
                /// and end with it.
                #[must_use]
                pub fn detached(&self) -> Self {{
                    Self {{ client: self.client.detached() }}
                }}

                /// Submits the calls that `calls` makes with its client as one batch, in their
                /// order, when `calls` returns. This wakes the service once. Each call has its own
                /// outcome. Calls of resources are not part of the batch.
                pub fn batch<R>(&self, calls: impl FnOnce(&Self) -> R) -> R {{
                    self.client.batch(|client| calls(&Self {{ client: client.clone() }}))
                }}
                "
        ),
    );
    for (number, function) in package.functions.iter().enumerate() {
        if !matches!(function.kind, FunctionKind::Method(_)) {
            method(out, package, number, function, ("self.client", "call"));
        }
    }
    line(out, "}");

    for (id, resource) in package.resources.iter().enumerate() {
        let name = camel(&resource.name);
        line(out, "");
        docs(out, &resource.docs);
        line(
            out,
            &format!(
                "///
                /// The resource stays in the service. Dropping its last client closes it.
                #[derive(Debug)]
                pub struct {name}Client {{
                    own: port::OwnedHandle,
                    timeout: Option<std::time::Duration>,
                    detached: bool,
                }}

                impl {name}Client {{
                    fn new(own: port::OwnedHandle) -> Self {{
                        Self {{ own, timeout: None, detached: false }}
                    }}

                    fn client(&self) -> port::Client {{
                        let client = match self.timeout {{
                            Some(timeout) => self.own.client().with_timeout(timeout),
                            None => self.own.client(),
                        }};
                        if self.detached {{ client.detached() }} else {{ client }}
                    }}

                    /// A client of the same resource whose calls have this timeout.
                    #[must_use]
                    pub fn with_timeout(&self, timeout: std::time::Duration) -> Self {{
                        Self {{ own: self.own.clone(), timeout: Some(timeout), detached: self.detached }}
                    }}

                    /// A client of the same resource whose calls are not nested.
                    #[must_use]
                    pub fn detached(&self) -> Self {{
                        Self {{ own: self.own.clone(), timeout: self.timeout, detached: true }}
                    }}
                    "
            ),
        );
        for (number, function) in package.functions.iter().enumerate() {
            if function.kind == FunctionKind::Method(ResourceId(id)) {
                method(out, package, number, function, ("self.client()", "call"));
            }
        }
        line(
            out,
            &format!(
                "}}

                impl port::ResourceClient for {name}Client {{
                    fn from_own(own: port::OwnedHandle) -> Self {{
                        Self::new(own)
                    }}

                    fn into_own(self) -> port::OwnedHandle {{
                        self.own
                    }}
                }}"
            ),
        );
    }
}

/// A function that calls `client` with the method `verb`.
pub(super) fn method(
    out: &mut String,
    package: &Package,
    number: usize,
    function: &Function,
    (client, verb): (&str, &str),
) {
    let params = match function.kind {
        FunctionKind::Method(_) => &function.params[1..],
        _ => &function.params[..],
    };
    let declared: String = params
        .iter()
        .map(|field| {
            let ty = match field.ty.kind {
                TypeKind::Own(id) => format!("{}Client", camel(&package.resources[id.0].name)),
                TypeKind::Borrow(id) => format!("&{}Client", camel(&package.resources[id.0].name)),
                _ => types::sent_up(package, &field.ty)
                    .unwrap_or_else(|| types::param(package, &field.ty)),
            };
            format!(", {}: {ty}", param(&field.name))
        })
        .collect();
    let passed = params.iter().map(|field| {
        let name = param(&field.name);
        match field.ty.kind {
            TypeKind::Own(_) => format!("{name}.own.into_handle()"),
            TypeKind::Borrow(_) => format!("{name}.own.handle()"),
            TypeKind::Future(_) => format!("{name}.as_stream()"),
            _ => name,
        }
    });
    // A destructor takes the resource by value.
    let takes = is_destructor(function);
    let (receiver, handle) = match takes {
        true => ("self", "self.own.into_handle()"),
        false => ("&self", "self.own.handle()"),
    };
    let own = matches!(function.kind, FunctionKind::Method(_)).then(|| handle.to_owned());
    let values: Vec<_> = own.into_iter().chain(passed).collect();
    let passed = params::passed(package, function, &values);

    let (ok, read) = match function.ok.as_ref() {
        None => ("()".to_owned(), "reply.value::<()>()".to_owned()),
        Some(Type {
            kind: TypeKind::Own(id),
            ..
        }) => {
            let name = format!("{}Client", camel(&package.resources[id.0].name));
            let read = format!("reply.own().map({name}::new)");
            (name, read)
        }
        Some(
            ty @ Type {
                kind: TypeKind::Stream(_) | TypeKind::Future(_),
                ..
            },
        ) => {
            let future = match ty.kind {
                TypeKind::Future(_) => ".map(port::FutureReader::from)",
                _ => "",
            };
            let read = format!("reply.stream(){future}");
            (types::result(package, function, ty), read)
        }
        Some(ty) => {
            let ty = owned(package, ty);
            let read = format!("reply.value::<{ty}>()");
            (ty, read)
        }
    };
    let error = types::error(package, function).unwrap_or("port::NoError".to_owned());
    docs(out, &function.docs);
    let (gives, call) = if function.options.is_inline {
        (
            format!("Result<{ok}, port::CallError<{error}>>"),
            "call_inline",
        )
    } else {
        (format!("port::Pending<{ok}, {error}>"), verb)
    };
    line(
        out,
        &format!(
            "pub fn {}({receiver}{declared}) -> {gives} {{
                {client}.{call}({number}, &{passed}, |reply| {read})
            }}
            ",
            in_client(package, function)
        ),
    );
}
