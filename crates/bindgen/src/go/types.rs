//! The types of values.

use super::Go;
use super::layout::{self, Row};
use crate::model::{Scalar, TypeDefKind};
use crate::plan::source::Source;
use crate::plan::{Kind, Type, TypeIndex};

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
        Scalar::Char => "rune",
    }
}

impl Go<'_> {
    /// The type of a value.
    pub fn ty(&self, index: TypeIndex) -> String {
        let ty = self.plan.get(index);
        let payload = |payload: Option<TypeIndex>| {
            payload.map_or("struct{}".to_owned(), |payload| self.ty(payload))
        };
        match &ty.kind {
            Kind::Scalar(one) => scalar(*one).to_owned(),
            Kind::Text => "string".to_owned(),
            Kind::Bytes => "[]byte".to_owned(),
            Kind::List(element) => format!("[]{}", self.ty(*element)),
            Kind::Array(element, count) => format!("[{count}]{}", self.ty(*element)),
            Kind::Option { value, .. } => match self.plan.get(*value).kind {
                Kind::Handle(_) => self.ty(*value),
                _ => format!("*{}", self.ty(*value)),
            },
            Kind::Variant { cases, .. } if ty.id.is_none() => {
                let [ok, error] = [0, 1].map(|number| payload(cases[number].payload));
                format!("wire.Result[{ok}, {error}]")
            }
            Kind::Variant { .. } | Kind::Record(_) | Kind::Enum(_) | Kind::Flags(_) => {
                self.names.of_type(index).to_owned()
            }
            Kind::Handle(handle) => self.resource(*handle).to_owned(),
        }
    }

    /// The type of an element of a stream.
    pub(super) fn element(&self, element: Option<TypeIndex>) -> String {
        element.map_or("struct{}".to_owned(), |element| self.ty(element))
    }

    /// Writes all types.
    pub fn types(&self, out: &mut Source) {
        for (number, ty) in self.plan.types.iter().enumerate() {
            if !self.names.types[number].is_empty() && !self.plan.has_streams(TypeIndex(number)) {
                self.definition(TypeIndex(number), ty, out);
            }
        }
        let aliases = self.plan.package.types.iter().enumerate();
        for (id, alias) in aliases.filter(|(_, ty)| matches!(ty.kind, TypeDefKind::Alias(_))) {
            if self.plan.has_streams(self.plan.named[id]) {
                continue;
            }
            let name = &self.names.aliases[id];
            layout::docs(out, "", &documented(&alias.docs, name, &alias.name));
            let target = self.ty(self.plan.named[id]);
            out.line(&format!("type {name} = {target}"));
            out.blank();
        }
    }

    fn definition(&self, index: TypeIndex, ty: &Type<'_>, out: &mut Source) {
        let name = self.names.of_type(index);
        let members = &self.names.members[index.0];
        let wit = if ty.id.is_some() { &ty.stem } else { &ty.wit };
        layout::docs(out, "", &documented(ty.docs, name, wit));
        match &ty.kind {
            Kind::Record(fields) => {
                out.open(&format!("type {name} struct {{"));
                let rows = fields.iter().zip(members).map(|(field, member)| Row {
                    docs: field.docs.to_owned(),
                    left: member.clone(),
                    right: self.ty(field.ty),
                });
                layout::rows(&rows.collect::<Vec<_>>(), out);
                out.close("}");
            }
            Kind::Variant { cases, .. } => {
                out.open(&format!("type {name} interface {{"));
                if ty.usage.is_raised {
                    out.line("error");
                }
                out.line(&format!("is{name}()"));
                out.close("}");
                for (case, case_name) in cases.iter().zip(members) {
                    out.blank();
                    self.case(name, case_name, case, ty.usage.is_raised, out);
                }
            }
            Kind::Enum(_) => self.enumeration(name, ty, members, out),
            Kind::Flags(_) => {
                out.line(&format!("type {name} {}", number_of(ty)));
                out.blank();
                labels(name, "1 << iota", ty, members, out);
            }
            _ => unreachable!("other types have no definitions"),
        }
        out.blank();
        if ty.usage.is_raised && !matches!(ty.kind, Kind::Variant { .. } | Kind::Enum(_)) {
            let stem = &ty.stem;
            out.line(&format!("// Error describes the `{stem}`."));
            out.open(&format!("func (e {name}) Error() string {{"));
            out.line(&format!("type plain {name}"));
            out.line(&format!("return fmt.Sprintf(\"{stem} %+v\", plain(e))"));
            out.close("}");
            out.blank();
        }
    }

    /// Writes the type of one case of a variant.
    fn case(
        &self,
        variant: &str,
        name: &str,
        case: &crate::plan::Case<'_>,
        is_raised: bool,
        out: &mut Source,
    ) {
        let about = match case.docs {
            "" => format!("{name} is the case `{}`.", case.name),
            docs => docs.to_owned(),
        };
        layout::docs(out, "", &about);
        match case.payload {
            Some(payload) => {
                out.open(&format!("type {name} struct {{"));
                out.line(&format!("Value {}", self.ty(payload)));
                out.close("}");
            }
            None => out.line(&format!("type {name} struct{{}}")),
        }
        out.blank();
        out.line(&format!("func ({name}) is{variant}() {{}}"));
        if is_raised {
            out.blank();
            out.line("// Error describes the case.");
            let (receiver, text) = match case.payload {
                Some(_) => ("c ", format!("fmt.Sprint(\"{}: \", c.Value)", case.name)),
                None => ("", format!("\"{}\"", case.name)),
            };
            out.open(&format!("func ({receiver}{name}) Error() string {{"));
            out.line(&format!("return {text}"));
            out.close("}");
        }
    }

    fn enumeration(&self, name: &str, ty: &Type<'_>, members: &[String], out: &mut Source) {
        out.line(&format!("type {name} {}", number_of(ty)));
        out.blank();
        labels(name, "iota", ty, members, out);
        out.blank();
        out.line("// String returns the name in WIT.");
        out.open(&format!("func (e {name}) String() string {{"));
        out.line("switch e {");
        for (member, (label, _)) in members.iter().zip(ty.kind.labels()) {
            out.open(&format!("case {member}:"));
            out.line(&format!("return \"{label}\""));
            out.dedent();
        }
        out.open("default:");
        out.line(&format!(
            "return fmt.Sprintf(\"{name}(%d)\", {}(e))",
            number_of(ty)
        ));
        out.close("}");
        out.close("}");
        if ty.usage.is_raised {
            out.blank();
            out.line("// Error returns the name in WIT.");
            out.open(&format!("func (e {name}) Error() string {{"));
            out.line("return e.String()");
            out.close("}");
        }
    }
}

/// The documentation in WIT, or which type of WIT it is.
fn documented(docs: &str, name: &str, wit: &str) -> String {
    match docs {
        "" => format!("{name} is `{wit}`."),
        docs => docs.to_owned(),
    }
}

/// The type of the number of an enum or of flags.
pub(super) fn number_of(ty: &Type<'_>) -> &'static str {
    scalar(Scalar::unsigned(ty.size))
}

/// Writes the constants of an enum or of flags.
fn labels(name: &str, first: &str, ty: &Type<'_>, members: &[String], out: &mut Source) {
    let about = match ty.kind {
        Kind::Enum(_) => format!("The cases of {name}."),
        _ => format!("The flags of {name}."),
    };
    out.line(&format!("// {about}"));
    out.open("const (");
    for (number, (member, (_, docs))) in members.iter().zip(ty.kind.labels()).enumerate() {
        layout::docs(out, "", docs);
        match number {
            0 => out.line(&format!("{member} {name} = {first}")),
            _ => out.line(member),
        }
    }
    out.close(")");
}
