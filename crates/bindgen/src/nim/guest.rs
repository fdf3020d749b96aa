//! The module of a guest: the types, and a template that exports the procs of the guest.

use super::Emitter;
use super::client::has_routine;
use super::names::quoted;
use crate::model::Scalar;
use crate::plan::codec::{At, Codec, Operation};
use crate::plan::source::Source;
use crate::plan::{Function, Kind, ParameterKind, ResultKind, TypeIndex};
use std::collections::BTreeSet;

impl Emitter<'_> {
    /// Whether values have the same bytes in memory: records of numbers without padding.
    pub fn is_copied(&self, ty: TypeIndex) -> bool {
        let planned = self.plan.get(ty);
        match &planned.kind {
            Kind::Scalar(scalar) => !matches!(scalar, Scalar::Bool | Scalar::Char),
            Kind::Array(item, _) => self.is_copied(*item),
            Kind::Record(members) if planned.id.is_some() => {
                let sizes = members.iter().map(|member| self.plan.get(member.ty).size);
                sizes.sum::<u32>() == planned.size
                    && members.iter().all(|member| self.is_copied(member.ty))
            }
            _ => false,
        }
    }

    /// The types that results, errors and records of streams have.
    fn answered(&self) -> BTreeSet<TypeIndex> {
        let types = self.plan.functions.iter().flat_map(|function| {
            let ok = match function.ok {
                ResultKind::Value(ty) => Some(ty),
                ResultKind::Stream(index) => self.plan.streams[index].element,
                _ => None,
            };
            ok.into_iter().chain(function.error)
        });
        types.collect()
    }

    /// Writes the procs that put results, unless these have routines.
    pub fn putters(&self, out: &mut Source) {
        let has_none = |ty: &TypeIndex| !has_routine(self.plan.get(*ty));
        for ty in self.answered().into_iter().filter(has_none) {
            let name = self.item(Operation::Put, Some(ty));
            out.open(&format!(
                "proc {name}(args: var Writer, at: uint32, value: {}) =",
                self.unless_generic(ty)
            ));
            Codec::new(self.plan, self, out).put(ty, &At::new("at"), "value");
            out.dedent();
            out.blank();
        }
    }

    /// The type of a value in the head of a proc. Nim 1.6 refuses some generic types there, for example
    /// `Option[(Holder[Timer], string)]`.
    fn unless_generic(&self, ty: TypeIndex) -> String {
        match self.generics(Some(ty)) {
            "" => self.ty(ty),
            _ => "auto".to_owned(),
        }
    }

    /// Writes the procs that encode errors.
    pub fn errors(&self, out: &mut Source) {
        let functions = || self.plan.functions.iter();
        let errors: BTreeSet<_> = functions().filter_map(|function| function.error).collect();
        let has_empty = functions().any(|one| one.function.error == Some(None));
        let errors = errors.into_iter().map(Some);
        for error in errors.chain(has_empty.then_some(None)) {
            out.open(&format!(
                "proc {}(args: var Writer, layout: uint64, raised: ref Exception): bool =",
                self.encoder(error)
            ));
            out.line(&format!(
                "args.encodeError{}(layout, raised, {})",
                self.with_objects(error),
                self.value(error)
            ));
            out.dedent();
            out.blank();
        }
    }

    /// Writes the array of these procs, one for each function.
    fn error_encoders(&self, out: &mut Source) {
        let functions = || self.plan.functions.iter();
        let encoders = functions().map(|function| match function.function.error {
            Some(_) => self.encoder(function.error),
            None => "nil".to_owned(),
        });
        let encoders: Vec<_> = encoders.collect();
        out.line(&format!(
            "var encodeErrors: array[{}, EncodeError] = [EncodeError({})]",
            encoders.len(),
            encoders.join("), EncodeError(")
        ));
    }

    fn encoder(&self, error: Option<TypeIndex>) -> String {
        let stem = error.map_or("Nothing", |ty| self.names.stems[ty.0].as_str());
        format!("encodeError{stem}{}", self.generics(error))
    }

    fn generics(&self, ty: Option<TypeIndex>) -> &str {
        ty.map_or("", |ty| &self.names.generics[ty.0])
    }

    /// What the names of procs for values with resources end with.
    fn with_objects(&self, ty: Option<TypeIndex>) -> &'static str {
        match self.generics(ty) {
            "" => "",
            _ => "WithObjects",
        }
    }

    fn size(&self, ty: Option<TypeIndex>) -> u32 {
        ty.map_or(0, |ty| self.plan.get(ty).size)
    }

    /// Writes the template that exports the guest.
    pub fn export(&self, out: &mut Source) {
        let resources = &self.names.resources;
        let types = std::iter::once("Service".to_owned()).chain(resources.iter().cloned());
        let types: Vec<_> = types.collect();
        out.open(&format!(
            "template exportGuest*({}: untyped) =",
            types.join(", ")
        ));
        out.docs("", &self.export_docs());
        for (number, function) in self.plan.functions.iter().enumerate() {
            out.append(&format!("  ## - `{}`\n", self.wanted(number, function)));
        }
        out.open("proc serveCall(call: Incoming, self: Service) {.nimcall.} =");
        out.line("template m: untyped = call.arguments");
        out.line("let root {.used.} = call.root");
        out.line("case call.number");
        for (number, function) in self.plan.functions.iter().enumerate() {
            out.open(&format!("of {number}: # {}", function.function.full_name));
            self.serve(number, function, out);
            out.dedent();
        }
        out.line("else: discard");
        out.dedent();
        out.open("proc dropObject(kind: uint32, number: uint64) {.nimcall.} =");
        if resources.is_empty() {
            out.line("discard");
        } else {
            out.line("case kind");
            for (kind, resource) in resources.iter().enumerate() {
                out.line(&format!("of {kind}: release({resource}, number)"));
            }
            out.line("else: discard");
        }
        out.dedent();
        self.error_encoders(out);
        out.line("exportLibrary(Service, package, encodeErrors, serveCall, dropObject)");
        out.dedent();
    }

    fn export_docs(&self) -> String {
        let mut docs =
            "Exports the guest. Call it at the end of the main module, with the `ref` types \
            of the guest: `Service` is the state of a client"
                .to_owned();
        for (name, resource) in self
            .names
            .resources
            .iter()
            .zip(&self.plan.package.resources)
        {
            docs += &format!(", `{name}` implements the resource `{}`", resource.name);
        }
        docs += ". Its procs have the pragma `{.thalweg.}`:";
        docs
    }

    /// The head of the proc that implements a function.
    fn wanted(&self, number: usize, function: &Function<'_>) -> String {
        let receiver = match function.resource() {
            Some(id) => self.names.resources[id.0].as_str(),
            None => "Service",
        };
        let mut list = format!("self: {receiver}");
        let names = self.names.parameters(function);
        for ((_, parameter), name) in function.written().zip(&names) {
            list += &format!(", {name}: {}", self.parameter_type(parameter));
        }
        let mut ok = match function.ok {
            ResultKind::Value(ty) => self.ty(ty),
            ResultKind::Resource(id) => self.names.resources[id.0].clone(),
            ResultKind::Stream(index) => {
                let element = self.element(self.plan.streams[index].element);
                list += &format!(", {}: RecordWriter[{element}]", self.writer_name(&names));
                String::new()
            }
            ResultKind::Nothing => String::new(),
        };
        let is_stream = matches!(function.ok, ResultKind::Stream(_));
        let mut parameters = function.parameters.iter();
        let reads = parameters.any(|one| matches!(one.kind, ParameterKind::Stream(_)));
        let is_async = function.function.is_async || is_stream || reads;
        if is_async {
            ok = format!("Future[{}]", if ok.is_empty() { "void" } else { &ok });
        }
        let pragmas = if is_async {
            "async, thalweg"
        } else {
            "thalweg"
        };
        let ok = if ok.is_empty() { ok } else { format!(": {ok}") };
        let name = quoted(&self.names.functions[number]);
        format!("proc {name}({list}){ok} {{.{pragmas}.}}")
    }

    /// The name of the parameter for the writer of a stream.
    fn writer_name(&self, parameters: &[String]) -> &'static str {
        let is_taken = |name: &&str| parameters.iter().any(|one| one == name);
        let all = ["writer", "recordWriter", "streamWriter"];
        all.into_iter()
            .find(|name| !is_taken(name))
            .unwrap_or("theWriter")
    }

    /// Writes the code that serves a function.
    fn serve(&self, number: usize, function: &Function<'_>, out: &mut Source) {
        let (serve, answer) = match function.ok {
            ResultKind::Nothing => ("serveValue".to_owned(), self.value(None)),
            ResultKind::Value(ty) => {
                let serve = format!("serveValue{}", self.with_objects(Some(ty)));
                (serve, self.value(Some(ty)))
            }
            ResultKind::Resource(id) => (
                "serveObject".to_owned(),
                format!("{}, {}", self.names.resources[id.0], id.0),
            ),
            ResultKind::Stream(index) => {
                let element = self.plan.streams[index].element;
                ("serveStream".to_owned(), self.value(element))
            }
        };
        let receiver = match function.resource() {
            Some(_) => "nil",
            None => "self",
        };
        let name = &function.function.full_name;
        out.open(&format!("call.{serve}(\"{name}\","));
        // Appended, because lines must not be broken in a text.
        out.append(&format!("        \"{}\",\n", self.wanted(number, function)));
        let made = self.made(number, function);
        out.line(&format!("{answer}, {receiver},"));
        out.line(&format!("{made})"));
        out.dedent();
    }

    /// How a value is put: its type, its size, and the proc.
    fn value(&self, ty: Option<TypeIndex>) -> String {
        let put = self.item(Operation::Put, ty);
        format!("{}, {}, {put}", self.element(ty), self.size(ty))
    }

    /// The call of the proc that implements a function.
    fn made(&self, number: usize, function: &Function<'_>) -> String {
        let arguments = function.parameters.iter().map(|parameter| {
            let at = At::new("root").plus(parameter.offset);
            match parameter.kind {
                ParameterKind::Value(ty) => self
                    .expression(ty, &at)
                    .unwrap_or_else(|| self.got(&self.item(Operation::Get, Some(ty)), ty, &at)),
                ParameterKind::Resource { id, is_own } => {
                    let get = if is_own { "taken" } else { "borrowed" };
                    format!("call.{get}({at}, {}, {})", id.0, self.names.resources[id.0])
                }
                ParameterKind::Stream(index) => {
                    let stream = &self.plan.upstreams[index];
                    let open = ["openStream", "openFuture"][usize::from(stream.is_future)];
                    let element = self.element(stream.element);
                    let get = self.item(Operation::Get, stream.element);
                    format!("{open}[{element}](call, {at}, {get})")
                }
            }
        });
        let mut arguments: Vec<_> = arguments.collect();
        if let ResultKind::Stream(_) = function.ok {
            arguments.push(
                self.writer_name(&self.names.parameters(function))
                    .to_owned(),
            );
        }
        let name = quoted(&self.names.functions[number]);
        format!("{name}({})", arguments.join(", "))
    }

    /// The expression that gets a value. `None`: that takes statements.
    fn expression(&self, ty: TypeIndex, at: &At) -> Option<String> {
        let mut statements = Source::new(&super::FORMAT);
        let value = Codec::new(self.plan, self, &mut statements).get(ty, at);
        statements.finish().trim().is_empty().then_some(value)
    }

    /// Writes the procs that get arguments, unless an expression does, and those that get elements of
    /// streams and the answers of the host, unless these have routines.
    pub fn getters(&self, out: &mut Source) {
        let parameters = self.plan.functions.iter().flat_map(|one| &one.parameters);
        let values = parameters.filter_map(|parameter| match parameter.kind {
            ParameterKind::Value(ty) => Some(ty),
            _ => None,
        });
        let is_written = |ty: &TypeIndex| self.expression(*ty, &At::new("at")).is_none();
        let mut values: BTreeSet<_> = values.filter(is_written).collect();
        let elements = self.plan.upstreams.iter().filter_map(|one| one.element);
        let answers = self.plan.imports.iter().flat_map(|import| {
            let ok = match import.ok {
                ResultKind::Value(ty) => Some(ty),
                _ => None,
            };
            ok.into_iter().chain(import.error)
        });
        let items = elements.chain(answers);
        values.extend(items.filter(|ty| !has_routine(self.plan.get(*ty))));
        for ty in values {
            let name = self.item(Operation::Get, Some(ty));
            let (generics, value) = (&self.names.generics[ty.0], self.unless_generic(ty));
            out.open(&format!(
                "proc {name}*{generics}(m: Message, at: uint32): {value} ="
            ));
            let value = Codec::new(self.plan, self, out).get(ty, &At::new("at"));
            out.line(&value);
            out.dedent();
            out.blank();
        }
    }
}
