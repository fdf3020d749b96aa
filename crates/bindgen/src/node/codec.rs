//! The functions that put and get values, over the `Writer` and the `Reader` of the generic package.
//!
//! These have a method for each kind of type, which takes a function for its parts, and they check a
//! value while they read it. So a value is one expression, where the walker of
//! [`plan::codec`](crate::plan::codec) would write loops, a separate check, and errors without the
//! names of fields.

use super::Emitter;
use super::names::FIELD;
use super::source::{Doc, FORMAT, Source, array, mentions, object};
use crate::plan::codec::{At, Operation};
use crate::plan::{Column, Handle, Kind, Type, TypeIndex};
use Operation::{Get, Put};

/// The number of fields of a record that one function puts or gets, so that functions stay short.
const FIELDS: usize = 20;

impl Emitter<'_> {
    /// The function that puts or gets a value of the type.
    fn function(&self, operation: Operation, ty: TypeIndex) -> &str {
        match operation {
            Put => &self.names.put[ty.0],
            _ => &self.names.get[ty.0],
        }
    }

    /// The method of the writer or reader for a type, and its last arguments. `None`: the type has a
    /// function, or is a handle.
    fn primitive(&self, operation: Operation, ty: TypeIndex) -> Option<(&'static str, String)> {
        let Type { kind, size, .. } = self.plan.get(ty);
        let labels = || format!("{}, {size}", self.names.labels[ty.0]);
        Some(match kind {
            Kind::Scalar(scalar) => (scalar.wit(), String::new()),
            Kind::Text => ("string", String::new()),
            Kind::Bytes => ("blob", String::new()),
            Kind::List(element) => match (self.plan.number(*element), self.plan.get(*element)) {
                (Some(number), _) => ("numbers", format!("'{}'", number.wit())),
                (None, Type { size, align, .. }) => {
                    let part = self.function(operation, *element);
                    ("list", format!("{size}, {align}, {part}"))
                }
            },
            Kind::Array(element, count) => {
                let size = self.plan.get(*element).size;
                let part = self.function(operation, *element);
                ("fixed", format!("{count}, {size}, {part}"))
            }
            Kind::Option {
                value,
                payload_offset,
            } => {
                let payload = self.payload(operation, *value);
                ("option", format!("{payload_offset}, {payload}"))
            }
            Kind::Enum(_) => ("enumeration", labels()),
            Kind::Flags(_) => ("flags", labels()),
            Kind::Handle(_) | Kind::Record(_) | Kind::Variant { .. } => return None,
        })
    }

    /// The function for the value of an option. A value that is an option can be `undefined` itself,
    /// so that it is in an object.
    fn payload(&self, operation: Operation, value: TypeIndex) -> String {
        let some = if self.plan.is_option(value) {
            "_some"
        } else {
            ""
        };
        format!("{}{some}", self.function(operation, value))
    }

    /// The statement that puts `value`. `name` is the expression of its name in errors, or empty.
    pub fn put(&self, ty: TypeIndex, w: &str, at: &At, value: &str, name: &str) -> Doc {
        let at = at.to_string();
        let function = self.function(Put, ty);
        let (method, rest) = match (self.primitive(Put, ty), &self.plan.get(ty).kind) {
            (Some(method), _) => method,
            (None, Kind::Handle(Handle::Own(id))) => ("own", self.names.resources[id.0].clone()),
            (None, _) if name.is_empty() => return call(function, &[w, &at, value]),
            (None, _) => ("value", function.to_owned()),
        };
        let name = if name.is_empty() && !rest.is_empty() {
            "undefined"
        } else {
            name
        };
        call(&format!("{w}.{method}"), &[&at, value, name, &rest])
    }

    /// The expression that gets the value at a position.
    pub fn get(&self, ty: TypeIndex, r: &str, at: &At) -> Doc {
        if let Some((method, rest)) = self.primitive(Get, ty) {
            return call(&format!("{r}.{method}"), &[&at.to_string(), &rest]);
        }
        match &self.plan.get(ty).kind {
            Kind::Handle(Handle::Stream(index)) => self.get_stream(*index, r, at),
            Kind::Handle(Handle::Own(id) | Handle::Borrow(id)) => {
                let class = &self.names.resources[id.0];
                call(&format!("{class}.read"), &[r, &at.to_string()])
            }
            _ => call(self.function(Get, ty), &[r, &at.to_string()]),
        }
    }

    /// The expression that gets stream or future number `index`.
    pub fn get_stream(&self, index: usize, r: &str, at: &At) -> Doc {
        let stream = &self.plan.streams[index];
        let element = &self.names.elements[&stream.element];
        match stream.is_future {
            true => call("readFuture", &[r, &at.to_string(), element]),
            false => call("Stream.read", &[r, &at.to_string(), element]),
        }
    }

    /// How a message is put or got: `size: 4`, `get: getU32`.
    pub fn message(&self, operation: Operation, ty: Option<TypeIndex>) -> Vec<Doc> {
        let size = ty.map_or(0, |ty| self.plan.get(ty).size);
        let (name, nothing) = match operation {
            Put => ("put", "() => {}"),
            _ => ("get", "() => undefined"),
        };
        let function = ty.map_or(nothing, |ty| self.function(operation, ty));
        let function = format!("{name}: {function}");
        vec![format!("size: {size}").into(), function.into()]
    }

    /// All definitions that `code` needs: the names of cases and flags, the functions, and the
    /// descriptions of elements.
    pub fn definitions(&self, code: &str) -> [String; 3] {
        let mut seen = code.to_owned();
        let mut needed: [Vec<String>; 3] = Default::default();
        // A definition needs only those of types before its own, which come later here.
        let types = (0..self.plan.types.len()).rev();
        let types = types.map(|index| Some(TypeIndex(index))).chain([None]);
        for (place, name, text) in types.flat_map(|ty| self.definitions_of(ty)) {
            if mentions(&seen, &name) {
                seen.push_str(&text);
                needed[place].push(text);
            }
        }
        needed.map(|texts| texts.into_iter().rev().collect())
    }

    /// The definitions of a type: their places in the result of [`Emitter::definitions`], their names
    /// and their texts. Each one comes after those that can need it.
    fn definitions_of(&self, ty: Option<TypeIndex>) -> Vec<(usize, String, String)> {
        let names = self.names;
        let mut all = Vec::new();
        if let Some(name) = names.sends.get(&ty) {
            let mut streams = self.plan.upstreams.iter();
            let stream = streams.find(|stream| stream.element == ty);
            let hash = stream.map_or(0, |stream| stream.hash as u32);
            let mut properties = self.message(Put, ty);
            properties.insert(1, format!("layout: 0x{hash:08x}").into());
            all.push(constant(2, name, object(properties)));
        }
        if let Some(name) = names.elements.get(&ty) {
            let columns = ty.map_or(Vec::new(), |ty| self.plan.columns(ty));
            let columns = columns.iter().map(|column| {
                let (key, number) = (column_key(column), column.number.wit());
                format!("{key}: [{}, '{number}']", column.offset).into()
            });
            let has_tails = ty.is_some_and(|ty| !self.plan.get(ty).is_plain);
            let mut properties = self.message(Get, ty);
            properties.insert(1, format!("tails: {has_tails}").into());
            properties.push(object(columns).after("columns: "));
            all.push(constant(2, name, object(properties)));
        }
        let Some(ty) = ty else {
            return all;
        };
        for operation in [Get, Put] {
            let name = self.function(operation, ty).to_owned();
            if self.plan.is_option(ty) {
                all.push((1, format!("{name}_some"), self.some(operation, ty)));
            }
            all.push((1, name, self.definition(operation, ty)));
        }
        let labels = labels(self.plan.get(ty)).into_iter();
        let labels = labels.map(|label| format!("'{label}'").into());
        all.push(constant(0, &names.labels[ty.0], array(labels)));
        all
    }

    /// The function for an option in an object, which is the value of another option.
    fn some(&self, operation: Operation, ty: TypeIndex) -> String {
        let (name, at) = (self.function(operation, ty), At::new("at"));
        let (parameters, body) = match operation {
            Put => {
                let put = self.put(ty, "w", &at, "value.some", "'some'").flat();
                ("w, at, value", format!("w.object(value);\n  {put};"))
            }
            _ => {
                let get = self.get(ty, "r", &at).flat();
                ("r, at", format!("return {{ some: {get} }};"))
            }
        };
        format!("function {name}_some({parameters}) {{\n  {body}\n}}\n\n")
    }

    /// The function that puts or gets a value of the type.
    fn definition(&self, operation: Operation, ty: TypeIndex) -> String {
        let name = self.function(operation, ty);
        let parameters = match operation {
            Put => "(w, at, value)",
            _ => "(r, at)",
        };
        let at = At::new("at");
        let mut out = Source::new(&FORMAT);
        out.line_at(0, &format!("function {name}{parameters} {{"));
        match (&self.plan.get(ty).kind, operation) {
            (Kind::Record(_), _) => self.record(operation, ty, parameters, &mut out),
            (Kind::Variant { .. }, _) => self.switch(operation, ty, &mut out),
            (_, Put) => out.statement(1, "", &self.put(ty, "w", &at, "value", ""), ";"),
            _ => out.statement(1, "return ", &self.get(ty, "r", &at), ";"),
        }
        out.line_at(0, "}");
        out.finish() + "\n"
    }

    /// Writes the body of the function of a record or tuple. A large record has several functions.
    fn record(&self, operation: Operation, ty: TypeIndex, parameters: &str, out: &mut Source) {
        let planned = self.plan.get(ty);
        let Kind::Record(members) = &planned.kind else {
            return;
        };
        let is_tuple = planned.id.is_none();
        let parts = members.iter().zip(labels(planned)).map(|(member, name)| {
            let at = At::new("at").plus(member.offset);
            match (operation, is_tuple) {
                (Put, true) => self.put(member.ty, "w", &at, &format!("value[{name}]"), &name),
                (Put, false) => {
                    let (value, name) = (format!("value.{name}"), format!("'{name}'"));
                    self.put(member.ty, "w", &at, &value, &name)
                }
                (_, true) => self.get(member.ty, "r", &at),
                (_, false) => self.get(member.ty, "r", &at).after(&format!("{name}: ")),
            }
        });
        match (operation, is_tuple) {
            (Put, true) => out.line_at(1, &format!("w.tuple(value, {});", members.len())),
            (Put, false) => out.line_at(1, "w.object(value);"),
            _ => {}
        }
        let mut parts: Vec<Doc> = parts.collect();
        for number in 1.. {
            let rest = parts.split_off(parts.len().min(FIELDS));
            let next = format!("{}_{number}{parameters}", self.function(operation, ty));
            if !rest.is_empty() {
                let spread = if operation == Get { "..." } else { "" };
                parts.push(format!("{spread}{next}").into());
            }
            match (operation, is_tuple) {
                (Put, _) => parts
                    .iter()
                    .for_each(|part| out.statement(1, "", part, ";")),
                (_, true) => out.statement(1, "return ", &array(parts), ";"),
                (_, false) => out.statement(1, "return ", &object(parts), ";"),
            }
            if rest.is_empty() {
                break;
            }
            out.append(&format!("}}\n\nfunction {next} {{\n"));
            parts = rest;
        }
    }

    /// Writes the body of the function of a variant or result.
    fn switch(&self, operation: Operation, ty: TypeIndex, out: &mut Source) {
        let planned = self.plan.get(ty);
        let Kind::Variant {
            cases,
            tag_size,
            payload_offset,
        } = &planned.kind
        else {
            return;
        };
        let number = match operation {
            Put => {
                let names = &self.names.labels[ty.0];
                out.line_at(1, "w.object(value);");
                format!("w.enumeration(at, value.tag, 'tag', {names}, {tag_size})")
            }
            _ => format!("r.discriminant(at, {}, {tag_size})", cases.len()),
        };
        if operation == Put && cases.iter().all(|case| case.payload.is_none()) {
            return out.line_at(1, &format!("{number};"));
        }
        let at = At::new("at").plus(*payload_offset);
        out.line_at(1, &format!("switch ({number}) {{"));
        for (number, (case, name)) in cases.iter().zip(labels(planned)).enumerate() {
            let value = match (operation, case.payload) {
                (Put, None) => continue,
                (Put, Some(payload)) => self.put(payload, "w", &at, "value.val", "'val'"),
                (_, payload) => {
                    let payload = payload.map(|payload| self.get(payload, "r", &at).after("val: "));
                    let tag = format!("tag: '{name}'").into();
                    object([tag].into_iter().chain(payload))
                }
            };
            match operation == Get && number + 1 == cases.len() {
                true => out.line_at(2, "default:"),
                false => out.line_at(2, &format!("case {number}:")),
            }
            out.statement(3, "return ", &value, ";");
        }
        out.line_at(1, "}");
    }
}

