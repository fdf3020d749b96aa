//! The procs with which a guest calls the host imports of its package.

use super::Emitter;
use super::names::quoted;
use crate::plan::codec::{At, Codec, Operation};
use crate::plan::source::Source;
use crate::plan::{Function, ParameterKind, ResultKind};

impl Emitter<'_> {
    /// Writes a proc for each host import.
    pub fn host_calls(&self, out: &mut Source) {
        for (number, import) in self.plan.imports.iter().enumerate() {
            self.host_call(number, import, out);
        }
    }

    fn host_call(&self, number: usize, import: &Function<'_>, out: &mut Source) {
        let names = self.names.parameters(import);
        let is_taken = |name: &&str| names.iter().any(|one| one == name);
        let all = ["call", "running", "runningCall"];
        let receiver = all.into_iter().find(|name| !is_taken(name));
        let receiver = receiver.unwrap_or("theCall");
        let mut list = format!("{receiver}: Call");
        for (parameter, name) in import.parameters.iter().zip(&names) {
            list += &format!(", {name}: {}", self.parameter_type(parameter));
        }
        let ok = match import.ok {
            ResultKind::Value(ty) => Some(ty),
            _ => None, // The parser refuses host imports with handles.
        };
        let future = ok.map_or("void".to_owned(), |ty| self.ty(ty));
        let name = quoted(&self.names.imports[number]);
        out.open(&format!("proc {name}*({list}): Future[{future}] ="));
        out.docs("", &self.docs(import));
        out.line("var args {.noinit.}: Writer");
        let size = import.function.params_layout.0;
        let root = match import.parameters.is_empty() {
            true => "discard",
            false => "let root =",
        };
        out.line(&format!(
            "{root} args.begin(hostImports[{number}].params, 0, {size})"
        ));
        let mut codec = Codec::new(self.plan, self, out);
        for (parameter, name) in import.parameters.iter().zip(&names) {
            if let ParameterKind::Value(ty) = parameter.kind {
                codec.put(ty, &At::new("root").plus(parameter.offset), name);
            }
        }
        let error = match import.function.error {
            Some(_) => self.item(Operation::Get, import.error),
            None => "nil".to_owned(),
        };
        out.line(&format!(
            "callHost[{}, {}]({receiver}, {number}, args, {}, {error})",
            self.element(ok),
            self.element(import.error),
            self.item(Operation::Get, ok),
        ));
        out.dedent();
        out.blank();
    }
}
