//! The header of a guest: the classes that it implements, the functions that call them, and the class
//! that calls the host.

use super::client;
use super::names::{Names, Scope, identifier, member, parameter};
use super::source::Source;
use crate::model::{Field, Function, FunctionKind, Type, TypeKind};

/// The name of the class that connects the service with Thalweg.
const PACKAGE: &str = "guest_package";

/// `self` of a method, which is the object in C++.
fn is_self(function: &Function, number: usize) -> bool {
    number == 0 && matches!(function.kind, FunctionKind::Method(_))
}

/// Declares the classes of the resources, and how values contain their objects.
pub(super) fn resources(names: &Names<'_>, out: &mut Source) {
    if names.resources.is_empty() {
        return;
    }
    out.open(&names.namespace);
    for name in &names.resources {
        out.line(&format!("class {name};"));
    }
    out.close(&names.namespace);
    for (id, name) in names.resources.iter().enumerate() {
        let class = names.qualified(name);
        out.line("template <>");
        out.line(&format!(
            "struct thalweg::codec<std::shared_ptr<{class}>> : thalweg::detail::object_codec<{class}, {id}> {{}};"
        ));
        out.blank();
    }
}

/// Writes the class that calls the host imports.
pub(super) fn host(names: &Names<'_>, out: &mut Source) {
    let Some(host) = &names.package.host else {
        return;
    };
    out.open(&names.namespace);
    client::imports(names, &host.functions, out);
    out.docs("", &host.docs);
    out.docs(
        "",
        "The host of a call: the program that has made it. Its functions block a thread of the guest \
         until the host has answered, and only work until the call was answered.",
    );
    out.line("class host : public thalweg::host_of_call {");
    out.line("public:");
    out.line("  using thalweg::host_of_call::host_of_call;");
    let mut members = Scope::default();
    for function in &host.functions {
        let name = members.claim(member(&function.name, "host", &["call"]));
        let import = format!("imports::{}", identifier(&function.name));
        let mut scope = Scope::default();
        let (mut list, mut given) = (Vec::new(), Vec::new());
        for field in &function.params {
            let name = scope.claim(parameter(&field.name));
            list.push(by_value_or_reference(names, &field.ty, &name));
            given.push(name);
        }
        out.docs("  ", &client::docs(function));
        out.line(&format!(
            "  [[nodiscard]] thalweg::import_result<{import}> {name}({}) const {{",
            list.join(", ")
        ));
        out.line(&format!("    return call<{import}>({});", given.join(", ")));
        out.line("  }");
    }
    out.line("};");
    out.blank();
    out.close(&names.namespace);
}

/// A parameter that is only read.
fn by_value_or_reference(names: &Names<'_>, ty: &Type, name: &str) -> String {
    match names.is_scalar(ty) {
        true => format!("{} {name}", names.ty(ty)),
        false => format!("const {} &{name}", names.ty(ty)),
    }
}

/// Writes the classes, whose functions the guest implements.
pub(super) fn classes(names: &Names<'_>, out: &mut Source) {
    out.open(&names.namespace);
    methods(names, out);
    for (id, (resource, name)) in names
        .package
        .resources
        .iter()
        .zip(&names.resources)
        .enumerate()
    {
        out.docs("", &resource.docs);
        out.docs(
            "",
            "A coroutine of it keeps it. Another thread that uses it does so with `shared_from_this()`.",
        );
        class(names, name, "", out);
        for (index, function) in names.package.functions.iter().enumerate() {
            if matches!(function.kind, FunctionKind::Method(of) if of.0 == id) {
                signature(names, index, out);
            }
        }
        out.line("};");
        out.blank();
    }
    out.docs("", &names.package.docs);
    out.docs(
        "",
        "The state of one client. It is used until the client is closed, and by its coroutines until \
         they end.",
    );
    class(
        names,
        &names.client,
        &format!("  using package = {PACKAGE};\n"),
        out,
    );
    out.docs(
        "  ",
        "The call with this `id()` has ended before it was answered, or at the same time.",
    );
    out.line("  virtual void cancelled(tw_handle /* id */) {");
    out.line("  }");
    for (index, function) in names.package.functions.iter().enumerate() {
        if !matches!(function.kind, FunctionKind::Method(_)) {
            signature(names, index, out);
        }
    }
    out.line("};");
    out.blank();
    package(names, out);
    out.close(&names.namespace);
}

/// Writes the head of a class, up to its functions.
fn class(names: &Names<'_>, name: &str, members: &str, out: &mut Source) {
    let qualified = names.qualified(name);
    out.lines(&format!(
        "class {name} : public std::enable_shared_from_this<{qualified}> {{
public:
{members}  {name}() = default;
  {name}(const {name} &) = delete;
  {name} &operator=(const {name} &) = delete;
  virtual ~{name}() = default;"
    ));
    out.blank();
}

