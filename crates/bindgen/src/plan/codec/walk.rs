//! Walks through types, and calls the hooks of a dialect.

use super::{At, Dialect, Leaf, Operation, Test, Variable};
use crate::model::Scalar;
use crate::plan::source::Source;
use crate::plan::types::{Kind, Type, TypeIndex};
use crate::plan::{Plan, Usage};

/// Prints a routine for each record and variant that has a name and for each direction in which it
/// goes. A routine calls only routines before it. Other types are part of the code of their users.
pub fn routines(plan: &Plan<'_>, dialect: &dyn Dialect, out: &mut Source) {
    let all = plan.types.iter().enumerate();
    let all = all.filter(|(_, ty)| has_routine(ty));
    for (index, ty) in all {
        let Usage {
            is_input,
            is_output,
            is_checked,
            ..
        } = ty.usage;
        let operations = [
            (Operation::Put, is_input),
            (Operation::Get, is_output),
            (Operation::Check, is_checked && !ty.is_trivial),
        ];
        for (operation, is_used) in operations {
            if is_used {
                let ty = TypeIndex(index);
                Codec::new(plan, dialect, out).routine(operation, ty);
                out.blank();
            }
        }
    }
}

fn has_routine(ty: &Type<'_>) -> bool {
    ty.id.is_some() && matches!(ty.kind, Kind::Record(_) | Kind::Variant { .. })
}

/// Prints the code of one function. The names of its variables are a letter and a number: `v1` is a
/// value, `n1` a count, `p1` the offset of the first element, `i1` an index and `t1` a discriminant.
pub struct Codec<'c> {
    plan: &'c Plan<'c>,
    dialect: &'c dyn Dialect,
    out: &'c mut Source,
    /// The number of the last variable.
    variables: u32,
}

impl<'c> Codec<'c> {
    /// Begins a function, whose code is written to `out`.
    pub fn new(plan: &'c Plan<'c>, dialect: &'c dyn Dialect, out: &'c mut Source) -> Self {
        Codec {
            plan,
            dialect,
            out,
            variables: 0,
        }
    }

    /// Writes a line of the language, for code around the code of the codec.
    pub fn line(&mut self, line: &str) {
        self.out.line(line);
    }

    fn routine(&mut self, operation: Operation, ty: TypeIndex) {
        let at = At::new("at");
        self.dialect.begin(operation, ty, self.out);
        let mut result = None;
        match operation {
            Operation::Put => match self.dialect.put_whole(ty, &at, "value") {
                Some(put) => self.statement(&put),
                None => self.put_parts(ty, &at, "value"),
            },
            Operation::Get => result = Some(self.get_parts(ty, &at)),
            Operation::Check => self.check_parts(ty, &at),
        }
        self.dialect.end(result.as_deref(), self.out);
    }

    /// Prints code that puts the value of an expression.
    pub fn put(&mut self, ty: TypeIndex, at: &At, value: &str) {
        let planned = self.plan.get(ty);
        if let Some(leaf) = self.leaf(ty) {
            return self.statement(&self.dialect.put(leaf, at, value));
        }
        match &planned.kind {
            Kind::Enum(_) | Kind::Flags(_) => {
                let number = self.dialect.to_number(ty, value);
                self.put_number(planned.size, at, &number);
            }
            _ if has_routine(planned) => {
                self.statement(&self.dialect.call(Operation::Put, ty, at, value));
            }
            _ => self.put_parts(ty, at, value),
        }
    }

    fn put_number(&mut self, size: u32, at: &At, number: &str) {
        let leaf = Leaf::Scalar(Scalar::unsigned(size));
        self.statement(&self.dialect.put(leaf, at, number));
    }

