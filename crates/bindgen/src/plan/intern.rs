//! Collects the types of a package: each once, after those that it uses.

use super::refusal::{Refusal, Unsupported};
use super::spell::{key, spell};
use super::types::{Case, Handle, Kind, Member, Type, TypeIndex, Usage};
use super::{Function, Parameter, ParameterKind, Plan, ResultKind, Stream};
use crate::hash::{Describer, fnv1a};
use crate::model::{
    self, Field, Package, Position, Scalar, TypeDef, TypeDefKind, TypeId, TypeKind,
};
use std::collections::HashMap;

/// The types so far.
pub(super) struct Interner<'a> {
    package: &'a Package,
    types: Vec<Type<'a>>,
    named: Vec<TypeIndex>,
    streams: Vec<Stream>,
    upstreams: Vec<Stream>,
    refusals: Vec<Refusal>,
    /// The types without a name, by their [`key`].
    anonymous: HashMap<String, TypeIndex>,
}

impl<'a> Interner<'a> {
    /// Collects the named types.
    pub(super) fn new(package: &'a Package) -> Self {
        let mut this = Interner {
            package,
            types: Vec::new(),
            named: Vec::new(),
            streams: Vec::new(),
            upstreams: Vec::new(),
            refusals: Vec::new(),
            anonymous: HashMap::new(),
        };
        for definition in &package.types {
            let index = this.definition(definition);
            this.named.push(index);
        }
        this
    }

