//! How Nim writes the steps of a codec: straight-line code over the `Writer` and the `Message` of the
//! generic package.

use super::Emitter;
use super::types::scalar;
use crate::model::Scalar;
use crate::plan::codec::{At, Dialect, Leaf, Operation, Test, Variable};
use crate::plan::source::Source;
use crate::plan::{Handle, Kind, TypeIndex};

impl Emitter<'_> {
    fn members(&self, ty: TypeIndex) -> &[String] {
        &self.names.members[ty.0]
    }

    /// The call of a proc that gets a value.
    pub fn got(&self, proc: &str, ty: TypeIndex, at: &At) -> String {
        match self.names.generics[ty.0].as_str() {
            "" => format!("m.{proc}({at})"),
            generics => format!("{proc}{generics}(m, {at})"),
        }
    }

    /// The enum of a variant's cases; `None`: it is a `result`.
    fn kind_of(&self, ty: TypeIndex) -> Option<&str> {
        let id = self.plan.get(ty).id;
        id.map(|id| self.names.kinds[id.0].as_str())
    }

    /// The expression that gets a stream or future. `ending` has the last arguments.
    pub fn get_stream(&self, index: usize, at: &At, ending: &str) -> String {
        let stream = &self.plan.streams[index];
        let name = ["getStream", "getFuture"][usize::from(stream.is_future)];
        let size = stream.element.map_or(0, |ty| self.plan.get(ty).size);
        let element = self.element(stream.element);
        let get = self.item(Operation::Get, stream.element);
        format!("{name}[{element}](m, {at}, {size}, {get}{ending})")
    }
}

/// The ending of the procs of the generic package for a scalar: `U8`.
pub(super) fn ending(scalar: Scalar) -> String {
    let name = scalar.wit();
    let (first, rest) = name.split_at(1);
    format!("{}{rest}", first.to_ascii_uppercase())
}

