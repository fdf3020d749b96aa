//! Inline functions: their trait and its server.

use super::names::{camel, in_service, param};
use super::types::owned;
use super::{docs, line, params, server, service};
use crate::model::{Function, Package};

/// The inline functions of a package, with their numbers.
pub fn functions(package: &Package) -> impl Iterator<Item = (usize, &Function)> {
    let all = package.functions.iter().enumerate();
    all.filter(|(_, function)| function.options.is_inline)
}

/// Whether a package has inline functions.
pub fn is_there(package: &Package) -> bool {
    functions(package).next().is_some()
}

/// The trait and its server, if the package has inline functions.
pub fn emit(out: &mut String, package: &Package) {
    if !is_there(package) {
        return;
    }
    let name = camel(&package.interface);
    line(
        out,
        &format!(
            "
            /// The inline functions of `{}`, which run on the caller's thread.
            ///
            /// Each instance has one object, which several threads use concurrently. It has no
            /// access to the implementation of [`{name}`], and its functions must not wait. A panic
            /// ends the call; the object remains in use.
            pub trait {name}Inline: Default + Send + Sync + 'static {{",
            package.interface
        ),
    );
    for (_, function) in functions(package) {
        docs(out, &function.docs);
        line(out, &format!("{};\n", signature(package, function)));
    }
    line(out, "}");
    line(
        out,
        &format!(
            "
            /// The server of a [`{name}Inline`].
            struct {name}Inlined<I>(I);

            impl<I: {name}Inline> port::Inline for {name}Inlined<I> {{
                fn dispatch(&self, incoming: port::InlineCall<'_>) {{
                    match incoming.method() {{"
        ),
    );
    for (number, function) in functions(package) {
        line(out, &format!("{number} => {},", serve(package, function)));
    }
    line(
        out,
        "other => unreachable!(\"the package has no inline method {other}\"),
                }
            }
        }",
    );
}

/// The declaration of a function, without a semicolon.
pub(crate) fn signature(package: &Package, function: &Function) -> String {
    let params: String = function
        .params
        .iter()
        .map(|field| format!(", {}: {}", param(&field.name), owned(package, &field.ty)))
        .collect();
    let result = match service::result(package, function).as_str() {
        "()" => String::new(),
        result => format!(" -> {result}"),
    };
    let name = in_service(package, function);
    format!("fn {name}(&self{params}){result}")
}

/// An expression that serves a call of `function`.
fn serve(package: &Package, function: &Function) -> String {
    let verb = match &function.error {
        None => "serve",
        Some(_) => "try_serve",
    };
    let arguments: Vec<_> = function
        .params
        .iter()
        .map(|field| param(&field.name))
        .collect();
    format!(
        "incoming.{verb}(|{}| self.0.{}({}), port::InlineCall::{})",
        params::pattern(package, function),
        in_service(package, function),
        arguments.join(", "),
        server::reply(function)
    )
}
