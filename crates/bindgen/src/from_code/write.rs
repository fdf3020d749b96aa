//! Writes the WIT file and the policy file.

use super::model::{
    Api, Function, FunctionKind, Host, Named, Param, Return, Type, Value, ValueKind,
};
use super::names::wit as name;
use super::{MARK, MARK_END};
use crate::model::Position;
use std::collections::BTreeSet;

/// A text, with the position in the Rust file from which each line was generated.
pub struct MappedText {
    pub text: String,
    from: Vec<Position>,
}

impl MappedText {
    fn new(from: &Position) -> Self {
        Self {
            text: String::new(),
            from: vec![from.clone()],
        }
    }

    fn line(&mut self, depth: usize, text: &str, from: &Position) {
        if !text.is_empty() {
            self.text.push_str(&"    ".repeat(depth));
            self.text.push_str(text);
        }
        self.text.push('\n');
        self.from.push(from.clone());
    }

    fn docs(&mut self, depth: usize, named: &Named) {
        for doc in &named.docs {
            self.line(depth, format!("/// {doc}").trim_end(), &named.position);
        }
    }

    /// The position from which a line, counted from 1, was generated.
    pub fn source_position(&self, line: u32) -> Position {
        self.from
            .get(line as usize)
            .unwrap_or(&self.from[0])
            .clone()
    }
}

/// The WIT file. `link` is the relative path from it to the code.
pub fn wit(api: &Api, link: &str) -> MappedText {
    let at = &api.service.position;
    let mut out = MappedText::new(at);
    out.line(0, &format!("{MARK}{link}{MARK_END}"), at);
    out.line(0, &format!("package {};", api.package), at);
    out.line(0, "", at);
    let of_host = api.host_values();
    let (hosts, own): (Vec<_>, Vec<_>) = api
        .values
        .iter()
        .partition(|value| of_host.contains(&value.named.ident));
    if let Some(host) = &api.host {
        self::host(&mut out, host, &hosts);
    }
    out.docs(0, &api.service);
    let interface = name(&api.service.ident);
    out.line(0, &format!("interface {interface} {{"), at);
    let mut first = true;
    let used = used(api, &own);
    let used: Vec<_> = hosts
        .iter()
        .filter(|value| used.contains(&value.named.ident))
        .map(|value| name(&value.named.ident))
        .collect();
    if let (Some(host), false) = (&api.host, used.is_empty()) {
        first = false;
        let host = name(&host.named.ident);
        out.line(1, &format!("use {host}.{{{}}};", used.join(", ")), at);
    }
    let mut separate = |out: &mut MappedText| {
        if !std::mem::take(&mut first) {
            out.line(0, "", at);
        }
    };
    for each in own {
        separate(&mut out);
        value(&mut out, each);
    }
    for resource in &api.resources {
        separate(&mut out);
        out.docs(1, &resource.named);
        let at = &resource.named.position;
        out.line(
            1,
            &format!("resource {} {{", name(&resource.named.ident)),
            at,
        );
        for (nth, each) in resource.functions.iter().enumerate() {
            if nth > 0 {
                out.line(0, "", at);
            }
            function(&mut out, 2, each, &name(&resource.named.ident));
        }
        out.line(1, "}", at);
    }
    for each in &api.functions {
        separate(&mut out);
        function(&mut out, 1, each, "");
    }
    out.line(0, "}", at);
    out.line(0, "", at);
    out.line(0, "world library {", at);
    if let Some(host) = &api.host {
        out.line(1, &format!("import {};", name(&host.named.ident)), at);
    }
    out.line(1, &format!("export {interface};"), at);
    out.line(0, "}", at);
    out
}

/// The interface of the host imports, with the values that they use.
fn host(out: &mut MappedText, host: &Host, values: &[&Value]) {
    let at = &host.named.position;
    out.docs(0, &host.named);
    out.line(0, &format!("interface {} {{", name(&host.named.ident)), at);
    let mut first = true;
    let mut separate = |out: &mut MappedText| {
        if !std::mem::take(&mut first) {
            out.line(0, "", at);
        }
    };
    for each in values {
        separate(out);
        value(out, each);
    }
    for each in &host.functions {
        separate(out);
        function(out, 1, each, "");
    }
    out.line(0, "}", at);
    out.line(0, "", at);
}

/// The names of the values that the service's own interface uses.
fn used(api: &Api, own: &[&Value]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    own.iter().for_each(|value| value.names(&mut names));
    let of_resources = api.resources.iter().flat_map(|own| &own.functions);
    for function in of_resources.chain(&api.functions) {
        function.names(&mut names);
    }
    names
}

/// The definition of a value.
fn value(out: &mut MappedText, value: &Value) {
    out.docs(1, &value.named);
    let (at, own) = (&value.named.position, name(&value.named.ident));
    match &value.kind {
        ValueKind::Record(fields) => {
            out.line(1, &format!("record {own} {{"), at);
            for (field, ty) in fields {
                out.docs(2, field);
                out.line(
                    2,
                    &format!("{}: {},", name(&field.ident), of(ty)),
                    &field.position,
                );
            }
        }
        ValueKind::Flags(flags) => {
            out.line(1, &format!("flags {own} {{"), at);
            for flag in flags {
                out.docs(2, flag);
                out.line(2, &format!("{},", name(&flag.ident)), &flag.position);
            }
        }
        ValueKind::Enum(cases) => {
            let plain = cases.iter().all(|(_, carried)| carried.is_empty());
            let word = if plain { "enum" } else { "variant" };
            out.line(1, &format!("{word} {own} {{"), at);
            for (case, carried) in cases {
                out.docs(2, case);
                let carried = match &carried[..] {
                    [] => String::new(),
                    [one] => format!("({})", of(one)),
                    several => format!("({})", of(&Type::Tuple(several.to_vec()))),
                };
                out.line(
                    2,
                    &format!("{}{carried},", name(&case.ident)),
                    &case.position,
                );
            }
        }
    }
    out.line(1, "}", at);
}

