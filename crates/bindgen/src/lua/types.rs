//! The types of values, as annotations that language servers for Lua read.

use super::Emitter;
use super::names::NAME;
use crate::model::{Scalar, TypeDefKind};
use crate::plan::source::Source;
use crate::plan::{Function, Handle, Kind, Member, ParameterKind, ResultKind, TypeIndex};

impl Emitter<'_> {
    /// Writes the named types.
    pub fn types(&self, out: &mut Source) {
        let definitions = self.plan.package.types.iter().zip(&self.plan.named);
        for (definition, index) in definitions {
            let name = format!("{}.{}", self.plan.package.name, NAME.of(&definition.name));
            let ty = self.plan.get(*index);
            out.docs("", &definition.docs);
            match (&definition.kind, &ty.kind) {
                (TypeDefKind::Alias(_), _) => {
                    out.line_at(0, &format!("---@alias {name} {}", self.ty(*index)));
                }
                (_, Kind::Record(_) | Kind::Flags(_)) => {
                    out.line_at(0, &format!("---@class {name}"));
                    for (docs, text) in self.members(*index) {
                        out.docs("", docs);
                        out.line_at(0, &format!("---@field {text}"));
                    }
                }
                _ => {
                    out.line_at(0, &format!("---@alias {name}"));
                    for (docs, text) in self.members(*index) {
                        let docs = docs.lines().map(str::trim).collect::<Vec<_>>().join(" ");
                        let mark = if docs.is_empty() { "" } else { " # " };
                        out.line_at(0, &format!("---| {text}{mark}{docs}"));
                    }
                }
            }
            out.blank();
        }
    }

    /// The documentation and the type of each field, flag or case.
    fn members(&self, index: TypeIndex) -> Vec<(&str, String)> {
        let ty = self.plan.get(index);
        let texts: Vec<String> = match &ty.kind {
            Kind::Record(members) => {
                let field = |member: &Member<'_>| {
                    format!("{} {}", NAME.of(member.name), self.ty(member.ty))
                };
                members.iter().map(field).collect()
            }
            Kind::Flags(labels) => {
                let labels = labels.iter();
                labels
                    .map(|label| format!("{} boolean?", NAME.of(&label.name)))
                    .collect()
            }
            Kind::Enum(labels) => labels
                .iter()
                .map(|one| format!("\"{}\"", one.name))
                .collect(),
            Kind::Variant { cases, .. } => {
                let case = |case: &crate::plan::Case<'_>| {
                    let value = case.payload.map(|payload| self.ty(payload));
                    let value = value.map_or(String::new(), |ty| format!(", value: {ty}"));
                    format!("{{ tag: \"{}\"{value} }}", case.name)
                };
                cases.iter().map(case).collect()
            }
            _ => Vec::new(),
        };
        let docs = ty.kind.labels().into_iter().map(|(_, docs)| docs);
        docs.zip(texts).collect()
    }

    /// A type.
    fn ty(&self, index: TypeIndex) -> String {
        let ty = self.plan.get(index);
        let package = &self.plan.package.name;
        match &ty.kind {
            Kind::Scalar(Scalar::Bool) => "boolean".to_owned(),
            Kind::Scalar(Scalar::U64 | Scalar::S64) => "ffi.cdata*".to_owned(),
            Kind::Scalar(Scalar::F32 | Scalar::F64) => "number".to_owned(),
            Kind::Text | Kind::Bytes | Kind::Scalar(Scalar::Char) => "string".to_owned(),
            Kind::Scalar(_) => "integer".to_owned(),
            Kind::Handle(handle) => self.handle_type(*handle),
            _ if ty.id.is_some() => format!("{package}.{}", self.lua.key(index)),
            Kind::Array(element, _) if self.plan.number(*element) == Some(Scalar::U8) => {
                "string".to_owned()
            }
            Kind::List(element) | Kind::Array(element, _) => match self.ty(*element) {
                element if element.ends_with('?') => "table".to_owned(),
                element => format!("{element}[]"),
            },
            Kind::Option { value, .. } if !self.plan.is_option(*value) => {
                format!("{}?", self.ty(*value))
            }
            Kind::Option { .. } | Kind::Record(_) | Kind::Variant { .. } => "table".to_owned(),
            Kind::Enum(_) | Kind::Flags(_) => unreachable!("they have names"),
        }
    }

    fn handle_type(&self, handle: Handle) -> String {
        match handle {
            Handle::Stream(index) if self.plan.streams[index].is_future => {
                "thalweg.Future".to_owned()
            }
            Handle::Stream(_) => "thalweg.Stream".to_owned(),
            Handle::Own(id) | Handle::Borrow(id) => {
                let name = NAME.of(&self.plan.package.resources[id.0].name);
                format!("{}.{name}", self.plan.package.name)
            }
        }
    }

    /// Writes the types of the parameters and of the result of a method.
    pub fn annotations(
        &self,
        function: &Function<'_>,
        names: &[String],
        options: &str,
        out: &mut Source,
    ) {
        for ((_, parameter), name) in function.written().zip(names) {
            let ty = match parameter.kind {
                ParameterKind::Value(ty) => self.ty(ty),
                ParameterKind::Resource { id, .. } => self.handle_type(Handle::Own(id)),
                ParameterKind::Stream(index) if self.plan.upstreams[index].is_future => {
                    "any".to_owned()
                }
                ParameterKind::Stream(_) => "table|function".to_owned(),
            };
            out.line_at(0, &format!("---@param {name} {ty}"));
        }
        let ok = match function.ok {
            ResultKind::Nothing => "true".to_owned(),
            ResultKind::Value(ty) => self.ty(ty),
            ResultKind::Resource(id) => self.handle_type(Handle::Own(id)),
            ResultKind::Stream(index) if self.plan.streams[index].is_future => self.plan.streams
                [index]
                .element
                .map_or("true".to_owned(), |ty| self.ty(ty)),
            ResultKind::Stream(index) => self.handle_type(Handle::Stream(index)),
        };
        let ok = ok.trim_end_matches('?');
        out.line_at(0, &format!("---@param {options} thalweg.Options?"));
        out.line_at(0, &format!("---@return {ok}?, thalweg.Error?"));
    }
}
