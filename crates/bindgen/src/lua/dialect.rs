//! How Lua writes the steps of a codec: tables, `nil` for an option without a value, a table with a tag
//! for a case, a text for an enum, a table with `true` for flags, cdata for 64 bits.
//!
//! A list cannot contain `nil`, so its elements without a value are `null`. The functions of the writer
//! also take the name of a field, for errors; it is the last word of the expression.

use super::names::NAME;
use crate::model::Scalar;
use crate::plan::codec::{At, Dialect, Leaf, Operation, Test, Variable};
use crate::plan::source::Source;
use crate::plan::{Handle, Kind, Plan, TypeIndex};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// The kind of a variable of the function that is being printed.
#[derive(Clone)]
enum Local {
    /// The value of this field.
    Field(String),
    /// An option.
    Option,
    /// The value of a routine, whose caller has its name.
    Value,
}

/// The dialect.
pub(super) struct Lua<'p> {
    plan: &'p Plan<'p>,
    locals: RefCell<BTreeMap<String, Local>>,
}

impl<'p> Lua<'p> {
    pub fn new(plan: &'p Plan<'p>) -> Self {
        let locals = RefCell::default();
        Lua { plan, locals }
    }

    /// The key of a type in the tables of functions.
    pub fn key(&self, ty: TypeIndex) -> String {
        NAME.of(&self.plan.get(ty).stem)
    }

    /// Whether the codec has functions for the type.
    pub fn has_routine(&self, ty: TypeIndex) -> bool {
        let ty = self.plan.get(ty);
        ty.id.is_some() && matches!(ty.kind, Kind::Record(_) | Kind::Variant { .. })
    }

    /// The key of a resource or of the elements of a stream.
    pub fn handle(&self, handle: Handle) -> String {
        match handle {
            Handle::Own(id) | Handle::Borrow(id) => {
                NAME.of(&self.plan.package.resources[id.0].name)
            }
            Handle::Stream(index) => NAME.of(self.plan.stem_of_element(&self.plan.streams[index])),
        }
    }

    /// The names of the cases of enums and of flags, from 0 on.
    pub fn labels(&self, code: &str, out: &mut Source) {
        if !code.contains("names.") {
            return;
        }
        out.open("local names = {");
        for (index, ty) in self.plan.types.iter().enumerate() {
            let labels = ty.kind.labels().into_iter();
            let labels: Vec<_> = match ty.kind {
                Kind::Enum(_) => labels.map(|(name, _)| format!("\"{name}\"")).collect(),
                Kind::Flags(_) => labels
                    .map(|(name, _)| format!("\"{}\"", NAME.of(name)))
                    .collect(),
                _ => continue,
            };
            let key = self.key(TypeIndex(index));
            out.line(&format!("{key} = {{ [0] = {} }},", labels.join(", ")));
        }
        out.close("}");
    }

    /// The name of the field that an expression is, as a last argument. Empty: it is none.
    fn name(&self, value: &str) -> String {
        match self.field(value) {
            Some(name) => format!(", \"{name}\""),
            None => String::new(),
        }
    }

    fn field(&self, value: &str) -> Option<String> {
        match self.locals.borrow().get(value) {
            Some(Local::Field(name)) => return Some(name.clone()),
            Some(Local::Value) => return None,
            Some(Local::Option) | None => {}
        }
        let name = value.rsplit('.').next().unwrap_or(value);
        let is_name = name
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
        let is_variable = name.starts_with('v') && name[1..].parse::<u32>().is_ok();
        let is_plain = is_name && !is_variable && name != "some";
        let is_number = name.starts_with(|letter: char| letter.is_ascii_digit());
        (is_plain && !is_number).then(|| name.to_owned())
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
            Kind::Option { value, .. } => self.plan.is_option(value),
            _ => false,
        }
    }

    /// Prints a function: `head function(parameters)`, the code, and `end` with `tail`.
    pub fn function(
        &self,
        head: &str,
        parameters: &str,
        tail: &str,
        out: &mut Source,
        code: impl FnOnce(&mut Source),
    ) {
        self.locals.borrow_mut().clear();
        out.open(&format!("{head}function({parameters})"));
        code(out);
        out.close(&format!("end{tail}"));
    }
}

/// A group in braces, on several lines if it is too long.
pub(super) fn braces(items: &[String]) -> String {
    match items.is_empty() {
        true => "{}".to_owned(),
        false => format!("{{ {} }}", items.join(", ")),
    }
}

