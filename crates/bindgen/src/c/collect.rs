//! Finds the shapes of a package: its named types, and the options, lists, tuples and results that
//! they use.

use std::collections::HashMap;

use super::names;
use super::plan::Stream;
use super::shape::{
    Case, Form, HandleStream, HandleType, Label, Member, Scalar, Shape, ShapeKind, Shapes, Usage,
};
use crate::SourceError;
use crate::model::{Package, Position, Type, TypeDef, TypeDefKind, TypeKind};

/// A type alias.
pub(super) struct Alias {
    pub(super) name: String,
    pub(super) docs: String,
    pub(super) form: Form,
}

/// Finds every shape of a package.
pub(super) struct Collector<'a> {
    package: &'a Package,
    pub(super) shapes: Shapes,
    pub(super) aliases: Vec<Alias>,
    pub(super) streams: Vec<Stream>,
    /// The form of each `TypeId`.
    named: Vec<Form>,
    /// The shapes of types without a name. The key is the type in WIT, with aliases resolved.
    anonymous: HashMap<String, usize>,
}

impl<'a> Collector<'a> {
    /// Collects all named types.
    pub(super) fn new(package: &'a Package) -> Result<Self, SourceError> {
        let resources = package.resources.iter();
        let resources = resources.map(|resource| HandleType {
            stem: names::snake(&resource.name),
            stream: None,
        });
        let mut this = Collector {
            package,
            shapes: Shapes {
                handles: resources.collect(),
                ..Shapes::default()
            },
            aliases: Vec::new(),
            streams: Vec::new(),
            named: Vec::new(),
            anonymous: HashMap::new(),
        };
        for definition in &package.types {
            let form = this.definition(definition)?;
            this.named.push(form);
        }
        Ok(this)
    }

    fn definition(&mut self, definition: &TypeDef) -> Result<Form, SourceError> {
        let position = &definition.position;
        if definition.size == 0 {
            return Err(SourceError {
                position: position.clone(),
                construct: format!("type `{}`", definition.name),
                reason: "it has no members, and C has no empty struct; give it one".to_owned(),
            });
        }
        let kind = match &definition.kind {
            TypeDefKind::Alias(target) => {
                let form = self.form(target, position)?;
                self.aliases.push(Alias {
                    name: names::snake(&definition.name),
                    docs: definition.docs.clone(),
                    form,
                });
                return Ok(form);
            }
            TypeDefKind::Record(fields) => {
                let mut members = Vec::new();
                for field in fields {
                    members.push(Member {
                        name: names::member(&field.name),
                        wit: field.name.clone(),
                        access: String::new(),
                        docs: field.docs.clone(),
                        form: self.form(&field.ty, position)?,
                        offset: field.offset,
                    });
                }
                ShapeKind::Record(members)
            }
            TypeDefKind::Variant {
                cases,
                tag_size,
                payload_offset,
            } => {
                let mut out = Vec::new();
                for case in cases {
                    let payload = match &case.payload {
                        Some(ty) => Some(self.form(ty, position)?),
                        None => None,
                    };
                    out.push(self.case(&case.name, &case.docs, payload));
                }
                ShapeKind::Variant {
                    tag_size: *tag_size,
                    payload_offset: *payload_offset,
                    cases: out,
                }
            }
            TypeDefKind::Enum(labels) => ShapeKind::Enum(labels.iter().map(label).collect()),
            TypeDefKind::Flags(labels) => ShapeKind::Flags(labels.iter().map(label).collect()),
        };
        let stem = names::snake(&definition.name);
        Ok(self.add(
            stem,
            definition.name.clone(),
            &definition.docs,
            kind,
            definition.size,
            true,
        ))
    }

    fn case(&self, name: &str, docs: &str, payload: Option<Form>) -> Case {
        Case {
            name: names::member(name),
            wit: name.to_owned(),
            constant: String::new(),
            access: String::new(),
            docs: docs.to_owned(),
            payload,
        }
    }

    fn add(
        &mut self,
        stem: String,
        wit: String,
        docs: &str,
        kind: ShapeKind,
        size: u32,
        is_named: bool,
    ) -> Form {
        let is_plain = match &kind {
            ShapeKind::Record(members) => members.iter().all(|m| self.shapes.is_plain(m.form)),
            ShapeKind::Variant { cases, .. } => cases
                .iter()
                .all(|case| case.payload.is_none_or(|form| self.shapes.is_plain(form))),
            ShapeKind::Enum(_) | ShapeKind::Flags(_) => true,
            ShapeKind::Option { value, .. } => self.shapes.is_plain(*value),
            ShapeKind::Array { element, .. } => self.shapes.is_plain(*element),
            ShapeKind::List { .. } => false,
        };
        let shapes = &self.shapes;
        let has_handles = match &kind {
            ShapeKind::Record(members) => members.iter().any(|m| shapes.has_handles(m.form)),
            ShapeKind::Variant { cases, .. } => cases
                .iter()
                .any(|case| case.payload.is_some_and(|form| shapes.has_handles(form))),
            ShapeKind::Enum(_) | ShapeKind::Flags(_) => false,
            ShapeKind::Option { value, .. } => shapes.has_handles(*value),
            ShapeKind::List { element, .. } | ShapeKind::Array { element, .. } => {
                shapes.has_handles(*element)
            }
        };
        self.shapes.all.push(Shape {
            is_named,
            stem,
            wit,
            docs: docs.to_owned(),
            kind,
            size,
            is_plain,
            has_handles,
            usage: Usage::default(),
            flat: String::new(),
            input: String::new(),
            write: String::new(),
            check: String::new(),
            count_handles: String::new(),
            get: String::new(),
            at: String::new(),
        });
        Form::Shape(self.shapes.all.len() - 1)
    }

