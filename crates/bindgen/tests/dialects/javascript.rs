//! JavaScript: plain objects, `undefined` for an option without a value, `{ tag, value }` for a case,
//! a text for an enum, a number for flags, typed arrays for numbers, `BigInt` for 64 bits.

use thalweg_bindgen::plan::codec::{At, Dialect, Leaf, Operation, Test, Variable};
use thalweg_bindgen::plan::names::Case;
use thalweg_bindgen::plan::source::{Comment, Format, Source};
use thalweg_bindgen::plan::{Kind, Plan, Scalar, TypeIndex};

pub static FORMAT: Format = Format {
    width: 100,
    indent: "  ",
    comment: Comment {
        first: "// ",
        next: "// ",
        last: "",
        replaced: &[],
    },
};

pub struct JavaScript<'a> {
    pub plan: &'a Plan<'a>,
}

impl JavaScript<'_> {
    /// The names of the cases of each enum, in the order of their numbers.
    pub fn types(&self, out: &mut Source) {
        for (index, ty) in self.plan.types.iter().enumerate() {
            if let Kind::Enum(labels) = ty.kind {
                let labels = labels.iter().map(|label| format!("'{}'", label.name));
                let labels = labels.collect::<Vec<_>>().join(", ");
                let name = self.name(TypeIndex(index));
                out.line(&format!("const {name} = [{labels}];"));
                out.blank();
            }
        }
    }

    fn name(&self, ty: TypeIndex) -> String {
        Case::Pascal.of(&self.plan.get(ty).stem)
    }

    fn case_name(&self, ty: TypeIndex, number: usize) -> &str {
        match &self.plan.get(ty).kind {
            Kind::Variant { cases, .. } => cases[number].name,
            _ => unreachable!("only a variant has cases"),
        }
    }

    /// Whether the value of an option can be `undefined` itself.
    fn is_wrapped(&self, ty: TypeIndex) -> bool {
        match self.plan.get(ty).kind {
            Kind::Option { value, .. } => {
                matches!(self.plan.get(value).kind, Kind::Option { .. })
            }
            _ => false,
        }
    }
}

/// The class of typed arrays.
fn array(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::Bool | Scalar::U8 => "Uint8Array",
        Scalar::U16 => "Uint16Array",
        Scalar::U32 | Scalar::Char => "Uint32Array",
        Scalar::U64 => "BigUint64Array",
        Scalar::S8 => "Int8Array",
        Scalar::S16 => "Int16Array",
        Scalar::S32 => "Int32Array",
        Scalar::S64 => "BigInt64Array",
        Scalar::F32 => "Float32Array",
        Scalar::F64 => "Float64Array",
    }
}

