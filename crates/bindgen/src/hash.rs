//! Descriptions of types, and the layout hashes computed from them.
//!
//! A description is a text such as `record{path:string,line:u64}`. Aliases are resolved, names are
//! as in WIT, and there are no spaces. Equal descriptions mean equal layouts with equal names.

use crate::model::{Field, Function, Hashes, Resource, Type, TypeDef, TypeDefKind, TypeKind};
use thalweg_wire::Shape;

/// FNV-1a 64 of a text.
pub fn fnv1a(text: &str) -> u64 {
    Shape::hash_of(text)
}

/// Describes types, given the named types and resources that they use.
#[derive(Clone, Copy)]
pub struct Describer<'a> {
    /// The named types that are converted so far.
    pub types: &'a [TypeDef],
    /// All resources.
    pub resources: &'a [Resource],
}

impl Describer<'_> {
    /// The description of a type.
    pub fn describe(self, ty: &Type) -> String {
        let inner =
            |ty: &Option<Box<Type>>| ty.as_ref().map_or("_".to_owned(), |ty| self.describe(ty));
        match &ty.kind {
            TypeKind::String => "string".to_owned(),
            TypeKind::List(item) => format!("list<{}>", self.describe(item)),
            TypeKind::Array(item, count) => format!("list<{},{count}>", self.describe(item)),
            TypeKind::Option(item) => format!("option<{}>", self.describe(item)),
            TypeKind::Result { ok, error } => format!("result<{},{}>", inner(ok), inner(error)),
            TypeKind::Tuple(items) => format!(
                "tuple<{}>",
                self.join(items.iter().map(|item| self.describe(item)))
            ),
            TypeKind::Named(id) => self.describe_definition(&self.types[id.0].kind),
            TypeKind::Own(id) => format!("own<{}>", self.resources[id.0].name),
            TypeKind::Borrow(id) => format!("borrow<{}>", self.resources[id.0].name),
            TypeKind::Stream(item) => format!("stream<{}>", inner(item)),
            TypeKind::Future(item) => format!("future<{}>", inner(item)),
            kind => kind
                .scalar()
                .expect("only scalars are left")
                .wit()
                .to_owned(),
        }
    }

    /// The description of a named type.
    pub fn describe_definition(self, kind: &TypeDefKind) -> String {
        match kind {
            TypeDefKind::Record(fields) => self.describe_record(fields),
            TypeDefKind::Variant { cases, .. } => {
                let case = |payload: &Option<Type>| {
                    payload
                        .as_ref()
                        .map(|ty| format!("({})", self.describe(ty)))
                };
                let cases = cases
                    .iter()
                    .map(|c| format!("{}{}", c.name, case(&c.payload).unwrap_or_default()));
                format!("variant{{{}}}", self.join(cases))
            }
            TypeDefKind::Enum(labels) => format!(
                "enum{{{}}}",
                self.join(labels.iter().map(|l| l.name.clone()))
            ),
            TypeDefKind::Flags(labels) => format!(
                "flags{{{}}}",
                self.join(labels.iter().map(|l| l.name.clone()))
            ),
            TypeDefKind::Alias(ty) => self.describe(ty),
        }
    }

    /// The description of a record's fields, or of a function's parameters.
    pub fn describe_record(self, fields: &[Field]) -> String {
        let fields = fields
            .iter()
            .map(|field| format!("{}:{}", field.name, self.describe(&field.ty)));
        format!("record{{{}}}", self.join(fields))
    }

    /// The four descriptions of a function, as in `tw_method`: parameters, result, error payload
    /// and stream element, one per line. The line is empty if the function has no such part.
    pub fn describe_function(self, function: &Function) -> String {
        let text = |ty: Option<&Type>| ty.map_or("_".to_owned(), |ty| self.describe(ty));
        let error = function
            .error
            .as_ref()
            .map(|payload| text(payload.as_ref()));
        let element = match function.ok.as_ref().map(|ty| &ty.kind) {
            Some(TypeKind::Stream(item) | TypeKind::Future(item)) => text(item.as_deref()),
            _ => String::new(),
        };
        [
            self.describe_record(&function.params),
            text(function.ok.as_ref()),
            error.unwrap_or_default(),
            element,
        ]
        .join("\n")
    }

    fn join(self, parts: impl Iterator<Item = String>) -> String {
        parts.collect::<Vec<_>>().join(",")
    }

    /// The four hashes of a function, as in `tw_method`.
    pub fn hash_function(
        self,
        params: &[Field],
        ok: Option<&Type>,
        error: Option<&Option<Type>>,
    ) -> Hashes {
        let hash = |ty: Option<&Type>| fnv1a(&ty.map_or("_".to_owned(), |ty| self.describe(ty)));
        let element = match ok.map(|ty| &ty.kind) {
            Some(TypeKind::Stream(item) | TypeKind::Future(item)) => hash(item.as_deref()),
            _ => 0,
        };
        Hashes {
            params: fnv1a(&self.describe_record(params)),
            ok: hash(ok),
            error: error.map_or(0, |payload| hash(payload.as_ref())),
            element,
        }
    }
}

/// The hash of all functions of an interface: FNV-1a over one line `name params ok error element`
/// per function.
pub fn layout_hash<'a>(functions: impl IntoIterator<Item = &'a Function>) -> u64 {
    let lines = functions.into_iter().map(|function| {
        let Hashes {
            params,
            ok,
            error,
            element,
        } = function.hashes;
        format!("{} {params} {ok} {error} {element}", function.full_name)
    });
    fnv1a(&lines.collect::<Vec<_>>().join("\n"))
}