impl Dialect for Emitter<'_> {
    fn begin(&self, operation: Operation, ty: TypeIndex, out: &mut Source) {
        let (stem, name) = (&self.names.stems[ty.0], self.ty(ty));
        let generics = &self.names.generics[ty.0];
        out.open(&match operation {
            Operation::Put => {
                format!("proc put{stem}*{generics}(args: var Writer, at: uint32, value: {name}) =")
            }
            Operation::Get => {
                format!("proc get{stem}*{generics}(m: Message, at: uint32): {name} =")
            }
            Operation::Check => format!("proc check{stem}(m: var Message, at: uint32) ="),
        });
    }

    fn end(&self, result: Option<&str>, out: &mut Source) {
        if let Some(result) = result {
            out.line(result);
        }
        out.dedent();
    }

    fn call(&self, operation: Operation, ty: TypeIndex, at: &At, value: &str) -> String {
        let stem = &self.names.stems[ty.0];
        match operation {
            Operation::Put => format!("args.put{stem}({at}, {value})"),
            Operation::Get => self.got(&format!("get{stem}"), ty, at),
            Operation::Check => format!("m.check{stem}({at})"),
        }
    }

    fn statement(&self, expression: &str, out: &mut Source) {
        out.line(expression);
    }

    /// A template is another name for a part of a value, which is not copied. Evaluating a part runs no
    /// code of the caller.
    fn constant(&self, name: &str, ty: Variable, value: &str, out: &mut Source) {
        let is_new = value.starts_with("newSeq[") || value.starts_with("default(");
        out.line(&match ty {
            Variable::Number => format!("let {name} = {value}"),
            Variable::Value(_) if is_new => format!("var {name} = {value}"),
            Variable::Value(_) => format!("template {name}: untyped = {value}"),
        });
    }

    fn variable(&self, name: &str, ty: TypeIndex, _: Option<&str>, out: &mut Source) {
        out.line(&format!("var {name}: {}", self.ty(ty)));
    }

    fn assign(&self, name: &str, value: &str, out: &mut Source) {
        out.line(&format!("{name} = {value}"));
    }

    fn open_if(&self, condition: &str, out: &mut Source) {
        out.open(&format!("if {condition}:"));
    }

    fn open_else_if(&self, condition: &str, out: &mut Source) {
        out.reopen(&format!("elif {condition}:"));
    }

    fn open_else(&self, out: &mut Source) {
        out.reopen("else:");
    }

    fn open_loop(&self, index: &str, count: &str, out: &mut Source) {
        out.open(&format!("for {index} in 0'u32 ..< uint32({count}):"));
    }

    fn close(&self, out: &mut Source) {
        out.dedent();
    }

    fn member(&self, ty: TypeIndex, number: usize, value: &str) -> String {
        match self.members(ty).get(number) {
            Some(name) => format!("{value}.{name}"),
            None => format!("{value}[{number}]"),
        }
    }

    fn record(&self, ty: TypeIndex, members: &[String]) -> String {
        if self.plan.get(ty).id.is_none() {
            let comma = if members.len() == 1 { "," } else { "" };
            return format!("({}{comma})", members.join(", "));
        }
        let fields = self.members(ty).iter().zip(members);
        let fields: Vec<_> = fields
            .map(|(name, part)| format!("{name}: {part}"))
            .collect();
        format!("{}({})", self.ty(ty), fields.join(", "))
    }

    fn is_some(&self, _: TypeIndex, value: &str) -> String {
        format!("{value}.isSome")
    }

    fn payload_of_some(&self, _: TypeIndex, value: &str) -> String {
        format!("{value}.unsafeGet")
    }

    fn some(&self, _: TypeIndex, payload: &str) -> String {
        format!("some({payload})")
    }

    fn none(&self, ty: TypeIndex) -> String {
        format!("default({})", self.ty(ty))
    }

    fn is_case(&self, ty: TypeIndex, number: usize, value: &str) -> String {
        match self.kind_of(ty) {
            Some(kind) => format!("{value}.kind == {kind}.{}", self.members(ty)[number]),
            None if number == 0 => format!("{value}.isOk"),
            None => format!("not {value}.isOk"),
        }
    }

    fn payload_of_case(&self, ty: TypeIndex, number: usize, value: &str) -> String {
        match self.kind_of(ty) {
            Some(_) => format!("{value}.{}", self.members(ty)[number]),
            None => format!("{value}.{}", ["value", "error"][number]),
        }
    }

    fn case(&self, ty: TypeIndex, number: usize, payload: Option<&str>) -> String {
        let name = self.ty(ty);
        let (kind, field) = match self.kind_of(ty) {
            Some(kind) => {
                let case = &self.members(ty)[number];
                (format!("kind: {kind}.{case}"), case.as_str())
            }
            None => (format!("isOk: {}", number == 0), ["value", "error"][number]),
        };
        let payload = payload.map_or(String::new(), |payload| format!(", {field}: {payload}"));
        format!("{name}({kind}{payload})")
    }

    fn no_case(&self, _: TypeIndex, _: &str) -> String {
        "discard".to_owned()
    }

    fn to_number(&self, ty: TypeIndex, value: &str) -> String {
        let number = Scalar::unsigned(self.plan.get(ty).size);
        format!("cast[{}]({value})", scalar(number))
    }

    fn of_number(&self, ty: TypeIndex, number: &str) -> String {
        format!("cast[{}]({number})", self.ty(ty))
    }

    fn length(&self, value: &str) -> String {
        format!("{value}.len")
    }

    fn item(&self, value: &str, index: &str) -> String {
        format!("{value}[{index}]")
    }

    fn list(&self, ty: TypeIndex, count: &str) -> String {
        match self.plan.get(ty).kind {
            Kind::List(element) => format!("newSeq[{}]({count})", self.ty(element)),
            _ => format!("default({})", self.ty(ty)),
        }
    }

    fn set_item(&self, list: &str, index: &str, value: &str) -> String {
        format!("{list}[{index}] = {value}")
    }

    fn require_length(&self, _: &str, _: u32) -> String {
        String::new()
    }

    fn put_whole(&self, ty: TypeIndex, at: &At, value: &str) -> Option<String> {
        (self.is_guest && self.is_copied(ty)).then(|| format!("args.putRecord({at}, {value})"))
    }

    fn put(&self, leaf: Leaf, at: &At, value: &str) -> String {
        let name = match leaf {
            Leaf::Handle(Handle::Own(id)) if self.is_guest => {
                return format!("args.putObject({at}, {}, {value})", id.0);
            }
            Leaf::Scalar(scalar) => ending(scalar),
            Leaf::Text => "Text".to_owned(),
            Leaf::Numbers(_) => "Numbers".to_owned(),
            Leaf::NumberArray(..) => "Array".to_owned(),
            Leaf::Handle(Handle::Borrow(_)) => "Borrowed".to_owned(),
            Leaf::Handle(_) => "Owned".to_owned(),
        };
        format!("args.put{name}({at}, {value})")
    }

    fn put_list(&self, at: &At, count: &str, size: u32, align: u32) -> String {
        format!("args.putList({at}, {count}, {size}, {align})")
    }

    fn get(&self, leaf: Leaf, at: &At) -> String {
        match leaf {
            Leaf::Scalar(scalar) => format!("m.get{}({at})", ending(scalar)),
            Leaf::Text => format!("m.getText({at})"),
            Leaf::Numbers(one) => format!("m.getNumbers({at}, {})", scalar(one)),
            Leaf::NumberArray(one, count) => format!("m.getArray({at}, {count}, {})", scalar(one)),
            Leaf::Handle(Handle::Stream(index)) => self.get_stream(index, at, ""),
            Leaf::Handle(Handle::Own(id) | Handle::Borrow(id)) => {
                let resource = &self.names.resources[id.0];
                match self.is_guest {
                    true => format!("m.takeObject({at}, {}, {resource})", id.0),
                    false => format!("m.getOwned({at}, {resource})"),
                }
            }
        }
    }

    fn list_first(&self, at: &At) -> String {
        format!("m.getFirst({at})")
    }

    fn list_count(&self, at: &At) -> String {
        format!("m.getU32({})", at.plus(4))
    }

    fn check(&self, test: Test, at: &At) -> String {
        match test {
            Test::Bool => format!("m.checkBool({at})"),
            Test::Char => format!("m.checkChar({at})"),
            Test::Text => format!("m.checkText({at})"),
            Test::List { size, align } => format!("m.checkList({at}, {size}, {align})"),
            Test::Tag { size, count } => format!("m.checkTag({at}, {size}, {count})"),
            Test::Flags { size, count } => format!("m.checkFlags({at}, {size}, {count})"),
            Test::Handle => format!("m.checkHandle({at})"),
        }
    }
}
