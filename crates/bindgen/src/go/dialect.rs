//! How Go writes the steps of a codec: code over the `Writer` and the `Message` of package `wire`.

use super::layout::{alone, among};
use super::names::Names;
use super::types::{number_of, scalar};
use crate::model::Scalar;
use crate::plan::codec::{At, Dialect, Leaf, Operation, Test, Variable};
use crate::plan::source::Source;
use crate::plan::{Handle, Kind, Plan, TypeIndex};
use std::cell::RefCell;

/// A block that is open.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Block {
    /// An `if` or a loop.
    Plain,
    /// A switch over the type of a variant.
    Cases,
    /// A switch over the two sides of a result, which has no further case.
    Sides,
}

/// Writes the parts of a package.
pub struct Go<'a> {
    pub(super) plan: &'a Plan<'a>,
    pub(super) names: &'a Names,
    blocks: RefCell<Vec<Block>>,
}

impl<'a> Go<'a> {
    /// Writes the parts of this package.
    pub fn new(plan: &'a Plan<'a>, names: &'a Names) -> Self {
        Go {
            plan,
            names,
            blocks: RefCell::default(),
        }
    }

    fn is_result(&self, ty: TypeIndex) -> bool {
        self.plan.get(ty).id.is_none()
    }

    fn is_record(&self, ty: TypeIndex) -> bool {
        matches!(self.plan.get(ty).kind, Kind::Record(_))
    }

    /// Whether the type is an option whose value has `nil` itself.
    fn is_nilable(&self, ty: TypeIndex) -> bool {
        match self.plan.get(ty).kind {
            Kind::Option { value, .. } => matches!(self.plan.get(value).kind, Kind::Handle(_)),
            _ => false,
        }
    }

    /// The resource of a handle.
    pub(super) fn resource(&self, handle: Handle) -> &str {
        match handle {
            Handle::Own(id) | Handle::Borrow(id) => &self.names.resources[id.0],
            Handle::Stream(_) => unreachable!("streams inside of values are refused"),
        }
    }

    fn open_block(&self, block: Block) {
        self.blocks.borrow_mut().push(block);
    }
}

/// The method for a scalar: `U64`.
fn method(scalar: Scalar) -> String {
    let name = scalar.wit();
    name[..1].to_ascii_uppercase() + &name[1..]
}

/// The address of a value. `value` is a variable, or a member or an element of one.
fn address(value: &str) -> String {
    match value.strip_prefix('*') {
        Some(pointer) => pointer.to_owned(),
        None => format!("&{value}"),
    }
}

