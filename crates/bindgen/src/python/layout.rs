//! `_layout.py`: the layout of each type.

use super::annotation;
use super::methods::hex;
use super::names;
use super::plan::Plan;
use super::source::{Doc, Source};
use crate::hash::{Describer, fnv1a};
use crate::model::{Type, TypeDef, TypeDefKind, TypeKind};

pub(super) fn emit(plan: &Plan<'_>) -> Source {
    let mut out = Source::new(plan);
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
    out.line(0, "from thalweg import layout");
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
                fields
                    .iter()
                    .map(|field| member(plan, &names::field(&field.name), field.offset, &field.ty)),
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
                    named(plan, payload, Spelling::Here)
                });
                items.push(Doc::Tuple(vec![name.as_str().into(), payload]));
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
    Doc::Tuple(vec![
        format!("\"{name}\"").into(),
        offset.to_string().into(),
        named(plan, ty, Spelling::Here),
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

/// The kind of `ty`, as an expression.
pub(super) fn named(plan: &Plan<'_>, ty: &Type, spelling: Spelling) -> Doc {
    let ty = plan.resolve(ty);
    let layout = |size: u32, align: u32, offset: u32| {
        [size, align, offset].map(|number| Doc::from(number.to_string()))
    };
    let scalar = |name: &str| Doc::from(spelling.of_kind(name));
    match &ty.kind {
        TypeKind::Bool => scalar("BOOL"),
        TypeKind::U8 => scalar("U8"),
        TypeKind::U16 => scalar("U16"),
        TypeKind::U32 => scalar("U32"),
        TypeKind::U64 => scalar("U64"),
        TypeKind::S8 => scalar("S8"),
        TypeKind::S16 => scalar("S16"),
        TypeKind::S32 => scalar("S32"),
        TypeKind::S64 => scalar("S64"),
        TypeKind::F32 => scalar("F32"),
        TypeKind::F64 => scalar("F64"),
        TypeKind::Char => scalar("CHAR"),
        TypeKind::String => scalar("STRING"),
        TypeKind::List(element) if annotation::is_byte(plan, element) => scalar("BYTES"),
        TypeKind::List(element) => Doc::call(
            &spelling.of_kind("list_of"),
            vec![named(plan, element, spelling)],
        ),
        TypeKind::Array(element, count) => {
            let (head, mut items) = if annotation::is_byte(plan, element) {
                ("bytes_of", Vec::new())
            } else {
                ("array_of", vec![named(plan, element, spelling)])
            };
            items.push(count.to_string().into());
            Doc::call(&spelling.of_kind(head), items)
        }
        TypeKind::Option(payload) => {
            let wrapped = annotation::can_be_none(plan, payload);
            let head = if wrapped { "nested_option" } else { "option" };
            let mut items = vec![named(plan, payload, spelling)];
            // The discriminant is one byte, so the payload begins at its own alignment.
            items.extend(layout(ty.size, ty.align, payload.align));
            Doc::call(&spelling.of_kind(head), items)
        }
        TypeKind::Result { ok, error } => {
            let side = |side: &Option<Box<Type>>| {
                side.as_ref()
                    .map_or("None".into(), |side| named(plan, side, spelling))
            };
            let align = [ok, error]
                .into_iter()
                .flatten()
                .map(|side| side.align)
                .max()
                .unwrap_or(1);
            let mut items = vec![side(ok), side(error)];
            items.extend(layout(ty.size, ty.align, align));
            Doc::call(&spelling.of_kind("result"), items)
        }
        TypeKind::Tuple(parts) => {
            let mut items = vec![ty.size.to_string().into(), ty.align.to_string().into()];
            let mut end = 0_u32;
            for part in parts {
                let offset = end.next_multiple_of(part.align);
                end = offset + part.size;
                items.push(Doc::Tuple(vec![
                    offset.to_string().into(),
                    named(plan, part, spelling),
                ]));
            }
            Doc::call(&spelling.of_kind("tuple_of"), items)
        }
        TypeKind::Named(id) => Doc::from(spelling.of_type(&plan.type_of(*id).1.constant)),
        TypeKind::Own(_) => scalar("OWN"),
        TypeKind::Borrow(_) => scalar("BORROW"),
        TypeKind::Stream(element) | TypeKind::Future(element) => {
            let texts = Describer {
                types: &plan.package.types,
                resources: &plan.package.resources,
            };
            let text = element
                .as_ref()
                .map_or("_".to_owned(), |ty| texts.describe(ty));
            let head = match ty.kind {
                TypeKind::Stream(_) => "stream_of",
                _ => "future_of",
            };
            let items = vec![
                carried(plan, element.as_deref(), spelling),
                hex(fnv1a(&text)).into(),
            ];
            Doc::call(&spelling.of_kind(head), items)
        }
    }
}

/// The kind of the element of a stream or a future.
pub(super) fn carried(plan: &Plan<'_>, element: Option<&Type>, spelling: Spelling) -> Doc {
    element.map_or_else(
        || spelling.of_kind("NOTHING").into(),
        |element| named(plan, element, spelling),
    )
}
