//! `_layout.py`: the layout of each type.

use super::methods::hex;
use super::names;
use super::plan::Plan;
use super::source::{self, Doc, Source};
use crate::model::{Type, TypeDef, TypeDefKind};
use crate::plan::{Handle, Kind, ParameterKind, Scalar, Stream, TypeIndex};

pub(super) fn emit(plan: &Plan<'_>) -> Source {
    let mut out = source::file(plan);
    out.docstring(0, &format!("The layouts of the types of {}.", plan.id()));
    out.blank();
    let mut used = Vec::new();
    let mut statements = Vec::new();
    for (def, planned) in plan.package.types.iter().zip(&plan.types) {
        if let Some((annotation, value)) = definition(plan, def, &mut used) {
            statements.push((&planned.constant, annotation, value));
        }
    }
    if statements.is_empty() {
        return out;
    }
    out.line_at(0, "from thalweg import layout");
    out.blank();
    used.sort_unstable();
    used.dedup();
    out.import(".types", &used);
    out.blank();
    for (constant, annotation, value) in statements {
        out.assign(constant, annotation, &value);
    }
    out
}

/// The kind of a named type, with an annotation if it cannot be inferred. An alias has none,
/// because it is resolved.
fn definition(
    plan: &Plan<'_>,
    def: &TypeDef,
    used: &mut Vec<String>,
) -> Option<(Option<Doc>, Doc)> {
    let planned = plan
        .types
        .iter()
        .zip(&plan.package.types)
        .find(|(_, other)| std::ptr::eq(*other, def))?
        .0;
    let class = || Doc::from(planned.class.as_str());
    let (size, align) = (
        Doc::from(def.size.to_string()),
        Doc::from(def.align.to_string()),
    );
    match &def.kind {
        TypeDefKind::Record(fields) => {
            used.push(planned.class.clone());
            let mut items = vec![class(), size, align];
            items.extend(
                fields.iter().map(|field| {
                    member(plan, &names::FIELD.of(&field.name), field.offset, &field.ty)
                }),
            );
            Some((None, Doc::call("layout.record", items)))
        }
        TypeDefKind::Variant {
            cases,
            tag_size,
            payload_offset,
        } => {
            used.push(planned.class.clone());
            used.extend(planned.cases.iter().cloned());
            let mut items = vec![
                size,
                align,
                tag_size.to_string().into(),
                payload_offset.to_string().into(),
            ];
            for (case, name) in cases.iter().zip(&planned.cases) {
                let payload = case.payload.as_ref().map_or("None".into(), |payload| {
                    named(plan, plan.whole.index_of(payload), Spelling::Here)
                });
                items.push(source::tuple(vec![name.as_str().into(), payload]));
            }
            let annotation = Doc::from(format!("layout.Kind[{}]", planned.class));
            Some((Some(annotation), Doc::call("layout.variant", items)))
        }
        TypeDefKind::Enum(_) => {
            used.push(planned.class.clone());
            Some((None, Doc::call("layout.enumeration", vec![class(), size])))
        }
        TypeDefKind::Flags(_) => {
            used.push(planned.class.clone());
            Some((None, Doc::call("layout.flags", vec![class(), size])))
        }
        TypeDefKind::Alias(_) => None,
    }
}

/// `("name", offset, kind)`.
pub(super) fn member(plan: &Plan<'_>, name: &str, offset: u32, ty: &Type) -> Doc {
    source::tuple(vec![
        format!("\"{name}\"").into(),
        offset.to_string().into(),
        named(plan, plan.whole.index_of(ty), Spelling::Here),
    ])
}

/// How an expression refers to names, depending on its place.
#[derive(Clone, Copy)]
pub(super) enum Spelling {
    /// In `_layout.py`.
    Here,
    /// In another module.
    Elsewhere,
    /// In a class of another module, whose own names may be `layout`.
    InClass,
}

impl Spelling {
    fn of_kind(self, name: &str) -> String {
        match self {
            Self::Here | Self::Elsewhere => format!("layout.{name}"),
            Self::InClass => format!("thalweg.layout.{name}"),
        }
    }

