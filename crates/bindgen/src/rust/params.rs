//! The parameters of a function: a tuple, or a record if a tuple cannot have that many fields.

use super::codec;
use super::names::{camel, in_service, param, snake};
use super::types;
use crate::hash::{Describer, fnv1a};
use crate::model::{
    self, Field, Function, FunctionKind, Package, ResourceId, Type, TypeDef, TypeDefKind, TypeKind,
};

/// The maximum size of a tuple: the limit of the trait implementations in the standard library.
const MAX_TUPLE: usize = 12;

/// Whether the parameters need a record.
fn is_record(function: &Function) -> bool {
    function.params.len() > MAX_TUPLE
}

/// `search-count-params`.
fn record_name(package: &Package, function: &Function) -> String {
    let own = match function.kind {
        FunctionKind::Method(ResourceId(id)) => {
            format!("{}-{}", package.resources[id].name, function.name)
        }
        _ => in_service(package, function)
            .trim_start_matches("r#")
            .replace('_', "-"),
    };
    own + "-params"
}

/// The package, with an additional record for each function that needs one.
pub fn with_records(package: &Package) -> Package {
    let mut with = package.clone();
    for function in package.functions.iter().filter(|f| is_record(f)) {
        // In a message, an owned and a borrowed resource are both handles.
        let fields = function.params.iter().map(|field| Field {
            ty: match field.ty.kind {
                TypeKind::Own(id) => Type {
                    kind: TypeKind::Borrow(id),
                    ..field.ty.clone()
                },
                _ => field.ty.clone(),
            },
            ..field.clone()
        });
        let kind = TypeDefKind::Record(fields.collect());
        let texts = Describer {
            types: &package.types,
            resources: &package.resources,
        };
        with.types.push(TypeDef {
            name: record_name(package, function),
            docs: format!("The parameters of `{}`.", function.full_name),
            hash: fnv1a(&texts.describe_definition(&kind)),
            kind,
            size: function.params_layout.0,
            align: function.params_layout.1,
            position: function.position.clone(),
        });
    }
    with
}

/// The pattern that binds each parameter to a variable.
pub fn pattern(package: &Package, function: &Function) -> String {
    let fields = &function.params;
    if !is_record(function) {
        return types::tuple(fields.iter().map(|field| param(&field.name)));
    }
    let each = fields.iter().map(|field| {
        let (name, variable) = (snake(&field.name), param(&field.name));
        if name == variable {
            format!("{name}, ")
        } else {
            format!("{name}: {variable}, ")
        }
    });
    let each: String = each.collect();
    format!("{} {{ {each} }}", camel(&record_name(package, function)))
}

/// The argument of the client, given an expression for each parameter.
pub fn passed(package: &Package, function: &Function, values: &[String]) -> String {
    if !is_record(function) {
        return types::tuple(values.iter().cloned());
    }
    let (mut handles, mut each, mut counted) = (String::new(), String::new(), Vec::new());
    for (field, value) in function.params.iter().zip(values) {
        let (variable, at) = (param(&field.name), codec::place(field.offset));
        // A handle is taken from its client only once.
        if *value != variable {
            handles += &format!("let {variable} = {value};\n");
        }
        each += &format!("wire::Encode::encode(&{variable}, to, {at});\n");
        if model::contains_handle(&package.types, &field.ty) {
            counted.push(format!("wire::Encode::handles(&{variable}, given)"));
        }
    }
    let name = camel(&record_name(package, function));
    let counted = match counted.as_slice() {
        [] => "|_| 0".to_owned(),
        some => format!("move |given| {}", some.join(" + ")),
    };
    format!("{{ {handles} wire::written::<{name}>(move |to, at| {{ {each} }}, {counted}) }}")
}