impl Dialect for Lua<'_> {
    fn begin(&self, operation: Operation, ty: TypeIndex, out: &mut Source) {
        *self.locals.borrow_mut() = BTreeMap::from([("value".to_owned(), Local::Value)]);
        let key = self.key(ty);
        match operation {
            Operation::Put => {
                out.open(&format!("function put.{key}(w, at, value, name)"));
                out.line("w:table(value, name)");
            }
            Operation::Get => out.open(&format!("function get.{key}(m, at)")),
            Operation::Check => out.open(&format!("function check.{key}(m, at)")),
        }
    }

    fn end(&self, result: Option<&str>, out: &mut Source) {
        if let Some(result) = result {
            out.line(&format!("return {result}"));
        }
        out.close("end");
    }

    fn call(&self, operation: Operation, ty: TypeIndex, at: &At, value: &str) -> String {
        let key = self.key(ty);
        match operation {
            Operation::Put => format!("put.{key}(w, {at}, {value}{})", self.name(value)),
            Operation::Get => format!("get.{key}(m, {at})"),
            Operation::Check => format!("check.{key}(m, {at})"),
        }
    }

    fn statement(&self, expression: &str, out: &mut Source) {
        out.line(expression);
    }

    fn constant(&self, name: &str, _: Variable, value: &str, out: &mut Source) {
        if let Some(field) = self.field(value) {
            let local = Local::Field(field);
            self.locals.borrow_mut().insert(name.to_owned(), local);
        }
        out.line(&format!("local {name} = {value}"));
    }

    fn variable(&self, name: &str, ty: TypeIndex, _: Option<&str>, out: &mut Source) {
        if self.plan.is_option(ty) {
            self.locals
                .borrow_mut()
                .insert(name.to_owned(), Local::Option);
        }
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
        let Kind::Record(members) = &self.plan.get(ty).kind else {
            unreachable!("it is a record")
        };
        let parts = members.iter().zip(parts);
        let parts = parts.map(|(member, part)| match member.name {
            "" => part.clone(),
            name => format!("{} = {part}", NAME.of(name)),
        });
        braces(&parts.collect::<Vec<_>>())
    }

    fn is_some(&self, _: TypeIndex, value: &str) -> String {
        format!("{value} ~= nil and {value} ~= null")
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

    fn no_case(&self, ty: TypeIndex, value: &str) -> String {
        let wit = self
            .plan
            .get(ty)
            .id
            .map_or("a result", |id| &self.plan.package.types[id.0].name);
        format!("w:fail(\"tag\", \"a case of {wit}\", {value}.tag)")
    }

    fn to_number(&self, ty: TypeIndex, value: &str) -> String {
        let (key, name) = (self.key(ty), self.name(value));
        match &self.plan.get(ty).kind {
            Kind::Flags(_) => format!("w:bits({value}, names.{key}{name})"),
            _ => format!("w:case({value}, names.{key}{name})"),
        }
    }

    fn of_number(&self, ty: TypeIndex, number: &str) -> String {
        let key = self.key(ty);
        match &self.plan.get(ty).kind {
            Kind::Flags(_) => format!("m:flags({number}, names.{key})"),
            _ => format!("names.{key}[{number}]"),
        }
    }

    fn length(&self, value: &str) -> String {
        format!("#w:table({value}{})", self.name(value))
    }

    fn item(&self, value: &str, index: &str) -> String {
        format!("{value}[{index} + 1]")
    }

    fn list(&self, _: TypeIndex, count: &str) -> String {
        format!("new_table({count}, 0)")
    }

    fn set_item(&self, list: &str, index: &str, value: &str) -> String {
        match self.locals.borrow().get(value) {
            Some(Local::Option) => {
                format!("{list}[{index} + 1] = {value} == nil and null or {value}")
            }
            _ => format!("{list}[{index} + 1] = {value}"),
        }
    }

    fn require_length(&self, value: &str, count: u32) -> String {
        format!("w:exactly({value}, {count}{})", self.name(value))
    }

    fn put(&self, leaf: Leaf, at: &At, value: &str) -> String {
        let name = self.name(value);
        match leaf {
            Leaf::Scalar(scalar) => format!("w:{}({at}, {value}{name})", scalar.wit()),
            Leaf::Text | Leaf::Numbers(Scalar::U8) => format!("w:string({at}, {value}{name})"),
            Leaf::Numbers(scalar) => {
                format!("w:numbers({at}, {value}, \"{}\"{name})", scalar.wit())
            }
            Leaf::NumberArray(scalar, count) => {
                let scalar = scalar.wit();
                format!("w:number_array({at}, {value}, \"{scalar}\", {count}{name})")
            }
            Leaf::Handle(handle) => {
                format!(
                    "w:own({at}, {value}, classes.{}{name})",
                    self.handle(handle)
                )
            }
        }
    }

    fn put_list(&self, at: &At, count: &str, size: u32, align: u32) -> String {
        format!("w:list({at}, {count}, {size}, {align})")
    }

    fn get(&self, leaf: Leaf, at: &At) -> String {
        match leaf {
            Leaf::Scalar(scalar) => format!("m:{}({at})", scalar.wit()),
            Leaf::Text | Leaf::Numbers(Scalar::U8) => format!("m:string({at})"),
            Leaf::Numbers(scalar) => format!("m:numbers({at}, \"{}\")", scalar.wit()),
            Leaf::NumberArray(scalar, count) => {
                format!("m:number_array({at}, \"{}\", {count})", scalar.wit())
            }
            Leaf::Handle(handle @ Handle::Stream(index)) => {
                let is_future = self.plan.streams[index].is_future;
                let method = if is_future { "future" } else { "stream" };
                format!("m:{method}({at}, elements.{})", self.handle(handle))
            }
            Leaf::Handle(handle) => format!("m:resource({at}, classes.{})", self.handle(handle)),
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
