//! The descriptions of the package, of its functions and of the host imports.

use super::Emitter;
use super::names::FIELD;
use super::source::{Doc, Source, array, object};
use crate::model::is_destructor;
use crate::plan::codec::{At, Operation};
use crate::plan::{Function, ParameterKind, ResultKind, TypeIndex};

impl Emitter<'_> {
    /// Describes the package.
    pub fn package(&self, out: &mut Source) {
        let package = self.plan.package;
        let name = format!("'{}:{}'", package.namespace, package.name);
        let mut arguments = vec![
            name,
            format!("'{}'", package.version),
            format!("{:#x}n", package.layout),
        ];
        arguments.extend(
            package
                .host
                .as_ref()
                .map(|host| format!("{:#x}n", host.layout)),
        );
        let value = Doc::call("new Package", arguments.into_iter().map(Doc::from));
        out.statement(0, "const PACKAGE = ", &value, ";");
        out.blank();
    }

    /// Describes the functions, in the order of their numbers.
    pub fn functions(&self, out: &mut Source) {
        for (function, name) in self.plan.functions.iter().zip(&self.names.constants) {
            let mut properties = self.signature(function);
            match self.plan.handles(function) {
                Some(0) => {}
                Some(count) => properties.push(format!("handles: {count}").into()),
                None => properties.push("handles: Infinity".into()),
            }
            if is_destructor(function.function) {
                properties.push("destroys: true".into());
            }
            properties.extend(size(function));
            properties.extend(self.ok(function).map(|ok| ok.after("ok: ")));
            properties.extend(function.error.map(|error| {
                let class = self.names.exceptions.get(&error);
                let class = class.map(|class| format!("class: {class}").into());
                let message = self.message(Operation::Get, Some(error)).into_iter();
                object(message.chain(class)).after("error: ")
            }));
            described(
                &format!("const {name} = PACKAGE.method({{"),
                &properties,
                out,
            );
        }
    }

    /// Describes the host imports, in the order of their numbers.
    pub fn imports(&self, out: &mut Source) {
        for function in &self.plan.imports {
            let mut properties = self.signature(function);
            let property = FIELD.of(&function.function.name);
            properties.push(format!("property: '{property}'").into());
            properties.extend(size(function));
            let values = function.parameters.iter().filter_map(|one| match one.kind {
                ParameterKind::Value(ty) => {
                    Some(self.get(ty, "r", &At::new("at").plus(one.offset)))
                }
                _ => None,
            });
            properties.push(match function.parameters.is_empty() {
                true => "arguments: () => []".into(),
                false => array(values).after("arguments: (r, at) => "),
            });
            if let ResultKind::Value(ty) = function.ok {
                properties.push(self.whole(Operation::Put, ty).after("ok: "));
            }
            if let Some(error) = function.error {
                properties.push(self.whole(Operation::Put, error).after("error: "));
            }
            described("PACKAGE.hostImport({", &properties, out);
        }
    }

    /// The name, the hashes and the types of a function.
    fn signature(&self, function: &Function<'_>) -> Vec<Doc> {
        let function = function.function;
        let of = &function.hashes;
        let hashes = [of.params, of.ok, of.error, of.element];
        let types = self.plan.descriptions(function).into_iter();
        vec![
            format!("name: '{}'", function.full_name).into(),
            array(hashes.map(|number| format!("{number:#x}n").into())).after("hashes: "),
            array(types.map(|text| format!("'{text}'").into())).after("types: "),
        ]
    }

    /// How the result is read.
    fn ok(&self, function: &Function<'_>) -> Option<Doc> {
        let get = match function.ok {
            ResultKind::Nothing => return None,
            ResultKind::Value(ty) => return Some(self.whole(Operation::Get, ty)),
            ResultKind::Resource(id) => {
                format!("{}.read(r, at)", self.names.resources[id.0]).into()
            }
            ResultKind::Stream(index) => self.get_stream(index, "r", &At::new("at")),
        };
        Some(object(["size: 4".into(), get.after("get: (r, at) => ")]))
    }

    /// How a whole message is put or got: `{ size: 4, get: getU32 }`.
    fn whole(&self, operation: Operation, ty: TypeIndex) -> Doc {
        object(self.message(operation, Some(ty)))
    }
}

/// The size of the record of the parameters.
fn size(function: &Function<'_>) -> Option<Doc> {
    let (size, _) = function.function.params_layout;
    (size > 0).then(|| format!("params: {size}").into())
}

/// Writes a call whose argument is an object of several lines.
fn described(head: &str, properties: &[Doc], out: &mut Source) {
    out.line_at(0, head);
    for property in properties {
        out.statement(1, "", property, ",");
    }
    out.line_at(0, "});");
    out.blank();
}