    fn put_parts(&mut self, ty: TypeIndex, at: &At, value: &str) {
        let (plan, dialect) = (self.plan, self.dialect);
        let value = &self.evaluated(ty, value);
        match &plan.get(ty).kind {
            Kind::Record(members) => {
                for (number, member) in members.iter().enumerate() {
                    let part = dialect.member(ty, number, value);
                    self.put(member.ty, &at.plus(member.offset), &part);
                }
            }
            Kind::Option {
                value: payload,
                payload_offset,
            } => {
                dialect.open_if(&dialect.is_some(ty, value), self.out);
                self.put_number(1, at, "1");
                let part = dialect.payload_of_some(ty, value);
                self.put(*payload, &at.plus(*payload_offset), &part);
                dialect.close(self.out);
            }
            Kind::Variant {
                cases,
                tag_size,
                payload_offset,
            } => {
                for (number, case) in cases.iter().enumerate() {
                    let condition = dialect.is_case(ty, number, value);
                    match number {
                        0 => dialect.open_if(&condition, self.out),
                        _ => dialect.open_else_if(&condition, self.out),
                    }
                    self.put_number(*tag_size, at, &number.to_string());
                    if let Some(payload) = case.payload {
                        let part = dialect.payload_of_case(ty, number, value);
                        self.put(payload, &at.plus(*payload_offset), &part);
                    }
                }
                dialect.open_else(self.out);
                self.statement(&dialect.no_case(ty, value));
                dialect.close(self.out);
            }
            Kind::List(element) => {
                let Type { size, align, .. } = *plan.get(*element);
                let [count, first, index] = self.names(["n", "p", "i"]);
                self.number(&count, &dialect.length(value));
                let put = dialect.put_list(at, &count, size, align);
                if size == 0 {
                    return self.statement(&put);
                }
                self.number(&first, &put);
                dialect.open_loop(&index, &count, self.out);
                let item = dialect.item(value, &index);
                self.put(*element, &At::new(&first).element(&index, size), &item);
                dialect.close(self.out);
            }
            Kind::Array(element, count) => {
                let size = plan.get(*element).size;
                let [index] = self.names(["i"]);
                self.statement(&dialect.require_length(value, *count));
                dialect.open_loop(&index, &count.to_string(), self.out);
                let item = dialect.item(value, &index);
                self.put(*element, &at.element(&index, size), &item);
                dialect.close(self.out);
            }
            _ => unreachable!("`put` handles the types without parts"),
        }
    }

    /// Prints code that gets a value. Returns the expression of the value.
    pub fn get(&mut self, ty: TypeIndex, at: &At) -> String {
        let planned = self.plan.get(ty);
        if let Some(leaf) = self.leaf(ty) {
            return self.dialect.get(leaf, at);
        }
        match &planned.kind {
            Kind::Enum(_) | Kind::Flags(_) => {
                let number = self.get_number(planned.size, at);
                self.dialect.of_number(ty, &number)
            }
            _ if has_routine(planned) => self.dialect.call(Operation::Get, ty, at, ""),
            _ => self.get_parts(ty, at),
        }
    }

    fn get_number(&self, size: u32, at: &At) -> String {
        self.dialect.get(Leaf::Scalar(Scalar::unsigned(size)), at)
    }

