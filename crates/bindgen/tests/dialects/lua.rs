//! Lua: tables, `nil` for an option without a value, a table with a tag for a case, a text for an
//! enum, a number for flags, cdata for 64 bits.

use thalweg_bindgen::plan::codec::{At, Dialect, Leaf, Operation, Test, Variable};
use thalweg_bindgen::plan::names::{Case, Style};
use thalweg_bindgen::plan::source::{Comment, Format, Source};
use thalweg_bindgen::plan::{Kind, Plan, TypeIndex};

pub static FORMAT: Format = Format {
    width: 100,
    indent: "  ",
    comment: Comment {
        first: "-- ",
        next: "-- ",
        last: "",
        replaced: &[],
    },
};

const NAME: Style = Style {
    case: Case::Snake,
    reserved: &[
        "and break do else elseif end false for function goto if in local nil not or repeat \
                 return then true until while",
    ],
};

pub struct Lua<'a> {
    pub plan: &'a Plan<'a>,
}

impl Lua<'_> {
    fn name(&self, ty: TypeIndex) -> String {
        Case::Snake.of(&self.plan.get(ty).stem)
    }

    fn case_name(&self, ty: TypeIndex, number: usize) -> &str {
        match &self.plan.get(ty).kind {
            Kind::Variant { cases, .. } => cases[number].name,
            _ => unreachable!("only a variant has cases"),
        }
    }

    /// Whether the value of an option can be `nil` itself.
    fn is_wrapped(&self, ty: TypeIndex) -> bool {
        match self.plan.get(ty).kind {
            Kind::Option { value, .. } => {
                matches!(self.plan.get(value).kind, Kind::Option { .. })
            }
            _ => false,
        }
    }
}

