//! Converts types: computes their layouts and hashes, and reports those that the generators do not
//! support.

use super::sources::Sources;
use crate::SourceError;
use crate::hash::{self, Describer};
use crate::model::{
    Case, Field, Label, Resource, ResourceId, Type, TypeDef, TypeDefKind, TypeId, TypeKind,
};
use std::collections::HashMap;
use thalweg_wire::MAX_DEPTH;
use wit_parser::{Handle, InterfaceId, Resolve, SizeAlign, Span, TypeOwner};

/// The maximum number of fields of a tuple: the limit of the trait implementations in Rust's
/// standard library.
pub const MAX_TUPLE: usize = 12;

/// The maximum size of a list of fixed length in bytes. It is stored in place, and in Rust on the
/// stack of an actor.
const MAX_ARRAY: u64 = 65_536;

/// The maximum length of a type's description in bytes. A few records that use each other twice can
/// describe a type with an exponential number of fields; the limit stops such a type.
const MAX_TEXT: usize = 65_536;

/// Converts types and collects the named types, each after the types that it uses.
pub struct Types<'a> {
    pub sources: &'a Sources,
    pub resolve: &'a Resolve,
    sizes: SizeAlign,
    interface: InterfaceId,
    pub defs: Vec<TypeDef>,
    pub resources: Vec<Resource>,
    defined: HashMap<wit_parser::TypeId, TypeId>,
    resource_ids: HashMap<wit_parser::TypeId, ResourceId>,
    /// The nesting depth of each type in `defs`.
    depths: Vec<u32>,
}

impl<'a> Types<'a> {
    /// Collects the resources, which types may use before their declaration.
    pub fn new(
        sources: &'a Sources,
        resolve: &'a Resolve,
        interface: InterfaceId,
    ) -> Result<Self, SourceError> {
        let mut sizes = SizeAlign::default();
        if let Err(error) = sizes.fill(resolve) {
            return Err(sources.package_refused("package".to_owned(), &error.to_string()));
        }
        let mut types = Types {
            sources,
            resolve,
            sizes,
            interface,
            defs: Vec::new(),
            resources: Vec::new(),
            defined: HashMap::new(),
            resource_ids: HashMap::new(),
            depths: Vec::new(),
        };
        for (name, id) in &resolve.interfaces[interface].types {
            let def = &resolve.types[*id];
            if matches!(def.kind, wit_parser::TypeDefKind::Resource) {
                types
                    .resource_ids
                    .insert(*id, ResourceId(types.resources.len()));
                types.resources.push(Resource {
                    name: name.clone(),
                    docs: def.docs.contents.clone().unwrap_or_default(),
                    position: sources.position(def.span),
                    destructor: None,
                });
            }
        }
        Ok(types)
    }

    /// Converts a named type, after the types that it uses. Returns `None` for a resource.
    pub fn define(&mut self, id: wit_parser::TypeId) -> Result<Option<TypeId>, SourceError> {
        if let Some(defined) = self.defined.get(&id) {
            return Ok(Some(*defined));
        }
        let resolve = self.resolve;
        let def = &resolve.types[id];
        let name = def.name.clone().expect("only named types are defined");
        if let wit_parser::TypeDefKind::Resource = def.kind {
            if def.owner != TypeOwner::Interface(self.interface) {
                let reason =
                    "it belongs to another interface: declare a resource in the exported interface";
                return Err(self
                    .sources
                    .refused(def.span, format!("resource `{name}`"), reason));
            }
            return Ok(None);
        }
        // `use other.{name}` is the type itself.
        if let wit_parser::TypeDefKind::Type(wit_parser::Type::Id(target)) = def.kind {
            let target_def = &resolve.types[target];
            if target_def.owner != def.owner && target_def.name.as_ref() == Some(&name) {
                let defined = self.define(target)?;
                if let Some(defined) = defined {
                    self.defined.insert(id, defined);
                }
                return Ok(defined);
            }
        }

        let kind = self.definition(id)?;
        let depth = self.definition_depth(&kind);
        let text = Describer {
            types: &self.defs,
            resources: &self.resources,
        }
        .describe_definition(&kind);
        let construct = || format!("type `{name}`");
        if depth > MAX_DEPTH {
            let reason =
                format!("it is nested {depth} levels deep; the limit of a message is {MAX_DEPTH}");
            return Err(self.sources.refused(def.span, construct(), &reason));
        }
        if text.len() > MAX_TEXT {
            let reason = "it has too many parts, including all types that it uses";
            return Err(self.sources.refused(def.span, construct(), reason));
        }
        if self.defs.iter().any(|other| other.name == name)
            || self.resources.iter().any(|other| other.name == name)
        {
            let reason =
                "the package already uses another type of this name, from another interface";
            return Err(self.sources.refused(def.span, construct(), reason));
        }
        let (size, align) = self.layout(&wit_parser::Type::Id(id));
        let defined = TypeId(self.defs.len());
        self.defined.insert(id, defined);
        self.depths.push(depth);
        self.defs.push(TypeDef {
            name,
            docs: def.docs.contents.clone().unwrap_or_default(),
            kind,
            size,
            align,
            hash: hash::fnv1a(&text),
            position: self.sources.position(def.span),
        });
        Ok(Some(defined))
    }

