//! Claims the C names of shapes, resources, calls, streams and accessors.

use super::names::{self, Names};
use super::plan::{Call, ParameterKind, Resource, ResultKind, Stream};
use super::shape::{Form, Shape, ShapeKind, Shapes};
use crate::model::{Function, FunctionKind, Package};

/// Names the shapes that have a name in WIT, or the others.
pub(super) fn name_shapes(shapes: &mut Shapes, names: &mut Names, is_named: bool) {
    for shape in &mut shapes.all {
        if shape.is_named == is_named {
            let stem = shape.stem.clone();
            shape.flat = names.claim(&stem);
        }
    }
    for index in 0..shapes.all.len() {
        if shapes.get(index).is_named != is_named {
            continue;
        }
        let has_one_struct = match shapes.get(index).kind {
            ShapeKind::List { element, .. } => shapes.is_plain(element),
            _ => shapes.get(index).is_plain,
        };
        let is_list = shapes.is_list(Form::Shape(index));
        let shape = &mut shapes.all[index];
        let stem = shape.stem.clone();
        shape.input = if has_one_struct {
            shape.flat.clone()
        } else {
            names.claim(&format!("{stem}_in"))
        };
        if shape.has_handles {
            shape.count_handles = names.claim(&format!("{stem}_count_handles"));
        }
        shape.write = names.claim(&format!("{stem}_write"));
        shape.check = names.claim(&format!("{stem}_check"));
        shape.get = names.claim(&format!("{stem}_{}", if is_list { "view" } else { "get" }));
        match &mut shape.kind {
            ShapeKind::Variant { cases, .. } => {
                for case in cases {
                    case.constant = names.constant(&format!("{stem}_{}", names::snake(&case.wit)));
                }
            }
            ShapeKind::Enum(labels) | ShapeKind::Flags(labels) => {
                for label in labels {
                    label.constant =
                        names.constant(&format!("{stem}_{}", names::snake(&label.wit)));
                }
            }
            _ => {}
        }
    }
}

/// Names the resources.
pub(super) fn name_resources(package: &Package, names: &mut Names) -> Vec<Resource> {
    let resources = package.resources.iter().map(|resource| {
        let stem = names::snake(&resource.name);
        Resource {
            docs: resource.docs.clone(),
            wit: resource.name.clone(),
            name: names.claim(&stem),
            close: names.claim(&format!("{stem}_close")),
            take: names.claim(&format!("{stem}_take")),
        }
    });
    resources.collect()
}

/// Part of the names of a function: `count`, or for a method `query_progress`.
pub(super) fn stem_of(package: &Package, function: &Function) -> String {
    let own = names::snake(&function.name);
    match function.kind {
        FunctionKind::Free => own,
        FunctionKind::Constructor(id) => {
            format!("{}_new", names::snake(&package.resources[id.0].name))
        }
        FunctionKind::Method(id) | FunctionKind::Static(id) => {
            format!("{}_{own}", names::snake(&package.resources[id.0].name))
        }
    }
}

/// Names the functions of a call.
pub(super) fn name_call(package: &Package, call: &mut Call<'_>, names: &mut Names) {
    let function = call.function;
    let stem = stem_of(package, function);
    call.method = names.constant(&format!("method_{stem}"));
    call.blocking = names.claim(&stem);
    call.prepare = names.claim(&format!("{stem}_prepare"));
    call.read = names.claim(&format!("{stem}_read"));
    if matches!(call.ok, ResultKind::Stream(_)) && call.error.is_some() {
        call.stream_error = names.claim(&format!("{stem}_stream_error"));
    }
    call.result = names.claim(&format!("{stem}_result"));
    for (parameter, field) in call.parameters.iter_mut().zip(&function.params) {
        if let ParameterKind::StreamWriter { open, .. } = &mut parameter.kind {
            *open = names.claim(&format!("{stem}_{}_open", names::snake(&field.name)));
        }
    }
}

/// Names the streams and futures.
pub(super) fn name_streams(streams: &mut [Stream], shapes: &mut Shapes, names: &mut Names) {
    for stream in &mut *streams {
        let stem = &stream.stem;
        let (word, functions): (_, &[&str]) = match stream.is_future {
            true => ("future", &["wait", "close"]),
            false => (
                "stream",
                &[
                    "acquire",
                    "acquire_serving",
                    "release",
                    "arm",
                    "callback",
                    "deliver",
                    "subscribe",
                    "close",
                ],
            ),
        };
        stream.name = names.claim(&format!("{stem}_{word}"));
        if !stream.is_future {
            stream.batch = names.claim(&format!("{stem}_batch"));
            stream.at = names.claim(&format!("{stem}_batch_at"));
        }
        for function in functions {
            names.claim(&format!("{stem}_{word}_{function}"));
        }
    }
    for handle in &mut shapes.handles {
        if let Some(in_value) = &mut handle.stream {
            let stream = &mut streams[in_value.index];
            stream.take = names.claim(&format!("{}_take", handle.stem));
            in_value.name.clone_from(&stream.name);
        }
    }
}

/// Names the accessors of all shapes that are output and not plain.
pub(super) fn name_accessors(shapes: &mut Shapes, names: &mut Names) {
    for index in 0..shapes.all.len() {
        let shape = shapes.get(index);
        if !shape.usage.is_output || shape.is_plain {
            continue;
        }
        let has_accessor: Vec<bool> = match &shape.kind {
            ShapeKind::Record(members) => {
                let has = |form| shapes.is_slice(form) || shapes.is_open_option(form);
                members.iter().map(|member| has(member.form)).collect()
            }
            ShapeKind::Variant { cases, .. } => {
                cases.iter().map(|case| case.payload.is_some()).collect()
            }
            ShapeKind::List { element, .. } | ShapeKind::Array { element, .. } => {
                vec![shapes.is_slice(*element)]
            }
            _ => continue,
        };
        let Shape { stem, kind, at, .. } = &mut shapes.all[index];
        let mut name = |what: &str| names.claim(&format!("{stem}_{what}"));
        match kind {
            ShapeKind::Record(members) => {
                for (member, _) in members.iter_mut().zip(has_accessor).filter(|(_, has)| *has) {
                    member.access = name(&member.name);
                }
            }
            ShapeKind::Variant { cases, .. } => {
                for (case, _) in cases.iter_mut().zip(has_accessor).filter(|(_, has)| *has) {
                    case.access = name(&case.name);
                }
            }
            _ if has_accessor.contains(&true) => *at = name("at"),
            _ => {}
        }
    }
}
