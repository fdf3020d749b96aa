//! Inline functions: their trait and its server.

use super::names::{camel, in_service, param};
use super::types::owned;
use super::{docs, line, server, service};
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
        let serve = server::serve_name(package, function);
        line(out, &format!("{number} => self.{serve}(incoming),"));
    }
    line(
        out,
        &format!(
            "other => unreachable!(\"the package has no inline method {{other}}\"),
                    }}
                }}
            }}

            impl<I: {name}Inline> {name}Inlined<I> {{"
        ),
    );
    for (_, function) in functions(package) {
        serve(out, package, function);
    }
    line(out, "}");
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

fn serve(out: &mut String, package: &Package, function: &Function) {
    let serve = server::serve_name(package, function);
    line(
        out,
        &format!("fn {serve}(&self, incoming: port::InlineCall<'_>) {{"),
    );
    server::read_params(out, package, function);
    let arguments: Vec<_> = function
        .params
        .iter()
        .map(|field| param(&field.name))
        .collect();
    let name = in_service(package, function);
    let call = format!("self.0.{name}({})", arguments.join(", "));
    if function.ok.is_none() && function.error.is_none() {
        line(out, &format!("{call};\nincoming.reply(&());"));
    } else {
        line(out, &format!("let result = {call};"));
        line(out, &server::reply(package, function, "result"));
    }
    line(out, "}\n");
}