    fn get_parts(&mut self, ty: TypeIndex, at: &At) -> String {
        let (plan, dialect) = (self.plan, self.dialect);
        match &plan.get(ty).kind {
            Kind::Record(members) => {
                let parts = members.iter();
                let parts = parts.map(|member| self.get(member.ty, &at.plus(member.offset)));
                let parts: Vec<_> = parts.collect();
                dialect.record(ty, &parts)
            }
            Kind::Option {
                value: payload,
                payload_offset,
            } => {
                let [value, tag] = self.names(["v", "t"]);
                self.number(&tag, &self.get_number(1, at));
                dialect.variable(&value, ty, Some(&dialect.none(ty)), self.out);
                dialect.open_if(&dialect.equals(&tag, 1), self.out);
                let part = self.get(*payload, &at.plus(*payload_offset));
                dialect.assign(&value, &dialect.some(ty, &part), self.out);
                dialect.close(self.out);
                value
            }
            Kind::Variant {
                cases,
                tag_size,
                payload_offset,
            } => {
                let [value, tag] = self.names(["v", "t"]);
                self.number(&tag, &self.get_number(*tag_size, at));
                dialect.variable(&value, ty, None, self.out);
                for (number, case) in cases.iter().enumerate() {
                    let is_last = number + 1 == cases.len();
                    match (number, is_last) {
                        (0, true) => {}
                        (0, false) => dialect.open_if(&dialect.equals(&tag, 0), self.out),
                        (_, true) => dialect.open_else(self.out),
                        _ => dialect.open_else_if(&dialect.equals(&tag, number), self.out),
                    }
                    let at = at.plus(*payload_offset);
                    let part = case.payload.map(|payload| self.get(payload, &at));
                    let case = dialect.case(ty, number, part.as_deref());
                    dialect.assign(&value, &case, self.out);
                }
                if cases.len() > 1 {
                    dialect.close(self.out);
                }
                value
            }
            Kind::List(element) => {
                let size = plan.get(*element).size;
                let [value, count, first, index] = self.names(["v", "n", "p", "i"]);
                self.number(&count, &dialect.list_count(at));
                if size > 0 {
                    self.number(&first, &dialect.list_first(at));
                }
                let list = dialect.list(ty, &count);
                dialect.constant(&value, Variable::Value(ty), &list, self.out);
                dialect.open_loop(&index, &count, self.out);
                let at = match size {
                    0 => at.clone(),
                    size => At::new(&first).element(&index, size),
                };
                let item = self.get(*element, &at);
                self.statement(&dialect.set_item(&value, &index, &item));
                dialect.close(self.out);
                value
            }
            Kind::Array(element, count) => {
                let size = plan.get(*element).size;
                let [value, index] = self.names(["v", "i"]);
                let count = count.to_string();
                let list = dialect.list(ty, &count);
                dialect.constant(&value, Variable::Value(ty), &list, self.out);
                dialect.open_loop(&index, &count, self.out);
                let item = self.get(*element, &at.element(&index, size));
                self.statement(&dialect.set_item(&value, &index, &item));
                dialect.close(self.out);
                value
            }
            _ => unreachable!("`get` handles the types without parts"),
        }
    }

    /// Prints code that checks a value.
    pub fn check(&mut self, ty: TypeIndex, at: &At) {
        let planned = self.plan.get(ty);
        if planned.is_trivial {
            return;
        }
        let test = match &planned.kind {
            Kind::Scalar(Scalar::Bool) => Test::Bool,
            Kind::Scalar(Scalar::Char) => Test::Char,
            Kind::Scalar(_) => return,
            Kind::Text => Test::Text,
            Kind::Bytes => Test::List { size: 1, align: 1 },
            Kind::Handle(_) => Test::Handle,
            Kind::Enum(labels) => Test::Tag {
                size: planned.size,
                count: labels.len(),
            },
            Kind::Flags(labels) => Test::Flags {
                size: planned.size,
                count: labels.len(),
            },
            _ if has_routine(planned) => {
                return self.statement(&self.dialect.call(Operation::Check, ty, at, ""));
            }
            _ => return self.check_parts(ty, at),
        };
        self.statement(&self.dialect.check(test, at));
    }

