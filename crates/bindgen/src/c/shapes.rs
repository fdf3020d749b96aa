//! The types of a plan as C sees them, before they have names.

use super::names::{self, MEMBER};
use super::shape::{Case, Form, HandleStream, HandleType, Label, Member, Shape, ShapeKind, Shapes};
use crate::model;
use crate::plan::{Handle, Kind, Plan, Type, TypeIndex};

/// All shapes, and the form of each type of the plan.
pub(super) fn of(plan: &Plan<'_>) -> (Shapes, Vec<Form>) {
    let resources = plan.package.resources.iter().map(|resource| HandleType {
        stem: names::snake(&resource.name),
        stream: None,
    });
    let mut shapes = Shapes {
        all: Vec::new(),
        handles: resources.collect(),
    };
    let mut forms: Vec<Form> = Vec::new();
    for ty in &plan.types {
        forms.push(match &ty.kind {
            Kind::Scalar(scalar) => Form::Scalar(*scalar),
            Kind::Text => Form::Text,
            Kind::Bytes => Form::Bytes,
            Kind::Handle(Handle::Own(id) | Handle::Borrow(id)) => Form::Handle(id.0),
            Kind::Handle(Handle::Stream(index)) => {
                let element = plan.streams[*index].element;
                shapes.handles.push(HandleType {
                    stem: names::snake(&ty.stem),
                    stream: Some(HandleStream {
                        index: *index,
                        element: element.map(|element| forms[element.0]),
                        name: String::new(),
                    }),
                });
                Form::Handle(shapes.handles.len() - 1)
            }
            _ => {
                shapes.all.push(shape(plan, &forms, ty));
                Form::Shape(shapes.all.len() - 1)
            }
        });
    }
    (shapes, forms)
}

fn shape(plan: &Plan<'_>, forms: &[Form], ty: &Type<'_>) -> Shape {
    Shape {
        is_named: ty.id.is_some(),
        stem: names::snake(&ty.stem),
        wit: ty.wit.clone(),
        docs: ty.docs.to_owned(),
        kind: kind(plan, forms, ty),
        size: ty.size,
        is_plain: ty.is_plain,
        is_dense: is_dense(plan, ty),
        is_trivial: ty.is_trivial,
        has_handles: ty.has_handles,
        usage: ty.usage,
        flat: String::new(),
        input: String::new(),
        write: String::new(),
        check: String::new(),
        count_handles: String::new(),
        get: String::new(),
        at: String::new(),
    }
}

/// No slice, no handle, no padding, and no bytes that depend on a case.
fn is_dense(plan: &Plan<'_>, ty: &Type<'_>) -> bool {
    match &ty.kind {
        Kind::Record(members) => {
            let types = members.iter().map(|member| plan.get(member.ty));
            types.clone().map(|member| member.size).sum::<u32>() == ty.size
                && types.clone().all(|member| is_dense(plan, member))
        }
        Kind::Array(element, _) => is_dense(plan, plan.get(*element)),
        Kind::Scalar(_) | Kind::Enum(_) | Kind::Flags(_) => true,
        _ => false,
    }
}

fn kind(plan: &Plan<'_>, forms: &[Form], ty: &Type<'_>) -> ShapeKind {
    let form = |index: TypeIndex| forms[index.0];
    match &ty.kind {
        Kind::Record(members) => {
            let members = members.iter().enumerate().map(|(number, member)| Member {
                name: match member.name {
                    "" => format!("f{number}"),
                    name => MEMBER.of(name),
                },
                wit: member.name.to_owned(),
                access: String::new(),
                docs: member.docs.to_owned(),
                form: form(member.ty),
                offset: member.offset,
            });
            ShapeKind::Record(members.collect())
        }
        Kind::Variant {
            cases,
            tag_size,
            payload_offset,
        } => {
            let cases = cases.iter().map(|case| Case {
                name: MEMBER.of(case.name),
                wit: case.name.to_owned(),
                constant: String::new(),
                access: String::new(),
                docs: case.docs.to_owned(),
                payload: case.payload.map(form),
            });
            ShapeKind::Variant {
                cases: cases.collect(),
                tag_size: *tag_size,
                payload_offset: *payload_offset,
            }
        }
        Kind::Option {
            value,
            payload_offset,
        } => ShapeKind::Option {
            value: form(*value),
            payload_offset: *payload_offset,
        },
        Kind::List(element) => ShapeKind::List {
            element: form(*element),
            size: plan.get(*element).size,
            align: plan.get(*element).align,
        },
        Kind::Array(element, count) => ShapeKind::Array {
            element: form(*element),
            count: *count,
            size: plan.get(*element).size,
        },
        Kind::Enum(all) => ShapeKind::Enum(labels(all)),
        Kind::Flags(all) => ShapeKind::Flags(labels(all)),
        Kind::Scalar(_) | Kind::Text | Kind::Bytes | Kind::Handle(_) => {
            unreachable!("C has these types itself")
        }
    }
}

fn labels(all: &[model::Label]) -> Vec<Label> {
    let labels = all.iter().map(|label| Label {
        wit: label.name.clone(),
        constant: String::new(),
        docs: label.docs.clone(),
    });
    labels.collect()
}
