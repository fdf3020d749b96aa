//! Go: structs, a pointer for an option, an interface with a struct per case for a variant, a number
//! for an enum and for flags.

use thalweg_bindgen::plan::codec::{At, Dialect, Leaf, Operation, Test, Variable};
use thalweg_bindgen::plan::names::Case;
use thalweg_bindgen::plan::source::{Comment, Format, Source};
use thalweg_bindgen::plan::{Kind, Plan, Scalar, TypeIndex};

pub static FORMAT: Format = Format {
    width: 400,
    indent: "\t",
    comment: Comment {
        first: "// ",
        next: "// ",
        last: "",
        block: None,
        replaced: &[],
    },
};

pub struct Go<'a> {
    pub plan: &'a Plan<'a>,
}

impl Go<'_> {
    /// The named types.
    pub fn types(&self, out: &mut Source) {
        for (index, ty) in self.plan.types.iter().enumerate() {
            let name = self.name(TypeIndex(index));
            match &ty.kind {
                _ if ty.id.is_none() => continue,
                Kind::Record(members) => {
                    out.open(&format!("type {name} struct {{"));
                    for member in members {
                        let field = Case::Pascal.of(member.name);
                        out.line(&format!("{field} {}", self.ty(member.ty)));
                    }
                    out.close("}");
                }
                Kind::Variant { cases, .. } => {
                    out.line(&format!("type {name} interface{{ is{name}() }}"));
                    for (number, case) in cases.iter().enumerate() {
                        let case_name = self.case_name(TypeIndex(index), number);
                        let value = case.payload.map_or(String::new(), |payload| {
                            format!(" Value {} ", self.ty(payload))
                        });
                        out.blank();
                        out.line(&format!("type {case_name} struct{{{value}}}"));
                        out.blank();
                        out.line(&format!("func ({case_name}) is{name}() {{}}"));
                    }
                }
                Kind::Enum(_) | Kind::Flags(_) => {
                    let number = scalar(Scalar::unsigned(ty.size));
                    out.line(&format!("type {name} {number}"));
                }
                _ => continue,
            }
            out.blank();
        }
    }

    fn name(&self, ty: TypeIndex) -> String {
        Case::Pascal.of(&self.plan.get(ty).stem)
    }

    fn case_name(&self, ty: TypeIndex, number: usize) -> String {
        match &self.plan.get(ty).kind {
            Kind::Variant { cases, .. } => {
                format!("{}{}", self.name(ty), Case::Pascal.of(cases[number].name))
            }
            _ => unreachable!("only a variant has cases"),
        }
    }

    fn is_result(&self, ty: TypeIndex) -> bool {
        self.plan.get(ty).id.is_none()
    }

    fn is_record(&self, ty: TypeIndex) -> bool {
        matches!(self.plan.get(ty).kind, Kind::Record(_))
    }

    /// The type in Go.
    pub fn ty(&self, index: TypeIndex) -> String {
        let ty = self.plan.get(index);
        match &ty.kind {
            Kind::Scalar(kind) => scalar(*kind).to_owned(),
            _ if ty.id.is_some() => self.name(index),
            Kind::Text => "string".to_owned(),
            Kind::Bytes => "[]byte".to_owned(),
            Kind::Handle(_) => "uint64".to_owned(),
            Kind::List(element) => format!("[]{}", self.ty(*element)),
            Kind::Array(element, count) => format!("[{count}]{}", self.ty(*element)),
            Kind::Option { value, .. } => format!("*{}", self.ty(*value)),
            Kind::Variant { cases, .. } => {
                let sides = cases.iter().map(|case| {
                    let payload = case.payload.map(|payload| self.ty(payload));
                    payload.unwrap_or_else(|| "struct{}".to_owned())
                });
                format!("Result[{}]", sides.collect::<Vec<_>>().join(", "))
            }
            Kind::Record(members) => {
                let members = members.iter().enumerate();
                let members =
                    members.map(|(number, member)| format!("F{number} {}", self.ty(member.ty)));
                format!("struct {{ {} }}", members.collect::<Vec<_>>().join("; "))
            }
            Kind::Enum(_) | Kind::Flags(_) => unreachable!("they have names"),
        }
    }
}