    fn definition(&mut self, id: wit_parser::TypeId) -> Result<TypeDefKind, SourceError> {
        let resolve = self.resolve;
        let def = &resolve.types[id];
        let docs = |docs: &wit_parser::Docs| docs.contents.clone().unwrap_or_default();
        Ok(match &def.kind {
            wit_parser::TypeDefKind::Record(record) => {
                let fields = record
                    .fields
                    .iter()
                    .map(|f| (f.name.clone(), docs(&f.docs), f.ty, f.span));
                TypeDefKind::Record(self.fields(fields.collect(), Self::value)?)
            }
            wit_parser::TypeDefKind::Variant(variant) => {
                let mut cases = Vec::new();
                for case in &variant.cases {
                    let payload = case
                        .ty
                        .as_ref()
                        .map(|ty| self.value(ty, case.span))
                        .transpose()?;
                    cases.push(Case {
                        name: case.name.clone(),
                        docs: docs(&case.docs),
                        payload,
                    });
                }
                let payloads = variant.cases.iter().map(|case| case.ty.as_ref());
                let payload_offset = self
                    .sizes
                    .payload_offset(variant.tag(), payloads)
                    .size_wasm32() as u32;
                let tag_size = match variant.tag() {
                    wit_parser::Int::U8 => 1,
                    wit_parser::Int::U16 => 2,
                    wit_parser::Int::U32 => 4,
                    wit_parser::Int::U64 => 8,
                };
                TypeDefKind::Variant {
                    cases,
                    tag_size,
                    payload_offset,
                }
            }
            wit_parser::TypeDefKind::Enum(cases) => {
                let labels = cases.cases.iter().map(|c| Label {
                    name: c.name.clone(),
                    docs: docs(&c.docs),
                });
                TypeDefKind::Enum(labels.collect())
            }
            wit_parser::TypeDefKind::Flags(flags) => {
                let labels = flags.flags.iter().map(|f| Label {
                    name: f.name.clone(),
                    docs: docs(&f.docs),
                });
                TypeDefKind::Flags(labels.collect())
            }
            wit_parser::TypeDefKind::Type(ty) => TypeDefKind::Alias(self.value(ty, def.span)?),
            _ => TypeDefKind::Alias(self.anonymous(id, def.span)?),
        })
    }

    /// Lays out fields as a record, and converts the type of each with `convert`.
    pub fn fields(
        &mut self,
        fields: Vec<(String, String, wit_parser::Type, Span)>,
        convert: fn(&mut Self, &wit_parser::Type, Span) -> Result<Type, SourceError>,
    ) -> Result<Vec<Field>, SourceError> {
        let offsets = self
            .sizes
            .field_offsets(fields.iter().map(|(_, _, ty, _)| ty));
        let offsets: Vec<u32> = offsets
            .into_iter()
            .map(|(offset, _)| offset.size_wasm32() as u32)
            .collect();
        fields
            .into_iter()
            .zip(offsets)
            .map(|((name, docs, ty, span), offset)| {
                Ok(Field {
                    name,
                    docs,
                    ty: convert(self, &ty, span)?,
                    offset,
                })
            })
            .collect()
    }

