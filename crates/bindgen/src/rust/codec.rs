//! Named types: their declarations, and the code that encodes, checks and decodes them.

mod cbor;
mod fields;
mod labels;
mod shapes;
mod words;

use super::defaults::{self, Default};
use super::names::camel;
use super::types::{self, owned};
use super::{docs, has_view, hex, line};
use crate::model::{Package, Type, TypeDef, TypeDefKind};

/// Emits one named type.
pub fn definition(out: &mut String, package: &Package, id: usize, def: &TypeDef) {
    match &def.kind {
        TypeDefKind::Record(record) => fields::record(out, package, id, def, record),
        TypeDefKind::Variant {
            cases,
            tag_size,
            payload_offset,
        } => {
            fields::variant(out, package, id, def, cases, *tag_size, *payload_offset);
        }
        TypeDefKind::Enum(cases) => labels::enumeration(out, package, def, cases),
        TypeDefKind::Flags(flags) => labels::flags(out, package, def, flags),
        TypeDefKind::Alias(ty) => {
            line(out, "");
            docs(out, &def.docs);
            line(
                out,
                &format!("pub type {} = {};", camel(&def.name), owned(package, ty)),
            );
            return;
        }
    }
    defaults::implement(out, package, id);
    let name = camel(&def.name);
    line(
        out,
        &format!(
            "
            // The layout hash of this type in all languages.
            const _: () = assert!(<{name} as wire::Decode>::HASH == {});",
            hex(def.hash)
        ),
    );
    if !contains_handle(package, id) {
        cbor::definition(out, package, id, def);
    }
    if package
        .functions
        .iter()
        .any(|function| is_error(package, function.error.as_ref(), id))
    {
        fields::error(out, package, def);
    }
}

/// A string literal, split if it is too long for a line.
pub fn literal(text: &str) -> String {
    let mut pieces: Vec<_> = shapes::pieces(text)
        .iter()
        .map(|piece| format!("{piece:?}"))
        .collect();
    if pieces.len() == 1 {
        return pieces.remove(0);
    }
    format!("concat!({})", pieces.join(", "))
}

/// Whether the error payload is the named type `id`.
fn is_error(package: &Package, error: Option<&Option<Type>>, id: usize) -> bool {
    let payload = error
        .and_then(Option::as_ref)
        .map(|ty| types::resolve_alias(package, ty));
    payload.is_some_and(|ty| ty.kind == crate::model::TypeKind::Named(crate::model::TypeId(id)))
}

/// A use of a named type.
fn named(id: usize) -> Type {
    Type {
        kind: crate::model::TypeKind::Named(crate::model::TypeId(id)),
        size: 0,
        align: 1,
    }
}

/// Whether a value of a named type can contain handles.
fn contains_handle(package: &Package, id: usize) -> bool {
    crate::model::contains_handle(&package.types, &named(id))
}

/// The derives of an owned type.
fn derives(package: &Package, id: usize) -> String {
    let ty = named(id);
    let default = match defaults::of_definition(package, id) {
        Default::Derived => ", Default",
        _ => "",
    };
    // A type that owns resources cannot be cloned or compared.
    if types::owns(package, &ty) {
        return format!("#[derive(Debug{default})]");
    }
    let copy = if types::plain_definition(package, id) {
        "Copy, "
    } else {
        ""
    };
    let eq = if types::has_float(package, &ty) {
        ""
    } else {
        ", Eq, Hash"
    };
    format!("#[derive(Clone, {copy}Debug{default}, PartialEq{eq})]")
}

/// `at + 8`, or `at`.
pub fn place(offset: u32) -> String {
    if offset == 0 {
        "at".to_owned()
    } else {
        format!("at + {offset}")
    }
}

/// `impl wire::Decode`, around the four functions in `body`.
struct Layout<'a> {
    package: &'a Package,
    id: usize,
    depth: u32,
}

impl Layout<'_> {
    /// Emits the constants and the view type. The caller emits the functions and the closing brace.
    fn begin(&self, out: &mut String) {
        let def = &self.package.types[self.id];
        let name = camel(&def.name);
        let view = if has_view(self.package, self.id) {
            format!("{name}View<'a>")
        } else {
            name.clone()
        };
        line(out, &format!("\nimpl wire::Decode for {name} {{"));
        line(
            out,
            &format!(
                "const SIZE: u32 = {};\nconst ALIGN: u32 = {};",
                def.size, def.align
            ),
        );
        line(
            out,
            &format!(
                "const SHAPE: wire::Shape = {};",
                shapes::of_definition(self.package, &def.kind)
            ),
        );
        line(out, &format!("const DEPTH: u32 = {};", self.depth));
        if contains_handle(self.package, self.id) {
            line(out, "const HAS_HANDLES: bool = true;");
        }
        line(out, "");
        line(out, &format!("type View<'a> = {view};\n"));
    }
}

/// An expression that reads the value at `offset`.
fn read(package: &Package, ty: &Type, offset: u32) -> String {
    format!(
        "<{} as wire::Decode>::view(from, {})",
        owned(package, ty),
        place(offset)
    )
}

/// An expression that checks the value at `offset`, without `?`. `None`: there is nothing to check.
fn check(package: &Package, ty: &Type, offset: u32) -> Option<String> {
    if types::is_number(types::resolve_alias(package, ty)) {
        return None;
    }
    Some(format!(
        "<{} as wire::Decode>::check(from, {})",
        owned(package, ty),
        place(offset)
    ))
}

/// An expression that converts `view` to an owned value.
fn own(package: &Package, ty: &Type, view: &str) -> String {
    if types::plain(package, ty) {
        return view.to_owned();
    }
    format!("<{} as wire::Decode>::owned({view})", owned(package, ty))
}

/// An expression for the view of the owned value `value`. `by_ref`: `value` is a reference.
fn borrow(package: &Package, ty: &Type, value: &str, by_ref: bool) -> String {
    match (types::plain(package, ty), by_ref) {
        (true, true) => format!("*{value}"),
        (true, false) => value.to_owned(),
        (false, _) => format!("{value}.as_view()"),
    }
}