impl Dialect for Lua<'_> {
    fn begin(&self, operation: Operation, ty: TypeIndex, out: &mut Source) {
        let name = self.name(ty);
        out.open(&match operation {
            Operation::Put => format!("local function put_{name}(w, at, value)"),
            Operation::Get => format!("local function get_{name}(m, at)"),
            Operation::Check => format!("local function check_{name}(m, at)"),
        });
    }

    fn end(&self, result: Option<&str>, out: &mut Source) {
        if let Some(result) = result {
            out.line(&format!("return {result}"));
        }
        out.close("end");
    }

    fn call(&self, operation: Operation, ty: TypeIndex, at: &At, value: &str) -> String {
        let name = self.name(ty);
        match operation {
            Operation::Put => format!("put_{name}(w, {at}, {value})"),
            Operation::Get => format!("get_{name}(m, {at})"),
            Operation::Check => format!("check_{name}(m, {at})"),
        }
    }

    fn statement(&self, expression: &str, out: &mut Source) {
        out.line(expression);
    }

    fn constant(&self, name: &str, _: Variable, value: &str, out: &mut Source) {
        out.line(&format!("local {name} = {value}"));
    }

    fn variable(&self, name: &str, _: TypeIndex, _: Option<&str>, out: &mut Source) {
        out.line(&format!("local {name}"));
    }

    fn assign(&self, name: &str, value: &str, out: &mut Source) {
        out.line(&format!("{name} = {value}"));
    }

    fn open_if(&self, condition: &str, out: &mut Source) {
        out.open(&format!("if {condition} then"));
    }

    fn open_else_if(&self, condition: &str, out: &mut Source) {
        out.reopen(&format!("elseif {condition} then"));
    }

    fn open_else(&self, out: &mut Source) {
        out.reopen("else");
    }

    fn open_loop(&self, index: &str, count: &str, out: &mut Source) {
        out.open(&format!("for {index} = 0, {count} - 1 do"));
    }

    fn close(&self, out: &mut Source) {
        out.close("end");
    }

    fn member(&self, ty: TypeIndex, number: usize, value: &str) -> String {
        match &self.plan.get(ty).kind {
            Kind::Record(members) if !members[number].name.is_empty() => {
                format!("{value}.{}", NAME.of(members[number].name))
            }
            _ => format!("{value}[{}]", number + 1),
        }
    }

    fn record(&self, ty: TypeIndex, parts: &[String]) -> String {
        let ty = self.plan.get(ty);
        let Kind::Record(members) = &ty.kind else {
            unreachable!("it is a record")
        };
        let parts = members
            .iter()
            .zip(parts)
            .map(|(member, part)| match member.name {
                "" => part.clone(),
                name => format!("{} = {part}", NAME.of(name)),
            });
        format!("{{ {} }}", parts.collect::<Vec<_>>().join(", "))
    }

    fn is_some(&self, _: TypeIndex, value: &str) -> String {
        format!("{value} ~= nil")
    }

    fn payload_of_some(&self, ty: TypeIndex, value: &str) -> String {
        match self.is_wrapped(ty) {
            true => format!("{value}.some"),
            false => value.to_owned(),
        }
    }

    fn some(&self, ty: TypeIndex, payload: &str) -> String {
        match self.is_wrapped(ty) {
            true => format!("{{ some = {payload} }}"),
            false => payload.to_owned(),
        }
    }

    fn none(&self, _: TypeIndex) -> String {
        "nil".to_owned()
    }

    fn is_case(&self, ty: TypeIndex, number: usize, value: &str) -> String {
        format!("{value}.tag == \"{}\"", self.case_name(ty, number))
    }

    fn payload_of_case(&self, _: TypeIndex, _: usize, value: &str) -> String {
        format!("{value}.value")
    }

    fn case(&self, ty: TypeIndex, number: usize, payload: Option<&str>) -> String {
        let payload = payload.map_or(String::new(), |payload| format!(", value = {payload}"));
        format!("{{ tag = \"{}\"{payload} }}", self.case_name(ty, number))
    }

    fn no_case(&self, ty: TypeIndex, _: &str) -> String {
        format!(
            "w:fail(\"a case of {} is expected\")",
            self.plan.get(ty).wit
        )
    }

    fn to_number(&self, ty: TypeIndex, value: &str) -> String {
        match &self.plan.get(ty).kind {
            Kind::Flags(labels) => format!("w:flags({value}, {})", labels.len()),
            _ => format!("w:enum({}_numbers, {value})", self.name(ty)),
        }
    }

    fn of_number(&self, ty: TypeIndex, number: &str) -> String {
        match &self.plan.get(ty).kind {
            Kind::Flags(_) => number.to_owned(),
            _ => format!("{}_names[{number}]", self.name(ty)),
        }
    }

    fn length(&self, value: &str) -> String {
        format!("#{value}")
    }

    fn item(&self, value: &str, index: &str) -> String {
        format!("{value}[{index} + 1]")
    }

    fn list(&self, _: TypeIndex, count: &str) -> String {
        format!("new_table({count}, 0)")
    }

    fn set_item(&self, list: &str, index: &str, value: &str) -> String {
        format!("{list}[{index} + 1] = {value}")
    }

    fn require_length(&self, value: &str, count: u32) -> String {
        format!("w:exactly({value}, {count})")
    }

    fn put(&self, leaf: Leaf, at: &At, value: &str) -> String {
        match leaf {
            Leaf::Scalar(scalar) => format!("w:{}({at}, {value})", scalar.wit()),
            Leaf::Text => format!("w:text({at}, {value})"),
            Leaf::Numbers(scalar) => format!("w:{}s({at}, {value})", scalar.wit()),
            Leaf::NumberArray(scalar, count) => {
                format!("w:{}_array({at}, {value}, {count})", scalar.wit())
            }
            Leaf::Handle(_) => format!("w:handle({at}, {value})"),
        }
    }

    fn put_list(&self, at: &At, count: &str, size: u32, align: u32) -> String {
        format!("w:list({at}, {count}, {size}, {align})")
    }

    fn get(&self, leaf: Leaf, at: &At) -> String {
        match leaf {
            Leaf::Scalar(scalar) => format!("m:{}({at})", scalar.wit()),
            Leaf::Text => format!("m:text({at})"),
            Leaf::Numbers(scalar) => format!("m:{}s({at})", scalar.wit()),
            Leaf::NumberArray(scalar, count) => format!("m:{}_array({at}, {count})", scalar.wit()),
            Leaf::Handle(_) => format!("m:handle({at})"),
        }
    }

    fn list_first(&self, at: &At) -> String {
        format!("m:u32({at})")
    }

    fn list_count(&self, at: &At) -> String {
        format!("m:u32({})", at.plus(4))
    }

    fn check(&self, test: Test, at: &At) -> String {
        match test {
            Test::Bool => format!("m:check_bool({at})"),
            Test::Char => format!("m:check_char({at})"),
            Test::Text => format!("m:check_text({at})"),
            Test::List { size, align } => format!("m:check_list({at}, {size}, {align})"),
            Test::Tag { size, count } => format!("m:check_tag({at}, {size}, {count})"),
            Test::Flags { size, count } => format!("m:check_flags({at}, {size}, {count})"),
            Test::Handle => format!("m:check_handle({at})"),
        }
    }
}