/// A call. A text can be several arguments, or none.
fn call(function: &str, arguments: &[&str]) -> Doc {
    let arguments = arguments.iter().flat_map(|text| text.split(", "));
    let arguments = arguments.filter(|argument| !argument.is_empty());
    Doc::call(function, arguments.map(Doc::from))
}

fn constant(place: usize, name: &str, value: Doc) -> (usize, String, String) {
    let mut out = Source::new(&FORMAT);
    out.statement(0, &format!("const {name} = "), &value, ";");
    (place, name.to_owned(), out.finish() + "\n")
}

/// The names of the fields of a record, of the cases of an enum or variant, or of flags. The parts
/// of a tuple have numbers.
pub(super) fn labels(ty: &Type<'_>) -> Vec<String> {
    let labels = ty.kind.labels().into_iter().enumerate();
    let labels = labels.map(|(number, (name, _))| match (&ty.kind, ty.id) {
        (Kind::Record(_), None) => number.to_string(),
        (Kind::Variant { .. }, None) => ["ok", "err"][number].to_owned(),
        (Kind::Record(_) | Kind::Flags(_), _) => FIELD.of(name),
        _ => name.to_owned(),
    });
    labels.collect()
}

/// The key of a column in an object. A stream of numbers has the column `value`.
pub(super) fn column_key(column: &Column) -> String {
    let path: Vec<_> = column.path.iter().map(|name| FIELD.of(name)).collect();
    match path.len() {
        0 => "value".to_owned(),
        1 => path.concat(),
        _ => format!("'{}'", path.join(".")),
    }
}
