//! The types of values.

use super::Emitter;
use super::names::Names;
use crate::model::{Scalar, TypeDefKind};
use crate::plan::source::Source;
use crate::plan::{Handle, Kind, Plan, Stream, Type, TypeIndex};

/// The type of a number, `bool` or `char`.
pub(super) fn scalar(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::Bool => "bool",
        Scalar::U8 => "uint8",
        Scalar::U16 => "uint16",
        Scalar::U32 => "uint32",
        Scalar::U64 => "uint64",
        Scalar::S8 => "int8",
        Scalar::S16 => "int16",
        Scalar::S32 => "int32",
        Scalar::S64 => "int64",
        Scalar::F32 => "float32",
        Scalar::F64 => "float64",
        Scalar::Char => "Rune",
    }
}

/// Whether values have streams or futures inside.
pub(super) fn has_streams(plan: &Plan<'_>, ty: TypeIndex) -> bool {
    let kind = &plan.get(ty).kind;
    matches!(kind, Kind::Handle(Handle::Stream(_)))
        || (kind.parts().into_iter()).any(|part| has_streams(plan, part))
}

impl Names {
    /// The type of a value.
    pub fn ty(&self, plan: &Plan<'_>, index: TypeIndex) -> String {
        let ty = plan.get(index);
        let payload = |payload: Option<TypeIndex>| {
            payload.map_or("Nothing".to_owned(), |payload| self.ty(plan, payload))
        };
        match (&ty.kind, ty.id) {
            (Kind::Scalar(one), _) => scalar(*one).to_owned(),
            (Kind::Text, _) => "string".to_owned(),
            (Kind::Bytes, _) => "seq[byte]".to_owned(),
            (Kind::Handle(Handle::Own(id) | Handle::Borrow(id)), _) => self.resources[id.0].clone(),
            (Kind::Handle(Handle::Stream(index)), _) => self.stream(plan, &plan.streams[*index]),
            (Kind::List(element), _) => format!("seq[{}]", self.ty(plan, *element)),
            (Kind::Array(element, count), _) => {
                format!("array[{count}, {}]", self.ty(plan, *element))
            }
            (Kind::Option { value, .. }, _) => format!("Option[{}]", self.ty(plan, *value)),
            (_, Some(id)) => format!("{}{}", self.types[id.0], self.generics[index.0]),
            (Kind::Variant { cases, .. }, None) => {
                let [ok, error] = [0, 1].map(|number| payload(cases[number].payload));
                format!("Result[{ok}, {error}]")
            }
            (Kind::Record(members), None) => {
                let members: Vec<_> = members
                    .iter()
                    .map(|member| self.ty(plan, member.ty))
                    .collect();
                let comma = if members.len() == 1 { "," } else { "" };
                format!("({}{comma})", members.join(", "))
            }
            (Kind::Enum(_) | Kind::Flags(_), None) => unreachable!("they have names"),
        }
    }

    /// The type of a stream or future that the service writes.
    fn stream(&self, plan: &Plan<'_>, stream: &Stream) -> String {
        let name = ["Stream", "FutureValue"][usize::from(stream.is_future)];
        let element = stream.element.map(|ty| self.ty(plan, ty));
        format!("{name}[{}]", element.as_deref().unwrap_or("Nothing"))
    }
}