    fn check_parts(&mut self, ty: TypeIndex, at: &At) {
        let (plan, dialect) = (self.plan, self.dialect);
        match &plan.get(ty).kind {
            Kind::Record(members) => {
                for member in members {
                    self.check(member.ty, &at.plus(member.offset));
                }
            }
            Kind::Option {
                value,
                payload_offset,
            } => self.check_cases(1, &[None, Some(*value)], at, *payload_offset),
            Kind::Variant {
                cases,
                tag_size,
                payload_offset,
            } => {
                let payloads: Vec<_> = cases.iter().map(|case| case.payload).collect();
                self.check_cases(*tag_size, &payloads, at, *payload_offset);
            }
            Kind::List(element) => {
                let planned = plan.get(*element);
                let (size, align) = (planned.size, planned.align);
                let test = dialect.check(Test::List { size, align }, at);
                if planned.is_trivial {
                    return self.statement(&test);
                }
                let [count, first, index] = self.names(["n", "p", "i"]);
                self.number(&count, &test);
                self.number(&first, &dialect.list_first(at));
                dialect.open_loop(&index, &count, self.out);
                self.check(*element, &At::new(&first).element(&index, size));
                dialect.close(self.out);
            }
            Kind::Array(element, count) => {
                let size = plan.get(*element).size;
                let [index] = self.names(["i"]);
                dialect.open_loop(&index, &count.to_string(), self.out);
                self.check(*element, &at.element(&index, size));
                dialect.close(self.out);
            }
            _ => unreachable!("`check` handles the types without parts"),
        }
    }

    /// Checks a discriminant, and the payload of its case.
    fn check_cases(
        &mut self,
        size: u32,
        payloads: &[Option<TypeIndex>],
        at: &At,
        payload_offset: u32,
    ) {
        let dialect = self.dialect;
        let count = payloads.len();
        let test = dialect.check(Test::Tag { size, count }, at);
        let checked = payloads.iter().enumerate();
        let checked = checked.filter_map(|(number, payload)| Some((number, (*payload)?)));
        let checked: Vec<_> = checked
            .filter(|(_, payload)| !self.plan.get(*payload).is_trivial)
            .collect();
        if checked.is_empty() {
            return self.statement(&test);
        }
        let [tag] = self.names(["t"]);
        self.number(&tag, &test);
        for (place, (number, payload)) in checked.into_iter().enumerate() {
            let condition = dialect.equals(&tag, number);
            match place {
                0 => dialect.open_if(&condition, self.out),
                _ => dialect.open_else_if(&condition, self.out),
            }
            self.check(payload, &at.plus(payload_offset));
        }
        dialect.close(self.out);
    }

    /// How the type is put and got, if that is one step.
    fn leaf(&self, ty: TypeIndex) -> Option<Leaf> {
        Some(match self.plan.get(ty).kind {
            Kind::Scalar(scalar) => Leaf::Scalar(scalar),
            Kind::Text => Leaf::Text,
            Kind::Bytes => Leaf::Numbers(Scalar::U8),
            Kind::Handle(handle) => Leaf::Handle(handle),
            Kind::List(element) => Leaf::Numbers(self.plan.number(element)?),
            Kind::Array(element, count) => Leaf::NumberArray(self.plan.number(element)?, count),
            _ => return None,
        })
    }

    /// A variable with the value of an expression, for rule 6. An identifier stays as it is, and so
    /// does a value that is not used, because it has no parts.
    fn evaluated(&mut self, ty: TypeIndex, value: &str) -> String {
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let is_unused =
            matches!(&self.plan.get(ty).kind, Kind::Record(members) if members.is_empty());
        if is_unused || value.chars().all(is_part) {
            return value.to_owned();
        }
        let [name] = self.names(["v"]);
        self.dialect
            .constant(&name, Variable::Value(ty), value, self.out);
        name
    }

    fn number(&mut self, name: &str, value: &str) {
        self.dialect
            .constant(name, Variable::Number, value, self.out);
    }

    fn statement(&mut self, expression: &str) {
        if !expression.is_empty() {
            self.dialect.statement(expression, self.out);
        }
    }

    /// New variables that begin with these letters.
    fn names<const N: usize>(&mut self, letters: [&str; N]) -> [String; N] {
        self.variables += 1;
        letters.map(|letter| format!("{letter}{}", self.variables))
    }
}
