//! The methods, the resources, the client and the host imports.

use super::names::{Names, OPTIONS, Scope, identifier, parameter};
use super::source::Source;
use crate::hash::{Describer, fnv1a};
use crate::model::{Field, Function, FunctionKind, Type, TypeKind, is_stream_or_future};

/// Writes the classes of the resources. Their member functions are defined after the types, which
/// may contain resources.
pub(super) fn resources(names: &Names<'_>, out: &mut Source) {
    out.open(&names.namespace);
    out.line("namespace methods {");
    for method in &names.methods {
        out.line(&format!("struct {method};"));
    }
    out.line("} // namespace methods");
    out.blank();
    for (id, (resource, name)) in names
        .package
        .resources
        .iter()
        .zip(&names.resources)
        .enumerate()
    {
        out.docs("", &resource.docs);
        out.line(&format!("class {name} : public thalweg::resource {{"));
        out.line("public:");
        out.line("  using thalweg::resource::resource;");
        for (index, function) in names.package.functions.iter().enumerate() {
            if matches!(function.kind, FunctionKind::Method(of) if of.0 == id) {
                out.blank();
                out.docs("  ", &docs(function));
                out.line(&format!("  {};", signature(names, index, None)));
                writers(names, index, out);
            }
        }
        out.line("};");
        out.blank();
    }
    out.close(&names.namespace);
}

/// Writes the descriptions of the methods.
pub(super) fn methods(names: &Names<'_>, out: &mut Source) {
    out.open(&names.namespace);
    out.line("namespace methods {");
    for (index, (function, name)) in names
        .package
        .functions
        .iter()
        .zip(&names.methods)
        .enumerate()
    {
        let params = &function.params;
        let borrowed = params
            .iter()
            .filter(|field| matches!(field.ty.kind, TypeKind::Borrow(_)))
            .count();
        let owns = params.iter().any(|field| {
            !matches!(field.ty.kind, TypeKind::Borrow(_)) && names.has_handles(&field.ty)
        });
        let (ok, error) = returned(names, function);
        out.line(&format!(
            "struct {name} : thalweg::method<package_tables, {index}, {}, {borrowed}, {owns}, {}, {ok}, {error}> {{}};",
            function.params_layout.0, function.options.is_inline
        ));
    }
    out.line("} // namespace methods");
    out.blank();
    out.close(&names.namespace);
}

/// The types of the value and of the error.
pub(super) fn returned(names: &Names<'_>, function: &Function) -> (String, String) {
    let error = match &function.error {
        None => "void".to_owned(),
        Some(None) => "thalweg::none".to_owned(),
        Some(Some(ty)) => names.ty(ty),
    };
    let ok = match function.ok.as_ref().map(|ty| (ty, &ty.kind)) {
        None => "void".to_owned(),
        Some((_, TypeKind::Stream(element))) => stream("stream", names, element, &error),
        Some((_, TypeKind::Future(value))) => stream("future", names, value, &error),
        Some((ty, _)) => names.ty(ty),
    };
    (ok, error)
}

fn stream(word: &str, names: &Names<'_>, element: &Option<Box<Type>>, error: &str) -> String {
    let element = element
        .as_ref()
        .map_or("thalweg::none".to_owned(), |ty| names.ty(ty));
    format!("thalweg::{word}<{element}, {error}>")
}

/// The documentation: the text, or the name in WIT.
pub(super) fn docs(function: &Function) -> String {
    match function.docs.is_empty() {
        true => format!("`{}`", function.full_name),
        false => function.docs.clone(),
    }
}

/// `self` of a method, which is not a parameter in C++.
fn is_self(function: &Function, number: usize) -> bool {
    number == 0 && matches!(function.kind, FunctionKind::Method(_))
}

/// The parameters without `self`, with their numbers and names.
fn parameters(function: &Function) -> Vec<(usize, &Field, String)> {
    let mut scope = Scope::default();
    let all = function.params.iter().enumerate();
    all.filter(|(number, _)| !is_self(function, *number))
        .map(|(number, field)| (number, field, scope.claim(parameter(&field.name))))
        .collect()
}

/// The type of the elements of a stream or future.
fn element(ty: &Type) -> Option<&Type> {
    match &ty.kind {
        TypeKind::Stream(element) | TypeKind::Future(element) => element.as_deref(),
        _ => None,
    }
}