impl Emitter<'_> {
    /// The type of a value.
    pub fn ty(&self, index: TypeIndex) -> String {
        self.names.ty(self.plan, index)
    }

    /// The type of a stream or future that the service writes.
    pub fn stream(&self, stream: &Stream) -> String {
        self.names.stream(self.plan, stream)
    }

    /// The type of an element.
    pub fn element(&self, element: Option<TypeIndex>) -> String {
        element.map_or("Nothing".to_owned(), |ty| self.ty(ty))
    }

    /// Writes all types.
    pub fn types(&self, out: &mut Source) {
        out.open("type");
        out.line(&format!("{}* = ref object of Client", self.names.client));
        out.docs(
            "  ",
            "An instance of the service, and a port that calls it.",
        );
        for (resource, name) in self
            .plan
            .package
            .resources
            .iter()
            .zip(&self.names.resources)
        {
            out.blank();
            out.line(&format!("{name}* = ref object of Resource"));
            out.docs("  ", &resource.docs);
        }
        self.definitions(true, out);
        if let Some(host) = &self.plan.package.host {
            out.blank();
            self.host_type(host, out);
        }
        out.dedent();
        out.blank();
    }

    /// Writes the types of a guest, which has its own for the service and for resources.
    pub fn guest_types(&self, out: &mut Source) {
        if self.plan.package.types.is_empty() {
            return;
        }
        out.open("type");
        self.definitions(false, out);
        out.dedent();
        out.blank();
    }

    /// Writes the types that have names in WIT. `is_later`: others are before them.
    fn definitions(&self, mut is_later: bool, out: &mut Source) {
        let types = self.plan.types.iter().enumerate();
        let types = types.filter(|(_, ty)| ty.id.is_some());
        for (number, ty) in types.filter(|(number, _)| self.is_known(TypeIndex(*number))) {
            if std::mem::replace(&mut is_later, true) {
                out.blank();
            }
            self.definition(number, ty, out);
        }
        let aliases = self.plan.package.types.iter().enumerate();
        for (id, alias) in aliases.filter(|(_, ty)| matches!(ty.kind, TypeDefKind::Alias(_))) {
            if !self.is_known(self.plan.named[id]) {
                continue;
            }
            if std::mem::replace(&mut is_later, true) {
                out.blank();
            }
            let target = self.plan.named[id];
            let generics = &self.names.generics[target.0];
            let (name, target) = (&self.names.types[id], self.ty(target));
            out.line(&format!("{name}*{generics} = {target}"));
            out.docs("  ", &alias.docs);
        }
    }

    /// Whether there is such a type. A guest has no values with streams, and does not use their types.
    fn is_known(&self, ty: TypeIndex) -> bool {
        !self.is_guest || !has_streams(self.plan, ty)
    }

    fn definition(&self, number: usize, ty: &Type<'_>, out: &mut Source) {
        let id = ty.id.map_or(0, |id| id.0);
        let (name, kind) = (&self.names.types[id], &self.names.kinds[id]);
        let members = &self.names.members[number];
        let generics = &self.names.generics[number];
        match &ty.kind {
            Kind::Record(fields) => {
                out.open(&format!("{name}*{generics} = object"));
                out.docs("", ty.docs);
                for (field, member) in fields.iter().zip(members) {
                    out.line(&format!("{member}*: {}", self.ty(field.ty)));
                    out.docs("  ", field.docs);
                }
                out.dedent();
            }
            Kind::Enum(_) => self.labels(name, ty, members, out),
            Kind::Flags(_) => {
                self.labels(kind, ty, members, out);
                out.blank();
                out.line(&format!("{name}* = set[{kind}]"));
                out.docs("  ", ty.docs);
            }
            Kind::Variant { cases, .. } => {
                self.labels(kind, ty, members, out);
                out.blank();
                out.open(&format!("{name}*{generics} = object"));
                out.docs("", ty.docs);
                out.line(&format!("case kind*: {kind}"));
                for (case, member) in cases.iter().zip(members) {
                    match case.payload {
                        Some(payload) => {
                            let payload = self.ty(payload);
                            out.line(&format!("of {kind}.{member}: {member}*: {payload}"));
                        }
                        None => out.line(&format!("of {kind}.{member}: discard")),
                    }
                }
                out.dedent();
            }
            _ => unreachable!("other types have no names"),
        }
    }

    /// Writes an enum.
    fn labels(&self, name: &str, ty: &Type<'_>, members: &[String], out: &mut Source) {
        out.open(&format!("{name}* {{.pure.}} = enum"));
        if matches!(ty.kind, Kind::Enum(_)) {
            out.docs("", ty.docs);
        }
        for (member, (_, docs)) in members.iter().zip(ty.kind.labels()) {
            out.line(member);
            out.docs("  ", docs);
        }
        out.dedent();
    }
}
