//! The package, the functions and the host imports.

use super::Emitter;
use super::names::quoted;
use crate::model::{Host, is_destructor};
use crate::plan::codec::{At, Codec, Dialect, Leaf, Operation};
use crate::plan::source::Source;
use crate::plan::{Function, Handle, Kind, Parameter, ParameterKind, ResultKind, Type, TypeIndex};
use std::collections::BTreeSet;
use std::time::Duration;

impl Emitter<'_> {
    fn codec<'c>(&'c self, out: &'c mut Source) -> Codec<'c> {
        Codec::new(self.plan, self, out)
    }

    /// Describes the package.
    pub fn package(&self, out: &mut Source) {
        let package = self.plan.package;
        let (namespace, name, version) = (&package.namespace, &package.name, &package.version);
        let imports = package.host.as_ref().map_or(0, |host| host.layout);
        let layout = package.layout;
        out.line(&format!(
            "let package = newPackage(\"{namespace}:{name}\", \"{version}\", {layout:#x}'u64, {imports:#x}'u64, ["
        ));
        self.signatures(&self.plan.functions, out);
        out.line("], [");
        self.signatures(&self.plan.imports, out);
        out.line("])");
        out.blank();
    }

    fn signatures(&self, functions: &[Function<'_>], out: &mut Source) {
        let entries = functions.iter().map(|Function { function, .. }| {
            let (name, of) = (&function.full_name, &function.hashes);
            let hashes = [of.params, of.ok, of.error, of.element];
            let hashes = hashes.map(|hash| format!("{hash:#x}'u64")).join(", ");
            let types = self.plan.descriptions(function).join("\\n");
            format!("  (\"{name}\", {hashes},\n    \"{types}\")")
        });
        let entries: Vec<_> = entries.collect();
        if !entries.is_empty() {
            out.append(&(entries.join(",\n") + "\n"));
        }
    }

    /// The proc that gets or puts an element.
    pub fn item(&self, operation: Operation, element: Option<TypeIndex>) -> String {
        let name = |word: &str, rest: &str| match operation {
            Operation::Put => format!("put{word}{rest}"),
            _ => format!("get{word}{rest}"),
        };
        match element {
            None => name("Nothing", ""),
            Some(ty) if has_routine(self.plan.get(ty)) => name(&self.names.stems[ty.0], ""),
            Some(ty) => name("Item", &self.names.stems[ty.0]),
        }
    }

    /// Writes the procs that get and put the elements of streams, unless these have routines. First
    /// only their heads, because routines use them and they use routines.
    pub fn items(&self, is_head: bool, out: &mut Source) {
        let (streams, upstreams) = (&self.plan.streams, &self.plan.upstreams);
        for (operation, streams) in [(Operation::Get, streams), (Operation::Put, upstreams)] {
            let elements: BTreeSet<_> = streams.iter().filter_map(|one| one.element).collect();
            let has_none = |ty: &TypeIndex| !has_routine(self.plan.get(*ty));
            for ty in elements.into_iter().filter(has_none) {
                let (name, value) = (self.item(operation, Some(ty)), self.ty(ty));
                let head = match operation {
                    Operation::Put => {
                        format!("proc {name}(args: var Writer, at: uint32, value: {value})")
                    }
                    _ => format!("proc {name}(m: Message, at: uint32): {value}"),
                };
                if is_head {
                    out.line(&head);
                    continue;
                }
                out.open(&format!("{head} ="));
                let at = At::new("at");
                if operation == Operation::Put {
                    self.codec(out).put(ty, &at, "value");
                } else {
                    let value = self.codec(out).get(ty, &at);
                    out.line(&value);
                }
                end(out);
            }
        }
    }

    /// Writes the procs that check and read results and errors.
    pub fn readers(&self, out: &mut Source) {
        let functions = self.plan.functions.iter();
        let values = functions.clone().filter_map(|function| match function.ok {
            ResultKind::Value(ty) => Some(ty),
            _ => None,
        });
        let errors: BTreeSet<_> = functions.filter_map(|function| function.error).collect();
        let roots: BTreeSet<_> = values.chain(errors.iter().copied()).collect();
        for ty in roots {
            let (name, size) = (self.ty(ty), self.plan.get(ty).size);
            out.open(&format!(
                "proc read{}(m: var Message, layout: uint64): {name} =",
                self.names.stems[ty.0]
            ));
            out.line(&format!("let root = m.open(layout, {size})"));
            let root = At::new("root");
            let mut codec = self.codec(out);
            codec.check(ty, &root);
            codec.line("if not m.close(): return");
            let value = codec.get(ty, &root);
            out.line(&value);
            end(out);
        }
        for ty in errors {
            let stem = &self.names.stems[ty.0];
            out.open(&format!(
                "proc fail{stem}(m: var Message, layout: uint64, text: string): ref ThalwegError ="
            ));
            out.line(&format!("newServiceError(read{stem}(m, layout), text)"));
            end(out);
        }
        let mut resources = BTreeSet::new();
        for (number, function) in self.plan.functions.iter().enumerate() {
            let (value, ty) = match function.ok {
                ResultKind::Resource(id) if resources.insert(id.0) => {
                    let get = self.get(Leaf::Handle(Handle::Own(id)), &At::new("root"));
                    (get, self.names.resources[id.0].clone())
                }
                ResultKind::Stream(index) => {
                    let ending = format!(", {number}, {}", self.failure(function));
                    let get = self.get_stream(index, &At::new("root"), &ending);
                    (get, self.stream(&self.plan.streams[index]))
                }
                _ => continue,
            };
            let reader = self.reader(number, function);
            out.open(&format!(
                "proc {reader}(m: var Message, layout: uint64): {ty} ="
            ));
            out.line("let root = m.open(layout, 4)");
            out.line("m.checkHandle(root)");
            out.line(&format!("if m.close(): result = {value}"));
            end(out);
        }
    }

    /// The proc that reads the result of a function.
    fn reader(&self, number: usize, function: &Function<'_>) -> String {
        match function.ok {
            ResultKind::Nothing => "readVoid".to_owned(),
            ResultKind::Value(ty) => format!("read{}", self.names.stems[ty.0]),
            ResultKind::Resource(id) => format!("read{}Resource", self.names.resources[id.0]),
            ResultKind::Stream(_) => format!("readStream{number}"),
        }
    }

    /// The proc that reads the error of a function.
    fn failure(&self, function: &Function<'_>) -> String {
        match (function.error, &function.function.error) {
            (Some(ty), _) => format!("fail{}", self.names.stems[ty.0]),
            (None, Some(_)) => "failNothing".to_owned(),
            (None, None) => "nil".to_owned(),
        }
    }

    /// Writes the procs that open a client.
    pub fn open(&self, out: &mut Source) {
        out.template(
            "proc open*(C: typedesc[@client@], path: string, capacity: Natural = 256): @client@ =
  ## Opens the library at `path`, and a client with a new instance. `capacity` is the number of calls
  ## that may be outstanding, 1 to 65,536.
  openClient(@client@, path, package, capacity)

proc attach*(C: typedesc[@client@], handle: ClientHandle, capacity: Natural = 256): @client@ =
  ## Opens a further client of an instance, for another thread.
  attachClient(@client@, handle, package, capacity)",
            &[("client", &self.names.client)],
        );
    }

    /// Writes the functions.
    pub fn functions(&self, out: &mut Source) {
        for (number, function) in self.plan.functions.iter().enumerate() {
            self.writers(number, function, out);
            self.function(number, function, out);
        }
    }

    /// The name and type of the first parameter.
    fn receiver(&self, function: &Function<'_>) -> (&'static str, &str) {
        match function.resource() {
            Some(id) => ("self", &self.names.resources[id.0]),
            None => ("client", &self.names.client),
        }
    }

    fn function(&self, number: usize, function: &Function<'_>, out: &mut Source) {
        let (receiver, class) = self.receiver(function);
        let names = self.names.parameters(function);
        let required = self.plan.required(function);
        let parameters = function.written().zip(&names);
        let mut list = format!("{receiver}: {class}, ");
        for ((index, parameter), name) in parameters.clone() {
            let ty = self.parameter_type(parameter);
            list += &format!("{name}: {ty}");
            if index >= required {
                list += &format!(" = default({ty})");
            }
            list += ", ";
        }
        let ok = match function.ok {
            ResultKind::Nothing => String::new(),
            ResultKind::Value(ty) => format!(": {}", self.ty(ty)),
            ResultKind::Resource(id) => format!(": {}", self.names.resources[id.0]),
            ResultKind::Stream(index) => format!(": {}", self.stream(&self.plan.streams[index])),
        };
        out.line(&format!(
            "proc {}*({list}callOptions = CallOptions()){ok} {{.",
            quoted(&self.names.functions[number])
        ));
        let handles = self.plan.handles(function);
        let handles = handles.map_or("-1".to_owned(), |count| count.to_string());
        out.open(&format!(
            "    service({number}, {}, {handles}, {}, {}, {}).}} =",
            function.function.params_layout.0,
            function.function.options.is_inline,
            self.reader(number, function),
            self.failure(function)
        ));
        out.docs("", &self.docs(function));
        // One codec, because its variables share the scope of the proc.
        let mut codec = self.codec(out);
        if function.resource().is_some() {
            let put = match is_destructor(function.function) {
                true => "Owned",
                false => "Borrowed",
            };
            let at = At::new("root").plus(function.parameters[0].offset);
            codec.line(&format!("args.put{put}({at}, self)"));
        }
        for ((_, parameter), name) in parameters {
            let at = At::new("root").plus(parameter.offset);
            let put = match parameter.kind {
                ParameterKind::Value(ty) => {
                    codec.put(ty, &at, name);
                    continue;
                }
                ParameterKind::Resource { is_own: true, .. } => "Owned",
                ParameterKind::Resource { .. } => "Borrowed",
                ParameterKind::Stream(_) => "Stream",
            };
            codec.line(&format!("args.put{put}({at}, {name})"));
        }
        if function.parameters.is_empty() {
            out.line("discard");
        }
        end(out);
    }

    pub(super) fn parameter_type(&self, parameter: &Parameter<'_>) -> String {
        match parameter.kind {
            ParameterKind::Value(ty) => self.ty(ty),
            ParameterKind::Resource { id, .. } => self.names.resources[id.0].clone(),
            ParameterKind::Stream(index) => self.writer_type(index),
        }
    }

    /// The type of a stream or future that the caller writes, and a guest reads.
    fn writer_type(&self, index: usize) -> String {
        let stream = &self.plan.upstreams[index];
        let names = match self.is_guest {
            true => ["StreamReader", "FutureReader"],
            false => ["StreamWriter", "FutureWriter"],
        };
        let name = names[usize::from(stream.is_future)];
        format!("{name}[{}]", self.element(stream.element))
    }

    /// Writes the procs that create the streams for the parameters of a function.
    fn writers(&self, number: usize, function: &Function<'_>, out: &mut Source) {
        let (receiver, class) = self.receiver(function);
        for (index, parameter) in function.written() {
            let ParameterKind::Stream(stream) = parameter.kind else {
                continue;
            };
            let of = &self.plan.upstreams[stream];
            let size = of.element.map_or(0, |ty| self.plan.get(ty).size);
            let name = self.names.writer(number, parameter.name);
            let ty = self.writer_type(stream);
            let element = self.element(of.element);
            let put = self.item(Operation::Put, of.element);
            out.line(&format!("proc {name}*({receiver}: {class}): {ty} ="));
            let (parameter, function) = (parameter.name, &self.names.functions[number]);
            let about = format!("Creates `{parameter}` for one call of `{function}`.");
            out.docs("  ", &about);
            out.line(&format!(
                "  openWriter[{element}]({receiver}.session, {number}, {index}, {size}, {:#x}'u64, {put})",
                of.hash
            ));
            out.blank();
        }
    }

    /// The documentation of a function.
    pub(super) fn docs(&self, function: &Function<'_>) -> String {
        let (function, error) = (function.function, &function.error);
        let mut docs = function.docs.trim().to_owned();
        if docs.is_empty() {
            docs = format!("`{}`", function.full_name);
        }
        if function.options.notice_interval_ns > 0 {
            let interval = Duration::from_nanos(function.options.notice_interval_ns);
            docs += &format!("\n\n`onNotice` is called every {interval:?} while the call runs.");
        }
        if function.error.is_some() {
            let error = self.element(*error);
            docs += &format!("\n\nRaises `ServiceError[{error}]`.");
        }
        docs
    }

    /// Writes the type of the host.
    pub fn host_type(&self, host: &Host, out: &mut Source) {
        out.open(&format!("{}* = object", self.names.hosts[0]));
        out.docs("", &host.docs);
        for (function, name) in self.plan.imports.iter().zip(&self.names.imports) {
            let names = self.names.parameters(function);
            let parameters = function.parameters.iter().zip(names);
            let parameters = parameters
                .map(|(parameter, name)| format!("{name}: {}", self.parameter_type(parameter)));
            let parameters: Vec<_> = parameters.collect();
            let ok = match function.ok {
                ResultKind::Value(ty) => Some(self.ty(ty)),
                _ => None,
            };
            let result = match (ok, &function.function.error) {
                (None, None) => String::new(),
                (Some(ok), None) => format!(": {ok}"),
                (ok, Some(_)) => {
                    let ok = ok.unwrap_or("Nothing".to_owned());
                    format!(": Result[{ok}, {}]", self.element(function.error))
                }
            };
            out.line(&format!(
                "{name}*: proc ({}){result}",
                parameters.join(", ")
            ));
            out.docs("  ", &function.function.docs);
        }
        out.dedent();
    }

    /// Writes the proc that sets the host.
    pub fn host(&self, out: &mut Source) {
        let (client, [host, later]) = (&self.names.client, &self.names.hosts);
        if self.plan.package.host.is_none() {
            return;
        }
        out.line(&format!("asyncHost({later}, {host})"));
        out.blank();
        for (number, function) in self.plan.imports.iter().enumerate() {
            self.import(number, function, out);
        }
        out.open(&format!(
            "proc setHost*(client: {client}, host: {host} | {later}) ="
        ));
        out.docs(
            "",
            "Sets the functions that the service calls. They run during a call of this thread, or in \
             its event loop. An exception that leaves one fails the host call as \
             `Outcome.guestPanicked`.",
        );
        out.open(&format!(
            "setHost(client, host, host is {later}, proc (call: var HostCall) ="
        ));
        out.line("case call.number");
        for (number, name) in self.names.imports.iter().enumerate() {
            out.line(&format!("of {number}: serve{number}(call, host.{name})"));
        }
        out.line("else: discard)");
        out.dedent();
        end(out);
    }

    /// Writes the proc that serves a host import.
    fn import(&self, number: usize, function: &Function<'_>, out: &mut Source) {
        let size = function.function.params_layout.0;
        out.open(&format!(
            "proc serve{number}(call: var HostCall, function: auto) ="
        ));
        out.line("template m: untyped = call.arguments");
        out.line(&format!(
            "let root {{.used.}} = m.open(call.layout, {size})"
        ));
        let values = function.parameters.iter().filter_map(|one| match one.kind {
            ParameterKind::Value(ty) => Some((ty, At::new("root").plus(one.offset))),
            _ => None,
        });
        let mut codec = self.codec(out);
        for (ty, at) in values.clone() {
            codec.check(ty, &at);
        }
        codec.line("if not m.close(): return");
        let mut arguments = Vec::new();
        for (ty, at) in values {
            arguments.push(codec.get(ty, &at));
        }
        let call = format!("function({})", arguments.join(", "));
        let ok = match function.ok {
            ResultKind::Value(ty) => Some(ty),
            _ => None,
        };
        out.open(&format!("call.answered({call}, answer):"));
        out.line("template args: untyped = call.writer");
        if function.function.error.is_some() {
            out.open("if answer.isOk:");
            self.answer("ok", ok, "answer.value", out);
            out.reopen("else:");
            self.answer("error", function.error, "answer.error", out);
            out.dedent();
        } else {
            self.answer("ok", ok, "answer", out);
        }
        out.dedent();
        end(out);
    }

    /// Writes the code that encodes an answer.
    fn answer(&self, code: &str, ty: Option<TypeIndex>, value: &str, out: &mut Source) {
        let Some(ty) = ty else {
            return out.line(&format!("discard call.begin(Outcome.{code}, 0)"));
        };
        let size = self.plan.get(ty).size;
        out.line(&format!("let at = call.begin(Outcome.{code}, {size})"));
        self.codec(out).put(ty, &At::new("at"), value);
    }
}

/// Ends a proc.
fn end(out: &mut Source) {
    out.dedent();
    out.blank();
}

/// Whether the type has procs that get and put it.
pub(super) fn has_routine(ty: &Type<'_>) -> bool {
    ty.id.is_some() && matches!(ty.kind, Kind::Record(_) | Kind::Variant { .. })
}
