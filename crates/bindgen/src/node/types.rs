//! The types of values in TypeScript.

use super::Emitter;
use super::codec::{column_key, labels};
use super::source::{self, Source};
use crate::model::{Scalar, TypeDefKind};
use crate::plan::{Function, Handle, Kind, Member, ParameterKind, ResultKind, Type, TypeIndex};

impl Emitter<'_> {
    /// Writes the named types, and those of columns.
    pub fn types(&self, out: &mut Source) {
        let definitions = self.plan.package.types.iter().zip(&self.names.types);
        for ((definition, name), index) in definitions.zip(&self.plan.named) {
            let ty = self.plan.get(*index);
            let is_input = ty.usage.is_input && !ty.usage.is_output;
            out.docs("", &definition.docs);
            match (&definition.kind, &ty.kind) {
                (TypeDefKind::Alias(_), _) => {
                    source::union(out, name, &[("", self.ty(*index, is_input))]);
                }
                (_, Kind::Record(_) | Kind::Flags(_)) => {
                    let head = format!("export interface {name} {{");
                    source::properties(out, &head, "}", &self.members(ty, is_input));
                }
                _ => source::union(out, name, &self.members(ty, is_input)),
            }
            out.blank();
        }
        for (element, class) in &self.names.columns {
            let name = self.ty(*element, false);
            out.docs("", &format!("The columns of a batch of `{name}`."));
            let columns = self.plan.columns(*element).into_iter().map(|column| {
                let (key, array) = (column_key(&column), typed_array(column.number));
                ("", format!("readonly {key}: Column<{array}>"))
            });
            let head = format!("export type {class} = {{");
            source::properties(out, &head, "};", &columns.collect::<Vec<_>>());
            out.blank();
        }
    }

    /// The members of a type with a name, and their documentation.
    fn members<'t>(&self, ty: &'t Type<'_>, is_input: bool) -> Vec<(&'t str, String)> {
        let labels = labels(ty).into_iter();
        let texts: Vec<_> = match &ty.kind {
            Kind::Record(members) => {
                let property = |(member, label): (&Member<'_>, String)| {
                    let mark = if self.plan.is_option(member.ty) {
                        "?"
                    } else {
                        ""
                    };
                    format!("{label}{mark}: {}", self.ty(member.ty, is_input))
                };
                members.iter().zip(labels).map(property).collect()
            }
            Kind::Flags(_) => labels
                .map(|label| format!("{label}?: boolean | undefined"))
                .collect(),
            Kind::Enum(_) => labels.map(|label| format!("'{label}'")).collect(),
            _ => self.cases(ty, is_input),
        };
        let docs = ty.kind.labels().into_iter().map(|(_, docs)| docs);
        docs.zip(texts).collect()
    }

    /// A value of a type. Where the program passes it, an array is as good as a typed array.
    pub fn ty(&self, ty: TypeIndex, is_input: bool) -> String {
        let planned = self.plan.get(ty);
        if let Some(id) = planned.id {
            return self.names.types[id.0].clone();
        }
        match &planned.kind {
            Kind::Scalar(Scalar::Bool) => "boolean".to_owned(),
            Kind::Scalar(Scalar::U64 | Scalar::S64) => "bigint".to_owned(),
            Kind::Text | Kind::Scalar(Scalar::Char) => "string".to_owned(),
            Kind::Scalar(_) => "number".to_owned(),
            Kind::Bytes => "Uint8Array".to_owned(),
            Kind::Handle(Handle::Own(id) | Handle::Borrow(id)) => {
                self.names.resources[id.0].clone()
            }
            Kind::Handle(Handle::Stream(index)) => match self.plan.streams[*index].is_future {
                true => format!("Promise<{}>", self.element(*index)),
                false => self.stream(*index),
            },
            Kind::List(element) => match self.plan.number(*element) {
                Some(number) if is_input => {
                    let element = self.ty(*element, is_input);
                    format!("{} | {element}[]", typed_array(number))
                }
                Some(number) => typed_array(number),
                None => self.many(*element, is_input),
            },
            Kind::Array(element, _) => self.many(*element, is_input),
            Kind::Option { value, .. } if self.plan.is_option(*value) => {
                format!("{{ some: {} }} | undefined", self.ty(*value, is_input))
            }
            Kind::Option { value, .. } => format!("{} | undefined", self.ty(*value, is_input)),
            Kind::Record(members) => {
                let parts = members.iter().map(|member| self.ty(member.ty, is_input));
                format!("[{}]", parts.collect::<Vec<_>>().join(", "))
            }
            Kind::Variant { .. } => self.cases(planned, is_input).join(" | "),
            Kind::Enum(_) | Kind::Flags(_) => unreachable!("they have names"),
        }
    }

    /// An array.
    fn many(&self, element: TypeIndex, is_input: bool) -> String {
        let text = self.ty(element, is_input);
        let planned = self.plan.get(element);
        let is_union = match planned.kind {
            _ if planned.id.is_some() => false,
            Kind::List(_) => text.contains("Array |"),
            Kind::Option { .. } | Kind::Variant { .. } => true,
            _ => false,
        };
        match is_union {
            true => format!("({text})[]"),
            false => format!("{text}[]"),
        }
    }

    /// The cases of a variant or result.
    fn cases(&self, ty: &Type<'_>, is_input: bool) -> Vec<String> {
        let Kind::Variant { cases, .. } = &ty.kind else {
            return Vec::new();
        };
        let cases = cases.iter().zip(labels(ty)).map(|(case, name)| {
            let payload = case.payload.map(|payload| self.ty(payload, is_input));
            let payload = payload.map_or(String::new(), |payload| format!("; val: {payload}"));
            format!("{{ tag: '{name}'{payload} }}")
        });
        cases.collect()
    }

    /// A stream that the service writes.
    fn stream(&self, index: usize) -> String {
        let element = self.plan.streams[index].element;
        let columns = element.and_then(|element| self.names.columns.get(&element));
        let columns = columns.map_or(String::new(), |columns| format!(", {columns}"));
        format!("Stream<{}{columns}>", self.element(index))
    }

    fn element(&self, index: usize) -> String {
        let element = self.plan.streams[index].element;
        element.map_or("void".to_owned(), |element| self.ty(element, false))
    }

    /// What the promise of a call becomes. The promise of a future becomes its value.
    pub fn result(&self, function: &Function<'_>) -> String {
        match function.ok {
            ResultKind::Nothing => "void".to_owned(),
            ResultKind::Value(ty) => self.ty(ty, false),
            ResultKind::Resource(id) => self.names.resources[id.0].clone(),
            ResultKind::Stream(index) if self.plan.streams[index].is_future => self.element(index),
            ResultKind::Stream(index) => self.stream(index),
        }
    }

    /// The type of a parameter. One that is not required can be left out, which is `undefined`.
    pub fn parameter_type(&self, kind: ParameterKind, is_required: bool) -> String {
        match kind {
            ParameterKind::Resource { id, .. } => self.names.resources[id.0].clone(),
            ParameterKind::Stream(index) => {
                let stream = &self.plan.upstreams[index];
                let of = |element| self.ty(element, true);
                let element = stream.element.map_or("void".to_owned(), of);
                match stream.is_future {
                    true => format!("{element} | NoValue | PromiseLike<{element} | NoValue>"),
                    false => format!("Iterable<{element}> | AsyncIterable<{element}>"),
                }
            }
            ParameterKind::Value(ty) => {
                let text = self.ty(ty, true);
                match (text.strip_suffix(" | undefined"), is_required) {
                    (Some(value), true) => format!("{value} | null | undefined"),
                    (Some(value), false) => format!("{value} | null"),
                    (None, _) => text,
                }
            }
        }
    }
}

/// The class of an array of numbers.
fn typed_array(number: Scalar) -> String {
    let (kind, bits) = number.wit().split_at(1);
    let big = if bits == "64" && kind != "f" {
        "Big"
    } else {
        ""
    };
    let kind = kind
        .replace('u', "Uint")
        .replace('s', "Int")
        .replace('f', "Float");
    format!("{big}{kind}{bits}Array")
}
