//! Java: records, `null` for an option without a value, a sealed interface for a variant, an enum,
//! an `int` for flags, arrays for numbers.

use thalweg_bindgen::plan::codec::{At, Dialect, Leaf, Operation, Test, Variable};
use thalweg_bindgen::plan::names::{Case, Style};
use thalweg_bindgen::plan::source::{Comment, Format, Source};
use thalweg_bindgen::plan::{Kind, Plan, Scalar, TypeIndex};

pub static FORMAT: Format = Format {
    width: 100,
    indent: "  ",
    comment: Comment {
        first: "// ",
        next: "// ",
        last: "",
        block: None,
        replaced: &[],
    },
};

const NAME: Style = Style {
    case: Case::Camel,
    reserved: &[
        "abstract assert boolean break byte case catch char class const continue default do double else \
         enum extends false final finally float for goto if implements import instanceof int interface \
         long native new null package private protected public return short static strictfp super switch \
         synchronized this throw throws transient true try void volatile while",
        "clone finalize getClass hashCode notify notifyAll toString wait",
    ],
};

pub struct Java<'a> {
    pub plan: &'a Plan<'a>,
}

impl Java<'_> {
    fn name(&self, ty: TypeIndex) -> String {
        Case::Pascal.of(&self.plan.get(ty).stem)
    }

    fn case_name(&self, ty: TypeIndex, number: usize) -> String {
        let Kind::Variant { cases, .. } = &self.plan.get(ty).kind else {
            unreachable!("only a variant has cases")
        };
        let case = Case::Pascal.of(cases[number].name);
        match self.plan.get(ty).id {
            Some(_) => format!("{}.{case}", self.name(ty)),
            None => format!("Result.{case}"),
        }
    }

    fn has_payload(&self, ty: TypeIndex, number: usize) -> bool {
        matches!(&self.plan.get(ty).kind, Kind::Variant { cases, .. } if cases[number].payload.is_some())
    }

    /// Whether the value of an option can be `null` itself.
    fn is_wrapped(&self, ty: TypeIndex) -> bool {
        match self.plan.get(ty).kind {
            Kind::Option { value, .. } => {
                matches!(self.plan.get(value).kind, Kind::Option { .. })
            }
            _ => false,
        }
    }

    /// The type of a variable; as an argument of a generic type, a scalar is an object.
    fn ty(&self, index: TypeIndex, is_object: bool) -> String {
        let ty = self.plan.get(index);
        match &ty.kind {
            Kind::Scalar(scalar) => match (is_object, *scalar) {
                (true, Scalar::Bool) => "Boolean".to_owned(),
                (true, Scalar::U64 | Scalar::S64) => "Long".to_owned(),
                (true, Scalar::F32) => "Float".to_owned(),
                (true, Scalar::F64) => "Double".to_owned(),
                (true, _) => "Integer".to_owned(),
                (false, scalar) => primitive(scalar).to_owned(),
            },
            Kind::Text => "String".to_owned(),
            Kind::Bytes => "byte[]".to_owned(),
            Kind::Handle(_) => "long".to_owned(),
            Kind::List(element) | Kind::Array(element, _) => match self.plan.get(*element).kind {
                Kind::Scalar(scalar) if scalar.is_number() => {
                    format!("{}[]", element_type(scalar))
                }
                _ => format!("List<{}>", self.ty(*element, true)),
            },
            Kind::Option { value, .. } if self.is_wrapped(index) => {
                format!("Some<{}>", self.ty(*value, true))
            }
            Kind::Option { value, .. } => self.ty(*value, true),
            Kind::Flags(_) if is_object => "Integer".to_owned(),
            Kind::Flags(_) => "int".to_owned(),
            Kind::Variant { cases, .. } if ty.id.is_none() => {
                let sides = cases.iter().map(|case| {
                    let payload = case.payload.map(|payload| self.ty(payload, true));
                    payload.unwrap_or_else(|| "Void".to_owned())
                });
                format!("Result<{}>", sides.collect::<Vec<_>>().join(", "))
            }
            Kind::Record(members) if ty.id.is_none() => {
                let parts = members.iter().map(|member| self.ty(member.ty, true));
                let parts = parts.collect::<Vec<_>>().join(", ");
                format!("Tuple{}<{parts}>", members.len())
            }
            Kind::Variant { .. } | Kind::Record(_) | Kind::Enum(_) => self.name(index),
        }
    }
}

fn primitive(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::Bool => "boolean",
        Scalar::U64 | Scalar::S64 => "long",
        Scalar::F32 => "float",
        Scalar::F64 => "double",
        _ => "int",
    }
}

fn element_type(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::U8 | Scalar::S8 => "byte",
        Scalar::U16 | Scalar::S16 => "short",
        scalar => primitive(scalar),
    }
}