/// Writes the functions' types.
fn methods(names: &Names<'_>, out: &mut Source) {
    out.line(&format!("struct {PACKAGE};"));
    out.blank();
    out.docs(
        "",
        "The functions of the package: `incoming` calls of them.",
    );
    out.line("namespace methods {");
    for (index, (function, name)) in names
        .package
        .functions
        .iter()
        .zip(&names.methods)
        .enumerate()
    {
        let parameters: Vec<_> = (function.params.iter())
            .map(|field| parameter_type(names, field))
            .collect();
        let ok = match function.ok.as_ref().map(|ty| (ty, &ty.kind)) {
            None => "void".to_owned(),
            Some((_, TypeKind::Own(id))) => {
                let class = names.qualified(&names.resources[id.0]);
                format!("thalweg::object<{class}, {}>", id.0)
            }
            Some((_, TypeKind::Stream(element) | TypeKind::Future(element))) => {
                format!(
                    "thalweg::streamed<{}>",
                    type_or_none(names, element.as_deref())
                )
            }
            Some((ty, _)) => names.ty(ty),
        };
        let error = match &function.error {
            None => "void".to_owned(),
            Some(error) => type_or_none(names, error.as_ref()),
        };
        out.line(&format!(
            "struct {name} : thalweg::served_method<package_tables, {index}, {}, thalweg::parameters<{}>, {ok}, {error}> {{}};",
            function.is_async,
            parameters.join(", ")
        ));
    }
    out.line("} // namespace methods");
    out.blank();
}

/// How a parameter is read from the arguments, as a type.
fn parameter_type(names: &Names<'_>, field: &Field) -> String {
    let offset = field.offset;
    match &field.ty.kind {
        TypeKind::Borrow(id) => {
            let class = names.qualified(&names.resources[id.0]);
            format!("thalweg::borrowed_parameter<{class}, {}, {offset}>", id.0)
        }
        TypeKind::Stream(_) | TypeKind::Future(_) => {
            let reader = names.ty(&field.ty);
            format!("thalweg::stream_parameter<{reader}, {offset}>")
        }
        _ => format!("thalweg::parameter<{}, {offset}>", names.ty(&field.ty)),
    }
}

fn type_or_none(names: &Names<'_>, ty: Option<&Type>) -> String {
    match ty {
        Some(ty) => names.ty(ty),
        None => "thalweg::none".to_owned(),
    }
}

/// Writes one function that the guest implements.
fn signature(names: &Names<'_>, index: usize, out: &mut Source) {
    let function = &names.package.functions[index];
    let mut scope = Scope::default();
    scope.claim("call".to_owned());
    let mut list = format!("thalweg::incoming<methods::{}> &call", names.methods[index]);
    for (number, field) in function.params.iter().enumerate() {
        if is_self(function, number) {
            continue;
        }
        let name = scope.claim(parameter(&field.name));
        list.push_str(", ");
        list.push_str(&match &field.ty.kind {
            TypeKind::Stream(_) | TypeKind::Future(_) => {
                format!("{} &{name}", names.ty(&field.ty))
            }
            _ => by_value_or_reference(names, &field.ty, &name),
        });
    }
    let returned = if function.is_async {
        "thalweg::task<>"
    } else {
        "void"
    };
    out.docs("  ", &client::docs(function));
    out.line(&format!(
        "  virtual {returned} {}({list}) = 0;",
        names.functions[index]
    ));
}

/// Writes the class that connects the service with Thalweg.
fn package(names: &Names<'_>, out: &mut Source) {
    let service = &names.client;
    out.docs("", "How calls of the package find their functions.");
    out.lines(&format!(
        "struct {PACKAGE} {{
  using service = {};
  static const tw_guest_package &description() noexcept {{
    return ::{}_guest_package;
  }}
  static void call(const std::shared_ptr<service> &on, const tw_incoming &tw,
      const tw_guest_call *message) {{
    switch (message->method) {{",
        names.qualified(service),
        names.prefix
    ));
    for (index, function) in names.package.functions.iter().enumerate() {
        let (method, name) = (&names.methods[index], &names.functions[index]);
        out.line(&format!("    case {index}:"));
        let called = match function.kind {
            FunctionKind::Method(_) => {
                format!(
                    "[](service &, auto &call, auto &self, auto &...given) {{ return self->{name}(call, given...); }}"
                )
            }
            _ => format!(
                "[](service &self, auto &call, auto &...given) {{ return self.{name}(call, given...); }}"
            ),
        };
        out.line(&format!(
            "      thalweg::serve_call<methods::{method}>(on, tw, message, {called});"
        ));
        out.line("      break;");
    }
    out.lines(
        "    default:
      break;
    }
  }
  static void drop(std::uint32_t type, void *share) noexcept {",
    );
    if names.resources.is_empty() {
        out.line("    static_cast<void>(type);");
        out.line("    static_cast<void>(share);");
    } else {
        out.line("    switch (type) {");
        for (id, _) in names.resources.iter().enumerate() {
            out.line(&format!("    case {id}:"));
            out.line(&format!(
                "      thalweg::drop_object<{}>(share);",
                names.qualified(&names.resources[id])
            ));
            out.line("      break;");
        }
        out.lines("    default:\n      break;\n    }");
    }
    out.lines("  }\n};");
    out.blank();
}