    fn of_type(self, constant: &str) -> String {
        match self {
            Self::Here => constant.to_owned(),
            Self::Elsewhere | Self::InClass => format!("_layout.{constant}"),
        }
    }
}

/// The kind of a type, as an expression.
pub(super) fn named(plan: &Plan<'_>, index: TypeIndex, spelling: Spelling) -> Doc {
    let ty = plan.whole.get(index);
    let constant = |name: &str| Doc::from(spelling.of_kind(name));
    let call = |head: &str, items| Doc::call(&spelling.of_kind(head), items);
    let number = |number: u32| Doc::from(number.to_string());
    let inner = |index: TypeIndex| named(plan, index, spelling);
    let layout = |offset: u32| [ty.size, ty.align, offset].map(number);
    if let Some(id) = ty.id {
        return Doc::from(spelling.of_type(&plan.type_of(id).1.constant));
    }
    match &ty.kind {
        Kind::Scalar(scalar) => constant(&scalar.wit().to_ascii_uppercase()),
        Kind::Text => constant("STRING"),
        Kind::Bytes => constant("BYTES"),
        Kind::Handle(Handle::Own(_)) => constant("OWN"),
        Kind::Handle(Handle::Borrow(_)) => constant("BORROW"),
        Kind::Handle(Handle::Stream(stream)) => {
            carrier(plan, &plan.whole.streams[*stream], spelling)
        }
        Kind::List(element) => call("list_of", vec![inner(*element)]),
        Kind::Array(element, count) => match plan.whole.get(*element).kind {
            Kind::Scalar(Scalar::U8) => call("bytes_of", vec![number(*count)]),
            _ => call("array_of", vec![inner(*element), number(*count)]),
        },
        Kind::Option {
            value,
            payload_offset,
        } => {
            let head = match plan.whole.get(*value).kind {
                Kind::Option { .. } => "nested_option",
                _ => "option",
            };
            let mut items = vec![inner(*value)];
            items.extend(layout(*payload_offset));
            call(head, items)
        }
        Kind::Variant {
            cases,
            payload_offset,
            ..
        } => {
            let sides = cases.iter().map(|case| case.payload);
            let sides = sides.map(|side| side.map_or("None".into(), inner));
            let mut items: Vec<_> = sides.collect();
            items.extend(layout(*payload_offset));
            call("result", items)
        }
        Kind::Record(members) => {
            let mut items = vec![number(ty.size), number(ty.align)];
            let parts = members.iter();
            items
                .extend(parts.map(|part| source::tuple(vec![number(part.offset), inner(part.ty)])));
            call("tuple_of", items)
        }
        Kind::Enum(_) | Kind::Flags(_) => unreachable!("they have names"),
    }
}

/// The kind of a parameter.
pub(super) fn parameter(plan: &Plan<'_>, kind: ParameterKind) -> Doc {
    let spelling = Spelling::Elsewhere;
    match kind {
        ParameterKind::Value(ty) => named(plan, ty, spelling),
        ParameterKind::Resource { is_own: true, .. } => spelling.of_kind("OWN").into(),
        ParameterKind::Resource { is_own: false, .. } => spelling.of_kind("BORROW").into(),
        ParameterKind::Stream(stream) => carrier(plan, &plan.whole.upstreams[stream], spelling),
    }
}

/// The kind of a stream or a future.
fn carrier(plan: &Plan<'_>, stream: &Stream, spelling: Spelling) -> Doc {
    let head = if stream.is_future {
        "future_of"
    } else {
        "stream_of"
    };
    let element = element(plan, stream, spelling);
    Doc::call(
        &spelling.of_kind(head),
        vec![element, hex(stream.hash).into()],
    )
}

/// The kind of the element of a stream or a future.
pub(super) fn element(plan: &Plan<'_>, stream: &Stream, spelling: Spelling) -> Doc {
    match stream.element {
        None => spelling.of_kind("NOTHING").into(),
        Some(element) => named(plan, element, spelling),
    }
}
