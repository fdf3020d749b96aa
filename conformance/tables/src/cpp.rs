//! Writes `NAME_json.hpp`, the tables of the conformance runner in C++: the names of the members,
//! cases and labels of each type, and a function that finds a method by its name.

use thalweg_bindgen::c::plan::Plan;
use thalweg_bindgen::cpp::names::{Names, identifier};
use thalweg_bindgen::model::{
    Function, FunctionKind, Package, Type, TypeDefKind, TypeKind, is_stream_or_future,
};
use thalweg_bindgen::{Output, SourceError};

/// The tables of a package.
///
/// # Errors
/// The package has a construct that C does not support.
pub fn tables(package: &Package) -> Result<Output, SourceError> {
    let plan = Plan::new(package)?;
    let prefix = plan.prefix();
    let names = Names::new(package, prefix);
    let mut out = format!(
        "// Generated from {}:{} for the conformance runner. Do not edit.\n\
         #include \"{prefix}.hpp\"\n#include \"values.hpp\"\n\n",
        package.namespace, package.name
    );
    for (definition, name) in package.types.iter().zip(&names.types) {
        let ty = names.qualified(name);
        let texts = |all: Vec<&str>| {
            let quoted: Vec<_> = all.iter().map(|name| format!("\"{name}\"")).collect();
            quoted.join(", ")
        };
        let contents = match &definition.kind {
            TypeDefKind::Record(fields) => {
                let members: Vec<_> = fields
                    .iter()
                    .map(|field| {
                        let member = identifier(&field.name);
                        format!("member{{\"{}\", &{ty}::{member}}}", field.name)
                    })
                    .collect();
                format!(
                    "static constexpr auto members = std::make_tuple({});",
                    members.join(", ")
                )
            }
            TypeDefKind::Variant { cases, .. } => format!(
                "static constexpr const char *cases[] = {{{}}};",
                texts(cases.iter().map(|case| case.name.as_str()).collect())
            ),
            TypeDefKind::Enum(labels) | TypeDefKind::Flags(labels) => format!(
                "static constexpr const char *labels[] = {{{}}};",
                texts(labels.iter().map(|label| label.name.as_str()).collect())
            ),
            TypeDefKind::Alias(_) => continue,
        };
        out.push_str(&format!(
            "template <> struct described<{ty}> {{\n  {contents}\n}};\n"
        ));
    }
    out.push_str("\ntemplate <class Use> bool with_method(const char *name, Use &&use) {\n");
    for (index, function) in package.functions.iter().enumerate() {
        out.push_str(&method(&names, index, function));
    }
    out.push_str("  return false;\n}\n");
    Ok(Output {
        path: format!("{prefix}_json.hpp").into(),
        contents: out,
    })
}

/// The elements of a stream or future that is a parameter.
fn element(names: &Names<'_>, ty: &Type) -> String {
    match &ty.kind {
        TypeKind::Stream(Some(element)) | TypeKind::Future(Some(element)) => names.ty(element),
        _ => "thalweg::none".to_owned(),
    }
}

/// If `name` is that of this method, passes a function to `use` that makes the call from JSON.
fn method(names: &Names<'_>, index: usize, function: &Function) -> String {
    let interface = format!("{}.", names.package.interface);
    let full = &function.full_name;
    let name = full.strip_prefix(&interface).unwrap_or(full);
    let mut receiver = "by".to_owned();
    let mut before = String::new();
    let mut arguments = String::new();
    for (number, field) in function.params.iter().enumerate() {
        let json = format!("json_array_get(params, {number})");
        let ty = names.ty(&field.ty);
        let argument = match &field.ty.kind {
            TypeKind::Borrow(_) => format!("resource_of<{ty}>({json})"),
            _ if is_stream_or_future(&field.ty) => {
                before.push_str(&format!(
                    "      auto w{number} = written<{}>(by.{}_{}(), {json});\n",
                    element(names, &field.ty),
                    names.functions[index],
                    identifier(&field.name)
                ));
                format!("w{number}")
            }
            _ => format!("from<{ty}>({json})"),
        };
        if number == 0 && matches!(function.kind, FunctionKind::Method(_)) {
            receiver = format!("resource_of<{ty}>({json})");
        } else {
            arguments.push_str(&format!("{argument}, "));
        }
    }
    format!(
        "  if (std::strcmp(name, \"{name}\") == 0) {{\n    \
           use([]([[maybe_unused]] const ::{}::client &by, [[maybe_unused]] const json_t *params, \
           const thalweg::call_options &options) {{\n{before}      \
           return {receiver}.{}({arguments}options);\n    }});\n    return true;\n  }}\n",
        names.namespace, names.functions[index]
    )
}