impl Dialect for Java<'_> {
    fn begin(&self, operation: Operation, ty: TypeIndex, out: &mut Source) {
        let name = self.name(ty);
        out.open(&match operation {
            Operation::Put => {
                format!("static void put{name}(Writer w, int at, {name} value) {{")
            }
            Operation::Get => format!("static {name} get{name}(Message m, int at) {{"),
            Operation::Check => format!("static void check{name}(Message m, int at) {{"),
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

    fn constant(&self, name: &str, ty: Variable, value: &str, out: &mut Source) {
        let ty = match ty {
            Variable::Number => "int".to_owned(),
            Variable::Value(ty) => self.ty(ty, false),
        };
        out.line(&format!("{ty} {name} = {value};"));
    }

    fn variable(&self, name: &str, ty: TypeIndex, value: Option<&str>, out: &mut Source) {
        let value = value.map_or(String::new(), |value| format!(" = {value}"));
        out.line(&format!("{} {name}{value};", self.ty(ty, false)));
    }

    fn open_loop(&self, index: &str, count: &str, out: &mut Source) {
        out.open(&format!(
            "for (int {index} = 0; {index} < {count}; {index}++) {{"
        ));
    }

    fn member(&self, ty: TypeIndex, number: usize, value: &str) -> String {
        match &self.plan.get(ty).kind {
            Kind::Record(members) if !members[number].name.is_empty() => {
                format!("{value}.{}()", NAME.of(members[number].name))
            }
            _ => format!("{value}.f{number}()"),
        }
    }

    fn record(&self, ty: TypeIndex, parts: &[String]) -> String {
        let name = match self.plan.get(ty).id {
            Some(_) => self.name(ty),
            None => format!("Tuple{}<>", parts.len()),
        };
        format!("new {name}({})", parts.join(", "))
    }

    fn is_some(&self, _: TypeIndex, value: &str) -> String {
        format!("{value} != null")
    }

    fn payload_of_some(&self, ty: TypeIndex, value: &str) -> String {
        match self.is_wrapped(ty) {
            true => format!("{value}.value()"),
            false => value.to_owned(),
        }
    }

    fn some(&self, ty: TypeIndex, payload: &str) -> String {
        match self.is_wrapped(ty) {
            true => format!("new Some<>({payload})"),
            false => payload.to_owned(),
        }
    }

    fn none(&self, _: TypeIndex) -> String {
        "null".to_owned()
    }

    fn is_case(&self, ty: TypeIndex, number: usize, value: &str) -> String {
        let name = self.case_name(ty, number);
        let diamond = match self.plan.get(ty).id {
            Some(_) => "",
            None => "<?, ?>",
        };
        match self.has_payload(ty, number) && diamond.is_empty() {
            true => format!("{value} instanceof {name} {value}Case{number}"),
            false => format!("{value} instanceof {name}{diamond}"),
        }
    }

    fn payload_of_case(&self, ty: TypeIndex, number: usize, value: &str) -> String {
        match (self.plan.get(ty).id, number) {
            (Some(_), _) => format!("{value}Case{number}.value()"),
            (None, 0) => format!("{value}.ok()"),
            (None, _) => format!("{value}.error()"),
        }
    }

    fn case(&self, ty: TypeIndex, number: usize, payload: Option<&str>) -> String {
        let diamond = match self.plan.get(ty).id {
            Some(_) => "",
            None => "<>",
        };
        let payload = match (self.plan.get(ty).id, payload) {
            (None, None) => "null",
            (_, payload) => payload.unwrap_or_default(),
        };
        format!("new {}{diamond}({payload})", self.case_name(ty, number))
    }

    fn no_case(&self, ty: TypeIndex, _: &str) -> String {
        format!(
            "w.fail(\"a case of {} is expected\")",
            self.plan.get(ty).wit
        )
    }

    fn to_number(&self, ty: TypeIndex, value: &str) -> String {
        match &self.plan.get(ty).kind {
            Kind::Flags(labels) => format!("w.flags({value}, {})", labels.len()),
            _ => format!("{value}.ordinal()"),
        }
    }

    fn of_number(&self, ty: TypeIndex, number: &str) -> String {
        match &self.plan.get(ty).kind {
            Kind::Flags(_) => number.to_owned(),
            _ => format!("{}.values()[{number}]", self.name(ty)),
        }
    }

    fn length(&self, value: &str) -> String {
        format!("{value}.size()")
    }

    fn item(&self, value: &str, index: &str) -> String {
        format!("{value}.get({index})")
    }

    fn list(&self, _: TypeIndex, count: &str) -> String {
        format!("new ArrayList<>({count})")
    }

    fn set_item(&self, list: &str, _: &str, value: &str) -> String {
        format!("{list}.add({value})")
    }

    fn require_length(&self, value: &str, count: u32) -> String {
        format!("w.exactly({value}, {count})")
    }

    fn put(&self, leaf: Leaf, at: &At, value: &str) -> String {
        match leaf {
            Leaf::Scalar(scalar) => format!("w.{}({at}, {value})", method(scalar)),
            Leaf::Text => format!("w.text({at}, {value})"),
            Leaf::Numbers(scalar) => format!("w.{}List({at}, {value})", scalar.wit()),
            Leaf::NumberArray(scalar, count) => {
                format!("w.{}Array({at}, {value}, {count})", scalar.wit())
            }
            Leaf::Handle(_) => format!("w.handle({at}, {value})"),
        }
    }

    fn put_list(&self, at: &At, count: &str, size: u32, align: u32) -> String {
        format!("w.list({at}, {count}, {size}, {align})")
    }

    fn get(&self, leaf: Leaf, at: &At) -> String {
        match leaf {
            Leaf::Scalar(scalar) => format!("m.{}({at})", method(scalar)),
            Leaf::Text => format!("m.text({at})"),
            Leaf::Numbers(scalar) => format!("m.{}List({at})", scalar.wit()),
            Leaf::NumberArray(scalar, count) => format!("m.{}Array({at}, {count})", scalar.wit()),
            Leaf::Handle(_) => format!("m.handle({at})"),
        }
    }

    fn list_first(&self, at: &At) -> String {
        format!("m.number({at})")
    }

    fn list_count(&self, at: &At) -> String {
        format!("m.number({})", at.plus(4))
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

/// The method of a scalar. The names of some are keywords.
fn method(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::Char => "codePoint",
        scalar => scalar.wit(),
    }
}