/// A function. `own` is the name of the resource, for a constructor.
fn function(out: &mut MappedText, depth: usize, function: &Function, own: &str) {
    out.docs(depth, &function.named);
    let param = |(named, param): &(Named, Param)| {
        let ty = match param {
            Param::Call => return None,
            Param::Value(ty) => of(ty),
            Param::Str => "string".to_owned(),
            Param::Slice(ty) => format!("list<{}>", of(ty)),
            Param::Borrow(resource) => format!("borrow<{}>", name(resource)),
            Param::Own(resource) => name(resource),
            Param::Stream(item, _) => stream_or_future("stream", item.as_ref()),
            Param::Future(item, _) => stream_or_future("future", item.as_ref()),
        };
        Some(format!("{}: {ty}", name(&named.ident)))
    };
    let params: Vec<_> = function.params.iter().filter_map(param).collect();
    let params = params.join(", ");
    let ok = function.ok.as_ref().map(|ok| match ok {
        Return::Value(ty) => of(ty),
        Return::Own(resource) => name(resource),
        Return::Stream(item) | Return::FallibleStream(item) => {
            stream_or_future("stream", item.as_ref())
        }
        Return::Future(item) => stream_or_future("future", item.as_ref()),
    });
    let result = match &function.error {
        None => ok,
        Some(error) => Some(result(ok, error.as_ref().map(of))),
    };
    let at = &function.named.position;
    if function.kind == FunctionKind::Constructor {
        let result = match &function.error {
            None => String::new(),
            Some(error) => format!(
                " -> {}",
                self::result(Some(own.to_owned()), error.as_ref().map(of))
            ),
        };
        return out.line(depth, &format!("constructor({params}){result};"), at);
    }
    let word = match (function.kind, function.is_async) {
        (FunctionKind::Static, true) => "static async func",
        (FunctionKind::Static, false) => "static func",
        (_, true) => "async func",
        (_, false) => "func",
    };
    let result = result.map_or(String::new(), |result| format!(" -> {result}"));
    let own = name(&function.named.ident);
    out.line(depth, &format!("{own}: {word}({params}){result};"), at);
}

/// The type of a stream or a future.
fn stream_or_future(word: &str, item: Option<&Type>) -> String {
    item.map_or(word.to_owned(), |item| format!("{word}<{}>", of(item)))
}

fn result(ok: Option<String>, error: Option<String>) -> String {
    match (ok, error) {
        (None, None) => "result".to_owned(),
        (Some(ok), None) => format!("result<{ok}>"),
        (ok, Some(error)) => format!("result<{}, {error}>", ok.as_deref().unwrap_or("_")),
    }
}

/// A type in WIT syntax.
fn of(ty: &Type) -> String {
    match ty {
        Type::Plain(name) => (*name).to_owned(),
        Type::BoxedStr => "string".to_owned(),
        Type::List(item) | Type::BoxedList(item) => format!("list<{}>", of(item)),
        Type::Array(item, count) => format!("list<{}, {count}>", of(item)),
        Type::Option(item) => format!("option<{}>", of(item)),
        Type::Result(ok, error) => result(ok.as_deref().map(of), error.as_deref().map(of)),
        Type::Tuple(items) => {
            let items: Vec<_> = items.iter().map(of).collect();
            format!("tuple<{}>", items.join(", "))
        }
        Type::Named(ident) | Type::Owned(ident) => name(ident),
        Type::OwnedStream(word, item) => stream_or_future(word, item.as_deref()),
    }
}

/// The policy file: the options in the attributes.
pub fn policy(api: &Api, link: &str) -> MappedText {
    let at = &api.service.position;
    let mut out = MappedText::new(at);
    out.line(
        0,
        &format!("{}{link}{MARK_END}", MARK.replace("//", "#")),
        at,
    );
    let bare =
        |ident: &str| super::names::kebab(ident).expect("names are checked when they are read");
    let interface = bare(&api.service.ident);
    let mut table = |key: String, options: &[(String, String)], from: &Position| {
        if !options.is_empty() {
            out.line(0, "", from);
            out.line(0, &format!("[{key}]"), from);
            for (key, value) in options {
                out.line(0, &format!("{key} = {value}"), from);
            }
        }
    };
    table(interface.clone(), &api.options, at);
    for function in &api.functions {
        let key = format!("{interface}.{}", bare(&function.named.ident));
        table(key, &function.options, &function.named.position);
    }
    for resource in &api.resources {
        let own = bare(&resource.named.ident);
        let lifecycle: Vec<_> = resource
            .functions
            .iter()
            .chain(&resource.destructor)
            .filter_map(|function| match (function.kind, function.is_async) {
                (FunctionKind::Constructor, true) => Some("constructor"),
                (FunctionKind::Destructor, _) => Some("destructor"),
                _ => None,
            })
            .map(|name| (name.to_owned(), "\"async\"".to_owned()))
            .collect();
        table(
            format!("{interface}.{own}"),
            &lifecycle,
            &resource.named.position,
        );
        for function in &resource.functions {
            let key = format!("{interface}.{own}.{}", bare(&function.named.ident));
            table(key, &function.options, &function.named.position);
        }
    }
    out
}
