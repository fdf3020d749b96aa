//! The classes of the client, of the resources and of the errors, and the interface of the host.

use super::Emitter;
use super::names::FIELD;
use super::source::{Doc, Source};
use crate::model::ResourceId;
use crate::plan::codec::At;
use crate::plan::names::Case;
use crate::plan::{Function, Parameter, ParameterKind, ResultKind};
use std::time::Duration;

impl Emitter<'_> {
    /// Writes the classes of the errors.
    pub fn exceptions(&self, js: &mut Source, ts: &mut Source) {
        for (payload, class) in &self.names.exceptions {
            let docs = self.plan.get(*payload).docs.trim();
            let gap = if docs.contains('\n') { "\n\n" } else { " " };
            let name = self.ty(*payload, false);
            let docs = format!("{docs}{gap}Its `payload` is a `{name}`.");
            let base = format!("ServiceError<{name}> {{}}");
            begin(docs.trim_start(), class, ["ServiceError {}", &base], js, ts);
            js.blank();
            ts.blank();
        }
    }

    /// Writes the interface of the host.
    pub fn host(&self, out: &mut Source) {
        let Some(host) = &self.plan.package.host else {
            return;
        };
        let docs = format!(
            "{}\n\nThe service calls these functions of its host.",
            host.docs.trim()
        );
        out.docs("", docs.trim_start());
        out.line_at(0, &format!("export interface {} {{", self.names.host));
        for function in &self.plan.imports {
            let (names, _) = self.names.locals(function);
            let parameters = function.parameters.iter().zip(names);
            let parameters = parameters.filter_map(|(parameter, name)| match parameter.kind {
                ParameterKind::Value(ty) => Some(format!("{name}: {}", self.ty(ty, false))),
                _ => None,
            });
            let ok = match function.ok {
                ResultKind::Value(ty) => self.ty(ty, true),
                _ => "void".to_owned(),
            };
            out.docs("  ", &self.docs(function));
            let name = FIELD.of(&function.function.name);
            let head = Doc::call(&name, parameters.map(Doc::from));
            out.statement(1, "", &head, &format!(": {ok} | Promise<{ok}>;"));
        }
        out.line_at(0, "}");
        out.blank();
    }

    /// Writes the classes of the client and of the resources, and their declarations.
    pub fn classes(&self, js: &mut Source, ts: &mut Source) {
        self.class("A client of the service.", None, js, ts);
        for (id, resource) in self.plan.package.resources.iter().enumerate() {
            self.class(&resource.docs, Some(ResourceId(id)), js, ts);
        }
    }

    fn class(&self, docs: &str, of: Option<ResourceId>, js: &mut Source, ts: &mut Source) {
        let functions = self.plan.functions.iter().enumerate();
        let mut methods = functions
            .filter(|(_, function)| function.resource() == of)
            .peekable();
        let (class, base) = match of {
            None => (&self.names.client, "Client {"),
            Some(id) if methods.peek().is_some() => (&self.names.resources[id.0], "Resource {"),
            Some(id) => {
                begin(
                    docs,
                    &self.names.resources[id.0],
                    ["Resource {}"; 2],
                    js,
                    ts,
                );
                return [js, ts].into_iter().for_each(Source::blank);
            }
        };
        begin(docs, class, [base; 2], js, ts);
        if of.is_none() {
            js.line_at(1, "static package = PACKAGE;");
            self.open(ts);
        }
        for (number, (index, function)) in methods.enumerate() {
            if number > 0 || of.is_none() {
                js.blank();
            }
            self.method(index, function, js, ts);
        }
        js.append("}\n\n");
        ts.append("}\n\n");
    }

    /// Declares the function that opens a client.
    fn open(&self, ts: &mut Source) {
        let mut docs = "Opens the service in the library at `path`.".to_owned();
        let mut parameters = vec![Doc::from("path: string")];
        if self.plan.package.host.is_some() {
            docs += " `host` has the functions that the service calls.";
            let options = format!("options?: {{ host?: {} | undefined }}", self.names.host);
            parameters.push(options.into());
        }
        ts.docs(
            "  ",
            &(docs + "\n@throws {VersionMismatch} If the library is incompatible."),
        );
        let open = Doc::call("static open", parameters);
        ts.statement(1, "", &open, &format!(": {};", self.names.client));
    }

    fn method(&self, index: usize, function: &Function<'_>, js: &mut Source, ts: &mut Source) {
        let name = &self.names.methods[index];
        let docs = self.docs(function);
        let (values, [options, w, at]) = self.names.locals(function);
        let parameters = function.written().zip(&values);

        js.docs("  ", &docs);
        let signature = values.iter().chain([&options]);
        let signature = signature.map(|name| name.as_str().into());
        js.statement(1, "", &Doc::call(name, signature), " {");
        let call = format!(
            "return call(this, {}, {options}",
            self.names.constants[index]
        );
        if values.is_empty() {
            js.line_at(2, &format!("{call});"));
        } else {
            js.line_at(2, &format!("{call}, ({w}, {at}) => {{"));
            for ((number, parameter), value) in parameters.clone() {
                let at = At::new(&at).plus(parameter.offset);
                js.statement(
                    3,
                    "",
                    &self.parameter(number, parameter, &w, &at, value),
                    ";",
                );
            }
            js.line_at(2, "});");
        }
        js.line_at(1, "}");

        ts.docs("  ", &docs);
        let required = self.plan.required(function);
        let signature = parameters.map(|((number, parameter), name)| {
            let mark = if number < required { "" } else { "?" };
            let ty = self.parameter_type(parameter.kind, number < required);
            format!("{name}{mark}: {ty}").into()
        });
        let class = match function.function.options.notice_interval_ns {
            0 => "CallOptions",
            _ => "NoticeOptions",
        };
        let options = format!("{options}?: {class}").into();
        let signature = signature.chain([options]);
        let result = format!(": Promise<{}>;", self.result(function));
        ts.statement(1, "", &Doc::call(name, signature), &result);
    }

    /// The statement that puts a parameter.
    fn parameter(
        &self,
        number: usize,
        parameter: &Parameter<'_>,
        w: &str,
        at: &At,
        value: &str,
    ) -> Doc {
        let name = format!("'{}'", Case::Camel.of(parameter.name));
        let mut arguments = vec![at.to_string(), value.to_owned(), name.clone()];
        let method = match parameter.kind {
            ParameterKind::Value(ty) => return self.put(ty, w, at, value, &name),
            ParameterKind::Resource { id, is_own } => {
                arguments.push(self.names.resources[id.0].clone());
                if is_own { "own" } else { "borrow" }
            }
            ParameterKind::Stream(index) => {
                let stream = &self.plan.upstreams[index];
                let element = self.names.sends[&stream.element].clone();
                arguments.extend([number.to_string(), element]);
                if stream.is_future { "future" } else { "stream" }
            }
        };
        let arguments = arguments.into_iter().map(Doc::from);
        Doc::call(&format!("{w}.{method}"), arguments)
    }

    /// The documentation of a function.
    fn docs(&self, function: &Function<'_>) -> String {
        let Function {
            function, error, ..
        } = function;
        let mut docs = function.docs.trim().to_owned();
        if function.options.notice_interval_ns > 0 {
            let interval = Duration::from_nanos(function.options.notice_interval_ns);
            docs += &format!("\n\n`onNotice` is called every {interval:?} while the call runs.");
        }
        if function.error.is_some() {
            docs += "\n@throws ";
            docs += &match error.map(|error| (error, self.names.exceptions.get(&error))) {
                None => "{ServiceError}".to_owned(),
                Some((_, Some(class))) => format!("{{{class}}}"),
                Some((error, None)) => {
                    let ty = self.ty(error, false);
                    format!("{{ServiceError}} Its `payload` is `{ty}`.")
                }
            };
        }
        docs.trim_start().to_owned()
    }
}

/// Begins a class in both files.
fn begin(docs: &str, class: &str, bases: [&str; 2], js: &mut Source, ts: &mut Source) {
    for (out, base) in [js, ts].into_iter().zip(bases) {
        out.docs("", docs);
        out.line_at(0, &format!("export class {class} extends {base}"));
    }
}