    /// The size and alignment of a record with these types.
    pub fn record_layout<'t>(
        &self,
        types: impl IntoIterator<Item = &'t wit_parser::Type>,
    ) -> (u32, u32) {
        let info = self.sizes.record(types);
        (
            info.size.size_wasm32() as u32,
            info.align.align_wasm32() as u32,
        )
    }

    fn layout(&self, ty: &wit_parser::Type) -> (u32, u32) {
        (
            self.sizes.size(ty).size_wasm32() as u32,
            self.sizes.align(ty).align_wasm32() as u32,
        )
    }

    /// Converts the type of a parameter, or of a whole result. It may be a resource or a borrow of
    /// one.
    pub fn outermost(&mut self, ty: &wit_parser::Type, span: Span) -> Result<Type, SourceError> {
        if let wit_parser::Type::Id(id) = ty {
            let def = &self.resolve.types[*id];
            let kind = match &def.kind {
                _ if def.name.is_some() => None,
                wit_parser::TypeDefKind::Handle(Handle::Own(id)) => {
                    Some(TypeKind::Own(self.resource(*id, def.span)?))
                }
                wit_parser::TypeDefKind::Handle(Handle::Borrow(id)) => {
                    Some(TypeKind::Borrow(self.resource(*id, def.span)?))
                }
                _ => None,
            };
            if let Some(kind) = kind {
                let (size, align) = self.layout(ty);
                return Ok(Type { kind, size, align });
            }
        }
        self.value(ty, span)
    }

    /// Converts the element type of a stream, or the value type of a future.
    fn element(
        &mut self,
        element: Option<&wit_parser::Type>,
        span: Span,
    ) -> Result<Option<Box<Type>>, SourceError> {
        let Some(element) = element else {
            return Ok(None);
        };
        let ty = self.value(element, span)?;
        if crate::model::contains_handle(&self.defs, &ty) {
            let reason = "the elements of a stream and the value of a future cannot contain resources or streams";
            return Err(self.sources.refused(span, self.construct(element), reason));
        }
        Ok(Some(Box::new(ty)))
    }

    /// Converts a type that may be inside other types, so it is not a borrow. A stream or a future
    /// may be inside a result only; the conversion of the function checks this.
    pub fn value(&mut self, ty: &wit_parser::Type, span: Span) -> Result<Type, SourceError> {
        let kind = match ty {
            wit_parser::Type::Bool => TypeKind::Bool,
            wit_parser::Type::U8 => TypeKind::U8,
            wit_parser::Type::U16 => TypeKind::U16,
            wit_parser::Type::U32 => TypeKind::U32,
            wit_parser::Type::U64 => TypeKind::U64,
            wit_parser::Type::S8 => TypeKind::S8,
            wit_parser::Type::S16 => TypeKind::S16,
            wit_parser::Type::S32 => TypeKind::S32,
            wit_parser::Type::S64 => TypeKind::S64,
            wit_parser::Type::F32 => TypeKind::F32,
            wit_parser::Type::F64 => TypeKind::F64,
            wit_parser::Type::Char => TypeKind::Char,
            wit_parser::Type::String => TypeKind::String,
            wit_parser::Type::ErrorContext => {
                let reason = "error contexts are not supported: use a string or a variant";
                return Err(self.sources.refused(span, self.construct(ty), reason));
            }
            wit_parser::Type::Id(id) => {
                if self.resolve.types[*id].name.is_none() {
                    return self.anonymous(*id, span);
                }
                match self.define(*id)? {
                    Some(id) => TypeKind::Named(id),
                    None => {
                        let reason =
                            "an alias of a resource is not supported: use the resource's own name";
                        return Err(self.sources.refused(span, self.construct(ty), reason));
                    }
                }
            }
        };
        let (size, align) = self.layout(ty);
        Ok(Type { kind, size, align })
    }

    /// Converts a type without a name, or the target of an alias.
    fn anonymous(&mut self, id: wit_parser::TypeId, span: Span) -> Result<Type, SourceError> {
        let resolve = self.resolve;
        let def = &resolve.types[id];
        // `own<r>` that is written as `r` has no span of its own.
        let span = if def.name.is_none() && def.span.is_known() {
            def.span
        } else {
            span
        };
        let refuse = |types: &Self, reason: &str| {
            Err(types.sources.refused(span, types.construct_of(def), reason))
        };
        let kind = match &def.kind {
            wit_parser::TypeDefKind::List(item) => {
                TypeKind::List(Box::new(self.value(item, span)?))
            }
            wit_parser::TypeDefKind::Option(item) => {
                TypeKind::Option(Box::new(self.value(item, span)?))
            }
            wit_parser::TypeDefKind::Result(result) => {
                let mut side = |ty: &Option<wit_parser::Type>| {
                    ty.as_ref()
                        .map(|ty| self.value(ty, span).map(Box::new))
                        .transpose()
                };
                TypeKind::Result {
                    ok: side(&result.ok)?,
                    error: side(&result.err)?,
                }
            }
            wit_parser::TypeDefKind::Tuple(tuple) if tuple.types.len() > MAX_TUPLE => {
                return refuse(
                    self,
                    &format!("a tuple has at most {MAX_TUPLE} fields: use a record"),
                );
            }
            wit_parser::TypeDefKind::Tuple(tuple) => TypeKind::Tuple(
                tuple
                    .types
                    .iter()
                    .map(|ty| self.value(ty, span))
                    .collect::<Result<_, _>>()?,
            ),
            wit_parser::TypeDefKind::Map(..) => {
                return refuse(self, "maps are not supported: use `list<tuple<K, V>>`");
            }
            wit_parser::TypeDefKind::FixedLengthList(item, count) => {
                let item = self.value(item, span)?;
                let size = u64::from(item.size) * u64::from(*count);
                if size == 0 || size > MAX_ARRAY {
                    return refuse(
                        self,
                        &format!(
                            "it has {size} bytes, and 1 to {MAX_ARRAY} are allowed: use a list"
                        ),
                    );
                }
                TypeKind::Array(Box::new(item), *count)
            }
            wit_parser::TypeDefKind::Future(_) | wit_parser::TypeDefKind::Stream(_)
                if def.name.is_some() =>
            {
                let reason = "an alias of a stream or a future is not supported: write the type where it is used";
                return refuse(self, reason);
            }
            wit_parser::TypeDefKind::Future(value) => {
                TypeKind::Future(self.element(value.as_ref(), span)?)
            }
            wit_parser::TypeDefKind::Stream(element) => {
                TypeKind::Stream(self.element(element.as_ref(), span)?)
            }
            wit_parser::TypeDefKind::Handle(_) if def.name.is_some() => {
                let reason = "an alias of a resource is not supported: use the resource's own name";
                return refuse(self, reason);
            }
            wit_parser::TypeDefKind::Handle(Handle::Own(id)) => {
                TypeKind::Own(self.resource(*id, span)?)
            }
            wit_parser::TypeDefKind::Handle(Handle::Borrow(_)) => {
                let reason = "only a parameter can be a borrow, not a part of a value";
                return refuse(self, reason);
            }
            _ => return refuse(self, "this construct is not supported"),
        };
        let (size, align) = self.layout(&wit_parser::Type::Id(id));
        let ty = Type { kind, size, align };
        let depth = self.depth(&ty);
        if depth > MAX_DEPTH {
            return refuse(
                self,
                &format!("it is nested {depth} levels deep; the limit of a message is {MAX_DEPTH}"),
            );
        }
        Ok(ty)
    }

    /// The resource with this id.
    pub fn resource_of(&self, id: wit_parser::TypeId) -> ResourceId {
        self.resource_ids[&id]
    }

    fn resource(&self, id: wit_parser::TypeId, span: Span) -> Result<ResourceId, SourceError> {
        let mut id = id;
        while let wit_parser::TypeDefKind::Type(wit_parser::Type::Id(target)) =
            self.resolve.types[id].kind
        {
            id = target;
        }
        self.resource_ids.get(&id).copied().ok_or_else(|| {
            let name = self.resolve.types[id].name.clone().unwrap_or_default();
            let reason =
                "it belongs to another interface: declare a resource in the exported interface";
            self.sources
                .refused(span, format!("resource `{name}`"), reason)
        })
    }

    fn depth(&self, ty: &Type) -> u32 {
        let deepest = |types: &mut dyn Iterator<Item = &Type>| {
            types.map(|ty| self.depth(ty)).max().unwrap_or(0) + 1
        };
        match &ty.kind {
            TypeKind::List(item) | TypeKind::Array(item, _) | TypeKind::Option(item) => {
                deepest(&mut [item.as_ref()].into_iter())
            }
            TypeKind::Result { ok, error } => deepest(&mut ok.iter().chain(error).map(Box::as_ref)),
            TypeKind::Tuple(items) => deepest(&mut items.iter()),
            TypeKind::Named(id) => self.depths[id.0],
            _ => 0,
        }
    }

    fn definition_depth(&self, kind: &TypeDefKind) -> u32 {
        match kind {
            TypeDefKind::Record(fields) => {
                fields.iter().map(|f| self.depth(&f.ty)).max().unwrap_or(0) + 1
            }
            TypeDefKind::Variant { cases, .. } => {
                cases
                    .iter()
                    .filter_map(|c| c.payload.as_ref())
                    .map(|ty| self.depth(ty))
                    .max()
                    .unwrap_or(0)
                    + 1
            }
            TypeDefKind::Enum(_) | TypeDefKind::Flags(_) => 0,
            TypeDefKind::Alias(ty) => self.depth(ty),
        }
    }

    /// A type as an error names it.
    pub fn construct(&self, ty: &wit_parser::Type) -> String {
        format!("type `{}`", self.wit_text(ty))
    }

    fn construct_of(&self, def: &wit_parser::TypeDef) -> String {
        format!("type `{}`", self.wit_text_of(def))
    }

    /// A type as WIT writes it.
    fn wit_text(&self, ty: &wit_parser::Type) -> String {
        let text = match ty {
            wit_parser::Type::Bool => "bool",
            wit_parser::Type::U8 => "u8",
            wit_parser::Type::U16 => "u16",
            wit_parser::Type::U32 => "u32",
            wit_parser::Type::U64 => "u64",
            wit_parser::Type::S8 => "s8",
            wit_parser::Type::S16 => "s16",
            wit_parser::Type::S32 => "s32",
            wit_parser::Type::S64 => "s64",
            wit_parser::Type::F32 => "f32",
            wit_parser::Type::F64 => "f64",
            wit_parser::Type::Char => "char",
            wit_parser::Type::String => "string",
            wit_parser::Type::ErrorContext => "error-context",
            wit_parser::Type::Id(id) => {
                let def = &self.resolve.types[*id];
                return def.name.clone().unwrap_or_else(|| self.wit_text_of(def));
            }
        };
        text.to_owned()
    }

    fn wit_text_of(&self, def: &wit_parser::TypeDef) -> String {
        use wit_parser::TypeDefKind as Kind;
        let one = |word: &str, ty: &Option<wit_parser::Type>| match ty {
            Some(ty) => format!("{word}<{}>", self.wit_text(ty)),
            None => word.to_owned(),
        };
        match &def.kind {
            Kind::List(item) => format!("list<{}>", self.wit_text(item)),
            Kind::FixedLengthList(item, count) => format!("list<{}, {count}>", self.wit_text(item)),
            Kind::Map(key, value) => {
                format!("map<{}, {}>", self.wit_text(key), self.wit_text(value))
            }
            Kind::Option(item) => format!("option<{}>", self.wit_text(item)),
            Kind::Future(item) => one("future", item),
            Kind::Stream(item) => one("stream", item),
            Kind::Tuple(tuple) => {
                let items: Vec<_> = tuple.types.iter().map(|ty| self.wit_text(ty)).collect();
                format!("tuple<{}>", items.join(", "))
            }
            Kind::Result(result) => {
                let side = |ty: &Option<wit_parser::Type>| {
                    ty.as_ref().map_or("_".to_owned(), |ty| self.wit_text(ty))
                };
                format!("result<{}, {}>", side(&result.ok), side(&result.err))
            }
            Kind::Handle(Handle::Own(id)) => self.wit_text(&wit_parser::Type::Id(*id)),
            Kind::Handle(Handle::Borrow(id)) => {
                format!("borrow<{}>", self.wit_text(&wit_parser::Type::Id(*id)))
            }
            other => def
                .name
                .clone()
                .unwrap_or_else(|| other.as_str().to_owned()),
        }
    }
}