    /// The form of a type where it is used. A borrowed resource has none.
    pub(super) fn form(&mut self, ty: &Type, position: &Position) -> Result<Form, SourceError> {
        let scalar = match &ty.kind {
            TypeKind::Bool => Scalar::Bool,
            TypeKind::U8 => Scalar::U8,
            TypeKind::U16 => Scalar::U16,
            TypeKind::U32 => Scalar::U32,
            TypeKind::U64 => Scalar::U64,
            TypeKind::S8 => Scalar::S8,
            TypeKind::S16 => Scalar::S16,
            TypeKind::S32 => Scalar::S32,
            TypeKind::S64 => Scalar::S64,
            TypeKind::F32 => Scalar::F32,
            TypeKind::F64 => Scalar::F64,
            TypeKind::Char => Scalar::Char,
            TypeKind::String => return Ok(Form::Text),
            TypeKind::Own(id) => return Ok(Form::Handle(id.0)),
            TypeKind::Named(id) => return Ok(self.named[id.0]),
            TypeKind::List(element)
                if self.form(element, position)? == Form::Scalar(Scalar::U8) =>
            {
                return Ok(Form::Bytes);
            }
            _ => return self.anonymous(ty, position),
        };
        Ok(Form::Scalar(scalar))
    }

    /// The index of the stream or future with these elements.
    pub(super) fn stream(
        &mut self,
        element: Option<&Type>,
        is_future: bool,
        position: &Position,
    ) -> Result<usize, SourceError> {
        let form = element.map(|ty| self.form(ty, position)).transpose()?;
        let is = |stream: &Stream| stream.element == form && stream.is_future == is_future;
        if let Some(index) = self.streams.iter().position(is) {
            return Ok(index);
        }
        self.streams.push(Stream {
            element: form,
            name: String::new(),
            batch: String::new(),
            at: String::new(),
            take: String::new(),
            size: element.map_or(0, |ty| ty.size),
            is_future,
        });
        Ok(self.streams.len() - 1)
    }

    /// The form of a stream or future inside a value.
    fn handle(
        &mut self,
        element: Option<&Type>,
        is_future: bool,
        position: &Position,
    ) -> Result<Form, SourceError> {
        let index = self.stream(element, is_future, position)?;
        let is =
            |handle: &HandleType| matches!(&handle.stream, Some(stream) if stream.index == index);
        if let Some(place) = self.shapes.handles.iter().position(is) {
            return Ok(Form::Handle(place));
        }
        let element = self.streams[index].element;
        let word = if is_future { "future" } else { "stream" };
        let stem = format!("{}_{word}", self.shapes.stem_of_element(element));
        let name = String::new();
        self.shapes.handles.push(HandleType {
            stem,
            stream: Some(HandleStream {
                index,
                element,
                name,
            }),
        });
        Ok(Form::Handle(self.shapes.handles.len() - 1))
    }

    fn anonymous(&mut self, ty: &Type, position: &Position) -> Result<Form, SourceError> {
        let refuse = |reason: &str| SourceError {
            position: position.clone(),
            construct: format!("type `{}`", wit(self.package, ty)),
            reason: reason.to_owned(),
        };
        match &ty.kind {
            TypeKind::Stream(element) => return self.handle(element.as_deref(), false, position),
            TypeKind::Future(value) => return self.handle(value.as_deref(), true, position),
            TypeKind::Borrow(_) => {
                return Err(refuse("a borrowed resource can only be a parameter"));
            }
            _ if ty.size == 0 => {
                return Err(refuse("it has no members, and C has no empty struct"));
            }
            _ => {}
        }
        let name = resolved(self.package, ty);
        if let Some(index) = self.anonymous.get(&name) {
            return Ok(Form::Shape(*index));
        }
        let (stem, kind) = self.structure(ty, position)?;
        let form = self.add(stem, name.clone(), "", kind, ty.size, false);
        if let Form::Shape(index) = form {
            self.anonymous.insert(name, index);
        }
        Ok(form)
    }

