//! `_methods.py`: the package and its methods, in the order of their numbers.

use super::annotation::{self, Place};
use super::client::Face;
use super::host;
use super::layout::{self, Spelling};
use super::names;
use super::plan::Plan;
use super::source::{self, Doc, Source, mentions};
use crate::model::{Function, TypeDefKind, TypeKind};
use crate::plan::{self, Handle, Kind, ResultKind, TypeIndex};

pub(super) fn emit(plan: &Plan<'_>) -> Source {
    let mut body = source::file(plan);
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
    for (function, constant) in plan.whole.functions.iter().zip(&plan.methods) {
        body.blank();
        let (annotation, value) = method(plan, function);
        body.assign(constant, annotation, &value);
    }
    host::describe(plan, &mut body);
    let body = body.tail(start);

    let mut out = source::file(plan);
    out.docstring(0, &format!("The functions of {}.", plan.id()));
    out.blank();
    if body.contains("thalweg.") {
        out.line_at(0, "import thalweg");
    }
    out.line_at(0, "from thalweg import layout");
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
        out.line_at(0, "from . import _layout");
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

fn method(plan: &Plan<'_>, planned: &plan::Function<'_>) -> (Option<Doc>, Doc) {
    let function = planned.function;
    let ok = function.ok.as_ref();
    let mut items = vec![
        Doc::from(format!("\"{}\"", function.full_name)),
        texts(plan, function),
        parameters(plan, planned),
    ];
    // The types that a type checker cannot infer: those of the sync and of the async method.
    let mut faces = None;
    let head = match planned.ok {
        ResultKind::Nothing => {
            items.push("None".into());
            "PACKAGE.method"
        }
        ResultKind::Value(value) => {
            items.push(layout::named(plan, value, Spelling::Elsewhere));
            if has_tuple(plan, value) {
                let value = annotation::result(plan, ok, Face::Sync);
                faces = Some([value.clone(), value]);
            }
            "PACKAGE.method"
        }
        ResultKind::Resource(_) => "PACKAGE.resource_method",
        ResultKind::Stream(index) => {
            let stream = &plan.whole.streams[index];
            items.push(layout::element(plan, stream, Spelling::Elsewhere));
            let element = match ok.map(|ok| &ok.kind) {
                Some(TypeKind::Stream(element) | TypeKind::Future(element)) => element.as_deref(),
                _ => None,
            };
            let view = element.filter(|_| !stream.is_future);
            let view = view.and_then(|element| annotation::view(plan, element));
            items.push(view.map_or("None".into(), Doc::from));
            if stream.element.is_some_and(|ty| has_tuple(plan, ty)) {
                faces = Some(match (element, stream.is_future) {
                    (Some(value), true) => {
                        let value = annotation::of(plan, value, Place::Value);
                        ["Stream", "AsyncStream"]
                            .map(|face| format!("thalweg.{face}[{value}, {value}]"))
                    }
                    _ => [Face::Sync, Face::Async].map(|face| annotation::result(plan, ok, face)),
                });
            }
            "PACKAGE.stream_method"
        }
    };
    if let Some(error) = planned.error {
        items.push(layout::named(plan, error, Spelling::Elsewhere));
        if let Some(id) = plan.whole.get(error).id {
            let (def, planned) = plan.type_of(id);
            // The cases of a variant are exceptions.
            if let Some(exception) = &planned.exception
                && !matches!(def.kind, TypeDefKind::Variant { .. })
            {
                items.push(exception.as_str().into());
            }
        }
    }
    let annotation = faces.map(|faces| Doc::Group {
        open: "layout.Method[".into(),
        items: faces.map(Doc::from).into(),
        close: "]",
    });
    (annotation, Doc::call(head, items))
}

/// The size of the parameters, and the name, the offset and the kind of each.
pub(super) fn parameters(plan: &Plan<'_>, planned: &plan::Function<'_>) -> Doc {
    let each = planned.parameters.iter().map(|parameter| {
        source::tuple(vec![
            format!("\"{}\"", names::PARAMETER.of(parameter.name)).into(),
            parameter.offset.to_string().into(),
            layout::parameter(plan, parameter.kind),
        ])
    });
    source::tuple(vec![
        planned.function.params_layout.0.to_string().into(),
        source::tuple(each.collect()),
    ])
}

/// The descriptions of the parameters, the result, the error payload and the stream element, which
/// a library of another version needs to convert messages.
pub(super) fn texts(plan: &Plan<'_>, function: &Function) -> Doc {
    let texts = plan.whole.descriptions(function).into_iter();
    let quoted = texts.map(|text| format!("\"{text}\"").into());
    source::tuple(quoted.collect())
}

/// Whether the kind contains a tuple, which a type checker cannot infer. The kind of a named type
/// has an annotation.
fn has_tuple(plan: &Plan<'_>, index: TypeIndex) -> bool {
    let ty = plan.whole.get(index);
    match &ty.kind {
        _ if ty.id.is_some() => false,
        Kind::Record(_) => true,
        Kind::Handle(Handle::Stream(stream)) => {
            let element = plan.whole.streams[*stream].element;
            element.is_some_and(|element| has_tuple(plan, element))
        }
        kind => kind.parts().into_iter().any(|part| has_tuple(plan, part)),
    }
}