    /// The plan, whose usage is not marked yet.
    pub(super) fn finish(
        self,
        functions: Vec<Function<'a>>,
        imports: Vec<Function<'a>>,
    ) -> Plan<'a> {
        Plan {
            package: self.package,
            types: self.types,
            named: self.named,
            streams: self.streams,
            upstreams: self.upstreams,
            functions,
            imports,
            refusals: self.refusals,
            anonymous: self.anonymous,
        }
    }

    /// Collects the types of a function.
    pub(super) fn function(&mut self, function: &'a model::Function) -> Function<'a> {
        let at = &function.position;
        let parameters = function.params.iter().map(|field| Parameter {
            name: &field.name,
            docs: &field.docs,
            kind: self.parameter(field, at),
            offset: field.offset,
        });
        let parameters = parameters.collect();
        let ok = match function.ok.as_ref().map(|ty| (&ty.kind, ty)) {
            None => ResultKind::Nothing,
            Some((TypeKind::Own(id), _)) => ResultKind::Resource(*id),
            Some((TypeKind::Stream(element), _)) => {
                ResultKind::Stream(self.stream(element.as_deref(), false, at))
            }
            Some((TypeKind::Future(value), _)) => {
                ResultKind::Stream(self.stream(value.as_deref(), true, at))
            }
            Some((_, ty)) => ResultKind::Value(self.intern(ty, at)),
        };
        let error = function.error.as_ref().and_then(Option::as_ref);
        let error = error.map(|ty| self.intern(ty, at));
        Function {
            function,
            parameters,
            ok,
            error,
        }
    }

    fn parameter(&mut self, field: &Field, at: &Position) -> ParameterKind {
        let (element, is_future) = match &field.ty.kind {
            TypeKind::Own(id) => {
                return ParameterKind::Resource {
                    id: *id,
                    is_own: true,
                };
            }
            TypeKind::Borrow(id) => {
                return ParameterKind::Resource {
                    id: *id,
                    is_own: false,
                };
            }
            TypeKind::Stream(element) => (element, false),
            TypeKind::Future(value) => (value, true),
            _ => return ParameterKind::Value(self.intern(&field.ty, at)),
        };
        let stream = self.carrier(element.as_deref(), is_future, at);
        ParameterKind::Stream(place_of(&mut self.upstreams, stream))
    }

    /// The number of a stream or future that the service writes.
    fn stream(&mut self, element: Option<&model::Type>, is_future: bool, at: &Position) -> usize {
        let stream = self.carrier(element, is_future, at);
        place_of(&mut self.streams, stream)
    }

    fn carrier(&mut self, element: Option<&model::Type>, is_future: bool, at: &Position) -> Stream {
        let texts = Describer {
            types: &self.package.types,
            resources: &self.package.resources,
        };
        let text = element.map_or("_".to_owned(), |ty| texts.describe(ty));
        Stream {
            element: element.map(|ty| self.intern(ty, at)),
            is_future,
            hash: fnv1a(&text),
        }
    }

    fn definition(&mut self, definition: &'a TypeDef) -> TypeIndex {
        let at = &definition.position;
        if definition.size == 0 {
            self.refuse(Unsupported::NoMembers, at, definition.name.clone());
        }
        let kind = match &definition.kind {
            TypeDefKind::Alias(target) => return self.intern(target, at),
            TypeDefKind::Record(fields) => {
                let members = fields.iter().map(|field| Member {
                    name: &field.name,
                    docs: &field.docs,
                    ty: self.intern(&field.ty, at),
                    offset: field.offset,
                });
                Kind::Record(members.collect())
            }
            TypeDefKind::Variant {
                cases,
                tag_size,
                payload_offset,
            } => {
                let cases = cases.iter().map(|case| Case {
                    name: &case.name,
                    docs: &case.docs,
                    payload: case.payload.as_ref().map(|ty| self.intern(ty, at)),
                });
                Kind::Variant {
                    cases: cases.collect(),
                    tag_size: *tag_size,
                    payload_offset: *payload_offset,
                }
            }
            TypeDefKind::Enum(labels) => Kind::Enum(labels),
            TypeDefKind::Flags(labels) => Kind::Flags(labels),
        };
        let layout = (definition.size, definition.align);
        let id = TypeId(self.named.len());
        self.add(
            kind,
            layout,
            Some((id, definition)),
            definition.name.clone(),
        )
    }

    /// The type of a use. `at` is the position of the definition or function that uses it.
    fn intern(&mut self, ty: &model::Type, at: &Position) -> TypeIndex {
        if let TypeKind::Named(id) = ty.kind {
            return self.named[id.0];
        }
        let key = key(self.package, ty);
        if let Some(index) = self.anonymous.get(&key) {
            return *index;
        }
        if ty.size == 0 {
            self.refuse(Unsupported::NoMembers, at, spell(self.package, ty));
        }
        if let TypeKind::Borrow(_) = ty.kind {
            self.refuse(Unsupported::BorrowInValue, at, spell(self.package, ty));
        }
        let kind = match ty.kind.scalar() {
            Some(scalar) => Kind::Scalar(scalar),
            None => self.structure(ty, at),
        };
        let wit = super::spell::resolved(self.package, ty);
        let index = self.add(kind, (ty.size, ty.align), None, wit);
        self.anonymous.insert(key, index);
        index
    }

    fn structure(&mut self, ty: &model::Type, at: &Position) -> Kind<'a> {
        match &ty.kind {
            TypeKind::String => Kind::Text,
            TypeKind::List(element) => {
                let element = self.intern(element, at);
                match self.types[element.0].kind {
                    Kind::Scalar(Scalar::U8) => Kind::Bytes,
                    _ => Kind::List(element),
                }
            }
            TypeKind::Array(element, count) => Kind::Array(self.intern(element, at), *count),
            TypeKind::Option(value) => Kind::Option {
                value: self.intern(value, at),
                payload_offset: value.align.max(1),
            },
            TypeKind::Result { ok, error } => {
                let sides = [ok, error].into_iter().flatten();
                let payload_offset = sides.map(|side| side.align).max().unwrap_or(1);
                let cases = [("ok", ok), ("error", error)].map(|(name, side)| Case {
                    name,
                    docs: "",
                    payload: side.as_ref().map(|ty| self.intern(ty, at)),
                });
                Kind::Variant {
                    cases: cases.into(),
                    tag_size: 1,
                    payload_offset: payload_offset.max(1),
                }
            }
            TypeKind::Tuple(parts) => {
                let mut end = 0u32;
                let members = parts.iter().map(|part| {
                    let offset = end.next_multiple_of(part.align);
                    end = offset + part.size;
                    Member {
                        name: "",
                        docs: "",
                        ty: self.intern(part, at),
                        offset,
                    }
                });
                Kind::Record(members.collect())
            }
            TypeKind::Own(id) => Kind::Handle(Handle::Own(*id)),
            TypeKind::Borrow(id) => Kind::Handle(Handle::Borrow(*id)),
            TypeKind::Stream(element) => {
                Kind::Handle(Handle::Stream(self.stream(element.as_deref(), false, at)))
            }
            TypeKind::Future(value) => {
                Kind::Handle(Handle::Stream(self.stream(value.as_deref(), true, at)))
            }
            _ => unreachable!("`intern` handles scalars and named types"),
        }
    }

    fn add(
        &mut self,
        kind: Kind<'a>,
        (size, align): (u32, u32),
        named: Option<(TypeId, &'a TypeDef)>,
        wit: String,
    ) -> TypeIndex {
        let parts = kind.parts();
        let parts: Vec<&Type<'_>> = parts.iter().map(|part| &self.types[part.0]).collect();
        let is_full = |labels: usize| labels as u64 >= 1 << (8 * size.min(4));
        let is_trivial = match &kind {
            Kind::Scalar(scalar) => scalar.is_number(),
            Kind::Record(_) | Kind::Array(..) => parts.iter().all(|part| part.is_trivial),
            Kind::Enum(labels) => is_full(labels.len()),
            Kind::Flags(labels) => labels.len() as u32 == size * 8,
            _ => false,
        };
        let is_plain = match &kind {
            Kind::Text | Kind::Bytes | Kind::List(_) | Kind::Handle(_) => false,
            _ => parts.iter().all(|part| part.is_plain),
        };
        let has_handles = match &kind {
            Kind::Handle(_) => true,
            _ => parts.iter().any(|part| part.has_handles),
        };
        let stem = match named {
            Some((_, definition)) => definition.name.clone(),
            None => self.stem(&kind),
        };
        self.types.push(Type {
            kind,
            size,
            align,
            id: named.map(|(id, _)| id),
            docs: named.map_or("", |(_, definition)| definition.docs.as_str()),
            wit,
            stem,
            usage: Usage::default(),
            is_plain,
            has_handles,
            is_trivial,
        });
        TypeIndex(self.types.len() - 1)
    }

    /// The stem of a type without a name.
    fn stem(&self, kind: &Kind<'_>) -> String {
        let of = |index: TypeIndex| self.types[index.0].stem.as_str();
        let or = |index: Option<TypeIndex>, none| index.map_or(none, of);
        match kind {
            Kind::Scalar(scalar) => scalar.wit().to_owned(),
            Kind::Text => "string".to_owned(),
            Kind::Bytes => "list-u8".to_owned(),
            Kind::Handle(Handle::Own(id) | Handle::Borrow(id)) => {
                self.package.resources[id.0].name.clone()
            }
            Kind::Handle(Handle::Stream(index)) => {
                let Stream {
                    element, is_future, ..
                } = self.streams[*index];
                let word = if is_future { "future" } else { "stream" };
                format!("{}-{word}", or(element, "void"))
            }
            Kind::List(element) => format!("list-{}", of(*element)),
            Kind::Array(element, count) => format!("list{count}-{}", of(*element)),
            Kind::Option { value, .. } => format!("option-{}", of(*value)),
            Kind::Variant { cases, .. } => {
                let sides = cases
                    .iter()
                    .map(|case| format!("-{}", or(case.payload, "none")));
                format!("result{}", sides.collect::<String>())
            }
            Kind::Record(members) => {
                let parts = members.iter().map(|member| format!("-{}", of(member.ty)));
                format!("tuple{}{}", members.len(), parts.collect::<String>())
            }
            Kind::Enum(_) | Kind::Flags(_) => unreachable!("they have names"),
        }
    }

    fn refuse(&mut self, unsupported: Unsupported, position: &Position, wit: String) {
        self.refusals.push(Refusal {
            unsupported,
            position: position.clone(),
            wit,
        });
    }
}

/// The place of `stream` in the list, which it is added to if it is new.
fn place_of(all: &mut Vec<Stream>, stream: Stream) -> usize {
    let place = all.iter().position(|other| *other == stream);
    place.unwrap_or_else(|| {
        all.push(stream);
        all.len() - 1
    })
}
