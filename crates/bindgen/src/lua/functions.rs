//! The descriptions of the functions, of the host imports and of the elements of streams, and the
//! classes of the client and of the resources.

use super::Emitter;
use super::dialect::braces;
use super::names::{NAME, locals};
use crate::model::{ResourceId, is_destructor};
use crate::plan::codec::{At, Codec, Dialect, Leaf};
use crate::plan::source::Source;
use crate::plan::{Function, Handle, ParameterKind, ResultKind, Stream, TypeIndex};
use std::collections::BTreeSet;

/// A function with more parameters passes them in a table: see `call.lua`.
const MOST: usize = 6;

impl Emitter<'_> {
    /// Declares the classes.
    pub fn resources(&self, out: &mut Source) {
        let resources = &self.plan.package.resources;
        if resources.is_empty() {
            return;
        }
        out.open("local classes = {");
        for resource in resources {
            let (key, name) = (NAME.of(&resource.name), &resource.name);
            out.docs("", &resource.docs);
            out.line(&format!("---@class {}.{key}", self.plan.package.name));
            out.line(&format!("{key} = thalweg.class(\"{name}\"),"));
        }
        out.close("}");
    }

    /// Describes the elements of streams and futures: those that the service writes, and then
    /// those that the caller writes.
    pub fn elements(&self, out: &mut Source) {
        let tables = [
            ("elements", &self.plan.streams, false),
            ("sends", &self.plan.upstreams, true),
        ];
        for (table, streams, is_sent) in tables {
            let mut seen = BTreeSet::new();
            if streams.is_empty() {
                continue;
            }
            for stream in streams {
                let key = NAME.of(self.plan.stem_of_element(stream));
                if !seen.insert(key.clone()) {
                    continue;
                }
                out.open(&format!("{table}.{key} = {{"));
                let size = stream.element.map_or(0, |ty| self.plan.get(ty).size);
                out.line(&format!("size = {size},"));
                match is_sent {
                    true => self.sent_element(stream, out),
                    false => self.get_element(stream.element, out),
                }
                out.close("}");
            }
            out.blank();
        }
    }

    fn sent_element(&self, stream: &Stream, out: &mut Source) {
        out.line(&format!("layout = {:#010x},", stream.hash as u32));
        if let Some(ty) = stream.element {
            self.lua
                .function("put = ", "w, at, element", ",", out, |out| {
                    Codec::new(self.plan, self.lua, out).put(ty, &At::new("at"), "element");
                });
        }
    }

    /// An element that is an option without a value would end a loop, so it is `null`.
    fn get_element(&self, ty: Option<TypeIndex>, out: &mut Source) {
        let Some(ty) = ty else {
            return out.line("get = function() return true end,");
        };
        if self.lua.has_routine(ty) {
            return out.line(&format!("get = get.{},", self.lua.key(ty)));
        }
        self.lua.function("get = ", "m, at", ",", out, |out| {
            let value = Codec::new(self.plan, self.lua, out).get(ty, &At::new("at"));
            match self.plan.is_option(ty) {
                true => out.line(&format!("return {value} == nil and null or {value}")),
                false => out.line(&format!("return {value}")),
            }
        });
    }

    /// Describes the functions, in the order of their numbers.
    pub fn functions(&self, out: &mut Source) {
        for (function, key) in self.plan.functions.iter().zip(&self.names.keys) {
            out.open(&format!("methods.{key} = package:method {{"));
            self.signature(function, out);
            let (size, _) = function.function.params_layout;
            if size > 0 {
                out.line(&format!("params = {size},"));
            }
            match self.plan.handles(function) {
                Some(0) => {}
                Some(count) => out.line(&format!("handles = {count},")),
                None => out.line("handles = math.huge,"),
            }
            if is_destructor(function.function) {
                out.line("destroys = true,");
            }
            self.put(function, out);
            self.ok(function, out);
            if function.function.error.is_some() {
                self.message("error", function.error, out);
            }
            out.close("}");
            out.blank();
        }
    }

    /// The function that puts the parameters.
    fn put(&self, function: &Function<'_>, out: &mut Source) {
        let (names, _) = locals(function);
        if names.is_empty() {
            return;
        }
        let parameters = match names.len() > MOST {
            true => "w, at, values".to_owned(),
            false => format!("w, at, {}", names.join(", ")),
        };
        self.lua.function("put = ", &parameters, ",", out, |out| {
            if names.len() > MOST {
                let (all, count) = (names.join(", "), names.len());
                out.line(&format!("local {all} = unpack(values, 1, {count})"));
            }
            let mut codec = Codec::new(self.plan, self.lua, out);
            for ((number, parameter), name) in function.written().zip(&names) {
                let at = At::new("at").plus(parameter.offset);
                let text = NAME.of(parameter.name);
                match parameter.kind {
                    ParameterKind::Value(ty) => codec.put(ty, &at, name),
                    ParameterKind::Resource { id, is_own } => {
                        let method = if is_own { "own" } else { "borrow" };
                        let class = self.lua.handle(Handle::Own(id));
                        codec.line(&format!(
                            "w:{method}({at}, {name}, classes.{class}, \"{text}\")"
                        ));
                    }
                    ParameterKind::Stream(index) => {
                        let stream = &self.plan.upstreams[index];
                        let method = if stream.is_future { "future" } else { "stream" };
                        let element = NAME.of(self.plan.stem_of_element(stream));
                        codec.line(&format!(
                            "w:{method}({at}, {name}, {number}, sends.{element}, \"{text}\")"
                        ));
                    }
                }
            }
        });
    }

    /// How the result is read.
    fn ok(&self, function: &Function<'_>, out: &mut Source) {
        let handle = match function.ok {
            ResultKind::Nothing => return,
            ResultKind::Value(ty) => return self.message("ok", Some(ty), out),
            ResultKind::Resource(id) => Handle::Own(id),
            ResultKind::Stream(index) => Handle::Stream(index),
        };
        if let Handle::Stream(index) = handle
            && self.plan.streams[index].is_future
        {
            out.line("is_future = true,");
        }
        let get = self.lua.get(Leaf::Handle(handle), &At::new("at"));
        out.open("ok = {");
        out.line("size = 4,");
        out.line("check = function(m, at) m:check_handle(at) end,");
        out.line(&format!("get = function(m, at) return {get} end,"));
        out.close("},");
    }

    /// How a message with a value of this type is checked and read.
    fn message(&self, name: &str, ty: Option<TypeIndex>, out: &mut Source) {
        let Some(ty) = ty else {
            return out.line(&format!("{name} = {{ size = 0, get = function() end }},"));
        };
        let planned = self.plan.get(ty);
        let at = At::new("at");
        out.open(&format!("{name} = {{"));
        out.line(&format!("size = {},", planned.size));
        if self.lua.has_routine(ty) {
            let key = self.lua.key(ty);
            if !planned.is_trivial {
                out.line(&format!("check = check.{key},"));
            }
            out.line(&format!("get = get.{key},"));
            return out.close("},");
        }
        if !planned.is_trivial {
            self.lua.function("check = ", "m, at", ",", out, |out| {
                Codec::new(self.plan, self.lua, out).check(ty, &at);
            });
        }
        self.lua.function("get = ", "m, at", ",", out, |out| {
            let mut codec = Codec::new(self.plan, self.lua, out);
            let value = codec.get(ty, &at);
            codec.line(&format!("return {value}"));
        });
        out.close("},");
    }

    /// Describes the host imports, in the order of their numbers.
    pub fn imports(&self, out: &mut Source) {
        for function in &self.plan.imports {
            out.open("package:import {");
            self.signature(function, out);
            let field = NAME.of(&function.function.name);
            out.line(&format!("field = \"{field}\","));
            out.line(&format!("arity = {},", function.parameters.len()));
            self.arguments(function, out);
            for (name, ty) in [
                (
                    "ok",
                    match function.ok {
                        ResultKind::Value(ty) => Some(ty),
                        _ => None,
                    },
                ),
                ("error", function.error),
            ] {
                let Some(ty) = ty else { continue };
                out.open(&format!("{name} = {{"));
                out.line(&format!("size = {},", self.plan.get(ty).size));
                self.lua
                    .function("put = ", "w, at, value", ",", out, |out| {
                        Codec::new(self.plan, self.lua, out).put(ty, &At::new("at"), "value");
                    });
                out.close("},");
            }
            out.close("}");
            out.blank();
        }
    }

    /// How the arguments of a host import are read, as a table.
    fn arguments(&self, function: &Function<'_>, out: &mut Source) {
        let (size, _) = function.function.params_layout;
        let values = function.parameters.iter();
        let values = values.filter_map(|parameter| match parameter.kind {
            ParameterKind::Value(ty) => Some((ty, At::new("at").plus(parameter.offset))),
            _ => None,
        });
        out.open("arguments = {");
        out.line(&format!("size = {size},"));
        if values.clone().any(|(ty, _)| !self.plan.get(ty).is_trivial) {
            self.lua.function("check = ", "m, at", ",", out, |out| {
                let mut codec = Codec::new(self.plan, self.lua, out);
                values.clone().for_each(|(ty, at)| codec.check(ty, &at));
            });
        }
        let parameters = if function.parameters.is_empty() {
            ""
        } else {
            "m, at"
        };
        self.lua.function("get = ", parameters, ",", out, |out| {
            let mut codec = Codec::new(self.plan, self.lua, out);
            let values: Vec<_> = values.map(|(ty, at)| codec.get(ty, &at)).collect();
            codec.line(&format!("return {}", braces(&values)));
        });
        out.close("},");
    }

    /// The name, the hashes and the types of a function.
    fn signature(&self, function: &Function<'_>, out: &mut Source) {
        let function = function.function;
        let of = &function.hashes;
        let hashes = [of.params, of.ok, of.error, of.element];
        let hashes = hashes.map(|number| format!("{number:#x}ULL"));
        let types = self.plan.descriptions(function).into_iter();
        out.line(&format!("name = \"{}\",", function.full_name));
        out.line(&format!("hashes = {},", braces(&hashes)));
        out.open("types = {");
        types.for_each(|text| out.line(&format!("\"{text}\",")));
        out.close("},");
    }

    /// Writes the methods of the client and of the resources, and the module.
    pub fn classes(&self, out: &mut Source) {
        let docs = "A client of the service.";
        out.docs("", docs);
        out.line(&format!("---@class {}.client", self.plan.package.name));
        out.line("local client = package.client_class");
        out.blank();
        for (index, function) in self.plan.functions.iter().enumerate() {
            self.method(index, function, out);
        }
        let host = match self.plan.package.host {
            Some(_) => " `options.host` has the functions that the service calls.",
            None => "",
        };
        out.line("local M = { package = package }");
        out.blank();
        out.docs(
            "",
            &format!("Opens a client of the service in the library at `path`.{host}"),
        );
        out.line(&format!(
            "---@return {}.client?, thalweg.Error?",
            self.plan.package.name
        ));
        out.open("function M.open(path, options)");
        out.line("return package:open(path, options)");
        out.close("end");
        out.blank();
        out.line("return M");
    }

    fn method(&self, index: usize, function: &Function<'_>, out: &mut Source) {
        let class = match function.resource() {
            Some(ResourceId(id)) => {
                format!("classes.{}", NAME.of(&self.plan.package.resources[id].name))
            }
            None => "client".to_owned(),
        };
        let (names, options) = locals(function);
        let key = &self.names.keys[index];
        let mut arguments = vec!["self".to_owned(), format!("methods.{key}"), options.clone()];
        match names.len() > MOST {
            true => arguments.push(braces(&names)),
            false => arguments.extend(names.iter().cloned()),
        }
        let parameters = [names.as_slice(), std::slice::from_ref(&options)]
            .concat()
            .join(", ");
        out.docs("", function.function.docs.trim());
        self.annotations(function, &names, &options, out);
        let name = &self.names.methods[index];
        out.open(&format!("function {class}:{name}({parameters})"));
        out.line(&format!("return call({})", arguments.join(", ")));
        out.close("end");
        out.blank();
    }
}