impl Dialect for Go<'_> {
    fn begin(&self, operation: Operation, ty: TypeIndex, out: &mut Source) {
        let (stem, name) = (&self.names.stems[ty.0], self.ty(ty));
        let by = if self.is_record(ty) { "*" } else { "" };
        out.open(&match operation {
            Operation::Put => {
                format!("func put{stem}(w *wire.Writer, at int, value {by}{name}) {{")
            }
            Operation::Get if self.plan.get(ty).has_handles => {
                format!("func get{stem}(call *guest.Call, m *wire.Message, at int) {name} {{")
            }
            Operation::Get => format!("func get{stem}(m *wire.Message, at int) {name} {{"),
            Operation::Check => format!("func check{stem}(m *wire.Message, at int) {{"),
        });
    }

    fn end(&self, result: Option<&str>, out: &mut Source) {
        if let Some(result) = result {
            out.line(&format!("return {result}"));
        }
        out.close("}");
    }

    fn call(&self, operation: Operation, ty: TypeIndex, at: &At, value: &str) -> String {
        let (stem, at) = (&self.names.stems[ty.0], among(at));
        match operation {
            Operation::Put if self.is_record(ty) => {
                format!("put{stem}(w, {at}, {})", address(value))
            }
            Operation::Put => format!("put{stem}(w, {at}, {value})"),
            Operation::Get if self.plan.get(ty).has_handles => format!("get{stem}(call, m, {at})"),
            Operation::Get => format!("get{stem}(m, {at})"),
            Operation::Check => format!("check{stem}(m, {at})"),
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

    /// The condition of a switch is two lines: the head, and the case.
    fn open_if(&self, condition: &str, out: &mut Source) {
        match condition.split_once('\n') {
            Some((switch, case)) => {
                let is_result = case == "case false:";
                self.open_block(if is_result {
                    Block::Sides
                } else {
                    Block::Cases
                });
                out.line(switch);
                out.open(case);
            }
            None => {
                self.open_block(Block::Plain);
                out.open(&format!("if {condition} {{"));
            }
        }
    }

    fn open_else_if(&self, condition: &str, out: &mut Source) {
        match condition.split_once('\n') {
            Some((_, case)) => out.reopen(case),
            None => out.reopen(&format!("}} else if {condition} {{")),
        }
    }

    fn open_else(&self, out: &mut Source) {
        match self.blocks.borrow().last() {
            Some(Block::Cases) => out.reopen("default:"),
            Some(Block::Sides) => {}
            _ => out.reopen("} else {"),
        }
    }

    fn open_loop(&self, index: &str, count: &str, out: &mut Source) {
        self.open_block(Block::Plain);
        out.open(&format!("for {index} := range {count} {{"));
    }

    fn close(&self, out: &mut Source) {
        self.blocks.borrow_mut().pop();
        out.close("}");
    }

    fn member(&self, ty: TypeIndex, number: usize, value: &str) -> String {
        format!("{value}.{}", self.names.members[ty.0][number])
    }

    fn record(&self, ty: TypeIndex, parts: &[String]) -> String {
        let members = self.names.members[ty.0].iter().zip(parts);
        let members: Vec<_> = members
            .map(|(member, part)| format!("{member}: {part}"))
            .collect();
        format!("{}{{{}}}", self.ty(ty), members.join(", "))
    }

    fn is_some(&self, _: TypeIndex, value: &str) -> String {
        format!("{value} != nil")
    }

    fn payload_of_some(&self, ty: TypeIndex, value: &str) -> String {
        match self.is_nilable(ty) {
            true => value.to_owned(),
            false => format!("*{value}"),
        }
    }

    fn some(&self, ty: TypeIndex, payload: &str) -> String {
        match self.is_nilable(ty) {
            true => payload.to_owned(),
            false => format!("wire.Some({payload})"),
        }
    }

    fn none(&self, _: TypeIndex) -> String {
        "nil".to_owned()
    }

    fn is_case(&self, ty: TypeIndex, number: usize, value: &str) -> String {
        if self.is_result(ty) {
            return format!("switch {value}.IsErr {{\ncase {}:", number == 1);
        }
        let Kind::Variant { cases, .. } = &self.plan.get(ty).kind else {
            unreachable!("it is a variant")
        };
        let variable = match cases.iter().any(|case| case.payload.is_some()) {
            true => "c := ",
            false => "",
        };
        let case = &self.names.members[ty.0][number];
        format!("switch {variable}{value}.(type) {{\ncase {case}:")
    }

    fn payload_of_case(&self, ty: TypeIndex, number: usize, value: &str) -> String {
        match (self.is_result(ty), number) {
            (false, _) => "c.Value".to_owned(),
            (true, 0) => format!("{value}.Ok"),
            (true, _) => format!("{value}.Err"),
        }
    }

    fn case(&self, ty: TypeIndex, number: usize, payload: Option<&str>) -> String {
        if !self.is_result(ty) {
            let value = payload.map_or(String::new(), |payload| format!("Value: {payload}"));
            return format!("{}{{{value}}}", self.names.members[ty.0][number]);
        }
        let name = self.ty(ty);
        match (number, payload) {
            (0, None) => format!("{name}{{}}"),
            (0, Some(payload)) => format!("{name}{{Ok: {payload}}}"),
            (_, None) => format!("{name}{{IsErr: true}}"),
            (_, Some(payload)) => format!("{name}{{IsErr: true, Err: {payload}}}"),
        }
    }

    fn no_case(&self, ty: TypeIndex, _: &str) -> String {
        match self.is_result(ty) {
            true => String::new(),
            false => format!("w.Fail(\"no case of `{}`\")", self.plan.get(ty).wit),
        }
    }

    fn to_number(&self, ty: TypeIndex, value: &str) -> String {
        format!("{}({value})", number_of(self.plan.get(ty)))
    }

    fn of_number(&self, ty: TypeIndex, number: &str) -> String {
        format!("{}({number})", self.ty(ty))
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
        let at = among(at);
        match leaf {
            Leaf::Scalar(scalar) => format!("w.{}({at}, {value})", method(scalar)),
            Leaf::Text => format!("w.Text({at}, {value})"),
            Leaf::Numbers(_) => format!("wire.PutNumbers(w, {at}, {value})"),
            Leaf::NumberArray(..) => {
                let value = match value.strip_prefix('*') {
                    Some(pointer) => pointer,
                    None => value,
                };
                format!("wire.PutItems(w, {at}, {value}[:])")
            }
            Leaf::Handle(handle) => {
                format!("w.Resource({at}, type{}, {value})", self.resource(handle))
            }
        }
    }

    fn put_list(&self, at: &At, count: &str, size: u32, align: u32) -> String {
        format!("w.List({}, {count}, {size}, {align})", among(at))
    }

    fn get(&self, leaf: Leaf, at: &At) -> String {
        match leaf {
            Leaf::Scalar(scalar) => format!("m.{}({})", method(scalar), alone(at)),
            Leaf::Text => format!("m.Text({})", alone(at)),
            Leaf::Numbers(Scalar::U8) => format!("m.Bytes({})", alone(at)),
            Leaf::Numbers(kind) => format!("wire.GetNumbers[{}](m, {})", scalar(kind), among(at)),
            Leaf::NumberArray(kind, count) => {
                let kind = scalar(kind);
                format!(
                    "[{count}]{kind}(wire.GetItems[{kind}](m, {}, {count}))",
                    among(at)
                )
            }
            Leaf::Handle(handle) => {
                let get = if matches!(handle, Handle::Own(_)) {
                    "Take"
                } else {
                    "Borrow"
                };
                let resource = self.resource(handle);
                format!(
                    "guest.{get}[{resource}](call, m.Handle({}), type{resource})",
                    among(at)
                )
            }
        }
    }

    fn list_first(&self, at: &At) -> String {
        format!("m.First({})", alone(at))
    }

    fn list_count(&self, at: &At) -> String {
        format!("m.Count({})", alone(at))
    }

    fn check(&self, test: Test, at: &At) -> String {
        match test {
            Test::Bool => format!("m.CheckBool({})", alone(at)),
            Test::Char => format!("m.CheckChar({})", alone(at)),
            Test::Text => format!("m.CheckText({})", alone(at)),
            Test::List { size, align } => format!("m.CheckList({}, {size}, {align})", among(at)),
            Test::Tag { size, count } => format!("m.CheckTag({}, {size}, {count})", among(at)),
            Test::Flags { size, count } => format!("m.CheckFlags({}, {size}, {count})", among(at)),
            Test::Handle => format!("m.CheckHandle({})", alone(at)),
        }
    }
}