impl Dialect for JavaScript<'_> {
    fn begin(&self, operation: Operation, ty: TypeIndex, out: &mut Source) {
        let name = self.name(ty);
        out.open(&match operation {
            Operation::Put => format!("function put{name}(w, at, value) {{"),
            Operation::Get => format!("function get{name}(m, at) {{"),
            Operation::Check => format!("function check{name}(m, at) {{"),
        });
    }

    fn call(&self, operation: Operation, ty: TypeIndex, at: &At, value: &str) -> String {
        let name = self.name(ty);
        match operation {
            Operation::Put => format!("put{name}(w, {at}, {value})"),
            Operation::Get => format!("get{name}(m, {at})"),
            Operation::Check => format!("check{name}(m, {at})"),
        }
    }

    fn constant(&self, name: &str, _: Variable, value: &str, out: &mut Source) {
        out.line(&format!("const {name} = {value};"));
    }

    fn variable(&self, name: &str, _: TypeIndex, _: Option<&str>, out: &mut Source) {
        out.line(&format!("let {name};"));
    }

    fn equals(&self, name: &str, number: usize) -> String {
        format!("{name} === {number}")
    }

    fn open_loop(&self, index: &str, count: &str, out: &mut Source) {
        out.open(&format!(
            "for (let {index} = 0; {index} < {count}; {index}++) {{"
        ));
    }

    fn member(&self, ty: TypeIndex, number: usize, value: &str) -> String {
        match &self.plan.get(ty).kind {
            Kind::Record(members) if !members[number].name.is_empty() => {
                format!("{value}.{}", Case::Camel.of(members[number].name))
            }
            _ => format!("{value}[{number}]"),
        }
    }

    fn record(&self, ty: TypeIndex, parts: &[String]) -> String {
        let ty = self.plan.get(ty);
        let Kind::Record(members) = &ty.kind else {
            unreachable!("it is a record")
        };
        if ty.id.is_none() {
            return format!("[{}]", parts.join(", "));
        }
        let parts = members.iter().zip(parts);
        let parts = parts.map(|(member, part)| format!("{}: {part}", Case::Camel.of(member.name)));
        format!("{{ {} }}", parts.collect::<Vec<_>>().join(", "))
    }

    fn is_some(&self, _: TypeIndex, value: &str) -> String {
        format!("{value} !== undefined")
    }

    fn payload_of_some(&self, ty: TypeIndex, value: &str) -> String {
        match self.is_wrapped(ty) {
            true => format!("{value}.some"),
            false => value.to_owned(),
        }
    }

    fn some(&self, ty: TypeIndex, payload: &str) -> String {
        match self.is_wrapped(ty) {
            true => format!("{{ some: {payload} }}"),
            false => payload.to_owned(),
        }
    }

    fn none(&self, _: TypeIndex) -> String {
        "undefined".to_owned()
    }

    fn is_case(&self, ty: TypeIndex, number: usize, value: &str) -> String {
        format!("{value}.tag === '{}'", self.case_name(ty, number))
    }

    fn payload_of_case(&self, _: TypeIndex, _: usize, value: &str) -> String {
        format!("{value}.value")
    }

    fn case(&self, ty: TypeIndex, number: usize, payload: Option<&str>) -> String {
        let payload = payload.map_or(String::new(), |payload| format!(", value: {payload}"));
        format!("{{ tag: '{}'{payload} }}", self.case_name(ty, number))
    }

    fn no_case(&self, ty: TypeIndex, _: &str) -> String {
        format!("w.fail('a case of {} is expected')", self.plan.get(ty).wit)
    }

    fn to_number(&self, ty: TypeIndex, value: &str) -> String {
        match &self.plan.get(ty).kind {
            Kind::Flags(labels) => format!("w.flags({value}, {})", labels.len()),
            _ => format!("{}.indexOf({value})", self.name(ty)),
        }
    }

    fn of_number(&self, ty: TypeIndex, number: &str) -> String {
        match &self.plan.get(ty).kind {
            Kind::Flags(_) => number.to_owned(),
            _ => format!("{}[{number}]", self.name(ty)),
        }
    }

    fn length(&self, value: &str) -> String {
        format!("w.length({value})")
    }

    fn item(&self, value: &str, index: &str) -> String {
        format!("{value}[{index}]")
    }

    fn list(&self, _: TypeIndex, count: &str) -> String {
        format!("new Array({count})")
    }

    fn set_item(&self, list: &str, index: &str, value: &str) -> String {
        format!("{list}[{index}] = {value}")
    }

    fn require_length(&self, value: &str, count: u32) -> String {
        format!("w.exactly({value}, {count})")
    }

    fn put(&self, leaf: Leaf, at: &At, value: &str) -> String {
        match leaf {
            Leaf::Scalar(scalar) => format!("w.{}({at}, {value})", scalar.wit()),
            Leaf::Text => format!("w.text({at}, {value})"),
            Leaf::Numbers(scalar) => format!("w.numbers({at}, {value}, {})", array(scalar)),
            Leaf::NumberArray(scalar, count) => {
                format!("w.array({at}, {value}, {}, {count})", array(scalar))
            }
            Leaf::Handle(_) => format!("w.handle({at}, {value})"),
        }
    }

    fn put_list(&self, at: &At, count: &str, size: u32, align: u32) -> String {
        format!("w.list({at}, {count}, {size}, {align})")
    }

    fn get(&self, leaf: Leaf, at: &At) -> String {
        match leaf {
            Leaf::Scalar(scalar) => format!("m.{}({at})", scalar.wit()),
            Leaf::Text => format!("m.text({at})"),
            Leaf::Numbers(scalar) => format!("m.numbers({at}, {})", array(scalar)),
            Leaf::NumberArray(scalar, count) => {
                format!("m.array({at}, {}, {count})", array(scalar))
            }
            Leaf::Handle(_) => format!("m.handle({at})"),
        }
    }

    fn list_first(&self, at: &At) -> String {
        format!("m.u32({at})")
    }

    fn list_count(&self, at: &At) -> String {
        format!("m.u32({})", at.plus(4))
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