/// A parameter that the caller writes, as a type.
fn writer(names: &Names<'_>, ty: &Type) -> String {
    let word = match ty.kind {
        TypeKind::Future(_) => "future_writer",
        _ => "stream_writer",
    };
    let element = element(ty).map_or("thalweg::none".to_owned(), |ty| names.ty(ty));
    format!("thalweg::{word}<{element}>")
}

/// The head of a member function; with a class, for its definition outside of it.
fn signature(names: &Names<'_>, index: usize, class: Option<&str>) -> String {
    let function = &names.package.functions[index];
    let mut list = String::new();
    for (_, field, name) in parameters(function) {
        let ty = &field.ty;
        list.push_str(&match &ty.kind {
            TypeKind::Borrow(_) => format!("const {} &{name}, ", names.ty(ty)),
            _ if is_stream_or_future(ty) => format!("{} &{name}, ", writer(names, ty)),
            _ if names.is_scalar(ty) || names.has_handles(ty) => {
                format!("{} {name}, ", names.ty(ty))
            }
            _ => format!("const {} &{name}, ", names.ty(ty)),
        });
    }
    let (attribute, scope, default) = match class {
        None => ("[[nodiscard]] ", String::new(), " = {}"),
        Some(class) => ("inline ", format!("{class}::"), ""),
    };
    let constant = match takes_self(function) {
        true => "",
        false => " const",
    };
    format!(
        "{attribute}thalweg::call<{}> {scope}{}({list}const thalweg::call_options &{OPTIONS}{default}){constant}",
        names.qualified(&format!("methods::{}", names.methods[index])),
        names.functions[index]
    )
}

/// An async destructor takes its object over.
fn takes_self(function: &Function) -> bool {
    crate::model::is_destructor(function)
}

/// Writes the functions that create the streams and futures for a function's parameters.
fn writers(names: &Names<'_>, index: usize, out: &mut Source) {
    let function = &names.package.functions[index];
    let describer = Describer {
        types: &names.package.types,
        resources: &names.package.resources,
    };
    for (number, field, _) in parameters(function) {
        if !is_stream_or_future(&field.ty) {
            continue;
        }
        let text = element(&field.ty).map_or("_".to_owned(), |ty| describer.describe(ty));
        let writer = writer(names, &field.ty);
        let element = element(&field.ty).map_or("thalweg::none".to_owned(), |ty| names.ty(ty));
        out.docs(
            "  ",
            &format!(
                "Creates `{}` for one call of `{}`.",
                field.name, function.name
            ),
        );
        out.line(&format!(
            "  [[nodiscard]] thalweg::result<{writer}> {}_{}() const {{",
            names.functions[index],
            identifier(&field.name)
        ));
        out.line(&format!(
            "    return thalweg::detail::open_writer<{element}>(session(), {index}, {number}, UINT64_C(0x{:016x}));",
            fnv1a(&text)
        ));
        out.line("  }");
    }
}

/// Writes the body of a member function.
fn body(names: &Names<'_>, index: usize, indent: &str, out: &mut Source) {
    let function = &names.package.functions[index];
    let mut list = String::new();
    for (number, field) in function.params.iter().enumerate() {
        let offset = field.offset;
        let name = match is_self(function, number) {
            true => "*this".to_owned(),
            false => parameters(function)
                .into_iter()
                .find(|(of, _, _)| *of == number)
                .map_or(String::new(), |(_, _, name)| name),
        };
        let ty = &field.ty;
        list.push_str(&match &ty.kind {
            TypeKind::Borrow(_) => format!(", thalweg::borrowed<{offset}>({name})"),
            _ if is_stream_or_future(ty) => format!(", thalweg::written<{offset}>({name})"),
            _ => format!(", thalweg::argument<{offset}, {}>({name})", names.ty(ty)),
        });
    }
    out.line(&format!("{indent}return {{session(), {OPTIONS}{list}}};"));
}

