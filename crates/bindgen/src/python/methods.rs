//! `_methods.py`: the package and its methods, in the order of their numbers.

use super::annotation::{self, Place};
use super::client::Face;
use super::host;
use super::layout::{self, Spelling};
use super::names;
use super::plan::Plan;
use super::source::{Doc, Source};
use super::views::mentions;
use crate::hash::Describer;
use crate::model::{Function, Type, TypeDefKind, TypeKind};

pub(super) fn emit(plan: &Plan<'_>) -> Source {
    let mut body = Source::new(plan);
    let start = body.len();
    body.blank();
    let package = plan.package;
    let name = format!("\"{}:{}\"", package.namespace, package.name);
    let version = format!("\"{}\"", package.version);
    let mut arguments = vec![name.into(), version.into(), hex(package.layout).into()];
    if package.host.is_some() {
        arguments.push(hex(package.host_layout()).into());
    }
    body.assign("PACKAGE", None, &Doc::call("layout.Package", arguments));
    for (function, constant) in package.functions.iter().zip(&plan.methods) {
        body.blank();
        let (annotation, value) = method(plan, function);
        body.assign(constant, annotation, &value);
    }
    host::describe(plan, &mut body);
    let body = body.tail(start);

    let mut out = Source::new(plan);
    out.docstring(0, &format!("The functions of {}.", plan.id()));
    out.blank();
    if body.contains("thalweg.") {
        out.line(0, "import thalweg");
    }
    out.line(0, "from thalweg import layout");
    let local = |names: Vec<String>| {
        names
            .into_iter()
            .filter(|name| mentions(&body, name))
            .collect::<Vec<_>>()
    };
    let (types, views) = (local(plan.type_names()), local(plan.view_names()));
    let layouts = mentions(&body, "_layout");
    if layouts || !types.is_empty() || !views.is_empty() {
        out.blank();
    }
    if layouts {
        out.line(0, "from . import _layout");
    }
    out.import(".types", &types);
    out.import(".views", &views);
    out.append(&body);
    out
}

/// A number in the format of ruff.
pub(super) fn hex(number: u64) -> String {
    format!("0x{number:016X}")
}

fn method(plan: &Plan<'_>, function: &Function) -> (Option<Doc>, Doc) {
    let params = function
        .params
        .iter()
        .map(|param| {
            let name = format!("\"{}\"", names::parameter(&param.name));
            let kind = layout::named(plan, &param.ty, Spelling::Elsewhere);
            Doc::Tuple(vec![name.into(), param.offset.to_string().into(), kind])
        })
        .collect();
    let mut items = vec![
        Doc::from(format!("\"{}\"", function.full_name)),
        texts(plan, function),
        Doc::Tuple(vec![
            function.params_layout.0.to_string().into(),
            Doc::Tuple(params),
        ]),
    ];
    let mut annotation = None;
    let head = match function.ok.as_ref().map(|ok| (ok, &ok.kind)) {
        Some((_, TypeKind::Own(_))) => "PACKAGE.resource_method",
        Some((ok, TypeKind::Stream(element))) => {
            let element = element.as_deref();
            items.push(layout::carried(plan, element, Spelling::Elsewhere));
            let view = element.and_then(|element| annotation::view(plan, element));
            items.push(view.map_or("None".into(), Doc::from));
            if element.is_some_and(|element| has_tuple(plan, element)) {
                let faces = [Face::Sync, Face::Async]
                    .map(|face| annotation::result(plan, Some(ok), face).into());
                annotation = Some(Doc::Group {
                    open: "layout.Method[".into(),
                    items: faces.into(),
                    close: "]",
                });
            }
            "PACKAGE.stream_method"
        }
        Some((_, TypeKind::Future(value))) => {
            let value = value.as_deref();
            items.push(layout::carried(plan, value, Spelling::Elsewhere));
            items.push("None".into());
            if let Some(value) = value.filter(|value| has_tuple(plan, value)) {
                let value = annotation::of(plan, value, Place::Value);
                let faces = ["Stream", "AsyncStream"]
                    .map(|face| format!("thalweg.{face}[{value}, {value}]").into());
                annotation = Some(Doc::Group {
                    open: "layout.Method[".into(),
                    items: faces.into(),
                    close: "]",
                });
            }
            "PACKAGE.stream_method"
        }
        Some((ok, _)) => {
            items.push(layout::named(plan, ok, Spelling::Elsewhere));
            if has_tuple(plan, ok) {
                let value = annotation::of(plan, ok, Place::Value);
                let both = vec![value.as_str().into(), value.as_str().into()];
                annotation = Some(Doc::Group {
                    open: "layout.Method[".into(),
                    items: both,
                    close: "]",
                });
            }
            "PACKAGE.method"
        }
        None => {
            items.push("None".into());
            "PACKAGE.method"
        }
    };
    if let Some(Some(error)) = &function.error {
        items.push(layout::named(plan, error, Spelling::Elsewhere));
        if let TypeKind::Named(id) = plan.resolve(error).kind {
            let (def, planned) = plan.type_of(id);
            // The cases of a variant are exceptions.
            if let Some(exception) = &planned.exception
                && !matches!(def.kind, TypeDefKind::Variant { .. })
            {
                items.push(exception.as_str().into());
            }
        }
    }
    (annotation, Doc::call(head, items))
}

/// The descriptions of the parameters, the result, the error payload and the stream element, which
/// a library of another version needs to convert messages.
pub(super) fn texts(plan: &Plan<'_>, function: &Function) -> Doc {
    let package = plan.package;
    let texts = Describer {
        types: &package.types,
        resources: &package.resources,
    };
    let description = texts.describe_function(function);
    let quoted = description
        .split('\n')
        .map(|text| format!("\"{text}\"").into());
    Doc::Tuple(quoted.collect())
}

/// Whether the kind contains a tuple, which a type checker cannot infer.
fn has_tuple(plan: &Plan<'_>, ty: &Type) -> bool {
    match &plan.resolve(ty).kind {
        TypeKind::Tuple(_) => true,
        TypeKind::List(inner) | TypeKind::Array(inner, _) | TypeKind::Option(inner) => {
            has_tuple(plan, inner)
        }
        TypeKind::Stream(element) | TypeKind::Future(element) => element
            .as_ref()
            .is_some_and(|element| has_tuple(plan, element)),
        TypeKind::Result { ok, error } => [ok, error]
            .into_iter()
            .flatten()
            .any(|side| has_tuple(plan, side)),
        _ => false,
    }
}