    /// The stem and kind of an option, result, tuple or list.
    fn structure(
        &mut self,
        ty: &Type,
        position: &Position,
    ) -> Result<(String, ShapeKind), SourceError> {
        match &ty.kind {
            TypeKind::List(element) => {
                let form = self.form(element, position)?;
                let stem = format!("list_{}", self.shapes.stem(form));
                let (size, align) = (element.size, element.align);
                Ok((
                    stem,
                    ShapeKind::List {
                        element: form,
                        size,
                        align,
                    },
                ))
            }
            TypeKind::Array(element, count) => {
                let form = self.form(element, position)?;
                let stem = format!("list{count}_{}", self.shapes.stem(form));
                let kind = ShapeKind::Array {
                    element: form,
                    count: *count,
                    size: element.size,
                };
                Ok((stem, kind))
            }
            TypeKind::Option(value) => {
                let form = self.form(value, position)?;
                let stem = format!("option_{}", self.shapes.stem(form));
                Ok((
                    stem,
                    ShapeKind::Option {
                        payload_offset: value.align.max(1),
                        value: form,
                    },
                ))
            }
            TypeKind::Result { ok, error } => {
                let mut stem = "result".to_owned();
                let mut cases = Vec::new();
                let mut align = 1;
                for (name, side) in [("ok", ok), ("error", error)] {
                    let payload = match side {
                        Some(ty) => Some(self.form(ty, position)?),
                        None => None,
                    };
                    align = align.max(side.as_ref().map_or(1, |ty| ty.align));
                    stem.push('_');
                    stem.push_str(payload.map_or("none", |form| self.shapes.stem(form)));
                    cases.push(self.case(name, "", payload));
                }
                Ok((
                    stem,
                    ShapeKind::Variant {
                        tag_size: 1,
                        payload_offset: align,
                        cases,
                    },
                ))
            }
            TypeKind::Tuple(types) => {
                let mut stem = format!("tuple{}", types.len());
                let mut members = Vec::new();
                let mut end = 0u32;
                for (index, ty) in types.iter().enumerate() {
                    let form = self.form(ty, position)?;
                    stem.push('_');
                    stem.push_str(self.shapes.stem(form));
                    let offset = end.next_multiple_of(ty.align);
                    end = offset + ty.size;
                    members.push(Member {
                        name: format!("f{index}"),
                        wit: String::new(),
                        access: String::new(),
                        docs: String::new(),
                        form,
                        offset,
                    });
                }
                Ok((stem, ShapeKind::Record(members)))
            }
            _ => unreachable!("`form` and `anonymous` handle all other types"),
        }
    }
}

fn label(label: &crate::model::Label) -> Label {
    Label {
        wit: label.name.clone(),
        constant: String::new(),
        docs: label.docs.clone(),
    }
}

/// A type in WIT, with the names that its author used.
pub(super) fn wit(package: &Package, ty: &Type) -> String {
    spell(package, ty, false)
}

/// A type in WIT, with aliases resolved.
fn resolved(package: &Package, ty: &Type) -> String {
    spell(package, ty, true)
}

fn spell(package: &Package, ty: &Type, resolve: bool) -> String {
    let inner = |ty: &Type| spell(package, ty, resolve);
    let optional = |ty: &Option<Box<Type>>| ty.as_ref().map_or("_".to_owned(), |ty| inner(ty));
    let resource = |id: &crate::model::ResourceId| package.resources[id.0].name.clone();
    match &ty.kind {
        TypeKind::Bool => "bool".to_owned(),
        TypeKind::U8 => "u8".to_owned(),
        TypeKind::U16 => "u16".to_owned(),
        TypeKind::U32 => "u32".to_owned(),
        TypeKind::U64 => "u64".to_owned(),
        TypeKind::S8 => "s8".to_owned(),
        TypeKind::S16 => "s16".to_owned(),
        TypeKind::S32 => "s32".to_owned(),
        TypeKind::S64 => "s64".to_owned(),
        TypeKind::F32 => "f32".to_owned(),
        TypeKind::F64 => "f64".to_owned(),
        TypeKind::Char => "char".to_owned(),
        TypeKind::String => "string".to_owned(),
        TypeKind::List(element) => format!("list<{}>", inner(element)),
        TypeKind::Array(element, count) => format!("list<{}, {count}>", inner(element)),
        TypeKind::Option(value) => format!("option<{}>", inner(value)),
        TypeKind::Result {
            ok: None,
            error: None,
        } => "result".to_owned(),
        TypeKind::Result {
            ok: Some(ok),
            error: None,
        } => format!("result<{}>", inner(ok)),
        TypeKind::Result { ok, error } => format!("result<{}, {}>", optional(ok), optional(error)),
        TypeKind::Tuple(types) => {
            let types: Vec<_> = types.iter().map(inner).collect();
            format!("tuple<{}>", types.join(", "))
        }
        TypeKind::Named(id) => match &package.types[id.0].kind {
            TypeDefKind::Alias(target) if resolve => inner(target),
            _ => package.types[id.0].name.clone(),
        },
        TypeKind::Own(id) => resource(id),
        TypeKind::Borrow(id) => format!("borrow<{}>", resource(id)),
        TypeKind::Stream(None) => "stream".to_owned(),
        TypeKind::Stream(Some(element)) => format!("stream<{}>", inner(element)),
        TypeKind::Future(None) => "future".to_owned(),
        TypeKind::Future(Some(value)) => format!("future<{}>", inner(value)),
    }
}