/// Writes the class of the client.
pub(super) fn client(names: &Names<'_>, out: &mut Source) {
    let (prefix, client) = (&names.prefix, &names.client);
    out.open(&names.namespace);
    if let Some(host) = &names.package.host {
        imports(names, &host.functions, out);
    }
    let about = match names.package.docs.is_empty() {
        true => String::new(),
        false => format!("\n\n{}", names.package.docs),
    };
    out.docs(
        "",
        &format!("An instance of the service, and a port that calls it.{about}"),
    );
    out.lines(&format!(
        "class {client} : public thalweg::client {{
public:
  /// Opens the library at `path`, and a client with a new instance. `capacity` is the number of
  /// calls that may be outstanding, 1 to 65,536.
  static thalweg::result<{client}> open(const char *path, std::uint32_t capacity = 256) {{
    return open_as<{client}>(path, ::{prefix}_expected(), capacity);
  }}
  /// The same for a library that is linked: `table` is the result of `tw_library`, which the C
  /// function `tw_table_check` has accepted.
  static thalweg::result<{client}> open(const tw_table *table, std::uint32_t capacity = 256) {{
    return open_as<{client}>(table, ::{prefix}_expected(), capacity);
  }}
  /// Opens a further client of the same instance, for another thread or event loop.
  [[nodiscard]] thalweg::result<{client}> attach(std::uint32_t capacity = 256) const {{
    return attach_as<{client}>(capacity);
  }}"
    ));
    for (index, function) in names.package.functions.iter().enumerate() {
        if matches!(function.kind, FunctionKind::Method(_)) {
            continue;
        }
        out.blank();
        out.docs("  ", &docs(function));
        out.line(&format!("  {} {{", signature(names, index, None)));
        body(names, index, "    ", out);
        out.line("  }");
        writers(names, index, out);
    }
    if let Some(host) = &names.package.host {
        set_host(names, &host.functions, out);
    }
    out.lines(&format!(
        "
private:
  friend class thalweg::client;
  explicit {client}(thalweg::detail::session_ref session) noexcept
      : thalweg::client(std::move(session)) {{
  }}
}};"
    ));
    out.blank();
    out.close(&names.namespace);
}

/// Writes the descriptions of the host imports.
pub(super) fn imports(names: &Names<'_>, functions: &[Function], out: &mut Source) {
    out.line("namespace imports {");
    for (index, function) in functions.iter().enumerate() {
        let parameters: Vec<_> = function
            .params
            .iter()
            .map(|field| {
                format!(
                    "thalweg::parameter<{}, {}>",
                    names.ty(&field.ty),
                    field.offset
                )
            })
            .collect();
        let (ok, error) = returned(names, function);
        out.line(&format!(
            "struct {} : thalweg::host_import<package_tables, {index}, {}, thalweg::parameters<{}>, {ok}, {error}> {{}};",
            identifier(&function.name),
            function.params_layout.0,
            parameters.join(", ")
        ));
    }
    out.line("} // namespace imports");
    out.blank();
}

fn set_host(names: &Names<'_>, functions: &[Function], out: &mut Source) {
    out.blank();
    out.docs(
        "  ",
        "Sets the object that implements the host imports. It is used until the client is closed. It\n\
         has these functions, which return a value, a `thalweg::expected`, or a `thalweg::task`:",
    );
    for function in functions {
        let list: Vec<_> = function
            .params
            .iter()
            .map(|field| format!("{} {}", names.ty(&field.ty), identifier(&field.name)))
            .collect();
        let (ok, error) = returned(names, function);
        let returned = match error.as_str() {
            "void" => ok,
            _ => format!("thalweg::expected<{ok}, {error}>"),
        };
        let name = identifier(&function.name);
        out.docs("  ", &format!("\n  {returned} {name}({})", list.join(", ")));
        out.docs("  ", &function.docs);
    }
    out.lines(
        "  template <class Host> thalweg::result<void> set_host(Host &host) const {
    return thalweg::detail::set_host(
        session(), &host,
        [](tw_host *tw, const tw_host_call *call, const tw_completion *completion) {
          [[maybe_unused]] Host &on = thalweg::host_of<Host>(tw);
          switch (completion->code) {",
    );
    for (index, function) in functions.iter().enumerate() {
        let name = identifier(&function.name);
        let import = names.qualified(&format!("imports::{name}"));
        out.line(&format!("          case {index}:"));
        out.line(&format!("            thalweg::serve<{import}>("));
        out.line(&format!(
            "                call, completion, [&](const auto &...given) {{ return on.{name}(given...); }});"
        ));
        out.line("            break;");
    }
    out.lines(
        "          default:
            tw_host_call_fail(call, TW_ARGUMENT, \"the host has no import of this number\", nullptr);
            break;
          }
        });
  }",
    );
}

/// Writes the member functions of the resources.
pub(super) fn definitions(names: &Names<'_>, out: &mut Source) {
    out.open(&names.namespace);
    for (index, function) in names.package.functions.iter().enumerate() {
        let FunctionKind::Method(id) = function.kind else {
            continue;
        };
        let class = &names.resources[id.0];
        out.line(&format!("{} {{", signature(names, index, Some(class))));
        body(names, index, "  ", out);
        out.line("}");
        out.blank();
    }
    out.close(&names.namespace);
}