fn scalar(scalar: Scalar) -> &'static str {
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

/// The method of a scalar: `U64`.
fn method(scalar: Scalar) -> String {
    Case::Pascal.of(scalar.wit())
}

impl Dialect for Go<'_> {
    fn begin(&self, operation: Operation, ty: TypeIndex, out: &mut Source) {
        let name = self.name(ty);
        let by = if self.is_record(ty) { "*" } else { "" };
        out.open(&match operation {
            Operation::Put => format!("func put{name}(w *Writer, at int, value {by}{name}) {{"),
            Operation::Get => format!("func get{name}(m *Message, at int) {name} {{"),
            Operation::Check => format!("func check{name}(m *Message, at int) {{"),
        });
    }

    fn end(&self, result: Option<&str>, out: &mut Source) {
        if let Some(result) = result {
            out.line(&format!("return {result}"));
        }
        out.close("}");
    }

    fn call(&self, operation: Operation, ty: TypeIndex, at: &At, value: &str) -> String {
        let name = self.name(ty);
        let by = if self.is_record(ty) { "&" } else { "" };
        match operation {
            Operation::Put => format!("put{name}(w, {at}, {by}{value})"),
            Operation::Get => format!("get{name}(m, {at})"),
            Operation::Check => format!("check{name}(m, {at})"),
        }
    }

    fn statement(&self, expression: &str, out: &mut Source) {
        out.line(expression);
    }

    fn constant(&self, name: &str, _: Variable, value: &str, out: &mut Source) {
        out.line(&format!("{name} := {value}"));
    }

    fn variable(&self, name: &str, ty: TypeIndex, _: Option<&str>, out: &mut Source) {
        out.line(&format!("var {name} {}", self.ty(ty)));
    }

    fn assign(&self, name: &str, value: &str, out: &mut Source) {
        out.line(&format!("{name} = {value}"));
    }

    fn open_if(&self, condition: &str, out: &mut Source) {
        out.open(&format!("if {condition} {{"));
    }

    fn open_else_if(&self, condition: &str, out: &mut Source) {
        out.reopen(&format!("}} else if {condition} {{"));
    }

    fn open_loop(&self, index: &str, count: &str, out: &mut Source) {
        out.open(&format!("for {index} := range {count} {{"));
    }

    fn member(&self, ty: TypeIndex, number: usize, value: &str) -> String {
        match &self.plan.get(ty).kind {
            Kind::Record(members) if !members[number].name.is_empty() => {
                format!("{value}.{}", Case::Pascal.of(members[number].name))
            }
            _ => format!("{value}.F{number}"),
        }
    }

    fn record(&self, ty: TypeIndex, parts: &[String]) -> String {
        format!("{}{{{}}}", self.ty(ty), parts.join(", "))
    }

    fn is_some(&self, _: TypeIndex, value: &str) -> String {
        format!("{value} != nil")
    }

    fn payload_of_some(&self, _: TypeIndex, value: &str) -> String {
        format!("(*{value})")
    }

    fn some(&self, _: TypeIndex, payload: &str) -> String {
        format!("some({payload})")
    }

    fn none(&self, _: TypeIndex) -> String {
        "nil".to_owned()
    }

    fn is_case(&self, ty: TypeIndex, number: usize, value: &str) -> String {
        if self.is_result(ty) {
            let not = if number == 0 { "!" } else { "" };
            return format!("{not}{value}.IsErr");
        }
        let Kind::Variant { cases, .. } = &self.plan.get(ty).kind else {
            unreachable!("it is a variant")
        };
        let name = if cases[number].payload.is_some() {
            "c"
        } else {
            "_"
        };
        format!("{name}, ok := {value}.({}); ok", self.case_name(ty, number))
    }

    fn payload_of_case(&self, ty: TypeIndex, number: usize, value: &str) -> String {
        match (self.is_result(ty), number) {
            (false, _) => "c.Value".to_owned(),
            (true, 0) => format!("{value}.Ok"),
            (true, _) => format!("{value}.Err"),
        }
    }

    fn case(&self, ty: TypeIndex, number: usize, payload: Option<&str>) -> String {
        let payload = payload.unwrap_or_default();
        if !self.is_result(ty) {
            return format!("{}{{{payload}}}", self.case_name(ty, number));
        }
        let name = self.ty(ty);
        match (number, payload) {
            (0, "") => format!("{name}{{}}"),
            (0, payload) => format!("{name}{{Ok: {payload}}}"),
            (_, "") => format!("{name}{{IsErr: true}}"),
            (_, payload) => format!("{name}{{IsErr: true, Err: {payload}}}"),
        }
    }

    fn no_case(&self, ty: TypeIndex, _: &str) -> String {
        format!(
            "w.Fail(\"a case of {} is expected\")",
            self.plan.get(ty).wit
        )
    }

    fn to_number(&self, ty: TypeIndex, value: &str) -> String {
        format!(
            "{}({value})",
            scalar(Scalar::unsigned(self.plan.get(ty).size))
        )
    }

    fn of_number(&self, ty: TypeIndex, number: &str) -> String {
        format!("{}({number})", self.name(ty))
    }

    fn length(&self, value: &str) -> String {
        format!("len({value})")
    }

    fn item(&self, value: &str, index: &str) -> String {
        format!("{value}[{index}]")
    }

    fn list(&self, ty: TypeIndex, count: &str) -> String {
        match self.plan.get(ty).kind {
            Kind::Array(..) => format!("{}{{}}", self.ty(ty)),
            _ => format!("make({}, {count})", self.ty(ty)),
        }
    }

    fn set_item(&self, list: &str, index: &str, value: &str) -> String {
        format!("{list}[{index}] = {value}")
    }

    fn require_length(&self, _: &str, _: u32) -> String {
        String::new()
    }

    fn put(&self, leaf: Leaf, at: &At, value: &str) -> String {
        match leaf {
            Leaf::Scalar(scalar) => format!("w.{}({at}, {value})", method(scalar)),
            Leaf::Text => format!("w.Text({at}, {value})"),
            Leaf::Numbers(_) => format!("PutNumbers(w, {at}, {value})"),
            Leaf::NumberArray(..) => format!("PutItems(w, {at}, {value}[:])"),
            Leaf::Handle(_) => format!("w.Handle({at}, {value})"),
        }
    }

    fn put_list(&self, at: &At, count: &str, size: u32, align: u32) -> String {
        format!("w.List({at}, {count}, {size}, {align})")
    }

    fn get(&self, leaf: Leaf, at: &At) -> String {
        match leaf {
            Leaf::Scalar(scalar) => format!("m.{}({at})", method(scalar)),
            Leaf::Text => format!("m.Text({at})"),
            Leaf::Numbers(kind) => format!("GetNumbers[{}](m, {at})", scalar(kind)),
            Leaf::NumberArray(kind, count) => {
                let kind = scalar(kind);
                format!("[{count}]{kind}(GetItems[{kind}](m, {at}, {count}))")
            }
            Leaf::Handle(_) => format!("m.Handle({at})"),
        }
    }

    fn list_first(&self, at: &At) -> String {
        format!("m.Number({at})")
    }

    fn list_count(&self, at: &At) -> String {
        format!("m.Number({})", at.plus(4))
    }

    fn check(&self, test: Test, at: &At) -> String {
        match test {
            Test::Bool => format!("m.CheckBool({at})"),
            Test::Char => format!("m.CheckChar({at})"),
            Test::Text => format!("m.CheckText({at})"),
            Test::List { size, align } => format!("m.CheckList({at}, {size}, {align})"),
            Test::Tag { size, count } => format!("m.CheckTag({at}, {size}, {count})"),
            Test::Flags { size, count } => format!("m.CheckFlags({at}, {size}, {count})"),
            Test::Handle => format!("m.CheckHandle({at})"),
        }
    }
}
